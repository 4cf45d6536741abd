/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "runtime/formats/keras.h"

cellgate_status cg_keras_fail(cellgate_error *error, cellgate_status status,
                              const cg_keras_layer *layer, const char *format,
                              ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return cellgate_fail(error, status, "%s: %s", layer->place, text);
}

static cellgate_status fail_key(cellgate_error *error,
                                const cg_keras_layer *layer, const char *key,
                                const char *expected)
{
    return cg_keras_fail(error, CELLGATE_BAD_FILE, layer, "'%s' must be %s",
                         key, expected);
}

int cg_keras_truth(const json_t *value)
{
    const bool is_number = json_is_integer(value);

    if (json_is_true(value) || (is_number && json_integer_value(value) == 1))
        return 1;
    if (json_is_false(value) || (is_number && json_integer_value(value) == 0))
        return 0;
    return -1;
}

cellgate_status cg_keras_get_flag(const cg_keras_layer *layer, const char *key,
                                  bool absent, bool *flag,
                                  cellgate_error *error)
{
    const json_t *value = json_object_get(layer->config, key);

    if (value == NULL || json_is_null(value))
        *flag = absent;
    else if (cg_keras_truth(value) >= 0)
        *flag = cg_keras_truth(value) == 1;
    else
        return fail_key(error, layer, key, "true or false");
    return CELLGATE_OK;
}

cellgate_status cg_keras_get_size(const cg_keras_layer *layer, const char *key,
                                  int64_t *size, cellgate_error *error)
{
    const json_t *value = json_object_get(layer->config, key);

    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > CG_MAX_SIZE)
        return fail_key(error, layer, key,
                        "a whole number from 1 to 268435456");
    *size = json_integer_value(value);
    return CELLGATE_OK;
}

static bool get_integer(const json_t *json, int64_t *number)
{
    *number = json_is_null(json) ? -1 : json_integer_value(json);
    return (json_is_null(json) || json_is_integer(json)) &&
           *number >= -CG_MAX_SIZE && *number <= CG_MAX_SIZE;
}

cellgate_status cg_keras_get_integers(const cg_keras_layer *layer,
                                      const char *key, size_t least,
                                      size_t most, int64_t *numbers,
                                      size_t *count, cellgate_error *error)
{
    const json_t *value = json_object_get(layer->config, key);
    bool good = value != NULL;

    if (json_is_object(value)) /* a tuple */
        value = json_object_get(value, "config");
    *count = json_is_array(value) ? json_array_size(value) : 1;
    good = good && *count >= least && *count <= most;
    for (size_t i = 0; good && i < *count; i++)
        good =
            get_integer(json_is_array(value) ? json_array_get(value, i) : value,
                        &numbers[i]);
    if (good)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                         "'%s' must be %zu to %zu whole numbers", key, least,
                         most);
}

const json_t *cg_keras_unwrap(const json_t *json)
{
    const char *class_name =
        json_string_value(json_object_get(json, "class_name"));

    if (class_name != NULL && (strcmp(class_name, "__numpy__") == 0 ||
                               strcmp(class_name, "__tensor__") == 0))
        return json_object_get(json_object_get(json, "config"), "value");
    return json;
}

const json_t *cg_keras_get_value(const cg_keras_layer *layer, const char *key)
{
    return cg_keras_unwrap(json_object_get(layer->config, key));
}

cellgate_status cg_keras_get_number(const cg_keras_layer *layer,
                                    const char *key, double absent,
                                    float *number, cellgate_error *error)
{
    const json_t *given = json_object_get(layer->config, key);
    const json_t *value = cg_keras_get_value(layer, key);
    double wide = absent;

    if (given != NULL && !json_is_null(given)) {
        if (!json_is_number(value))
            return fail_key(error, layer, key, "a number");
        wide = json_number_value(value);
    }
    if (!isfinite((float)wide))
        return fail_key(error, layer, key, "a number that fits float32");
    *number = (float)wide;
    return CELLGATE_OK;
}

static bool listed(const char *const *list, const char *key)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, key) == 0)
            return true;
    return false;
}

/* Of a layer whose numbers have, or had in training, another precision. */
static cellgate_status note_policy(const cg_keras_layer *layer,
                                   const char *policy, cellgate_error *error)
{
    static const char *const floats[] = { "float16",        "bfloat16",
                                          "float64",        "mixed_float16",
                                          "mixed_bfloat16", NULL };
    char note[CG_KERAS_PLACE + 200];

    if (!listed(floats, policy) || layer->class_name == NULL ||
        strcmp(layer->class_name, "InputLayer") == 0)
        return CELLGATE_OK;
    (void)snprintf(note, sizeof note,
                   "the dtype policy is %s, first in %s; here weights are "
                   "float32, and computed in float32",
                   policy, layer->place);
    return cg_model_add_note(layer->reader->model, note, error);
}

cellgate_status cg_keras_check_policy(const cg_keras_layer *layer,
                                      cellgate_error *error)
{
    static const char *const taken[] = {
        "float32",        "float16", "bfloat16", "float64", "mixed_float16",
        "mixed_bfloat16", "int32",   "int64",    "uint8",   "bool"
    };
    const json_t *policy = json_object_get(layer->config, "dtype");
    const json_t *config = json_object_get(policy, "config");
    const char *name = json_string_value(policy);
    const char *mode = json_string_value(json_object_get(config, "mode"));

    if (policy == NULL || json_is_null(policy))
        return CELLGATE_OK;
    if (json_is_object(policy))
        name = json_string_value(json_object_get(config, "name"));
    if (name == NULL && mode != NULL)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "its weights are quantized ('%.40s'), which is "
                             "not supported; save the model before its "
                             "quantize()",
                             mode);
    for (size_t i = 0; name != NULL && i < sizeof taken / sizeof *taken; i++)
        if (strcmp(name, taken[i]) == 0)
            return note_policy(layer, name, error);
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "dtype policy '%.40s' is not supported; the floating-"
                         "point ones are",
                         name != NULL ? name : "(unnamed)");
}

/* Nothing that could change a result. */
static bool says_nothing(const json_t *value)
{
    return json_is_null(value) || json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

cellgate_status cg_keras_check_options(const cg_keras_layer *layer,
                                       const char *const *options,
                                       cellgate_error *error)
{
    static const char *const every[] = { "name",
                                         "trainable",
                                         "dtype",
                                         "autocast",
                                         "batch_input_shape",
                                         "batch_shape",
                                         "activity_regularizer",
                                         NULL };
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)layer->config, key, value)
    {
        if (listed(every, key) || listed(options, key) || says_nothing(value))
            continue;
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "option '%.60s' is not supported", key);
    }
    return CELLGATE_OK;
}
