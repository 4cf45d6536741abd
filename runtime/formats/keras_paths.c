/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keras names the groups of model.weights.h5 by class, in the order of the
 * model's layers: layers/lstm, layers/lstm_1 ... A layer that stands in several
 * models is saved once, under the first place that a walk depth first comes to,
 * and marked in the configuration by the same shared_object_id everywhere.
 */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>

#include "runtime/formats/keras.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the weights");
}

/* ---- Paths --------------------------------------------------------------- */

/*
 * Keras's to_snake_case(): an underscore before a capital that is followed by a
 * small letter, and between a small letter and a capital. LSTM -> lstm,
 * TimeDistributed -> time_distributed, LeakyReLU -> leaky_re_lu.
 */
static char *snake_case(const char *name)
{
    const size_t length = strlen(name);
    char *snake = malloc(2 * length + 1);
    size_t used = 0;

    if (snake == NULL)
        return NULL;
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)name[i];
        const bool before_small = islower((unsigned char)name[i + 1]);
        const bool after_small = i > 0 && islower((unsigned char)name[i - 1]);

        if (i > 0 && isupper(c) && (before_small || after_small))
            snake[used++] = '_';
        snake[used++] = (char)tolower(c);
    }
    snake[used] = '\0';
    return snake;
}

char *cg_keras_path(json_t *counts, const char *base, const json_t *layer)
{
    const char *class_name =
        json_string_value(json_object_get(layer, "class_name"));
    char *snake = snake_case(class_name != NULL ? class_name : "");
    json_int_t number;
    size_t size;
    char *path;

    if (snake == NULL)
        return NULL;
    number = json_integer_value(json_object_get(counts, snake));
    size = strlen(base) + strlen(snake) + 32;
    path = malloc(size);
    if (path != NULL &&
        json_object_set_new(counts, snake, json_integer(number + 1)) != 0) {
        free(path);
        path = NULL;
    }
    if (path != NULL && number == 0)
        (void)snprintf(path, size, "%s%s", base, snake);
    else if (path != NULL)
        (void)snprintf(path, size, "%s%s_%lld", base, snake, (long long)number);
    free(snake);
    return path;
}

/* The key of a layer that stands in several places; false for any other. */
static bool shared_key(const json_t *layer, char key[32])
{
    const json_t *id = json_object_get(layer, "shared_object_id");

    if (!json_is_integer(id))
        return false;
    (void)snprintf(key, 32, "%lld", (long long)json_integer_value(id));
    return true;
}

cellgate_status cg_keras_visit_layers(const json_t *model, const char *path,
                                      int depth, cg_keras_layer_visitor visit,
                                      void *context, cellgate_error *error)
{
    const json_t *layers =
        json_object_get(json_object_get(model, "config"), "layers");
    const size_t size = strlen(path) + sizeof "/layers/";
    char *base = malloc(size);
    json_t *counts = json_object();
    cellgate_status status = CELLGATE_OK;

    if (base == NULL || counts == NULL)
        status = no_memory(error);
    else if (depth > CG_KERAS_MAX_DEPTH)
        status = cellgate_fail(error, CELLGATE_BAD_FILE,
                               "models are nested more than %d deep",
                               CG_KERAS_MAX_DEPTH);
    if (status == CELLGATE_OK)
        (void)snprintf(base, size, "%s%slayers/", path,
                       path[0] != '\0' ? "/" : "");
    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(layers);
         i++) {
        const json_t *layer = json_array_get(layers, i);
        const cg_keras_class *class = cg_keras_find_class(layer);
        char *own;

        if (class != NULL && (class->flags & CG_KERAS_OPERATION))
            continue;
        own = cg_keras_path(counts, base, layer);
        status = own != NULL ? visit(context, layer, own, depth, error)
                             : no_memory(error);
        free(own);
    }
    json_decref(counts);
    free(base);
    return status;
}

static cellgate_status note_shared(void *context, const json_t *layer,
                                   const char *path, int depth,
                                   cellgate_error *error)
{
    json_t *shared = context;
    const cg_keras_class *class = cg_keras_find_class(layer);
    char key[32];

    if (shared_key(layer, key)) {
        if (json_object_get(shared, key) != NULL)
            return CELLGATE_OK;
        if (json_object_set_new(shared, key, json_string(path)) != 0)
            return no_memory(error);
    }
    if (class == NULL || !(class->flags & CG_KERAS_MODEL))
        return CELLGATE_OK;
    return cg_keras_visit_layers(layer, path, depth + 1, note_shared, shared,
                                 error);
}

cellgate_status cg_keras_find_shared(json_t *shared, const json_t *model,
                                     cellgate_error *error)
{
    return cg_keras_visit_layers(model, "", 0, note_shared, shared, error);
}

const char *cg_keras_saved_path(const json_t *shared, const json_t *layer,
                                const char *path)
{
    const char *first;
    char key[32];

    if (!shared_key(layer, key))
        return path;
    first = json_string_value(json_object_get(shared, key));
    return first != NULL ? first : path;
}
