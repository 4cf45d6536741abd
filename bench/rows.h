/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h: the shapes of the benchmark table. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <stdbool.h>

#include "tests/conformance/case.h"

struct bench_row {
    int number;
    bool quick;
    const char *text;
    int64_t batch, steps, input, hidden;
    int layers, directions;
    int64_t dense;     /* units of a dense layer on top, or 0 */
    bool on_each_step; /* dense with softmax on each step, else on the last */
    bool ragged;       /* lengths of 10 to `steps` */
    bool hard_gates;   /* hard_sigmoid for sigmoid */
};

/* In order of their numbers; the last has number 0. */
extern const struct bench_row bench_rows[];

/* The row as a case of the conformance suite, with weights from `seed`. */
test_case bench_row_case(const struct bench_row *row, uint64_t seed);

/* What it costs at the least, as benchmarks go: operations and bytes. */
struct bench_work {
    double operations;      /* two for each multiply-add of the products */
    double recurrent_bytes; /* recurrent weights of one step, all layers */
    double input_bytes;     /* all other weights: read once at the least */
    double steps;           /* times the recurrent weights are read */
};
struct bench_work bench_row_work(const struct bench_row *row,
                                 const int32_t *lengths);

#endif /* BENCH_ROWS_H */
