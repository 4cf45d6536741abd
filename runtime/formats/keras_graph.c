/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wiring: which layer is called on what. Models inside models are built in
 * place, once a call, under names with a prefix; they share their weights.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras.h"

/* A layer of a functional model, and the results of its calls so far. */
typedef struct graph_entry {
    cg_keras_layer layer;
    char *path;
    cg_keras_list *calls;
    size_t call_count;
    int64_t first_call; /* what [layer, call, tensor] counts its calls from */
    size_t done;        /* of its inbound nodes */
} graph_entry;

/* A model while its layers are called. */
typedef struct keras_graph {
    const cg_keras_layer *model; /* as a layer; at the top, a stand-in */
    bool top;
    const json_t *layers;
    size_t count;
    char *base; /* of its layers' paths: "layers/" */
    json_t *path_counts;
    /* functional models only */
    graph_entry *entries;
    json_t *index; /* name -> number of its entry */
} keras_graph;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while wiring the layers");
}

/* ---- Structures of tensors ----------------------------------------------- */

/* A tensor in the file: output `tensor` of call `call` of the layer `name`. */
typedef struct tensor_name {
    const char *layer;
    int64_t call, tensor;
    /* Of a __keras_tensor__: there, calls of every layer are counted from 0. */
    bool is_history;
} tensor_name;

typedef cellgate_status (*leaf_visitor)(void *context, const tensor_name *name,
                                        cellgate_error *error);

static bool is_leaf(const json_t *json)
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

static cellgate_status visit_leaves(const json_t *json, leaf_visitor visit,
                                    void *context, cellgate_error *error);

/* Keras takes the entries of a dictionary in the order of their keys. */
static cellgate_status visit_dictionary(const json_t *json, leaf_visitor visit,
                                        void *context, cellgate_error *error)
{
    const size_t count = json_object_size(json);
    const char **keys = malloc((count + 1) * sizeof *keys);
    const char *key;
    json_t *value;
    size_t i = 0;
    cellgate_status status = CELLGATE_OK;

    if (keys == NULL)
        return no_memory(error);
    json_object_foreach((json_t *)(uintptr_t)json, key, value) keys[i++] = key;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (i = 0; status == CELLGATE_OK && i < count; i++)
        status =
            visit_leaves(json_object_get(json, keys[i]), visit, context, error);
    free(keys);
    return status;
}

static cellgate_status visit_leaves(const json_t *json, leaf_visitor visit,
                                    void *context, cellgate_error *error)
{
    const char *class_name =
        json_string_value(json_object_get(json, "class_name"));
    const json_t *config = json_object_get(json, "config");
    const bool is_history =
        class_name != NULL && strcmp(class_name, "__keras_tensor__") == 0;
    cellgate_status status = CELLGATE_OK;

    if (is_history) {
        json = json_object_get(config, "keras_history");
        if (!is_leaf(json))
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "config.json: a tensor has no keras_history");
    } else if (class_name != NULL && strcmp(class_name, "__tuple__") == 0) {
        json = config;
    } else if (json_is_object(json)) {
        return visit_dictionary(json, visit, context, error);
    }
    if (is_leaf(json)) {
        const tensor_name name = { json_string_value(json_array_get(json, 0)),
                                   json_integer_value(json_array_get(json, 1)),
                                   json_integer_value(json_array_get(json, 2)),
                                   is_history };

        return visit(context, &name, error);
    }
    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(json); i++)
        status = visit_leaves(json_array_get(json, i), visit, context, error);
    return status;
}

/* ---- Inputs -------------------------------------------------------------- */

