/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows over the steps, the last axis but one: copied side by side for a
 * convolution, pooled, or all steps reduced at once.
 */
#include "config.h"

#include <math.h>

#include "runtime/host/ops.h"

/* An input as [rows][steps][features]. */
typedef struct sequences {
    int64_t rows, steps, features;
} sequences;

static sequences as_sequences(const cg_shape *shape)
{
    const int32_t rank = shape->rank;

    return (sequences){ cg_host_extent(shape, 0, rank - 2),
                        shape->extent[rank - 2], shape->extent[rank - 1] };
}

/* Padding has been checked to be zeros; a step outside of the row is that. */
static void copy_window(const cg_window *window, const float *x,
                        const sequences *in, int64_t start, float *y)
{
    const size_t bytes = (size_t)in->features * sizeof *y;

    for (int64_t tap = 0; tap < window->size; tap++) {
        const int64_t step = start + tap * window->dilation;

        if (step >= 0 && step < in->steps)
            memcpy(y, x + step * in->features, bytes);
        else
            memset(y, 0, bytes);
        y += in->features;
    }
}

cellgate_status cg_host_window(const cg_host_call *call, cellgate_error *error)
{
    const cg_window *window = &call->node->as.window;
    const sequences in = as_sequences(cg_host_input_shape(call, 0));
    const float *x = cg_host_input(call, 0);
    float *y = cg_host_output(call, 0);
    int64_t before;
    const int64_t count = cg_window_count(window, in.steps, &before);

    (void)error;
    for (int64_t row = 0; y != NULL && row < in.rows; row++)
        for (int64_t at = 0; at < count; at++)
            copy_window(window, x + row * in.steps * in.features, &in,
                        at * window->stride - before,
                        y + (row * count + at) * window->size * in.features);
    return CELLGATE_OK;
}

/* A NaN wins. */
static float farther(cg_pool_mode mode, float most, float number)
{
    if (mode == CG_POOL_MAXIMUM ? number <= most : number >= most)
        return most;
    return isnan(most) ? most : number;
}

/* Of `steps` numbers that lie `stride` apart; a NaN among them wins. */
static float pool(cg_pool_mode mode, const float *x, int64_t steps,
                  int64_t stride)
{
    double sum = 0;
    float most = mode == CG_POOL_MAXIMUM ? -INFINITY : INFINITY;

    if (mode == CG_POOL_MAXIMUM || mode == CG_POOL_MINIMUM) {
        for (int64_t t = 0; t < steps; t++)
            most = farther(mode, most, x[t * stride]);
        return most;
    }
    for (int64_t t = 0; t < steps; t++)
        sum += x[t * stride];
    return (float)(mode == CG_POOL_SUM ? sum : sum / (double)steps);
}

/* Padding is left out of a window, and does not count for the average. */
static void pool_window(const cg_pool *pooling, const float *x,
                        const sequences *in, int64_t start, float *y)
{
    const int64_t first = start > 0 ? start : 0;
    int64_t end = start + pooling->window.size;

    if (end > in->steps)
        end = in->steps;
    for (int64_t k = 0; k < in->features; k++)
        y[k] = pool(pooling->mode, x + first * in->features + k, end - first,
                    in->features);
}

cellgate_status cg_host_pool(const cg_host_call *call, cellgate_error *error)
{
    const cg_pool *pooling = &call->node->as.pool;
    const sequences in = as_sequences(cg_host_input_shape(call, 0));
    const float *x = cg_host_input(call, 0);
    float *y = cg_host_output(call, 0);
    int64_t before;
    const int64_t count = cg_window_count(&pooling->window, in.steps, &before);

    (void)error;
    for (int64_t row = 0; y != NULL && row < in.rows; row++)
        for (int64_t at = 0; at < count; at++)
            pool_window(pooling, x + row * in.steps * in.features, &in,
                        at * pooling->window.stride - before,
                        y + (row * count + at) * in.features);
    return CELLGATE_OK;
}

/* NaN where no step is valid, as Keras has it. */
static float masked_average(const float *x, const uint8_t *mask,
                            const sequences *in)
{
    double sum = 0;
    int64_t count = 0;

    for (int64_t t = 0; t < in->steps; t++)
        if (mask[t] != 0) {
            sum += x[t * in->features];
            count++;
        }
    return (float)(sum / (double)count);
}

cellgate_status cg_host_reduce(const cg_host_call *call, cellgate_error *error)
{
    const cg_pool_mode mode = call->node->as.reduce.mode;
    const sequences in = as_sequences(cg_host_input_shape(call, 0));
    const float *x = cg_host_input(call, 0);
    const uint8_t *mask = cg_host_input(call, 1);
    float *y = cg_host_output(call, 0);

    (void)error;
    for (int64_t row = 0; y != NULL && row < in.rows; row++) {
        const float *from = x + row * in.steps * in.features;

        for (int64_t k = 0; k < in.features; k++)
            y[row * in.features + k] =
                mask == NULL
                    ? pool(mode, from + k, in.steps, in.features)
                    : masked_average(from + k, mask + row * in.steps, &in);
    }
    return CELLGATE_OK;
}
