/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/compare.h"
#include "cli/request.h"

typedef struct run_options {
    char **inputs, **lengths, **masks, **compare;
    char *output, *device, *variant, *report;
    int repeat;
    double tolerance;
} run_options;

/* Everything that a run holds; all of it may be NULL. */
typedef struct run_state {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    cli_request request;
    double first_seconds;  /* of the first request */
    double median_seconds; /* of all */
    cellgate_report report;
    cli_comparison comparison;
} run_state;

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

/* Before anything runs; cellgate_arrays_write() would refuse it after. */
static cellgate_status check_output_name(const cellgate_model *model,
                                         const char *path,
                                         cellgate_error *error)
{
    size_t length = strlen(path), count = cellgate_model_output_count(model);
    const char *end = length > 4 ? path + length - 4 : path;

    if (strcmp(end, ".npz") == 0 || (strcmp(end, ".npy") == 0 && count == 1))
        return CELLGATE_OK;
    if (strcmp(end, ".npy") == 0)
        return cli_error(error, CELLGATE_INVALID,
                         "--output %s: a .npy file holds one array, and the "
                         "model has %zu outputs; name it .npz",
                         path, count);
    return cli_error(error, CELLGATE_INVALID,
                     "--output %s: the name has to end in .npy or .npz", path);
}

static cellgate_status run_all(run_state *state, const cli_shared *shared,
                               const run_options *options, const char *path,
                               cellgate_error *error)
{
    cellgate_session_options session = { .struct_size = sizeof session };
    cellgate_status status;

    session.device = options->device;
    session.variant = options->variant;
    status = cellgate_model_load(path, &state->model, error);
    if (status == CELLGATE_OK && options->output != NULL)
        status = check_output_name(state->model, options->output, error);
    if (status == CELLGATE_OK)
        status =
            cli_request_init(&state->request, state->model, options->inputs,
                             options->lengths, options->masks, error);
    if (status == CELLGATE_OK)
        status = cli_open(shared, &state->runtime, error);
    if (status == CELLGATE_OK)
        status = cellgate_session_create(state->runtime, state->model, &session,
                                         &state->session, error);
    if (status == CELLGATE_OK)
        status = cli_request_outputs(&state->request, state->session, error);
    if (status == CELLGATE_OK)
        status = repeat(state, options->repeat, error);
    if (status == CELLGATE_OK && options->compare != NULL)
        status = cli_compare(state->model, state->request.outputs,
                             options->compare, &state->comparison, error);
    return status;
}

/* ---- The outputs --------------------------------------------------------- */

static cellgate_status write_outputs(const run_state *state, const char *path,
                                     cellgate_error *error)
{
    size_t i, count = state->request.request.output_count;
    cellgate_value_info info = { .struct_size = sizeof info };
    const char **names = calloc(count, sizeof *names);
    cellgate_status status;

    if (names == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");

    for (i = 0; i < count; i++) {
        cellgate_model_output_get(state->model, i, &info);
        names[i] = info.name;
    }
    status = cellgate_arrays_write(path, names, state->request.outputs, count,
                                   error);
    free(names);
    return status;
}

static void print_output(const char *name, const cellgate_tensor *output)
{
    size_t i, count = cli_tensor_count(output);
    size_t row = output->rank > 0 ? (size_t)output->shape[output->rank - 1] : 1;
    char shape[160];

    cli_shape_text(shape, sizeof shape, output->rank, output->shape);
    printf("%s %s\n", name, shape);
    for (i = 0; i < count; i++)
        printf("%.9g%c", cli_tensor_value(output, i),
               (i + 1) % row == 0 ? '\n' : ' ');
}

static void print_outputs(const run_state *state)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; i < state->request.request.output_count; i++) {
        cellgate_model_output_get(state->model, i, &info);
        print_output(info.name, &state->request.outputs[i]);
    }
}

/* JSON has no NaN and no infinity: they become null. */
static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *outputs_json(const run_state *state, bool values)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    json_t *array = json_array();
    size_t i, k;

    for (i = 0; i < state->request.request.output_count; i++) {
        const cellgate_tensor *output = &state->request.outputs[i];
        json_t *entry;

        cellgate_model_output_get(state->model, i, &info);
        entry = json_pack("{s:s, s:o}", "name", info.name, "shape",
                          cli_shape_json(output->rank, output->shape));
        if (values) {
            json_t *data = json_array();

            for (k = 0; k < cli_tensor_count(output); k++)
                json_array_append_new(data,
                                      number_json(cli_tensor_value(output, k)));
            json_object_set_new(entry, "data", data);
        }
        json_array_append_new(array, entry);
    }
    return array;
}

/* ---- The report ---------------------------------------------------------- */

