/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functional models: layers name what they are called on, and are called as
 * soon as that is there.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_graph.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while wiring the layers");
}

static cg_keras_entry *find_entry(const cg_keras_graph *graph, const char *name)
{
    const json_t *number = json_object_get(graph->index, name);

    return number != NULL ? &graph->entries[json_integer_value(number)] : NULL;
}

static cellgate_status init_entry(cg_keras_graph *graph, size_t number,
                                  cellgate_error *error)
{
    cg_keras_entry *entry = &graph->entries[number];
    const cg_keras_layer *layer = &entry->layer;
    cellgate_status status =
        cg_keras_init_layer(graph, number, &entry->layer, &entry->path, error);

    if (status != CELLGATE_OK)
        return status;
    /* A functional model has a call of its own making before any other. */
    if (layer->class->flags & CG_KERAS_MODEL)
        entry->first_call = strcmp(layer->class_name, "Sequential") != 0 ||
                            layer->reader->keras_major < 3;
    return CELLGATE_OK;
}

static cellgate_status add_result(cg_keras_entry *entry, cg_keras_list outputs,
                                  cellgate_error *error)
{
    if (entry->call_count == entry->call_room) {
        const size_t room = 2 * entry->call_room + 2;
        cg_keras_list *calls = realloc(entry->calls, room * sizeof *calls);

        if (calls == NULL)
            return no_memory(error);
        entry->calls = calls;
        entry->call_room = room;
    }
    entry->calls[entry->call_count++] = outputs;
    return CELLGATE_OK;
}

/* Into a list: what a tensor of the file stands for. END: not made yet. */
typedef struct resolving {
    const cg_keras_graph *graph;
    cg_keras_list *list;
} resolving;

static cellgate_status resolve(void *context, const cg_keras_tensor_name *name,
                               cellgate_error *error)
{
    const resolving *to = context;
    const cg_keras_entry *entry = find_entry(to->graph, name->layer);
    int64_t index;

    if (++to->graph->model->reader->lookups > CG_KERAS_MAX_LOOKUPS)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, to->graph->model,
                             "its layers are called on too many tensors, or "
                             "stand in no order in which they can be called");
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

static cellgate_status resolve_all(const cg_keras_graph *graph,
                                   const json_t *json, cg_keras_list *list,
                                   cellgate_error *error)
{
    resolving to = { graph, list };

    return cg_keras_visit_tensors(json, resolve, &to, error);
}

static cellgate_status resolve_mask(void *context,
                                    const cg_keras_tensor_name *name,
                                    cellgate_error *error)
{
    const cg_keras_tensor none = { .value = CG_NO_VALUE, .mask = CG_NO_VALUE };
    const resolving *to = context;

    return name == NULL ? cg_keras_list_add(to->list, none, error)
                        : resolve(context, name, error);
}

/* A list or dictionary of masks, in which null is for a tensor without one. */
static cellgate_status read_masks(const cg_keras_graph *graph,
                                  cg_keras_call *call, const json_t *json,
                                  cellgate_error *error)
{
    resolving to = { graph, &call->masks };

    return cg_keras_visit_nulls_too(json, resolve_mask, &to, error);
}

/* mask=: one tensor, or none. */
static cellgate_status read_mask(const cg_keras_graph *graph,
                                 cg_keras_call *call, const json_t *json,
                                 cellgate_error *error)
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

/* Keras 2 keeps training= of a call at predict(); Keras 3 does not. What does
   the same in both is let through. */
static cellgate_status check_training(const cg_keras_call *call,
                                      const json_t *value,
                                      cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    const double dropped =
        json_number_value(json_object_get(layer->config, "dropout")) +
        json_number_value(json_object_get(layer->config, "recurrent_dropout"));

    if (layer->reader->keras_major >= 3 || cg_keras_truth(value) != 1 ||
        (layer->class->build == cg_keras_build_recurrent && dropped == 0))
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "it is called with training=True, so it behaves as in "
                         "training also when it predicts; call it without, and "
                         "save the model again");
}

/* Whether the layer heeds mask=. */
static bool takes_mask(const cg_keras_class *class)
{
    return class->build == cg_keras_build_recurrent ||
           class->build == cg_keras_build_bidirectional ||
           class->build == cg_keras_build_attention ||
           class->build == cg_keras_build_time_distributed ||
           strcmp(class->name, "GlobalAveragePooling1D") == 0 ||
           class->build == cg_keras_build_model;
}

