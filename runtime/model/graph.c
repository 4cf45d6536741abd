/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/model/kinds.h"
#include "runtime/model/store.h"

/* ---- Memory ------------------------------------------------------------- */

void *cg_model_memory(cellgate_model *model, size_t size)
{
    size_t whole;
    cg_block *block;

    if (size > PTRDIFF_MAX - sizeof *block - CG_ALIGNMENT)
        return NULL;
    whole = sizeof *block + size;
    whole += (CG_ALIGNMENT - whole % CG_ALIGNMENT) % CG_ALIGNMENT;
    block = aligned_alloc(CG_ALIGNMENT, whole);
    if (block == NULL)
        return NULL;
    memset(block, 0, whole);
    block->next = model->store->blocks;
    model->store->blocks = block;
    return block + 1;
}

char *cg_model_text(cellgate_model *model, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = cg_model_memory(model, size);

    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while building the model");
}

/* Makes room for one more entry of an array; the old array is left to the
   store, which costs as much again as the array itself. */
static cellgate_status grow(cellgate_model *model, void **array, size_t count,
                            size_t *room, size_t size, cellgate_error *error)
{
    const size_t more = *room != 0 ? 2 * *room : 8;
    void *larger;

    if (count < *room)
        return CELLGATE_OK;
    /* Numbers of values and nodes are int32_t. */
    if (count >= INT32_MAX / 4)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the model has too many nodes");
    larger = cg_model_memory(model, more * size);
    if (larger == NULL)
        return no_memory(error);
    if (count != 0)
        memcpy(larger, *array, count * size);
    *array = larger;
    *room = more;
    return CELLGATE_OK;
}

cellgate_status cg_model_map(cellgate_model *model, void *address, size_t size,
                             cellgate_error *error)
{
    cg_mapping *mapping = cg_model_memory(model, sizeof *mapping);

    if (mapping == NULL)
        return no_memory(error);
    *mapping = (cg_mapping){ model->store->mappings, address, size };
    model->store->mappings = mapping;
    return CELLGATE_OK;
}

void cg_model_share(cellgate_model *model, const cellgate_model *from)
{
    assert(model->store->shared == NULL);
    model->store->shared = cg_model_reference(from);
}

/* ---- Life --------------------------------------------------------------- */

cellgate_status cg_model_create(const char *path, const char *format,
                                const char *format_version,
                                cellgate_model **model, cellgate_error *error)
{
    cellgate_model *made = calloc(1, sizeof *made);

    if (made == NULL)
        return no_memory(error);
    made->store = calloc(1, sizeof *made->store);
    if (made->store == NULL) {
        free(made);
        return no_memory(error);
    }
    atomic_init(&made->store->owners, 1);
    made->path = cg_model_text(made, path);
    made->format = cg_model_text(made, format);
    made->format_version = cg_model_text(made, format_version);
    if (made->path == NULL || made->format == NULL ||
        made->format_version == NULL) {
        cellgate_model_destroy(made);
        return no_memory(error);
    }
    *model = made;
    return CELLGATE_OK;
}

cellgate_status cg_model_add_note(cellgate_model *model, const char *text,
                                  cellgate_error *error)
{
    if (model->note == NULL)
        model->note = cg_model_text(model, text);
    return model->note != NULL ? CELLGATE_OK : no_memory(error);
}

cellgate_model *cg_model_reference(const cellgate_model *model)
{
    atomic_fetch_add_explicit(&model->store->owners, 1, memory_order_relaxed);
    return (cellgate_model *)(uintptr_t)model;
}

void cellgate_model_destroy(cellgate_model *model)
{
    cg_model_store *store;

    if (model == NULL)
        return;
    store = model->store;
    if (atomic_fetch_sub_explicit(&store->owners, 1, memory_order_acq_rel) != 1)
        return;
    for (cg_mapping *mapping = store->mappings; mapping != NULL;
         mapping = mapping->next)
        (void)munmap(mapping->address, mapping->size);
    cellgate_model_destroy(store->shared);
    while (store->blocks != NULL) {
        cg_block *block = store->blocks;

        store->blocks = block->next;
        free(block);
    }
    free(store);
    free(model);
}

/* ---- Values ------------------------------------------------------------- */

cellgate_status cg_model_add_value(cellgate_model *model, const char *name,
                                   int32_t dtype, int32_t rank,
                                   const int64_t *shape, int32_t *value,
                                   cellgate_error *error)
{
    cg_value made = { .dtype = dtype, .producer = -1 };
    cellgate_status status;

    if (dtype != CELLGATE_F32 && dtype != CELLGATE_I32 && dtype != CELLGATE_U8)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "value '%s' cannot have dtype number %d", name,
                             (int)dtype);
    if (shape != NULL) {
        if (rank < 1 || rank > CELLGATE_MAX_RANK)
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "'%s' has %d axes; 1 to %d are possible", name,
                                 (int)rank, CELLGATE_MAX_RANK);
        made.rank = rank;
        for (int32_t axis = 0; axis < rank; axis++) {
            made.shape[axis] = axis == 0 ? CG_UNKNOWN : shape[axis];
            if (shape[axis] < CG_UNKNOWN || shape[axis] > CG_MAX_SIZE)
                return cellgate_fail(error, CELLGATE_BAD_FILE,
                                     "axis %d of '%s' cannot have extent %lld",
                                     (int)axis, name, (long long)shape[axis]);
        }
    }
    status = grow(model, (void **)&model->values, model->value_count,
                  &model->store->value_room, sizeof made, error);
    if (status != CELLGATE_OK)
        return status;
    made.name = cg_model_text(model, name);
    if (made.name == NULL)
        return no_memory(error);
    *value = (int32_t)model->value_count;
    model->values[model->value_count++] = made;
    return CELLGATE_OK;
}

