/* SPDX-License-Identifier: Apache-2.0 */
/* `run --batch N`: files larger than memory, in pieces of N rows. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pieces.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/valid.h"

/* ---- One piece ---------------------------------------------------------- */

static cellgate_status read_file(cli_pieces *all, cli_piece_use use,
                                 cli_piece_file *file, cellgate_error *error)
{
    cli_request *request = &all->state->request;
    const size_t index = file->index;
    cellgate_tensor piece = { .struct_size = sizeof piece };
    cellgate_status status = cellgate_array_reader_next(
        file->reader, all->options->batch, &piece, error);

    if (status != CELLGATE_OK)
        return status;
    if (use == CLI_INPUTS) {
        request->inputs[index].tensor = piece;
    } else if (use == CLI_LENGTHS) {
        free(request->lengths[index]);
        request->lengths[index] = NULL;
        status = cli_valid_lengths(&piece, file->path, all->done,
                                   &request->lengths[index], error);
        request->inputs[index].lengths = request->lengths[index];
    } else {
        free(request->masks[index]);
        request->masks[index] = NULL;
        status = cli_valid_mask(&piece, &request->masks[index], error);
        request->inputs[index].mask = request->masks[index];
    }
    return status;
}

static cellgate_status read_piece(cli_pieces *all, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    cli_piece_use use;
    size_t i;

    for (use = CLI_INPUTS; use <= CLI_MASKS; use++)
        for (i = 0; status == CELLGATE_OK && i < all->counts[use]; i++)
            status = read_file(all, use, &all->files[use][i], error);
    return status;
}

static void add_report(run_state *state, const cellgate_report *report,
                       int64_t row)
{
    cellgate_report sum = *report;

    if (state->pieces == 0) {
        state->first_seconds = report->seconds;
    } else {
        if (strcmp(state->report.device, report->device) != 0)
            fprintf(stderr,
                    "cellgate: warning: from row %" PRId64
                    " on device %s runs, after %s: %s\n",
                    row, report->device, state->report.device, report->reason);
        sum.seconds += state->report.seconds;
        sum.device_seconds += state->report.device_seconds;
        sum.host_seconds += state->report.host_seconds;
        sum.wait_seconds += state->report.wait_seconds;
        sum.upload_seconds += state->report.upload_seconds;
        sum.compute_seconds += state->report.compute_seconds;
        sum.download_seconds += state->report.download_seconds;
    }
    state->report = sum;
    state->pieces++;
}

/* Rows are numbered from the file's first in all messages but the library's. */
static cellgate_status run_piece(cli_pieces *all, int64_t rows,
                                 cellgate_error *error)
{
    run_state *state = all->state;
    cellgate_report report = { .struct_size = sizeof report };
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cellgate_status status;
    size_t i;

    for (i = 0; i < state->request.request.output_count; i++)
        if (state->request.outputs[i].data != NULL)
            state->request.outputs[i].shape[0] = rows;
    status =
        cellgate_run(state->session, &state->request.request, &report, &cause);
    if (status == CELLGATE_OK)
        add_report(state, &report, all->done);
    else
        cli_error(error, status,
                  "rows %" PRId64 " to %" PRId64
                  ", numbered from 0 again: %.400s",
                  all->done, all->done + rows - 1, cause.text);
    return status;
}

static cellgate_status compare_piece(cli_pieces *all, cellgate_error *error)
{
    size_t i;

    for (i = 0; i < all->counts[CLI_COMPARED]; i++) {
        cli_piece_file *file = &all->files[CLI_COMPARED][i];
        cellgate_tensor piece = { .struct_size = sizeof piece };
        cellgate_status status = cellgate_array_reader_next(
            file->reader, all->options->batch, &piece, error);

        if (status != CELLGATE_OK)
            return status;
        cli_compare_tensors(&all->state->request.outputs[file->index], &piece,
                            &file->comparison);
    }
    return CELLGATE_OK;
}

