/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mean, Sum, Max and Min over any axes but the batch. A node does it over the
 * last axis but one; axes beside each other are brought there by reshaping, as
 * one, and groups of them are reduced from the last to the first.
 */
#include "config.h"

#include "runtime/formats/keras_operation.h"
#include "runtime/formats/keras_trailing.h"

typedef struct reduction {
    const cg_keras_layer *layer;
    cg_pool_mode mode;
    bool keep; /* the axes, of one index each */
    cg_shape x;
    cg_node nodes[3 * CELLGATE_MAX_RANK];
    size_t count;
} reduction;

/* Extents from axis `first` to before `end` as one: CG_UNKNOWN if one is. */
static int64_t joined(const cg_shape *shape, int32_t first, int32_t end)
{
    cg_extents extents = { 0 };

    for (int32_t axis = first; axis < end; axis++) {
        if (shape->extent[axis] == CG_UNKNOWN)
            return CG_UNKNOWN;
        extents.extent[extents.count++] = shape->extent[axis];
    }
    return cg_keras_product(&extents);
}

static cellgate_status add_reshaping(reduction *all, const cg_node *node,
                                     cellgate_error *error)
{
    all->nodes[all->count++] = *node;
    return cg_keras_check_reshaping(all->layer, node, error);
}

/* Of axes `first` to before `end`. */
static cellgate_status reduce_group(reduction *all, int32_t first, int32_t end,
                                    cellgate_error *error)
{
    const cg_shape x = all->x;
    const bool in_place = end == first + 1 && x.rank == end + 1;
    const cg_node node = { .kind = CG_REDUCE,
                           .as.reduce = { all->mode, in_place && all->keep } };
    cg_node before = cg_keras_reshaping(first),
            after = cg_keras_reshaping(first);
    cellgate_status status = CELLGATE_OK;

    cg_keras_append_extent(&before, joined(&x, first, end));
    cg_keras_append_extent(&before, joined(&x, end, x.rank));
    all->x.rank = first;
    for (int32_t axis = first; axis < x.rank; axis++) {
        if (axis < end && !all->keep)
            continue;
        all->x.extent[all->x.rank++] = axis < end ? 1 : x.extent[axis];
        cg_keras_append_extent(&after, axis < end ? 1 : x.extent[axis]);
    }
    if (!in_place)
        status = add_reshaping(all, &before, error);
    all->nodes[all->count++] = node;
    if (status == CELLGATE_OK && !in_place)
        status = add_reshaping(all, &after, error);
    return status;
}

static cellgate_status reduce_all(reduction *all, const cg_extents *axes,
                                  cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (int32_t i = axes->count; status == CELLGATE_OK && i > 0;) {
        const int32_t end = (int32_t)axes->extent[i - 1] + 1;

        for (i--; i > 0 && axes->extent[i - 1] + 1 == axes->extent[i];)
            i--;
        status = reduce_group(all, (int32_t)axes->extent[i], end, error);
    }
    return status;
}

/* Its detail is a cg_pool_mode. */
cellgate_status cg_keras_build_reduction(cg_keras_call *call,
                                         cellgate_error *error)
{
    reduction all = { .layer = call->layer,
                      .mode =
                          (cg_pool_mode)cg_keras_operation_of(call)->detail };
    const cg_extents none = { 0 };
    cg_extents axes;
    cg_keras_tensor x = { 0 };
    cellgate_status status = cg_keras_take_numbers(call, &x, error);

    if (status != CELLGATE_OK)
        return status;
    all.x = *cg_keras_shape(call, x.value);
    status =
        cg_keras_get_axes(call->layer, "axis", all.x.rank, &none, &axes, error);
    if (status == CELLGATE_OK && axes.count == 0)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it is taken over all axes, the batch too; over "
                             "others than that (axis=1 ...) it is supported");
    if (status == CELLGATE_OK)
        status =
            cg_keras_get_flag(call->layer, "keepdims", false, &all.keep, error);
    cg_keras_sort_axes(&axes);
    if (status == CELLGATE_OK)
        status = reduce_all(&all, &axes, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_chain(call, all.nodes, all.count, &x.value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, x.value, CG_NO_VALUE, error)
               : status;
}