static cellgate_status check_value(const cellgate_model *model, int32_t value,
                                   cellgate_error *error)
{
    if (value >= 0 && (size_t)value < model->value_count)
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "value number %d does not exist", (int)value);
}

static bool is_input(const cellgate_model *model, int32_t value)
{
    for (size_t i = 0; i < model->input_count; i++)
        if (model->inputs[i].value == value || model->inputs[i].mask == value)
            return true;
    return false;
}

static cellgate_status add_mask(cellgate_model *model, int32_t value,
                                int32_t *mask, cellgate_error *error)
{
    const cg_value *of = &model->values[value];
    const int64_t shape[2] = { CG_UNKNOWN, of->shape[1] };
    const size_t size = strlen(of->name) + sizeof ":mask";
    char *name;

    *mask = CG_NO_VALUE;
    if (of->rank < 2)
        return CELLGATE_OK;
    name = cg_model_memory(model, size);
    if (name == NULL)
        return no_memory(error);
    (void)snprintf(name, size, "%s:mask", of->name);
    return cg_model_add_value(model, name, CELLGATE_U8, 2, shape, mask, error);
}

cellgate_status cg_model_add_input(cellgate_model *model, int32_t value,
                                   cellgate_error *error)
{
    cg_input input = { .value = value, .mask = CG_NO_VALUE };
    cellgate_status status = check_value(model, value, error);

    if (status != CELLGATE_OK)
        return status;
    if (model->values[value].producer != -1 || is_input(model, value) ||
        model->values[value].rank == 0 ||
        model->values[value].dtype == CELLGATE_U8)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "'%s' cannot be an input of the model",
                             model->values[value].name);
    status = grow(model, (void **)&model->inputs, model->input_count,
                  &model->store->input_room, sizeof input, error);
    if (status == CELLGATE_OK)
        status = add_mask(model, value, &input.mask, error);
    if (status == CELLGATE_OK)
        model->inputs[model->input_count++] = input;
    return status;
}

cellgate_status cg_model_add_output(cellgate_model *model, int32_t value,
                                    cellgate_error *error)
{
    cellgate_status status = check_value(model, value, error);

    if (status == CELLGATE_OK)
        status = grow(model, (void **)&model->outputs, model->output_count,
                      &model->store->output_room, sizeof value, error);
    if (status == CELLGATE_OK)
        status = grow(model, (void **)&model->output_steps_first,
                      model->output_count, &model->store->order_room,
                      sizeof(bool), error);
    if (status == CELLGATE_OK)
        status = grow(model, (void **)&model->output_names, model->output_count,
                      &model->store->name_room, sizeof(char *), error);
    if (status != CELLGATE_OK)
        return status;
    model->output_steps_first[model->output_count] = false;
    model->output_names[model->output_count] = NULL;
    model->outputs[model->output_count++] = value;
    return CELLGATE_OK;
}

static cellgate_status fail_order(const char *what, cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "%s cannot have its steps before its rows", what);
}

cellgate_status cg_model_turn_input(cellgate_model *model,
                                    cellgate_error *error)
{
    cg_input *input;

    if (model->input_count == 0)
        return fail_order("no input", error);
    input = &model->inputs[model->input_count - 1];
    if (model->values[input->value].rank < 2)
        return fail_order(model->values[input->value].name, error);
    input->steps_first = true;
    return CELLGATE_OK;
}

cellgate_status cg_model_turn_output(cellgate_model *model,
                                     cellgate_error *error)
{
    if (model->output_count == 0)
        return fail_order("no output", error);
    model->output_steps_first[model->output_count - 1] = true;
    return CELLGATE_OK;
}

cellgate_status cg_model_name_output(cellgate_model *model, const char *name,
                                     cellgate_error *error)
{
    if (model->output_count == 0)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "there is no output to name '%.60s'", name);
    model->output_names[model->output_count - 1] = cg_model_text(model, name);
    return model->output_names[model->output_count - 1] != NULL
               ? CELLGATE_OK
               : no_memory(error);
}

/* ---- Nodes -------------------------------------------------------------- */

