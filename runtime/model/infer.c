/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/model/infer.h"

static int64_t last_extent(const cg_shape *shape)
{
    return shape->extent[shape->rank - 1];
}

bool cg_extents_agree(int64_t a, int64_t b)
{
    return a == b || a == CG_UNKNOWN || b == CG_UNKNOWN;
}

cellgate_status cg_need_rank(const cg_node *node, const char *what,
                             const cg_shape *shape, int32_t least, int32_t most,
                             cellgate_error *error)
{
    if (shape->rank >= least && shape->rank <= most)
        return CELLGATE_OK;
    if (least == most)
        return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                            "%s has %d axes; it must have %d", what,
                            (int)shape->rank, (int)least);
    return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                        "%s has %d axes; it must have %d to %d", what,
                        (int)shape->rank, (int)least, (int)most);
}

cellgate_status cg_need_extent(const cg_node *node, const char *what,
                               int64_t extent, int64_t expected,
                               cellgate_error *error)
{
    if (cg_extents_agree(extent, expected))
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                        "%s is %lld; it must be %lld", what, (long long)extent,
                        (long long)expected);
}

cellgate_status cg_meet_leading(const cg_node *node, cg_shape *into,
                                const cg_shape *from, int32_t axes,
                                cellgate_error *error)
{
    for (int32_t axis = 0; axis < axes; axis++) {
        if (!cg_extents_agree(into->extent[axis], from->extent[axis]))
            return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                                "inputs differ on axis %d: %lld and %lld",
                                (int)axis, (long long)into->extent[axis],
                                (long long)from->extent[axis]);
        if (into->extent[axis] == CG_UNKNOWN)
            into->extent[axis] = from->extent[axis];
    }
    return CELLGATE_OK;
}

CG_INFER(same)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cellgate_status status =
        cg_need_rank(node, "the input", x, 1, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, x);
    return status;
}

CG_INFER(embedding)
{
    const cg_shape *ids = cg_infer_input(node, shapes, 0);
    cg_shape y = *ids;
    cellgate_status status =
        cg_need_rank(node, "the ids", ids, 1, CELLGATE_MAX_RANK - 1, error);

    if (status != CELLGATE_OK)
        return status;
    y.extent[y.rank++] = node->as.embedding.size;
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}

CG_INFER(dense)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cg_shape y = *x;
    cellgate_status status =
        cg_need_rank(node, "the input", x, 2, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK)
        status = cg_need_extent(node, "the number of features", last_extent(x),
                                node->as.dense.input_size, error);
    if (status != CELLGATE_OK)
        return status;
    y.extent[y.rank - 1] = node->as.dense.units;
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}

CG_INFER(reverse)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cellgate_status status =
        cg_need_rank(node, "the input", x, 2, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, x);
    return status;
}

CG_INFER(merge)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cg_shape y = *x;
    cellgate_status status =
        cg_need_rank(node, "the input", x, 2, CELLGATE_MAX_RANK, error);

    if (status != CELLGATE_OK)
        return status;
    if (last_extent(x) != CG_UNKNOWN) {
        if (last_extent(x) % 2 != 0)
            return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                                "%lld features have no two halves",
                                (long long)last_extent(x));
        y.extent[y.rank - 1] /= 2;
    }
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}

CG_INFER(not_equal)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cg_shape y = *x;
    cellgate_status status =
        cg_need_rank(node, "the input", x, 2, CELLGATE_MAX_RANK, error);

    if (status != CELLGATE_OK)
        return status;
    y.extent[--y.rank] = 0;
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}

CG_INFER(masked)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    const cg_shape *mask = cg_infer_input(node, shapes, 1);
    cg_shape y = *x;
    cellgate_status status =
        cg_need_rank(node, "the input", x, 2, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK)
        status = cg_need_rank(node, "the mask", mask, x->rank - 1, x->rank - 1,
                              error);
    if (status == CELLGATE_OK)
        status = cg_meet_leading(node, &y, mask, mask->rank, error);
    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, &y);
    return status;
}

int64_t cg_shape_elements(const cg_shape *shape)
{
    int64_t elements = 1;

    for (int32_t axis = 0; axis < shape->rank; axis++) {
        if (shape->extent[axis] < 0 ||
            __builtin_mul_overflow(elements, shape->extent[axis], &elements))
            return -1;
    }
    /* Eight bytes an element is the most that any dtype takes. */
    return elements <= (int64_t)(PTRDIFF_MAX / 8) ? elements : -1;
}

/* An axis of no extent hides an overflow of the others, so it counts as one. */
static bool fits_memory(const cg_shape *shape)
{
    cg_shape known = *shape;

    for (int32_t axis = 0; axis < known.rank; axis++)
        if (known.extent[axis] < 1)
            known.extent[axis] = 1;
    return cg_shape_elements(&known) >= 0;
}

cellgate_status cg_node_infer(const cellgate_model *model, const cg_node *node,
                              cg_shape *shapes, cellgate_error *error)
{
    cellgate_status status =
        cg_kind_get((int)node->kind)->infer(node, shapes, error);

    (void)model;
    for (size_t i = 0; status == CELLGATE_OK && i < node->output_count; i++)
        if (node->outputs[i] != CG_NO_VALUE &&
            !fits_memory(&shapes[node->outputs[i]]))
            status = cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                                  "the output does not fit in memory");
    return status;
}
