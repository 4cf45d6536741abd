/* SPDX-License-Identifier: Apache-2.0 */
/* Where the outputs of a run in pieces go. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pieces.h"

/* ---- Targets ------------------------------------------------------------ */

cellgate_status cli_pieces_targets(cli_pieces *all, cellgate_error *error)
{
    size_t count = cellgate_model_output_count(all->state->model);

    all->targets = calloc(count + 1, sizeof *all->targets);
    all->writers = calloc(count + 1, sizeof *all->writers);
    if (all->targets == NULL || all->writers == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    return cli_find_targets(all->state->model, all->options->outputs,
                            all->targets, error);
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
