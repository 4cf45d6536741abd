/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of layers: the place to go to support one more.
 */
#include "config.h"

#include "runtime/formats/keras.h"

/* ---- Builders ------------------------------------------------------------ */

cellgate_status cg_keras_only_input(const cg_keras_call *call,
                                    cg_keras_tensor *tensor,
                                    cellgate_error *error)
{
    if (call->inputs.count != 1 || call->states.count != 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                             "it is called on %zu tensors; it takes one",
                             call->inputs.count + call->states.count);
    *tensor = call->inputs.items[0];
    return CELLGATE_OK;
}

cellgate_status cg_keras_build_identity(cg_keras_call *call,
                                        cellgate_error *error)
{
    cg_keras_tensor x = { 0 };
    cellgate_status status = cg_keras_only_input(call, &x, error);

    return status == CELLGATE_OK ? cg_keras_list_add(&call->outputs, x, error)
                                 : status;
}

static cellgate_status build_input(cg_keras_call *call, cellgate_error *error)
{
    return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                         "an input cannot be called");
}

static cellgate_status build_embedding(cg_keras_call *call,
                                       cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_weight weight;
    int32_t output = CG_KERAS_NEW;
    cg_keras_tensor ids = { 0 };
    cg_node node = { .kind = CG_EMBEDDING,
                     .inputs = &ids.value,
                     .input_count = 1,
                     .outputs = &output,
                     .output_count = 1,
                     .weights = &weight,
                     .weight_count = 1 };
    bool mask_zero = false;
    int32_t mask, given;
    cellgate_status status = cg_keras_only_input(call, &ids, error);

    given = ids.value;
    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, &ids, CELLGATE_I32, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_size(layer, "input_dim",
                                   &node.as.embedding.vocabulary, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_size(layer, "output_dim", &node.as.embedding.size,
                                   error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_get_flag(layer, "mask_zero", false, &mask_zero, error);
    if (status == CELLGATE_OK)
        status = cg_keras_load(layer, "", &node, 0, 1, &weight, error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit(call, &node, "", &(const char *){ "" }, error);
    mask = ids.mask;
    if (status == CELLGATE_OK && mask_zero) {
        const cg_keras_tensor nonzero = { .value = given,
                                          .mask = CG_NO_VALUE,
                                          .compared = true };

        status = cg_keras_make_mask(call, &nonzero, &mask, error);
    }
    return status == CELLGATE_OK ? cg_keras_return(call, output, mask, error)
                                 : status;
}

static cellgate_status build_masking(cg_keras_call *call, cellgate_error *error)
{
    cg_keras_tensor x = { 0 }, compared;
    cg_node node = { .kind = CG_MASKED };
    int32_t inputs[2], output;
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, &x, CELLGATE_F32, error);
    if (status != CELLGATE_OK)
        return status;
    if (call->layer->reader->shapes[x.value].rank < 3)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "its input has no steps to mask");
    compared = (cg_keras_tensor){ .value = x.value,
                                  .mask = CG_NO_VALUE,
                                  .compared = true };
    status = cg_keras_get_number(call->layer, "mask_value", 0,
                                 &compared.constant, error);
    inputs[0] = x.value;
    if (status == CELLGATE_OK)
        status = cg_keras_make_mask(call, &compared, &inputs[1], error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_simple(call, &node, inputs, 2, "", &output, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, output, inputs[1], error)
               : status;
}

static cellgate_status build_dense(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_weight weights[2];
    int32_t output = CG_KERAS_NEW;
    cg_keras_activation activation;
    bool apart;
    cg_keras_tensor x = { 0 };
    cg_node node = { .kind = CG_DENSE,
                     .inputs = &x.value,
                     .input_count = 1,
                     .outputs = &output,
                     .output_count = 1,
                     .weights = weights,
                     .weight_count = 2 };
    cg_dense *dense = &node.as.dense;
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, &x, CELLGATE_F32, error);
    if (status == CELLGATE_OK)
        status = cg_keras_features(call, &x, &dense->input_size, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_size(layer, "units", &dense->units, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_get_flag(layer, "use_bias", true, &dense->has_bias, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_activation(layer, "activation", "linear",
                                         &activation, error);
    if (status == CELLGATE_OK)
        status = cg_keras_load(layer, "", &node, 0, 2, weights, error);
    if (status != CELLGATE_OK)
        return status;
    dense->activation = activation.elementwise;
    apart = activation.kind != CG_ACTIVATION;
    status = cg_keras_emit(call, &node, "",
                           &(const char *){ apart ? ":logits" : "" }, error);
    if (status == CELLGATE_OK && apart)
        status = cg_keras_activate(
            call, &activation, output,
            activation.kind == CG_SOFTMAX ? ":softmax" : ":activation", "",
            &output, error);
    return status == CELLGATE_OK ? cg_keras_return(call, output, x.mask, error)
                                 : status;
}

static cellgate_status build_activation(cg_keras_call *call,
                                        cellgate_error *error)
{
    cg_keras_activation activation;
    cg_keras_tensor x = { 0 };
    int32_t output;
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, &x, CELLGATE_F32, error);
    if (status == CELLGATE_OK)
        status = cg_keras_layer_activation(call->layer, call->layer->json,
                                           &activation, error);
    if (status != CELLGATE_OK)
        return status;
    status =
        cg_keras_activate(call, &activation, x.value, "", "", &output, error);
    return status == CELLGATE_OK ? cg_keras_return(call, output, x.mask, error)
                                 : status;
}

/* ---- The table ----------------------------------------------------------- */

static const char *const no_options[] = { NULL };
static const char *const input_options[] = { "input_shape", NULL };
static const char *const dropout_options[] = { "rate",   "noise_shape", "seed",
                                               "stddev", "data_format", NULL };
static const char *const regularization_options[] = { "l1", "l2", NULL };
static const char *const embedding_options[] = {
    "input_dim",    "output_dim", "mask_zero",
    "input_length", "weights",    CG_KERAS_TRAINING(embeddings),
    "lora_rank",    "lora_alpha", NULL
};
static const char *const masking_options[] = { "mask_value", NULL };
static const char *const dense_options[] = { "units",
                                             "activation",
                                             "use_bias",
                                             CG_KERAS_TRAINING(kernel),
                                             CG_KERAS_TRAINING(bias),
                                             "lora_rank",
                                             "lora_alpha",
                                             NULL };
static const char *const activation_options[] = { "activation", NULL };
static const char *const relu_options[] = { "max_value", "negative_slope",
                                            "threshold", NULL };
static const char *const leaky_options[] = { "alpha", "negative_slope", NULL };
static const char *const elu_options[] = { "alpha", NULL };
static const char *const concatenate_options[] = { "axis", NULL };
static const char *const function_option[] = { "function", NULL };
static const char *const dot_options[] = { "axes", "normalize", NULL };
static const char *const flatten_options[] = { "data_format", NULL };
static const char *const repeat_vector_options[] = { "n", NULL };
static const char *const reshape_options[] = { "target_shape", NULL };
static const char *const permute_options[] = { "dims", NULL };
static const char *const up_sampling_options[] = { "size", NULL };
static const char *const zero_padding_options[] = { "padding", "data_format",
                                                    NULL };
static const char *const cropping_options[] = { "cropping", NULL };
static const char *const thresholded_options[] = { "theta", NULL };
static const char *const model_options[] = { "layers", "input_layers",
                                             "output_layers",
                                             "build_input_shape", NULL };

static const cg_keras_class classes[] = {
    { "Activation", build_activation, activation_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "ActivityRegularization", cg_keras_build_identity, regularization_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "Add", cg_keras_build_combine, no_options, CG_KERAS_ANY_ORDER },
    { "AdditiveAttention", cg_keras_build_attention, cg_keras_attention_options,
      CG_KERAS_ATTENDS },
    { "AlphaDropout", cg_keras_build_identity, dropout_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "Attention", cg_keras_build_attention, cg_keras_attention_options,
      CG_KERAS_ATTENDS },
    { "Average", cg_keras_build_combine, no_options, CG_KERAS_ANY_ORDER },
    { "AveragePooling1D", cg_keras_build_pool, cg_keras_pool_options,
      CG_KERAS_PER_STEP },
    { "BatchNormalization", cg_keras_build_batch_normalization,
      cg_keras_batch_normalization_options,
      CG_KERAS_PER_STEP | CG_KERAS_UNTRAINED(2) },
    { "Bidirectional", cg_keras_build_bidirectional,
      cg_keras_bidirectional_options, CG_KERAS_TURNS },
    { "Concatenate", cg_keras_build_concatenate, concatenate_options,
      CG_KERAS_ANY_ORDER },
    { "Conv1D", cg_keras_build_conv, cg_keras_conv_options, CG_KERAS_PER_STEP },
    { "Cropping1D", cg_keras_build_cropping, cropping_options,
      CG_KERAS_PER_STEP },
    { "CuDNNGRU", cg_keras_build_recurrent, cg_keras_gru_options,
      CG_KERAS_TURNS },
    { "CuDNNLSTM", cg_keras_build_recurrent, cg_keras_lstm_options,
      CG_KERAS_TURNS },
    { "Dense", build_dense, dense_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "Dot", cg_keras_build_dot, dot_options, 0 },
    { "Dropout", cg_keras_build_identity, dropout_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "ELU", build_activation, elu_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "Embedding", build_embedding, embedding_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "Flatten", cg_keras_build_flatten, flatten_options, CG_KERAS_PER_STEP },
    { "Functional", cg_keras_build_model, model_options,
      CG_KERAS_MODEL | CG_KERAS_PER_STEP },
    { "GRU", cg_keras_build_recurrent, cg_keras_gru_options, CG_KERAS_TURNS },
    { "GRUCell", cg_keras_build_cell, cg_keras_gru_cell_options, 0 },
    { "GaussianDropout", cg_keras_build_identity, dropout_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "GaussianNoise", cg_keras_build_identity, dropout_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "GlobalAveragePooling1D", cg_keras_build_global_pool,
      cg_keras_global_pool_options, CG_KERAS_PER_STEP },
    { "GlobalMaxPooling1D", cg_keras_build_global_pool,
      cg_keras_global_pool_options, CG_KERAS_PER_STEP },
    { "Identity", cg_keras_build_identity, no_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "InputLayer", build_input, input_options,
      CG_KERAS_INPUT | CG_KERAS_PER_STEP },
    { "LSTM", cg_keras_build_recurrent, cg_keras_lstm_options, CG_KERAS_TURNS },
    { "LSTMCell", cg_keras_build_cell, cg_keras_lstm_cell_options, 0 },
    { "LayerNormalization", cg_keras_build_layer_normalization,
      cg_keras_layer_normalization_options, CG_KERAS_PER_STEP },
    { "LeakyReLU", build_activation, leaky_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "Masking", build_masking, masking_options, CG_KERAS_ANY_ORDER },
    { "MaxPooling1D", cg_keras_build_pool, cg_keras_pool_options,
      CG_KERAS_PER_STEP },
    { "Maximum", cg_keras_build_combine, no_options, CG_KERAS_ANY_ORDER },
    { "Minimum", cg_keras_build_combine, no_options, CG_KERAS_ANY_ORDER },
    { "Model", cg_keras_build_model, model_options,
      CG_KERAS_MODEL | CG_KERAS_PER_STEP },
    { "Multiply", cg_keras_build_combine, no_options, CG_KERAS_ANY_ORDER },
    { "Normalization", cg_keras_build_normalization,
      cg_keras_normalization_options,
      CG_KERAS_PER_STEP | CG_KERAS_UNTRAINED(3) },
    { "PReLU", cg_keras_build_prelu, cg_keras_prelu_options,
      CG_KERAS_PER_STEP },
    { "Permute", cg_keras_build_permute, permute_options, CG_KERAS_PER_STEP },
    { "RMSNormalization", cg_keras_build_layer_normalization,
      cg_keras_layer_normalization_options, CG_KERAS_PER_STEP },
    { "RNN", cg_keras_build_recurrent, cg_keras_rnn_options, CG_KERAS_TURNS },
    { "ReLU", build_activation, relu_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "RepeatVector", cg_keras_build_repeat_vector, repeat_vector_options,
      CG_KERAS_PER_STEP },
    { "Rescaling", cg_keras_build_rescaling, cg_keras_rescaling_options,
      CG_KERAS_PER_STEP },
    { "Reshape", cg_keras_build_reshape, reshape_options, CG_KERAS_PER_STEP },
    { "Sequential", cg_keras_build_model, model_options,
      CG_KERAS_MODEL | CG_KERAS_PER_STEP },
    { "SlicingOpLambda", cg_keras_build_tf_operation, function_option,
      CG_KERAS_TURNS | CG_KERAS_KEYWORDS },
    { "SimpleRNN", cg_keras_build_recurrent, cg_keras_simple_rnn_options,
      CG_KERAS_TURNS },
    { "SimpleRNNCell", cg_keras_build_cell, cg_keras_simple_rnn_cell_options,
      0 },
    { "Softmax", cg_keras_build_softmax, cg_keras_softmax_options,
      CG_KERAS_PER_STEP },
    { "SpatialDropout1D", cg_keras_build_identity, dropout_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "StackedRNNCells", cg_keras_build_cell, cg_keras_stacked_cells_options,
      0 },
    { "Subtract", cg_keras_build_combine, no_options, CG_KERAS_ANY_ORDER },
    { "TFOpLambda", cg_keras_build_tf_operation, function_option,
      CG_KERAS_TURNS | CG_KERAS_KEYWORDS },
    { "ThresholdedReLU", build_activation, thresholded_options,
      CG_KERAS_PER_STEP | CG_KERAS_ANY_ORDER },
    { "TimeDistributed", cg_keras_build_time_distributed,
      cg_keras_time_distributed_options, CG_KERAS_PER_STEP },
    { "UnitNormalization", cg_keras_build_layer_normalization,
      cg_keras_layer_normalization_options, CG_KERAS_PER_STEP },
    { "UpSampling1D", cg_keras_build_up_sampling, up_sampling_options,
      CG_KERAS_PER_STEP },
    { "ZeroPadding1D", cg_keras_build_zero_padding, zero_padding_options,
      CG_KERAS_PER_STEP },
};

static const char images[] =
    "images are not computed here: convolutions and pooling are supported "
    "along "
    "steps (Conv1D ...), also in a TimeDistributed; run this layer with Keras, "
    "and give what it makes of each image to a model of the layers behind it";
static const char heads[] =
    "attention of one head is supported, as Attention and AdditiveAttention; "
    "export the layers before and after it as models of their own and run this "
    "one with Keras";
static const char supported[] =
    "README.md lists those that are; export the layers before and after it as "
    "models of their own and run this one with Keras";

/* Layers that sequence models have and that stay out, and what to do. */
static const struct {
    const char *name, *advice;
} refused[] = {
    { "AveragePooling2D", images },
    { "Conv2D", images },
    { "Conv3D", images },
    { "ConvLSTM1D", images },
    { "ConvLSTM2D", images },
    { "ConvLSTM3D", images },
    { "DepthwiseConv2D", images },
    { "GlobalAveragePooling2D", images },
    { "GlobalMaxPooling2D", images },
    { "GroupQueryAttention", heads },
    { "MaxPooling2D", images },
    { "MultiHeadAttention", heads },
    { "SeparableConv2D", images },
};

static const char *advice_on(const char *class_name)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (strcmp(class_name, refused[i].name) == 0)
            return refused[i].advice;
    return supported;
}

/* A class of a user's own may have any name; its module or registered name
   gives it away. */
static bool is_from_keras(const json_t *json)
{
    const json_t *module = json_object_get(json, "module");
    const char *text = json_string_value(module);
    const char *registered =
        json_string_value(json_object_get(json, "registered_name"));

    if (registered != NULL && strchr(registered, '>') != NULL)
        return false;
    if (module == NULL || json_is_null(module) || text == NULL)
        return true;
    return strcmp(text, "keras") == 0 || strncmp(text, "keras.", 6) == 0 ||
           strncmp(text, "tf_keras.", 9) == 0 ||
           strncmp(text, "tensorflow.keras.", 17) == 0;
}

/* Keras 3 writes no module into .h5, and calls an operation as a layer; but a
   layer's configuration says whether it is trained. */
static bool is_operation(const json_t *json)
{
    const json_t *module = json_object_get(json, "module");
    const char *text = json_string_value(module);
    const json_t *config = json_object_get(json, "config");
    const json_t *call =
        json_array_get(json_object_get(json, "inbound_nodes"), 0);

    if (text != NULL)
        return strncmp(text, "keras.", 6) == 0 && strstr(text, ".ops") != NULL;
    return module == NULL && json_object_get(call, "args") != NULL &&
           json_is_object(config) &&
           json_object_get(config, "trainable") == NULL;
}

static const cg_keras_class *find_entry(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(name, classes[i].name) == 0)
            return &classes[i];
    return NULL;
}

/* A few layers say no more than operations do, and have other names. */
const cg_keras_class *cg_keras_find_class(const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "class_name"));
    const bool operation = is_operation(json);
    const cg_keras_class *found;

    if (name == NULL || !is_from_keras(json))
        return NULL;
    found = operation ? cg_keras_find_operation(name) : find_entry(name);
    return found == NULL && operation && json_object_get(json, "module") == NULL
               ? find_entry(name)
               : found;
}

