/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/generate/part_model.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to split the model into encoder and step");
}

cellgate_status cg_part_begin(cg_part_model *part, const cellgate_model *whole,
                              cellgate_error *error)
{
    cellgate_status status;

    part->whole = whole;
    part->model = NULL;
    part->values = malloc((whole->value_count + 1) * sizeof *part->values);
    if (part->values == NULL)
        return no_memory(error);
    for (size_t v = 0; v < whole->value_count; v++)
        part->values[v] = CG_NO_VALUE;
    status = cg_model_create(whole->path, whole->format, whole->format_version,
                             &part->model, error);
    if (status == CELLGATE_OK)
        cg_model_share(part->model, whole);
    return status;
}

void cg_part_end(cg_part_model *part)
{
    cellgate_model_destroy(part->model);
    free(part->values);
    part->model = NULL;
    part->values = NULL;
}

cellgate_status cg_part_input(cg_part_model *part, int32_t value, int32_t mask,
                              const int64_t *shape, cellgate_error *error)
{
    const cg_value *of = &part->whole->values[value];
    cellgate_status status = cg_model_add_value(
        part->model, of->name, of->dtype, of->rank,
        shape != NULL ? shape : of->shape, &part->values[value], error);

    if (status == CELLGATE_OK)
        status = cg_model_add_input(part->model, part->values[value], error);
    if (status == CELLGATE_OK && mask != CG_NO_VALUE)
        part->values[mask] =
            part->model->inputs[part->model->input_count - 1].mask;
    return status;
}

cellgate_status cg_part_value(cg_part_model *part, int32_t value, int32_t *made,
                              cellgate_error *error)
{
    const cg_value *of = &part->whole->values[value];
    cellgate_status status = CELLGATE_OK;

    if (part->values[value] == CG_NO_VALUE)
        status = cg_model_add_value(part->model, of->name, of->dtype, 0, NULL,
                                    &part->values[value], error);
    if (status == CELLGATE_OK)
        *made = part->values[value];
    return status;
}

/* `from` in the part's values, with those of `instead` where it names one. */
static cellgate_status translate(cg_part_model *part, const int32_t *from,
                                 const int32_t *instead, size_t count,
                                 int32_t *to, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < count; at++) {
        to[at] = instead != NULL ? instead[at] : CG_NO_VALUE;
        if (to[at] == CG_NO_VALUE && from[at] != CG_NO_VALUE)
            status = cg_part_value(part, from[at], &to[at], error);
    }
    return status;
}

cellgate_status cg_part_node(cg_part_model *part, const cg_node *node,
                             const int32_t *inputs, const int32_t *outputs,
                             cellgate_error *error)
{
    const size_t count = node->input_count + node->output_count;
    int32_t *values = malloc((count + 1) * sizeof *values);
    cg_node copy = *node;
    cellgate_status status;

    if (values == NULL)
        return no_memory(error);
    copy.inputs = values;
    copy.outputs = values + node->input_count;
    status = translate(part, node->inputs, inputs, node->input_count,
                       copy.inputs, error);
    if (status == CELLGATE_OK)
        status = translate(part, node->outputs, outputs, node->output_count,
                           copy.outputs, error);
    if (status == CELLGATE_OK)
        status = cg_model_add_node(part->model, &copy, error);
    free(values);
    return status;
}

cellgate_status cg_part_output(cg_part_model *part, int32_t value,
                               cellgate_error *error)
{
    return cg_model_add_output(part->model, part->values[value], error);
}
