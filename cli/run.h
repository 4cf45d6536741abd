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
    int repeat;
    long long batch; /* rows a piece; -1: all at once */
    double tolerance;
} run_options;

/* Everything that a run holds; all of it may be NULL. */
typedef struct run_state {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    cli_request request;
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

/* Writes, prints and reports what came out; returns the exit code. */
int cli_run_show(const run_state *state, const cli_shared *shared,
                 const run_options *options, const char *path);

#endif
