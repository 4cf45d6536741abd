/* SPDX-License-Identifier: Apache-2.0 */
/* What bidirectional layers need: turning time, and merging two halves. */
#include "config.h"

#include "runtime/host/ops.h"

/* Any element type: masks are reversed too. */
cellgate_status cg_host_reverse(const cg_host_call *call, cellgate_error *error)
{
    int32_t value = call->node->inputs[0];
    const cg_shape *shape = &call->shapes[value];
    const char *x = cg_host_input(call, 0);
    char *y = cg_host_output(call, 0);
    int64_t rows = shape->extent[0], steps = shape->extent[1];
    size_t step_bytes = (size_t)cg_host_extent(shape, 2, shape->rank) *
                        cellgate_dtype_size(call->model->values[value].dtype);

    (void)error;
    if (y == NULL)
        return CELLGATE_OK;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t step = 0; step < steps; step++)
            memcpy(y + (size_t)(row * steps + step) * step_bytes,
                   x + (size_t)(row * steps + steps - 1 - step) * step_bytes,
                   step_bytes);
    return CELLGATE_OK;
}

static float merged(cg_merge_mode mode, double a, double b)
{
    switch (mode) {
    case CG_MERGE_SUM:
        return (float)(a + b);
    case CG_MERGE_AVERAGE:
        return (float)((a + b) / 2);
    default: /* CG_MERGE_PRODUCT */
        return (float)(a * b);
    }
}

cellgate_status cg_host_merge(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    float *y = cg_host_output(call, 0);
    int64_t rows = cg_host_extent(shape, 0, shape->rank - 1);
    int64_t half = shape->extent[shape->rank - 1] / 2;

    (void)error;
    for (int64_t row = 0; y != NULL && row < rows; row++)
        for (int64_t k = 0; k < half; k++)
            y[row * half + k] =
                merged(call->node->as.merge, x[row * 2 * half + k],
                       x[row * 2 * half + half + k]);
    return CELLGATE_OK;
}
