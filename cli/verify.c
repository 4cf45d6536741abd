/* SPDX-License-Identifier: Apache-2.0 */
/* The model's self-test, on every device and in every variant. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

typedef struct verification {
    cellgate_runtime *runtime;
    cellgate_model *model;
    const char *path;
    bool stored;  /* the answers were in the file */
    json_t *rows; /* collected for --json; NULL: printed as they come */
    int exit_code;
} verification;

/* ---- Rows ---------------------------------------------------------------- */

static const char *name_of(const char *variant)
{
    return variant != NULL && variant[0] != '\0' ? variant : "-";
}

static void print_header(const verification *of)
{
    printf("%s: self-test of %" PRId64 " rows, %s\n\n%-16s %-12s %11s %11s  "
           "%s\n",
           of->path, cellgate_model_selftest_rows(of->model),
           of->stored ? "answers stored in the file"
                      : "answers computed now by the host reference (a native "
                        "file stores them)",
           "device", "variant", "difference", "tolerance", "verdict");
}

/* A run's answer. */
static void add_result(verification *of, const char *device,
                       const cellgate_selftest_result *result)
{
    const cellgate_report *report = &result->report;
    const char *verdict = result->agrees ? "agrees" : "DISAGREES";

    if (!result->agrees)
        of->exit_code = CLI_NO;
    if (of->rows == NULL) {
        printf("%-16s %-12s %11.3g %11.3g  %s", device,
               name_of(report->variant), result->difference, result->tolerance,
               verdict);
        if (strcmp(device, "host") != 0 && report->host_segments > 0)
            printf(" (%" PRIu32 " of %" PRIu32 " parts ran on the host)",
                   report->host_segments,
                   report->host_segments + report->segments);
        putchar('\n');
        return;
    }
    json_array_append_new(
        of->rows,
        json_pack("{s:s, s:s, s:o, s:f, s:s, s:i, s:i}", "device", device,
                  "variant", report->variant, "difference",
                  isfinite(result->difference) ? json_real(result->difference)
                                               : json_null(),
                  "tolerance", result->tolerance, "verdict",
                  result->agrees ? "agrees" : "disagrees", "segments",
                  (int)report->segments, "host_segments",
                  (int)report->host_segments));
}

/* Why there is no answer. */
static void add_refusal(verification *of, const char *device,
                        const char *variant, const char *verdict,
                        const char *reason)
{
    if (of->rows == NULL)
        printf("%-16s %-12s %11s %11s  %s: %s\n", device, name_of(variant), "-",
               "-", verdict, reason);
    else
        json_array_append_new(
            of->rows, json_pack("{s:s, s:s, s:s, s:s}", "device", device,
                                "variant", variant != NULL ? variant : "",
                                "verdict", verdict, "reason", reason));
}

/* ---- Running ------------------------------------------------------------- */

static void verify_session(verification *of, const char *device,
                           const char *variant, cellgate_session *session)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_selftest_result result = { .struct_size = sizeof result };

    if (cellgate_session_selftest(session, &result, &error) == CELLGATE_OK) {
        add_result(of, device, &result);
        return;
    }
    add_refusal(of, device, variant, "failed", error.text);
    if (of->exit_code == CLI_OK)
        of->exit_code = CLI_DEVICE;
}

static void verify_variant(verification *of, const char *device,
                           const cellgate_variant_info *variant)
{
    cellgate_session_options options = { .struct_size = sizeof options,
                                         .device = device,
                                         .variant = variant->name };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session = NULL;
    char reason[128];

    if (!variant->usable) {
        snprintf(reason, sizeof reason,
                 "it needs %" PRIu32 " threads, more than the device may use",
                 variant->threads);
        add_refusal(of, device, variant->name, "not run", reason);
    } else if (cellgate_session_create(of->runtime, of->model, &options,
                                       &session, &error) != CELLGATE_OK) {
        add_refusal(of, device, variant->name, "not run", error.text);
    } else {
        verify_session(of, device, variant->name, session);
    }
    cellgate_session_destroy(session);
}

/* All variants; the one session where there is nothing to choose. */
static void verify_device(verification *of, const char *device, bool named)
{
    cellgate_session_options options = { .struct_size = sizeof options,
                                         .device = device };
    cellgate_variant_info variant = { .struct_size = sizeof variant };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session = NULL;
    size_t i;

    if (cellgate_session_create(of->runtime, of->model, &options, &session,
                                &error) != CELLGATE_OK) {
        add_refusal(of, device, NULL, "not run", error.text);
        if (named)
            of->exit_code = CLI_DEVICE;
        return;
    }
    for (i = 0;
         cellgate_session_variant_get(session, i, &variant) == CELLGATE_OK; i++)
        verify_variant(of, device, &variant);
    if (i == 0)
        verify_session(of, device, NULL, session);
    cellgate_session_destroy(session);
}

static void verify_all(verification *of)
{
    cellgate_device_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; cellgate_device_get(of->runtime, i, &info) == CELLGATE_OK; i++)
        verify_device(of, info.name, false);
    verify_device(of, "host", false);
}

/* ---- The command --------------------------------------------------------- */

static cellgate_status open_model(verification *of, const cli_shared *shared,
                                  cellgate_error *error)
{
    cellgate_status status = cellgate_model_load(of->path, &of->model, error);

    if (status != CELLGATE_OK)
        return status;
    of->stored = cellgate_model_selftest_rows(of->model) > 0;
    if (!of->stored)
        status = cellgate_model_make_selftest(of->model, error);
    if (status == CELLGATE_OK)
        status = cli_open(shared, &of->runtime, error);
    return status;
}

static int verify(const cli_shared *shared, const char *path,
                  const char *device)
{
    verification of = { .path = path };
    cellgate_error error = CELLGATE_ERROR_INIT;
    int exit_code;

    if (open_model(&of, shared, &error) != CELLGATE_OK) {
        exit_code = cli_fail(&error);
    } else {
        of.rows = shared->json ? json_array() : NULL;
        if (of.rows == NULL)
            print_header(&of);
        if (device != NULL)
            verify_device(&of, device, true);
        else
            verify_all(&of);
        exit_code = of.exit_code;
    }
    if (of.rows != NULL) {
        int printed = cli_print_json(json_pack(
            "{s:s, s:I, s:b, s:b, s:o}", "model", path, "rows",
            (json_int_t)cellgate_model_selftest_rows(of.model), "stored",
            (int)of.stored, "agrees", exit_code == CLI_OK, "results", of.rows));

        exit_code = printed != CLI_OK ? printed : exit_code;
    }
    cellgate_runtime_destroy(of.runtime);
    cellgate_model_destroy(of.model);
    return exit_code;
}

static int verify_main(const cli_command *command, int argc, const char **argv)
{
    char *device = NULL;
    struct poptOption table[] = {
        { "device", 'd', POPT_ARG_STRING, &device, 0,
          "this device alone; host is the plain reference", "NAME" },
        POPT_TABLEEND
    };
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (cli_parse(command, argc, argv, table, 1, &shared, &arguments))
        exit_code = verify(&shared, arguments.positional[0], device);
    else
        exit_code = arguments.exit_code;
    cli_finish(&shared, &arguments);
    free(device);
    return exit_code;
}

const cli_command cli_verify = {
    "verify",
    "MODEL [OPTION...]",
    "run a model's self-test on every device and variant",
    verify_main,
};
