/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalisation by the input's own moments (LayerNormalization,
 * RMSNormalization, UnitNormalization) and by numbers of the file
 * (BatchNormalization at inference, Normalization, Rescaling), and PReLU, whose
 * slopes lie over the axes in the same way.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/formats/keras.h"

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
const char *const cg_keras_normalization_options[] = { "axis", "mean",
                                                       "variance", "invert",
                                                       NULL };
const char *const cg_keras_rescaling_options[] = { "scale", "offset", NULL };
const char *const cg_keras_prelu_options[] = { "shared_axes",
                                               CG_KERAS_TRAINING(alpha), NULL };

static const cg_shape *shape_of(const cg_keras_call *call, int32_t value)
{
    return &call->layer->reader->shapes[value];
}

/* How many axes the layer takes its input to have. */
static int32_t own_rank(const cg_keras_call *call, int32_t value)
{
    return shape_of(call, value)->rank - call->layer->lead;
}

static cellgate_status own_extent(const cg_keras_call *call, int32_t value,
                                  int64_t axis, int64_t *extent,
                                  cellgate_error *error)
{
    *extent = shape_of(call, value)->extent[axis + call->layer->lead];
    if (*extent >= 1)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                         "the extent of axis %lld of its input is not known",
                         (long long)axis);
}

static cellgate_status take_numbers(const cg_keras_call *call,
                                    cg_keras_tensor *x, cellgate_error *error)
{
    cellgate_status status = cg_keras_only_input(call, x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, x, CELLGATE_F32, error);
    if (status == CELLGATE_OK && own_rank(call, x->value) < 2)
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                               "its input has no axis but the batch");
    return status;
}

static cg_extents last_axis(int32_t rank)
{
    return (cg_extents){ .count = 1, .extent = { rank - 1 } };
}

static cellgate_status emit_weighted(const cg_keras_call *call,
                                     const cg_node *attributes, int32_t input,
                                     cg_weight *weights, size_t count,
                                     const char *suffix, int32_t *value,
                                     cellgate_error *error)
{
    int32_t output = CG_KERAS_NEW;
    cg_node node = *attributes;
    cellgate_status status;

    node.inputs = &input;
    node.input_count = 1;
    node.outputs = &output;
    node.output_count = 1;
    node.weights = weights;
    node.weight_count = count;
    for (size_t i = 0; i < count; i++) {
        const float *data = weights[i].data;

        /* The same numbers may have other axes in the file. */
        (void)cg_node_weight(&node, i, &weights[i]);
        weights[i].data = data;
    }
    status = cg_keras_emit(call, &node, suffix, &suffix, error);
    *value = output;
    return status;
}

/* ---- By the input's own moments ------------------------------------------ */

static int compare_axes(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return one < other ? -1 : one > other;
}

/*
 * An order of all axes in which these of the layer's, sorted, are the last
 * ones. False: they are already.
 */
