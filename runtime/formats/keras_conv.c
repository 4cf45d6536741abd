/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv1D and pooling. A convolution is windows of the steps, side by side, and
 * a dense layer over them: kernel [size][features][filters] is the dense one's
 * [size * features][filters], and the product runs on a device.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras.h"

const char *const cg_keras_conv_options[] = { "filters",
                                              "kernel_size",
                                              "strides",
                                              "padding",
                                              "data_format",
                                              "dilation_rate",
                                              "groups",
                                              "activation",
                                              "use_bias",
                                              "lora_rank",
                                              "lora_alpha",
                                              CG_KERAS_TRAINING(kernel),
                                              CG_KERAS_TRAINING(bias),
                                              NULL };
const char *const cg_keras_pool_options[] = { "pool_size", "strides", "padding",
                                              "data_format", NULL };
const char *const cg_keras_global_pool_options[] = { "data_format", "keepdims",
                                                     NULL };

/* ---- What layers of windows share ---------------------------------------- */

static cellgate_status get_padding(const cg_keras_layer *layer, bool causal,
                                   cg_padding *padding, cellgate_error *error)
{
    const json_t *json = json_object_get(layer->config, "padding");
    const char *text = json != NULL ? json_string_value(json) : "valid";

    if (text != NULL && strcmp(text, "valid") == 0)
        *padding = CG_PADDING_VALID;
    else if (text != NULL && strcmp(text, "same") == 0)
        *padding = CG_PADDING_SAME;
    else if (causal && text != NULL && strcmp(text, "causal") == 0)
        *padding = CG_PADDING_CAUSAL;
    else
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'padding' must be 'valid'%s",
                             causal ? ", 'same' or 'causal'" : " or 'same'");
    return CELLGATE_OK;
}

/* The layer's only input, of numbers, as [.., steps, features]: swapped where
   `first` says that features come first. */
static cellgate_status take_steps(const cg_keras_call *call, bool first,
                                  cg_keras_tensor *x, cellgate_error *error)
{
    cellgate_status status = cg_keras_only_input(call, x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, x, CELLGATE_F32, error);
    if (status == CELLGATE_OK &&
        call->layer->reader->shapes[x->value].rank < 3 + call->layer->lead)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                             "its input has no steps");
    if (status == CELLGATE_OK && first)
        status = cg_keras_swap(call, x->value, ":swapped", &x->value, error);
    return status;
}

/* Swaps a result back and returns it, without a mask. */
static cellgate_status give_steps(cg_keras_call *call, bool first,
                                  int32_t value, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (first)
        status = cg_keras_swap(call, value, "", &value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, value, CG_NO_VALUE, error)
               : status;
}

/* ---- Conv1D -------------------------------------------------------------- */

typedef struct conv {
    cg_window window;
    int64_t features, filters, groups; /* of all groups */
    bool bias, first;
    cg_keras_activation activation;
    cg_weight weights[2];
} conv;

