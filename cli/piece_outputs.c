/* SPDX-License-Identifier: Apache-2.0 */
/* Where the outputs of a run in pieces go. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pieces.h"

/* ---- Targets --------------------------------------------------------------
 */

/* NAME= counts only where the model has that output: a path may have any '='.
 */
static const char *split_target(const cellgate_model *model, const char *text,
                                size_t *index)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    const char *equals = strchr(text, '=');
    size_t i;

    for (i = 0; equals != NULL &&
                cellgate_model_output_get(model, i, &info) == CELLGATE_OK;
         i++)
        if (strlen(info.name) == (size_t)(equals - text) &&
            memcmp(info.name, text, (size_t)(equals - text)) == 0) {
            *index = i;
            return equals + 1;
        }
    return text;
}

cellgate_status cli_pieces_targets(cli_pieces *all, cellgate_error *error)
{
    const cellgate_model *model = all->state->model;
    size_t i, count = cellgate_model_output_count(model);
    size_t given = cli_list_length(all->options->outputs);
    bool named = true;

    all->targets = calloc(count + 1, sizeof *all->targets);
    all->writers = calloc(count + 1, sizeof *all->writers);
    if (all->targets == NULL || all->writers == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (i = 0; i < given; i++) {
        size_t index = i;
        const char *path =
            split_target(model, all->options->outputs[i], &index);

        named = named && path != all->options->outputs[i];

        if (index >= count || all->targets[index] != NULL)
            return cli_error(error, CELLGATE_INVALID,
                             "--output %s: the model has %zu outputs, each "
                             "written once, as [NAME=]FILE.npy",
                             path, count);
        all->targets[index] = (char *)(uintptr_t)path;
    }
    if (given > 0 && given < count && !named)
        return cli_error(error, CELLGATE_INVALID,
                         "--output: the model has %zu outputs; give a file for "
                         "each, or name those that are wanted: NAME=FILE.npy",
                         count);
    return CELLGATE_OK;
}

static bool is_compared(const cli_pieces *all, size_t index)
{
    size_t i;

    for (i = 0; i < all->counts[CLI_COMPARED]; i++)
        if (all->files[CLI_COMPARED][i].index == index)
            return true;
    return false;
}

static cellgate_status check_compared(const cli_pieces *all, size_t index,
                                      const cellgate_tensor *whole,
                                      cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_status status = CELLGATE_OK;
    size_t i;

    cellgate_model_output_get(all->state->model, index, &info);
    for (i = 0; status == CELLGATE_OK && i < all->counts[CLI_COMPARED]; i++)
        if (all->files[CLI_COMPARED][i].index == index)
            status = cli_compare_check(
                all->files[CLI_COMPARED][i].path, info.name, whole,
                &all->files[CLI_COMPARED][i].whole, error);
    return status;
}

/* With the first piece at hand: shapes, memory for a piece, files. */
static cellgate_status open_output(cli_pieces *all, size_t index,
                                   cellgate_error *error)
{
    cellgate_tensor *output = &all->state->request.outputs[index];
    cellgate_tensor whole;
    cellgate_status status;

    if (all->targets[index] == NULL && !is_compared(all, index))
        return CELLGATE_OK; /* its data stay NULL: not wanted */
    status =
        cellgate_output_shape(all->state->session, &all->state->request.request,
                              index, output, error);
    if (status != CELLGATE_OK)
        return status;
    whole = *output;
    whole.shape[0] = all->rows;
    status = check_compared(all, index, &whole, error);
    if (status == CELLGATE_OK && all->targets[index] != NULL)
        status = cellgate_array_writer_open(all->targets[index], &whole,
                                            &all->writers[index], error);
    if (status != CELLGATE_OK)
        return status;
    output->data = calloc(cli_tensor_count(output) + 1,
                          cellgate_dtype_size(output->dtype));
    return output->data != NULL
               ? CELLGATE_OK
               : cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
}

cellgate_status cli_pieces_outputs(cli_pieces *all, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    size_t i;

    for (i = 0;
         status == CELLGATE_OK && i < all->state->request.request.output_count;
         i++)
        status = open_output(all, i, error);
    return status;
}
