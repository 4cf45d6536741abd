/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "runtime/formats/keras.h"

/* The names that Keras takes, with its default parameters. */
typedef struct cg_activation_name {
    const char *name;
    cellgate_activation activation;
} cg_activation_name;

static const cg_activation_name names[] = {
    { "celu", { CELLGATE_CELU, 1.0f, 0 } },
    { "elu", { CELLGATE_ELU, 1.0f, 0 } },
    { "exponential", { CELLGATE_EXPONENTIAL, 0, 0 } },
    { "gelu", { CELLGATE_GELU_ERF, 0, 0 } },
    { "hard_shrink", { CELLGATE_HARD_SHRINK, 0.5f, 0 } },
    { "hard_sigmoid", { CELLGATE_HARD_SIGMOID, 1.0f / 6.0f, 0.5f } },
    { "hard_silu", { CELLGATE_HARD_SILU, 0, 0 } },
    { "hard_swish", { CELLGATE_HARD_SILU, 0, 0 } },
    { "hard_tanh", { CELLGATE_HARD_TANH, 0, 0 } },
    { "leaky_relu", { CELLGATE_LEAKY_RELU, 0.2f, 0 } },
    { "linear", { CELLGATE_LINEAR, 0, 0 } },
    { "log_sigmoid", { CELLGATE_LOG_SIGMOID, 0, 0 } },
    { "mish", { CELLGATE_MISH, 0, 0 } },
    { "relu", { CELLGATE_RELU, 0, 0 } },
    { "relu6", { CELLGATE_RELU6, 0, 0 } },
    { "selu", { CELLGATE_SELU, 0, 0 } },
    { "sigmoid", { CELLGATE_SIGMOID, 0, 0 } },
    { "silu", { CELLGATE_SILU, 0, 0 } },
    { "soft_shrink", { CELLGATE_SOFT_SHRINK, 0.5f, 0 } },
    { "softplus", { CELLGATE_SOFTPLUS, 0, 0 } },
    { "softsign", { CELLGATE_SOFTSIGN, 0, 0 } },
    { "sparse_plus", { CELLGATE_SPARSE_PLUS, 0, 0 } },
    { "sparse_sigmoid", { CELLGATE_SPARSE_SIGMOID, 0, 0 } },
    { "squareplus", { CELLGATE_SQUAREPLUS, 4.0f, 0 } },
    { "swish", { CELLGATE_SILU, 0, 0 } },
    { "tanh", { CELLGATE_TANH, 0, 0 } },
    { "tanh_shrink", { CELLGATE_TANH_SHRINK, 0, 0 } },
};

/* Those that look at the whole last axis: a node each. */
static const struct {
    const char *name;
    cg_kind kind;
} rows[] = {
    { "log_softmax", CG_LOG_SOFTMAX },
    { "softmax", CG_SOFTMAX },
    { "sparsemax", CG_SPARSEMAX },
};

static const struct {
    const char *name, *reason;
} refused[] = {
    { "glu", "it halves the number of features, which the layers behind it do "
             "not know in Keras either" },
    { "threshold", "it has two parameters, which its name does not tell, so "
                   "that Keras cannot compute it either; use "
                   "ReLU(threshold=...)" },
};

static cg_keras_activation linear(void)
{
    return (cg_keras_activation){ .kind = CG_ACTIVATION,
                                  .elementwise.kind = CELLGATE_LINEAR };
}

static cellgate_status find_name(const cg_keras_layer *layer, const char *name,
                                 cg_keras_activation *activation,
                                 cellgate_error *error)
{
    *activation = linear();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(name, rows[i].name) == 0) {
            activation->kind = rows[i].kind;
            return CELLGATE_OK;
        }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (strcmp(name, refused[i].name) == 0)
            return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                                 "activation '%s' is not supported: %s", name,
                                 refused[i].reason);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i].name) != 0)
            continue;
        activation->elementwise = names[i].activation;
        if (activation->elementwise.kind == CELLGATE_HARD_SIGMOID &&
            layer->reader->keras_major < 3)
            activation->elementwise.alpha = 0.2f;
        return CELLGATE_OK;
    }
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "'%.60s' is not an activation of Keras's own; one of "
                         "those, by its name, is expected",
                         name);
}

