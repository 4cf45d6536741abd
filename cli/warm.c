/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the caches that devices keep from process to process: a session on each
 * device prepares the model there, as the first request's session would.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/command.h"

typedef struct warming {
    cellgate_runtime *runtime;
    cellgate_model *model;
    json_t *rows; /* for --json; NULL: printed as they come */
    int exit_code;
} warming;

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void tell(warming *of, const char *device, double seconds,
                 const char *reason)
{
    if (of->rows != NULL)
        json_array_append_new(of->rows,
                              json_pack("{s:s, s:b, s:f, s:s}", "device",
                                        device, "warm", reason[0] == '\0',
                                        "seconds", seconds, "reason", reason));
    else if (reason[0] == '\0')
        printf("%-16s prepared in %.3f s\n", device, seconds);
    else
        printf("%-16s not prepared: %s\n", device, reason);
}

static void warm_device(warming *of, const char *device, bool named)
{
    const cellgate_session_options options = { .struct_size = sizeof options,
                                               .device = device };
    const double start = seconds_now();
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session = NULL;

    if (cellgate_session_create(of->runtime, of->model, &options, &session,
                                &error) != CELLGATE_OK &&
        named)
        of->exit_code = CLI_DEVICE;
    tell(of, device, seconds_now() - start, session == NULL ? error.text : "");
    cellgate_session_destroy(session);
}

static void warm_all(warming *of)
{
    cellgate_device_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; cellgate_device_get(of->runtime, i, &info) == CELLGATE_OK; i++)
        warm_device(of, info.name, false);
    if (i == 0 && of->rows == NULL)
        printf("no device is there to be prepared; see cellgate devices\n");
}

static int warm(const cli_shared *shared, const char *path, const char *device)
{
    warming of = { .exit_code = CLI_OK };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_status status = cellgate_model_load(path, &of.model, &error);

    if (status == CELLGATE_OK)
        status = cli_open(shared, &of.runtime, &error);
    if (status != CELLGATE_OK) {
        of.exit_code = cli_fail(&error);
    } else {
        of.rows = shared->json ? json_array() : NULL;
        if (device != NULL)
            warm_device(&of, device, true);
        else
            warm_all(&of);
    }
    if (of.rows != NULL) {
        int printed = cli_print_json(
            json_pack("{s:s, s:o}", "model", path, "devices", of.rows));

        of.exit_code = printed != CLI_OK ? printed : of.exit_code;
    }
    cellgate_runtime_destroy(of.runtime);
    cellgate_model_destroy(of.model);
    return of.exit_code;
}

static int warm_main(const cli_command *command, int argc, const char **argv)
{
    char *device = NULL;
    struct poptOption table[] = { { "device", 'd', POPT_ARG_STRING, &device, 0,
                                    "this device alone", "NAME" },
                                  POPT_TABLEEND };
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (cli_parse(command, argc, argv, table, 1, &shared, &arguments))
        exit_code = warm(&shared, arguments.positional[0], device);
    else
        exit_code = arguments.exit_code;
    cli_finish(&shared, &arguments);
    free(device);
    return exit_code;
}

const cli_command cli_warm = {
    "warm",
    "MODEL [OPTION...]",
    "prepare a model on every device, so that a later process starts faster",
    warm_main,
};
