/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras.h"
#include "runtime/model/kinds.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the layers");
}

/* ---- Lists --------------------------------------------------------------- */

cellgate_status cg_keras_list_add(cg_keras_list *list, cg_keras_tensor tensor,
                                  cellgate_error *error)
{
    if (list->count == list->room) {
        const size_t room = list->room != 0 ? 2 * list->room : 4;
        cg_keras_tensor *items = realloc(list->items, room * sizeof *items);

        if (items == NULL)
            return no_memory(error);
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = tensor;
    return CELLGATE_OK;
}

void cg_keras_list_finish(cg_keras_list *list)
{
    free(list->items);
    *list = (cg_keras_list){ 0 };
}

cellgate_status cg_keras_return(cg_keras_call *call, int32_t value,
                                int32_t mask, cellgate_error *error)
{
    return cg_keras_list_add(&call->outputs,
                             (cg_keras_tensor){ .value = value, .mask = mask },
                             error);
}

/* ---- Names --------------------------------------------------------------- */

const char *cg_keras_unique_name(cg_keras_reader *reader, const char *wanted)
{
    const json_t *used = json_object_get(reader->names, wanted);
    const size_t size = strlen(wanted) + 24;
    json_int_t number = json_integer_value(used);
    char *name;

    if (used == NULL) {
        /* The key's copy in the object is what lives as the reader. */
        if (json_object_set_new(reader->names, wanted, json_integer(1)) != 0)
            return NULL;
        return json_object_iter_key(json_object_iter_at(reader->names, wanted));
    }
    name = malloc(size);
    if (name == NULL)
        return NULL;
    do
        (void)snprintf(name, size, "%s_%lld", wanted, (long long)++number);
    while (json_object_get(reader->names, name) != NULL);
    if (json_object_set_new(reader->names, wanted, json_integer(number)) != 0 ||
        json_object_set_new(reader->names, name, json_integer(1)) != 0) {
        free(name);
        return NULL;
    }
    wanted = json_object_iter_key(json_object_iter_at(reader->names, name));
    free(name);
    return wanted;
}

/* The call's own name is reserved for its main value and its main node. */
static const char *name_with_suffix(const cg_keras_call *call,
                                    const char *suffix)
{
    const size_t size = strlen(call->name) + strlen(suffix) + 1;
    const char *unique;
    char *wanted;

    if (suffix[0] == '\0')
        return call->name;
    wanted = malloc(size);
    if (wanted == NULL)
        return NULL;
    (void)snprintf(wanted, size, "%s%s", call->name, suffix);
    unique = cg_keras_unique_name(call->layer->reader, wanted);
    free(wanted);
    return unique;
}

/* ---- Values -------------------------------------------------------------- */

static cellgate_status grow_shapes(cg_keras_reader *reader,
                                   cellgate_error *error)
{
    const size_t needed = reader->model->value_count;
    const size_t room = 2 * needed + 16;
    cg_shape *shapes;
    bool *claimed;
    int32_t *declared;

    if (needed <= reader->shape_room)
        return CELLGATE_OK;
    shapes = realloc(reader->shapes, room * sizeof *shapes);
    if (shapes == NULL)
        return no_memory(error);
    reader->shapes = shapes;
    claimed = realloc(reader->claimed, room * sizeof *claimed);
    if (claimed == NULL)
        return no_memory(error);
    reader->claimed = claimed;
    declared = realloc(reader->declared, room * sizeof *declared);
    if (declared == NULL)
        return no_memory(error);
    reader->declared = declared;
    memset(claimed + reader->shape_room, 0, room - reader->shape_room);
    /* What is computed is declared nowhere. */
    memset(declared + reader->shape_room, 0,
           (room - reader->shape_room) * sizeof *declared);
    reader->shape_room = room;
    return CELLGATE_OK;
}

cellgate_status cg_keras_add_input(cg_keras_reader *reader, const char *name,
                                   int32_t dtype, int32_t rank,
                                   const int64_t *shape,
                                   cg_keras_tensor *tensor,
                                   cellgate_error *error)
{
    cellgate_model *model = reader->model;
    int32_t value;
    cellgate_status status =
        cg_model_add_value(model, name, dtype, rank, shape, &value, error);

    if (status == CELLGATE_OK)
        status = cg_model_add_input(model, value, error);
    if (status == CELLGATE_OK)
        status = grow_shapes(reader, error);
    if (status != CELLGATE_OK)
        return status;
    reader->declared[value] = dtype;
    *tensor =
        (cg_keras_tensor){ .value = value,
                           .mask = model->inputs[model->input_count - 1].mask };
    if (tensor->mask != CG_NO_VALUE &&
        cg_keras_unique_name(reader, model->values[tensor->mask].name) == NULL)
        return no_memory(error);
    for (size_t i = (size_t)value; i < model->value_count; i++) {
        reader->shapes[i].rank = model->values[i].rank;
        memcpy(reader->shapes[i].extent, model->values[i].shape,
               sizeof reader->shapes[i].extent);
    }
    return CELLGATE_OK;
}

cellgate_status cg_keras_features(const cg_keras_call *call,
                                  const cg_keras_tensor *tensor,
                                  int64_t *features, cellgate_error *error)
{
    const cg_shape *shape = &call->layer->reader->shapes[tensor->value];
    const int64_t last =
        shape->rank >= 2 ? shape->extent[shape->rank - 1] : CG_UNKNOWN;

    if (last < 1)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                             "the number of features of its input is not "
                             "known");
    *features = last;
    return CELLGATE_OK;
}

