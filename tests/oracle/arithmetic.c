/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tests/oracle/arithmetic.h"

double *oracle_doubles(int64_t count)
{
    if (count < 0 || (uint64_t)count > SIZE_MAX / sizeof(double))
        return NULL;
    return calloc(count == 0 ? 1 : (size_t)count, sizeof(double));
}

static double largest_of(const double *values, int64_t count)
{
    double largest = 0.0;

    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i]) && fabs(values[i]) > largest)
            largest = fabs(values[i]);
    return largest;
}

void oracle_factors(oracle_arithmetic *arithmetic, const double *from,
                    int64_t count, double *to)
{
    const oracle_noise *noise = arithmetic->noise;

    if (noise == NULL) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i];
        return;
    }
    double largest = noise->of_largest ? largest_of(from, count) : 0.0;
    for (int64_t i = 0; i < count; i++) {
        double share = noise->of_largest ? largest : from[i];
        double change = share * random_between(&arithmetic->random,
                                               -noise->operand, noise->operand);
        /* An infinity has no rounding error, and less an infinity is NaN. */
        to[i] = isfinite(from[i]) ? from[i] + change : from[i];
    }
}

double *oracle_weights(oracle_arithmetic *arithmetic, const float *weights,
                       int64_t count)
{
    double *copy = oracle_doubles(count);

    if (copy == NULL)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        copy[i] = weights[i];
    oracle_factors(arithmetic, copy, count, copy);
    return copy;
}

void oracle_multiply(const double *x, const double *matrix, int64_t rows,
                     int64_t columns, double *sum)
{
    for (int64_t k = 0; k < rows; k++)
        for (int64_t j = 0; j < columns; j++)
            sum[j] += x[k] * matrix[k * columns + j];
}

double oracle_rounded(oracle_arithmetic *arithmetic, int64_t row, double value,
                      double scale)
{
    if (arithmetic->rows != NULL && fabs(value) > arithmetic->rows[row].largest)
        arithmetic->rows[row].largest = fabs(value);
    if (arithmetic->noise == NULL || !isfinite(scale))
        return value;
    return value + scale * random_between(&arithmetic->random,
                                          -arithmetic->noise->result,
                                          arithmetic->noise->result);
}

double oracle_activated(oracle_arithmetic *arithmetic, int64_t row,
                        const cellgate_activation *activation, double x)
{
    double value = oracle_activate(activation, x);
    double jump = oracle_jump_distance(activation, x);

    if (arithmetic->rows != NULL) {
        oracle_row *record = &arithmetic->rows[row];
        if (fabs(x) > record->largest)
            record->largest = fabs(x);
        if (jump < record->nearest_jump)
            record->nearest_jump = jump;
    }
    return oracle_rounded(arithmetic, row, value,
                          oracle_activation_scale(activation, x, value));
}
