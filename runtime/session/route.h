/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way from a request's shape to the placement pinned for it.
 *
 * A request whose class of shapes was seen before finds its placement in a
 * table without a lock. For a new class, or when something was measured since,
 * the model is cut by cost: over each chain, dynamic programming finds the cut
 * and the candidates whose predicted costs are least (every boundary goes
 * through host memory, so costs add up).
 */
#ifndef CELLGATE_RUNTIME_SESSION_ROUTE_H
#define CELLGATE_RUNTIME_SESSION_ROUTE_H

#include "runtime/schedule/book.h"
#include "runtime/schedule/decide.h"
#include "runtime/session/placement.h"

/* Why the placement, for reports. */
typedef struct cg_route {
    cg_placement *placement;
    bool measured; /* else the first usable device's */
    cg_cost cost;  /* predicted, of all segments together */
    double ahead;  /* of the best other candidate for the longest segment;
                      0: there is none, or it is not measured */
    const cg_segment *rival; /* that one */
} cg_route;

struct cellgate_session;
struct cg_call;

typedef struct cg_router cg_router;

cellgate_status cg_router_create(const struct cellgate_session *session,
                                 cg_router **router, cellgate_error *error);
/* Destroys its placements; whether all of them could be freed, as
   cg_placement_destroy(). */
bool cg_router_destroy(cg_router *router);

/* The regime and the policy that the configuration asks for. */
void cg_route_settings(const struct cellgate_session *session,
                       cg_regime *regime, cg_policy *policy);

/* "measured: 92 us predicted (interpolated, 31 samples), 1.8 times ahead of cpu
   t1"; of a route that is measured. */
void cg_route_text(const cg_route *route, char *text, size_t size);

/* The placement for a checked request. Any thread. */
cellgate_status cg_router_route(cg_router *router,
                                struct cellgate_session *session,
                                const struct cg_call *call, cg_route *route,
                                cellgate_error *error);
/* A device failed: what was decided is decided again. */
void cg_router_forget(cg_router *router);

/* ---- choose.c ---------------------------------------------------------------
 */

/* What the choice by cost needs to know of a request. */
typedef struct cg_costing {
    struct cellgate_session *session;
    const cg_shape *shapes; /* by value */
    double fill;
    cg_regime regime;
    cg_policy policy;
    /* What came of it. */
    cg_route route;
    double longest; /* seconds of the segment that route.rival is of */
    bool unknown;   /* some chain has no measured candidate */
} cg_costing;

/* A chooser; its context is a cg_costing. */
cellgate_status cg_choose_by_cost(void *costing, const size_t *nodes,
                                  size_t longest, cg_choice *choice,
                                  cellgate_error *error);

/*
 * What is known of a segment for a request. Where it is excluded, the reason
 * may lie in *refusal, which has to outlive the option.
 */
cellgate_status cg_segment_option(const cg_costing *costing,
                                  const cg_segment *segment, cg_option *option,
                                  cellgate_error *refusal,
                                  cellgate_error *error);

/* A segment's candidate, for the book. */
cellgate_status cg_segment_candidate(const cg_segment *segment,
                                     cg_cost_candidate *candidate,
                                     cellgate_error *error);
/* The shape that a segment's cost is of. */
void cg_segment_cost_shape(const cg_segment *segment, const cg_shape *shapes,
                           double fill, cg_cost_shape *shape);

#endif
