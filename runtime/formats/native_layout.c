/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors a native file has, and where. */
#include "config.h"

#include <stdlib.h>

#include "cellgate/plugin.h"
#include "runtime/formats/native.h"
#include "runtime/model/selftest.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while writing the model");
}

void cg_native_layout_finish(cg_native_layout *layout)
{
    for (size_t i = 0; i < layout->count; i++)
        free(layout->tensors[i].name);
    free(layout->tensors);
}

/* ---- Weights ------------------------------------------------------------- */

static uint64_t byte_size(const cg_weight *weight)
{
    uint64_t size = sizeof *weight->data;

    for (int32_t axis = 0; axis < weight->rank; axis++)
        size *= (uint64_t)weight->shape[axis];
    return size;
}

static void add_weights(cg_native_layout *layout, const cg_node *node)
{
    for (size_t i = 0; i < node->weight_count; i++) {
        const cg_weight *weight = &node->weights[i];

        if (weight->data != NULL)
            layout->tensors[layout->count++] =
                (cg_native_tensor){ .node = node,
                                    .weight = weight,
                                    .dtype = "F32",
                                    .data = weight->data,
                                    .rank = weight->rank,
                                    .shape = weight->shape,
                                    .size = byte_size(weight) };
    }
}

static int compare_data(const void *a, const void *b)
{
    const cg_native_tensor *x = *(cg_native_tensor *const *)a;
    const cg_native_tensor *y = *(cg_native_tensor *const *)b;

    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool same_data(const cg_native_tensor *x, const cg_native_tensor *y)
{
    return x->data == y->data && x->size == y->size && x->rank == y->rank &&
           memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape) == 0;
}

/* Finds the weights that share their data; the first in order owns it. */
static cellgate_status find_owners(cg_native_layout *layout,
                                   cellgate_error *error)
{
    cg_native_tensor **sorted = malloc((layout->count + 1) * sizeof *sorted);

    if (sorted == NULL)
        return no_memory(error);
    for (size_t i = 0; i < layout->count; i++)
        sorted[i] = &layout->tensors[i];
    qsort(sorted, layout->count, sizeof *sorted, compare_data);
    for (size_t i = 0; i < layout->count; i++) {
        const bool shared = i > 0 && same_data(sorted[i - 1], sorted[i]);

        sorted[i]->owner = shared ? sorted[i - 1]->owner
                                  : (size_t)(sorted[i] - layout->tensors);
    }
    free(sorted);
    return CELLGATE_OK;
}

/* ---- The self-test ------------------------------------------------------- */

const char *cg_native_dtype(int32_t dtype)
{
    return dtype == CELLGATE_F32 ? "F32" : dtype == CELLGATE_I32 ? "I32" : "U8";
}

static void add_tensor(cg_native_layout *layout, const char *what, size_t index,
                       const cellgate_tensor *tensor)
{
    cg_native_tensor *added = &layout->tensors[layout->count];

    *added = (cg_native_tensor){ .what = what,
                                 .index = index,
                                 .dtype = cg_native_dtype(tensor->dtype),
                                 .data = tensor->data,
                                 .rank = tensor->rank,
                                 .shape = tensor->shape,
                                 .size = cg_selftest_bytes(tensor),
                                 .owner = layout->count };
    layout->count++;
}

static void add_mask(cg_native_layout *layout, size_t index,
                     const cg_selftest_input *input)
{
    cg_native_tensor *added = &layout->tensors[layout->count];

    *added = (cg_native_tensor){ .what = "mask",
                                 .index = index,
                                 .dtype = "U8",
                                 .data = input->mask,
                                 .rank = 2,
                                 .shape = input->tensor.shape,
                                 .size = (uint64_t)(input->tensor.shape[0] *
                                                    input->tensor.shape[1]),
                                 .owner = layout->count };
    layout->count++;
}

static void add_selftest(cg_native_layout *layout, const cellgate_model *model)
{
    const cg_selftest *selftest = model->selftest;

    for (size_t i = 0; i < model->input_count; i++) {
        add_tensor(layout, "input", i, &selftest->inputs[i].tensor);
        if (selftest->inputs[i].mask != NULL)
            add_mask(layout, i, &selftest->inputs[i]);
    }
    for (size_t i = 0; i < model->output_count; i++)
        add_tensor(layout, "output", i, &selftest->outputs[i]);
}

/* ---- Places -------------------------------------------------------------- */

/* No name of a weight is "input_0", so that nothing is named twice. */
static char *tensor_name(const cg_native_tensor *tensor)
{
    const size_t size =
        tensor->node != NULL
            ? strlen(tensor->node->name) + strlen(tensor->weight->name) + 2
            : 64;
    char *name = malloc(size);

    if (name != NULL && tensor->node != NULL)
        (void)snprintf(name, size, "%s/%s", tensor->node->name,
                       tensor->weight->name);
    else if (name != NULL)
        (void)snprintf(name, size, "selftest/%s_%zu", tensor->what,
                       tensor->index);
    return name;
}

static cellgate_status place_tensors(cg_native_layout *layout,
                                     cellgate_error *error)
{
    uint64_t end = 0;

    for (size_t i = 0; i < layout->count; i++) {
        cg_native_tensor *tensor = &layout->tensors[i];

        if (tensor->owner != i)
            continue;
        tensor->name = tensor_name(tensor);
        if (tensor->name == NULL)
            return no_memory(error);
        end += (CG_NATIVE_ALIGNMENT - end % CG_NATIVE_ALIGNMENT) %
               CG_NATIVE_ALIGNMENT;
        tensor->begin = end;
        end += tensor->size;
    }
    return CELLGATE_OK;
}

cellgate_status cg_native_layout_init(cg_native_layout *layout,
                                      const cellgate_model *model,
                                      cellgate_error *error)
{
    size_t room = 1 + 2 * model->input_count + model->output_count;
    cellgate_status status;

    for (size_t i = 0; i < model->node_count; i++)
        room += model->nodes[i].weight_count;
    layout->tensors = calloc(room, sizeof *layout->tensors);
    if (layout->tensors == NULL)
        return no_memory(error);
    for (size_t i = 0; i < model->node_count; i++)
        add_weights(layout, &model->nodes[i]);
    status = find_owners(layout, error);
    if (status == CELLGATE_OK && model->selftest != NULL)
        add_selftest(layout, model);
    return status == CELLGATE_OK ? place_tensors(layout, error) : status;
}