static cellgate_status read_shape(const cg_keras_layer *layer,
                                  const json_t *json, int32_t *rank,
                                  int64_t *shape, cellgate_error *error)
{
    const size_t size = json_array_size(json);

    if (!json_is_array(json) || size < 1 || size > CELLGATE_MAX_RANK)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "it does not say the shape of its input, of 1 to "
                             "%d axes",
                             CELLGATE_MAX_RANK);
    for (size_t axis = 0; axis < size; axis++) {
        const json_t *extent = json_array_get(json, axis);

        if (!json_is_null(extent) &&
            (!json_is_integer(extent) || json_integer_value(extent) < 1 ||
             json_integer_value(extent) > CG_MAX_SIZE))
            return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                                 "axis %zu of its input has no usable extent",
                                 axis);
        /* A batch size in the file is what training used. */
        shape[axis] = axis == 0 || json_is_null(extent)
                          ? CG_UNKNOWN
                          : json_integer_value(extent);
    }
    *rank = (int32_t)size;
    return CELLGATE_OK;
}

static const json_t *input_shape(const json_t *config)
{
    const json_t *shape = json_object_get(config, "batch_shape");

    return shape != NULL ? shape : json_object_get(config, "batch_input_shape");
}

static int32_t input_dtype(const json_t *config)
{
    const char *dtype = json_string_value(json_object_get(config, "dtype"));

    if (dtype == NULL)
        return CELLGATE_F32;
    if (strncmp(dtype, "int", 3) == 0 || strncmp(dtype, "uint", 4) == 0)
        return CELLGATE_I32;
    return strcmp(dtype, "bool") == 0 ? CELLGATE_U8 : CELLGATE_F32;
}

/* A model input for a layer of the model at the top. */
static cellgate_status add_top_input(const cg_keras_layer *layer,
                                     const json_t *shape_json, int32_t dtype,
                                     cg_keras_tensor *tensor,
                                     cellgate_error *error)
{
    int64_t shape[CELLGATE_MAX_RANK];
    int32_t rank = 0;
    const char *name;
    cellgate_status status = read_shape(layer, shape_json, &rank, shape, error);

    if (status != CELLGATE_OK)
        return status;
    name = cg_keras_unique_name(layer->reader, layer->name);
    if (name == NULL)
        return no_memory(error);
    return cg_keras_add_input(layer->reader, name, dtype, rank, shape, tensor,
                              error);
}

/* ---- Layers -------------------------------------------------------------- */

static cellgate_status init_layer(keras_graph *graph, size_t number,
                                  cg_keras_layer *layer, char **path,
                                  cellgate_error *error)
{
    const json_t *json = json_array_get(graph->layers, number);
    cellgate_status status;

    *layer = (cg_keras_layer){ .reader = graph->model->reader,
                               .prefix = graph->model->prefix,
                               .depth = graph->model->depth };
    status = cg_keras_layer_init(layer, json, number, graph->count,
                                 graph->top ? NULL : graph->model->name, error);
    if (status != CELLGATE_OK)
        return status;
    *path = layer->class->flags & CG_KERAS_OPERATION
                ? strdup("")
                : cg_keras_path(graph->path_counts, graph->base, json);
    if (*path == NULL)
        return no_memory(error);
    layer->path = cg_keras_saved_path(layer->reader, json, *path);
    return CELLGATE_OK;
}

/* Runs the builder of a call whose inputs are set; the outputs are the
   caller's to finish, in every case. */
static cellgate_status run_call(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    const size_t size = strlen(layer->prefix) + strlen(layer->name) + 1;
    char *wanted;

    if (++layer->reader->calls > CG_KERAS_MAX_CALLS)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the model has more than %d layers",
                             CG_KERAS_MAX_CALLS);
    wanted = malloc(size);
    if (wanted == NULL)
        return no_memory(error);
    (void)snprintf(wanted, size, "%s%s", layer->prefix, layer->name);
    call->name = cg_keras_unique_name(layer->reader, wanted);
    free(wanted);
    if (call->name == NULL)
        return no_memory(error);
    return layer->class->build(call, error);
}

/* ---- Sequential ---------------------------------------------------------- */

