/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "cli/command.h"

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length > tail && strcmp(text + length - tail, end) == 0;
}

static int convert(const cli_shared *shared, const char *from, const char *to)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    int exit_code = CLI_OK;

    if (!ends_in(to, ".safetensors"))
        return cli_report(CLI_USAGE,
                          "%s: the name has to end in .safetensors, the only "
                          "format that convert writes",
                          to);
    if (cellgate_model_load(from, &model, &error) != CELLGATE_OK ||
        cellgate_model_save(model, to, &error) != CELLGATE_OK)
        exit_code = cli_fail(&error);
    else if (shared->json)
        exit_code = cli_print_json(
            json_pack("{s:s, s:s, s:s, s:s}", "model", from, "output", to,
                      "format", cellgate_model_format(model), "fingerprint",
                      cellgate_model_fingerprint(model)));
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
