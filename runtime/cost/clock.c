/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "runtime/cost/clock.h"
#include "runtime/cost/samples.h"

static double now(void *context)
{
    struct timespec time;

    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void wait_for(void *context, double seconds)
{
    struct timespec left = { (time_t)seconds, 0 };

    (void)context;
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

const cg_clock cg_real_clock = { now, wait_for, NULL };

struct timespec cg_deadline_after(double seconds)
{
    const double longest = 1e9; /* keeps the sum inside a time_t */
    struct timespec at;
    double whole;

    clock_gettime(CLOCK_MONOTONIC, &at);
    if (!(seconds > 0))
        return at;
    seconds = seconds < longest ? seconds : longest;
    whole = (double)(int64_t)seconds;
    at.tv_sec += (time_t)whole;
    at.tv_nsec += (long)((seconds - whole) * 1e9);
    if (at.tv_nsec >= 1000000000L) {
        at.tv_nsec -= 1000000000L;
        at.tv_sec++;
    }
    return at;
}

#define TRIES 15
#define LOOKS 100000 /* a clock that stands still shows nothing */

double cg_clock_resolution(const cg_clock *clock)
{
    double steps[TRIES];
    cg_summary summary;

    for (int i = 0; i < TRIES; i++) {
        const double start = cg_now(clock);

        steps[i] = 0;
        for (int look = 0; look < LOOKS && steps[i] <= 0; look++)
            steps[i] = cg_now(clock) - start;
    }
    cg_summarise(steps, TRIES, &summary);
    return summary.median;
}
