/* SPDX-License-Identifier: Apache-2.0 */
/* The request that a bench times. */
#include "config.h"

#include <stdlib.h>

#include "cli/bench.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
}

/* Numbers between -1 and 1; ids are 1, which every vocabulary but the smallest
   has and no mask hides. */
static void fill(const cellgate_tensor *tensor)
{
    const size_t count = cli_tensor_count(tensor);

    for (size_t at = 0; at < count; at++)
        if (tensor->dtype == CELLGATE_I32)
            ((int32_t *)tensor->data)[at] = 1;
        else
            ((float *)tensor->data)[at] =
                (float)((uint32_t)at * UINT32_C(2654435769)) / 2147483648.0f -
                1.0f;
}

static cellgate_status make_input(bench_state *state, size_t index,
                                  cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_input *input = &state->inputs[index];
    cellgate_tensor *tensor = &input->tensor;
    int64_t count = 1;

    cellgate_model_input_get(state->model, index, &info);
    input->struct_size = sizeof *input;
    tensor->struct_size = sizeof *tensor;
    tensor->dtype = info.dtype;
    tensor->rank = info.rank;
    for (int32_t axis = 0; axis < info.rank; axis++) {
        tensor->shape[axis] = axis == 0               ? state->of.batch
                              : info.shape[axis] >= 0 ? info.shape[axis]
                                                      : state->of.steps;
        if (__builtin_mul_overflow(count, tensor->shape[axis], &count) ||
            count > INT64_MAX / 8)
            return no_memory(error);
    }
    tensor->data = calloc((size_t)count + 1, cellgate_dtype_size(info.dtype));
    if (tensor->data == NULL)
        return no_memory(error);
    fill(tensor);
    return CELLGATE_OK;
}

cellgate_status bench_make_request(bench_state *state, cellgate_error *error)
{
    const size_t inputs = cellgate_model_input_count(state->model);
    const size_t outputs = cellgate_model_output_count(state->model);
    cellgate_status status = CELLGATE_OK;

    state->inputs = calloc(inputs, sizeof *state->inputs);
    state->outputs = calloc(outputs, sizeof *state->outputs);
    if (state->inputs == NULL || state->outputs == NULL)
        return no_memory(error);
    state->request = (cellgate_request){ .struct_size = sizeof state->request,
                                         .inputs = state->inputs,
                                         .input_count = inputs,
                                         .outputs = state->outputs,
                                         .output_count = outputs };
    for (size_t i = 0; i < outputs; i++)
        state->outputs[i].struct_size = sizeof state->outputs[i];
    for (size_t i = 0; status == CELLGATE_OK && i < inputs; i++)
        status = make_input(state, i, error);
    return status;
}

cellgate_status bench_make_outputs(bench_state *state,
                                   const cellgate_session *session,
                                   cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < state->request.output_count;
         i++) {
        cellgate_tensor *output = &state->outputs[i];

        if (output->data != NULL)
            continue;
        status =
            cellgate_output_shape(session, &state->request, i, output, error);
        if (status != CELLGATE_OK)
            return status;
        output->data = calloc(cli_tensor_count(output) + 1,
                              cellgate_dtype_size(output->dtype));
        if (output->data == NULL)
            return no_memory(error);
    }
    return status;
}
