/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time, as everything that measures or waits takes it: so that tests say what
 * time it is.
 */
#ifndef CELLGATE_RUNTIME_COST_CLOCK_H
#define CELLGATE_RUNTIME_COST_CLOCK_H

#include <time.h>

typedef struct cg_clock {
    /* Seconds since some moment; never goes back. Any thread. */
    double (*now)(void *context);
    void (*sleep)(void *context, double seconds);
    void *context;
} cg_clock;

/* CLOCK_MONOTONIC. */
extern const cg_clock cg_real_clock;

static inline double cg_now(const cg_clock *clock)
{
    return clock->now(clock->context);
}

/* That many seconds from now on CLOCK_MONOTONIC, for timed waits; what is not
   above zero is now, and what is too long for the clock very long. */
struct timespec cg_deadline_after(double seconds);

/* The smallest difference that the clock shows, in seconds: the median of a
   few tries. */
double cg_clock_resolution(const cg_clock *clock);

#endif
