/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/formats/keras.h"

/* ---- Axes ---------------------------------------------------------------- */

static cellgate_status add_axis(const cg_keras_layer *layer, const char *key,
                                int32_t rank, const json_t *json,
                                cg_extents *axes, cellgate_error *error)
{
    json_int_t axis = json_integer_value(json);

    if (!json_is_integer(json))
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'%s' must be an axis or a list of axes", key);
    if (axis < 0)
        axis += rank;
    if (axis < 0 || axis >= rank)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'%s' says axis %lld of an input of %d axes", key,
                             (long long)json_integer_value(json), (int)rank);
    if (axis == 0)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "'%s' says axis 0, which is the batch", key);
    for (int32_t i = 0; i < axes->count; i++)
        if (axes->extent[i] == axis)
            return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                                 "'%s' says axis %lld twice", key,
                                 (long long)axis);
    axes->extent[axes->count++] = axis;
    return CELLGATE_OK;
}

cellgate_status cg_keras_get_axes(const cg_keras_layer *layer, const char *key,
                                  int32_t rank, const cg_extents *absent,
                                  cg_extents *axes, cellgate_error *error)
{
    const json_t *json = json_object_get(layer->config, key);
    cellgate_status status = CELLGATE_OK;

    if (json == NULL) {
        *axes = *absent;
        return CELLGATE_OK;
    }
    *axes = (cg_extents){ 0 };
    if (json_is_null(json))
        return CELLGATE_OK;
    if (!json_is_array(json))
        return add_axis(layer, key, rank, json, axes, error);
    /* None can be there twice, so they fit. */
    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(json); i++)
        status =
            add_axis(layer, key, rank, json_array_get(json, i), axes, error);
    return status;
}

cellgate_status cg_keras_permute(const cg_keras_call *call, int32_t input,
                                 const cg_extents *order, const char *suffix,
                                 int32_t *value, cellgate_error *error)
{
    const cg_node node = { .kind = CG_PERMUTE, .as.permute = *order };

    return cg_keras_emit_simple(call, &node, &input, 1, suffix, value, error);
}

cellgate_status cg_keras_swap(const cg_keras_call *call, int32_t input,
                              const char *suffix, int32_t *value,
                              cellgate_error *error)
{
    const int32_t rank = call->layer->reader->shapes[input].rank;
    cg_extents order = { .count = rank };

    for (int32_t axis = 0; axis < rank; axis++)
        order.extent[axis] = axis;
    order.extent[rank - 2] = rank - 1;
    order.extent[rank - 1] = rank - 2;
    return cg_keras_permute(call, input, &order, suffix, value, error);
}

cellgate_status cg_keras_features_first(const cg_keras_layer *layer,
                                        bool *first, cellgate_error *error)
{
    const json_t *json = json_object_get(layer->config, "data_format");
    const char *text = json_string_value(json);

    *first = false;
    if (json == NULL || json_is_null(json))
        return CELLGATE_OK;
    if (text != NULL && strcmp(text, "channels_first") == 0)
        *first = true;
    else if (text == NULL || strcmp(text, "channels_last") != 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'data_format' must be 'channels_last' or "
                             "'channels_first'");
    return CELLGATE_OK;
}

/* ---- Numbers ------------------------------------------------------------- */

cellgate_status cg_keras_get_one(const cg_keras_layer *layer, const char *key,
                                 int64_t absent, int64_t *size,
                                 cellgate_error *error)
{
    const json_t *json = json_object_get(layer->config, key);

    if (json_is_array(json) && json_array_size(json) == 1)
        json = json_array_get(json, 0);
    if ((json == NULL || json_is_null(json)) && absent != 0) {
        *size = absent;
        return CELLGATE_OK;
    }
    if (!json_is_integer(json) || json_integer_value(json) < 1 ||
        json_integer_value(json) > CG_MAX_SIZE)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'%s' must be a whole number from 1 to 268435456",
                             key);
    *size = json_integer_value(json);
    return CELLGATE_OK;
}

/* The extents of lists in lists, by the first of each. */
static bool find_shape(const json_t *json, cg_extents *shape, size_t *count)
{
    *count = 1;
    for (; json_is_array(json); json = json_array_get(json, 0)) {
        const size_t size = json_array_size(json);

        if (shape->count == CELLGATE_MAX_RANK - 1 || size == 0 ||
            __builtin_mul_overflow(*count, size, count) ||
            *count > (size_t)CG_MAX_SIZE)
            return false;
        shape->extent[shape->count++] = (int64_t)size;
    }
    return true;
}

/* Appends the numbers of `json`, which lies `depth` lists deep. Arrays are no
   larger than the file's text, as each of their numbers is there. */
static bool append(cg_keras_numbers *numbers, const json_t *json, int32_t depth,
                   size_t *used)
{
    bool good = true;

    if (depth == numbers->shape.count) {
        const double number = json_number_value(json);

        if (!json_is_number(json) || !isfinite((float)number))
            return false;
        numbers->items[(*used)++] = number;
        return true;
    }
    if (!json_is_array(json) ||
        (int64_t)json_array_size(json) != numbers->shape.extent[depth])
        return false;
    for (size_t i = 0; good && i < json_array_size(json); i++)
        good = append(numbers, json_array_get(json, i), depth + 1, used);
    return good;
}

/* How many numbers there are, at any depth. */
static size_t count_numbers(const json_t *json, int depth)
{
    size_t count = 0;

    if (!json_is_array(json))
        return 1;
    for (size_t i = 0; depth > 0 && i < json_array_size(json); i++)
        count += count_numbers(json_array_get(json, i), depth - 1);
    return count;
}

cellgate_status cg_keras_read_numbers(const cg_keras_layer *layer,
                                      const char *what, const json_t *json,
                                      cg_keras_numbers *numbers,
                                      cellgate_error *error)
{
    size_t count, used = 0;

    *numbers = (cg_keras_numbers){ 0 };
    json = cg_keras_unwrap(json);
    /* Its shape may promise more than there is. */
    if (find_shape(json, &numbers->shape, &count) &&
        count == count_numbers(json, CELLGATE_MAX_RANK)) {
        numbers->items = malloc(count * sizeof *numbers->items);
        if (numbers->items == NULL)
            return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "out of memory while reading the layers");
        if (append(numbers, json, 0, &used))
            return CELLGATE_OK;
    }
    return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                         "%s must be a number or an array of numbers", what);
}

cellgate_status cg_keras_get_numbers(const cg_keras_layer *layer,
                                     const char *key, cg_keras_numbers *numbers,
                                     cellgate_error *error)
{
    char what[80];

    (void)snprintf(what, sizeof what, "'%.60s'", key);
    return cg_keras_read_numbers(
        layer, what, json_object_get(layer->config, key), numbers, error);
}
