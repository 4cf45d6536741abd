/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays whose files have steps before rows, as the model's own Keras takes and
 * gives them.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/request.h"

/* The tensor with its first two axes in each other's place; malloc'ed. */
static cellgate_status turned_copy(const cellgate_tensor *tensor,
                                   const char *name, cellgate_tensor *made,
                                   cellgate_error *error)
{
    const size_t element = cellgate_dtype_size(tensor->dtype);
    size_t first, second, size, i, k;
    const char *from = tensor->data;
    char *to;

    if (tensor->rank < 2)
        return cli_error(error, CELLGATE_BAD_SHAPE,
                         "'%s' is an array of steps and rows; the one given "
                         "has %d axes",
                         name, (int)tensor->rank);
    first = (size_t)tensor->shape[0];
    second = (size_t)tensor->shape[1];
    size = first * second == 0
               ? 0
               : element * cli_tensor_count(tensor) / (first * second);
    to = malloc(first * second * size + 1);
    if (to == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (i = 0; i < first; i++)
        for (k = 0; k < second; k++)
            memcpy(to + (k * first + i) * size, from + (i * second + k) * size,
                   size);
    *made = *tensor;
    made->shape[0] = (int64_t)second;
    made->shape[1] = (int64_t)first;
    made->data = to;
    return CELLGATE_OK;
}

cellgate_status cli_turn_inputs(cli_request *request, cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_status status = CELLGATE_OK;
    size_t i;

    for (i = 0;
         status == CELLGATE_OK &&
         cellgate_model_input_get(request->model, i, &info) == CELLGATE_OK;
         i++) {
        if (!info.steps_first)
            continue;
        status = turned_copy(&request->inputs[i].tensor, info.name,
                             &request->inputs[i].tensor, error);
        if (status == CELLGATE_OK)
            request->turned[i] = request->inputs[i].tensor.data;
    }
    return status;
}

cellgate_status cli_turn_outputs(cli_request *request, cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_status status = CELLGATE_OK;
    size_t i;

    for (i = 0;
         status == CELLGATE_OK &&
         cellgate_model_output_get(request->model, i, &info) == CELLGATE_OK;
         i++) {
        cellgate_tensor *output = &request->outputs[i];
        void *before = output->data;

        if (!info.steps_first)
            continue;
        status = turned_copy(output, info.name, output, error);
        if (status == CELLGATE_OK)
            free(before);
    }
    return status;
}

cellgate_status cli_refuse_turned(const cellgate_model *model, const char *what,
                                  cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    bool turned = false;
    size_t i;

    for (i = 0;
         !turned && cellgate_model_input_get(model, i, &info) == CELLGATE_OK;
         i++)
        turned = info.steps_first != 0;
    for (i = 0;
         !turned && cellgate_model_output_get(model, i, &info) == CELLGATE_OK;
         i++)
        turned = info.steps_first != 0;
    return turned ? cli_error(error, CELLGATE_UNSUPPORTED,
                              "'%s' has its steps before its rows "
                              "(time_major=True), which %s does not take",
                              info.name, what)
                  : CELLGATE_OK;
}
