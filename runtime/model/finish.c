/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "runtime/model/kinds.h"
#include "runtime/model/store.h"

/* Where a node stands in the walk over what the outputs need. */
enum { UNSEEN, OPEN, DONE };

typedef struct cg_visit {
    int32_t node;
    size_t next_input;
} cg_visit;

/* Scratch of one cg_model_finish(); index spaces are as before renumbering. */
typedef struct cg_finish {
    uint8_t *mark;   /* a node: UNSEEN, OPEN, DONE */
    bool *used;      /* a value: by a live node, or as an output */
    bool *given;     /* a value: by the request */
    cg_visit *stack; /* at most one entry a node */
    int32_t *order;  /* old numbers of the live nodes, sorted */
    size_t ordered;
    int32_t *renumber; /* old value number -> new one, or CG_NO_VALUE */
    const char **names;
    cg_shape *shapes;
} cg_finish;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while checking the model");
}

static void finish_release(cg_finish *finish)
{
    free(finish->mark);
    free(finish->used);
    free(finish->given);
    free(finish->stack);
    free(finish->order);
    free(finish->renumber);
    free(finish->names);
    free(finish->shapes);
}

static cellgate_status finish_allocate(const cellgate_model *model,
                                       cg_finish *finish, cellgate_error *error)
{
    const size_t nodes = model->node_count + 1;
    const size_t values = model->value_count + 1;

    *finish = (cg_finish){
        .mark = calloc(nodes, sizeof *finish->mark),
        .used = calloc(values, sizeof *finish->used),
        .given = calloc(values, sizeof *finish->given),
        .stack = calloc(nodes, sizeof *finish->stack),
        .order = calloc(nodes, sizeof *finish->order),
        .renumber = calloc(values, sizeof *finish->renumber),
        .names = calloc(nodes > values ? nodes : values, sizeof *finish->names),
        .shapes = calloc(values, sizeof *finish->shapes),
    };
    if (finish->mark == NULL || finish->used == NULL || finish->given == NULL ||
        finish->stack == NULL || finish->order == NULL ||
        finish->renumber == NULL || finish->names == NULL ||
        finish->shapes == NULL)
        return no_memory(error);
    for (size_t i = 0; i < model->input_count; i++) {
        finish->given[model->inputs[i].value] = true;
        if (model->inputs[i].mask != CG_NO_VALUE)
            finish->given[model->inputs[i].mask] = true;
    }
    return CELLGATE_OK;
}

/* ---- Order -------------------------------------------------------------- */

/*
 * The next input of the node on top of the stack that has to be made first, or
 * CG_NO_VALUE; the ones passed over are marked as used.
 */
static int32_t next_unmade_input(const cellgate_model *model, cg_finish *finish,
                                 cg_visit *visit)
{
    const cg_node *node = &model->nodes[visit->node];

    while (visit->next_input < node->input_count) {
        const int32_t value = node->inputs[visit->next_input++];

        if (value == CG_NO_VALUE)
            continue;
        finish->used[value] = true;
        if (model->values[value].producer == -1) {
            if (!finish->given[value])
                return value;
        } else if (finish->mark[model->values[value].producer] != DONE) {
            return value;
        }
    }
    return CG_NO_VALUE;
}

/* Depth first from one node: what it needs goes before it. */
static cellgate_status order_from(const cellgate_model *model,
                                  cg_finish *finish, int32_t start,
                                  cellgate_error *error)
{
    size_t depth = 0;

    if (finish->mark[start] == DONE)
        return CELLGATE_OK;
    finish->mark[start] = OPEN;
    finish->stack[depth++] = (cg_visit){ start, 0 };
    while (depth > 0) {
        cg_visit *top = &finish->stack[depth - 1];
        const int32_t value = next_unmade_input(model, finish, top);
        int32_t producer;

        if (value == CG_NO_VALUE) {
            finish->mark[top->node] = DONE;
            finish->order[finish->ordered++] = top->node;
            depth--;
            continue;
        }
        producer = model->values[value].producer;
        if (producer == -1)
            return cg_node_fail(
                error, CELLGATE_BAD_FILE, &model->nodes[top->node],
                "nothing makes its input '%s'", model->values[value].name);
        if (finish->mark[producer] == OPEN)
            return cg_node_fail(error, CELLGATE_BAD_FILE,
                                &model->nodes[top->node],
                                "it depends on its own output: the graph has "
                                "a cycle");
        finish->mark[producer] = OPEN;
        finish->stack[depth++] = (cg_visit){ producer, 0 };
    }
    return CELLGATE_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/*
 * First the walk from the outputs finds what is live; then a second one in the
 * old order, over the live nodes only, so that a usable order is kept.
 */
static cellgate_status order_nodes(const cellgate_model *model,
                                   cg_finish *finish, cellgate_error *error)
{
    size_t live;
    int32_t *first = NULL;
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < model->output_count; i++) {
        const int32_t value = model->outputs[i];

        finish->used[value] = true;
        if (model->values[value].producer != -1)
            status =
                order_from(model, finish, model->values[value].producer, error);
        else if (!finish->given[value])
            status = cellgate_fail(error, CELLGATE_BAD_FILE,
                                   "nothing makes the output '%s'",
                                   model->values[value].name);
    }
    if (status != CELLGATE_OK)
        return status;
    live = finish->ordered;
    first = malloc((live + 1) * sizeof *first);
    if (first == NULL)
        return no_memory(error);
    if (live != 0)
        memcpy(first, finish->order, live * sizeof *first);
    qsort(first, live, sizeof *first, compare_numbers);
    memset(finish->mark, UNSEEN, model->node_count);
    finish->ordered = 0;
    for (size_t i = 0; status == CELLGATE_OK && i < live; i++)
        status = order_from(model, finish, first[i], error);
    free(first);
    return status;
}

