/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wiring: models, and their layers' calls. Models inside models are built in
 * place, once a call, under names with a prefix; they share their weights.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_graph.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while wiring the layers");
}

/* ---- Layers -------------------------------------------------------------- */

static cellgate_status count_layer(cg_keras_reader *reader,
                                   cellgate_error *error)
{
    if (++reader->layers <= CG_KERAS_MAX_LAYERS)
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "the model has more than %d layers and calls",
                         CG_KERAS_MAX_LAYERS);
}

cellgate_status cg_keras_init_layer(cg_keras_graph *graph, size_t number,
                                    cg_keras_layer *layer, char **path,
                                    cellgate_error *error)
{
    const json_t *json = json_array_get(graph->layers, number);
    cellgate_status status = count_layer(graph->model->reader, error);

    *layer = (cg_keras_layer){ .reader = graph->model->reader,
                               .prefix = graph->model->prefix,
                               .depth = graph->model->depth,
                               .lead = graph->model->lead };
    if (status == CELLGATE_OK)
        status =
            cg_keras_layer_init(layer, json, number, graph->count,
                                graph->top ? NULL : graph->model->name, error);
    if (status == CELLGATE_OK)
        status = cg_keras_check_lead(layer, error);
    if (status != CELLGATE_OK)
        return status;
    *path = layer->class->flags & CG_KERAS_OPERATION
                ? strdup("")
                : cg_keras_path(graph->path_counts, graph->base, json);
    if (*path == NULL)
        return no_memory(error);
    layer->path = cg_keras_saved_path(layer->reader->shared, json, *path);
    if (json_object_get(graph->index, layer->name) != NULL)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "another layer has the same name");
    if (json_object_set_new(graph->index, layer->name,
                            json_integer((json_int_t)number)) != 0)
        return no_memory(error);
    return CELLGATE_OK;
}

cellgate_status cg_keras_run_call(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    const size_t size = strlen(layer->prefix) + strlen(layer->name) + 1;
    cellgate_status status = count_layer(layer->reader, error);
    char *wanted;

    if (status != CELLGATE_OK)
        return status;
    wanted = malloc(size);
    if (wanted == NULL)
        return no_memory(error);
    (void)snprintf(wanted, size, "%s%s", layer->prefix, layer->name);
    call->name = cg_keras_unique_name(layer->reader, wanted);
    free(wanted);
    if (call->name == NULL)
        return no_memory(error);
    return cg_keras_run_in_order(call, error);
}

/* ---- Models -------------------------------------------------------------- */

/* `inputs` NULL: the model at the top. */
static cellgate_status build_model(const cg_keras_layer *model, char *base,
                                   const cg_keras_list *inputs,
                                   cg_keras_list *outputs,
                                   cellgate_error *error)
{
    cg_keras_graph graph = { .model = model,
                             .top = inputs == NULL,
                             .layers = json_object_get(model->config, "layers"),
                             .base = base };
    cellgate_status status;

    graph.count = json_array_size(graph.layers);
    if (graph.count == 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, model,
                             "the model has no layers");
    graph.path_counts = json_object();
    graph.index = json_object();
    if (graph.path_counts == NULL || graph.index == NULL)
        status = no_memory(error);
    else if (strcmp(model->class_name, "Sequential") == 0)
        status = cg_keras_build_sequential(&graph, inputs, outputs, error);
    else
        status = cg_keras_build_functional(&graph, inputs, outputs, error);
    json_decref(graph.path_counts);
    json_decref(graph.index);
    return status;
}

/* mask= of a model belongs to its inputs. */
static cellgate_status mask_inputs(const cg_keras_call *call,
                                   cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (call->masks.count != 0 && call->masks.count != call->inputs.count)
        status = cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                               "it is called on %zu tensors with %zu masks",
                               call->inputs.count, call->masks.count);
    for (size_t i = 0; status == CELLGATE_OK && i < call->masks.count; i++)
        if (call->masks.items[i].value != CG_NO_VALUE)
            status = cg_keras_make_mask(call, &call->masks.items[i],
                                        &call->inputs.items[i].mask, error);
    return status;
}

cellgate_status cg_keras_build_model(cg_keras_call *call, cellgate_error *error)
{
    cg_keras_layer model = *call->layer;
    const size_t path_size = strlen(model.path) + sizeof "/layers/";
    const size_t prefix_size = strlen(call->name) + sizeof "/";
    char *base, *prefix;
    cellgate_status status = mask_inputs(call, error);

    if (status != CELLGATE_OK)
        return status;
    if (++model.depth > CG_KERAS_MAX_DEPTH)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, &model,
                             "models are nested more than %d deep",
                             CG_KERAS_MAX_DEPTH);
    if (call->states.count != 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, &model,
                             "a model takes no initial_state");
    base = malloc(path_size);
    prefix = malloc(prefix_size);
    if (base == NULL || prefix == NULL) {
        status = no_memory(error);
    } else {
        (void)snprintf(base, path_size, "%s/layers/", model.path);
        (void)snprintf(prefix, prefix_size, "%s/", call->name);
        model.prefix = prefix;
        status =
            build_model(&model, base, &call->inputs, &call->outputs, error);
    }
    free(base);
    free(prefix);
    return status;
}

