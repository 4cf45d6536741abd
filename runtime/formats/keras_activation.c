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

static cellgate_status find_name(const cg_keras_layer *layer, const char *name,
                                 cg_keras_activation *activation,
                                 cellgate_error *error)
{
    *activation = (cg_keras_activation){ .elementwise.kind = CELLGATE_LINEAR };
    if (strcmp(name, "softmax") == 0) {
        activation->softmax = true;
        return CELLGATE_OK;
    }
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
                         "activation '%.60s' is not supported", name);
}

/* A layer object as an activation; its numbers are read as a layer's. */
static cg_keras_layer as_layer(const cg_keras_layer *layer, const json_t *json)
{
    cg_keras_layer inner = *layer;

    inner.config = json_object_get(json, "config");
    return inner;
}

static cellgate_status relu_layer(const cg_keras_layer *relu,
                                  cg_keras_activation *activation,
                                  cellgate_error *error)
{
    const json_t *limit = json_object_get(relu->config, "max_value");
    const bool limited = limit != NULL && !json_is_null(limit);
    float most = 0, slope = 0, threshold = 0;
    cellgate_status status =
        cg_keras_get_number(relu, "max_value", 0, &most, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_number(relu, "negative_slope", 0, &slope, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_number(relu, "threshold", 0, &threshold, error);
    if (status != CELLGATE_OK)
        return status;
    *activation = (cg_keras_activation){ .elementwise.kind = CELLGATE_RELU };
    if (threshold == 0 && slope == 0 && limited && most == 6.0f)
        activation->elementwise.kind = CELLGATE_RELU6;
    else if (threshold == 0 && slope != 0 && !limited)
        activation->elementwise =
            (cellgate_activation){ CELLGATE_LEAKY_RELU, slope, 0 };
    else if (threshold > 0 && slope == 0 && !limited)
        activation->elementwise =
            (cellgate_activation){ CELLGATE_THRESHOLD, threshold, 0 };
    else if (threshold != 0 || slope != 0 || limited)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, relu,
                             "ReLU with this max_value, negative_slope and "
                             "threshold is not supported; one of a max_value "
                             "of 6, a slope and a threshold is");
    return CELLGATE_OK;
}

static cellgate_status softmax_layer(const cg_keras_layer *softmax,
                                     cg_keras_activation *activation,
                                     cellgate_error *error)
{
    const json_t *axis = json_object_get(softmax->config, "axis");

    *activation = (cg_keras_activation){ .softmax = true,
                                         .elementwise.kind = CELLGATE_LINEAR };
    if (axis == NULL || json_is_null(axis) || json_integer_value(axis) == -1)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, softmax,
                         "softmax is supported over the last axis (-1) only");
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
    } else {
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "activation %.60s is not supported", class_name);
    }
    if (status == CELLGATE_OK)
        *activation = (cg_keras_activation){ .elementwise = made };
    return status;
}

/* Functions come as {"class_name": "function", "config": NAME}, layers as
   objects of their class; either only from Keras itself. */
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
                             registered != NULL ? registered : function);
    }
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
