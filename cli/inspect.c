/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/extents.h"
#include "cli/source.h"

/* ---- The model --------------------------------------------------------- */

static json_t *values_json(const cellgate_model *model, cli_value_getter *get)
{
    json_t *array = json_array();
    cellgate_value_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; get(model, i, &info) == CELLGATE_OK; i++)
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:o, s:b}", "name", info.name, "dtype",
                             cellgate_dtype_name(info.dtype), "shape",
                             cli_shape_json(info.rank, info.shape),
                             "steps_first", (int)info.steps_first));
    return array;
}

static void print_values(const cellgate_model *model, const char *what,
                         cli_value_getter *get)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    char shape[160];
    size_t i;

    for (i = 0; get(model, i, &info) == CELLGATE_OK; i++) {
        cli_shape_text(shape, sizeof shape, info.rank, info.shape);
        printf("%s %s %s %s%s\n", what, info.name, shape,
               cellgate_dtype_name(info.dtype),
               info.steps_first ? ", in files (steps, batch, ...)" : "");
    }
}

static json_t *nodes_json(const cellgate_model *model)
{
    json_t *array = json_array();
    cellgate_node_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; cellgate_model_node_get(model, i, &info) == CELLGATE_OK; i++)
        json_array_append_new(
            array,
            json_pack("{s:s, s:s, s:s, s:o, s:I, s:I}", "name", info.name,
                      "kind", info.kind, "detail", info.detail, "shape",
                      cli_shape_json(info.rank, info.shape), "parameters",
                      (json_int_t)info.parameters, "operations",
                      (json_int_t)info.operations));
    return array;
}

static void print_nodes(const cellgate_model *model)
{
    cellgate_node_info info = { .struct_size = sizeof info };
    int64_t parameters = 0;
    char shape[160];
    size_t i;

    printf("\n%-24s %-11s %-20s %12s %12s  %s\n", "node", "kind", "output",
           "parameters", "operations", "options");
    for (i = 0; cellgate_model_node_get(model, i, &info) == CELLGATE_OK; i++) {
        cli_shape_text(shape, sizeof shape, info.rank, info.shape);
        printf("%-24s %-11s %-20s %12" PRId64 " %12" PRId64 "  %s\n", info.name,
               info.kind, shape, info.parameters, info.operations, info.detail);
        parameters += info.parameters;
    }
    printf("%" PRId64 " parameters; operations: for a row and step, where the "
           "node has steps\n",
           parameters);
}

/* ---- Where it would run ------------------------------------------------- */

/* Whether anything was measured for the model on the session's device, at the
   smallest shape or from others. */
static bool calibrated(cellgate_session *session, const cellgate_model *model)
{
    const cellgate_question question = { sizeof question, 1,
                                         cli_free_steps(model) ? 1 : 0, 0 };
    cellgate_candidate_info info = { .struct_size = sizeof info };
    cellgate_explanation *explanation = NULL;
    bool found = false;
    size_t i;

    if (cellgate_explain(session, &question, &explanation, NULL) != CELLGATE_OK)
        return false;
    for (i = 0; cellgate_explanation_get(explanation, i, &info) == CELLGATE_OK;
         i++)
        found = found || info.estimate != CELLGATE_ESTIMATE_NONE;
    cellgate_explanation_destroy(explanation);
    return found;
}

static void print_segments(const char *device, const cellgate_session *session)
{
    cellgate_segment_info info = { .struct_size = sizeof info };
    size_t i;

    printf("\nOn %s:\n", device);
    for (i = 0; cellgate_session_segment_get(session, i, &info) == CELLGATE_OK;
         i++) {
        /* Why it is on the device that was asked for needs no words. */
        bool elsewhere = strcmp(info.device, device) != 0;

        printf("  %s%s%s: %s%s%s\n", info.device,
               info.variant[0] != '\0' ? " " : "", info.variant, info.nodes,
               elsewhere && info.reason[0] != '\0' ? "; " : "",
               elsewhere ? info.reason : "");
        if (info.note[0] != '\0')
            printf("    not its fastest way: %s\n", info.note);
    }
}

/* One device's answer, printed or (with `array`) collected. */
static void inspect_device(cellgate_runtime *runtime,
                           const cellgate_model *model, const char *device,
                           json_t *array)
{
    cellgate_session_options options = { .struct_size = sizeof options };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session = NULL;

    options.device = device;
    if (cellgate_session_create(runtime, model, &options, &session, &error) !=
        CELLGATE_OK) {
        if (array != NULL)
            json_array_append_new(
                array,
                json_pack("{s:s, s:s}", "device", device, "error", error.text));
        else
            printf("\nOn %s: not possible: %s\n", device, error.text);
        return;
    }
    if (array != NULL) {
        json_array_append_new(
            array, json_pack("{s:s, s:o, s:b}", "device", device, "segments",
                             cli_segments_json(session), "calibrated",
                             (int)calibrated(session, model)));
    } else {
        print_segments(device, session);
        printf("  %s\n", calibrated(session, model)
                             ? "calibrated: cellgate plan shows what it costs"
                             : "not calibrated: cellgate calibrate measures "
                               "what it costs");
    }
    cellgate_session_destroy(session);
}

static json_t *inspect_devices(cellgate_runtime *runtime,
                               const cellgate_model *model, bool as_json)
{
    json_t *array = as_json ? json_array() : NULL;
    cellgate_device_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; cellgate_device_get(runtime, i, &info) == CELLGATE_OK; i++)
        inspect_device(runtime, model, info.name, array);
    return array;
}

static int inspect(const cli_shared *shared, cellgate_runtime *runtime,
                   const cellgate_model *model, const char *path)
{
    if (shared->json)
        return cli_print_json(
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "model",
                      path, "format", cellgate_model_format(model),
                      "format_version", cellgate_model_format_version(model),
                      "fingerprint", cellgate_model_fingerprint(model), "note",
                      cellgate_model_note(model), "inputs",
                      values_json(model, cellgate_model_input_get), "outputs",
                      values_json(model, cellgate_model_output_get), "nodes",
                      nodes_json(model), "devices",
                      inspect_devices(runtime, model, true)));
    printf("%s: %s %s, fingerprint %s\n", path, cellgate_model_format(model),
           cellgate_model_format_version(model),
           cellgate_model_fingerprint(model));
    if (cellgate_model_note(model)[0] != '\0')
        printf("note: %s\n", cellgate_model_note(model));
    print_values(model, "input", cellgate_model_input_get);
    print_values(model, "output", cellgate_model_output_get);
    print_nodes(model);
    inspect_devices(runtime, model, false);
    return CLI_OK;
}

static int inspect_main(const cli_command *command, int argc, const char **argv)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_runtime *runtime = NULL;
    cellgate_model *model = NULL;
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (!cli_parse(command, argc, argv, NULL, 1, &shared, &arguments))
        exit_code = arguments.exit_code;
    else if (cellgate_model_load(arguments.positional[0], &model, &error) !=
                 CELLGATE_OK ||
             cli_open(&shared, &runtime, &error) != CELLGATE_OK)
        exit_code = cli_fail(&error);
    else
        exit_code = inspect(&shared, runtime, model, arguments.positional[0]);
    cellgate_runtime_destroy(runtime);
    cellgate_model_destroy(model);
    cli_finish(&shared, &arguments);
    return exit_code;
}

const cli_command cli_inspect = {
    "inspect",
    "MODEL [OPTION...]",
    "show a model's layers, shapes and sizes, and where each device runs it",
    inspect_main,
};