/* ---- Nodes --------------------------------------------------------------- */

static cellgate_status add_outputs(const cg_keras_call *call, cg_node *node,
                                   const char *const *suffixes,
                                   cellgate_error *error)
{
    cellgate_model *model = call->layer->reader->model;
    const int32_t dtype = cg_node_output_dtype(model, node);
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < node->output_count; i++) {
        const char *name;

        if (node->outputs[i] != CG_KERAS_NEW)
            continue;
        name = name_with_suffix(call, suffixes[i]);
        if (name == NULL)
            return no_memory(error);
        status = cg_model_add_value(model, name, dtype, 0, NULL,
                                    &node->outputs[i], error);
    }
    return status;
}

cellgate_status cg_keras_emit(const cg_keras_call *call, cg_node *node,
                              const char *suffix, const char *const *suffixes,
                              cellgate_error *error)
{
    cg_keras_reader *reader = call->layer->reader;
    const bool makes_main =
        node->outputs[0] == CG_KERAS_NEW && strcmp(suffix, suffixes[0]) == 0;
    char place[CG_KERAS_PLACE];
    cellgate_status status;

    if (reader->model->node_count >= CG_KERAS_MAX_NODES)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                             "with it the model has more than %d operations",
                             CG_KERAS_MAX_NODES);
    status = add_outputs(call, node, suffixes, error);
    if (status == CELLGATE_OK)
        status = grow_shapes(reader, error);
    if (status != CELLGATE_OK)
        return status;
    node->name = makes_main ? reader->model->values[node->outputs[0]].name
                            : (char *)(uintptr_t)name_with_suffix(call, suffix);
    if (node->name == NULL)
        return no_memory(error);
    memcpy(place, call->layer->place, sizeof place);
    node->layer = place;
    status = cg_model_add_node(reader->model, node, error);
    if (status == CELLGATE_OK)
        status = cg_node_infer(reader->model, node, reader->shapes, error);
    if (status == CELLGATE_BAD_SHAPE) {
        status = CELLGATE_BAD_FILE;
        if (error != NULL)
            error->status = CELLGATE_BAD_FILE;
    }
    return status;
}

cellgate_status cg_keras_emit_simple(const cg_keras_call *call,
                                     const cg_node *node, const int32_t *inputs,
                                     size_t count, const char *suffix,
                                     int32_t *value, cellgate_error *error)
{
    int32_t output = CG_KERAS_NEW;
    cg_node whole = *node;
    cellgate_status status;

    whole.inputs = (int32_t *)(uintptr_t)inputs;
    whole.input_count = count;
    whole.outputs = &output;
    whole.output_count = 1;
    status = cg_keras_emit(call, &whole, suffix, &suffix, error);
    if (status == CELLGATE_OK)
        *value = output;
    return status;
}

/* ---- Masks --------------------------------------------------------------- */

