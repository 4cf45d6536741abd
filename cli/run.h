/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `cellgate run` share. */
#ifndef CELLGATE_CLI_RUN_H
#define CELLGATE_CLI_RUN_H

#include "cli/command.h"
#include "cli/compare.h"
#include "cli/request.h"

typedef struct run_options {
    /* NULL-terminated lists of [NAME=]FILE[:ARRAY], or NULL. */
    char **inputs, **lengths, **masks, **compare, **outputs;
    char *device, *variant, *report;
    char *state_in, *state_out; /* .npz */
    int repeat;
    long long batch; /* rows a piece; -1: all at once */
    double tolerance;
} run_options;

/* Everything that a run holds; all of it may be NULL. */
typedef struct run_state {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    cellgate_stream *stream; /* NULL: every layer begins with zeros */
    cli_request request;
    const char **targets;   /* a file of its own for each output, or NULL */
    double first_seconds;   /* of the first request */
    double median_seconds;  /* of all; not with pieces */
    cellgate_report report; /* of the last request; with pieces, times are of
                               all */
    int64_t rows, pieces;   /* 0 without --batch */
    cli_comparison comparison;
} run_state;

/*
 * Runs the inputs through the session in pieces of options->batch rows, and
 * writes and compares as they come. END: a signal came, which cli_stop_signal()
 * tells. After an error no output is there, and files of their names are as
 * they were.
 */
cellgate_status cli_run_pieces(run_state *state, const cli_shared *shared,
                               const run_options *options,
                               cellgate_error *error);

/* Opens the runtime and places the model as the options say. */
cellgate_status cli_run_place(run_state *state, const cli_shared *shared,
                              const run_options *options,
                              cellgate_error *error);

/* ---- run_states.c -------------------------------------------------------- */

/* Gives the request a stream, with the state that is to be continued. */
cellgate_status cli_states_begin(run_state *state, const run_options *options,
                                 cellgate_error *error);
/* Writes the state after the run. */
cellgate_status cli_states_end(const run_state *state,
                               const run_options *options,
                               cellgate_error *error);

/* ---- targets.c ----------------------------------------------------------- */

/* Which output goes to which of the files [NAME=]FILE; targets[] are NULL
   before, and point into `outputs`. */
cellgate_status cli_find_targets(const cellgate_model *model,
                                 char *const *outputs, const char **targets,
                                 cellgate_error *error);
/* Whether all outputs go into one .npz, which stands alone. */
bool cli_is_archive(const cellgate_model *model, char *const *outputs);
/* Before anything runs: cellgate_arrays_write() would refuse it after. */
cellgate_status cli_check_targets(const char *const *targets, size_t count,
                                  cellgate_error *error);

/* Writes, prints and reports what came out; returns the exit code. */
int cli_run_show(const run_state *state, const cli_shared *shared,
                 const run_options *options, const char *path);

#endif
