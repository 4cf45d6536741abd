/* SPDX-License-Identifier: Apache-2.0 */
/* How long a model takes on each device, in each variant. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/extents.h"

typedef struct bench_options {
    char *device, *lstm, *csv, *plot, *batch, *steps;
    int warm_up, runs;
} bench_options;

/* ---- Timing -------------------------------------------------------------- */

/* A subject that fails is out, and says why. */
static void run_once(bench_state *state, bench_subject *subject, int number)
{
    cellgate_report report = { .struct_size = sizeof report };
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status = bench_make_outputs(state, subject->session, &why);

    if (status == CELLGATE_OK)
        status = cellgate_run(subject->session, &state->request, &report, &why);
    if (status != CELLGATE_OK) {
        snprintf(subject->reason, sizeof subject->reason, "%.*s",
                 (int)sizeof subject->reason - 1, why.text);
        cellgate_session_destroy(subject->session);
        subject->session = NULL;
        return;
    }
    if (number == 0)
        subject->first = report.seconds;
    subject->segments = report.segments;
    subject->host_segments = report.host_segments;
    if (number <= state->of.warm_up)
        return;
    subject->seconds[subject->runs] = report.seconds;
    subject->compute[subject->runs++] = report.compute_seconds;
}

/* The subjects take turns, so that what disturbs the machine disturbs all. */
static void run_all(bench_state *state)
{
    bench *of = &state->of;

    for (int number = 0; number <= of->warm_up + of->runs; number++)
        for (size_t i = 0; i < of->count; i++)
            if (of->subjects[i].session != NULL)
                run_once(state, &of->subjects[i], number);
}

/* ---- The command --------------------------------------------------------- */

/* "B,T,I,H,L" or "B,T,I,H,L,bi". */
static cellgate_status make_lstm(bench_state *state, const char *text,
                                 cellgate_error *error)
{
    cellgate_lstm_stack stack = { .struct_size = sizeof stack };
    int end = 0;

    if (sscanf(text,
               "%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd32 "%n",
               &state->of.batch, &state->of.steps, &stack.input_size,
               &stack.hidden_size, &stack.layers, &end) != 5 ||
        (text[end] != '\0' && strcmp(text + end, ",bi") != 0) ||
        state->of.batch < 1 || state->of.steps < 1)
        return cli_error(
            error, CELLGATE_INVALID,
            "--lstm takes B,T,I,H,L or B,T,I,H,L,bi (batch, steps, "
            "input, hidden, layers), not \"%s\"",
            text);
    stack.bidirectional = text[end] != '\0';
    return cellgate_model_make_lstm(&stack, &state->model, error);
}

static cellgate_status load(bench_state *state, const bench_options *options,
                            const char *path, cellgate_error *error)
{
    cli_extents batch = { 1, 1 }, steps = { 20, 20 };
    cellgate_status status =
        cli_extents_read(&batch, options->batch, "batch", error);

    if (status == CELLGATE_OK)
        status = cli_extents_read(&steps, options->steps, "steps", error);
    if (status == CELLGATE_OK &&
        (batch.least != batch.most || steps.least != steps.most))
        status = cli_error(error, CELLGATE_INVALID,
                           "bench times one shape: --batch and --steps take a "
                           "number each");
    state->of.batch = batch.least;
    state->of.steps = steps.least;
    return status == CELLGATE_OK
               ? cellgate_model_load(path, &state->model, error)
               : status;
}

static cellgate_status prepare(bench_state *state, const cli_shared *shared,
                               const bench_options *options, const char *path,
                               cellgate_error *error)
{
    cellgate_status status = options->lstm != NULL
                                 ? make_lstm(state, options->lstm, error)
                                 : load(state, options, path, error);

    state->of.model_name = options->lstm != NULL ? options->lstm : path;
    state->of.warm_up = options->warm_up;
    state->of.runs = options->runs;
    if (status == CELLGATE_OK)
        status = cli_open(shared, &state->runtime, error);
    if (status == CELLGATE_OK)
        status = bench_make_request(state, error);
    if (status == CELLGATE_OK)
        status = bench_add_subjects(state, options->device, error);
    return status;
}