static cellgate_status check_arity(const cellgate_model *model,
                                   const cg_node *node, cellgate_error *error)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);
    const size_t required =
        kind->required == CG_ANY_COUNT ? node->input_count : kind->required;

    if (node->input_count < kind->min_inputs ||
        node->input_count > kind->max_inputs)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "%zu inputs do not fit the kind %s",
                            node->input_count, kind->name);
    for (size_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == CG_NO_VALUE && i >= required)
            continue;
        if (check_value(model, node->inputs[i], NULL) != CELLGATE_OK)
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "input %zu does not exist", i);
    }
    return CELLGATE_OK;
}

/* Each output is a value that nothing else makes. */
static cellgate_status check_outputs(const cellgate_model *model,
                                     const cg_node *node, cellgate_error *error)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);

    if (node->output_count < kind->outputs ||
        (node->output_count > kind->outputs &&
         node->output_count > kind->max_outputs))
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "%zu outputs do not fit the kind %s",
                            node->output_count, kind->name);
    for (size_t i = 0; i < node->output_count; i++) {
        const int32_t value = node->outputs[i];

        if (value == CG_NO_VALUE && kind->optional_outputs)
            continue;
        if (check_value(model, value, NULL) != CELLGATE_OK)
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "output %zu does not exist", i);
        if (model->values[value].producer != -1 || is_input(model, value))
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "'%s' is made twice",
                                model->values[value].name);
        for (size_t j = 0; j < i; j++)
            if (node->outputs[j] == value)
                return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                    "'%s' is made twice",
                                    model->values[value].name);
    }
    return CELLGATE_OK;
}

static cellgate_status check_weights(const cg_node *node, cellgate_error *error)
{
    if (node->weight_count != cg_node_weight_count(node))
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "%zu weights do not fit the kind %s",
                            node->weight_count,
                            cg_kind_get((int)node->kind)->name);
    for (size_t i = 0; i < node->weight_count; i++) {
        const cg_weight *weight = &node->weights[i];
        cg_weight expected;
        const bool has = cg_node_weight(node, i, &expected);

        if (has != (weight->data != NULL))
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "weight '%s' %s", expected.name,
                                has ? "is missing" : "should not be there");
        if (has && (weight->rank != expected.rank ||
                    memcmp(weight->shape, expected.shape,
                           (size_t)weight->rank * sizeof expected.shape[0])))
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "weight '%s' has the wrong shape",
                                expected.name);
    }
    return CELLGATE_OK;
}

static cellgate_status check_node(const cellgate_model *model,
                                  const cg_node *node, cellgate_error *error)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);
    cellgate_status status;

    if (kind == NULL)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "there is no kind number %d", (int)node->kind);
    status = cg_node_check(node, error);
    if (status == CELLGATE_OK)
        status = check_arity(model, node, error);
    if (status == CELLGATE_OK)
        status = check_outputs(model, node, error);
    if (status == CELLGATE_OK)
        status = check_weights(node, error);
    return status;
}

static void *copy_array(cellgate_model *model, const void *from, size_t count,
                        size_t size)
{
    void *copy = cg_model_memory(model, count * size);

    if (copy != NULL && count != 0)
        memcpy(copy, from, count * size);
    return copy;
}

static cellgate_status copy_node(cellgate_model *model, cg_node *node,
                                 cellgate_error *error)
{
    node->name = cg_model_text(model, node->name);
    node->layer = cg_model_text(model, node->layer != NULL ? node->layer : "");
    node->detail = NULL;
    node->inputs = copy_array(model, node->inputs, node->input_count,
                              sizeof *node->inputs);
    node->outputs = copy_array(model, node->outputs, node->output_count,
                               sizeof *node->outputs);
    node->weights = copy_array(model, node->weights, node->weight_count,
                               sizeof *node->weights);
    if (node->name == NULL || node->layer == NULL || node->inputs == NULL ||
        node->outputs == NULL || node->weights == NULL)
        return no_memory(error);
    for (size_t i = 0; i < node->weight_count; i++) {
        const float *data = node->weights[i].data;

        (void)cg_node_weight(node, i, &node->weights[i]);
        node->weights[i].data = data;
    }
    return CELLGATE_OK;
}

cellgate_status cg_model_add_node(cellgate_model *model, const cg_node *node,
                                  cellgate_error *error)
{
    cg_node copy = *node;
    cellgate_status status;

    if (node->name == NULL || node->name[0] == '\0')
        return cellgate_fail(error, CELLGATE_BAD_FILE, "a node has no name");
    if (copy.layer == NULL || copy.layer[0] == '\0')
        copy.layer = copy.name;
    status = check_node(model, &copy, error);
    if (status == CELLGATE_OK)
        status = grow(model, (void **)&model->nodes, model->node_count,
                      &model->store->node_room, sizeof copy, error);
    if (status == CELLGATE_OK)
        status = copy_node(model, &copy, error);
    if (status != CELLGATE_OK)
        return status;
    for (size_t i = 0; i < copy.output_count; i++)
        if (copy.outputs[i] != CG_NO_VALUE)
            model->values[copy.outputs[i]].producer =
                (int32_t)model->node_count;
    model->nodes[model->node_count++] = copy;
    return CELLGATE_OK;
}
