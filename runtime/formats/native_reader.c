/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/formats/formats.h"
#include "runtime/formats/json_text.h"
#include "runtime/formats/native.h"

/* A file while its graph is read. */
typedef struct native_reader {
    cellgate_model *model;
    cg_safetensors tensors;
    json_t *graph;
    const json_t *values;
    int32_t *numbers; /* of the file's values in the model; -1 before */
    size_t value_count;
} native_reader;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the graph");
}

static cellgate_status fail_graph(cellgate_error *error, const char *problem)
{
    return cellgate_fail(error, CELLGATE_BAD_FILE, "the graph: %s", problem);
}

/* ---- Values -------------------------------------------------------------- */

static bool read_dtype(const json_t *json, int32_t *dtype)
{
    const char *name = json_string_value(json);

    for (*dtype = 0; name != NULL && cellgate_dtype_name(*dtype) != NULL;
         ++*dtype)
        if (strcmp(name, cellgate_dtype_name(*dtype)) == 0)
            return true;
    return false;
}

static bool read_shape(const json_t *json, int32_t *rank, int64_t *shape)
{
    const size_t size = json_array_size(json);

    if (!json_is_array(json) || size > CELLGATE_MAX_RANK)
        return false;
    *rank = (int32_t)size;
    for (size_t axis = 0; axis < size; axis++) {
        const json_t *extent = json_array_get(json, axis);

        if (!json_is_null(extent) && !json_is_integer(extent))
            return false;
        shape[axis] =
            json_is_null(extent) ? CG_UNKNOWN : json_integer_value(extent);
    }
    return true;
}

static cellgate_status add_value(native_reader *reader, size_t number,
                                 cellgate_error *error)
{
    const json_t *json = json_array_get(reader->values, number);
    const char *name = json_string_value(json_object_get(json, "name"));
    int64_t shape[CELLGATE_MAX_RANK];
    int32_t dtype, rank;

    if (name == NULL || !read_dtype(json_object_get(json, "dtype"), &dtype) ||
        !read_shape(json_object_get(json, "shape"), &rank, shape))
        return fail_graph(error, "a value lacks its name, dtype or shape");
    return cg_model_add_value(reader->model, name, dtype, rank, shape,
                              &reader->numbers[number], error);
}

/* Reads a number of a value; null is CG_NO_VALUE. */
static bool read_number(const native_reader *reader, const json_t *json,
                        int32_t *number)
{
    const json_int_t given = json_integer_value(json);

    *number = CG_NO_VALUE;
    if (json_is_null(json))
        return true;
    if (!json_is_integer(json) || given < 0 ||
        (uint64_t)given >= reader->value_count)
        return false;
    *number = (int32_t)given;
    return true;
}

static cellgate_status add_input(native_reader *reader, const json_t *json,
                                 cellgate_error *error)
{
    cellgate_model *model = reader->model;
    int32_t value, mask;
    cellgate_status status;

    if (!read_number(reader, json_object_get(json, "value"), &value) ||
        !read_number(reader, json_object_get(json, "mask"), &mask) ||
        value == CG_NO_VALUE || mask == value ||
        reader->numbers[value] != CG_NO_VALUE ||
        (mask != CG_NO_VALUE && reader->numbers[mask] != CG_NO_VALUE))
        return fail_graph(error, "an input's value or mask is not usable");
    status = add_value(reader, (size_t)value, error);
    if (status == CELLGATE_OK)
        status = cg_model_add_input(model, reader->numbers[value], error);
    if (status == CELLGATE_OK &&
        json_is_true(json_object_get(json, "steps_first")))
        status = cg_model_turn_input(model, error);
    if (status != CELLGATE_OK || mask == CG_NO_VALUE)
        return status;
    reader->numbers[mask] = model->inputs[model->input_count - 1].mask;
    return reader->numbers[mask] != CG_NO_VALUE
               ? CELLGATE_OK
               : fail_graph(error, "an input that cannot have a mask has one");
}

static cellgate_status read_values(native_reader *reader, cellgate_error *error)
{
    const json_t *inputs = json_object_get(reader->graph, "inputs");
    cellgate_status status = CELLGATE_OK;

    reader->values = json_object_get(reader->graph, "values");
    reader->value_count = json_array_size(reader->values);
    if (reader->value_count > INT32_MAX / 4)
        return fail_graph(error, "it has too many values");
    reader->numbers =
        malloc((reader->value_count + 1) * sizeof *reader->numbers);
    if (reader->numbers == NULL)
        return no_memory(error);
    for (size_t i = 0; i < reader->value_count; i++)
        reader->numbers[i] = CG_NO_VALUE;
    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(inputs);
         i++)
        status = add_input(reader, json_array_get(inputs, i), error);
    for (size_t i = 0; status == CELLGATE_OK && i < reader->value_count; i++)
        if (reader->numbers[i] == CG_NO_VALUE)
            status = add_value(reader, i, error);
    return status;
}

