/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h: ratios on a machine that others use too. The sides run in turn;
 * each turn gives one time of each, and only times of the same turn are
 * compared.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/sides.h"

#define MEASURE_SIDES 4
#define MEASURE_PAIRS 201 /* most turns */

struct bench_times {
    int pairs;
    double seconds[MEASURE_SIDES][MEASURE_PAIRS]; /* of one run */
};

/* Monotonic seconds. */
double bench_now(void);

/*
 * Times `count` sides in turn: `wanted` turns, fewer when `budget` seconds are
 * over (but five at the least). A turn of a side is one run that isn't timed,
 * which finds the caches and threads as the other side left them, and as many
 * timed ones as make a few milliseconds.
 */
void bench_measure(struct bench_times *times, struct bench_side *const *sides,
                   int count, int wanted, double budget);

/* Value at `part` (0 to 1) of the sorted ratios of two sides' times. */
double bench_ratio(const struct bench_times *times, int of, int to,
                   double part);

/* Median time of a side. */
double bench_median(const struct bench_times *times, int side);

/* Shortest time of a side: the turn that others disturbed least. */
double bench_best(const struct bench_times *times, int side);

#endif /* BENCH_MEASURE_H */
