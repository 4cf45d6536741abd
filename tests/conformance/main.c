/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellgate-conform, which `cellgate conform` becomes: tests a device plugin
 * against the contract in cellgate/plugin.h and prints a report for its author.
 * Exit codes are the command's: 0 passed, 1 failed, 2 wrong command line, 5 the
 * plugin or its device cannot be used, 6 out of memory.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <popt.h>

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

enum { OPTION_SET = 1, OPTION_SEED, OPTION_SECONDS, OPTION_HELP };

/* Appends key=value; -1 if it isn't of that form. */
static int add_setting(suite_options *options, const char *text)
{
    const char *equals = strchr(text, '=');
    host_setting *grown, *to;

    if (equals == NULL || equals == text)
        return -1;
    grown = realloc(options->settings,
                    (options->setting_count + 1) * sizeof *grown);
    if (grown == NULL)
        return -1;
    options->settings = grown;
    to = &grown[options->setting_count];
    to->key = strndup(text, (size_t)(equals - text));
    to->value = strdup(equals + 1);
    options->setting_count++;
    return to->key != NULL && to->value != NULL ? 0 : -1;
}

static int parse_seed(suite_options *options, const char *text)
{
    char *end;

    options->seed = strtoull(text, &end, 10);
    return *text != '\0' && *end == '\0' ? 0 : -1;
}

static int parse_seconds(suite_options *options, const char *text)
{
    char *end;

    options->seconds = strtod(text, &end);
    return *text != '\0' && *end == '\0' && options->seconds > 0 &&
                   options->seconds < 1e9
               ? 0
               : -1;
}

/* What popt fills in with types of its own. */
typedef struct raw_options {
    int device, threads, quick;
    char *variant, *filter, *set, *seed, *seconds;
} raw_options;

/* 0: go on; 1: help was printed; -1: wrong, and told. */
static int take_options(poptContext context, raw_options *raw,
                        suite_options *options)
{
    int option, result = 0;

    while ((option = poptGetNextOpt(context)) > 0) {
        if (option == OPTION_HELP) {
            poptPrintHelp(context, stdout, 0);
            return 1;
        }
        if (option == OPTION_SET && add_setting(options, raw->set) != 0) {
            (void)fprintf(stderr,
                          "cellgate conform: --set takes key=value, not '%s'\n",
                          raw->set);
            result = -1;
        }
        if (option == OPTION_SEED && parse_seed(options, raw->seed) != 0) {
            (void)fprintf(stderr,
                          "cellgate conform: --seed takes a number, not '%s'\n",
                          raw->seed);
            result = -1;
        }
        if (option == OPTION_SECONDS &&
            parse_seconds(options, raw->seconds) != 0) {
            (void)fprintf(stderr,
                          "cellgate conform: --seconds takes a number above 0, "
                          "not '%s'\n",
                          raw->seconds);
            result = -1;
        }
        free(raw->set);
        free(raw->seed);
        free(raw->seconds);
        raw->set = raw->seed = raw->seconds = NULL;
    }
    if (option < -1) {
        (void)fprintf(stderr, "cellgate conform: %s: %s\n",
                      poptBadOption(context, POPT_BADOPTION_NOALIAS),
                      poptStrerror(option));
        result = -1;
    }
    return result;
}

static int check_usage(poptContext context, const raw_options *raw,
                       const suite_options *options, const char *path)
{
    const char *wrong = NULL;

    if (path == NULL && !options->list)
        wrong = "name the plugin's file";
    else if (poptPeekArg(context) != NULL)
        wrong = "one plugin at a time";
    else if (raw->quick && options->full)
        wrong = "--quick or --full, not both";
    else if (options->variants && (options->list || options->json))
        wrong = "--variants goes with neither --list nor --json";
    else if (raw->device < -1)
        wrong = "--device takes a number from 0 up";
    else if (raw->threads < 0)
        wrong = "--threads takes a number from 0 up";
    if (wrong != NULL)
        (void)fprintf(stderr,
                      "cellgate conform: %s; see cellgate conform "
                      "--help\n",
                      wrong);
    return wrong == NULL;
}

static int run(poptContext context, raw_options *raw, suite_options *options)
{
    const char *path;

    int taken = take_options(context, raw, options);

    if (taken != 0)
        return taken > 0 ? 0 : 2;
    path = poptGetArg(context);
    if (!check_usage(context, raw, options, path))
        return 2;
    options->path = path;
    options->device = raw->device;
    options->threads = (uint32_t)raw->threads;
    options->variant = raw->variant;
    options->filter = raw->filter;
    crash_install();
    return suite_main(options);
}

int main(int argc, const char **argv)
{
    suite_options options = { .seed = 1 };
    raw_options raw = { .device = -1 };
    const struct poptOption table[] = {
        { "quick", 0, POPT_ARG_NONE, &raw.quick, 0,
          "Some seconds' worth of cases (the default)", NULL },
        { "full", 0, POPT_ARG_NONE, &options.full, 0, "More and larger cases",
          NULL },
        { "seed", 0, POPT_ARG_STRING, &raw.seed, OPTION_SEED,
          "Of the random cases (default 1)", "N" },
        { "device", 0, POPT_ARG_INT, &raw.device, 0,
          "Test only device number N", "N" },
        { "variant", 0, POPT_ARG_STRING, &raw.variant, 0,
          "Test only variants of this name", "NAME" },
        { "filter", 0, POPT_ARG_STRING, &raw.filter, 0,
          "Test only this group, or cases in whose description this regular "
          "expression is found",
          "TEXT" },
        { "seconds", 0, POPT_ARG_STRING, &raw.seconds, OPTION_SECONDS,
          "Begin no case after so long; what is not tried is not passed", "S" },
        { "set", 0, POPT_ARG_STRING, &raw.set, OPTION_SET,
          "Open devices with this setting; may be repeated", "KEY=VALUE" },
        { "threads", 0, POPT_ARG_INT, &raw.threads, 0,
          "Thread budget (default: processors online)", "N" },
        { "list", 0, POPT_ARG_NONE, &options.list, 0,
          "List the cases, run nothing", NULL },
        { "variants", 0, POPT_ARG_NONE, &options.variants, 0,
          "List the variants that devices have for the cases, run nothing",
          NULL },
        { "json", 0, POPT_ARG_NONE, &options.json, 0,
          "Print the report as JSON", NULL },
        { "verbose", 'v', POPT_ARG_NONE, &options.verbose, 0,
          "Show all log lines of the plugin", NULL },
        { "help", 'h', POPT_ARG_NONE, NULL, OPTION_HELP, "Show this help",
          NULL },
        POPT_TABLEEND
    };
    char name[] = "cellgate conform"; /* which the user typed, as a rule */
    poptContext context;
    int status;

    argv[0] = name;
    context = poptGetContext(name, argc, argv, table, 0);
    if (context == NULL)
        return 6;
    poptSetOtherOptionHelp(context, "PLUGIN.so [OPTION...]");
    status = run(context, &raw, &options);
    for (size_t i = 0; i < options.setting_count; i++) {
        free(options.settings[i].key);
        free(options.settings[i].value);
    }
    free(options.settings);
    free(raw.variant);
    free(raw.filter);
    poptFreeContext(context);
    return status;
}
