/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the subcommands share: the options that all of them take, exit codes,
 * and the way errors reach the user. Messages go to stderr, results to stdout.
 */
#ifndef CELLGATE_CLI_COMMAND_H
#define CELLGATE_CLI_COMMAND_H

#include <jansson.h>
#include <popt.h>
#include <stdbool.h>

#include "cellgate/cellgate.h"

/* Exit codes, as the man page lists them. */
enum {
    CLI_OK = 0,
    CLI_NO = 1,     /* done, and the answer is no: a comparison or a check
                       failed */
    CLI_USAGE = 2,  /* the command line */
    CLI_CONFIG = 3, /* the configuration */
    CLI_FILE = 4,   /* a model or data file, or shapes that do not fit */
    CLI_DEVICE = 5, /* a plugin or device */
    CLI_OTHER = 6   /* memory, internal errors */
};

typedef struct cli_command {
    const char *name;
    const char *arguments; /* "MODEL [OPTION...]" */
    const char *summary;   /* one line */
    int (*main)(const struct cli_command *command, int argc, const char **argv);
} cli_command;

extern const cli_command cli_run, cli_inspect, cli_devices, cli_convert,
    cli_conform, cli_generate, cli_verify, cli_calibrate, cli_plan, cli_bench,
    cli_audit, cli_warm;

/* The options that every command takes. */
typedef struct cli_shared {
    char *config;      /* --config FILE */
    char *plugin_path; /* --plugin-path DIRS */
    int json;          /* --json */
} cli_shared;

/* Result of cli_parse(): positional arguments, in order. */
typedef struct cli_arguments {
    poptContext context;
    const char **positional;
    int count;
    int exit_code; /* where cli_parse() returned false */
} cli_arguments;

/*
 * Parses argv with the command's own options (may be NULL) and the shared
 * ones; wants exactly `positional` other arguments. False means stop with
 * arguments->exit_code: help was printed, or the usage was wrong and has been
 * reported. cli_finish() in either case, after the last use of the strings.
 */
bool cli_parse(const cli_command *command, int argc, const char **argv,
               struct poptOption *own, int positional, cli_shared *shared,
               cli_arguments *arguments);
/* The same, for `least` to `most` other arguments. */
bool cli_parse_range(const cli_command *command, int argc, const char **argv,
                     struct poptOption *own, int least, int most,
                     cli_shared *shared, cli_arguments *arguments);
void cli_finish(cli_shared *shared, cli_arguments *arguments);

/* Prints "cellgate: text" to stderr and returns the exit code. */
int cli_fail(const cellgate_error *error);
__attribute__((format(printf, 2, 3))) int cli_report(int exit_code,
                                                     const char *format, ...);

/* Fills *error and returns `status`. */
__attribute__((format(printf, 3, 4))) cellgate_status
cli_error(cellgate_error *error, cellgate_status status, const char *format,
          ...);

/* "1 shape was", "2 shapes were": what goes with a count. */
static inline const char *cli_counted(uint64_t count, const char *one,
                                      const char *more)
{
    return count == 1 ? one : more;
}

/* Opens a runtime as the shared options say. */
cellgate_status cli_open(const cli_shared *shared, cellgate_runtime **runtime,
                         cellgate_error *error);

/* Prints a JSON value to stdout and releases it. */
int cli_print_json(json_t *value);

/* A shape as "(batch, 20, 16)": -1 on axis 0 is "batch", elsewhere "?". */
void cli_shape_text(char *text, size_t size, int32_t rank,
                    const int64_t *shape);
json_t *cli_shape_json(int32_t rank, const int64_t *shape);

/* Where a session's segments run, and why. */
json_t *cli_segments_json(const cellgate_session *session);

#endif
