/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "cli/stop.h"

/* Seconds in which more signals are taken for the same wish: a supervisor sends
   one to the process and one to its group. */
#define TOGETHER 0.5

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
static volatile sig_atomic_t caught;
static struct timespec first;

static double since_first(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - first.tv_sec) +
           (double)(now.tv_nsec - first.tv_nsec) * 1e-9;
}

static void note(int number)
{
    if (caught == 0) {
        clock_gettime(CLOCK_MONOTONIC, &first);
        caught = number;
    } else if (since_first() > TOGETHER) {
        (void)signal(number, SIG_DFL);
        (void)raise(number); /* delivered on return */
    }
}

void cli_stop_begin(void)
{
    struct sigaction action, before;
    size_t i;

    memset(&action, 0, sizeof action);
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;
    /* One handler at a time: they share what they note. */
    sigemptyset(&action.sa_mask);
    for (i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(&action.sa_mask, signals[i]);
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
