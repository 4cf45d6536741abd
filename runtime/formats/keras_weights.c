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

/* The key of a layer in reader->shared; false if it stands in one place. */
static bool shared_key(const json_t *layer, char key[32])
{
    const json_t *id = json_object_get(layer, "shared_object_id");

    if (!json_is_integer(id))
        return false;
    (void)snprintf(key, 32, "%lld", (long long)json_integer_value(id));
    return true;
}

static cellgate_status walk_model(cg_keras_reader *reader, const json_t *model,
                                  const char *base, int depth,
                                  cellgate_error *error);

static cellgate_status walk_layer(cg_keras_reader *reader, const json_t *layer,
                                  const char *path, int depth,
                                  cellgate_error *error)
{
    const cg_keras_class *class = cg_keras_find_class(layer);
    const size_t size = strlen(path) + sizeof "/layers/";
    cellgate_status status;
    char key[32], *inner;

    if (shared_key(layer, key)) {
        if (json_object_get(reader->shared, key) != NULL)
            return CELLGATE_OK;
        if (json_object_set_new(reader->shared, key, json_string(path)) != 0)
            return no_memory(error);
    }
    if (class == NULL || !(class->flags & CG_KERAS_MODEL))
        return CELLGATE_OK;
    inner = malloc(size);
    if (inner == NULL)
        return no_memory(error);
    (void)snprintf(inner, size, "%s/layers/", path);
    status = walk_model(reader, layer, inner, depth + 1, error);
    free(inner);
    return status;
}

static cellgate_status walk_model(cg_keras_reader *reader, const json_t *model,
                                  const char *base, int depth,
                                  cellgate_error *error)
{
    const json_t *layers =
        json_object_get(json_object_get(model, "config"), "layers");
    json_t *counts = json_object();
    cellgate_status status = CELLGATE_OK;

    if (counts == NULL)
        return no_memory(error);
    if (depth > CG_KERAS_MAX_DEPTH)
        status = cellgate_fail(error, CELLGATE_BAD_FILE,
                               "models are nested more than %d deep",
                               CG_KERAS_MAX_DEPTH);
    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(layers);
         i++) {
        const json_t *layer = json_array_get(layers, i);
        const cg_keras_class *class = cg_keras_find_class(layer);
        char *path;

        if (class != NULL && (class->flags & CG_KERAS_OPERATION))
            continue;
        path = cg_keras_path(counts, base, layer);
        status = path != NULL ? walk_layer(reader, layer, path, depth, error)
                              : no_memory(error);
        free(path);
    }
    json_decref(counts);
    return status;
}

cellgate_status cg_keras_find_shared(cg_keras_reader *reader,
                                     const json_t *model, cellgate_error *error)
{
    return walk_model(reader, model, "layers/", 0, error);
}

const char *cg_keras_saved_path(const cg_keras_reader *reader,
                                const json_t *layer, const char *path)
{
    const char *first;
    char key[32];

    if (!shared_key(layer, key))
        return path;
    first = json_string_value(json_object_get(reader->shared, key));
    return first != NULL ? first : path;
}

/* ---- Loading ------------------------------------------------------------- */

static size_t element_count(const cg_weight *weight)
{
    size_t elements = 1;

    for (int32_t axis = 0; axis < weight->rank; axis++)
        elements *= (size_t)weight->shape[axis];
    return elements;
}

static cellgate_status keep(cg_keras_reader *reader, const char *path,
                            const cg_weight *weight, cellgate_error *error)
{
    if (reader->weight_count == reader->weight_room) {
        const size_t room = 2 * reader->weight_room + 16;
        cg_weight *weights = realloc(reader->weights, room * sizeof *weights);

        if (weights == NULL)
            return no_memory(error);
        reader->weights = weights;
        reader->weight_room = room;
    }
    if (json_object_set_new(reader->loaded, path,
                            json_integer((json_int_t)reader->weight_count)))
        return no_memory(error);
    reader->weights[reader->weight_count++] = *weight;
    return CELLGATE_OK;
}

static cellgate_status read_weight(const cg_keras_layer *layer,
                                   const char *path, cg_weight *weight,
                                   cellgate_error *error)
{
    cg_keras_reader *reader = layer->reader;
    cellgate_error inner = CELLGATE_ERROR_INIT;
    const size_t elements = element_count(weight);
    float *data;
    cellgate_status status =
        cg_h5_check(reader->h5, path, weight->rank, weight->shape, &inner);

    if (status == CELLGATE_OK) {
        /* The check has compared the size with the file's. */
        data = cg_model_memory(reader->model, elements * sizeof *data);
        if (data == NULL)
            return no_memory(error);
        weight->data = data;
        status = cg_h5_read(reader->h5, path, elements, data, &inner);
    }
    if (status == CELLGATE_OK)
        return keep(reader, path, weight, error);
    return cg_keras_fail(error, status, layer, "%s: %s", weight->name,
                         inner.text);
}

/* A layer called twice, or standing in two models, has its weights once. */
static cellgate_status find_weight(const cg_keras_layer *layer,
                                   const char *path, cg_weight *weight,
                                   cellgate_error *error)
{
    cg_keras_reader *reader = layer->reader;
    const json_t *index = json_object_get(reader->loaded, path);
    const cg_weight *known;

    if (index == NULL)
        return read_weight(layer, path, weight, error);
    known = &reader->weights[json_integer_value(index)];
    if (known->rank != weight->rank ||
        memcmp(known->shape, weight->shape, sizeof known->shape) != 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'%s' in model.weights.h5 does not have the shape "
                             "that this use of the layer needs",
                             path);
    weight->data = known->data;
    return CELLGATE_OK;
}

/* Before version 2.14 the group was called by another name. */
static const char old_layers[] = "_layer_checkpoint_dependencies";

static char *data_path(cg_keras_reader *reader, const char *path,
                       const char *suffix, size_t index)
{
    const size_t size = strlen(path) + strlen(suffix) + sizeof old_layers + 32;
    const size_t skip = strlen("layers");
    char *full = malloc(size);

    if (full == NULL)
        return NULL;
    if (strncmp(path, "layers", skip) == 0 &&
        !cg_h5_has(reader->h5, "layers") && cg_h5_has(reader->h5, old_layers))
        (void)snprintf(full, size, "%s%s%s/vars/%zu", old_layers, path + skip,
                       suffix, index);
    else
        (void)snprintf(full, size, "%s%s/vars/%zu", path, suffix, index);
    return full;
}

cellgate_status cg_keras_load(const cg_keras_layer *layer, const char *suffix,
                              const cg_node *node, size_t first, size_t count,
                              cg_weight *weights, cellgate_error *error)
{
    cg_keras_reader *reader = layer->reader;
    cellgate_status status = CELLGATE_OK;
    size_t stored = 0;
    char *path;

    for (size_t i = 0; status == CELLGATE_OK && i < count; i++) {
        if (!cg_node_weight(node, first + i, &weights[i]))
            continue;
        path = data_path(reader, layer->path, suffix, stored++);
        status = path != NULL ? find_weight(layer, path, &weights[i], error)
                              : no_memory(error);
        free(path);
    }
    if (status != CELLGATE_OK)
        return status;
    path = data_path(reader, layer->path, suffix, stored);
    if (path == NULL)
        return no_memory(error);
    if (cg_h5_has(reader->h5, path))
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                               "model.weights.h5 has more weights than its "
                               "options account for: '%s'",
                               path);
    free(path);
    return status;
}
