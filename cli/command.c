/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

enum { OPTION_HELP = 1000 };

static void print_help(const cli_command *command, poptContext context)
{
    printf("%s\n\n", command->summary);
    poptPrintHelp(context, stdout, 0);
}

static bool stop(cli_arguments *arguments, int exit_code)
{
    arguments->exit_code = exit_code;
    return false;
}

static bool collect(const cli_command *command, int least, int most,
                    cli_arguments *arguments)
{
    arguments->positional = poptGetArgs(arguments->context);
    arguments->count = 0;
    while (arguments->positional != NULL &&
           arguments->positional[arguments->count] != NULL)
        arguments->count++;
    if (arguments->count >= least && arguments->count <= most)
        return true;
    return stop(arguments,
                cli_report(CLI_USAGE,
                           "%s takes %d%s argument%s, not %d; usage: cellgate "
                           "%s %s",
                           command->name, least,
                           least == most ? "" : " or more",
                           least == 1 && most == 1 ? "" : "s", arguments->count,
                           command->name, command->arguments));
}

bool cli_parse(const cli_command *command, int argc, const char **argv,
               struct poptOption *own, int positional, cli_shared *shared,
               cli_arguments *arguments)
{
    return cli_parse_range(command, argc, argv, own, positional, positional,
                           shared, arguments);
}

bool cli_parse_range(const cli_command *command, int argc, const char **argv,
                     struct poptOption *own, int least, int most,
                     cli_shared *shared, cli_arguments *arguments)
{
    struct poptOption common[] = {
        { "config", '\0', POPT_ARG_STRING, &shared->config, 0,
          "configuration file", "FILE" },
        { "plugin-path", '\0', POPT_ARG_STRING, &shared->plugin_path, 0,
          "folders to look for plugins in first", "DIR[:DIR...]" },
        { "json", '\0', POPT_ARG_NONE, &shared->json, 0,
          "print the result as JSON", NULL },
        { "help", 'h', POPT_ARG_NONE, NULL, OPTION_HELP, "show this help",
          NULL },
        POPT_TABLEEND
    };
    struct poptOption shared_table = {
        NULL,   '\0', POPT_ARG_INCLUDE_TABLE,
        common, 0,    own != NULL ? "Common options:" : "Options:",
        NULL
    };
    struct poptOption own_table = {
        NULL, '\0', POPT_ARG_INCLUDE_TABLE, own, 0, "Options:", NULL
    };
    struct poptOption end = POPT_TABLEEND;
    struct poptOption table[] = { own != NULL ? own_table : shared_table,
                                  own != NULL ? shared_table : end, end };
    char name[64];
    int option;

    memset(arguments, 0, sizeof *arguments);
    snprintf(name, sizeof name, "cellgate %s", command->name);
    argv[0] = name;
    arguments->context = poptGetContext(name, argc, argv, table, 0);
    if (arguments->context == NULL)
        return stop(arguments, cli_report(CLI_OTHER, "out of memory"));
    poptSetOtherOptionHelp(arguments->context, command->arguments);
    while ((option = poptGetNextOpt(arguments->context)) >= 0) {
        if (option == OPTION_HELP) {
            print_help(command, arguments->context);
            return stop(arguments, CLI_OK);
        }
    }
    if (option < -1)
        return stop(arguments,
                    cli_report(CLI_USAGE, "%s: %s; see cellgate %s --help",
                               poptBadOption(arguments->context, 0),
                               poptStrerror(option), command->name));
    return collect(command, least, most, arguments);
}

void cli_finish(cli_shared *shared, cli_arguments *arguments)
{
    free(shared->config);
    free(shared->plugin_path);
    if (arguments->context != NULL)
        poptFreeContext(arguments->context);
}

static int exit_code_of(int32_t status)
{
    switch (status) {
    case CELLGATE_OK:
        return CLI_OK;
    case CELLGATE_INVALID:
        return CLI_USAGE;
    case CELLGATE_BAD_CONFIG:
        return CLI_CONFIG;
    case CELLGATE_BAD_FILE:
    case CELLGATE_IO:
    case CELLGATE_BAD_SHAPE:
    case CELLGATE_OUT_OF_RANGE:
    case CELLGATE_UNSUPPORTED:
        return CLI_FILE;
    case CELLGATE_NOT_FOUND:
    case CELLGATE_BAD_PLUGIN:
    case CELLGATE_NO_DEVICE:
    case CELLGATE_BUSY:
    case CELLGATE_DEVICE_FAILED:
    case CELLGATE_DEVICE_LOST:
    case CELLGATE_DEVICE_MEMORY:
    case CELLGATE_TIMEOUT:
        return CLI_DEVICE;
    default:
        return CLI_OTHER;
    }
}

int cli_fail(const cellgate_error *error)
{
    fprintf(stderr, "cellgate: %s\n",
            error->text[0] != '\0'
                ? error->text
                : cellgate_status_text((cellgate_status)error->status));
    return exit_code_of(error->status);
}

int cli_report(int exit_code, const char *format, ...)
{
    va_list arguments;

    fputs("cellgate: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return exit_code;
}

cellgate_status cli_error(cellgate_error *error, cellgate_status status,
                          const char *format, ...)
{
    va_list arguments;

    error->status = (int32_t)status;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}

cellgate_status cli_open(const cli_shared *shared, cellgate_runtime **runtime,
                         cellgate_error *error)
{
    cellgate_runtime_options options = { .struct_size = sizeof options };
    cellgate_status status;

    options.config_path = shared->config;
    options.plugin_path = shared->plugin_path;
    status = cellgate_runtime_create(&options, runtime, error);
    /* The only file that it reads on its own is the configuration. */
    if (status == CELLGATE_IO)
        error->status = CELLGATE_BAD_CONFIG;
    return status;
}

int cli_print_json(json_t *value)
{
    int failed;

    if (value == NULL)
        return cli_report(CLI_OTHER, "out of memory");
    failed = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(value);
    if (failed != 0 || putchar('\n') == EOF || fflush(stdout) != 0)
        return cli_report(CLI_FILE, "cannot write to standard output");
    return CLI_OK;
}

void cli_shape_text(char *text, size_t size, int32_t rank, const int64_t *shape)
{
    size_t used = 0;
    int32_t axis;

    used += (size_t)snprintf(text, size, "(");
    for (axis = 0; axis < rank && used < size; axis++) {
        const char *comma = axis == 0 ? "" : ", ";

        if (shape[axis] >= 0)
            used += (size_t)snprintf(text + used, size - used, "%s%" PRId64,
                                     comma, shape[axis]);
        else
            used += (size_t)snprintf(text + used, size - used, "%s%s", comma,
                                     axis == 0 ? "batch" : "?");
    }
    if (used < size)
        snprintf(text + used, size - used, ")");
}

json_t *cli_shape_json(int32_t rank, const int64_t *shape)
{
    json_t *array = json_array();
    int32_t axis;

    for (axis = 0; array != NULL && axis < rank; axis++)
        json_array_append_new(
            array, shape[axis] >= 0 ? json_integer(shape[axis]) : json_null());
    return array;
}

json_t *cli_segments_json(const cellgate_session *session)
{
    json_t *array = json_array();
    cellgate_segment_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; cellgate_session_segment_get(session, i, &info) == CELLGATE_OK;
         i++)
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:s}", "device",
                             info.device, "variant", info.variant, "nodes",
                             info.nodes, "reason", info.reason, "note",
                             info.note, "threads", (int)info.threads, "numeric",
                             cellgate_numeric_name(info.numeric)));
    return array;
}
