/* SPDX-License-Identifier: Apache-2.0 */
/* The files of `run --batch N`: read and written in pieces of N rows. */
#ifndef CELLGATE_CLI_PIECES_H
#define CELLGATE_CLI_PIECES_H

#include "cli/run.h"

/* What a file is read for. */
typedef enum cli_piece_use {
    CLI_INPUTS,
    CLI_LENGTHS,
    CLI_MASKS,
    CLI_COMPARED,
    CLI_USES
} cli_piece_use;

typedef struct cli_piece_file {
    char *path;
    cellgate_array_reader *reader;
    cellgate_tensor whole;
    size_t index;              /* of its input or output */
    cli_comparison comparison; /* so far */
} cli_piece_file;

typedef struct cli_pieces {
    run_state *state;
    const run_options *options;
    cli_piece_file *files[CLI_USES];
    size_t counts[CLI_USES];
    const char **targets; /* by output; NULL: not written */
    cellgate_array_writer **writers;
    int64_t rows, done;
} cli_pieces;

/* Opens the files of a list; inputs before lengths and masks. */
cellgate_status cli_pieces_open(cli_pieces *all, cli_piece_use use,
                                char *const *list, cellgate_error *error);
/* That every input of the model is there, with rows. */
cellgate_status cli_pieces_check(const cli_pieces *all, cellgate_error *error);
/* Which output goes to which file, as far as the names tell. */
cellgate_status cli_pieces_targets(cli_pieces *all, cellgate_error *error);
/* With the first piece in the request: shapes of the outputs, memory for a
   piece of them, and the files to write. */
cellgate_status cli_pieces_outputs(cli_pieces *all, cellgate_error *error);
/* Gives up what is not committed. */
void cli_pieces_finish(cli_pieces *all);

#endif
