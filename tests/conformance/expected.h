/* SPDX-License-Identifier: Apache-2.0 */
/* What the oracle expects of a case, and how far off a result may be. */
#ifndef TESTS_CONFORMANCE_EXPECTED_H
#define TESTS_CONFORMANCE_EXPECTED_H

#include "tests/conformance/case_data.h"
#include "tests/conformance/tolerance.h"

/* Values of each tensor of a case, in the order of case_data.tensors. */
typedef struct expected {
    const case_data *data; /* must outlive it */
    double *values[CASE_MAX_TENSORS];
    oracle_row *rows; /* [batch] */
    /* [class][tensor][outer * batch], NULL until the class is asked for */
    double *tolerances[TOLERANCE_CLASSES][CASE_MAX_TENSORS];
} expected;

/* Runs the oracle; -1 without memory or for a chain that makes no sense. */
int expected_init(expected *e, const case_data *data);
void expected_finish(expected *e);

/* Makes the tolerances of a class; -1 as above. Not for two threads at once. */
int expected_need_class(expected *e, int32_t numeric);

/* Results of a run, dense float32, in the order of case_data.tensors. */
typedef struct results {
    const case_data *data;
    float *values[CASE_MAX_TENSORS];
} results;

int results_init(results *r, const case_data *data);
void results_finish(results *r);

/* The first tensor whose bits differ, or -1; `row` >= 0 is left out. */
int results_differ(const results *a, const results *b, int64_t row);

/* A verdict on results. */
typedef struct verdict {
    int failed;
    int64_t compared; /* rows compared, over all tensors */
    double share;     /* the worst error as a share of its tolerance */
    /* Where: the first failure, or the worst error. */
    int32_t tensor;
    int64_t direction, row, step, feature;
    double wanted, got, tolerance;
    const char *rule; /* what was violated, or NULL */
} verdict;

/*
 * Compares, after expected_need_class(). Some values must be exact whatever
 * the class: zeros beyond a row's length, and the state of a row of length 0.
 */
verdict expected_compare(const expected *e, const results *r, int32_t numeric);

/* "y[row 3, step 4, feature 5]: expected ..., got ..., tolerance ..." */
void verdict_describe(const verdict *v, const case_data *data, int32_t numeric,
                      char *text, size_t size);

#endif