static void release(bench_state *state)
{
    for (size_t i = 0; i < state->of.count; i++) {
        cellgate_session_destroy(state->of.subjects[i].session);
        free(state->of.subjects[i].seconds);
        free(state->of.subjects[i].compute);
    }
    for (size_t i = 0; state->inputs != NULL && i < state->request.input_count;
         i++)
        free(state->inputs[i].tensor.data);
    for (size_t i = 0;
         state->outputs != NULL && i < state->request.output_count; i++)
        free(state->outputs[i].data);
    free(state->of.subjects);
    free(state->inputs);
    free(state->outputs);
    cellgate_runtime_destroy(state->runtime);
    cellgate_model_destroy(state->model);
}

/* A device that was named and cannot be timed is an error. */
static int exit_code_of(const bench *of, bool named)
{
    size_t timed = 0;

    for (size_t i = 0; i < of->count; i++)
        timed += of->subjects[i].session != NULL;
    if (timed > 0)
        return CLI_OK;
    return cli_report(CLI_DEVICE, "%s%s",
                      named ? "the device cannot be timed: "
                            : "no device can be timed: ",
                      of->count > 0 ? of->subjects[0].reason : "there is none");
}

static int run_bench(const cli_shared *shared, const bench_options *options,
                     const char *path)
{
    bench_state state = { .of = { .count = 0 } };
    cellgate_error error = CELLGATE_ERROR_INIT;
    int exit_code = CLI_OK;

    if (prepare(&state, shared, options, path, &error) != CELLGATE_OK) {
        release(&state);
        return cli_fail(&error);
    }
    run_all(&state);
    if ((options->csv != NULL &&
         bench_csv(&state.of, options->csv, &error) != CELLGATE_OK) ||
        (options->plot != NULL &&
         bench_plot(&state.of, options->plot, &error) != CELLGATE_OK))
        exit_code = cli_fail(&error);
    else if (shared->json)
        exit_code = cli_print_json(bench_json(&state.of));
    else
        bench_print(&state.of);
    if (exit_code == CLI_OK)
        exit_code = exit_code_of(&state.of, options->device != NULL);
    release(&state);
    return exit_code;
}

static int bench_main(const cli_command *command, int argc, const char **argv)
{
    bench_options options = { .warm_up = 3, .runs = 30 };
    struct poptOption table[] = {
        { "lstm", '\0', POPT_ARG_STRING, &options.lstm, 0,
          "in place of MODEL: batch, steps, input, hidden, layers of LSTMs "
          "with made-up weights",
          "B,T,I,H,L[,bi]" },
        { "batch", 'b', POPT_ARG_STRING, &options.batch, 0, "rows (default 1)",
          "B" },
        { "steps", 't', POPT_ARG_STRING, &options.steps, 0,
          "steps, where the model leaves them open (default 20)", "T" },
        { "device", 'd', POPT_ARG_STRING, &options.device, 0,
          "this device alone; host is the plain reference", "NAME" },
        { "runs", 'n', POPT_ARG_INT, &options.runs, 0,
          "runs that are timed (default 30)", "N" },
        { "warm-up", '\0', POPT_ARG_INT, &options.warm_up, 0,
          "runs after the first that are not (default 3)", "N" },
        { "csv", '\0', POPT_ARG_STRING, &options.csv, 0,
          "write the results as comma-separated values", "FILE" },
        { "plot", '\0', POPT_ARG_STRING, &options.plot, 0,
          "draw the results with gnuplot", "FILE.png|.svg" },
        POPT_TABLEEND
    };
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (!cli_parse_range(command, argc, argv, table, 0, 1, &shared, &arguments))
        exit_code = arguments.exit_code;
    else if ((arguments.count == 1) == (options.lstm != NULL))
        exit_code = cli_report(CLI_USAGE, "bench takes a MODEL or --lstm");
    else if (options.runs < 1 || options.warm_up < 0 ||
             options.runs > 1000000 || options.warm_up > 1000000)
        exit_code = cli_report(CLI_USAGE, "--runs is 1 to 1000000, --warm-up 0 "
                                          "to 1000000");
    else
        exit_code =
            run_bench(&shared, &options,
                      arguments.count == 1 ? arguments.positional[0] : NULL);
    cli_finish(&shared, &arguments);
    free(options.device);
    free(options.lstm);
    free(options.csv);
    free(options.plot);
    free(options.batch);
    free(options.steps);
    return exit_code;
}

const cli_command cli_bench = {
    "bench",
    "MODEL|--lstm B,T,I,H,L[,bi] [OPTION...]",
    "time a model on every device and variant",
    bench_main,
};