static cellgate_status init_top(cg_keras_layer *top, const json_t *json,
                                cellgate_error *error)
{
    const char *name;

    top->json = json;
    top->config = json_object_get(json, "config");
    top->class = cg_keras_find_class(json);
    top->class_name = json_string_value(json_object_get(json, "class_name"));
    name = json_string_value(json_object_get(top->config, "name"));
    top->name = name != NULL ? name : "model";
    if (top->class_name == NULL || !json_is_object(top->config))
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "config.json lacks the model's class_name or "
                             "config");
    (void)snprintf(top->place, sizeof top->place, "the model '%.60s' (%.60s)",
                   top->name, top->class_name);
    if (top->class == NULL || !(top->class->flags & CG_KERAS_MODEL))
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, top,
                             "only Sequential and functional models are "
                             "supported; a subclassed model's structure is in "
                             "its code, not in the file");
    return cg_keras_check_policy(top, error);
}

/* ---- Outputs of the model at the top ------------------------------------- */

/* Where the model gives a dictionary of tensors, in the order of its keys. */
static bool is_dictionary(const json_t *outputs, size_t count)
{
    const char *key;
    json_t *value;

    if (!json_is_object(outputs) || json_object_size(outputs) != count)
        return false;
    json_object_foreach(
        (json_t *)(uintptr_t)outputs, key,
        value) if (!cg_keras_is_tensor_name(value)) return false;
    return true;
}

/* The key where there is one; a name that another output has gets a number. */
static cellgate_status name_output(cellgate_model *model, json_t *used,
                                   const char *key, cellgate_error *error)
{
    const int32_t value = model->outputs[model->output_count - 1];
    const char *wanted = key != NULL ? key : model->values[value].name;
    const size_t size = strlen(wanted) + 24;
    char *name = malloc(size);
    json_int_t number = 1;
    cellgate_status status = CELLGATE_OK;

    if (name == NULL)
        return no_memory(error);
    (void)snprintf(name, size, "%s", wanted);
    number = json_integer_value(json_object_get(used, wanted));
    while (json_object_get(used, name) != NULL)
        (void)snprintf(name, size, "%s_%lld", wanted, (long long)++number);
    if (json_object_set_new(used, name, json_integer(1)) != 0 ||
        json_object_set_new(used, wanted,
                            json_integer(number > 1 ? number : 1)) != 0)
        status = no_memory(error);
    if (status == CELLGATE_OK && strcmp(name, model->values[value].name) != 0)
        status = cg_model_name_output(model, name, error);
    free(name);
    return status;
}

static cellgate_status add_output(const cg_keras_layer *top,
                                  const cg_keras_tensor *output, json_t *used,
                                  const char *key, cellgate_error *error)
{
    cellgate_model *model = top->reader->model;
    cellgate_status status;

    if (output->compared || output->stands != CG_KERAS_ITSELF ||
        model->values[output->value].dtype == CELLGATE_U8)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, top,
                             "a mask as an output is not supported");
    status = cg_model_add_output(model, output->value, error);
    if (status == CELLGATE_OK && output->turned)
        status = cg_model_turn_output(model, error);
    return status == CELLGATE_OK ? name_output(model, used, key, error)
                                 : status;
}

static cellgate_status add_outputs(const cg_keras_layer *top,
                                   const cg_keras_list *outputs,
                                   cellgate_error *error)
{
    const json_t *tree = json_object_get(top->config, "output_layers");
    const bool named = is_dictionary(tree, outputs->count);
    const char **keys = named ? cg_keras_sorted_keys(tree) : NULL;
    json_t *used = json_object();
    cellgate_status status = CELLGATE_OK;

    if (used == NULL || (named && keys == NULL))
        status = no_memory(error);
    for (size_t i = 0; status == CELLGATE_OK && i < outputs->count; i++)
        status = add_output(top, &outputs->items[i], used,
                            named ? keys[i] : NULL, error);
    json_decref(used);
    free(keys);
    return status;
}

cellgate_status cg_keras_build_top(cg_keras_reader *reader, const json_t *json,
                                   cellgate_error *error)
{
    cg_keras_layer top = { .reader = reader, .prefix = "", .path = "" };
    char base[] = "layers/";
    cg_keras_list outputs = { 0 };
    cellgate_status status = init_top(&top, json, error);

    if (status == CELLGATE_OK)
        status = build_model(&top, base, NULL, &outputs, error);
    if (status == CELLGATE_OK)
        status = add_outputs(&top, &outputs, error);
    cg_keras_list_finish(&outputs);
    return status;
}
