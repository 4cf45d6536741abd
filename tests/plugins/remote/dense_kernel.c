/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/arithmetic.h"
#include "tests/plugins/remote/kernels.h"

static const struct remote_view *
run_dense(const struct remote_dense_launch *launch,
          const struct remote_view *views)
{
    const struct remote_op *op = launch->op;
    const void *kernel = remote_matrix(&views[REMOTE_DENSE_KERNEL],
                                       launch->pack, op->input * op->features);
    const float *bias =
        remote_floats(&views[REMOTE_DENSE_BIAS], 0, op->features);
    float *sums =
        remote_floats(&views[REMOTE_DENSE_WORKSPACE], 0, op->features);
    int64_t row, k;

    if (kernel == NULL)
        return &views[REMOTE_DENSE_KERNEL];
    if (op->has_bias && bias == NULL)
        return &views[REMOTE_DENSE_BIAS];
    if (sums == NULL)
        return &views[REMOTE_DENSE_WORKSPACE];
    for (row = 0; row < launch->rows; row++) {
        const float *x = remote_floats(&views[REMOTE_DENSE_INPUT],
                                       row * op->input, op->input);
        float *y = remote_floats(&views[REMOTE_DENSE_OUTPUT],
                                 row * op->features, op->features);
        if (x == NULL)
            return &views[REMOTE_DENSE_INPUT];
        if (y == NULL)
            return &views[REMOTE_DENSE_OUTPUT];
        remote_start_sums(bias, op->features, sums);
        remote_multiply(launch->pack, x, op->input, kernel, op->features, sums);
        for (k = 0; k < op->features; k++)
            y[k] = remote_activate(&op->activation, sums[k]);
    }
    return NULL;
}

cellgate_status remote_dense_kernel(struct remote_memory *memory,
                                    const struct remote_dense_launch *launch,
                                    cellgate_error *error)
{
    struct remote_view views[REMOTE_DENSE_BUFFERS];
    const struct remote_view *left;
    cellgate_status status = remote_map_all(memory, launch->buffers,
                                            REMOTE_DENSE_BUFFERS, views, error);

    if (status != CELLGATE_OK)
        return status;
    left = run_dense(launch, views);
    if (left != NULL)
        status = remote_outside(memory, left, "a Dense kernel", error);
    remote_unmap_all(memory, REMOTE_DENSE_BUFFERS, views);
    return status;
}

cellgate_status remote_scale_kernel(struct remote_memory *memory,
                                    remote_handle handle, int64_t count,
                                    float factor, cellgate_error *error)
{
    struct remote_view view;
    float *values;
    int64_t at;
    cellgate_status status = remote_map(memory, handle, &view, error);

    if (status != CELLGATE_OK)
        return status;
    values = remote_floats(&view, 0, count);
    if (values == NULL)
        status = remote_outside(memory, &view, "a scaling kernel", error);
    for (at = 0; values != NULL && at < count; at++)
        values[at] *= factor;
    remote_unmap(memory, &view);
    return status;
}

int64_t remote_workspace_size(const struct remote_op *op)
{
    return op->kind == CELLGATE_OP_LSTM ? 5 * op->hidden : op->features;
}