/* What there is once for an input: a mask, or a cast. */
static void make_key(char key[80], const cg_node *node, int32_t input)
{
    double number = 0;

    if (node->kind == CG_NOT_EQUAL)
        number = (double)node->as.not_equal;
    else if (node->kind == CG_CAST)
        number = (double)node->as.cast;
    (void)snprintf(key, 80, "%d %d %a", (int)node->kind, (int)input, number);
}

cellgate_status cg_keras_emit_once(const cg_keras_call *call,
                                   const cg_node *node, int32_t input,
                                   const char *suffix, int32_t *value,
                                   cellgate_error *error)
{
    json_t *made = call->layer->reader->made;
    char key[80];
    const json_t *same;
    cellgate_status status;

    make_key(key, node, input);
    same = json_object_get(made, key);
    if (same != NULL) {
        *value = (int32_t)json_integer_value(same);
        return CELLGATE_OK;
    }
    status = cg_keras_emit_simple(call, node, &input, 1, suffix, value, error);
    if (status == CELLGATE_OK &&
        json_object_set_new(made, key, json_integer(*value)) != 0)
        return no_memory(error);
    return status;
}

static cellgate_status compare(const cg_keras_call *call,
                               const cg_keras_tensor *tensor, bool ids,
                               int32_t *mask, cellgate_error *error)
{
    cg_keras_tensor plain = { .value = tensor->value, .mask = CG_NO_VALUE };
    cg_node node = { .kind = ids ? CG_NONZERO : CG_NOT_EQUAL };
    const cg_keras_reader *reader = call->layer->reader;
    cellgate_status status = CELLGATE_OK;

    /* Whether an id, or a number, is 0 is asked of what it is in the file: a
       cast to ids would make 0 of 0.5. */
    if (!ids || reader->declared[tensor->value] == CELLGATE_I32)
        status = cg_keras_claim(call, &plain, ids ? CELLGATE_I32 : CELLGATE_F32,
                                error);
    if (status != CELLGATE_OK)
        return status;
    if (!ids)
        node.as.not_equal = tensor->constant;
    return cg_keras_emit_once(call, &node, plain.value, ":mask", mask, error);
}

/* As a number each, which NOT_EQUAL takes for features: its own last axis. */
cellgate_status cg_keras_compare_each(const cg_keras_call *call,
                                      const cg_keras_tensor *tensor,
                                      int32_t *mask, cellgate_error *error)
{
    const cg_node node = { .kind = CG_NOT_EQUAL,
                           .as.not_equal = tensor->constant };
    const cg_node wider = {
        .kind = CG_RESHAPE,
        .as.reshape = { .extents = { 1, { 1 } },
                        .keep = cg_keras_shape(call, tensor->value)->rank }
    };
    cg_keras_tensor plain = { .value = tensor->value, .mask = CG_NO_VALUE };
    int32_t each;
    cellgate_status status = cg_keras_claim(call, &plain, CELLGATE_F32, error);

    if (status == CELLGATE_OK)
        status = cg_keras_emit_simple(call, &wider, &plain.value, 1, ":each",
                                      &each, error);
    return status == CELLGATE_OK ? cg_keras_emit_simple(call, &node, &each, 1,
                                                        ":mask", mask, error)
                                 : status;
}

cellgate_status cg_keras_make_mask(const cg_keras_call *call,
                                   const cg_keras_tensor *tensor, int32_t *mask,
                                   cellgate_error *error)
{
    const cg_keras_reader *reader = call->layer->reader;
    const cg_value *value = &reader->model->values[tensor->value];

    if (!tensor->compared) {
        /* A bool input of the model. */
        if (value->producer == -1 && value->dtype == CELLGATE_I32)
            return compare(call, tensor, true, mask, error);
        if (value->dtype != CELLGATE_U8 || tensor->stands != CG_KERAS_ITSELF)
            return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                                 "'%s' is not a mask", value->name);
        *mask = tensor->value;
        return CELLGATE_OK;
    }
    /* Of rank 2, what is compared has a number a step. */
    if (reader->shapes[tensor->value].rank == 2)
        return tensor->constant == 0
                   ? compare(call, tensor, true, mask, error)
                   : cg_keras_compare_each(call, tensor, mask, error);
    return compare(call, tensor, false, mask, error);
}