static bool bring_last(const cg_keras_call *call, int32_t value,
                       const cg_extents *axes, cg_extents *order)
{
    const int32_t rank = shape_of(call, value)->rank;
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
        status = emit_weighted(call, node, input, weights, 2,
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
    cellgate_status status = take_numbers(call, &x, error);

    if (status == CELLGATE_OK)
        status = read_norm(layer, &node, error);
    if (status != CELLGATE_OK)
        return status;
    absent = last_axis(own_rank(call, x.value));
    status = cg_keras_get_axes(layer, "axis", own_rank(call, x.value), &absent,
                               &axes, error);
    if (status == CELLGATE_OK && axes.count == 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'axis' names no axis");
    /* In the file the weights' axes stand in the order of the list. */
    made->extents.count = axes.count;
    for (int32_t i = 0; status == CELLGATE_OK && i < axes.count; i++)
        status = own_extent(call, x.value, axes.extent[i],
                            &made->extents.extent[i], error);
    for (size_t i = 0; status == CELLGATE_OK && i < 2; i++)
        if (!cg_node_weight(&node, i, &weights[i]))
            weights[i] = (cg_weight){ 0 };
    if (status == CELLGATE_OK)
        status =
            cg_keras_load_shaped(layer, "", CG_NORMALIZE, weights, 2, error);
    if (status != CELLGATE_OK)
        return status;
    qsort(axes.extent, (size_t)axes.count, sizeof axes.extent[0], compare_axes);
    for (int32_t i = 0; i < axes.count; i++)
        made->extents.extent[i] =
            shape_of(call, x.value)->extent[axes.extent[i] + layer->lead];
    status = normalize(call, &node, &axes, x.value, weights, &value, error);
    /* RMSNormalization does not say that it supports masks. */
    return status == CELLGATE_OK
               ? cg_keras_return(call, value,
                                 made->mode == CG_NORMALIZE_RMS ? CG_NO_VALUE
                                                                : x.mask,
                                 error)
               : status;
}

/* ---- By numbers of the file ---------------------------------------------- */

/* Weights of an AFFINE, made once a layer under these names. */
enum { SHIFT, SCALE, OFFSET };

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
    const int32_t rank = own_rank(call, value);
    const cg_extents absent = last_axis(rank);
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
    return own_extent(call, value, axes.extent[0], &extents->extent[0], error);
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
    cellgate_status status = take_numbers(call, &x, error);

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
                            &weights[SCALE].data, error);
    if (status != CELLGATE_OK)
        return status;
    affine->has_offset = there[1];
    weights[SHIFT].data = saved[2].data;
    weights[OFFSET].data = saved[1].data;
    status = emit_weighted(call, &node, x.value, weights, 3, "", &value, error);
    return status == CELLGATE_OK ? cg_keras_return(call, value, x.mask, error)
                                 : status;
}

/* Keras 2's Rescaling and Normalization say nothing of masks. */
static int32_t passed_mask(const cg_keras_call *call, const cg_keras_tensor *x)
{
    return call->layer->reader->keras_major < 3 ? CG_NO_VALUE : x->mask;
}

/* The number of an array that stands at `at` of `extents` if it is stretched
   over them, aligned at the last axis. */
static double stretched(const cg_keras_numbers *numbers,
                        const cg_extents *extents, int64_t at)
{
    int64_t index = 0, size = 1;

    for (int32_t i = 1; i <= numbers->shape.count; i++) {
        const int64_t extent = extents->extent[extents->count - i];
        const int64_t own = numbers->shape.extent[numbers->shape.count - i];

        if (own != 1)
            index += at % extent * size;
        size *= own;
        at /= extent;
    }
    return numbers->items[index];
}

/* Extends `extents` to what `numbers` stretch to; false if they do not fit. */
static bool stretch(cg_extents *extents, const cg_keras_numbers *numbers)
{
    const cg_extents *shape = &numbers->shape;
    cg_extents wide = { .count = extents->count > shape->count ? extents->count
                                                               : shape->count };

    for (int32_t i = 1; i <= wide.count; i++) {
        const int64_t one =
            i <= extents->count ? extents->extent[extents->count - i] : 1;
        const int64_t other =
            i <= shape->count ? shape->extent[shape->count - i] : 1;

        if (one != other && one != 1 && other != 1)
            return false;
        wide.extent[wide.count - i] = one != 1 ? one : other;
    }
    *extents = wide;
    return true;
}

static int64_t product(const cg_extents *extents)
{
    int64_t elements = 1;

    for (int32_t i = 0; i < extents->count; i++)
        if (elements <= CG_MAX_SIZE)
            elements *= extents->extent[i];
    return elements;
}