static cellgate_status call_on(const cg_keras_layer *layer,
                               cg_keras_tensor *tensor, cellgate_error *error)
{
    cg_keras_call call = { .layer = layer, .mask.value = CG_NO_VALUE };
    cellgate_status status = cg_keras_list_add(&call.inputs, *tensor, error);

    if (status == CELLGATE_OK)
        status = run_call(&call, error);
    if (status == CELLGATE_OK && call.outputs.count != 1)
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                               "it has %zu outputs, which a Sequential model "
                               "cannot pass on",
                               call.outputs.count);
    if (status == CELLGATE_OK)
        *tensor = call.outputs.items[0];
    cg_keras_list_finish(&call.inputs);
    cg_keras_list_finish(&call.states);
    cg_keras_list_finish(&call.outputs);
    return status;
}

/* Without an InputLayer, the first layer or the model itself says the shape. */
static cellgate_status add_sequential_input(const keras_graph *graph,
                                            cg_keras_tensor *tensor,
                                            cellgate_error *error)
{
    const json_t *first = json_array_get(graph->layers, 0);
    const json_t *config = json_object_get(first, "config");
    const char *class_name =
        json_string_value(json_object_get(first, "class_name"));
    const json_t *shape = input_shape(config);
    cg_keras_layer layer = *graph->model;
    const char *name = json_string_value(json_object_get(config, "name"));
    int32_t dtype = CELLGATE_F32;

    if (shape == NULL)
        shape = json_object_get(graph->model->config, "build_input_shape");
    if (class_name != NULL && strcmp(class_name, "InputLayer") == 0) {
        layer.name = name != NULL ? name : "input";
        dtype = input_dtype(config);
    } else {
        layer.name = "input";
    }
    return add_top_input(&layer, shape, dtype, tensor, error);
}

static cellgate_status build_sequential(keras_graph *graph,
                                        const cg_keras_list *inputs,
                                        cg_keras_list *outputs,
                                        cellgate_error *error)
{
    cg_keras_tensor tensor;
    cellgate_status status = CELLGATE_OK;

    if (inputs != NULL && inputs->count != 1)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, graph->model,
                             "it is called on %zu tensors; it takes one",
                             inputs->count);
    if (inputs != NULL)
        tensor = inputs->items[0];
    else
        status = add_sequential_input(graph, &tensor, error);
    for (size_t i = 0; status == CELLGATE_OK && i < graph->count; i++) {
        cg_keras_layer layer;
        char *path = NULL;

        status = init_layer(graph, i, &layer, &path, error);
        if (status == CELLGATE_OK &&
            !(i == 0 && (layer.class->flags & CG_KERAS_INPUT)))
            status = call_on(&layer, &tensor, error);
        free(path);
    }
    return status == CELLGATE_OK ? cg_keras_list_add(outputs, tensor, error)
                                 : status;
}

/* ---- Functional ---------------------------------------------------------- */

static graph_entry *find_entry(const keras_graph *graph, const char *name)
{
    const json_t *number = json_object_get(graph->index, name);

    return number != NULL ? &graph->entries[json_integer_value(number)] : NULL;
}

static cellgate_status init_entry(keras_graph *graph, size_t number,
                                  cellgate_error *error)
{
    graph_entry *entry = &graph->entries[number];
    const cg_keras_layer *layer = &entry->layer;
    cellgate_status status =
        init_layer(graph, number, &entry->layer, &entry->path, error);

    if (status != CELLGATE_OK)
        return status;
    if (json_object_get(graph->index, layer->name) != NULL)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "another layer has the same name");
    /* A functional model has a call of its own making before any other. */
    if (layer->class->flags & CG_KERAS_MODEL)
        entry->first_call = strcmp(layer->class_name, "Sequential") != 0 ||
                            layer->reader->keras_major < 3;
    if (json_object_set_new(graph->index, layer->name,
                            json_integer((json_int_t)number)) != 0)
        return no_memory(error);
    return CELLGATE_OK;
}

static cellgate_status add_result(graph_entry *entry, cg_keras_list outputs,
                                  cellgate_error *error)
{
    cg_keras_list *calls =
        realloc(entry->calls, (entry->call_count + 1) * sizeof *calls);

    if (calls == NULL)
        return no_memory(error);
    entry->calls = calls;
    entry->calls[entry->call_count++] = outputs;
    return CELLGATE_OK;
}

