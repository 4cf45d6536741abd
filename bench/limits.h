/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h: what the machine can do at the most, measured: multiply-adds, and
 * bytes read from each level of the memory. A row of the table is held against
 * them.
 */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include "bench/rows.h"

#define LIMIT_LEVELS 4 /* L1, L2, L3, memory */

struct bench_limits {
    int threads;
    const char *vectors;            /* what they were measured with */
    double operations;              /* a second; two a multiply-add */
    double bandwidth[LIMIT_LEVELS]; /* bytes a second, all threads together */
    double capacity[LIMIT_LEVELS];  /* bytes, all threads together */
};

/* Takes about a second; 0 on success. */
int bench_limits_measure(struct bench_limits *limits, int threads);

/*
 * Seconds below which no implementation can go that works in float32 and reads
 * each recurrent weight once a step, from the cache that can hold them, and
 * every other weight once.
 */
double bench_limits_time(const struct bench_limits *limits,
                         const struct bench_work *work);

#endif /* BENCH_LIMITS_H */