/* An array, stretched over the extents, as a weight. */
static cellgate_status stretch_weight(const cg_keras_layer *layer,
                                      const char *name,
                                      const cg_keras_numbers *numbers,
                                      const cg_extents *extents,
                                      const float **data, cellgate_error *error)
{
    const int64_t count = product(extents);
    float *made = NULL;
    bool fresh;
    cellgate_status status;

    if (count > CG_MAX_SIZE)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'%s' stretches to too many numbers", name);
    status = cg_keras_derive(layer, name, (size_t)count, &made, &fresh, error);
    for (int64_t i = 0; status == CELLGATE_OK && fresh && i < count; i++)
        made[i] = (float)stretched(numbers, extents, i);
    *data = made;
    return status;
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
    cellgate_status status = take_numbers(call, &x, error);

    *extents = (cg_extents){ .count = 1, .extent = { 1 } };
    if (status == CELLGATE_OK)
        status = cg_keras_get_numbers(layer, "scale", &scale, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_numbers(layer, "offset", &offset, error);
    if (status == CELLGATE_OK &&
        (!stretch(extents, &scale) || !stretch(extents, &offset) ||
         extents->count >= own_rank(call, x.value)))
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                               "the shapes of 'scale', 'offset' and its input "
                               "do not fit");
    if (status == CELLGATE_OK)
        status = stretch_weight(layer, "scale", &scale, extents,
                                &weights[SCALE].data, error);
    if (status == CELLGATE_OK)
        status = stretch_weight(layer, "offset", &offset, extents,
                                &weights[OFFSET].data, error);
    if (status == CELLGATE_OK)
        status =
            emit_weighted(call, &node, x.value, weights, 3, "", &value, error);
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
            (!stretch(&wide, &numbers) ||
             memcmp(&wide, &made->kept, sizeof wide) != 0))
            status = cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                                   "the shape of '%s' does not fit its axes",
                                   keys[i]);
        if (status == CELLGATE_OK)
            status = stretch_weight(layer, keys[i], &numbers, &made->kept,
                                    data[i], error);
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
    const int32_t rank = own_rank(call, value);
    const cg_extents absent = last_axis(rank);
    cg_extents axes = { 0 };
    cellgate_status status =
        cg_keras_get_axes(layer, "axis", rank, &absent, &axes, error);

    if (status != CELLGATE_OK)
        return status;
    qsort(axes.extent, (size_t)axes.count, sizeof axes.extent[0], compare_axes);
    *made = (moments){ .kept.count = axes.count,
                       .extents = { .count = 1, .extent = { 1 } } };
    if (axes.count > 0)
        made->extents.count = rank - (int32_t)axes.extent[0];
    for (int32_t i = 0; i < made->extents.count; i++)
        made->extents.extent[i] = 1;
    for (int32_t i = 0; status == CELLGATE_OK && i < axes.count; i++) {
        status = own_extent(call, value, axes.extent[i], &made->kept.extent[i],
                            error);
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
    const int64_t count = product(&made->kept);
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
    cellgate_status status = take_numbers(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(layer, "invert", false, &invert, error);
    if (status == CELLGATE_OK)
        status = read_moments(call, x.value, &made, error);
    if (status == CELLGATE_OK)
        status = deviation(layer, &made, invert, &weights[SCALE].data, error);
    if (status != CELLGATE_OK)
        return status;
    weights[invert ? OFFSET : SHIFT].data = made.mean;
    node.as.affine = (cg_affine){ .extents = made.extents,
                                  .has_shift = !invert,
                                  .has_offset = invert };
    status = emit_weighted(call, &node, x.value, weights, 3, "", &value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, value, passed_mask(call, &x), error)
               : status;
}

/* ---- PReLU --------------------------------------------------------------- */

cellgate_status cg_keras_build_prelu(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    const cg_extents none = { 0 };
    cg_extents shared = { 0 };
    cg_keras_tensor x = { 0 };
    cg_node node = { .kind = CG_PRELU };
    cg_extents *extents = &node.as.prelu;
    cg_weight weight;
    int32_t value = CG_NO_VALUE;
    cellgate_status status = take_numbers(call, &x, error);

    if (status == CELLGATE_OK)
        status =
            cg_keras_get_axes(layer, "shared_axes", own_rank(call, x.value),
                              &none, &shared, error);
    if (status != CELLGATE_OK)
        return status;
    extents->count = own_rank(call, x.value) - 1;
    for (int32_t i = 0; i < shared.count; i++)
        extents->extent[shared.extent[i] - 1] = 1;
    for (int32_t i = 0; status == CELLGATE_OK && i < extents->count; i++)
        if (extents->extent[i] == 0)
            status =
                own_extent(call, x.value, i + 1, &extents->extent[i], error);
    if (status == CELLGATE_OK)
        status = cg_keras_load(layer, "", &node, 0, 1, &weight, error);
    if (status == CELLGATE_OK)
        status =
            emit_weighted(call, &node, x.value, &weight, 1, "", &value, error);
    return status == CELLGATE_OK ? cg_keras_return(call, value, x.mask, error)
                                 : status;
}
