/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers that move numbers about: RepeatVector, Flatten, Reshape, Permute,
 * UpSampling1D, ZeroPadding1D, Cropping1D. None passes a mask on, neither in
 * Keras 2 nor in Keras 3.
 */
#include "config.h"

#include "runtime/formats/keras.h"

/* ---- What they share ----------------------------------------------------- */

/* The call's tensor, of any dtype, which has to have from `least` to `most`
   axes beyond those that count as the batch; *lead is how many do. */
static cellgate_status get_input(const cg_keras_call *call, int32_t least,
                                 int32_t most, cg_keras_tensor *x,
                                 int32_t *lead, cellgate_error *error)
{
    int32_t rank;
    cellgate_status status = cg_keras_only_input(call, x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim_any(call, x, error);
    if (status != CELLGATE_OK)
        return status;
    *lead = 1 + call->layer->lead;
    rank = call->layer->reader->shapes[x->value].rank;
    if (rank >= *lead + least && rank <= *lead + most)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                         "its input has %d axes; it takes %d to %d", (int)rank,
                         (int)(*lead + least), (int)(*lead + most));
}

static cellgate_status finish(cg_keras_call *call, const cg_node *node,
                              int32_t input, cellgate_error *error)
{
    int32_t output;
    cellgate_status status =
        cg_keras_emit_simple(call, node, &input, 1, "", &output, error);

    return status == CELLGATE_OK
               ? cg_keras_return(call, output, CG_NO_VALUE, error)
               : status;
}

/* One number for both ends, or one for each. */
static cellgate_status get_ends(const cg_keras_call *call, const char *key,
                                int64_t ends[2], cellgate_error *error)
{
    size_t count;
    cellgate_status status =
        cg_keras_get_integers(call->layer, key, 1, 2, ends, &count, error);

    if (status != CELLGATE_OK)
        return status;
    if (count == 1)
        ends[1] = ends[0];
    if (ends[0] >= 0 && ends[1] >= 0)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                         "'%s' must not be negative", key);
}

static cellgate_status get_channels_first(const cg_keras_call *call,
                                          bool *channels_first,
                                          cellgate_error *error)
{
    const json_t *json = json_object_get(call->layer->config, "data_format");
    const char *name = json_string_value(json);

    *channels_first = name != NULL && strcmp(name, "channels_first") == 0;
    if (json == NULL || json_is_null(json) || *channels_first ||
        (name != NULL && strcmp(name, "channels_last") == 0))
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                         "'data_format' must be \"channels_last\" or "
                         "\"channels_first\"");
}

/* ---- Shapes -------------------------------------------------------------- */

cellgate_status cg_keras_build_repeat_vector(cg_keras_call *call,
                                             cellgate_error *error)
{
    cg_node one = { .kind = CG_RESHAPE,
                    .as.reshape.extents = { 2, { 1, CG_UNKNOWN } } };
    cg_node repeat = { .kind = CG_REPEAT };
    cg_keras_tensor x = { 0 };
    cellgate_status status =
        get_input(call, 1, 1, &x, &one.as.reshape.keep, error);

    if (status == CELLGATE_OK)
        status =
            cg_keras_get_size(call->layer, "n", &repeat.as.repeat.times, error);
    repeat.as.repeat.axis = one.as.reshape.keep;
    if (status == CELLGATE_OK)
        status = cg_keras_emit_simple(call, &one, &x.value, 1, ":step",
                                      &x.value, error);
    return status == CELLGATE_OK ? finish(call, &repeat, x.value, error)
                                 : status;
}

/* Axes up to `lead`, then those from `lead` + 1 on, then axis `lead`. */
static cellgate_status move_channels(const cg_keras_call *call, int32_t lead,
                                     int32_t *value, cellgate_error *error)
{
    const int32_t rank = call->layer->reader->shapes[*value].rank;
    cg_node node = { .kind = CG_PERMUTE, .as.permute.count = rank };

    for (int32_t axis = 0; axis < rank; axis++)
        node.as.permute.extent[axis] = axis < lead       ? axis
                                       : axis < rank - 1 ? axis + 1
                                                         : lead;
    return cg_keras_emit_simple(call, &node, value, 1, ":channels_last", value,
                                error);
}

