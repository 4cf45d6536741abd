/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that move elements about and leave them as they are. */
#include "config.h"

#include "runtime/model/infer.h"

/* The axis that an attribute means, 0 being the last one. */
static cellgate_status find_axis(const cg_node *node, const cg_shape *x,
                                 int32_t wanted, int32_t *axis,
                                 cellgate_error *error)
{
    cellgate_status status =
        cg_need_rank(node, "the input", x, 2, CELLGATE_MAX_RANK, error);

    if (status != CELLGATE_OK)
        return status;
    *axis = wanted != 0 ? wanted : x->rank - 1;
    if (*axis < x->rank)
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                        "an input of %d axes has no axis %d", (int)x->rank,
                        (int)*axis);
}

static cellgate_status fail_too_large(const cg_node *node, int32_t axis,
                                      cellgate_error *error)
{
    return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                        "axis %d of the output is too large", (int)axis);
}

int64_t cg_slice_count(const cg_slice *slice, int64_t width)
{
    const int64_t step = slice->step < 0 ? -slice->step : slice->step;

    return width == CG_UNKNOWN || step == 0 ? width : (width - 1) / step + 1;
}

CG_INFER(slice)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    const cg_slice *slice = &node->as.slice;
    cg_shape y = *x;
    int64_t extent, begin, end;
    int32_t axis;
    cellgate_status status = find_axis(node, x, slice->axis, &axis, error);

    if (status != CELLGATE_OK)
        return status;
    extent = x->extent[axis];
    begin = slice->begin >= 0 || extent == CG_UNKNOWN ? slice->begin
                                                      : extent + slice->begin;
    end = slice->end > 0 || extent == CG_UNKNOWN ? slice->end
                                                 : extent + slice->end;
    if (extent != CG_UNKNOWN && (begin < 0 || end > extent || end <= begin))
        return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                            "the range %lld to %lld is beyond %lld %s",
                            (long long)slice->begin, (long long)slice->end,
                            (long long)extent,
                            axis == x->rank - 1 ? "features" : "steps");
    y.extent[axis] = cg_slice_count(
        slice, (begin < 0) == (end <= 0) ? end - begin : CG_UNKNOWN);
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}

/* All axes but `axis` agree; *into learns from `from`. */
static cellgate_status meet_others(const cg_node *node, cg_shape *into,
                                   const cg_shape *from, int32_t axis,
                                   cellgate_error *error)
{
    for (int32_t i = 0; i < into->rank; i++) {
        if (i == axis)
            continue;
        if (!cg_extents_agree(into->extent[i], from->extent[i]))
            return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                                "inputs differ on axis %d: %lld and %lld",
                                (int)i, (long long)into->extent[i],
                                (long long)from->extent[i]);
        if (into->extent[i] == CG_UNKNOWN)
            into->extent[i] = from->extent[i];
    }
    return CELLGATE_OK;
}

CG_INFER(concat)
{
    const cg_shape *first = cg_infer_input(node, shapes, 0);
    cg_shape y = *first;
    int32_t axis;
    int64_t *sum;
    cellgate_status status =
        cg_need_rank(node, "an input", first, 2, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK)
        status = find_axis(node, first, node->as.concat, &axis, error);
    if (status != CELLGATE_OK)
        return status;
    sum = &y.extent[axis];
    for (size_t i = 1; status == CELLGATE_OK && i < node->input_count; i++) {
        const cg_shape *x = cg_infer_input(node, shapes, i);

        status = cg_need_rank(node, "an input", x, y.rank, y.rank, error);
        if (status == CELLGATE_OK)
            status = meet_others(node, &y, x, axis, error);
        if (status != CELLGATE_OK)
            break;
        if (*sum == CG_UNKNOWN || x->extent[axis] == CG_UNKNOWN)
            *sum = CG_UNKNOWN;
        else if (__builtin_add_overflow(*sum, x->extent[axis], sum))
            status = fail_too_large(node, axis, error);
    }
    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, &y);
    return status;
}

CG_INFER(pad)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    const cg_pad *pad = &node->as.pad;
    cg_shape y = *x;
    int32_t axis;
    cellgate_status status = find_axis(node, x, pad->axis, &axis, error);

    if (status != CELLGATE_OK)
        return status;
    if (x->extent[axis] != CG_UNKNOWN &&
        __builtin_add_overflow(x->extent[axis], pad->before + pad->after,
                               &y.extent[axis]))
        return fail_too_large(node, axis, error);
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}

CG_INFER(repeat)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cg_shape y = *x;
    int32_t axis;
    cellgate_status status =
        find_axis(node, x, node->as.repeat.axis, &axis, error);

    if (status != CELLGATE_OK)
        return status;
    if (x->extent[axis] != CG_UNKNOWN &&
        __builtin_mul_overflow(x->extent[axis], node->as.repeat.times,
                               &y.extent[axis]))
        return fail_too_large(node, axis, error);
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}

/* Product of extents from axis `first`: CG_UNKNOWN with an unknown one. */
static bool product(const cg_shape *shape, int32_t first, int64_t *elements)
{
    *elements = 1;
    for (int32_t axis = first; axis < shape->rank; axis++) {
        if (shape->extent[axis] == CG_UNKNOWN) {
            *elements = CG_UNKNOWN;
            return true;
        }
        if (__builtin_mul_overflow(*elements, shape->extent[axis], elements))
            return false;
    }
    return true;
}

/* Fills the extent that is -1, and checks that the others hold the input. */
static cellgate_status fit_reshape(const cg_node *node, const cg_shape *x,
                                   cg_shape *y, cellgate_error *error)
{
    const int32_t keep = node->as.reshape.keep;
    int32_t open = -1;
    int64_t elements, others = 1;

    for (int32_t axis = keep; axis < y->rank; axis++) {
        if (y->extent[axis] == CG_UNKNOWN)
            open = axis;
        else if (__builtin_mul_overflow(others, y->extent[axis], &others))
            return fail_too_large(node, axis, error);
    }
    if (!product(x, keep, &elements))
        return fail_too_large(node, keep, error);
    if (elements == CG_UNKNOWN)
        return CELLGATE_OK;
    if (open != -1 ? elements % others != 0 : elements != others)
        return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                            "%lld numbers do not fill the new shape, which "
                            "takes %s%lld",
                            (long long)elements,
                            open != -1 ? "a multiple of " : "",
                            (long long)others);
    if (open != -1)
        y->extent[open] = elements / others;
    return CELLGATE_OK;
}

CG_INFER(reshape)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    const cg_reshape *reshape = &node->as.reshape;
    cg_shape y = { .rank = reshape->keep + reshape->extents.count };
    cellgate_status status = cg_need_rank(node, "the input", x, reshape->keep,
                                          CELLGATE_MAX_RANK, error);

    if (status != CELLGATE_OK)
        return status;
    for (int32_t axis = 0; axis < y.rank; axis++)
        y.extent[axis] = axis < reshape->keep
                             ? x->extent[axis]
                             : reshape->extents.extent[axis - reshape->keep];
    status = fit_reshape(node, x, &y, error);
    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, &y);
    return status;
}

CG_INFER(permute)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    const cg_extents *order = &node->as.permute;
    cg_shape y = { .rank = order->count };
    cellgate_status status =
        cg_need_rank(node, "the input", x, order->count, order->count, error);

    if (status != CELLGATE_OK)
        return status;
    for (int32_t axis = 0; axis < y.rank; axis++)
        y.extent[axis] = x->extent[order->extent[axis]];
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}
