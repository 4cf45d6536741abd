/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that move elements of any dtype about: slice, concat, pad, repeat,
   reshape, permute. An input that is absent is a mask of valid steps: where
   that makes the output valid everywhere, it is absent too. */
#include "config.h"

#include "runtime/host/ops.h"

static size_t element_size(const cg_host_call *call)
{
    return cellgate_dtype_size(
        call->model->values[call->node->inputs[0]].dtype);
}

/* A value as blocks: the indices before an axis, the axis, and what lies at
   each of its indices. */
typedef struct blocks {
    int64_t outer, extent;
    size_t inner; /* bytes */
} blocks;

static blocks blocks_of(const cg_host_call *call, const cg_shape *shape,
                        int32_t axis)
{
    const int32_t at = axis != 0 ? axis : shape->rank - 1;

    return (blocks){ cg_host_extent(shape, 0, at), shape->extent[at],
                     (size_t)cg_host_extent(shape, at + 1, shape->rank) *
                         element_size(call) };
}

cellgate_status cg_host_slice(const cg_host_call *call, cellgate_error *error)
{
    const cg_slice *slice = &call->node->as.slice;
    const blocks x = blocks_of(call, cg_host_input_shape(call, 0), slice->axis);
    const char *from = cg_host_input(call, 0);
    char *to = cg_host_output(call, 0);
    const int64_t first =
        slice->begin >= 0 ? slice->begin : x.extent + slice->begin;
    const int64_t end = slice->end > 0 ? slice->end : x.extent + slice->end;
    const int64_t begin = slice->step < 0 ? end - 1 : first;
    /* Without steps the whole range is copied at once. */
    const int64_t count =
        slice->step != 0 ? cg_slice_count(slice, end - first) : 1;
    const size_t width = (size_t)(slice->step != 0 ? 1 : end - first) * x.inner;

    (void)error;
    for (int64_t i = 0; to != NULL && i < x.outer; i++)
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = i * x.extent + begin + k * slice->step;

            memcpy(to, from + (size_t)at * x.inner, width);
            to += width;
        }
    return CELLGATE_OK;
}

cellgate_status cg_host_concat(const cg_host_call *call, cellgate_error *error)
{
    const int32_t axis = call->node->as.concat;
    char *to = cg_host_output(call, 0);
    size_t whole = 0, begin = 0;

    (void)error;
    for (size_t at = 0; at < call->node->input_count; at++) {
        const blocks x = blocks_of(call, cg_host_input_shape(call, at), axis);

        whole += (size_t)x.extent * x.inner;
    }
    for (size_t at = 0; to != NULL && at < call->node->input_count; at++) {
        const blocks x = blocks_of(call, cg_host_input_shape(call, at), axis);
        const size_t width = (size_t)x.extent * x.inner;
        const char *from = cg_host_input(call, at);

        for (int64_t i = 0; i < x.outer; i++) {
            char *row = to + (size_t)i * whole + begin;

            if (from != NULL)
                memcpy(row, from + (size_t)i * width, width);
            else
                memset(row, 1, width);
        }
        begin += width;
    }
    return CELLGATE_OK;
}

cellgate_status cg_host_pad(const cg_host_call *call, cellgate_error *error)
{
    const cg_pad *pad = &call->node->as.pad;
    const blocks x = blocks_of(call, cg_host_input_shape(call, 0), pad->axis);
    const char *from = cg_host_input(call, 0);
    char *to = cg_host_output(call, 0);
    const size_t before = (size_t)pad->before * x.inner;
    const size_t after = (size_t)pad->after * x.inner;
    const size_t width = (size_t)x.extent * x.inner;

    (void)error;
    for (int64_t i = 0; to != NULL && i < x.outer; i++) {
        memset(to, 0, before);
        if (from != NULL)
            memcpy(to + before, from + (size_t)i * width, width);
        else
            memset(to + before, 1, width);
        memset(to + before + width, 0, after);
        to += before + width + after;
    }
    return CELLGATE_OK;
}

cellgate_status cg_host_repeat(const cg_host_call *call, cellgate_error *error)
{
    const cg_repeat *repeat = &call->node->as.repeat;
    const blocks x =
        blocks_of(call, cg_host_input_shape(call, 0), repeat->axis);
    const char *from = cg_host_input(call, 0);
    char *to = cg_host_output(call, 0);

    (void)error;
    for (int64_t i = 0; to != NULL && i < x.outer * x.extent; i++)
        for (int64_t time = 0; time < repeat->times; time++) {
            memcpy(to, from + (size_t)i * x.inner, x.inner);
            to += x.inner;
        }
    return CELLGATE_OK;
}

cellgate_status cg_host_reshape(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    char *to = cg_host_output(call, 0);

    (void)error;
    if (to != NULL)
        memcpy(to, cg_host_input(call, 0),
               (size_t)cg_host_extent(shape, 0, shape->rank) *
                   element_size(call));
    return CELLGATE_OK;
}

/* The output in its order; `at` counts its axes, and from moves along. */
cellgate_status cg_host_permute(const cg_host_call *call, cellgate_error *error)
{
    const cg_extents *order = &call->node->as.permute;
    const cg_shape *x = cg_host_input_shape(call, 0);
    const size_t size = element_size(call);
    const int64_t count = cg_host_extent(x, 0, x->rank);
    const char *from = cg_host_input(call, 0);
    char *to = cg_host_output(call, 0);
    int64_t at[CELLGATE_MAX_RANK] = { 0 }, strides[CELLGATE_MAX_RANK];
    int64_t offset = 0;

    (void)error;
    for (int32_t axis = 0; axis < order->count; axis++)
        strides[axis] =
            cg_host_extent(x, (int32_t)order->extent[axis] + 1, x->rank);
    for (int64_t i = 0; to != NULL && i < count; i++) {
        memcpy(to + (size_t)i * size, from + (size_t)offset * size, size);
        for (int32_t axis = order->count - 1; axis >= 0; axis--) {
            offset += strides[axis];
            if (++at[axis] < x->extent[order->extent[axis]])
                break;
            offset -= at[axis] * strides[axis];
            at[axis] = 0;
        }
    }
    return CELLGATE_OK;
}