static void set_place(cg_keras_layer *layer, size_t index, size_t count,
                      const char *model)
{
    if (model != NULL)
        (void)snprintf(layer->place, sizeof layer->place,
                       "layer %zu of %zu of '%.60s', '%.60s' (%.60s)",
                       index + 1, count, model, layer->name, layer->class_name);
    else
        (void)snprintf(layer->place, sizeof layer->place,
                       "layer %zu of %zu, '%.60s' (%.60s)", index + 1, count,
                       layer->name, layer->class_name);
}

cellgate_status cg_keras_layer_init(cg_keras_layer *layer, const json_t *json,
                                    size_t index, size_t count,
                                    const char *model, cellgate_error *error)
{
    const char *name;
    cellgate_status status;

    layer->json = json;
    layer->config = json_object_get(json, "config");
    layer->class_name = json_string_value(json_object_get(json, "class_name"));
    name = json_string_value(json_object_get(json, "name"));
    if (name == NULL)
        name = json_string_value(json_object_get(layer->config, "name"));
    layer->name = name;
    if (layer->class_name == NULL || !json_is_object(layer->config) ||
        name == NULL)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "config.json: layer %zu of %zu lacks its "
                             "class_name, config or name",
                             index + 1, count);
    set_place(layer, index, count, model);
    layer->class = cg_keras_find_class(json);
    if (layer->class == NULL && is_from_keras(json) && is_operation(json))
        return cg_keras_refuse_operation(layer, error);
    if (layer->class == NULL && is_from_keras(json) &&
        cg_keras_class_advice(layer->class_name) != NULL)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer, "%s",
                             cg_keras_class_advice(layer->class_name));
    if (layer->class == NULL && is_from_keras(json))
        return cg_keras_fail(
            error, CELLGATE_UNSUPPORTED, layer,
            "this kind of layer%s is not supported; %s",
            json_object_get(json, "module") == NULL ? ", or your own," : "",
            advice_on(layer->class_name));
    if (layer->class == NULL)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "a custom layer, whose code is not in the file; "
                             "%s",
                             supported);
    status = cg_keras_check_policy(layer, error);
    if (status == CELLGATE_OK)
        status = cg_keras_check_options(layer, layer->class->options, error);
    return status;
}
