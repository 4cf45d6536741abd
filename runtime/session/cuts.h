/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cuts of a model that routing has thought of: each a partition by cost,
 * kept once, and placed (its weights laid out) when the first request goes that
 * way. What is in the list stays until the session ends. All under the
 * session's mutex, but for a cut's placement.
 */
#ifndef CELLGATE_RUNTIME_SESSION_CUTS_H
#define CELLGATE_RUNTIME_SESSION_CUTS_H

#include "runtime/session/placement.h"

/* Devices of a cut beyond these are not looked at when it is their turn. */
#define CG_CUT_DEVICES 3

typedef struct cg_cut {
    struct cg_cut *next;
    bool masked; /* for requests that give masks */
    cg_partition partition;
    _Atomic(cg_placement *) placement; /* NULL: nothing went this way yet */
    /* Its devices, and how many threads of each a run takes. */
    const cg_engine *engines[CG_CUT_DEVICES];
    unsigned places[CG_CUT_DEVICES];
    size_t engine_count;
} cg_cut;

/* The cut that is made of the same segments, or this one, added: the partition
   is taken over in both cases. NULL: no memory; it is still the caller's. */
cg_cut *cg_cuts_put(cg_cut **cuts, cg_partition *partition, bool masked);

/* Its placement, made now if it is not there. */
cellgate_status cg_cut_place(cg_cut *cut, cg_segment_pool *pool,
                             double watchdog, cg_placement **placement,
                             cellgate_error *error);

/* Retires the placements on the engine. */
void cg_cuts_retire(cg_cut *cuts, const cg_engine *engine);
/* Whether all of them could be freed, as cg_placement_destroy(). */
bool cg_cuts_destroy(cg_cut *cuts);

#endif