/* Into a list: what a tensor of the file stands for. END: not made yet. */
typedef struct resolving {
    const keras_graph *graph;
    cg_keras_list *list;
} resolving;

static cellgate_status resolve(void *context, const tensor_name *name,
                               cellgate_error *error)
{
    const resolving *to = context;
    const graph_entry *entry = find_entry(to->graph, name->layer);
    int64_t index;

    if (entry == NULL)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, to->graph->model,
                             "there is no layer '%.60s'", name->layer);
    if (name->call < 0 || name->call > INT32_MAX)
        index = -1;
    else
        index = name->call - (name->is_history ? 0 : entry->first_call);
    if (index < 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, &entry->layer,
                             "call number %lld is not in the file",
                             (long long)name->call);
    if ((size_t)index >= entry->call_count)
        return CELLGATE_END;
    if (name->tensor < 0 || (size_t)name->tensor >= entry->calls[index].count)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, &entry->layer,
                             "it has no output number %lld",
                             (long long)name->tensor);
    return cg_keras_list_add(to->list, entry->calls[index].items[name->tensor],
                             error);
}

static cellgate_status resolve_all(const keras_graph *graph, const json_t *json,
                                   cg_keras_list *list, cellgate_error *error)
{
    resolving to = { graph, list };

    return visit_leaves(json, resolve, &to, error);
}

/* mask=: one tensor, or none. */
static cellgate_status read_mask(const keras_graph *graph, cg_keras_call *call,
                                 const json_t *json, cellgate_error *error)
{
    cg_keras_list list = { 0 };
    cellgate_status status = resolve_all(graph, json, &list, error);

    if (status == CELLGATE_OK && list.count > 1)
        status = cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                               "more than one mask is not supported");
    if (status == CELLGATE_OK && list.count == 1)
        call->mask = list.items[0];
    cg_keras_list_finish(&list);
    return status;
}

static cellgate_status read_keyword(const keras_graph *graph,
                                    cg_keras_call *call, const char *key,
                                    const json_t *value, cellgate_error *error)
{
    if (strcmp(key, "training") == 0 || json_is_null(value) ||
        json_is_false(value))
        return CELLGATE_OK;
    if (strcmp(key, "mask") == 0)
        return read_mask(graph, call, value, error);
    if (strcmp(key, "initial_state") == 0)
        return resolve_all(graph, value, &call->states, error);
    if (strcmp(key, "inputs") == 0 || strcmp(key, "sequences") == 0 ||
        strcmp(key, "x") == 0)
        return resolve_all(graph, value, &call->inputs, error);
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                         "it is called with %.40s=, which is not supported",
                         key);
}

static cellgate_status read_keywords(const keras_graph *graph,
                                     cg_keras_call *call,
                                     const json_t *keywords,
                                     cellgate_error *error)
{
    const char *key;
    json_t *value;
    cellgate_status status = CELLGATE_OK;

    json_object_foreach((json_t *)(uintptr_t)keywords, key, value)
    {
        status = read_keyword(graph, call, key, value, error);
        if (status != CELLGATE_OK)
            break;
    }
    return status;
}

/*
 * A call as Keras 3 writes it, {"args": ..., "kwargs": ...}, or as Keras 2
 * does, [[layer, call, tensor, kwargs], ...].
 */
static cellgate_status read_call(const keras_graph *graph, const json_t *node,
                                 cg_keras_call *call, cellgate_error *error)
{
    cellgate_status status;

    if (json_is_object(node)) {
        call->args = json_object_get(node, "args");
        status = resolve_all(graph, call->args, &call->inputs, error);
        if (status == CELLGATE_OK)
            status = read_keywords(graph, call, json_object_get(node, "kwargs"),
                                   error);
        return status;
    }
    status = resolve_all(graph, node, &call->inputs, error);
    for (size_t i = 0;
         status == CELLGATE_OK && !is_leaf(node) && i < json_array_size(node);
         i++)
        status = read_keywords(
            graph, call, json_array_get(json_array_get(node, i), 3), error);
    return status;
}

