/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation by the input's own moments: LayerNormalization,
   RMSNormalization, UnitNormalization. */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_trailing.h"

const char *const cg_keras_layer_normalization_options[] = {
    "axis",
    "epsilon",
    "center",
    "scale",
    "rms_scaling",
    CG_KERAS_TRAINING(gamma),
    CG_KERAS_TRAINING(beta),
    NULL
};

/*
 * An order of all axes in which these of the layer's, sorted, are the last
 * ones. False: they are already.
 */
static bool bring_last(const cg_keras_call *call, int32_t value,
                       const cg_extents *axes, cg_extents *order)
{
    const int32_t rank = cg_keras_shape(call, value)->rank;
    const int32_t lead = call->layer->lead;
    int32_t wanted = 0;
    bool moved = false;

    *order = (cg_extents){ .count = 0 };
    for (int32_t axis = 0; axis < rank; axis++) {
        if (wanted < axes->count && axes->extent[wanted] + lead == axis)
            wanted++;
        else
            order->extent[order->count++] = axis;
    }
    for (int32_t i = 0; i < axes->count; i++)
        order->extent[order->count++] = axes->extent[i] + lead;
    for (int32_t axis = 0; axis < rank; axis++)
        moved = moved || order->extent[axis] != axis;
    return moved;
}

static cg_extents inverse(const cg_extents *order)
{
    cg_extents back = { .count = order->count };

    for (int32_t i = 0; i < order->count; i++)
        back.extent[order->extent[i]] = i;
    return back;
}

/* Over the sorted axes; weights have the node's extents. */
static cellgate_status normalize(const cg_keras_call *call, cg_node *node,
                                 const cg_extents *axes, int32_t input,
                                 cg_weight *weights, int32_t *value,
                                 cellgate_error *error)
{
    cg_extents order;
    const bool moved = bring_last(call, input, axes, &order);
    cellgate_status status = CELLGATE_OK;

    if (moved)
        status = cg_keras_permute(call, input, &order, ":moved", &input, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_weighted(call, node, input, weights, 2,
                                   moved ? ":normalized" : "", value, error);
    if (status != CELLGATE_OK || !moved)
        return status;
    order = inverse(&order);
    return cg_keras_permute(call, *value, &order, "", value, error);
}

/* Mode, epsilon and weights of one of the three classes. */
static cellgate_status read_norm(const cg_keras_layer *layer, cg_node *node,
                                 cellgate_error *error)
{
    cg_normalize *made = &node->as.normalize;
    bool variance = false;
    cellgate_status status;

    *node = (cg_node){ .kind = CG_NORMALIZE };
    if (strcmp(layer->class_name, "UnitNormalization") == 0) {
        made->mode = CG_NORMALIZE_UNIT;
        made->epsilon = 1e-12f;
        return CELLGATE_OK;
    }
    if (strcmp(layer->class_name, "RMSNormalization") == 0) {
        made->mode = CG_NORMALIZE_RMS;
        made->has_gamma = true;
        return cg_keras_get_number(layer, "epsilon", 1e-6, &made->epsilon,
                                   error);
    }
    status = cg_keras_get_number(layer, "epsilon", 1e-3, &made->epsilon, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_get_flag(layer, "scale", true, &made->has_gamma, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_get_flag(layer, "center", true, &made->has_beta, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_get_flag(layer, "rms_scaling", false, &variance, error);
    if (status == CELLGATE_OK && variance) {
        made->mode = CG_NORMALIZE_VARIANCE;
        made->has_beta = false;
    }
    return status;
}

cellgate_status cg_keras_build_layer_normalization(cg_keras_call *call,
                                                   cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_keras_tensor x = { 0 };
    cg_node node;
    cg_normalize *made = &node.as.normalize;
    cg_weight weights[2] = { { 0 } };
    cg_extents axes = { 0 }, absent;
    int32_t value = CG_NO_VALUE;
    cellgate_status status = cg_keras_take_numbers(call, &x, error);

    if (status == CELLGATE_OK)
        status = read_norm(layer, &node, error);
    if (status != CELLGATE_OK)
        return status;
    absent = cg_keras_last_axis(cg_keras_own_rank(call, x.value));
    status = cg_keras_get_axes(layer, "axis", cg_keras_own_rank(call, x.value),
                               &absent, &axes, error);
    if (status == CELLGATE_OK && axes.count == 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'axis' names no axis");
    /* In the file the weights' axes stand in the order of the list. */
    made->extents.count = axes.count;
    for (int32_t i = 0; status == CELLGATE_OK && i < axes.count; i++)
        status = cg_keras_own_extent(call, x.value, axes.extent[i],
                                     &made->extents.extent[i], error);
    for (size_t i = 0; status == CELLGATE_OK && i < 2; i++)
        if (!cg_node_weight(&node, i, &weights[i]))
            weights[i] = (cg_weight){ 0 };
    if (status == CELLGATE_OK)
        status =
            cg_keras_load_shaped(layer, "", CG_NORMALIZE, weights, 2, error);
    if (status != CELLGATE_OK)
        return status;
    cg_keras_sort_axes(&axes);
    for (int32_t i = 0; i < axes.count; i++)
        made->extents.extent[i] =
            cg_keras_shape(call, x.value)->extent[axes.extent[i] + layer->lead];
    status = normalize(call, &node, &axes, x.value, weights, &value, error);
    /* RMSNormalization does not say that it supports masks. */
    return status == CELLGATE_OK
               ? cg_keras_return(call, value,
                                 made->mode == CG_NORMALIZE_RMS ? CG_NO_VALUE
                                                                : x.mask,
                                 error)
               : status;
}
