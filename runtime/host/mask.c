/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that make masks and apply them; a mask is uint8 of all axes but the
   features. */
#include "config.h"

#include "runtime/host/ops.h"

static bool is_nonzero(const void *data, int32_t dtype, int64_t at)
{
    if (dtype == CELLGATE_I32)
        return ((const int32_t *)data)[at] != 0;
    if (dtype == CELLGATE_U8)
        return ((const uint8_t *)data)[at] != 0;
    return ((const float *)data)[at] != 0.0f;
}

cellgate_status cg_host_nonzero(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const int32_t dtype = call->model->values[call->node->inputs[0]].dtype;
    const void *data = cg_host_input(call, 0);
    uint8_t *mask = cg_host_output(call, 0);
    int64_t count = cg_host_extent(shape, 0, shape->rank);

    (void)error;
    for (int64_t k = 0; mask != NULL && k < count; k++)
        mask[k] = is_nonzero(data, dtype, k);
    return CELLGATE_OK;
}

cellgate_status cg_host_not_equal(const cg_host_call *call,
                                  cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    uint8_t *mask = cg_host_output(call, 0);
    int64_t count = cg_host_extent(shape, 0, shape->rank - 1);
    int64_t size = shape->extent[shape->rank - 1];

    (void)error;
    for (int64_t k = 0; mask != NULL && k < count; k++) {
        mask[k] = 0;
        for (int64_t feature = 0; feature < size; feature++)
            if (x[k * size + feature] != call->node->as.not_equal)
                mask[k] = 1;
    }
    return CELLGATE_OK;
}

/* Without a mask every step is kept. */
cellgate_status cg_host_masked(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    const uint8_t *mask = cg_host_input(call, 1);
    float *y = cg_host_output(call, 0);
    int64_t count = cg_host_extent(shape, 0, shape->rank - 1);
    int64_t size = shape->extent[shape->rank - 1];

    (void)error;
    for (int64_t k = 0; y != NULL && k < count; k++)
        for (int64_t feature = 0; feature < size; feature++)
            y[k * size + feature] =
                mask == NULL || mask[k] != 0 ? x[k * size + feature] : 0;
    return CELLGATE_OK;
}