static cellgate_status read_keyword(const cg_keras_graph *graph,
                                    cg_keras_call *call, const char *key,
                                    const json_t *value, cellgate_error *error)
{
    const uint32_t flags = call->layer->class->flags;
    const bool attends = (flags & CG_KERAS_ATTENDS) != 0;

    if (strcmp(key, "training") == 0)
        return check_training(call, value, error);
    if (json_is_null(value) || cg_keras_truth(value) == 0)
        return CELLGATE_OK;
    if (strcmp(key, "mask") == 0 &&
        (flags & CG_KERAS_MODEL ||
         (attends && json_is_array(value) && !cg_keras_is_tensor_name(value))))
        return read_masks(graph, call, value, error);
    if (strcmp(key, "mask") == 0)
        return read_mask(graph, call, value, error);
    if (attends && cg_keras_truth(value) == 1 &&
        strcmp(key, "use_causal_mask") == 0) {
        call->causal = true;
        return CELLGATE_OK;
    }
    if (attends && cg_keras_truth(value) == 1 &&
        strcmp(key, "return_attention_scores") == 0) {
        call->scores = true;
        return CELLGATE_OK;
    }
    if (strcmp(key, "initial_state") == 0)
        return resolve_all(graph, value, &call->states, error);
    if (strcmp(key, "inputs") == 0 || strcmp(key, "sequences") == 0 ||
        strcmp(key, "x") == 0)
        return resolve_all(graph, value, &call->inputs, error);
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                         "it is called with %.40s=, which is not supported",
                         key);
}

static cellgate_status read_keywords(const cg_keras_graph *graph,
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

/* What the call's inputs say of it in Keras 2, [layer, call, tensor, {...}]:
   each of them says the same. */
static cellgate_status find_keywords(const cg_keras_call *call,
                                     const json_t *node,
                                     const json_t **keywords,
                                     cellgate_error *error)
{
    *keywords = NULL;
    if (json_is_string(json_array_get(node, 0)))
        *keywords = json_array_get(node, 3);
    else
        for (size_t i = 0; i < json_array_size(node); i++) {
            const json_t *one = json_array_get(json_array_get(node, i), 3);

            if (json_object_size(one) == 0)
                continue;
            if (*keywords == NULL)
                *keywords = one;
            else if (!json_equal(*keywords, one))
                return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                                     "its inputs say different things of how "
                                     "it is called");
        }
    return CELLGATE_OK;
}

/* A call of an operation in Keras 2: its keywords may be tensors, and it may be
   on numbers in place of tensors, which no layer makes. */
static cellgate_status read_operation(const cg_keras_graph *graph,
                                      const json_t *node, cg_keras_call *call,
                                      cellgate_error *error)
{
    static const char *const tensors[] = { "y", "b" };
    const char *name = json_string_value(json_array_get(node, 0));
    cellgate_status status = CELLGATE_OK;

    call->args = node;
    if (name == NULL || strcmp(name, "_CONSTANT_VALUE") != 0)
        status = resolve_all(graph, node, &call->inputs, error);
    for (size_t i = 0; status == CELLGATE_OK && i < 2; i++)
        status = resolve_all(graph, json_object_get(call->keywords, tensors[i]),
                             &call->inputs, error);
    return status;
}

/* The names of what a layer is called with by place, behind its input. */
static const char *const *find_places(const cg_keras_class *class)
{
    static const char *const recurrent[] = { "initial_state", "mask",
                                             "training", NULL };
    static const char *const attention[] = { "mask", "training",
                                             "return_attention_scores",
                                             "use_causal_mask", NULL };
    static const char *const training[] = { "training", "mask", NULL };
    static const char *const mask[] = { "mask", NULL };

    if (class->build == cg_keras_build_recurrent ||
        class->build == cg_keras_build_bidirectional)
        return recurrent;
    if (class->build == cg_keras_build_attention)
        return attention;
    if (class->build == cg_keras_build_global_pool ||
        class->build == cg_keras_build_softmax)
        return mask;
    return training;
}

/* A call of Keras 3: {"args": [...], "kwargs": {...}}. */
static cellgate_status read_places(const cg_keras_graph *graph,
                                   cg_keras_call *call, const json_t *args,
                                   cellgate_error *error)
{
    const char *const *names = find_places(call->layer->class);
    cellgate_status status;

    call->args = args;
    if (call->layer->class->flags & CG_KERAS_OPERATION ||
        cg_keras_is_tensor_name(args))
        return resolve_all(graph, args, &call->inputs, error);
    status = resolve_all(graph, json_array_get(args, 0), &call->inputs, error);
    for (size_t i = 1; status == CELLGATE_OK && i < json_array_size(args);
         i++) {
        if (*names == NULL)
            return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                                 "it is called with %zu arguments by place; it "
                                 "takes %zu",
                                 json_array_size(args), i);
        status =
            read_keyword(graph, call, *names++, json_array_get(args, i), error);
    }
    return status;
}

/*
 * A call as Keras 3 writes it, {"args": ..., "kwargs": ...}, or as Keras 2
 * does, [[layer, call, tensor, kwargs], ...].
 */
