/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the oracle's ops have in common: products and activations, exact or
 * disturbed, and the record of what happened in a row. Internal to the oracle.
 */
#ifndef TESTS_ORACLE_ARITHMETIC_H
#define TESTS_ORACLE_ARITHMETIC_H

#include "tests/oracle/oracle.h"
#include "tests/oracle/random.h"

typedef struct oracle_arithmetic {
    const oracle_noise *noise; /* NULL: exact */
    random_source random;
    oracle_row *rows; /* [batch], or NULL */
} oracle_arithmetic;

/* calloc() of count doubles, at least one; NULL without memory. */
double *oracle_doubles(int64_t count);

/* A copy of a matrix or vector of weights, disturbed. The caller frees it. */
double *oracle_weights(oracle_arithmetic *arithmetic, const float *weights,
                       int64_t count);

/* `to` gets the factors that meet weights, disturbed. They may be the same. */
void oracle_factors(oracle_arithmetic *arithmetic, const double *from,
                    int64_t count, double *to);

/* sum[j] += x[k] * matrix[k][j]; the matrix is [rows][columns]. */
void oracle_multiply(const double *x, const double *matrix, int64_t rows,
                     int64_t columns, double *sum);

/* The activation of x, disturbed; `row` of the batch is where it happens. */
double oracle_activated(oracle_arithmetic *arithmetic, int64_t row,
                        const cellgate_activation *activation, double x);

/* `value`, disturbed by a share of `scale`, the magnitudes that entered it. */
double oracle_rounded(oracle_arithmetic *arithmetic, int64_t row, double value,
                      double scale);

/* The ops. x and results are dense; NULL results are not wanted. -1: memory. */
int oracle_lstm_run(oracle_arithmetic *arithmetic, const cellgate_lstm *lstm,
                    const oracle_run *run, const double *x,
                    const oracle_state *state, double *sequence, double *last);

#endif