static cellgate_status process_call(const keras_graph *graph,
                                    graph_entry *entry, const json_t *node,
                                    cellgate_error *error)
{
    cg_keras_call call = { .layer = &entry->layer, .mask.value = CG_NO_VALUE };
    cellgate_status status = read_call(graph, node, &call, error);

    if (status == CELLGATE_OK)
        status = run_call(&call, error);
    if (status == CELLGATE_OK)
        status = add_result(entry, call.outputs, error);
    if (status != CELLGATE_OK)
        cg_keras_list_finish(&call.outputs);
    cg_keras_list_finish(&call.inputs);
    cg_keras_list_finish(&call.states);
    return status;
}

/* Calls what can be called by now; *progress and *waiting tell how it went. */
static cellgate_status sweep(const keras_graph *graph, bool *progress,
                             const graph_entry **waiting, cellgate_error *error)
{
    *progress = false;
    *waiting = NULL;
    for (size_t i = 0; i < graph->count; i++) {
        graph_entry *entry = &graph->entries[i];
        const json_t *inbound =
            json_object_get(entry->layer.json, "inbound_nodes");

        while (entry->done < json_array_size(inbound)) {
            const cellgate_status status = process_call(
                graph, entry, json_array_get(inbound, entry->done), error);

            if (status == CELLGATE_END) {
                *waiting = entry;
                break;
            }
            if (status != CELLGATE_OK)
                return status;
            entry->done++;
            *progress = true;
        }
    }
    return CELLGATE_OK;
}

/* In the order of the file, again and again: a layer may be shared by places at
   different depths. */
static cellgate_status call_layers(const keras_graph *graph,
                                   cellgate_error *error)
{
    const graph_entry *waiting = NULL;

    for (int i = 0; i < CG_KERAS_MAX_SWEEPS; i++) {
        bool progress;
        const cellgate_status status = sweep(graph, &progress, &waiting, error);

        if (status != CELLGATE_OK || waiting == NULL)
            return status;
        if (!progress)
            break;
    }
    return cg_keras_fail(error, CELLGATE_BAD_FILE, &waiting->layer,
                         "its inputs are never made: the graph has a cycle or "
                         "a gap");
}

/* Binding the model's inputs to its InputLayers, in order. */
typedef struct binding {
    keras_graph *graph;
    const cg_keras_list *given; /* NULL at the top */
    size_t bound;
} binding;

static cellgate_status bind_input(void *context, const tensor_name *name,
                                  cellgate_error *error)
{
    binding *to = context;
    graph_entry *entry = find_entry(to->graph, name->layer);
    cg_keras_list result = { 0 };
    cg_keras_tensor value;
    cellgate_status status = CELLGATE_OK;

    if (entry == NULL || !(entry->layer.class->flags & CG_KERAS_INPUT) ||
        entry->call_count != 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, to->graph->model,
                             "'%.60s' is not an input layer that can be an "
                             "input of the model",
                             name->layer);
    if (to->given == NULL)
        status = add_top_input(&entry->layer, input_shape(entry->layer.config),
                               input_dtype(entry->layer.config), &value, error);
    else if (to->bound < to->given->count)
        value = to->given->items[to->bound];
    else
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, to->graph->model,
                               "it is called on %zu tensors; it takes more",
                               to->given->count);
    if (status == CELLGATE_OK)
        status = cg_keras_list_add(&result, value, error);
    if (status == CELLGATE_OK)
        status = add_result(entry, result, error);
    if (status != CELLGATE_OK)
        cg_keras_list_finish(&result);
    to->bound++;
    return status;
}