cellgate_status cg_keras_build_flatten(cg_keras_call *call,
                                       cellgate_error *error)
{
    cg_node node = { .kind = CG_RESHAPE,
                     .as.reshape.extents = { 1, { CG_UNKNOWN } } };
    bool channels_first = false;
    cg_keras_tensor x = { 0 };
    int32_t lead = 1;
    cellgate_status status =
        get_input(call, 0, CELLGATE_MAX_RANK, &x, &lead, error);

    if (status == CELLGATE_OK)
        status = get_channels_first(call, &channels_first, error);
    if (status == CELLGATE_OK && channels_first &&
        call->layer->reader->shapes[x.value].rank > lead + 1)
        status = move_channels(call, lead, &x.value, error);
    node.as.reshape.keep = lead;
    return status == CELLGATE_OK ? finish(call, &node, x.value, error) : status;
}

cellgate_status cg_keras_build_reshape(cg_keras_call *call,
                                       cellgate_error *error)
{
    cg_node node = { .kind = CG_RESHAPE };
    cg_extents *extents = &node.as.reshape.extents;
    size_t count = 0;
    cg_keras_tensor x = { 0 };
    cellgate_status status =
        get_input(call, 0, CELLGATE_MAX_RANK, &x, &node.as.reshape.keep, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_integers(call->layer, "target_shape", 0,
                                       CELLGATE_MAX_RANK, extents->extent,
                                       &count, error);
    extents->count = (int32_t)count;
    return status == CELLGATE_OK ? finish(call, &node, x.value, error) : status;
}

cellgate_status cg_keras_build_permute(cg_keras_call *call,
                                       cellgate_error *error)
{
    cg_node node = { .kind = CG_PERMUTE };
    cg_extents *order = &node.as.permute;
    int64_t dims[CELLGATE_MAX_RANK];
    size_t count = 0;
    int32_t lead = 1;
    cg_keras_tensor x = { 0 };
    cellgate_status status =
        get_input(call, 0, CELLGATE_MAX_RANK, &x, &lead, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_integers(call->layer, "dims", 1,
                                       (size_t)(CELLGATE_MAX_RANK - lead), dims,
                                       &count, error);
    if (status != CELLGATE_OK)
        return status;
    order->count = lead + (int32_t)count;
    for (int32_t axis = 0; axis < order->count; axis++)
        order->extent[axis] = axis < lead ? axis : dims[axis - lead] + lead - 1;
    return finish(call, &node, x.value, error);
}

/* ---- Steps --------------------------------------------------------------- */

cellgate_status cg_keras_build_up_sampling(cg_keras_call *call,
                                           cellgate_error *error)
{
    cg_node node = { .kind = CG_REPEAT };
    cg_keras_tensor x = { 0 };
    cellgate_status status =
        get_input(call, 2, 2, &x, &node.as.repeat.axis, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_size(call->layer, "size", &node.as.repeat.times,
                                   error);
    return status == CELLGATE_OK ? finish(call, &node, x.value, error) : status;
}

cellgate_status cg_keras_build_zero_padding(cg_keras_call *call,
                                            cellgate_error *error)
{
    cg_node node = { .kind = CG_PAD };
    bool channels_first = false;
    int64_t ends[2] = { 0 };
    cg_keras_tensor x = { 0 };
    cellgate_status status =
        get_input(call, 2, 2, &x, &node.as.pad.axis, error);

    if (status == CELLGATE_OK)
        status = get_ends(call, "padding", ends, error);
    if (status == CELLGATE_OK)
        status = get_channels_first(call, &channels_first, error);
    node.as.pad.before = ends[0];
    node.as.pad.after = ends[1];
    node.as.pad.axis += channels_first;
    return status == CELLGATE_OK ? finish(call, &node, x.value, error) : status;
}

cellgate_status cg_keras_build_cropping(cg_keras_call *call,
                                        cellgate_error *error)
{
    cg_node node = { .kind = CG_SLICE };
    int64_t ends[2] = { 0 };
    cg_keras_tensor x = { 0 };
    cellgate_status status =
        get_input(call, 2, 2, &x, &node.as.slice.axis, error);

    if (status == CELLGATE_OK)
        status = get_ends(call, "cropping", ends, error);
    node.as.slice.begin = ends[0];
    node.as.slice.end = -ends[1];
    return status == CELLGATE_OK ? finish(call, &node, x.value, error) : status;
}