static cellgate_status read_call(const cg_keras_graph *graph,
                                 const json_t *node, cg_keras_call *call,
                                 cellgate_error *error)
{
    cellgate_status status;

    if (json_is_object(node)) {
        status = read_places(graph, call, json_object_get(node, "args"), error);
        if (status == CELLGATE_OK)
            status = read_keywords(graph, call, json_object_get(node, "kwargs"),
                                   error);
        return status;
    }
    status = find_keywords(call, node, &call->keywords, error);
    if (status == CELLGATE_OK && call->layer->class->flags & CG_KERAS_KEYWORDS)
        return read_operation(graph, node, call, error);
    if (status == CELLGATE_OK)
        status = resolve_all(graph, node, &call->inputs, error);
    return status == CELLGATE_OK
               ? read_keywords(graph, call, call->keywords, error)
               : status;
}

/* mask= of a layer that does not look at it itself. Statistics are of training
   alone. */
static cellgate_status check_mask(const cg_keras_call *call,
                                  cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;

    if (call->mask.value == CG_NO_VALUE || takes_mask(layer->class) ||
        strcmp(layer->class->name, "BatchNormalization") == 0)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "it is called with mask=, which recurrent layers, "
                         "attention, TimeDistributed, GlobalAveragePooling1D "
                         "and models take here; for others let a Masking layer "
                         "or mask_zero make the mask");
}

static cellgate_status process_call(const cg_keras_graph *graph,
                                    cg_keras_entry *entry, const json_t *node,
                                    cellgate_error *error)
{
    cg_keras_call call = { .layer = &entry->layer, .mask.value = CG_NO_VALUE };
    cellgate_status status = read_call(graph, node, &call, error);

    if (status == CELLGATE_OK)
        status = check_mask(&call, error);
    if (status == CELLGATE_OK)
        status = cg_keras_run_call(&call, error);
    if (status == CELLGATE_OK)
        status = add_result(entry, call.outputs, error);
    if (status != CELLGATE_OK)
        cg_keras_list_finish(&call.outputs);
    cg_keras_list_finish(&call.inputs);
    cg_keras_list_finish(&call.states);
    cg_keras_list_finish(&call.masks);
    return status;
}

/* Calls what can be called by now; *progress and *waiting tell how it went. */
static cellgate_status sweep(const cg_keras_graph *graph, bool *progress,
                             const cg_keras_entry **waiting,
                             cellgate_error *error)
{
    *progress = false;
    *waiting = NULL;
    for (size_t i = 0; i < graph->count; i++) {
        cg_keras_entry *entry = &graph->entries[i];
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
static cellgate_status call_layers(const cg_keras_graph *graph,
                                   cellgate_error *error)
{
    const cg_keras_entry *waiting = NULL;

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
    cg_keras_graph *graph;
    const cg_keras_list *given; /* NULL at the top */
    size_t bound;
} binding;

static cellgate_status bind_input(void *context,
                                  const cg_keras_tensor_name *name,
                                  cellgate_error *error)
{
    binding *to = context;
    cg_keras_entry *entry = find_entry(to->graph, name->layer);
    cg_keras_list result = { 0 };
    cg_keras_tensor value = { 0 };
    cellgate_status status = CELLGATE_OK;

    if (entry == NULL || !(entry->layer.class->flags & CG_KERAS_INPUT) ||
        entry->call_count != 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, to->graph->model,
                             "'%.60s' is not an input layer that can be an "
                             "input of the model",
                             name->layer);
    if (to->given == NULL)
        status = cg_keras_add_top_input(
            &entry->layer, cg_keras_input_shape(entry->layer.config),
            entry->layer.config, &value, error);
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

static cellgate_status bind_inputs(cg_keras_graph *graph,
                                   const cg_keras_list *inputs,
                                   cellgate_error *error)
{
    binding to = { graph, inputs, 0 };
    cellgate_status status = cg_keras_visit_tensors(
        json_object_get(graph->model->config, "input_layers"), bind_input, &to,
        error);

    if (status == CELLGATE_OK && inputs != NULL && to.bound != inputs->count)
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, graph->model,
                               "it is called on %zu tensors; it takes %zu",
                               inputs->count, to.bound);
    return status;
}

static void finish_entries(cg_keras_graph *graph)
{
    for (size_t i = 0; graph->entries != NULL && i < graph->count; i++) {
        cg_keras_entry *entry = &graph->entries[i];

        for (size_t j = 0; j < entry->call_count; j++)
            cg_keras_list_finish(&entry->calls[j]);
        free(entry->calls);
        free(entry->path);
    }
    free(graph->entries);
}

cellgate_status cg_keras_build_functional(cg_keras_graph *graph,
                                          const cg_keras_list *inputs,
                                          cg_keras_list *outputs,
                                          cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    graph->entries = calloc(graph->count + 1, sizeof *graph->entries);
    if (graph->entries == NULL)
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
