/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring a model on this machine, and what was measured as text. */
#include "config.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/extents.h"
#include "cli/progress.h"
#include "cli/stop.h"

#define NOT_GIVEN (-DBL_MAX)

typedef struct calibrate_options {
    char *device, *batch, *steps, *import, *export;
    double seconds; /* or NOT_GIVEN */
    int cells, diff;
} calibrate_options;

typedef struct calibration {
    const calibrate_options *options;
    const char *path;
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    bool measures, json;
    cli_progress progress;
    cellgate_calibration_result result;
    uint64_t imported, unused;
    json_t *stale; /* lines, with --json */
} calibration;

/* ---- The steps ----------------------------------------------------------- */

static int32_t show_progress(void *context, double done)
{
    calibration *of = context;

    cli_progress_update_share(&of->progress, done);
    return cli_stop_signal() != 0;
}

static cellgate_status measure(calibration *of, cellgate_error *error)
{
    cli_extents batch = { 0, 0 }, steps = { 0, 0 };
    cellgate_calibration how = { .struct_size = sizeof how,
                                 .progress = show_progress,
                                 .progress_context = of };
    cellgate_status status =
        cli_extents_read(&batch, of->options->batch, "batch", error);

    if (status == CELLGATE_OK)
        status = cli_extents_read(&steps, of->options->steps, "steps", error);
    if (status != CELLGATE_OK)
        return status;
    how.seconds = of->options->seconds > 0 ? of->options->seconds : 0;
    how.batch_least = batch.least;
    how.batch_most = batch.most;
    how.steps_least = steps.least;
    how.steps_most = steps.most;
    how.cells_most = (uint32_t)of->options->cells;
    of->result.struct_size = sizeof of->result;
    cli_stop_begin();
    cli_progress_begin_share(&of->progress);
    status = cellgate_calibrate(of->session, &how, &of->result, error);
    cli_progress_end(&of->progress);
    return status;
}

static void tell_unused(void *context, const char *line)
{
    calibration *of = context;

    if (of->json)
        json_array_append_new(of->stale, json_string(line));
    else
        printf("%s\n", line);
}

static cellgate_status open_all(calibration *of, const cli_shared *shared,
                                cellgate_error *error)
{
    cellgate_session_options session = { .struct_size = sizeof session,
                                         .device = of->options->device };
    cellgate_status status = cellgate_model_load(of->path, &of->model, error);

    if (status == CELLGATE_OK)
        status = cli_open(shared, &of->runtime, error);
    if (status == CELLGATE_OK)
        status = cellgate_session_create(of->runtime, of->model, &session,
                                         &of->session, error);
    return status;
}

static cellgate_status work(calibration *of, const cli_shared *shared,
                            cellgate_error *error)
{
    const calibrate_options *options = of->options;
    cellgate_status status = open_all(of, shared, error);

    if (status == CELLGATE_OK && options->import != NULL)
        status = cellgate_calibration_import(of->runtime, options->import,
                                             &of->imported, error);
    if (status == CELLGATE_OK && of->measures)
        status = measure(of, error);
    if (status == CELLGATE_OK && options->export != NULL)
        status =
            cellgate_calibration_export(of->runtime, options->export, error);
    if (status == CELLGATE_OK && options->diff)
        status = cellgate_calibration_unused(of->session, tell_unused, of,
                                             &of->unused, error);
    return status;
}

/* ---- The answer ---------------------------------------------------------- */

static int show_json(const calibration *of)
{
    json_t *json = json_pack("{s:s}", "model", of->path);

    if (of->measures)
        json_object_set_new(
            json, "measured",
            json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:b}",
                      "candidates", (int)of->result.candidates, "shapes",
                      (int)of->result.cells, "shapes_measured",
                      (int)of->result.cells_measured, "shapes_left_out",
                      (int)of->result.cells_left_out, "wrong",
                      (int)of->result.wrong, "failed", (int)of->result.failed,
                      "unreached", (int)of->result.unreached, "samples",
                      (json_int_t)of->result.samples, "stopped",
                      cli_stop_signal() != 0));
    if (of->options->import != NULL)
        json_object_set_new(json, "imported",
                            json_integer((json_int_t)of->imported));
    if (of->options->export != NULL)
        json_object_set_new(json, "exported", json_string(of->options->export));
    if (of->options->diff)
        json_object_set_new(json, "unused",
                            json_pack("{s:I, s:O}", "rows",
                                      (json_int_t)of->unused, "reasons",
                                      of->stale));
    return cli_print_json(json);
}

