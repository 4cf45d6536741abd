/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_source.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the weights");
}

size_t cg_keras_elements(const cg_weight *weight)
{
    size_t elements = 1;

    for (int32_t axis = 0; axis < weight->rank; axis++)
        elements *= (size_t)weight->shape[axis];
    return elements;
}

cellgate_status cg_keras_new_data(const cg_keras_wanted *wanted,
                                  const cg_weight *weight, float **data,
                                  cellgate_error *error)
{
    *data = cg_model_memory(wanted->layer->reader->model,
                            cg_keras_elements(weight) * sizeof **data);
    return *data != NULL ? CELLGATE_OK : no_memory(error);
}

static cellgate_status keep(cg_keras_reader *reader, const char *key,
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
    if (json_object_set_new(reader->loaded, key,
                            json_integer((json_int_t)reader->weight_count)))
        return no_memory(error);
    reader->weights[reader->weight_count++] = *weight;
    return CELLGATE_OK;
}

static cellgate_status read_weight(const cg_keras_wanted *wanted,
                                   const char *key, cg_weight *weight,
                                   cellgate_error *error)
{
    cg_keras_reader *reader = wanted->layer->reader;
    cellgate_error inner = CELLGATE_ERROR_INIT;
    const cellgate_status status =
        reader->source->load(reader->source, wanted, weight, &inner);

    if (status == CELLGATE_OK)
        return keep(reader, key, weight, error);
    return cg_keras_fail(error, status, wanted->layer, "%s: %s", weight->name,
                         inner.text);
}

/* A layer called twice, or standing in two models, has its weights once. */
static cellgate_status find_weight(const cg_keras_wanted *wanted,
                                   cg_weight *weight, cellgate_error *error)
{
    cg_keras_reader *reader = wanted->layer->reader;
    const size_t size = strlen(wanted->group) + 32;
    char *key = malloc(size);
    const json_t *index;
    const cg_weight *known;
    cellgate_status status = CELLGATE_OK;

    if (key == NULL)
        return no_memory(error);
    (void)snprintf(key, size, "%s/%zu", wanted->group, wanted->index);
    index = json_object_get(reader->loaded, key);
    if (index == NULL) {
        status = read_weight(wanted, key, weight, error);
    } else {
        known = &reader->weights[json_integer_value(index)];
        if (known->rank != weight->rank ||
            memcmp(known->shape, weight->shape, sizeof known->shape) != 0)
            status = cg_keras_fail(error, CELLGATE_BAD_FILE, wanted->layer,
                                   "%s: it does not have the shape in %s that "
                                   "this use of the layer needs",
                                   weight->name, reader->source->name);
        weight->data = known->data;
    }
    free(key);
    return status;
}

static cellgate_status check_end(const cg_keras_wanted *end,
                                 cellgate_error *error)
{
    cg_keras_source *source = end->layer->reader->source;
    cellgate_error inner = CELLGATE_ERROR_INIT;
    const cellgate_status status = source->check_end(source, end, &inner);

    return status == CELLGATE_OK
               ? status
               : cg_keras_fail(error, status, end->layer, "%s", inner.text);
}

cellgate_status cg_keras_load_shaped(const cg_keras_layer *layer,
                                     const char *suffix, cg_kind kind,
                                     cg_weight *weights, size_t count,
                                     cellgate_error *error)
{
    const size_t size = strlen(layer->path) + strlen(suffix) + 1;
    cg_keras_wanted wanted = { .layer = layer, .kind = kind };
    cellgate_status status = CELLGATE_OK;
    char *group = malloc(size);

    if (group == NULL)
        return no_memory(error);
    (void)snprintf(group, size, "%s%s", layer->path, suffix);
    wanted.group = group;
    for (size_t i = 0; status == CELLGATE_OK && i < count; i++) {
        if (weights[i].name == NULL)
            continue;
        status = find_weight(&wanted, &weights[i], error);
        wanted.index++;
    }
    if (status == CELLGATE_OK)
        status = check_end(&wanted, error);
    free(group);
    return status;
}

cellgate_status cg_keras_load(const cg_keras_layer *layer, const char *suffix,
                              const cg_node *node, size_t first, size_t count,
                              cg_weight *weights, cellgate_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!cg_node_weight(node, first + i, &weights[i]))
            weights[i] = (cg_weight){ 0 };
    return cg_keras_load_shaped(layer, suffix, node->kind, weights, count,
                                error);
}

cellgate_status cg_keras_derive(const cg_keras_layer *layer, const char *name,
                                size_t elements, float **data, bool *fresh,
                                cellgate_error *error)
{
    cg_keras_reader *reader = layer->reader;
    const size_t size = strlen(layer->path) + strlen(name) + 2;
    cg_weight weight = { .rank = 1, .shape = { (int64_t)elements } };
    char *key = malloc(size);
    const json_t *index;
    cellgate_status status = CELLGATE_OK;

    if (key == NULL)
        return no_memory(error);
    (void)snprintf(key, size, "%s#%s", layer->path, name);
    index = json_object_get(reader->loaded, key);
    *fresh = index == NULL;
    if (*fresh && elements > reader->derivable) {
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                               "'%s' would be %zu numbers, far more than the "
                               "file has",
                               name, elements);
    } else if (*fresh) {
        reader->derivable -= elements;
        *data = cg_model_memory(reader->model, elements * sizeof **data);
        weight.data = *data;
        status = *data != NULL ? keep(reader, key, &weight, error)
                               : no_memory(error);
    } else {
        const cg_weight *known = &reader->weights[json_integer_value(index)];

        *data = (float *)(uintptr_t)known->data;
        if (known->shape[0] != weight.shape[0])
            status = cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                                   "two uses of the layer need weights of "
                                   "unlike sizes");
    }
    free(key);
    return status;
}
