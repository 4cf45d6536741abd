/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/atomic_file.h"
#include "runtime/formats/formats.h"
#include "runtime/formats/json_text.h"
#include "runtime/formats/native.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while writing the model");
}

/* ---- The graph ----------------------------------------------------------- */

static json_t *write_number(int32_t number)
{
    return number == CG_NO_VALUE ? json_null() : json_integer(number);
}

static json_t *write_numbers(const int32_t *numbers, size_t count)
{
    json_t *json = json_array();

    for (size_t i = 0; json != NULL && i < count; i++)
        if (json_array_append_new(json, write_number(numbers[i])) != 0) {
            json_decref(json);
            json = NULL;
        }
    return json;
}

static json_t *write_shape(const int64_t *shape, int32_t rank)
{
    json_t *json = json_array();

    for (int32_t axis = 0; json != NULL && axis < rank; axis++)
        if (json_array_append_new(json, shape[axis] == CG_UNKNOWN
                                            ? json_null()
                                            : json_integer(shape[axis]))) {
            json_decref(json);
            json = NULL;
        }
    return json;
}

static json_t *write_value(const cg_value *value)
{
    return json_pack("{s:s, s:s, s:o}", "name", value->name, "dtype",
                     cellgate_dtype_name(value->dtype), "shape",
                     write_shape(value->shape, value->rank));
}

/* `at` walks through the layout in step with the nodes. */
static json_t *write_weights(const cg_node *node,
                             const cg_native_layout *layout, size_t *at)
{
    json_t *json = json_object();

    for (size_t i = 0; i < node->weight_count; i++) {
        const cg_native_tensor *tensor = &layout->tensors[*at];

        if (node->weights[i].data == NULL)
            continue;
        ++*at;
        if (json != NULL &&
            json_object_set_new(
                json, node->weights[i].name,
                json_string(layout->tensors[tensor->owner].name)) != 0) {
            json_decref(json);
            json = NULL;
        }
    }
    return json;
}

static json_t *write_node(const cg_node *node, const cg_native_layout *layout,
                          size_t *at)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "name", node->name,
                     "layer", node->layer, "kind",
                     cg_kind_get((int)node->kind)->name, "inputs",
                     write_numbers(node->inputs, node->input_count), "outputs",
                     write_numbers(node->outputs, node->output_count),
                     "attributes", cg_native_write_attributes(node), "weights",
                     write_weights(node, layout, at));
}

/* Appends to an array, which is gone after a failure. */
static bool append(json_t **array, json_t *item)
{
    if (*array != NULL && json_array_append_new(*array, item) == 0)
        return true;
    if (*array == NULL)
        json_decref(item);
    json_decref(*array);
    *array = NULL;
    return false;
}

/* What most models have not is not written. */
static json_t *write_input(const cg_input *input)
{
    return json_pack("{s:o, s:o, s:o*}", "value", write_number(input->value),
                     "mask", write_number(input->mask), "steps_first",
                     input->steps_first ? json_true() : NULL);
}

/* The numbers of the outputs whose steps come first, where there are any. */
static bool add_turned_outputs(json_t *graph, const cellgate_model *model)
{
    json_t *json = json_array();

    for (size_t i = 0; json != NULL && i < model->output_count; i++)
        if (model->output_steps_first[i] &&
            !append(&json, json_integer((json_int_t)i)))
            break;
    if (json != NULL && json_array_size(json) == 0) {
        json_decref(json);
        return true;
    }
    return json_object_set_new(graph, "steps_first_outputs", json) == 0;
}

/* By the numbers of the outputs that are not called as their values. */
static bool add_output_names(json_t *graph, const cellgate_model *model)
{
    json_t *json = json_object();
    char number[24];
    bool good = json != NULL;

    for (size_t i = 0; good && i < model->output_count; i++) {
        if (model->output_names[i] == NULL)
            continue;
        (void)snprintf(number, sizeof number, "%zu", i);
        good = json_object_set_new(json, number,
                                   json_string(model->output_names[i])) == 0;
    }
    if (good && json_object_size(json) > 0)
        return json_object_set_new(graph, "output_names", json) == 0;
    json_decref(json);
    return good;
}

static json_t *write_graph(const cellgate_model *model,
                           const cg_native_layout *layout)
{
    json_t *values = json_array(), *inputs = json_array();
    json_t *nodes = json_array(), *graph;
    size_t at = 0;

    for (size_t i = 0; i < model->value_count; i++)
        if (!append(&values, write_value(&model->values[i])))
            break;
    for (size_t i = 0; i < model->input_count; i++)
        if (!append(&inputs, write_input(&model->inputs[i])))
            break;
    for (size_t i = 0; i < model->node_count; i++)
        if (!append(&nodes, write_node(&model->nodes[i], layout, &at)))
            break;
    /* A NULL among them makes json_pack fail and release the others. */
    graph = json_pack(
        "{s:o, s:o, s:o, s:o}", "values", values, "inputs", inputs, "outputs",
        write_numbers(model->outputs, model->output_count), "nodes", nodes);
    if (graph == NULL ||
        (add_turned_outputs(graph, model) && add_output_names(graph, model)))
        return graph;
    json_decref(graph);
    return NULL;
}

/* ---- The header ---------------------------------------------------------- */

