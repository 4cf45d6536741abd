/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/host/ops.h"

static double dense_unit(const float *x, const float *kernel, const float *bias,
                         const cg_dense *dense, int64_t unit)
{
    double sum = bias != NULL ? bias[unit] : 0;

    for (int64_t k = 0; k < dense->input_size; k++)
        sum += (double)x[k] * kernel[k * dense->units + unit];
    return cg_host_activation(dense->activation, sum);
}

cellgate_status cg_host_dense(const cg_host_call *call, cellgate_error *error)
{
    const cg_dense *dense = &call->node->as.dense;
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    const float *kernel = cg_host_weight(call, 0);
    const float *bias = dense->has_bias ? cg_host_weight(call, 1) : NULL;
    float *y = cg_host_output(call, 0);
    int64_t rows = cg_host_extent(shape, 0, shape->rank - 1);

    (void)error;
    for (int64_t row = 0; y != NULL && row < rows; row++)
        for (int64_t unit = 0; unit < dense->units; unit++)
            y[row * dense->units + unit] = (float)dense_unit(
                x + row * dense->input_size, kernel, bias, dense, unit);
    return CELLGATE_OK;
}
