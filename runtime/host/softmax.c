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

cellgate_status cg_host_softmax(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    float *y = cg_host_output(call, 0);
    int64_t rows = cg_host_extent(shape, 0, shape->rank - 1);
    int64_t size = shape->extent[shape->rank - 1];

    (void)error;
    for (int64_t row = 0; y != NULL && row < rows; row++)
        softmax_row(x + row * size, y + row * size, size);
    return CELLGATE_OK;
}