/* ---- Nodes --------------------------------------------------------------- */

static cellgate_status read_numbers(const native_reader *reader,
                                    const json_t *json, int32_t **list,
                                    size_t *count, cellgate_error *error)
{
    *count = json_array_size(json);
    *list = malloc((*count + 1) * sizeof **list);
    if (*list == NULL)
        return no_memory(error);
    for (size_t i = 0; i < *count; i++) {
        if (!read_number(reader, json_array_get(json, i), &(*list)[i]))
            return fail_graph(error, "there is no value of that number");
        if ((*list)[i] != CG_NO_VALUE)
            (*list)[i] = reader->numbers[(*list)[i]];
    }
    return CELLGATE_OK;
}

static cellgate_status find_weight(const native_reader *reader,
                                   const cg_node *node, const json_t *json,
                                   cg_weight *weight, cellgate_error *error)
{
    const char *name = json_string_value(json_object_get(json, weight->name));
    const cg_safetensor *tensor =
        name != NULL ? cg_safetensors_find(&reader->tensors, name) : NULL;

    if (tensor == NULL || strcmp(tensor->dtype, "F32") != 0 ||
        (uintptr_t)tensor->data % CG_NATIVE_ALIGNMENT != 0)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "weight '%s' is missing, not F32, or not aligned",
                            weight->name);
    if (tensor->rank != weight->rank ||
        memcmp(tensor->shape, weight->shape,
               (size_t)weight->rank * sizeof weight->shape[0]) != 0)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "weight '%s' has the wrong shape", weight->name);
    weight->data = tensor->data;
    return CELLGATE_OK;
}

static cellgate_status read_weights(const native_reader *reader, cg_node *node,
                                    const json_t *json, cellgate_error *error)
{
    size_t used = 0;
    cellgate_status status = cg_node_check(node, error);

    if (status != CELLGATE_OK)
        return status;
    node->weight_count = cg_node_weight_count(node);
    node->weights = calloc(node->weight_count + 1, sizeof *node->weights);
    if (node->weights == NULL)
        return no_memory(error);
    for (size_t i = 0; status == CELLGATE_OK && i < node->weight_count; i++) {
        if (!cg_node_weight(node, i, &node->weights[i]))
            continue;
        used++;
        status = find_weight(reader, node, json, &node->weights[i], error);
    }
    if (status == CELLGATE_OK && json_object_size(json) != used)
        status = cg_node_fail(error, CELLGATE_BAD_FILE, node,
                              "it has a weight too many");
    return status;
}

static cellgate_status fill_node(const native_reader *reader,
                                 const json_t *json, cg_node *node,
                                 cellgate_error *error)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *layer = json_string_value(json_object_get(json, "layer"));
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const int number = kind != NULL ? cg_kind_find(kind) : -1;
    cellgate_status status;

    if (name == NULL || layer == NULL || kind == NULL)
        return fail_graph(error, "a node lacks its name, layer or kind");
    node->name = (char *)(uintptr_t)name;
    node->layer = (char *)(uintptr_t)(layer[0] != '\0' ? layer : name);
    if (number < 0)
        return cg_node_fail(error, CELLGATE_UNSUPPORTED, node,
                            "this version has no kind '%.60s'", kind);
    node->kind = (cg_kind)number;
    status = read_numbers(reader, json_object_get(json, "inputs"),
                          &node->inputs, &node->input_count, error);
    if (status == CELLGATE_OK)
        status = read_numbers(reader, json_object_get(json, "outputs"),
                              &node->outputs, &node->output_count, error);
    if (status == CELLGATE_OK)
        status = cg_native_read_attributes(json_object_get(json, "attributes"),
                                           node, error);
    if (status == CELLGATE_OK)
        status =
            read_weights(reader, node, json_object_get(json, "weights"), error);
    return status;
}

static cellgate_status read_nodes(native_reader *reader, cellgate_error *error)
{
    const json_t *nodes = json_object_get(reader->graph, "nodes");
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(nodes);
         i++) {
        cg_node node = { 0 };

        status = fill_node(reader, json_array_get(nodes, i), &node, error);
        if (status == CELLGATE_OK)
            status = cg_model_add_node(reader->model, &node, error);
        free(node.inputs);
        free(node.outputs);
        free(node.weights);
    }
    return status;
}

static bool listed(const json_t *numbers, size_t wanted)
{
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        const json_t *number = json_array_get(numbers, i);

        if (json_is_integer(number) &&
            json_integer_value(number) == (json_int_t)wanted)
            return true;
    }
    return false;
}

static cellgate_status name_output(native_reader *reader, size_t output,
                                   cellgate_error *error)
{
    const json_t *names = json_object_get(reader->graph, "output_names");
    char number[24];
    const char *name;

    (void)snprintf(number, sizeof number, "%zu", output);
    name = json_string_value(json_object_get(names, number));
    return name != NULL ? cg_model_name_output(reader->model, name, error)
                        : CELLGATE_OK;
}