/* ---- Renumbering -------------------------------------------------------- */

static void renumber_values(const cellgate_model *model, cg_finish *finish,
                            size_t *count)
{
    int32_t next = 0;

    for (size_t i = 0; i < model->value_count; i++)
        finish->renumber[i] = CG_NO_VALUE;
    for (size_t i = 0; i < model->input_count; i++) {
        const cg_input *input = &model->inputs[i];

        finish->renumber[input->value] = next++;
        if (input->mask != CG_NO_VALUE && finish->used[input->mask])
            finish->renumber[input->mask] = next++;
    }
    for (size_t i = 0; i < finish->ordered; i++) {
        const cg_node *node = &model->nodes[finish->order[i]];

        for (size_t j = 0; j < node->output_count; j++)
            if (node->outputs[j] != CG_NO_VALUE &&
                finish->used[node->outputs[j]])
                finish->renumber[node->outputs[j]] = next++;
    }
    *count = (size_t)next;
}

static void renumber_list(const cg_finish *finish, int32_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] != CG_NO_VALUE)
            list[i] = finish->renumber[list[i]];
}

/* Replaces the arrays of nodes and values by what is live, in its order. */
static cellgate_status rebuild(cellgate_model *model, cg_finish *finish,
                               cellgate_error *error)
{
    size_t value_count;
    cg_value *values;
    cg_node *nodes =
        cg_model_memory(model, (finish->ordered + 1) * sizeof *nodes);

    renumber_values(model, finish, &value_count);
    values = cg_model_memory(model, (value_count + 1) * sizeof *values);
    if (nodes == NULL || values == NULL)
        return no_memory(error);
    for (size_t i = 0; i < model->value_count; i++)
        if (finish->renumber[i] != CG_NO_VALUE)
            values[finish->renumber[i]] = model->values[i];
    for (size_t i = 0; i < finish->ordered; i++) {
        cg_node *node = &nodes[i];

        *node = model->nodes[finish->order[i]];
        renumber_list(finish, node->inputs, node->input_count);
        renumber_list(finish, node->outputs, node->output_count);
        for (size_t j = 0; j < node->output_count; j++)
            if (node->outputs[j] != CG_NO_VALUE)
                values[node->outputs[j]].producer = (int32_t)i;
        cg_node_normalise(node);
    }
    for (size_t i = 0; i < model->input_count; i++) {
        cg_input *input = &model->inputs[i];

        input->value = finish->renumber[input->value];
        if (input->mask != CG_NO_VALUE)
            input->mask = finish->renumber[input->mask];
    }
    renumber_list(finish, model->outputs, model->output_count);
    model->values = values;
    model->store->value_room = model->value_count = value_count;
    model->nodes = nodes;
    model->store->node_room = model->node_count = finish->ordered;
    return CELLGATE_OK;
}

/* ---- Checks ------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static cellgate_status check_unique(const char **names, size_t count,
                                    const char *what, cellgate_error *error)
{
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "two %s have the name '%s'", what, names[i]);
    return CELLGATE_OK;
}

static cellgate_status check_names(const cellgate_model *model,
                                   cg_finish *finish, cellgate_error *error)
{
    cellgate_status status;

    for (size_t i = 0; i < model->node_count; i++)
        finish->names[i] = model->nodes[i].name;
    status = check_unique(finish->names, model->node_count, "nodes", error);
    if (status != CELLGATE_OK)
        return status;
    for (size_t i = 0; i < model->value_count; i++)
        finish->names[i] = model->values[i].name;
    return check_unique(finish->names, model->value_count, "values", error);
}

static const char *dtype_use(int32_t dtype)
{
    return dtype == CELLGATE_I32  ? "ids"
           : dtype == CELLGATE_U8 ? "a mask"
                                  : "numbers";
}

/* What input number `index` must be, or CG_DTYPE_ANY. */
static int32_t input_dtype(const cg_kind_entry *kind, size_t index,
                           int32_t first)
{
    const int32_t dtype =
        kind->input_dtypes[index < CG_KIND_DTYPES ? index : 0];

    if (dtype == CG_DTYPE_FIRST || (dtype == CG_DTYPE_ANY && index > 0))
        return first;
    return dtype;
}