static void show_measured(const calibration *of)
{
    const cellgate_calibration_result *result = &of->result;

    printf("%s: measured %" PRIu32 " of %" PRIu32 " %s on %" PRIu32
           " %s (a device and a variant), %" PRIu64 " %s\n",
           of->path, result->cells_measured, result->cells,
           cli_counted(result->cells, "shape", "shapes"), result->candidates,
           cli_counted(result->candidates, "candidate", "candidates"),
           result->samples, cli_counted(result->samples, "sample", "samples"));
    if (result->cells_left_out > 0)
        printf("%" PRIu32 " %s left out: too large for the time that was left, "
               "or for memory\n",
               result->cells_left_out,
               cli_counted(result->cells_left_out, "shape was", "shapes were"));
    if (result->wrong > 0)
        printf("%" PRIu32 " %s not chosen\n", result->wrong,
               cli_counted(result->wrong,
                           "candidate gave wrong results, and is",
                           "candidates gave wrong results, and are"));
    if (result->failed > 0)
        printf("%" PRIu32 " %s not measured any further\n", result->failed,
               cli_counted(result->failed, "candidate failed, and is",
                           "candidates failed, and are"));
    if (result->unreached > 0)
        printf(
            "%" PRIu32 " %s not reached: half of the time went into laying "
            "out weights; calibrate again to go on there\n",
            result->unreached,
            cli_counted(result->unreached, "candidate was", "candidates were"));
    if (cli_stop_signal() != 0)
        printf("stopped early; what was measured is kept\n");
}

static int show(const calibration *of)
{
    if (of->json)
        return show_json(of);
    if (of->options->import != NULL)
        printf("%" PRIu64 " %s read from %s\n", of->imported,
               cli_counted(of->imported, "row", "rows"), of->options->import);
    if (of->measures)
        show_measured(of);
    if (of->options->export != NULL)
        printf("written to %s\n", of->options->export);
    if (of->options->diff)
        printf("%" PRIu64 " %s not used\n", of->unused,
               cli_counted(of->unused, "row is", "rows are"));
    return CLI_OK;
}

/* ---- The command --------------------------------------------------------- */

static int calibrate(const cli_shared *shared, const calibrate_options *options,
                     const char *path)
{
    calibration of = { .options = options, .path = path };
    cellgate_error error = CELLGATE_ERROR_INIT;
    int exit_code;

    of.json = shared->json != 0;
    of.measures =
        options->seconds >= 0 ||
        (options->import == NULL && options->export == NULL && !options->diff);
    of.stale = json_array();
    if (work(&of, shared, &error) != CELLGATE_OK)
        exit_code = cli_fail(&error);
    else
        exit_code = show(&of);
    if (exit_code == CLI_OK && of.unused > 0)
        exit_code = CLI_NO;
    json_decref(of.stale);
    cellgate_session_destroy(of.session);
    cellgate_runtime_destroy(of.runtime);
    cellgate_model_destroy(of.model);
    (void)fflush(stdout);
    cli_stop_raise();
    return exit_code;
}

static int calibrate_main(const cli_command *command, int argc,
                          const char **argv)
{
    calibrate_options options = { .seconds = NOT_GIVEN };
    struct poptOption table[] = {
        { "seconds", 's', POPT_ARG_DOUBLE, &options.seconds, 0,
          "time to spend at most (default 30)", "S" },
        { "batch", 'b', POPT_ARG_STRING, &options.batch, 0,
          "batch sizes that decisions are wanted for (default 1-64)", "A-B" },
        { "steps", 't', POPT_ARG_STRING, &options.steps, 0,
          "steps, likewise (default 1-128)", "A-B" },
        { "cells", 'n', POPT_ARG_INT, &options.cells, 0,
          "measure so many shapes at most (default: as many as decisions need "
          "and the time allows)",
          "N" },
        { "device", 'd', POPT_ARG_STRING, &options.device, 0,
          "measure this device alone", "NAME" },
        { "import", '\0', POPT_ARG_STRING, &options.import, 0,
          "take in what another machine exported; measures only with "
          "--seconds",
          "FILE" },
        { "export", '\0', POPT_ARG_STRING, &options.export, 0,
          "write all that was measured as text; measures only with --seconds",
          "FILE" },
        { "diff", '\0', POPT_ARG_NONE, &options.diff, 0,
          "say what was measured and does not hold any more, and why; exits "
          "with 1 if there is any",
          NULL },
        POPT_TABLEEND
    };
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (!cli_parse(command, argc, argv, table, 1, &shared, &arguments))
        exit_code = arguments.exit_code;
    else if ((options.seconds != NOT_GIVEN && !(options.seconds > 0)) ||
             options.cells < 0)
        exit_code = cli_report(CLI_USAGE, "--seconds takes a time above 0, and "
                                          "--cells a number");
    else
        exit_code = calibrate(&shared, &options, arguments.positional[0]);
    cli_finish(&shared, &arguments);
    free(options.batch);
    free(options.steps);
    free(options.device);
    free(options.import);
    free(options.export);
    return exit_code;
}

const cli_command cli_calibrate = {
    "calibrate",
    "MODEL [OPTION...]",
    "measure what a model costs on each device, so that requests go where they "
    "cost least",
    calibrate_main,
};
