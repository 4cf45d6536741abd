/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "bench/measure.h"

#define TURN 3e-3 /* seconds that a side's timed runs should take */
/*
 * The pause in which the threads of the other side fall asleep: those of GNU
 * OpenMP, oneDNN's, spin for 300,000 pauses, some 5 ms, after each region.
 */
#define SETTLE 12e-3
#define FEWEST 5

double bench_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double time_runs(const struct bench_side *side, long runs)
{
    double begin = bench_now();
    long i;

    for (i = 0; i < runs; i++)
        side->run(side->state);
    return (bench_now() - begin) / (double)runs;
}

static long runs_in_a_turn(const struct bench_side *side)
{
    double once;

    (void)time_runs(side, 1);
    once = time_runs(side, 1);
    return once >= TURN ? 1 : (long)(TURN / once) + 1;
}

void bench_measure(struct bench_times *times, struct bench_side *const *sides,
                   int count, int wanted, double budget)
{
    const struct timespec pause = { 0, (long)(SETTLE * 1e9) };
    const double end = bench_now() + budget;
    long runs[MEASURE_SIDES];
    int side;

    for (side = 0; side < count; side++)
        runs[side] = runs_in_a_turn(sides[side]);
    for (times->pairs = 0; times->pairs < wanted; times->pairs++) {
        if (times->pairs >= FEWEST && bench_now() > end)
            break;
        for (side = 0; side < count; side++) {
            (void)nanosleep(&pause, NULL);
            (void)time_runs(sides[side], 1);
            times->seconds[side][times->pairs] =
                time_runs(sides[side], runs[side]);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_ratio(const struct bench_times *times, int of, int to, double part)
{
    double ratios[MEASURE_PAIRS] = { 0 };
    int i;

    for (i = 0; i < times->pairs; i++)
        ratios[i] = times->seconds[of][i] / times->seconds[to][i];
    qsort(ratios, (size_t)times->pairs, sizeof *ratios, by_value);
    return ratios[(int)(part * (times->pairs - 1) + 0.5)];
}

double bench_median(const struct bench_times *times, int side)
{
    double seconds[MEASURE_PAIRS];

    memcpy(seconds, times->seconds[side], sizeof seconds);
    qsort(seconds, (size_t)times->pairs, sizeof *seconds, by_value);
    return seconds[times->pairs / 2];
}

double bench_best(const struct bench_times *times, int side)
{
    double best = times->seconds[side][0];
    int i;

    for (i = 1; i < times->pairs; i++)
        if (times->seconds[side][i] < best)
            best = times->seconds[side][i];
    return best;
}