static cellgate_status read_sizes(const cg_keras_layer *layer, conv *made,
                                  cellgate_error *error)
{
    const struct {
        const char *key;
        int64_t absent, *size;
    } sizes[] = { { "filters", 0, &made->filters },
                  { "kernel_size", 0, &made->window.size },
                  { "strides", 1, &made->window.stride },
                  { "dilation_rate", 1, &made->window.dilation },
                  { "groups", 1, &made->groups } };
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0;
         status == CELLGATE_OK && i < sizeof sizes / sizeof sizes[0]; i++)
        status = cg_keras_get_one(layer, sizes[i].key, sizes[i].absent,
                                  sizes[i].size, error);
    if (status == CELLGATE_OK)
        status = get_padding(layer, true, &made->window.padding, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(layer, "use_bias", true, &made->bias, error);
    if (status == CELLGATE_OK)
        status = cg_keras_features_first(layer, &made->first, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_activation(layer, "activation", "linear",
                                         &made->activation, error);
    return status;
}

static cellgate_status load_weights(const cg_keras_layer *layer, conv *made,
                                    cellgate_error *error)
{
    if (made->features % made->groups != 0 || made->filters % made->groups != 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "%lld features and %lld filters cannot be divided "
                             "into %lld groups",
                             (long long)made->features,
                             (long long)made->filters, (long long)made->groups);
    made->weights[0] = (cg_weight){ .name = "kernel",
                                    .rank = 3,
                                    .shape = { made->window.size,
                                               made->features / made->groups,
                                               made->filters } };
    made->weights[1] = (cg_weight){ .name = made->bias ? "bias" : NULL,
                                    .rank = 1,
                                    .shape = { made->filters } };
    return cg_keras_load_shaped(layer, "", CG_DENSE, made->weights, 2, error);
}

/* Columns of a group, of a weight whose last axis is the filters. */
static cellgate_status group_columns(const cg_keras_call *call,
                                     const conv *made, const cg_weight *all,
                                     int64_t group, const float **data,
                                     cellgate_error *error)
{
    const int64_t width = made->filters / made->groups;
    int64_t rows = 1;
    char name[48];
    float *columns;
    bool fresh;
    cellgate_status status;

    *data = all->data;
    if (made->groups == 1 || all->data == NULL)
        return CELLGATE_OK;
    for (int32_t axis = 0; axis < all->rank - 1; axis++)
        rows *= all->shape[axis];
    (void)snprintf(name, sizeof name, "%s:%lld", all->name, (long long)group);
    status = cg_keras_derive(call->layer, name, (size_t)(rows * width),
                             &columns, &fresh, error);
    for (int64_t row = 0; status == CELLGATE_OK && fresh && row < rows; row++)
        memcpy(columns + row * width,
               all->data + row * made->filters + group * width,
               (size_t)width * sizeof *columns);
    *data = columns;
    return status;
}

static cellgate_status emit_dense(const cg_keras_call *call, const conv *made,
                                  int64_t group, int32_t input,
                                  const char *suffix, int32_t *value,
                                  cellgate_error *error)
{
    cg_weight weights[2] = { { 0 } };
    int32_t output = CG_KERAS_NEW;
    cg_node node = { .kind = CG_DENSE,
                     .inputs = &input,
                     .input_count = 1,
                     .outputs = &output,
                     .output_count = 1,
                     .weights = weights,
                     .weight_count = 2 };
    cellgate_status status = CELLGATE_OK;

    node.as.dense = (cg_dense){ .input_size = made->window.size *
                                              made->features / made->groups,
                                .units = made->filters / made->groups,
                                .has_bias = made->bias,
                                .activation = made->activation.elementwise };
    for (size_t i = 0; status == CELLGATE_OK && i < 2; i++) {
        (void)cg_node_weight(&node, i, &weights[i]);
        status = group_columns(call, made, &made->weights[i], group,
                               &weights[i].data, error);
    }
    if (status == CELLGATE_OK)
        status = cg_keras_emit(call, &node, suffix, &suffix, error);
    *value = output;
    return status;
}

/* The convolution of one group of features; `suffix` is its result's. */
static cellgate_status emit_group(const cg_keras_call *call, const conv *made,
                                  int64_t group, int32_t input,
                                  const char *suffix, int32_t *value,
                                  cellgate_error *error)
{
    const cg_window *window = &made->window;
    const int64_t width = made->features / made->groups;
    const cg_node slice = { .kind = CG_SLICE,
                            .as.slice = { .begin = group * width,
                                          .end = (group + 1) * width } };
    const cg_node windows = { .kind = CG_WINDOW, .as.window = *window };
    cellgate_status status = CELLGATE_OK;

    if (made->groups > 1)
        status = cg_keras_emit_simple(call, &slice, &input, 1, ":features",
                                      &input, error);
    if (status == CELLGATE_OK && (window->size > 1 || window->stride > 1))
        status = cg_keras_emit_simple(call, &windows, &input, 1, ":windows",
                                      &input, error);
    return status == CELLGATE_OK
               ? emit_dense(call, made, group, input, suffix, value, error)
               : status;
}

static cellgate_status emit_groups(const cg_keras_call *call, const conv *made,
                                   int32_t input, const char *suffix,
                                   int32_t *value, cellgate_error *error)
{
    const cg_node concat = { .kind = CG_CONCAT };
    int32_t *parts;
    cellgate_status status = CELLGATE_OK;

    if (made->groups == 1)
        return emit_group(call, made, 0, input, suffix, value, error);
    /* No more than there are features, which weights account for. */
    parts = malloc((size_t)made->groups * sizeof *parts);
    if (parts == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the layers");
    for (int64_t group = 0; status == CELLGATE_OK && group < made->groups;
         group++)
        status = emit_group(call, made, group, input, ":group", &parts[group],
                            error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit_simple(
            call, &concat, parts, (size_t)made->groups, suffix, value, error);
    free(parts);
    return status;
}

cellgate_status cg_keras_build_conv(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    conv made = { 0 };
    cg_keras_tensor x = { 0 };
    int32_t value = CG_NO_VALUE;
    cellgate_status status = read_sizes(layer, &made, error);
    bool apart;

    if (status == CELLGATE_OK)
        status = take_steps(call, made.first, &x, error);
    if (status == CELLGATE_OK)
        status = cg_keras_features(call, &x, &made.features, error);
    if (status == CELLGATE_OK)
        status = load_weights(layer, &made, error);
    if (status != CELLGATE_OK)
        return status;
    apart = made.activation.kind != CG_ACTIVATION;
    status = emit_groups(call, &made, x.value,
                         apart        ? ":logits"
                         : made.first ? ":unswapped"
                                      : "",
                         &value, error);
    if (status == CELLGATE_OK && apart)
        status =
            cg_keras_activate(call, &made.activation, value, ":activation",
                              made.first ? ":unswapped" : "", &value, error);
    return status == CELLGATE_OK ? give_steps(call, made.first, value, error)
                                 : status;
}

/* ---- Pooling ------------------------------------------------------------- */

static cg_pool_mode pool_mode(const cg_keras_layer *layer)
{
    return strstr(layer->class_name, "Max") != NULL ? CG_POOL_MAXIMUM
                                                    : CG_POOL_AVERAGE;
}

cellgate_status cg_keras_build_pool(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_node node = { .kind = CG_POOL };
    cg_window *window = &node.as.pool.window;
    cg_keras_tensor x = { 0 };
    int32_t value;
    bool first = false;
    cellgate_status status =
        cg_keras_get_one(layer, "pool_size", 2, &window->size, error);

    node.as.pool.mode = pool_mode(layer);
    window->dilation = 1;
    if (status == CELLGATE_OK)
        status = cg_keras_get_one(layer, "strides", window->size,
                                  &window->stride, error);
    if (status == CELLGATE_OK)
        status = get_padding(layer, false, &window->padding, error);
    if (status == CELLGATE_OK)
        status = cg_keras_features_first(layer, &first, error);
    if (status == CELLGATE_OK)
        status = take_steps(call, first, &x, error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit_simple(call, &node, &x.value, 1,
                                      first ? ":unswapped" : "", &value, error);
    return status == CELLGATE_OK ? give_steps(call, first, value, error)
                                 : status;
}

/* The mask that an average looks at, or none. A mask goes over the axis after
   the batch, which features first are not; and not over that of steps within
   steps. Keras fails on a mask that is there then. */
static cellgate_status average_mask(const cg_keras_call *call,
                                    const cg_keras_tensor *x, bool first,
                                    int32_t *mask, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;

    *mask = x->mask;
    if (!first && layer->lead == 0)
        return CELLGATE_OK;
    if (x->mask != CG_NO_VALUE &&
        layer->reader->model->values[x->mask].producer != -1)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "its input is masked along another axis than the "
                             "one that it takes the average of");
    *mask = CG_NO_VALUE;
    return CELLGATE_OK;
}

cellgate_status cg_keras_build_global_pool(cg_keras_call *call,
                                           cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_node node = { .kind = CG_REDUCE, .as.reduce.mode = pool_mode(layer) };
    cg_keras_tensor x = { 0 };
    int32_t inputs[2] = { CG_NO_VALUE, CG_NO_VALUE }, value;
    bool first = false;
    cellgate_status status = cg_keras_get_flag(layer, "keepdims", false,
                                               &node.as.reduce.keep, error);

    if (status == CELLGATE_OK)
        status = cg_keras_features_first(layer, &first, error);
    if (status == CELLGATE_OK)
        status = take_steps(call, first, &x, error);
    if (status == CELLGATE_OK && call->mask.value != CG_NO_VALUE)
        status = cg_keras_make_mask(call, &call->mask, &x.mask, error);
    if (status == CELLGATE_OK && node.as.reduce.mode == CG_POOL_AVERAGE)
        status = average_mask(call, &x, first, &inputs[1], error);
    if (status != CELLGATE_OK)
        return status;
    inputs[0] = x.value;
    first = first && node.as.reduce.keep; /* else there is nothing to swap */
    status = cg_keras_emit_simple(call, &node, inputs,
                                  inputs[1] != CG_NO_VALUE ? 2 : 1,
                                  first ? ":unswapped" : "", &value, error);
    return status == CELLGATE_OK ? give_steps(call, first, value, error)
                                 : status;
}
