/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/run.h"
#include "cli/stop.h"

/* ---- Running ------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static cellgate_status repeat(run_state *state, int count,
                              cellgate_error *error)
{
    double *seconds = calloc((size_t)count, sizeof *seconds);
    cellgate_status status = CELLGATE_OK;
    int i;

    if (seconds == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");

    for (i = 0; status == CELLGATE_OK && i < count; i++) {
        state->report.struct_size = sizeof state->report;
        status = cellgate_run(state->session, &state->request.request,
                              &state->report, error);
        seconds[i] = state->report.seconds;
    }
    state->first_seconds = seconds[0];
    qsort(seconds, (size_t)count, sizeof *seconds, by_value);
    state->median_seconds = seconds[count / 2];
    free(seconds);
    return status;
}

static cellgate_status find_targets(run_state *state,
                                    const run_options *options,
                                    cellgate_error *error)
{
    size_t count = cellgate_model_output_count(state->model);
    cellgate_status status;

    if (options->outputs == NULL ||
        cli_is_archive(state->model, options->outputs))
        return CELLGATE_OK;
    state->targets = calloc(count, sizeof *state->targets);
    if (state->targets == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    status =
        cli_find_targets(state->model, options->outputs, state->targets, error);
    return status == CELLGATE_OK
               ? cli_check_targets(state->targets, count, error)
               : status;
}

cellgate_status cli_run_place(run_state *state, const cli_shared *shared,
                              const run_options *options, cellgate_error *error)
{
    cellgate_session_options session = { .struct_size = sizeof session };
    cellgate_status status;

    session.device = options->device;
    session.variant = options->variant;
    /* Of --batch nobody has counted the pieces yet. */
    session.expected_requests =
        options->batch > 0 ? 0 : (double)options->repeat;
    status = cli_open(shared, &state->runtime, error);
    if (status == CELLGATE_OK)
        status = cellgate_session_create(state->runtime, state->model, &session,
                                         &state->session, error);
    return status;
}

static cellgate_status run_at_once(run_state *state, const cli_shared *shared,
                                   const run_options *options,
                                   cellgate_error *error)
{
    cellgate_status status = find_targets(state, options, error);

    if (status == CELLGATE_OK)
        status =
            cli_request_init(&state->request, state->model, options->inputs,
                             options->lengths, options->masks, error);
    if (status == CELLGATE_OK)
        status = cli_run_place(state, shared, options, error);
    if (status == CELLGATE_OK)
        status = cli_states_begin(state, options, error);
    if (status == CELLGATE_OK)
        status = cli_request_outputs(&state->request, state->session, error);
    if (status == CELLGATE_OK)
        status = repeat(state, options->repeat, error);
    if (status == CELLGATE_OK)
        status = cli_states_end(state, options, error);
    if (status == CELLGATE_OK)
        status = cli_turn_outputs(&state->request, error);
    if (status == CELLGATE_OK && options->compare != NULL)
        status = cli_compare(state->model, state->request.outputs,
                             options->compare, &state->comparison, error);
    return status;
}

/* What is read while it is being replaced, or lost when it is. */
static cellgate_status check_overwrite(const char *input, const char *output,
                                       cellgate_error *error)
{
    const char *equals = strchr(output, '=');
    cli_source source = { .name = NULL };
    struct stat from, to;
    cellgate_status status = cli_source_split(&source, input, error);

    if (status == CELLGATE_OK && stat(source.file, &from) == 0 &&
        (stat(output, &to) == 0 ||
         (equals != NULL && stat(equals + 1, &to) == 0)) &&
        from.st_dev == to.st_dev && from.st_ino == to.st_ino)
        status = cli_error(error, CELLGATE_INVALID,
                           "--output %s would replace the input; write it to "
                           "another file",
                           output);
    cli_source_finish(&source);
    return status;
}

static cellgate_status check_overwrites(const run_options *options,
                                        cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    size_t inputs = cli_list_length(options->inputs);
    size_t outputs = cli_list_length(options->outputs);

    for (size_t i = 0; i < inputs; i++)
        for (size_t k = 0; status == CELLGATE_OK && k < outputs; k++)
            status =
                check_overwrite(options->inputs[i], options->outputs[k], error);
    return status;
}

static cellgate_status run_all(run_state *state, const cli_shared *shared,
                               const run_options *options, const char *path,
                               cellgate_error *error)
{
    cellgate_status status = check_overwrites(options, error);

    if (status == CELLGATE_OK)
        status = cellgate_model_load(path, &state->model, error);
    if (status != CELLGATE_OK)
        return status;
    return options->batch > 0 ? cli_run_pieces(state, shared, options, error)
                              : run_at_once(state, shared, options, error);
}

/* ---- The command --------------------------------------------------------- */

