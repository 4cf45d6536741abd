/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a session's requests follow each other, as it is seen: back to back, or
 * after idle gaps. A gap is the time in which no request of the session ran or
 * waited.
 *
 * A gap of CG_PACE_LONG and more speaks for spaced requests: threads that
 * waited for work are asleep by then. One up to CG_PACE_SHORT speaks against
 * it, and what lies between for neither. What is said changes when
 * CG_PACE_VOTES more gaps speak against it than for it, so that single ones do
 * nothing.
 *
 * Any thread; nothing waits.
 */
#ifndef CELLGATE_RUNTIME_SCHEDULE_PACE_H
#define CELLGATE_RUNTIME_SCHEDULE_PACE_H

#include <stdatomic.h>

#include "runtime/cost/clock.h"
#include "runtime/cost/store.h"

#define CG_PACE_LONG 5e-3 /* seconds */
#define CG_PACE_SHORT 1e-3
#define CG_PACE_VOTES 16

typedef struct cg_pace {
    const cg_clock *clock;
    atomic_uint running;
    _Atomic double ended; /* the last one, if none runs; below 0: none yet */
    atomic_int votes;     /* for spaced, 0 to CG_PACE_VOTES */
    atomic_int regime;    /* a cg_regime; back to back at first */
} cg_pace;

/* The clock must outlive it. */
void cg_pace_init(cg_pace *pace, const cg_clock *clock);

/* A request comes. Whether what is said has changed. */
bool cg_pace_begin(cg_pace *pace);
/* It ends. */
void cg_pace_end(cg_pace *pace);

static inline cg_regime cg_pace_regime(const cg_pace *pace)
{
    return (cg_regime)atomic_load_explicit(&pace->regime, memory_order_relaxed);
}

#endif
