/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a structure computes and moves, read from its canonical text
 * (runtime/session/structure.c), and what that says of one structure's cost by
 * another one's. Pure arithmetic.
 */
#ifndef CELLGATE_RUNTIME_COST_WORK_H
#define CELLGATE_RUNTIME_COST_WORK_H

#include "runtime/cost/surface.h"

typedef struct cg_work {
    bool rows;       /* a row a sample: there are no steps */
    int recurrences; /* LSTMs, one behind the other */
    /* Multiplications and additions, and numbers that go in and come out: for
       each row and step, and for each row. */
    double step_operations, row_operations;
    double step_numbers, row_numbers;
} cg_work;

/* False: not a structure that this version writes. */
bool cg_work_read(const char *structure, cg_work *work);

/*
 * How many times the work of `of` at a shape `to` is: the geometric mean of the
 * ratios of operations and of numbers. 0: they are not alike enough (rows and
 * steps, with and without recurrences) to say anything.
 */
double cg_work_ratio(const cg_work *of, const cg_work *to,
                     const cg_cost_shape *shape);

/*
 * What a structure costs, from another one's surface on the same candidate:
 * a launch costs the same, the work as many times as there is more of it, and a
 * step, which is a latency on some devices and work on others, the root of
 * that. The standard error is a half and more the more the two differ, and
 * cost->seconds lies one such error above the middle: something measured is
 * left for it only where it is clearly better. NONE where the two are not
 * alike, or the lender has nothing.
 */
void cg_cost_borrow(const cg_surface *lender, const cg_work *of,
                    const cg_work *to, const cg_cost_shape *shape,
                    cg_cost *cost);

#endif