static int check_pieces(const run_options *options)
{
    const bool kept = options->state_in != NULL || options->state_out != NULL;

    if (kept && (options->repeat > 1 || options->batch != -1))
        return cli_report(CLI_USAGE, "--state-in and --state-out are of one "
                                     "request: they go neither with --repeat "
                                     "nor with --batch");
    if (options->batch == -1)
        return CLI_OK;
    if (options->batch < 1 || options->batch > INT32_MAX)
        return cli_report(CLI_USAGE, "--batch takes a number of rows from 1 "
                                     "up");
    if (options->repeat > 1)
        return cli_report(CLI_USAGE,
                          "--repeat measures one request, --batch makes many: "
                          "give one of them");
    if (options->outputs == NULL && options->compare == NULL)
        return cli_report(CLI_USAGE, "--batch needs --output FILE.npy, or "
                                     "--compare: outputs are not printed");
    return CLI_OK;
}

static int check_options(const run_options *options, const char *path)
{
    if (options->repeat < 1)
        return cli_report(CLI_USAGE, "--repeat takes a number from 1 up");
    if (options->inputs == NULL)
        return cli_report(CLI_USAGE,
                          "run needs --input FILE; cellgate inspect "
                          "%s lists the model's inputs",
                          path);
    if (!(options->tolerance >= 0))
        return cli_report(CLI_USAGE, "--tolerance takes a number from 0 up");
    return check_pieces(options);
}

static int run(const cli_shared *shared, const run_options *options,
               const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    run_state state;
    int exit_code = check_options(options, path);

    if (exit_code != CLI_OK)
        return exit_code;
    memset(&state, 0, sizeof state);
    if (run_all(&state, shared, options, path, &error) == CELLGATE_OK)
        exit_code = cli_run_show(&state, shared, options, path);
    else
        exit_code = cli_fail(&error);
    cli_request_finish(&state.request);
    free(state.targets);
    cellgate_stream_destroy(state.stream);
    cellgate_session_destroy(state.session);
    cellgate_model_destroy(state.model);
    cellgate_runtime_destroy(state.runtime);
    cli_stop_raise();
    return exit_code;
}

static void free_list(char **list)
{
    size_t i;

    for (i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

static void run_options_finish(run_options *options)
{
    free_list(options->inputs);
    free_list(options->lengths);
    free_list(options->masks);
    free_list(options->compare);
    free_list(options->outputs);
    free(options->device);
    free(options->variant);
    free(options->report);
    free(options->state_in);
    free(options->state_out);
}

static int run_main(const cli_command *command, int argc, const char **argv)
{
    run_options options = { .repeat = 1, .batch = -1, .tolerance = 1e-5 };
    struct poptOption table[] = {
        { "input", 'i', POPT_ARG_ARGV, &options.inputs, 0,
          "a model input, from a .npy or .npz; repeat for several inputs",
          "[NAME=]FILE[:ARRAY]" },
        { "output", 'o', POPT_ARG_ARGV, &options.outputs, 0,
          "write the outputs here instead of printing them: all in a .npz, or "
          "each in a .npy; repeat for several outputs",
          "[NAME=]FILE.npy|FILE.npz" },
        { "state-in", '\0', POPT_ARG_STRING, &options.state_in, 0,
          "begin with the state that --state-out wrote", "FILE.npz" },
        { "state-out", '\0', POPT_ARG_STRING, &options.state_out, 0,
          "write the state of recurrent layers after the run", "FILE.npz" },
        { "batch", '\0', POPT_ARG_LONGLONG, &options.batch, 0,
          "work through .npy files of any size in pieces of N rows", "N" },
        { "lengths", '\0', POPT_ARG_ARGV, &options.lengths, 0,
          "valid steps of each row, [batch]; the rest is padding",
          "[NAME=]FILE[:ARRAY]" },
        { "mask", '\0', POPT_ARG_ARGV, &options.masks, 0,
          "valid steps, [batch][steps], in any pattern",
          "[NAME=]FILE[:ARRAY]" },
        { "device", 'd', POPT_ARG_STRING, &options.device, 0,
          "run on this device or fail; host is the plain reference", "NAME" },
        { "variant", '\0', POPT_ARG_STRING, &options.variant, 0,
          "run this variant of the device", "NAME" },
        { "repeat", '\0', POPT_ARG_INT, &options.repeat, 0,
          "run N times and tell the median time (default: 1)", "N" },
        { "compare", '\0', POPT_ARG_ARGV, &options.compare, 0,
          "compare an output with a stored array; exit 1 if it differs",
          "[NAME=]FILE[:ARRAY]" },
        { "tolerance", '\0', POPT_ARG_DOUBLE, &options.tolerance, 0,
          "allowed difference over the largest magnitude (default: 1e-5)",
          "X" },
        { "report", '\0', POPT_ARG_STRING, &options.report, 0,
          "write device, variant, times and reasons as JSON", "FILE" },
        POPT_TABLEEND
    };
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (cli_parse(command, argc, argv, table, 1, &shared, &arguments))
        exit_code = run(&shared, &options, arguments.positional[0]);
    else
        exit_code = arguments.exit_code;
    cli_finish(&shared, &arguments);
    run_options_finish(&options);
    return exit_code;
}

const cli_command cli_run = {
    "run",
    "MODEL --input FILE [OPTION...]",
    "predict",
    run_main,
};