static json_t *report_json(const run_state *state, const run_options *options,
                           const char *path, bool values)
{
    const cellgate_report *report = &state->report;
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:o, s:o}", "model", path, "device",
        report->device, "variant", report->variant, "reason", report->reason,
        "runs", options->repeat, "segments", cli_segments_json(state->session),
        "outputs", outputs_json(state, values));

    json_object_set_new(
        json, "seconds",
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "first",
                  state->first_seconds, "median", state->median_seconds,
                  "device", report->device_seconds, "host",
                  report->host_seconds, "wait", report->wait_seconds, "upload",
                  report->upload_seconds, "compute", report->compute_seconds,
                  "download", report->download_seconds));
    if (options->compare != NULL)
        json_object_set_new(
            json, "comparison",
            json_pack("{s:o, s:o, s:o, s:f}", "largest_difference",
                      number_json(state->comparison.largest),
                      "largest_magnitude",
                      number_json(state->comparison.magnitude), "relative",
                      number_json(state->comparison.relative), "tolerance",
                      options->tolerance));
    return json;
}

static int write_report(json_t *json, const char *path)
{
    int failed =
        json_dump_file(json, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9));

    json_decref(json);
    if (failed != 0)
        return cli_report(CLI_FILE, "%s: cannot write the report: %s", path,
                          strerror(errno));
    return CLI_OK;
}

static void print_summary(FILE *to, const run_state *state,
                          const run_options *options)
{
    const cellgate_report *report = &state->report;

    fprintf(to, "device: %s%s%s (%s)\n", report->device,
            report->variant[0] != '\0' ? " " : "", report->variant,
            report->reason);
    if (report->host_segments > 0)
        fprintf(to, "host ops: %" PRIu32 " of %" PRIu32 " segments\n",
                report->host_segments,
                report->host_segments + report->segments);
    fprintf(to, "time: %.3g s the first run", state->first_seconds);
    if (options->repeat > 1)
        fprintf(to, ", %.3g s the median of %d", state->median_seconds,
                options->repeat);
    fputc('\n', to);
    if (options->compare != NULL)
        fprintf(to,
                "difference: at most %.3g, %.3g of the largest magnitude "
                "%.3g (allowed: %.3g)\n",
                state->comparison.largest, state->comparison.relative,
                state->comparison.magnitude, options->tolerance);
}

static int show(const run_state *state, const cli_shared *shared,
                const run_options *options, const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    int exit_code = CLI_OK;

    if (options->output != NULL &&
        write_outputs(state, options->output, &error) != CELLGATE_OK)
        return cli_fail(&error);
    if (options->report != NULL)
        exit_code = write_report(report_json(state, options, path, false),
                                 options->report);
    if (exit_code == CLI_OK && shared->json) {
        exit_code = cli_print_json(
            report_json(state, options, path, options->output == NULL));
    } else if (exit_code == CLI_OK) {
        bool print = options->output == NULL && options->compare == NULL;

        if (print)
            print_outputs(state);
        print_summary(print ? stderr : stdout, state, options);
    }
    if (exit_code == CLI_OK && options->compare != NULL &&
        !(state->comparison.relative <= options->tolerance))
        return cli_report(CLI_NO, "the outputs differ by more than allowed");
    return exit_code;
}

/* ---- The command --------------------------------------------------------- */

static int run(const cli_shared *shared, const run_options *options,
               const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    run_state state;
    int exit_code;

    if (options->repeat < 1)
        return cli_report(CLI_USAGE, "--repeat takes a number from 1 up");
    if (options->inputs == NULL)
        return cli_report(CLI_USAGE,
                          "run needs --input FILE; cellgate inspect "
                          "%s lists the model's inputs",
                          path);
    if (!(options->tolerance >= 0))
        return cli_report(CLI_USAGE, "--tolerance takes a number from 0 up");
    memset(&state, 0, sizeof state);
    if (run_all(&state, shared, options, path, &error) == CELLGATE_OK)
        exit_code = show(&state, shared, options, path);
    else
        exit_code = cli_fail(&error);
    cli_request_finish(&state.request);
    cellgate_session_destroy(state.session);
    cellgate_model_destroy(state.model);
    cellgate_runtime_destroy(state.runtime);
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
    free(options->output);
    free(options->device);
    free(options->variant);
    free(options->report);
}

static int run_main(const cli_command *command, int argc, const char **argv)
{
    run_options options = { .repeat = 1, .tolerance = 1e-5 };
    struct poptOption table[] = {
        { "input", 'i', POPT_ARG_ARGV, &options.inputs, 0,
          "a model input, from a .npy or .npz; repeat for several inputs",
          "[NAME=]FILE[:ARRAY]" },
        { "output", 'o', POPT_ARG_STRING, &options.output, 0,
          "write the outputs here instead of printing them",
          "FILE.npy|FILE.npz" },
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