static bool add_tensor(json_t *header, const char *name, const char *dtype,
                       json_t *shape, uint64_t begin, uint64_t size)
{
    json_t *json = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape",
                             shape, "data_offsets", (json_int_t)begin,
                             (json_int_t)(begin + size));

    return json_object_set_new(header, name, json) == 0;
}

static bool add_tensors(json_t *header, const cg_native_layout *layout)
{
    uint64_t end = 0;
    size_t paddings = 0;

    for (size_t i = 0; i < layout->count; i++) {
        const cg_native_tensor *tensor = &layout->tensors[i];

        if (tensor->owner != i)
            continue;
        if (tensor->begin != end) {
            char name[40];

            (void)snprintf(name, sizeof name, "__padding_%zu__", paddings++);
            if (!add_tensor(header, name, "U8",
                            json_pack("[I]", (json_int_t)(tensor->begin - end)),
                            end, tensor->begin - end))
                return false;
        }
        if (!add_tensor(header, tensor->name, tensor->dtype,
                        write_shape(tensor->shape, tensor->rank), tensor->begin,
                        tensor->size))
            return false;
        end = tensor->begin + tensor->size;
    }
    return true;
}

static bool add_note(json_t *header, const cellgate_model *model)
{
    return model->note == NULL ||
           json_object_set_new(json_object_get(header, "__metadata__"), "note",
                               json_string(model->note)) == 0;
}

/* Adds the self-test's entry to the metadata, if there is one. */
static bool add_selftest(json_t *header, const cellgate_model *model,
                         const cg_native_layout *layout)
{
    json_t *json;
    char *text;
    bool added;

    if (model->selftest == NULL)
        return true;
    json = cg_native_write_selftest(model, layout);
    text = json != NULL ? cg_json_write(json) : NULL;
    added = text != NULL &&
            json_object_set_new(json_object_get(header, "__metadata__"),
                                "selftest", json_string(text)) == 0;
    free(text);
    json_decref(json);
    return added;
}

/* The text of the header, malloc'ed; NULL without memory. */
static char *make_header(const cellgate_model *model,
                         const cg_native_layout *layout)
{
    json_t *graph = write_graph(model, layout);
    char *graph_text = graph != NULL ? cg_json_write(graph) : NULL;
    json_t *header =
        graph_text != NULL
            ? json_pack("{s:{s:s, s:s, s:s, s:s}}", "__metadata__", "format",
                        CG_NATIVE_FORMAT, "format_version", CG_NATIVE_VERSION,
                        "fingerprint", model->fingerprint, "graph", graph_text)
            : NULL;
    char *text = NULL;

    if (header != NULL && add_note(header, model) &&
        add_selftest(header, model, layout) && add_tensors(header, layout))
        text = cg_json_write(header);
    json_decref(header);
    free(graph_text);
    json_decref(graph);
    return text;
}

/* ---- Writing ------------------------------------------------------------- */

static void write_data(FILE *stream, const cg_native_layout *layout)
{
    static const char zeros[CG_NATIVE_ALIGNMENT];
    uint64_t end = 0;

    for (size_t i = 0; i < layout->count; i++) {
        const cg_native_tensor *tensor = &layout->tensors[i];

        if (tensor->owner != i)
            continue;
        (void)fwrite(zeros, 1, (size_t)(tensor->begin - end), stream);
        (void)fwrite(tensor->data, 1, (size_t)tensor->size, stream);
        end = tensor->begin + tensor->size;
    }
}

/* Errors of the stream come out at the commit. */
static void write_file(FILE *stream, const char *header,
                       const cg_native_layout *layout)
{
    const size_t length = strlen(header);
    const size_t spaces =
        (CG_NATIVE_ALIGNMENT - (8 + length) % CG_NATIVE_ALIGNMENT) %
        CG_NATIVE_ALIGNMENT;
    const uint64_t size = length + spaces;

    (void)fwrite(&size, sizeof size, 1, stream);
    (void)fwrite(header, 1, length, stream);
    (void)fprintf(stream, "%*s", (int)spaces, "");
    write_data(stream, layout);
}

static cellgate_status write_model(const cellgate_model *model,
                                   const cg_native_layout *layout,
                                   const char *path, cellgate_error *error)
{
    char *header = make_header(model, layout);
    cg_atomic_file *file;
    cellgate_status status;

    if (header == NULL)
        return no_memory(error);
    if (strlen(header) > CG_SAFETENSORS_MAX_HEADER - CG_NATIVE_ALIGNMENT)
        status = cellgate_fail(error, CELLGATE_UNSUPPORTED,
                               "the graph is too large for the header of a "
                               "safetensors file");
    else
        status = cg_atomic_file_open(path, &file, error);
    if (status == CELLGATE_OK) {
        write_file(cg_atomic_file_stream(file), header, layout);
        status = cg_atomic_file_commit(file, error);
    }
    free(header);
    return status;
}

cellgate_status cg_native_write(const cellgate_model *model, const char *path,
                                cellgate_error *error)
{
    cg_native_layout layout = { 0 };
    cellgate_status status = cg_native_layout_init(&layout, model, error);

    if (status == CELLGATE_OK)
        status = write_model(model, &layout, path, error);
    cg_native_layout_finish(&layout);
    return status;
}