static bool dtype_fits(const cellgate_model *model, int32_t value,
                       int32_t dtype)
{
    return dtype == CG_DTYPE_ANY || model->values[value].dtype == dtype;
}

static cellgate_status check_dtypes(const cellgate_model *model,
                                    const cg_node *node, cellgate_error *error)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);

    const int32_t first = model->values[node->inputs[0]].dtype;

    for (size_t i = 0; i < node->input_count; i++) {
        const int32_t value = node->inputs[i];
        const int32_t dtype = input_dtype(kind, i, first);

        if (value != CG_NO_VALUE && !dtype_fits(model, value, dtype))
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "it takes %s, and '%s' is %s", dtype_use(dtype),
                                model->values[value].name,
                                dtype_use(model->values[value].dtype));
    }
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != CG_NO_VALUE &&
            model->values[node->outputs[i]].dtype !=
                cg_node_output_dtype(model, node))
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "output %zu has the wrong dtype", i);
    for (size_t i = 0; i < node->weight_count; i++)
        assert((uintptr_t)node->weights[i].data % CG_ALIGNMENT == 0);
    return CELLGATE_OK;
}

/* A shape that the file declares has to agree with the inferred one. */
static cellgate_status settle_shape(const cg_node *node, cg_value *value,
                                    const cg_shape *inferred,
                                    cellgate_error *error)
{
    bool same = value->rank == 0 || value->rank == inferred->rank;

    for (int32_t axis = 1; same && axis < value->rank; axis++)
        same = value->shape[axis] == CG_UNKNOWN ||
               value->shape[axis] == inferred->extent[axis] ||
               inferred->extent[axis] == CG_UNKNOWN;
    if (!same)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "the shape of '%s' is not the one that follows "
                            "from its inputs",
                            value->name);
    value->rank = inferred->rank;
    memset(value->shape, 0, sizeof value->shape);
    for (int32_t axis = 0; axis < inferred->rank; axis++)
        value->shape[axis] = inferred->extent[axis];
    value->shape[0] = CG_UNKNOWN;
    return CELLGATE_OK;
}

static cellgate_status infer_node(cellgate_model *model, const cg_node *node,
                                  cg_shape *shapes, cellgate_error *error)
{
    cellgate_status status = check_dtypes(model, node, error);

    if (status == CELLGATE_OK) {
        status = cg_node_infer(model, node, shapes, error);
        /* Of a file, not of a request. */
        if (status == CELLGATE_BAD_SHAPE) {
            status = CELLGATE_BAD_FILE;
            if (error != NULL)
                error->status = CELLGATE_BAD_FILE;
        }
    }
    for (size_t i = 0; status == CELLGATE_OK && i < node->output_count; i++) {
        const int32_t value = node->outputs[i];

        if (value != CG_NO_VALUE)
            status = settle_shape(node, &model->values[value], &shapes[value],
                                  error);
    }
    return status;
}

static cellgate_status infer_shapes(cellgate_model *model, cg_finish *finish,
                                    cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; i < model->value_count; i++) {
        const cg_value *value = &model->values[i];

        if (value->producer != -1)
            continue;
        finish->shapes[i].rank = value->rank;
        memcpy(finish->shapes[i].extent, value->shape, sizeof value->shape);
    }
    for (size_t i = 0; status == CELLGATE_OK && i < model->node_count; i++)
        status = infer_node(model, &model->nodes[i], finish->shapes, error);
    return status;
}

static cellgate_status describe_nodes(cellgate_model *model,
                                      cellgate_error *error)
{
    for (size_t i = 0; i < model->node_count; i++) {
        cg_node *node = &model->nodes[i];
        const cg_kind_entry *kind = cg_kind_get((int)node->kind);
        char text[256] = "";

        if (kind->describe != NULL)
            kind->describe(node, text, sizeof text);
        node->detail = cg_model_text(model, text);
        if (node->detail == NULL)
            return no_memory(error);
    }
    return CELLGATE_OK;
}

cellgate_status cg_model_finish(cellgate_model *model, cellgate_error *error)
{
    cg_finish finish;
    cellgate_status status;

    if (model->input_count == 0 || model->output_count == 0)
        return cellgate_fail(error, CELLGATE_BAD_FILE, "the model has no %s",
                             model->input_count == 0 ? "inputs" : "outputs");
    status = finish_allocate(model, &finish, error);
    if (status == CELLGATE_OK)
        status = order_nodes(model, &finish, error);
    if (status == CELLGATE_OK)
        status = rebuild(model, &finish, error);
    if (status == CELLGATE_OK)
        status = check_names(model, &finish, error);
    if (status == CELLGATE_OK)
        status = infer_shapes(model, &finish, error);
    if (status == CELLGATE_OK)
        status = describe_nodes(model, error);
    if (status == CELLGATE_OK)
        status = cg_fingerprint(model, model->fingerprint, error);
    finish_release(&finish);
    return status;
}