/* A layer object as an activation; its numbers are read as a layer's. */
static cg_keras_layer as_layer(const cg_keras_layer *layer, const json_t *json)
{
    cg_keras_layer inner = *layer;

    inner.config = json_object_get(json, "config");
    return inner;
}

/* Those of one parameter are activations of every device. */
static void simplify(cg_keras_activation *activation)
{
    const cg_relu *relu = &activation->relu;
    cellgate_activation *simple = &activation->elementwise;

    activation->kind = CG_ACTIVATION;
    if (relu->threshold == 0 && relu->slope == 0 && !relu->limited)
        *simple = (cellgate_activation){ CELLGATE_RELU, 0, 0 };
    else if (relu->threshold == 0 && relu->slope == 0 && relu->limit == 6.0f)
        *simple = (cellgate_activation){ CELLGATE_RELU6, 0, 0 };
    else if (relu->threshold == 0 && !relu->limited)
        *simple = (cellgate_activation){ CELLGATE_LEAKY_RELU, relu->slope, 0 };
    else if (relu->slope == 0 && !relu->limited)
        *simple =
            (cellgate_activation){ CELLGATE_THRESHOLD, relu->threshold, 0 };
    else
        activation->kind = CG_RELU;
}

static cellgate_status relu_layer(const cg_keras_layer *layer,
                                  cg_keras_activation *activation,
                                  cellgate_error *error)
{
    const json_t *limit = json_object_get(layer->config, "max_value");
    cg_relu relu = { .limited = limit != NULL && !json_is_null(limit) };
    cellgate_status status =
        cg_keras_get_number(layer, "max_value", 0, &relu.limit, error);

    if (status == CELLGATE_OK)
        status =
            cg_keras_get_number(layer, "negative_slope", 0, &relu.slope, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_get_number(layer, "threshold", 0, &relu.threshold, error);
    if (status != CELLGATE_OK)
        return status;
    if (relu.limit < 0 || relu.slope < 0 || relu.threshold < 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "max_value, negative_slope and threshold of a "
                             "ReLU must not be negative");
    *activation = linear();
    activation->relu = relu;
    simplify(activation);
    return CELLGATE_OK;
}

/* As the activation of a layer, where nothing is transposed. */
static cellgate_status softmax_layer(const cg_keras_layer *softmax,
                                     cg_keras_activation *activation,
                                     cellgate_error *error)
{
    const json_t *axis = json_object_get(softmax->config, "axis");

    *activation = linear();
    activation->kind = CG_SOFTMAX;
    if (axis == NULL || json_is_null(axis) || json_integer_value(axis) == -1)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, softmax,
                         "softmax as an activation is supported over the last "
                         "axis (-1) only; a Softmax layer of its own may have "
                         "any");
}

cellgate_status cg_keras_layer_activation(const cg_keras_layer *layer,
                                          const json_t *json,
                                          cg_keras_activation *activation,
                                          cellgate_error *error)
{
    const char *class_name =
        json_string_value(json_object_get(json, "class_name"));
    const cg_keras_layer inner = as_layer(layer, json);
    cellgate_activation made = { CELLGATE_LINEAR, 0, 0 };
    cellgate_status status;

    if (class_name == NULL)
        class_name = "(unnamed)";
    if (strcmp(class_name, "Activation") == 0)
        return cg_keras_get_activation(&inner, "activation", NULL, activation,
                                       error);
    if (strcmp(class_name, "ReLU") == 0)
        return relu_layer(&inner, activation, error);
    if (strcmp(class_name, "Softmax") == 0)
        return softmax_layer(&inner, activation, error);
    if (strcmp(class_name, "LeakyReLU") == 0) {
        made.kind = CELLGATE_LEAKY_RELU;
        /* Keras 2 says alpha. */
        status =
            json_object_get(inner.config, "alpha") != NULL
                ? cg_keras_get_number(&inner, "alpha", 0.3, &made.alpha, error)
                : cg_keras_get_number(&inner, "negative_slope", 0.3,
                                      &made.alpha, error);
    } else if (strcmp(class_name, "ELU") == 0) {
        made.kind = CELLGATE_ELU;
        status = cg_keras_get_number(&inner, "alpha", 1.0, &made.alpha, error);
    } else if (strcmp(class_name, "ThresholdedReLU") == 0) {
        made.kind = CELLGATE_THRESHOLD;
        status = cg_keras_get_number(&inner, "theta", 1.0, &made.alpha, error);
    } else {
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "activation %.60s is not supported", class_name);
    }
    if (status == CELLGATE_OK) {
        *activation = linear();
        activation->elementwise = made;
    }
    return status;
}

