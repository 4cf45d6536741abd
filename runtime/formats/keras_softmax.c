/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/keras.h"

const char *const cg_keras_softmax_options[] = { "axis", NULL };

/* Keras spreads a mask of steps over the features, and fails where their
   numbers differ; where they happen to agree the result makes no sense. What a
   request may bring is passed on, as an Activation layer passes it on. */
static cellgate_status refuse_mask(const cg_keras_call *call,
                                   const cg_keras_tensor *x,
                                   cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;

    if (x->mask == CG_NO_VALUE ||
        layer->reader->model->values[x->mask].producer == -1)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "its input has a mask of steps, which Keras cannot "
                         "apply in it; use Activation('softmax'), which does "
                         "not look at masks");
}

/* Over the last axis, the two changed for each other around it. */
static cellgate_status over_axis(const cg_keras_call *call, int32_t axis,
                                 int32_t input, int32_t *value,
                                 cellgate_error *error)
{
    const cg_keras_activation softmax = { .kind = CG_SOFTMAX };
    const int32_t rank = call->layer->reader->shapes[input].rank;
    cg_extents order = { .count = rank };
    const bool moved = axis != rank - 1;
    cellgate_status status = CELLGATE_OK;

    for (int32_t i = 0; i < rank; i++)
        order.extent[i] = i;
    order.extent[axis] = rank - 1;
    order.extent[rank - 1] = axis;
    if (moved)
        status = cg_keras_permute(call, input, &order, ":moved", &input, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_activate(call, &softmax, input, moved ? ":softmax" : "",
                              moved ? ":softmax" : "", value, error);
    if (status == CELLGATE_OK && moved)
        status = cg_keras_permute(call, *value, &order, "", value, error);
    return status;
}

static bool is_listed(const cg_extents *axes, int64_t axis)
{
    for (int32_t i = 0; i < axes->count; i++)
        if (axes->extent[i] == axis)
            return true;
    return false;
}

/* Where the axes go: the others first, and these behind them; and back. */
static void find_orders(const cg_extents *axes, int32_t rank, cg_extents *order,
                        cg_extents *back)
{
    int32_t at = 0;

    *order = *back = (cg_extents){ .count = rank };
    for (int64_t axis = 0; axis < rank; axis++)
        if (!is_listed(axes, axis))
            order->extent[at++] = axis;
    for (int64_t axis = 0; axis < rank; axis++)
        if (is_listed(axes, axis))
            order->extent[at++] = axis;
    for (int32_t i = 0; i < rank; i++)
        back->extent[order->extent[i]] = i;
}

/* Over several axes: as one, moved to the end. */
static cellgate_status over_axes(const cg_keras_call *call,
                                 const cg_extents *axes, int32_t *value,
                                 cellgate_error *error)
{
    const cg_keras_activation softmax = { .kind = CG_SOFTMAX };
    const int32_t rank = cg_keras_shape(call, *value)->rank;
    const int32_t keep = rank - axes->count;
    cg_node join = { .kind = CG_RESHAPE,
                     .as.reshape = { .extents = { 1, { CG_UNKNOWN } },
                                     .keep = keep } };
    cg_node part = { .kind = CG_RESHAPE,
                     .as.reshape = { .extents.count = axes->count,
                                     .keep = keep } };
    cg_extents order, back;
    int32_t unknown = 0;
    cellgate_status status;

    find_orders(axes, rank, &order, &back);
    for (int32_t i = 0; i < axes->count; i++) {
        const int64_t extent =
            cg_keras_shape(call, *value)->extent[order.extent[keep + i]];

        part.as.reshape.extents.extent[i] = extent;
        unknown += extent == CG_UNKNOWN;
    }
    if (unknown > 1)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "of the axes that it works over, the file leaves "
                             "%d open; one may be",
                             (int)unknown);
    status = cg_keras_permute(call, *value, &order, ":moved", value, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_simple(call, &join, value, 1, ":row", value, error);
    if (status == CELLGATE_OK)
        status = cg_keras_activate(call, &softmax, *value, ":softmax",
                                   ":softmax", value, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_simple(call, &part, value, 1, ":axes", value, error);
    return status == CELLGATE_OK
               ? cg_keras_permute(call, *value, &back, "", value, error)
               : status;
}

cellgate_status cg_keras_build_softmax(cg_keras_call *call,
                                       cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_keras_tensor x = { 0 };
    cg_extents axes = { 0 }, absent = { .count = 1 };
    int32_t rank, value = CG_NO_VALUE;
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, &x, CELLGATE_F32, error);
    if (status == CELLGATE_OK)
        status = refuse_mask(call, &x, error);
    if (status != CELLGATE_OK)
        return status;
    rank = layer->reader->shapes[x.value].rank - layer->lead;
    absent.extent[0] = rank - 1;
    status = cg_keras_get_axes(layer, "axis", rank, &absent, &axes, error);
    if (status == CELLGATE_OK && axes.count == 0)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "'axis' must be an axis, or several");
    for (int32_t i = 0; i < axes.count; i++)
        axes.extent[i] += layer->lead;
    value = x.value;
    if (status == CELLGATE_OK)
        status = axes.count == 1 ? over_axis(call, (int32_t)axes.extent[0],
                                             x.value, &value, error)
                                 : over_axes(call, &axes, &value, error);
    return status == CELLGATE_OK ? cg_keras_return(call, value, x.mask, error)
                                 : status;
}
