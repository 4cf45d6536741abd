/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of Keras 1 and 2 in the words of later ones. What means the
 * same under another name is renamed; what only training looks at is dropped;
 * everything else stays, so that the builders judge it.
 *
 * A Sequential model's configuration was a list of layers before Keras 2.2.3.
 * Keras 1 called most options otherwise.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the configuration");
}

/* ---- Options of Keras 1 -------------------------------------------------- */

/* An option of a class, or of every class (NULL); without a new name it has no
   meaning at inference. */
typedef struct cg_old_option {
    const char *class_name;
    const char *old, *new;
} cg_old_option;

static const cg_old_option old_options[] = {
    { "LSTM", "output_dim", "units" },
    { "GRU", "output_dim", "units" },
    { "SimpleRNN", "output_dim", "units" },
    { "Dense", "output_dim", "units" },
    { "Dense", "bias", "use_bias" },
    { NULL, "inner_activation", "recurrent_activation" },
    { NULL, "init", NULL },
    { NULL, "inner_init", NULL },
    { NULL, "forget_bias_init", NULL },
    { NULL, "W_regularizer", NULL },
    { NULL, "U_regularizer", NULL },
    { NULL, "b_regularizer", NULL },
    { NULL, "W_constraint", NULL },
    { NULL, "U_constraint", NULL },
    { NULL, "b_constraint", NULL },
    { NULL, "dropout_W", NULL },
    { NULL, "dropout_U", NULL },
    { NULL, "consume_less", NULL },
    { NULL, "weights", NULL },
    { "InputLayer", "input_dtype", "dtype" },
    { NULL, "input_dtype", NULL },
    { "Embedding", "dropout", NULL },
    { "LSTM", "input_dim", NULL },
    { "LSTM", "input_length", NULL },
    { "GRU", "input_dim", NULL },
    { "GRU", "input_length", NULL },
    { "SimpleRNN", "input_dim", NULL },
    { "SimpleRNN", "input_length", NULL },
    { "Dense", "input_dim", NULL },
    { "Dropout", "p", "rate" },
    { "GaussianDropout", "p", "rate" },
    { "SpatialDropout1D", "p", "rate" },
    { "SpatialDropout1D", "dim_ordering", NULL },
    { "GaussianNoise", "sigma", "stddev" },
};

static cellgate_status rename_option(json_t *config,
                                     const cg_old_option *option,
                                     cellgate_error *error)
{
    json_t *value = json_object_get(config, option->old);
    bool done = true;

    if (value == NULL)
        return CELLGATE_OK;
    if (option->new != NULL)
        done = json_object_set(config, option->new, value) == 0;
    (void)json_object_del(config, option->old);
    return done ? CELLGATE_OK : no_memory(error);
}

static cellgate_status rename_options(const char *class_name, json_t *config,
                                      cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK &&
                       i < sizeof old_options / sizeof old_options[0];
         i++) {
        const cg_old_option *option = &old_options[i];

        if (option->class_name == NULL ||
            strcmp(option->class_name, class_name) == 0)
            status = rename_option(config, option, error);
    }
    return status;
}

/* ---- Layers -------------------------------------------------------------- */

static cellgate_status name_list(json_t *layer, cellgate_error *error)
{
    json_t *list = json_object_get(layer, "config");
    json_t *config =
        json_pack("{s:s, s:O}", "name", "sequential", "layers", list);

    if (config == NULL || json_object_set_new(layer, "config", config) != 0)
        return no_memory(error);
    return CELLGATE_OK;
}

static cellgate_status upgrade(json_t *layer, bool first_keras, int depth,
                               cellgate_error *error)
{
    const char *class_name =
        json_string_value(json_object_get(layer, "class_name"));
    json_t *config, *layers, *wrapped;
    cellgate_status status = CELLGATE_OK;

    if (depth > 2 * CG_KERAS_MAX_DEPTH)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "layers are nested more than %d deep",
                             2 * CG_KERAS_MAX_DEPTH);
    if (class_name == NULL)
        return CELLGATE_OK;
    if (strcmp(class_name, "Sequential") == 0 &&
        json_is_array(json_object_get(layer, "config")))
        status = name_list(layer, error);
    config = json_object_get(layer, "config");
    if (status == CELLGATE_OK && first_keras)
        status = rename_options(class_name, config, error);
    layers = json_object_get(config, "layers");
    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(layers);
         i++)
        status =
            upgrade(json_array_get(layers, i), first_keras, depth + 1, error);
    wrapped = json_object_get(config, "layer");
    if (status == CELLGATE_OK && json_is_object(wrapped))
        status = upgrade(wrapped, first_keras, depth + 1, error);
    return status;
}

cellgate_status cg_keras_upgrade(json_t *config, const char *version,
                                 cellgate_error *error)
{
    return upgrade(
        config, version[0] == '1' && !(version[1] >= '0' && version[1] <= '9'),
        0, error);
}
