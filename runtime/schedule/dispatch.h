/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which way a request goes now: of several that could answer it, the one that
 * is predicted to end first, given what the resources have to do already. Pure
 * arithmetic.
 */
#ifndef CELLGATE_RUNTIME_SCHEDULE_DISPATCH_H
#define CELLGATE_RUNTIME_SCHEDULE_DISPATCH_H

#include <stddef.h>

typedef struct cg_turn {
    double seconds; /* that it takes there */
    double wait;    /* until its resource is free; 0: it is */
    double rate;    /* requests a second that the resource could do so */
} cg_turn;

/*
 * The turn that ends first; of equal ones the first. `behind`: requests that
 * wait in line, taken to be like this one. They count for a resource that is
 * busy: a slower one that is free is taken as soon as the line would keep the
 * faster ones busy for longer than the slower one needs, which is what the best
 * split of the whole line over the resources does. `count` is at least 1.
 */
size_t cg_dispatch(const cg_turn *turns, size_t count, size_t behind);

#endif
