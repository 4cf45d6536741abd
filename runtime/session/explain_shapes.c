/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/explain_shapes.h"

static bool decides_steps(const cg_value *value)
{
    for (int32_t axis = 1; axis < value->rank; axis++)
        if (value->shape[axis] == CG_UNKNOWN)
            return true;
    return false;
}

bool cg_explain_free_steps(const cellgate_model *model)
{
    for (size_t at = 0; at < model->input_count; at++)
        if (decides_steps(&model->values[model->inputs[at].value]))
            return true;
    return false;
}

static cellgate_status check(const cellgate_model *model,
                             const cellgate_question *question,
                             cellgate_error *error)
{
    const bool free_steps = cg_explain_free_steps(model);
    bool same = question->steps == 0;

    for (size_t at = 0; at < model->input_count; at++) {
        const cg_value *value = &model->values[model->inputs[at].value];

        same = same || (cg_value_has_steps(value) &&
                        value->shape[1] == question->steps);
    }
    if (question->batch < 1 || question->batch > INT32_MAX ||
        question->steps < 0 || question->steps > INT32_MAX)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "a batch of %lld rows and %lld steps is none",
                             (long long)question->batch,
                             (long long)question->steps);
    if (free_steps && question->steps == 0)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "the model takes any number of steps: say how "
                             "many");
    if (!free_steps && !same)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "the model's inputs have fixed extents, and none "
                             "has %lld steps",
                             (long long)question->steps);
    return CELLGATE_OK;
}

void cg_explain_input(const cg_value *value, const cellgate_question *question,
                      cellgate_input *input)
{
    *input = (cellgate_input){ .struct_size = sizeof *input };
    input->tensor.struct_size = sizeof input->tensor;
    input->tensor.dtype = value->dtype;
    input->tensor.rank = value->rank;
    for (int32_t axis = 0; axis < value->rank; axis++)
        input->tensor.shape[axis] = axis == 0 ? question->batch
                                    : value->shape[axis] == CG_UNKNOWN
                                        ? question->steps
                                        : value->shape[axis];
}

bool cg_explain_takes_lengths(const cellgate_model *model)
{
    for (size_t at = 0; at < model->input_count; at++)
        if (model->inputs[at].mask != CG_NO_VALUE)
            return true;
    return false;
}

cellgate_status cg_explain_shapes(const cg_graph *graph,
                                  const cellgate_question *question,
                                  cg_shape *shapes, int64_t *steps,
                                  cellgate_error *error)
{
    const cellgate_model *model = graph->model;
    const cg_value *first = &model->values[model->inputs[0].value];
    cellgate_request request = { .struct_size = sizeof request,
                                 .input_count = model->input_count };
    cellgate_input *inputs;
    cellgate_status status = check(model, question, error);

    if (status != CELLGATE_OK)
        return status;
    inputs = calloc(model->input_count, sizeof *inputs);
    if (inputs == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to explain a decision");
    for (size_t at = 0; at < model->input_count; at++)
        cg_explain_input(&model->values[model->inputs[at].value], question,
                         &inputs[at]);
    request.inputs = inputs;
    status = cg_request_shapes(&request, graph, shapes, error);
    if (status == CELLGATE_OK)
        *steps = cg_value_has_steps(first) ? inputs[0].tensor.shape[1] : 0;
    free(inputs);
    return status;
}
