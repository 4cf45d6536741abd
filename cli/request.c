/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/request.h"
#include "cli/valid.h"

size_t cli_list_length(char *const *list)
{
    size_t count = 0;

    while (list != NULL && list[count] != NULL)
        count++;
    return count;
}

cellgate_status cli_find_input(const cellgate_model *model, const char *name,
                               size_t *index, cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; cellgate_model_input_get(model, i, &info) == CELLGATE_OK; i++)
        if (strcmp(info.name, name) == 0) {
            *index = i;
            return CELLGATE_OK;
        }
    return cli_no_such_value(model, cellgate_model_input_get, "input", name,
                             error);
}

/* ---- Inputs ------------------------------------------------------------ */

/* A .npz without ARRAY may bring every input, by the inputs' names. */
static size_t take_by_name(cli_request *request, const cli_source *source)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_error ignored = CELLGATE_ERROR_INIT;
    size_t i, taken = 0;

    if (source->name != NULL || source->array != NULL ||
        cellgate_arrays_count(source->arrays) < 2)
        return 0;
    for (i = 0;
         cellgate_model_input_get(request->model, i, &info) == CELLGATE_OK;
         i++) {
        cellgate_tensor *tensor = &request->inputs[i].tensor;

        if (tensor->data == NULL && cli_source_tensor(source, info.name, tensor,
                                                      &ignored) == CELLGATE_OK)
            taken++;
    }
    return taken;
}

static cellgate_status place(const cli_request *request,
                             const cli_source *source, size_t *index,
                             cellgate_error *error)
{
    if (source->name != NULL)
        return cli_find_input(request->model, source->name, index, error);
    for (*index = 0; *index < request->request.input_count; ++*index)
        if (request->inputs[*index].tensor.data == NULL)
            return CELLGATE_OK;
    return cli_error(error, CELLGATE_INVALID,
                     "%s: more inputs are given than the model has (%zu)",
                     source->file, request->request.input_count);
}

static cellgate_status take_input(cli_request *request, const char *text,
                                  cellgate_error *error)
{
    cli_source *source = &request->sources[request->source_count];
    cellgate_tensor tensor = { .struct_size = sizeof tensor };
    cellgate_status status;
    size_t index;

    status = cli_source_init(source, text, error);
    if (status != CELLGATE_OK)
        return status;
    request->source_count++;
    if (take_by_name(request, source) > 0)
        return CELLGATE_OK;
    status = place(request, source, &index, error);
    if (status == CELLGATE_OK)
        status = cli_source_tensor(source, NULL, &tensor, error);
    if (status != CELLGATE_OK)
        return status;
    if (request->inputs[index].tensor.data != NULL)
        return cli_error(error, CELLGATE_INVALID, "input '%s' is given twice",
                         source->name);
    request->inputs[index].tensor = tensor;
    return CELLGATE_OK;
}

static cellgate_status check_complete(const cli_request *request,
                                      cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0;
         cellgate_model_input_get(request->model, i, &info) == CELLGATE_OK; i++)
        if (request->inputs[i].tensor.data == NULL)
            return cli_error(
                error, CELLGATE_INVALID,
                "input '%s' is missing; give it with --input %s=FILE",
                info.name, info.name);
    return CELLGATE_OK;
}

/* ---- Lengths and masks -------------------------------------------------- */

static cellgate_status take_valid(cli_request *request, const char *text,
                                  bool is_mask, cellgate_error *error)
{
    const char *what = is_mask ? "a mask" : "lengths";
    cellgate_tensor tensor = { .struct_size = sizeof tensor };
    cli_source source;
    cellgate_status status;
    size_t index = 0;

    status = cli_source_init(&source, text, error);
    if (status != CELLGATE_OK)
        return status;
    if (source.name != NULL)
        status = cli_find_input(request->model, source.name, &index, error);
    if (status == CELLGATE_OK)
        status = cli_valid_wanted(request->model, index, what, error);
    if (status == CELLGATE_OK)
        status = cli_source_tensor(&source, is_mask ? "mask" : "lengths",
                                   &tensor, error);
    if (status == CELLGATE_OK)
        status = cli_valid_check(source.file, &tensor,
                                 &request->inputs[index].tensor,
                                 is_mask ? 2 : 1, what, error);
    if (status == CELLGATE_OK &&
        (request->lengths[index] != NULL || request->masks[index] != NULL))
        status =
            cli_error(error, CELLGATE_INVALID,
                      "give lengths or a mask for an input, and only once");
    if (status == CELLGATE_OK && is_mask)
        status = cli_valid_mask(&tensor, &request->masks[index], error);
    else if (status == CELLGATE_OK)
        status = cli_valid_lengths(&tensor, source.file, 0,
                                   &request->lengths[index], error);
    request->inputs[index].mask = request->masks[index];
    request->inputs[index].lengths = request->lengths[index];
    cli_source_finish(&source);
    return status;
}

