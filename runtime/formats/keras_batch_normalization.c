/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization at inference, by the moments of the file. */
#include "config.h"

#include <math.h>

#include "runtime/formats/keras_trailing.h"

const char *const cg_keras_batch_normalization_options[] = {
    "axis",
    "momentum",
    "epsilon",
    "center",
    "scale",
    "synchronized",
    "renorm_momentum",
    "renorm_clipping",
    CG_KERAS_TRAINING(gamma),
    CG_KERAS_TRAINING(beta),
    CG_KERAS_TRAINING(moving_mean),
    CG_KERAS_TRAINING(moving_variance),
    "renorm",
    "virtual_batch_size",
    "fused",
    NULL
};

/* gamma / sqrt(variance + epsilon), folded in double. */
static cellgate_status fold_scale(const cg_keras_layer *layer, double epsilon,
                                  const cg_weight *gamma,
                                  const cg_weight *variance, const float **data,
                                  cellgate_error *error)
{
    const int64_t count = variance->shape[0];
    float *scale = NULL;
    bool fresh;
    cellgate_status status =
        cg_keras_derive(layer, "scale", (size_t)count, &scale, &fresh, error);

    for (int64_t i = 0; status == CELLGATE_OK && fresh && i < count; i++)
        scale[i] = (float)((gamma->data != NULL ? (double)gamma->data[i] : 1) /
                           sqrt((double)variance->data[i] + epsilon));
    *data = scale;
    return status;
}

/* The layer's one axis, as extents over the trailing axes of its input. */
static cellgate_status one_axis(const cg_keras_call *call, int32_t value,
                                cg_extents *extents, cellgate_error *error)
{
    const int32_t rank = cg_keras_own_rank(call, value);
    const cg_extents absent = cg_keras_last_axis(rank);
    cg_extents axes = { 0 };
    cellgate_status status =
        cg_keras_get_axes(call->layer, "axis", rank, &absent, &axes, error);

    if (status != CELLGATE_OK)
        return status;
    if (axes.count != 1)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "'axis' must be one axis, not %d",
                             (int)axes.count);
    *extents = (cg_extents){ .count = rank - (int32_t)axes.extent[0] };
    for (int32_t i = 1; i < extents->count; i++)
        extents->extent[i] = 1;
    return cg_keras_own_extent(call, value, axes.extent[0], &extents->extent[0],
                               error);
}

cellgate_status cg_keras_build_batch_normalization(cg_keras_call *call,
                                                   cellgate_error *error)
{
    static const char *const names[] = { "gamma", "beta", "moving_mean",
                                         "moving_variance" };
    const cg_keras_layer *layer = call->layer;
    cg_keras_tensor x = { 0 };
    cg_node node = { .kind = CG_AFFINE, .as.affine.has_shift = true };
    cg_affine *affine = &node.as.affine;
    cg_weight saved[4] = { { 0 } }, weights[3] = { { 0 } };
    bool there[4] = { true, true, true, true };
    float epsilon = 0;
    int32_t value;
    cellgate_status status = cg_keras_take_numbers(call, &x, error);

    if (status == CELLGATE_OK)
        status = one_axis(call, x.value, &affine->extents, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(layer, "scale", true, &there[0], error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(layer, "center", true, &there[1], error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_number(layer, "epsilon", 1e-3, &epsilon, error);
    if (status != CELLGATE_OK)
        return status;
    for (size_t i = 0; i < 4; i++)
        if (there[i])
            saved[i] = (cg_weight){ .name = names[i],
                                    .rank = 1,
                                    .shape = { affine->extents.extent[0] } };
    status = cg_keras_load_shaped(layer, "", CG_AFFINE, saved, 4, error);
    if (status == CELLGATE_OK)
        status = fold_scale(layer, epsilon, &saved[0], &saved[3],
                            &weights[CG_KERAS_SCALE].data, error);
    if (status != CELLGATE_OK)
        return status;
    affine->has_offset = there[1];
    weights[CG_KERAS_SHIFT].data = saved[2].data;
    weights[CG_KERAS_OFFSET].data = saved[1].data;
    status = cg_keras_emit_weighted(call, &node, x.value, weights, 3, "",
                                    &value, error);
    /* A mask that the call gives is for statistics in training, and goes on. */
    if (status == CELLGATE_OK && call->mask.value != CG_NO_VALUE)
        status = cg_keras_make_mask(call, &call->mask, &x.mask, error);
    return status == CELLGATE_OK ? cg_keras_return(call, value, x.mask, error)
                                 : status;
}
