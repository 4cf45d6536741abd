/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite is a program of its own, so that its oracle shares no
 * code with what it judges; this command finds and becomes it.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

#define SUITE CELLGATE_PROBEDIR "/cellgate-conform"

static int conform_main(const cli_command *command, int argc, const char **argv)
{
    const char *suite = getenv("CELLGATE_CONFORM");

    (void)command;
    (void)argc;
    if (suite == NULL)
        suite = SUITE;
    execv(suite, (char *const *)argv);
    return cli_report(CLI_OTHER,
                      "cannot start the conformance suite %s: %s; it is "
                      "installed with cellgate, or named by CELLGATE_CONFORM",
                      suite, strerror(errno));
}

const cli_command cli_conform = {
    "conform",
    "PLUGIN.so [OPTION...]",
    "check a plugin against the ABI and the oracle; the vendor's report",
    conform_main,
};