/* ---- All of it ---------------------------------------------------------- */

cellgate_status cli_request_allocate(cli_request *request,
                                     const cellgate_model *model,
                                     size_t sources, cellgate_error *error)
{
    size_t i, inputs = cellgate_model_input_count(model);
    size_t outputs = cellgate_model_output_count(model);

    memset(request, 0, sizeof *request);
    request->model = model;
    request->inputs = calloc(inputs + 1, sizeof *request->inputs);
    request->lengths = calloc(inputs + 1, sizeof *request->lengths);
    request->masks = calloc(inputs + 1, sizeof *request->masks);
    request->turned = calloc(inputs + 1, sizeof *request->turned);
    request->outputs = calloc(outputs + 1, sizeof *request->outputs);
    request->sources = calloc(sources + 1, sizeof *request->sources);
    request->request = (cellgate_request){
        .struct_size = sizeof request->request,
        .inputs = request->inputs,
        .input_count = inputs,
        .outputs = request->outputs,
        .output_count = outputs,
    };
    if (request->inputs == NULL || request->lengths == NULL ||
        request->masks == NULL || request->turned == NULL ||
        request->outputs == NULL || request->sources == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (i = 0; i < inputs; i++) {
        request->inputs[i].struct_size = sizeof request->inputs[i];
        request->inputs[i].tensor.struct_size = sizeof(cellgate_tensor);
    }
    for (i = 0; i < outputs; i++)
        request->outputs[i].struct_size = sizeof request->outputs[i];
    return CELLGATE_OK;
}

cellgate_status cli_request_init(cli_request *request,
                                 const cellgate_model *model,
                                 char *const *inputs, char *const *lengths,
                                 char *const *masks, cellgate_error *error)
{
    cellgate_status status;
    size_t i;

    status =
        cli_request_allocate(request, model, cli_list_length(inputs), error);
    for (i = 0; status == CELLGATE_OK && i < cli_list_length(inputs); i++)
        status = take_input(request, inputs[i], error);
    if (status == CELLGATE_OK)
        status = check_complete(request, error);
    if (status == CELLGATE_OK)
        status = cli_turn_inputs(request, error);
    for (i = 0; status == CELLGATE_OK && i < cli_list_length(lengths); i++)
        status = take_valid(request, lengths[i], false, error);
    for (i = 0; status == CELLGATE_OK && i < cli_list_length(masks); i++)
        status = take_valid(request, masks[i], true, error);
    if (status != CELLGATE_OK)
        cli_request_finish(request);
    return status;
}

cellgate_status cli_request_outputs(cli_request *request,
                                    const cellgate_session *session,
                                    cellgate_error *error)
{
    cellgate_status status;
    size_t i;

    for (i = 0; i < request->request.output_count; i++) {
        cellgate_tensor *output = &request->outputs[i];

        status =
            cellgate_output_shape(session, &request->request, i, output, error);
        if (status != CELLGATE_OK)
            return status;
        output->data = calloc(cli_tensor_count(output) + 1, sizeof(float));
        if (output->data == NULL)
            return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    }
    return CELLGATE_OK;
}

void cli_request_finish(cli_request *request)
{
    size_t i;

    for (i = 0; i < request->request.input_count; i++) {
        if (request->lengths != NULL)
            free(request->lengths[i]);
        if (request->masks != NULL)
            free(request->masks[i]);
        if (request->turned != NULL)
            free(request->turned[i]);
    }
    for (i = 0; i < request->request.output_count; i++)
        if (request->outputs != NULL)
            free(request->outputs[i].data);
    for (i = 0; i < request->source_count; i++)
        cli_source_finish(&request->sources[i]);
    free(request->inputs);
    free(request->lengths);
    free(request->masks);
    free(request->turned);
    free(request->outputs);
    free(request->sources);
    memset(request, 0, sizeof *request);
}
