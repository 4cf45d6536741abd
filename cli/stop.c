/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "cli/stop.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
static volatile sig_atomic_t caught;

static void note(int number)
{
    caught = number;
}

void cli_stop_begin(void)
{
    struct sigaction action, before;
    size_t i;

    memset(&action, 0, sizeof action);
    action.sa_handler = note;
    action.sa_flags = SA_RESTART | (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    for (i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
}

int cli_stop_signal(void)
{
    return caught;
}

void cli_stop_raise(void)
{
    if (caught == 0)
        return;
    (void)signal(caught, SIG_DFL);
    (void)raise(caught);
}
