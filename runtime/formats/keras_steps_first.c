/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors with steps before rows, as Keras 2's layers of time_major=True take
 * and give them. Values of a model have rows first, always: a tensor is marked
 * as turned where Keras has it the other way round, so that nothing is computed
 * for it, and only those who give and take arrays have to turn them. Which
 * inputs of the model are turned follows from the layers that they reach:
 * nothing else in the file tells steps from rows.
 */
#include "config.h"

#include "runtime/formats/keras_graph.h"

/* ---- Inputs of the model ------------------------------------------------- */

static bool is_time_major(const json_t *layer)
{
    const json_t *config = json_object_get(layer, "config");
    const json_t *wrapped = json_object_get(config, "layer");

    return cg_keras_truth(json_object_get(config, "time_major")) == 1 ||
           cg_keras_truth(json_object_get(json_object_get(wrapped, "config"),
                                          "time_major")) == 1;
}

static bool is_any_order(const cg_keras_class *class)
{
    return class != NULL && (class->flags & CG_KERAS_ANY_ORDER) != 0;
}

static const char *name_of(const json_t *layer)
{
    const char *name = json_string_value(json_object_get(layer, "name"));

    return name != NULL ? name
                        : json_string_value(json_object_get(
                              json_object_get(layer, "config"), "name"));
}

static bool mark(json_t *names, const char *name)
{
    return json_object_set_new(names, name, json_true()) == 0;
}

/* The first layer for which the order matters decides. */
static bool search_sequential(json_t *names, const json_t *layers)
{
    const char *name = "input";

    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        const cg_keras_class *class = cg_keras_find_class(layer);

        if (i == 0 && class != NULL && (class->flags & CG_KERAS_INPUT) &&
            name_of(layer) != NULL)
            name = name_of(layer);
        else if (is_time_major(layer))
            return mark(names, name);
        else if (!is_any_order(class))
            return true;
    }
    return true;
}

/* Layers whose outputs are turned: each once, in the order of their finding. */
typedef struct search {
    json_t *index; /* name -> number of the layer */
    json_t *found; /* name -> true */
    json_t *list;  /* of names, still to be looked at from `next` on */
    bool first_only;
    bool done; /* first_only: one was found */
} search;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while wiring the layers");
}

static cellgate_status find_tensor(void *context,
                                   const cg_keras_tensor_name *name,
                                   cellgate_error *error)
{
    search *to = context;

    if (to->first_only && to->done)
        return CELLGATE_OK;
    to->done = true;
    if (json_object_get(to->found, name->layer) != NULL)
        return CELLGATE_OK;
    if (!mark(to->found, name->layer) ||
        json_array_append_new(to->list, json_string(name->layer)) != 0)
        return no_memory(error);
    return CELLGATE_OK;
}

/* What makes the tensors that a layer takes; of a recurrent layer the first
   one, since states have no steps. */
static cellgate_status look_behind(search *all, const json_t *layer,
                                   cellgate_error *error)
{
    const json_t *calls = json_object_get(layer, "inbound_nodes");
    cellgate_status status = CELLGATE_OK;

    all->first_only = is_time_major(layer);
    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(calls);
         i++) {
        all->done = false;
        status = cg_keras_visit_tensors(json_array_get(calls, i), find_tensor,
                                        all, error);
    }
    return status;
}

static cellgate_status follow(search *all, json_t *names, const json_t *layers,
                              cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(all->list);
         i++) {
        const char *name = json_string_value(json_array_get(all->list, i));
        const json_t *number = json_object_get(all->index, name);
        const json_t *layer =
            json_array_get(layers, (size_t)json_integer_value(number));
        const cg_keras_class *class = cg_keras_find_class(layer);

        if (number == NULL || class == NULL)
            continue;
        if ((class->flags & CG_KERAS_INPUT) && !mark(names, name))
            status = no_memory(error);
        else if (is_any_order(class))
            status = look_behind(all, layer, error);
    }
    return status;
}

static cellgate_status start(search *all, const json_t *layers,
                             cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(layers);
         i++) {
        const json_t *layer = json_array_get(layers, i);
        const char *name = name_of(layer);

        if (name == NULL)
            continue;
        if (json_object_set_new(all->index, name,
                                json_integer((json_int_t)i)) != 0)
            return no_memory(error);
        if (is_time_major(layer))
            status = look_behind(all, layer, error);
    }
    return status;
}

cellgate_status cg_keras_find_steps_first(json_t *names, const json_t *model,
                                          cellgate_error *error)
{
    const char *class_name =
        json_string_value(json_object_get(model, "class_name"));
    const json_t *layers =
        json_object_get(json_object_get(model, "config"), "layers");
    search all = { .index = json_object(),
                   .found = json_object(),
                   .list = json_array() };
    cellgate_status status = CELLGATE_OK;

    if (all.index == NULL || all.found == NULL || all.list == NULL)
        status = no_memory(error);
    else if (class_name != NULL && strcmp(class_name, "Sequential") == 0)
        status =
            search_sequential(names, layers) ? CELLGATE_OK : no_memory(error);
    else
        status = start(&all, layers, error);
    if (status == CELLGATE_OK)
        status = follow(&all, names, layers, error);
    json_decref(all.index);
    json_decref(all.found);
    json_decref(all.list);
    return status;
}

/* ---- Calls --------------------------------------------------------------- */

static cellgate_status fail_order(const cg_keras_layer *layer,
                                  cellgate_error *error)
{
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "it is called on a tensor with steps before rows, as "
                         "layers of time_major=True make them, which only "
                         "layers of time_major=True and those that act on "
                         "features alone take; build them with "
                         "time_major=False and the same weights");
}

cellgate_status cg_keras_run_in_order(cg_keras_call *call,
                                      cellgate_error *error)
{
    const cg_keras_class *class = call->layer->class;
    size_t turned = 0;
    cellgate_status status;

    for (size_t i = 0; i < call->inputs.count; i++)
        turned += call->inputs.items[i].turned;
    if (turned == 0 || (class->flags & (CG_KERAS_TURNS | CG_KERAS_MODEL)))
        return class->build(call, error);
    if (turned < call->inputs.count || !is_any_order(class))
        return fail_order(call->layer, error);
    status = class->build(call, error);
    for (size_t i = 0; i < call->outputs.count; i++)
        call->outputs.items[i].turned = true;
    return status;
}

cellgate_status cg_keras_check_turned(const cg_keras_call *call,
                                      bool time_major, cellgate_error *error)
{
    for (size_t i = 0; i < call->states.count; i++)
        if (call->states.items[i].turned)
            return fail_order(call->layer, error);
    if (call->inputs.items[0].turned == time_major)
        return CELLGATE_OK;
    if (!time_major)
        return fail_order(call->layer, error);
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                         "time_major=True is supported on inputs of the model, "
                         "through layers that act on features alone, and "
                         "behind tf.transpose; build the layer with "
                         "time_major=False and the same weights");
}
