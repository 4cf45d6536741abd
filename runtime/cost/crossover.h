/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where two candidates change places along one axis of the shape. Pure
 * arithmetic.
 */
#ifndef CELLGATE_RUNTIME_COST_CROSSOVER_H
#define CELLGATE_RUNTIME_COST_CROSSOVER_H

#include "runtime/cost/surface.h"

typedef enum cg_cost_axis { CG_AXIS_BATCH, CG_AXIS_STEPS } cg_cost_axis;

typedef struct cg_crossover {
    int64_t at; /* the first extent at which the other one is cheaper */
    /* Between these the two are not told apart (95%); the range's ends where
       they never are. */
    int64_t low, high;
    bool second_after; /* from `at` on the second is the cheaper one */
} cg_crossover;

/*
 * Looks along `axis` from `from` to `to`, the other extents as in `shape`, and
 * fills up to `room` crossovers in order; returns how many there are. None
 * where one of the two has no estimate.
 */
size_t cg_crossovers(const cg_surface *first, const cg_surface *second,
                     const cg_cost_shape *shape, cg_cost_axis axis,
                     int64_t from, int64_t to, cg_crossover *found,
                     size_t room);

#endif