static cellgate_status bind_inputs(keras_graph *graph,
                                   const cg_keras_list *inputs,
                                   cellgate_error *error)
{
    binding to = { graph, inputs, 0 };
    cellgate_status status =
        visit_leaves(json_object_get(graph->model->config, "input_layers"),
                     bind_input, &to, error);

    if (status == CELLGATE_OK && inputs != NULL && to.bound != inputs->count)
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, graph->model,
                               "it is called on %zu tensors; it takes %zu",
                               inputs->count, to.bound);
    return status;
}

static void finish_entries(keras_graph *graph)
{
    for (size_t i = 0; graph->entries != NULL && i < graph->count; i++) {
        graph_entry *entry = &graph->entries[i];

        for (size_t j = 0; j < entry->call_count; j++)
            cg_keras_list_finish(&entry->calls[j]);
        free(entry->calls);
        free(entry->path);
    }
    free(graph->entries);
    json_decref(graph->index);
}

static cellgate_status build_functional(keras_graph *graph,
                                        const cg_keras_list *inputs,
                                        cg_keras_list *outputs,
                                        cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    graph->index = json_object();
    graph->entries = calloc(graph->count + 1, sizeof *graph->entries);
    if (graph->index == NULL || graph->entries == NULL)
        status = no_memory(error);
    for (size_t i = 0; status == CELLGATE_OK && i < graph->count; i++)
        status = init_entry(graph, i, error);
    if (status == CELLGATE_OK)
        status = bind_inputs(graph, inputs, error);
    if (status == CELLGATE_OK)
        status = call_layers(graph, error);
    if (status == CELLGATE_OK)
        status = resolve_all(
            graph, json_object_get(graph->model->config, "output_layers"),
            outputs, error);
    if (status == CELLGATE_END)
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, graph->model,
                               "an output of the model is never made");
    finish_entries(graph);
    return status;
}

/* ---- Models -------------------------------------------------------------- */

/* `inputs` NULL: the model at the top. */
static cellgate_status build_model(const cg_keras_layer *model, char *base,
                                   const cg_keras_list *inputs,
                                   cg_keras_list *outputs,
                                   cellgate_error *error)
{
    keras_graph graph = { .model = model,
                          .top = inputs == NULL,
                          .layers = json_object_get(model->config, "layers"),
                          .base = base };
    cellgate_status status;

    graph.count = json_array_size(graph.layers);
    if (graph.count == 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, model,
                             "the model has no layers");
    graph.path_counts = json_object();
    if (graph.path_counts == NULL)
        return no_memory(error);
    status = strcmp(model->class_name, "Sequential") == 0
                 ? build_sequential(&graph, inputs, outputs, error)
                 : build_functional(&graph, inputs, outputs, error);
    json_decref(graph.path_counts);
    return status;
}

/* mask= of a model belongs to its inputs. */
static cellgate_status mask_inputs(cg_keras_call *call, cellgate_error *error)
{
    if (call->mask.value == CG_NO_VALUE)
        return CELLGATE_OK;
    if (call->inputs.count != 1)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "a mask for a model of several inputs is not "
                             "supported");
    return cg_keras_make_mask(call, &call->mask, &call->inputs.items[0].mask,
                              error);
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

cellgate_status cg_keras_build_top(cg_keras_reader *reader, const json_t *json,
                                   cellgate_error *error)
{
    cg_keras_layer top = { .reader = reader, .prefix = "", .path = "" };
    char base[] = "layers/";
    cg_keras_list outputs = { 0 };
    cellgate_status status = init_top(&top, json, error);

    if (status == CELLGATE_OK)
        status = build_model(&top, base, NULL, &outputs, error);
    for (size_t i = 0; status == CELLGATE_OK && i < outputs.count; i++) {
        const cg_keras_tensor *output = &outputs.items[i];

        if (output->compared ||
            reader->model->values[output->value].dtype == CELLGATE_U8)
            status = cg_keras_fail(error, CELLGATE_UNSUPPORTED, &top,
                                   "a mask as an output is not supported");
        else
            status = cg_model_add_output(reader->model, output->value, error);
    }
    cg_keras_list_finish(&outputs);
    return status;
}
