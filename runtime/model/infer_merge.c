/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of several inputs that meet element by element, or in a product. */
#include "config.h"

#include "runtime/model/infer.h"

/*
 * Axes as Keras's merging layers match them: the batch with the batch, the
 * others from the last one on; an extent of 1 stretches. *into, which has at
 * least as many axes, learns from `from`.
 */
static cellgate_status broadcast(const cg_node *node, cg_shape *into,
                                 const cg_shape *from, cellgate_error *error)
{
    const int32_t shift = into->rank - from->rank;

    for (int32_t axis = 0; axis < from->rank; axis++) {
        const int32_t at = axis == 0 ? 0 : axis + shift;
        int64_t *to = &into->extent[at];
        const int64_t extent = from->extent[axis];

        if (axis != 0 && *to == 1)
            *to = extent;
        else if (axis != 0 && extent == 1)
            continue;
        else if (!cg_extents_agree(*to, extent))
            return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                                "inputs differ on axis %d: %lld and %lld",
                                (int)at, (long long)*to, (long long)extent);
        else if (*to == CG_UNKNOWN)
            *to = extent;
    }
    return CELLGATE_OK;
}

CG_INFER(combine)
{
    cg_shape y = { .rank = 0 };
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; i < node->input_count; i++) {
        const cg_shape *x = cg_infer_input(node, shapes, i);

        status = cg_need_rank(node, "an input", x, 1, CELLGATE_MAX_RANK, error);
        if (status != CELLGATE_OK)
            return status;
        if (x->rank > y.rank)
            y.rank = x->rank;
    }
    for (int32_t axis = 0; axis < y.rank; axis++)
        y.extent[axis] = axis == 0 ? CG_UNKNOWN : 1;
    for (size_t i = 0; status == CELLGATE_OK && i < node->input_count; i++)
        status = broadcast(node, &y, cg_infer_input(node, shapes, i), error);
    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, &y);
    return status;
}

CG_INFER(select)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    const cg_shape *other =
        node->input_count > 2 ? cg_infer_input(node, shapes, 2) : NULL;
    cg_shape mask = *cg_infer_input(node, shapes, 1), y = *x;
    cellgate_status status =
        cg_need_rank(node, "the input", x, 2, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK)
        status = cg_need_rank(node, "the mask", &mask, x->rank - 1, x->rank - 1,
                              error);
    if (status == CELLGATE_OK && other != NULL)
        status =
            cg_need_rank(node, "the other input", other, 1, x->rank, error);
    if (status != CELLGATE_OK)
        return status;
    mask.extent[mask.rank++] = 1;
    status = broadcast(node, &y, &mask, error);
    if (status == CELLGATE_OK && other != NULL)
        status = broadcast(node, &y, other, error);
    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, &y);
    return status;
}

CG_INFER(valid)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cg_shape y = { 2, { x->extent[0], x->extent[1] } };
    cellgate_status status =
        cg_need_rank(node, "the input", x, 2, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, &y);
    return status;
}

static cellgate_status need_axis(const cg_node *node, const cg_shape *x,
                                 int32_t axis, cellgate_error *error)
{
    if (axis < x->rank)
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                        "an input of %d axes has no axis %d", (int)x->rank,
                        (int)axis);
}

/* Appends the axes of x from `first` on, without `axis`. */
static void append_axes(cg_shape *y, const cg_shape *x, int32_t first,
                        int32_t axis)
{
    for (int32_t i = first; i < x->rank; i++)
        if (i != axis)
            y->extent[y->rank++] = x->extent[i];
}

CG_INFER(dot)
{
    const cg_shape *a = cg_infer_input(node, shapes, 0);
    const cg_shape *b = cg_infer_input(node, shapes, 1);
    const cg_dot *dot = &node->as.dot;
    cg_shape y = { .rank = 0 };
    cellgate_status status = need_axis(node, a, dot->axis_a, error);

    if (status == CELLGATE_OK)
        status = need_axis(node, b, dot->axis_b, error);
    if (status == CELLGATE_OK)
        status = cg_need_extent(node, "the second input's axis of the product",
                                b->extent[dot->axis_b], a->extent[dot->axis_a],
                                error);
    if (status != CELLGATE_OK)
        return status;
    if (a->rank + b->rank - 3 > CELLGATE_MAX_RANK)
        return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                            "the product has %d axes; %d are possible",
                            (int)(a->rank + b->rank - 3), CELLGATE_MAX_RANK);
    append_axes(&y, a, 0, dot->axis_a);
    append_axes(&y, b, 1, dot->axis_b);
    if (y.rank == 1)
        y.extent[y.rank++] = 1;
    if (!cg_extents_agree(y.extent[0], b->extent[0]))
        return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                            "inputs differ on axis 0: %lld and %lld",
                            (long long)y.extent[0], (long long)b->extent[0]);
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}
