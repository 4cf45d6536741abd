/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a run in pieces reads, and what they belong to. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pieces.h"
#include "cli/valid.h"

/* ---- Files -------------------------------------------------------------- */

static cellgate_status open_file(cli_piece_file *file, cli_source *source,
                                 const char *text, cellgate_error *error)
{
    cellgate_status status = cli_source_split(source, text, error);

    if (status == CELLGATE_OK)
        status = cellgate_array_reader_open(source->file, &file->reader, error);
    if (status != CELLGATE_OK)
        return status;
    file->path = strdup(source->file);
    if (file->path == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    if (source->array != NULL)
        return cli_error(error, CELLGATE_INVALID,
                         "%s: a .npy file has no array '%s'", source->file,
                         source->array);
    file->whole.struct_size = sizeof file->whole;
    return cellgate_array_reader_shape(file->reader, &file->whole);
}

/* The input or output that file number `at` of its list belongs to. */
static cellgate_status find_index(const cli_pieces *all, cli_piece_use use,
                                  size_t at, const char *name, size_t *index,
                                  cellgate_error *error)
{
    const cellgate_model *model = all->state->model;
    const cellgate_tensor *taken;

    if (name != NULL)
        return use == CLI_COMPARED ? cli_find_output(model, name, index, error)
                                   : cli_find_input(model, name, index, error);
    *index = use == CLI_COMPARED ? at : 0;
    for (; use == CLI_INPUTS; ++*index) {
        taken = &all->state->request.inputs[*index].tensor;
        if (*index == cellgate_model_input_count(model) || taken->rank == 0)
            break;
    }
    if (*index < (use == CLI_COMPARED ? cellgate_model_output_count(model)
                                      : cellgate_model_input_count(model)))
        return CELLGATE_OK;
    return cli_error(error, CELLGATE_INVALID,
                     "more %s are given than the model has",
                     use == CLI_COMPARED ? "outputs to compare" : "inputs");
}

/* The shape of the whole input serves as a mark that it is there. */
static cellgate_status take_input(cli_pieces *all, const cli_piece_file *file,
                                  cellgate_error *error)
{
    cellgate_input *input = &all->state->request.inputs[file->index];

    if (input->tensor.rank != 0)
        return cli_error(error, CELLGATE_INVALID,
                         "%s: its input is given twice", file->path);
    if (all->files[CLI_INPUTS] != file &&
        file->whole.shape[0] != all->files[CLI_INPUTS]->whole.shape[0])
        return cli_error(error, CELLGATE_BAD_SHAPE,
                         "%s has %" PRId64 " rows, %s has %" PRId64, file->path,
                         file->whole.shape[0], all->files[CLI_INPUTS]->path,
                         all->files[CLI_INPUTS]->whole.shape[0]);
    input->tensor = file->whole;
    all->rows = file->whole.shape[0];
    return CELLGATE_OK;
}

static cellgate_status take_valid(const cli_pieces *all, cli_piece_use use,
                                  const cli_piece_file *file,
                                  cellgate_error *error)
{
    const char *what = use == CLI_MASKS ? "a mask" : "lengths";
    cli_piece_use other;
    size_t i;
    cellgate_status status =
        cli_valid_wanted(all->state->model, file->index, what, error);

    if (status != CELLGATE_OK)
        return status;
    for (other = CLI_LENGTHS; other <= CLI_MASKS; other++)
        for (i = 0; i < all->counts[other]; i++)
            if (&all->files[other][i] != file &&
                all->files[other][i].index == file->index)
                return cli_error(error, CELLGATE_INVALID,
                                 "give lengths or a mask for an input, and "
                                 "only once");
    return cli_valid_check(file->path, &file->whole,
                           &all->state->request.inputs[file->index].tensor,
                           use == CLI_MASKS ? 2 : 1, what, error);
}

cellgate_status cli_pieces_open(cli_pieces *all, cli_piece_use use,
                                char *const *list, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    size_t i, count = cli_list_length(list);

    all->files[use] = calloc(count + 1, sizeof *all->files[use]);
    if (all->files[use] == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (i = 0; status == CELLGATE_OK && i < count; i++) {
        cli_piece_file *file = &all->files[use][i];
        cli_source source;

        memset(&source, 0, sizeof source);
        all->counts[use]++;
        status = open_file(file, &source, list[i], error);
        if (status == CELLGATE_OK)
            status = find_index(all, use, i, source.name, &file->index, error);
        if (status == CELLGATE_OK && use == CLI_INPUTS)
            status = take_input(all, file, error);
        else if (status == CELLGATE_OK && use != CLI_COMPARED)
            status = take_valid(all, use, file, error);
        cli_source_finish(&source);
    }
    return status;
}

cellgate_status cli_pieces_check(const cli_pieces *all, cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0;
         cellgate_model_input_get(all->state->model, i, &info) == CELLGATE_OK;
         i++)
        if (all->state->request.inputs[i].tensor.rank == 0)
            return cli_error(
                error, CELLGATE_INVALID,
                "input '%s' is missing; give it with --input %s=FILE",
                info.name, info.name);
    if (all->rows < 1)
        return cli_error(error, CELLGATE_BAD_SHAPE, "%s has no rows",
                         all->files[CLI_INPUTS]->path);
    return CELLGATE_OK;
}

void cli_pieces_finish(cli_pieces *all)
{
    cli_piece_use use;
    size_t i;

    for (i = 0;
         all->writers != NULL && i < all->state->request.request.output_count;
         i++)
        cellgate_array_writer_abandon(all->writers[i]);
    for (use = CLI_INPUTS; use < CLI_USES; use++) {
        for (i = 0; i < all->counts[use]; i++) {
            cellgate_array_reader_close(all->files[use][i].reader);
            free(all->files[use][i].path);
        }
        free(all->files[use]);
    }
    free(all->targets);
    free(all->writers);
}
