/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/crash.h"

static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
#define SIGNAL_COUNT (sizeof signals / sizeof signals[0])

static struct sigaction previous[SIGNAL_COUNT];
static char context[1200];

void crash_context(const char *what, const char *variant)
{
    (void)snprintf(context, sizeof context,
                   "FAIL: the plugin crashed (a read or write beyond a buffer "
                   "is the usual cause), variant %s\n     %s\n",
                   variant != NULL ? variant : "-", what);
}

/* Returning runs the faulting instruction again, now under the old handler. */
static void on_signal(int number)
{
    ssize_t ignored = write(STDOUT_FILENO, context, strlen(context));

    (void)ignored;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (signals[i] == number)
            (void)sigaction(number, &previous[i], NULL);
    if (number == SIGABRT)
        (void)raise(number);
}

void crash_install(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    (void)sigemptyset(&action.sa_mask);
    action.sa_flags = SA_NODEFER;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        (void)sigaction(signals[i], &action, &previous[i]);
}
