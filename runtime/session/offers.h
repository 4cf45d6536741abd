/* SPDX-License-Identifier: Apache-2.0 */
/* What a device offers for a piece of a chain: which variants may run it, and
   why others may not. */
#ifndef CELLGATE_RUNTIME_SESSION_OFFERS_H
#define CELLGATE_RUNTIME_SESSION_OFFERS_H

#include "runtime/session/pool.h"

typedef struct cg_offer {
    const cg_engine *engine;
    const char *variant; /* "" where the device does not take the piece */
    uint32_t threads;
    cg_segment *segment; /* the pool's; NULL: the variant is not to be run */
    const char *refusal; /* why not; NULL with a segment */
    const char *note;    /* of the variant; "" for nothing to say */
} cg_offer;

/* What an offer points to is the caller's until it returns. A status that is
   not OK ends the visit. */
typedef cellgate_status (*cg_offer_visitor)(void *context,
                                            const cg_offer *offer,
                                            cellgate_error *error);

/*
 * Each variant of the device for nodes[0 .. count), in its order, or one
 * refusal. Results less exact than [scheduler] precision and more threads than
 * there are exclude a variant before anything is measured.
 */
cellgate_status cg_offers_visit(cg_segment_pool *pool, const cg_engine *engine,
                                const size_t *nodes, size_t count,
                                cg_offer_visitor visit, void *context,
                                cellgate_error *error);

#endif
