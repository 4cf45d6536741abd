/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* With a self-test; *reason says why there is none, or is NULL. */
static cellgate_status write(cellgate_model *model, const char *to,
                             const char **reason, cellgate_error *error)
{
    static cellgate_error untested = CELLGATE_ERROR_INIT;
    cellgate_status status = cellgate_model_make_selftest(model, &untested);

    *reason = status == CELLGATE_OK ? NULL : untested.text;
    if (status != CELLGATE_OK && status != CELLGATE_UNSUPPORTED)
        return cli_error(error, status, "%s", untested.text);
    return cellgate_model_save(model, to, error);
}

static int show(const cli_shared *shared, const char *from, const char *to,
                const cellgate_model *model, const char *untested)
{
    if (untested != NULL)
        fprintf(stderr, "cellgate: warning: %s\n", untested);
    if (!shared->json)
        return CLI_OK;
    return cli_print_json(
        json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:s, s:I}, s:s}", "read", "file",
                  from, "format", cellgate_model_format(model),
                  "format_version", cellgate_model_format_version(model),
                  "written", "file", to, "format", "native", "selftest_rows",
                  (json_int_t)cellgate_model_selftest_rows(model),
                  "fingerprint", cellgate_model_fingerprint(model)));
}

static int convert(const cli_shared *shared, const char *from, const char *to)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    const char *untested;
    int exit_code = CLI_OK;

    if (!ends_in(to, ".safetensors"))
        return cli_report(CLI_USAGE,
                          "%s: the name has to end in .safetensors, the only "
                          "format that convert writes",
                          to);
    if (cellgate_model_load(from, &model, &error) != CELLGATE_OK ||
        write(model, to, &untested, &error) != CELLGATE_OK)
        exit_code = cli_fail(&error);
    else
        exit_code = show(shared, from, to, model, untested);
    cellgate_model_destroy(model);
    return exit_code;
}

static int convert_main(const cli_command *command, int argc, const char **argv)
{
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (cli_parse(command, argc, argv, NULL, 2, &shared, &arguments))
        exit_code =
            convert(&shared, arguments.positional[0], arguments.positional[1]);
    else
        exit_code = arguments.exit_code;
    cli_finish(&shared, &arguments);
    return exit_code;
}

const cli_command cli_convert = {
    "convert",
    "MODEL OUTPUT",
    "write a model as a native file, for small targets and a fast start",
    convert_main,
};
