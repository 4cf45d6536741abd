/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "runtime/host/ops.h"

/* A NaN among the features makes the whole row NaN: through the sum. */
static void softmax_row(const float *x, float *y, int64_t size)
{
    double largest = -INFINITY, sum = 0;

    for (int64_t k = 0; k < size; k++)
        if (x[k] > largest)
            largest = x[k];
    for (int64_t k = 0; k < size; k++)
        sum += exp(x[k] - largest);
    for (int64_t k = 0; k < size; k++)
        y[k] = (float)(exp(x[k] - largest) / sum);
}

/* The logarithm of that, also where it is too small for a float. */
static void log_softmax_row(const float *x, float *y, int64_t size)
{
    double largest = -INFINITY, sum = 0;

    for (int64_t k = 0; k < size; k++)
        if (x[k] > largest)
            largest = x[k];
    for (int64_t k = 0; k < size; k++)
        sum += exp(x[k] - largest);
    for (int64_t k = 0; k < size; k++)
        y[k] = (float)(x[k] - largest - log(sum));
}

/* Sum of x and how many there are, of those that come no later than x[at] when
   the largest comes first. */
static double sum_up_to(const float *x, int64_t size, int64_t at, int64_t *rank)
{
    double sum = 0;

    *rank = 0;
    for (int64_t k = 0; k < size; k++)
        if (x[k] > x[at] || (k <= at && x[k] == x[at])) {
            sum += x[k];
            ++*rank;
        }
    return sum;
}

/*
 * As Keras 3 computes it: max(x - threshold, 0), where the threshold is formed
 * of the sum of all partial sums of the numbers that stay. The sparsemax of
 * Martins and Astudillo takes the last partial sum; measured, Keras does not,
 * and its results do not add up to 1.
 */
static void sparsemax_row(const float *x, float *y, int64_t size)
{
    double threshold, sums = 0, all = 0;
    int64_t staying = 0, rank;

    for (int64_t k = 0; k < size; k++) {
        const double sum = sum_up_to(x, size, k, &rank);

        all += x[k];
        if (1 + (double)rank * x[k] > sum) {
            sums += sum;
            staying++;
        }
    }
    threshold = isnan(all) ? NAN : (sums - 1) / (double)staying;
    for (int64_t k = 0; k < size; k++) {
        const double over = x[k] - threshold;

        y[k] = (float)(over < 0 ? 0 : over);
    }
}

static void run_rows(const cg_host_call *call,
                     void (*row_op)(const float *, float *, int64_t))
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    float *y = cg_host_output(call, 0);
    int64_t rows = cg_host_extent(shape, 0, shape->rank - 1);
    int64_t size = shape->extent[shape->rank - 1];

    for (int64_t row = 0; y != NULL && row < rows; row++)
        row_op(x + row * size, y + row * size, size);
}

cellgate_status cg_host_softmax(const cg_host_call *call, cellgate_error *error)
{
    (void)error;
    run_rows(call, softmax_row);
    return CELLGATE_OK;
}

cellgate_status cg_host_log_softmax(const cg_host_call *call,
                                    cellgate_error *error)
{
    (void)error;
    run_rows(call, log_softmax_row);
    return CELLGATE_OK;
}

cellgate_status cg_host_sparsemax(const cg_host_call *call,
                                  cellgate_error *error)
{
    (void)error;
    run_rows(call, sparsemax_row);
    return CELLGATE_OK;
}