static cellgate_status write_piece(cli_pieces *all, int64_t rows,
                                   cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    size_t i;

    for (i = 0;
         status == CELLGATE_OK && i < all->state->request.request.output_count;
         i++)
        if (all->writers[i] != NULL)
            status = cellgate_array_writer_append(
                all->writers[i], all->state->request.outputs[i].data, rows,
                error);
    return status;
}

/* ---- All of them -------------------------------------------------------- */

static cellgate_status stopped(const cli_pieces *all, cellgate_error *error)
{
    return cli_error(error, CELLGATE_END,
                     "stopped after %" PRId64 " of %" PRId64
                     " rows; no output was written",
                     all->done, all->rows);
}

static cellgate_status work(cli_pieces *all, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    cli_progress progress;

    cli_progress_begin(&progress, all->rows);
    while (status == CELLGATE_OK && all->done < all->rows) {
        const int64_t left = all->rows - all->done;
        const int64_t rows =
            left < all->options->batch ? left : (int64_t)all->options->batch;

        status = read_piece(all, error);
        if (status == CELLGATE_OK && all->done == 0)
            status = cli_pieces_outputs(all, error);
        if (status == CELLGATE_OK)
            status = run_piece(all, rows, error);
        if (status == CELLGATE_OK)
            status = compare_piece(all, error);
        if (status == CELLGATE_OK)
            status = write_piece(all, rows, error);
        if (status == CELLGATE_OK)
            all->done += rows;
        if (status == CELLGATE_OK && cli_stop_signal() != 0)
            status = stopped(all, error);
        cli_progress_update(&progress, all->done);
    }
    cli_progress_end(&progress);
    return status;
}

static cellgate_status commit(cli_pieces *all, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    size_t i;

    for (i = 0;
         status == CELLGATE_OK && i < all->state->request.request.output_count;
         i++)
        if (all->writers[i] != NULL) {
            status = cellgate_array_writer_commit(all->writers[i], error);
            all->writers[i] = NULL;
        }
    return status;
}

/* For the report: the shapes of the whole outputs, and the worst of them. */
static void conclude(cli_pieces *all)
{
    run_state *state = all->state;
    size_t i;

    state->rows = all->rows;
    for (i = 0; i < state->request.request.output_count; i++)
        if (state->request.outputs[i].data != NULL)
            state->request.outputs[i].shape[0] = all->rows;
    for (i = 0; i < all->counts[CLI_COMPARED]; i++)
        cli_compare_keep_worst(&all->files[CLI_COMPARED][i].comparison,
                               &state->comparison);
}

cellgate_status cli_run_pieces(run_state *state, const cli_shared *shared,
                               const run_options *options,
                               cellgate_error *error)
{
    cli_pieces all = { .state = state, .options = options };
    cellgate_status status =
        cli_request_allocate(&state->request, state->model, 0, error);

    if (status == CELLGATE_OK)
        status = cli_refuse_turned(state->model, "--batch", error);
    if (status == CELLGATE_OK)
        status = cli_pieces_targets(&all, error);
    if (status == CELLGATE_OK)
        status = cli_pieces_open(&all, CLI_INPUTS, options->inputs, error);
    if (status == CELLGATE_OK)
        status = cli_pieces_check(&all, error);
    if (status == CELLGATE_OK)
        status = cli_pieces_open(&all, CLI_LENGTHS, options->lengths, error);
    if (status == CELLGATE_OK)
        status = cli_pieces_open(&all, CLI_MASKS, options->masks, error);
    if (status == CELLGATE_OK)
        status = cli_pieces_open(&all, CLI_COMPARED, options->compare, error);
    if (status == CELLGATE_OK)
        status = cli_run_place(state, shared, options, error);
    if (status == CELLGATE_OK) {
        cli_stop_begin();
        status = work(&all, error);
    }
    if (status == CELLGATE_OK)
        status = commit(&all, error);
    if (status == CELLGATE_OK)
        conclude(&all);
    cli_pieces_finish(&all);
    return status;
}
