/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const cli_command *const commands[] = {
    &cli_run,       &cli_generate, &cli_inspect, &cli_devices,
    &cli_calibrate, &cli_plan,     &cli_audit,   &cli_bench,
    &cli_convert,   &cli_verify,   &cli_conform, &cli_warm,
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static void print_commands(FILE *to)
{
    size_t i;

    fputs("Usage: cellgate COMMAND [ARGUMENT...]\n\n"
          "Runs trained LSTM models on mixed hardware.\n\nCommands:\n",
          to);
    for (i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\ncellgate COMMAND --help shows a command's options; "
          "cellgate --version the version.\n",
          to);
}

static int dispatch(int argc, const char **argv)
{
    size_t i;

    if (argc < 2) {
        print_commands(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_commands(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("cellgate %s\n", cellgate_version());
        return CLI_OK;
    }
    for (i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(argv[1], commands[i]->name) == 0)
            return commands[i]->main(commands[i], argc - 1, argv + 1);
    return cli_report(
        CLI_USAGE,
        "there is no command '%s'; there are run, "
        "generate, inspect, devices, calibrate, plan, audit, "
        "bench, convert, verify, conform and warm (cellgate --help)",
        argv[1]);
}

/* What was printed may still wait for room on a full disk. */
int main(int argc, const char **argv)
{
    int exit_code = dispatch(argc, argv);

    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && exit_code == CLI_OK)
        return cli_report(CLI_FILE, "cannot write to standard output: %s",
                          errno != 0 ? strerror(errno) : "not all was written");
    return exit_code;
}
