/* SPDX-License-Identifier: Apache-2.0 */
/* Whether requests go where they cost least: the choice, measured anew. */
#include "config.h"

#include <stdlib.h>

#include "cli/audit.h"
#include "cli/progress.h"
#include "cli/stop.h"

typedef struct audit_options {
    char *device, *batch, *steps, *csv;
    double seconds;
    int cells;
    long long seed;
} audit_options;

typedef struct auditing {
    const audit_options *options;
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    cli_progress progress;
    cli_audit_report report;
    bool full; /* no memory for a cell */
} auditing;

static int32_t show_progress(void *context, double done)
{
    auditing *of = context;

    cli_progress_update_share(&of->progress, done);
    return cli_stop_signal() != 0 || of->full;
}

static void keep(void *context, const cellgate_audit_cell *cell)
{
    auditing *of = context;

    of->full = !cli_audit_keep(&of->report, cell) || of->full;
}

static cellgate_status open_all(auditing *of, const cli_shared *shared,
                                cellgate_error *error)
{
    cellgate_session_options session = { .struct_size = sizeof session,
                                         .device = of->options->device };
    cellgate_status status =
        cellgate_model_load(of->report.model, &of->model, error);

    if (status == CELLGATE_OK)
        status = cli_open(shared, &of->runtime, error);
    if (status == CELLGATE_OK)
        status = cellgate_session_create(of->runtime, of->model, &session,
                                         &of->session, error);
    return status;
}

static cellgate_status measure(auditing *of, cellgate_error *error)
{
    cli_audit_report *report = &of->report;
    const cellgate_audit_options how = {
        .struct_size = sizeof how,
        .seconds = of->options->seconds,
        .batch_least = report->batch.least,
        .batch_most = report->batch.most,
        .steps_least = report->steps.least,
        .steps_most = report->steps.most,
        .cells = (uint32_t)of->options->cells,
        .seed = (uint64_t)of->options->seed,
        .progress = show_progress,
        .progress_context = of,
        .cell = keep,
        .cell_context = of,
    };
    cellgate_status status;

    report->result.struct_size = sizeof report->result;
    cli_stop_begin();
    cli_progress_begin_share(&of->progress);
    status = cellgate_audit(of->session, &how, &report->result, error);
    cli_progress_end(&of->progress);
    report->stopped = cli_stop_signal() != 0;
    if (status == CELLGATE_OK && of->full)
        status = cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    return status;
}

static cellgate_status work(auditing *of, const cli_shared *shared,
                            cellgate_error *error)
{
    cli_audit_report *report = &of->report;
    cellgate_status status =
        cli_extents_read(&report->batch, of->options->batch, "batch", error);

    if (status == CELLGATE_OK)
        status = cli_extents_read(&report->steps, of->options->steps, "steps",
                                  error);
    if (status == CELLGATE_OK)
        status = open_all(of, shared, error);
    if (status == CELLGATE_OK)
        status = measure(of, error);
    if (status == CELLGATE_OK && !cli_free_steps(of->model))
        report->steps = (cli_extents){ 0, 0 };
    if (status == CELLGATE_OK && of->options->csv != NULL)
        status = cli_audit_csv(report, of->options->csv, error);
    return status;
}

static int audit(const cli_shared *shared, const audit_options *options,
                 const char *path)
{
    auditing of = { .options = options,
                    .report = { .model = path,
                                .batch = { 1, 64 },
                                .steps = { 1, 128 },
                                .seed = options->seed } };
    cellgate_error error = CELLGATE_ERROR_INIT;
    int exit_code = CLI_OK;

    if (work(&of, shared, &error) != CELLGATE_OK)
        exit_code = cli_fail(&error);
    else if (shared->json)
        exit_code = cli_print_json(cli_audit_json(&of.report));
    else
        cli_audit_print(&of.report);
    cli_audit_finish(&of.report);
    cellgate_session_destroy(of.session);
    cellgate_runtime_destroy(of.runtime);
    cellgate_model_destroy(of.model);
    (void)fflush(stdout);
    cli_stop_raise();
    return exit_code;
}

static int audit_main(const cli_command *command, int argc, const char **argv)
{
    audit_options options = { .seconds = 60 };
    struct poptOption table[] = {
        { "seconds", 's', POPT_ARG_DOUBLE, &options.seconds, 0,
          "time to spend at most (default 60)", "S" },
        { "batch", 'b', POPT_ARG_STRING, &options.batch, 0,
          "batch sizes to look at (default 1-64)", "A-B" },
        { "steps", 't', POPT_ARG_STRING, &options.steps, 0,
          "steps, likewise (default 1-128)", "A-B" },
        { "cells", 'n', POPT_ARG_INT, &options.cells, 0,
          "look at so many of these shapes, drawn at random (default: all)",
          "N" },
        { "seed", '\0', POPT_ARG_LONGLONG, &options.seed, 0,
          "of the drawing and of the order (default 0)", "N" },
        { "device", 'd', POPT_ARG_STRING, &options.device, 0,
          "look at this device's variants alone", "NAME" },
        { "csv", '\0', POPT_ARG_STRING, &options.csv, 0,
          "write every shape as comma-separated values", "FILE" },
        POPT_TABLEEND
    };
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (!cli_parse(command, argc, argv, table, 1, &shared, &arguments))
        exit_code = arguments.exit_code;
    else if (!(options.seconds > 0) || options.cells < 0)
        exit_code = cli_report(CLI_USAGE, "--seconds takes a time above 0, and "
                                          "--cells a number");
    else
        exit_code = audit(&shared, &options, arguments.positional[0]);
    cli_finish(&shared, &arguments);
    free(options.batch);
    free(options.steps);
    free(options.device);
    free(options.csv);
    return exit_code;
}

const cli_command cli_audit = {
    "audit",
    "MODEL [OPTION...]",
    "measure whether requests go where they cost least",
    audit_main,
};
