/* SPDX-License-Identifier: Apache-2.0 */
/* What a run tells: outputs, report, summary. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"

/* ---- The outputs --------------------------------------------------------- */

/* Output `first`, and those after it that go into the same file. */
static cellgate_status write_file(const run_state *state, size_t first,
                                  const char **names, cellgate_tensor *tensors,
                                  cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    const char *path = state->targets[first];
    size_t count = 0;

    for (size_t i = first; i < state->request.request.output_count; i++) {
        if (state->targets[i] == NULL || strcmp(state->targets[i], path) != 0)
            continue;
        cellgate_model_output_get(state->model, i, &info);
        names[count] = info.name;
        tensors[count++] = state->request.outputs[i];
    }
    return cellgate_arrays_write(path, names, tensors, count, error);
}

static bool is_written(const run_state *state, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (state->targets[i] != NULL &&
            strcmp(state->targets[i], state->targets[index]) == 0)
            return true;
    return false;
}

/* Each into its file. */
static cellgate_status write_apart(const run_state *state,
                                   cellgate_error *error)
{
    const size_t count = state->request.request.output_count;
    const char **names = calloc(count + 1, sizeof *names);
    cellgate_tensor *tensors = calloc(count + 1, sizeof *tensors);
    cellgate_status status = CELLGATE_OK;

    if (names == NULL || tensors == NULL)
        status = cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (size_t i = 0; status == CELLGATE_OK && i < count; i++)
        if (state->targets[i] != NULL && !is_written(state, i))
            status = write_file(state, i, names, tensors, error);
    free(names);
    free(tensors);
    return status;
}

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
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:o, s:o}", "model", path, "device",
        report->device, "variant", report->variant, "numeric",
        cellgate_numeric_name(report->numeric), "reason", report->reason,
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
    if (state->pieces > 0) {
        json_t *seconds = json_object_get(json, "seconds");

        json_object_del(seconds, "median");
        json_object_set_new(seconds, "total", json_real(report->seconds));
        json_object_set_new(json, "runs", json_integer(state->pieces));
        json_object_set_new(json, "rows", json_integer(state->rows));
        json_object_set_new(json, "batch", json_integer(options->batch));
    }
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
    cellgate_error error = CELLGATE_ERROR_INIT;
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    size_t length = text != NULL ? strlen(text) : 0;
    cellgate_status status;

    json_decref(json);
    if (text == NULL)
        return cli_report(CLI_OTHER, "out of memory");
    text[length] = '\n'; /* in place of the terminator */
    status = cellgate_file_write(path, text, length + 1, &error);
    free(text);
    return status == CELLGATE_OK ? CLI_OK : cli_fail(&error);
}

static void print_summary(FILE *to, const run_state *state,
                          const run_options *options)
{
    const cellgate_report *report = &state->report;

    fprintf(to, "device: %s%s%s (%s)\n", report->device,
            report->variant[0] != '\0' ? " " : "", report->variant,
            report->reason);
    if (report->numeric != CELLGATE_NUMERIC_F32)
        fprintf(to, "precision: %s\n", cellgate_numeric_name(report->numeric));
    if (report->host_segments > 0)
        fprintf(to, "host ops: %" PRIu32 " of %" PRIu32 " segments\n",
                report->host_segments,
                report->host_segments + report->segments);
    fprintf(to, "time: %.3g s the first run", state->first_seconds);
    if (state->pieces > 0)
        fprintf(to, ", %.3g s all %" PRId64 " (%" PRId64 " rows, %.3g rows/s)",
                report->seconds, state->pieces, state->rows,
                (double)state->rows / report->seconds);
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

/* How the model was read may be why. */
static int report_difference(const cellgate_model *model)
{
    const char *note = cellgate_model_note(model);

    return cli_report(CLI_NO, "the outputs differ by more than allowed%s%s",
                      note[0] != '\0' ? "; " : "", note);
}

int cli_run_show(const run_state *state, const cli_shared *shared,
                 const run_options *options, const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    int exit_code = CLI_OK;

    if (options->outputs != NULL && state->pieces == 0 &&
        (state->targets != NULL ? write_apart(state, &error)
                                : write_outputs(state, options->outputs[0],
                                                &error)) != CELLGATE_OK)
        return cli_fail(&error);
    if (options->report != NULL)
        exit_code = write_report(report_json(state, options, path, false),
                                 options->report);
    if (exit_code == CLI_OK && shared->json) {
        exit_code = cli_print_json(
            report_json(state, options, path,
                        options->outputs == NULL && state->pieces == 0));
    } else if (exit_code == CLI_OK) {
        bool print = options->outputs == NULL && options->compare == NULL;

        if (print)
            print_outputs(state);
        print_summary(print ? stderr : stdout, state, options);
    }
    if (exit_code == CLI_OK && options->compare != NULL &&
        !(state->comparison.relative <= options->tolerance))
        return report_difference(state->model);
    return exit_code;
}