static cellgate_status read_outputs(native_reader *reader,
                                    cellgate_error *error)
{
    const json_t *turned =
        json_object_get(reader->graph, "steps_first_outputs");
    int32_t *list;
    size_t count;
    cellgate_status status =
        read_numbers(reader, json_object_get(reader->graph, "outputs"), &list,
                     &count, error);

    for (size_t i = 0; status == CELLGATE_OK && i < count; i++) {
        status = cg_model_add_output(reader->model, list[i], error);
        if (status == CELLGATE_OK && listed(turned, i))
            status = cg_model_turn_output(reader->model, error);
        if (status == CELLGATE_OK)
            status = name_output(reader, i, error);
    }
    free(list);
    return status;
}

/* ---- The file ------------------------------------------------------------ */

static cellgate_status read_graph(native_reader *reader, cellgate_error *error)
{
    const json_t *metadata = reader->tensors.metadata;
    const char *text = json_string_value(json_object_get(metadata, "graph"));
    const char *fingerprint =
        json_string_value(json_object_get(metadata, "fingerprint"));
    const char *note = json_string_value(json_object_get(metadata, "note"));
    cellgate_status status;

    if (text == NULL || fingerprint == NULL)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the metadata lack the graph or the fingerprint");
    status =
        cg_json_parse("the graph", text, strlen(text), &reader->graph, error);
    if (status != CELLGATE_OK)
        return status;
    if (note != NULL)
        status = cg_model_add_note(reader->model, note, error);
    if (status == CELLGATE_OK)
        status = read_values(reader, error);
    if (status == CELLGATE_OK)
        status = read_nodes(reader, error);
    if (status == CELLGATE_OK)
        status = read_outputs(reader, error);
    if (status == CELLGATE_OK)
        status = cg_model_finish(reader->model, error);
    if (status == CELLGATE_OK &&
        strcmp(fingerprint, reader->model->fingerprint) != 0)
        status = cellgate_fail(error, CELLGATE_BAD_FILE,
                               "its contents do not match its fingerprint: the "
                               "file was damaged or edited; convert the model "
                               "again");
    return status;
}

static cellgate_status check_format(const json_t *metadata,
                                    cellgate_error *error)
{
    const char *format = json_string_value(json_object_get(metadata, "format"));
    const char *version =
        json_string_value(json_object_get(metadata, "format_version"));

    if (format == NULL || strcmp(format, CG_NATIVE_FORMAT) != 0)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "this safetensors file holds weights alone, "
                             "without a graph to run; convert a .keras model "
                             "(cellgate convert)");
    if (version == NULL || strcmp(version, CG_NATIVE_VERSION) != 0)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "the native file is of version %.20s; this "
                             "libcellgate reads version %s",
                             version != NULL ? version : "(none)",
                             CG_NATIVE_VERSION);
    return CELLGATE_OK;
}

static void reader_finish(native_reader *reader)
{
    cg_safetensors_finish(&reader->tensors);
    json_decref(reader->graph);
    free(reader->numbers);
    cellgate_model_destroy(reader->model);
}

/* Takes over the mapping if it succeeds. */
static cellgate_status read_image(const cg_source *source, void *image,
                                  cellgate_model **model, cellgate_error *error)
{
    native_reader reader = { 0 };
    cellgate_status status =
        cg_safetensors_read(image, source->size, &reader.tensors, error);

    if (status == CELLGATE_OK)
        status = check_format(reader.tensors.metadata, error);
    if (status == CELLGATE_OK)
        status = cg_model_create(source->path, "native", CG_NATIVE_VERSION,
                                 &reader.model, error);
    if (status == CELLGATE_OK)
        status = read_graph(&reader, error);
    if (status == CELLGATE_OK)
        status = cg_native_read_selftest(&reader.tensors, reader.model, error);
    if (status == CELLGATE_OK)
        status = cg_model_map(reader.model, image, (size_t)source->size, error);
    if (status == CELLGATE_OK) {
        *model = reader.model;
        reader.model = NULL;
    }
    reader_finish(&reader);
    return status;
}

cellgate_status cg_native_read(const cg_source *source, cellgate_model **model,
                               cellgate_error *error)
{
    void *image;
    cellgate_status status;

    if (source->head_size < 9 || source->head[8] != '{')
        return CELLGATE_NOT_FOUND;
    if (source->size > PTRDIFF_MAX)
        return cellgate_fail(error, CELLGATE_BAD_FILE, "the file is too large");
    status = cg_native_image(source->fd, (size_t)source->size, &image, error);
    if (status != CELLGATE_OK)
        return status;
    status = read_image(source, image, model, error);
    if (status != CELLGATE_OK)
        (void)munmap(image, (size_t)source->size);
    return status;
}
