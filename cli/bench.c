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
    char *device, *lstm, *csv, *batch, *steps;
    int warm_up, runs;
} bench_options;

/* All that a bench holds. */
typedef struct bench_state {
    bench of;
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_input *inputs;
    cellgate_tensor *outputs;
    cellgate_request request;
} bench_state;

static cellgate_status no_memory(cellgate_error *error)
{
    return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
}

/* ---- The request --------------------------------------------------------- */

/* Numbers between -1 and 1; ids are 1, which every vocabulary but the smallest
   has and no mask hides. */
static void fill(const cellgate_tensor *tensor)
{
    const size_t count = cli_tensor_count(tensor);

    for (size_t at = 0; at < count; at++)
        if (tensor->dtype == CELLGATE_I32)
            ((int32_t *)tensor->data)[at] = 1;
        else
            ((float *)tensor->data)[at] =
                (float)((uint32_t)at * UINT32_C(2654435769)) / 2147483648.0f -
                1.0f;
}

static cellgate_status make_input(bench_state *state, size_t index,
                                  cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_input *input = &state->inputs[index];
    cellgate_tensor *tensor = &input->tensor;
    int64_t count = 1;

    cellgate_model_input_get(state->model, index, &info);
    input->struct_size = sizeof *input;
    tensor->struct_size = sizeof *tensor;
    tensor->dtype = info.dtype;
    tensor->rank = info.rank;
    for (int32_t axis = 0; axis < info.rank; axis++) {
        tensor->shape[axis] = axis == 0               ? state->of.batch
                              : info.shape[axis] >= 0 ? info.shape[axis]
                                                      : state->of.steps;
        if (__builtin_mul_overflow(count, tensor->shape[axis], &count) ||
            count > INT64_MAX / 8)
            return no_memory(error);
    }
    tensor->data = calloc((size_t)count + 1, cellgate_dtype_size(info.dtype));
    if (tensor->data == NULL)
        return no_memory(error);
    fill(tensor);
    return CELLGATE_OK;
}

static cellgate_status make_request(bench_state *state, cellgate_error *error)
{
    const size_t inputs = cellgate_model_input_count(state->model);
    const size_t outputs = cellgate_model_output_count(state->model);
    cellgate_status status = CELLGATE_OK;

    state->inputs = calloc(inputs, sizeof *state->inputs);
    state->outputs = calloc(outputs, sizeof *state->outputs);
    if (state->inputs == NULL || state->outputs == NULL)
        return no_memory(error);
    state->request = (cellgate_request){ .struct_size = sizeof state->request,
                                         .inputs = state->inputs,
                                         .input_count = inputs,
                                         .outputs = state->outputs,
                                         .output_count = outputs };
    for (size_t i = 0; i < outputs; i++)
        state->outputs[i].struct_size = sizeof state->outputs[i];
    for (size_t i = 0; status == CELLGATE_OK && i < inputs; i++)
        status = make_input(state, i, error);
    return status;
}

/* Memory for the outputs, once there is a session to ask for their shapes. */
static cellgate_status make_outputs(bench_state *state,
                                    const cellgate_session *session,
                                    cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < state->request.output_count;
         i++) {
        cellgate_tensor *output = &state->outputs[i];

        if (output->data != NULL)
            continue;
        status =
            cellgate_output_shape(session, &state->request, i, output, error);
        if (status != CELLGATE_OK)
            return status;
        output->data = calloc(cli_tensor_count(output) + 1,
                              cellgate_dtype_size(output->dtype));
        if (output->data == NULL)
            return no_memory(error);
    }
    return status;
}

/* ---- Subjects ------------------------------------------------------------ */

static cellgate_status add_subject(bench_state *state, const char *device,
                                   const char *variant, bench_subject **added,
                                   cellgate_error *error)
{
    bench *of = &state->of;
    bench_subject *grown =
        realloc(of->subjects, (of->count + 1) * sizeof *grown);
    bench_subject *at;

    if (grown == NULL)
        return no_memory(error);
    of->subjects = grown;
    at = &grown[of->count++];
    memset(at, 0, sizeof *at);
    snprintf(at->device, sizeof at->device, "%s", device);
    snprintf(at->variant, sizeof at->variant, "%s", variant);
    at->seconds = calloc((size_t)of->runs, sizeof *at->seconds);
    at->compute = calloc((size_t)of->runs, sizeof *at->compute);
    *added = at;
    return at->seconds != NULL && at->compute != NULL ? CELLGATE_OK
                                                      : no_memory(error);
}

static cellgate_status open_session(const bench_state *state,
                                    const char *device, const char *variant,
                                    cellgate_session **session,
                                    cellgate_error *error)
{
    const cellgate_session_options options = { sizeof options, device,
                                               variant };

    return cellgate_session_create(state->runtime, state->model, &options,
                                   session, error);
}

static cellgate_status add_variant(bench_state *state, const char *device,
                                   const cellgate_variant_info *variant,
                                   cellgate_error *error)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    bench_subject *added;
    cellgate_status status =
        add_subject(state, device, variant->name, &added, error);

    if (status != CELLGATE_OK)
        return status;
    if (!variant->usable)
        snprintf(added->reason, sizeof added->reason,
                 "it needs %" PRIu32 " threads, more than the device may use",
                 variant->threads);
    else if (open_session(state, device, variant->name, &added->session,
                          &why) != CELLGATE_OK)
        snprintf(added->reason, sizeof added->reason, "%.*s",
                 (int)sizeof added->reason - 1, why.text);
    return CELLGATE_OK;
}

static cellgate_status add_device(bench_state *state, const char *device,
                                  cellgate_error *error)
{
    cellgate_variant_info variant = { .struct_size = sizeof variant };
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_session *session = NULL;
    cellgate_status status = CELLGATE_OK;
    bench_subject *added;

    if (open_session(state, device, NULL, &session, &why) != CELLGATE_OK) {
        status = add_subject(state, device, "", &added, error);
        if (status == CELLGATE_OK)
            snprintf(added->reason, sizeof added->reason, "%.*s",
                     (int)sizeof added->reason - 1, why.text);
        return status;
    }
    for (size_t i = 0;
         status == CELLGATE_OK &&
         cellgate_session_variant_get(session, i, &variant) == CELLGATE_OK;
         i++)
        status = add_variant(state, device, &variant, error);
    if (strcmp(device, "host") == 0 && status == CELLGATE_OK) {
        status = add_subject(state, device, "", &added, error);
        if (status == CELLGATE_OK) {
            added->session = session;
            return CELLGATE_OK;
        }
    }
    cellgate_session_destroy(session);
    return status;
}

static cellgate_status add_all(bench_state *state, const char *device,
                               cellgate_error *error)
{
    cellgate_device_info info = { .struct_size = sizeof info };
    cellgate_status status = CELLGATE_OK;

    if (device != NULL)
        return add_device(state, device, error);
    for (size_t i = 0;
         status == CELLGATE_OK &&
         cellgate_device_get(state->runtime, i, &info) == CELLGATE_OK;
         i++)
        status = add_device(state, info.name, error);
    return status;
}

/* ---- Timing -------------------------------------------------------------- */

/* A subject that fails is out, and says why. */
static void run_once(bench_state *state, bench_subject *subject, int number)
{
    cellgate_report report = { .struct_size = sizeof report };
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status = make_outputs(state, subject->session, &why);

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
        status = make_request(state, error);
    if (status == CELLGATE_OK)
        status = add_all(state, options->device, error);
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
    if (options->csv != NULL &&
        bench_csv(&state.of, options->csv, &error) != CELLGATE_OK)
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
          "with "
          "made-up weights",
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
