/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of tensors in a configuration: what a layer is called on. */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_graph.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while wiring the layers");
}

bool cg_keras_is_tensor_name(const json_t *json)
{
    return json_is_array(json) && json_array_size(json) >= 3 &&
           json_is_string(json_array_get(json, 0)) &&
           json_is_integer(json_array_get(json, 1)) &&
           json_is_integer(json_array_get(json, 2));
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static cellgate_status visit_all(const json_t *json, bool nulls,
                                 cg_keras_tensor_visitor visit, void *context,
                                 cellgate_error *error);

const char **cg_keras_sorted_keys(const json_t *json)
{
    const char **keys = malloc((json_object_size(json) + 1) * sizeof *keys);
    const char *key;
    json_t *value;
    size_t count = 0;

    if (keys == NULL)
        return NULL;
    json_object_foreach((json_t *)(uintptr_t)json, key, value) keys[count++] =
        key;
    qsort(keys, count, sizeof *keys, compare_keys);
    return keys;
}

/* Keras takes the entries of a dictionary in the order of their keys. */
static cellgate_status visit_dictionary(const json_t *json, bool nulls,
                                        cg_keras_tensor_visitor visit,
                                        void *context, cellgate_error *error)
{
    const size_t count = json_object_size(json);
    const char **keys = cg_keras_sorted_keys(json);
    cellgate_status status = CELLGATE_OK;

    if (keys == NULL)
        return no_memory(error);
    for (size_t i = 0; status == CELLGATE_OK && i < count; i++)
        status = visit_all(json_object_get(json, keys[i]), nulls, visit,
                           context, error);
    free(keys);
    return status;
}

static cellgate_status visit_all(const json_t *json, bool nulls,
                                 cg_keras_tensor_visitor visit, void *context,
                                 cellgate_error *error)
{
    const char *class_name =
        json_string_value(json_object_get(json, "class_name"));
    const json_t *config = json_object_get(json, "config");
    const bool is_history =
        class_name != NULL && strcmp(class_name, "__keras_tensor__") == 0;
    cellgate_status status = CELLGATE_OK;

    if (nulls && json_is_null(json))
        return visit(context, NULL, error);
    if (is_history) {
        json = json_object_get(config, "keras_history");
        if (!cg_keras_is_tensor_name(json))
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "config.json: a tensor has no keras_history");
    } else if (class_name != NULL && strcmp(class_name, "__tuple__") == 0) {
        json = config;
    } else if (json_is_object(json)) {
        return visit_dictionary(json, nulls, visit, context, error);
    }
    if (cg_keras_is_tensor_name(json)) {
        const cg_keras_tensor_name name = {
            json_string_value(json_array_get(json, 0)),
            json_integer_value(json_array_get(json, 1)),
            json_integer_value(json_array_get(json, 2)), is_history
        };

        return visit(context, &name, error);
    }
    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(json); i++)
        status =
            visit_all(json_array_get(json, i), nulls, visit, context, error);
    return status;
}

cellgate_status cg_keras_visit_tensors(const json_t *json,
                                       cg_keras_tensor_visitor visit,
                                       void *context, cellgate_error *error)
{
    return visit_all(json, false, visit, context, error);
}

cellgate_status cg_keras_visit_nulls_too(const json_t *json,
                                         cg_keras_tensor_visitor visit,
                                         void *context, cellgate_error *error)
{
    return visit_all(json, true, visit, context, error);
}