/* Functions come as {"class_name": "function", "config": NAME}, layers as
   objects of their class; either only from Keras itself. */
static bool is_lambda(const json_t *json, const char *class_name)
{
    return class_name != NULL ? strcmp(class_name, "__lambda__") == 0
                              : json_is_array(json_object_get(json, "value"));
}

static cellgate_status from_object(const cg_keras_layer *layer,
                                   const json_t *json,
                                   cg_keras_activation *activation,
                                   cellgate_error *error)
{
    const char *class_name =
        json_string_value(json_object_get(json, "class_name"));
    const char *registered =
        json_string_value(json_object_get(json, "registered_name"));
    const char *function = json_string_value(json_object_get(json, "config"));

    if (class_name != NULL && strcmp(class_name, "function") == 0 &&
        function != NULL) {
        /* A function of the user's own registers as "package>name". */
        if (strchr(function, '>') == NULL &&
            (registered == NULL || strchr(registered, '>') == NULL))
            return find_name(layer, function, activation, error);
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "the custom activation '%.60s' is not supported",
                             strchr(function, '>') != NULL ? function
                                                           : registered);
    }
    if (is_lambda(json, class_name))
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "its activation is a lambda: code of your own, in "
                             "the file as Python bytecode, which is never run; "
                             "build the layer with an activation of Keras's "
                             "own and the same weights");
    if (cg_keras_find_class(json) != NULL &&
        strcmp(class_name, "Activation") != 0)
        return cg_keras_layer_activation(layer, json, activation, error);
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "the activation object '%.60s' is not supported",
                         class_name != NULL ? class_name : "(unnamed)");
}

cellgate_status cg_keras_get_activation(const cg_keras_layer *layer,
                                        const char *key, const char *absent,
                                        cg_keras_activation *activation,
                                        cellgate_error *error)
{
    const json_t *value = json_object_get(layer->config, key);

    if (value == NULL && absent != NULL)
        return find_name(layer, absent, activation, error);
    if (json_is_null(value))
        return find_name(layer, "linear", activation, error);
    if (json_is_string(value))
        return find_name(layer, json_string_value(value), activation, error);
    if (json_is_object(value))
        return from_object(layer, value, activation, error);
    return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                         "'%s' must be a name or an object", key);
}

cellgate_status cg_keras_activate(const cg_keras_call *call,
                                  const cg_keras_activation *activation,
                                  int32_t input, const char *suffix,
                                  const char *name, int32_t *value,
                                  cellgate_error *error)
{
    int32_t output = CG_KERAS_NEW;
    cg_node node = { .kind = activation->kind,
                     .inputs = &input,
                     .input_count = 1,
                     .outputs = &output,
                     .output_count = 1 };
    cellgate_status status;

    if (activation->kind == CG_RELU)
        node.as.relu = activation->relu;
    else if (activation->kind == CG_ACTIVATION)
        node.as.activation = activation->elementwise;
    status = cg_keras_emit(call, &node, suffix, &name, error);
    if (status == CELLGATE_OK)
        *value = output;
    return status;
}
