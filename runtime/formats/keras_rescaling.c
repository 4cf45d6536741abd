/* SPDX-License-Identifier: Apache-2.0 */
/* Rescaling and Normalization: numbers of the configuration, or adapted. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/formats/keras_trailing.h"

const char *const cg_keras_rescaling_options[] = { "scale", "offset", NULL };
const char *const cg_keras_normalization_options[] = { "axis", "mean",
                                                       "variance", "invert",
                                                       NULL };

/* Keras 2's Rescaling and Normalization say nothing of masks. */
static int32_t passed_mask(const cg_keras_call *call, const cg_keras_tensor *x)
{
    return call->layer->reader->keras_major < 3 ? CG_NO_VALUE : x->mask;
}

cellgate_status cg_keras_build_rescaling(cg_keras_call *call,
                                         cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_keras_numbers scale = { 0 }, offset = { 0 };
    cg_keras_tensor x = { 0 };
    cg_node node = { .kind = CG_AFFINE, .as.affine.has_offset = true };
    cg_extents *extents = &node.as.affine.extents;
    cg_weight weights[3] = { { 0 } };
    int32_t value = CG_NO_VALUE;
    cellgate_status status = cg_keras_take_numbers(call, &x, error);

    *extents = (cg_extents){ .count = 1, .extent = { 1 } };
    if (status == CELLGATE_OK)
        status = cg_keras_get_numbers(layer, "scale", &scale, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_numbers(layer, "offset", &offset, error);
    if (status == CELLGATE_OK &&
        (!cg_keras_stretch(extents, &scale) ||
         !cg_keras_stretch(extents, &offset) ||
         extents->count >= cg_keras_own_rank(call, x.value)))
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                               "the shapes of 'scale', 'offset' and its input "
                               "do not fit");
    if (status == CELLGATE_OK)
        status = cg_keras_stretch_weight(layer, "scale", &scale, extents,
                                         &weights[CG_KERAS_SCALE].data, error);
    if (status == CELLGATE_OK)
        status = cg_keras_stretch_weight(layer, "offset", &offset, extents,
                                         &weights[CG_KERAS_OFFSET].data, error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit_weighted(call, &node, x.value, weights, 3, "",
                                        &value, error);
    free(scale.items);
    free(offset.items);
    return status == CELLGATE_OK
               ? cg_keras_return(call, value, passed_mask(call, &x), error)
               : status;
}

/* Mean and variance, of the kept axes: of the configuration, or adapted. */
typedef struct moments {
    cg_extents kept; /* extents of the axes that have numbers of their own */
    cg_extents extents;
    const float *mean, *variance;
} moments;

static cellgate_status given_moments(const cg_keras_layer *layer, moments *made,
                                     cellgate_error *error)
{
    static const char *const keys[] = { "mean", "variance" };
    const float **data[] = { &made->mean, &made->variance };
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < 2; i++) {
        cg_keras_numbers numbers;
        cg_extents wide = made->kept;

        status = cg_keras_get_numbers(layer, keys[i], &numbers, error);
        if (status == CELLGATE_OK &&
            (!cg_keras_stretch(&wide, &numbers) ||
             memcmp(&wide, &made->kept, sizeof wide) != 0))
            status = cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                                   "the shape of '%s' does not fit its axes",
                                   keys[i]);
        if (status == CELLGATE_OK)
            status = cg_keras_stretch_weight(layer, keys[i], &numbers,
                                             &made->kept, data[i], error);
        free(numbers.items);
    }
    return status;
}

static cellgate_status adapted_moments(const cg_keras_layer *layer,
                                       moments *made, cellgate_error *error)
{
    cg_weight saved[3] = { { .name = "mean" },
                           { .name = "variance" },
                           { .name = "count", .rank = -1 } };
    cellgate_status status;

    for (size_t i = 0; i < 2; i++) {
        saved[i].rank = made->kept.count;
        memcpy(saved[i].shape, made->kept.extent, sizeof saved[i].shape);
    }
    status = cg_keras_load_shaped(layer, "", CG_AFFINE, saved, 3, error);
    made->mean = saved[0].data;
    made->variance = saved[1].data;
    return status;
}

static cellgate_status read_moments(const cg_keras_call *call, int32_t value,
                                    moments *made, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    const json_t *mean = json_object_get(layer->config, "mean");
    const int32_t rank = cg_keras_own_rank(call, value);
    const cg_extents absent = cg_keras_last_axis(rank);
    cg_extents axes = { 0 };
    cellgate_status status =
        cg_keras_get_axes(layer, "axis", rank, &absent, &axes, error);

    if (status != CELLGATE_OK)
        return status;
    cg_keras_sort_axes(&axes);
    *made = (moments){ .kept.count = axes.count,
                       .extents = { .count = 1, .extent = { 1 } } };
    if (axes.count > 0)
        made->extents.count = rank - (int32_t)axes.extent[0];
    for (int32_t i = 0; i < made->extents.count; i++)
        made->extents.extent[i] = 1;
    for (int32_t i = 0; status == CELLGATE_OK && i < axes.count; i++) {
        status = cg_keras_own_extent(call, value, axes.extent[i],
                                     &made->kept.extent[i], error);
        made->extents.extent[axes.extent[i] - axes.extent[0]] =
            made->kept.extent[i];
    }
    if (status != CELLGATE_OK)
        return status;
    return mean != NULL && !json_is_null(mean)
               ? given_moments(layer, made, error)
               : adapted_moments(layer, made, error);
}

/* The standard deviation, or with `invert` that as a factor. */
static cellgate_status deviation(const cg_keras_layer *layer,
                                 const moments *made, bool invert,
                                 const float **data, cellgate_error *error)
{
    const int64_t count = cg_keras_product(&made->kept);
    float *scale = NULL;
    bool fresh;
    cellgate_status status =
        cg_keras_derive(layer, "scale", (size_t)count, &scale, &fresh, error);

    for (int64_t i = 0; status == CELLGATE_OK && fresh && i < count; i++) {
        double root = sqrt((double)made->variance[i]);

        if (root < 1e-7) /* keras.config.epsilon() */
            root = 1e-7;
        scale[i] = (float)(invert ? root : 1 / root);
    }
    *data = scale;
    return status;
}

cellgate_status cg_keras_build_normalization(cg_keras_call *call,
                                             cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_keras_tensor x = { 0 };
    moments made;
    cg_node node = { .kind = CG_AFFINE };
    cg_weight weights[3] = { { 0 } };
    bool invert = false;
    int32_t value = CG_NO_VALUE;
    cellgate_status status = cg_keras_take_numbers(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(layer, "invert", false, &invert, error);
    if (status == CELLGATE_OK)
        status = read_moments(call, x.value, &made, error);
    if (status == CELLGATE_OK)
        status = deviation(layer, &made, invert, &weights[CG_KERAS_SCALE].data,
                           error);
    if (status != CELLGATE_OK)
        return status;
    weights[invert ? CG_KERAS_OFFSET : CG_KERAS_SHIFT].data = made.mean;
    node.as.affine = (cg_affine){ .extents = made.extents,
                                  .has_shift = !invert,
                                  .has_offset = invert };
    status = cg_keras_emit_weighted(call, &node, x.value, weights, 3, "",
                                    &value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, value, passed_mask(call, &x), error)
               : status;
}
