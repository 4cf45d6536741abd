/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way from a request's shape to what is pinned for it.
 *
 * A request whose class of shapes was seen before finds its pin in a table
 * without a lock. For a new class, or when something was measured since, the
 * model is cut by cost: over each chain, dynamic programming finds the cut and
 * the candidates whose predicted costs are least (every boundary goes through
 * host memory, so costs add up). The same is done for each device alone, so
 * that a pin holds more than one way: others are taken while the best one's
 * resource is busy, and when it fails.
 */
#ifndef CELLGATE_RUNTIME_SESSION_ROUTE_H
#define CELLGATE_RUNTIME_SESSION_ROUTE_H

#include "runtime/schedule/book.h"
#include "runtime/schedule/decide.h"
#include "runtime/session/cuts.h"

/* Why the best way, for reports. */
typedef struct cg_route {
    bool measured;   /* else the first usable device's */
    bool kept;       /* it was pinned, and what is better is so by too little */
    cg_cost cost;    /* predicted, of all segments together */
    float once;      /* seconds that are to be spent once before, where these
                        count: weights to be laid out */
    double requests; /* that they are spread over */
    float needed;   /* of one that is kept: so many times faster another must be
                       predicted to be */
    bool by_margin; /* that is the margin; else the noise */
    double ahead;   /* of the best other candidate for the longest segment;
                       0: there is none, or it is not measured */
    const cg_segment *rival; /* that one */
} cg_route;

/* One way to answer a request. */
typedef struct cg_way {
    cg_cut *cut;
    float seconds;            /* predicted, of all segments together */
    float on[CG_CUT_DEVICES]; /* of these, on each of the cut's devices */
    uint32_t kind;            /* a cg_cost_kind */
} cg_way;

/* A batch over two ways at once: so many of its rows go the first one. */
typedef struct cg_split {
    uint32_t other; /* the other way; 0: not worth it */
    float share;
    float seconds; /* predicted */
} cg_split;

/* Ways that a pin holds. */
#define CG_WAYS 4

/* What is decided for a class of shapes. Plain data: copied as it is. */
typedef struct cg_pin {
    cg_route route;
    cg_way ways[CG_WAYS]; /* the chosen one, then from the best down */
    uint32_t way_count;   /* 0: nothing is measured */
    cg_split split;
    /* With no way: a part that the first device gets wrong. */
    const cg_segment *wrong;
    uint32_t since; /* when the best way was taken, in seconds since 1970 */
    /* Some device takes only a part of the class's shapes: each shape has a pin
       of its own. */
    bool narrow;
} cg_pin;

/* What a pin was decided from; it may not hold where either differs. */
typedef struct cg_pin_age {
    uint64_t generation; /* cg_route_generation() */
    uint64_t narrowings; /* classes of shapes of the session that were taken
                            apart */
} cg_pin_age;

struct cellgate_session;
struct cg_call;

typedef struct cg_router cg_router;

cellgate_status cg_router_create(struct cellgate_session *session,
                                 cg_router **router, cellgate_error *error);
/* Destroys its placements; whether all of them could be freed, as
   cg_placement_destroy(). */
bool cg_router_destroy(cg_router *router);

/* Retires its placements on the engine. The session's mutex is held. NULL is
   allowed. */
void cg_router_retire(cg_router *router, const cg_engine *engine);

/* The regime and the policy that the configuration asks for; where it is `auto`
   the regime in which requests come, if any part of the model was measured in
   it. */
void cg_route_settings(struct cellgate_session *session, cg_regime *regime,
                       cg_policy *policy);

/* How the requests come that are timed now: as the configuration says, or,
   where it is `auto`, as they do. */
cg_regime cg_route_arrivals(const struct cellgate_session *session);
/* They come in another regime: what was decided may not hold. */
void cg_route_arrivals_changed(struct cellgate_session *session);
/* Changes, upwards, when something was measured, when a device left or came
   back, and when requests of the session come in another regime. Above 0. */
uint64_t cg_route_generation(const struct cellgate_session *session);

/* "measured: 92 us predicted (interpolated, 31 samples), 1.8 times ahead of cpu
   t1"; of a route that is measured. */
void cg_route_text(const cg_route *route, char *text, size_t size);

/* What was thought of so far; under the session's mutex. */
cg_cut **cg_router_cuts(cg_router *router);

/* The pin for a checked request: fills *call->pin, which may be of its shape
   already, and then is as old as call->recall says. Any thread. */
cellgate_status cg_router_pin(cg_router *router,
                              struct cellgate_session *session,
                              struct cg_call *call, cellgate_error *error);
/* The pin of that class of shapes or of that shape, as it was decided last, if
   there is one. Of the call the shapes of its request count, and whether it has
   masks or lengths. Any thread. */
bool cg_router_find(const cg_router *router, const struct cg_call *call,
                    double fill, cg_pin *pin);
/* A device refused the request's shape, which others of its class may not have:
   from now on each shape of the class has a pin of its own. False: it had. */
bool cg_router_narrow(cg_router *router, struct cellgate_session *session,
                      const struct cg_call *call);

/* ---- pin.c --------------------------------------------------------------- */

struct cg_costing;

/* Decides; `before`: the pin until now, or NULL. */
cellgate_status cg_pin_decide(struct cg_costing *costing, cg_cut **cuts,
                              bool masked, const cg_pin *before, cg_pin *pin,
                              cellgate_error *error);

/* Looks whether what goes without costs to a partition would run what was found
   wrong; fills pin->wrong. */
cellgate_status cg_pin_check(const struct cg_costing *costing,
                             const cg_partition *partition, cg_pin *pin,
                             cellgate_error *error);

/* The way that a request takes now, by what the resources have to do already;
   `behind`: requests that wait in line. Of a pin with ways. */
size_t cg_pin_turn(const cg_pin *pin, size_t behind);
/* Whether nothing has to be waited for there. */
bool cg_way_is_free(const cg_way *way);

/* ---- segment_cost.c ------------------------------------------------------ */

/* What was found out about a segment for a request: by its index. */
typedef struct cg_cost_memo {
    struct cg_memo_entry *entries;
    size_t capacity;
    bool refused; /* some device does not take a segment at this shape */
} cg_cost_memo;

/* What the choice by cost needs to know of a request. */
typedef struct cg_costing {
    struct cellgate_session *session;
    const cg_shape *shapes; /* by value */
    double fill;
    cg_regime regime;
    cg_policy policy;
    bool asks; /* nothing is to be run: cg_once_decide() */
    /* Where others may do as well: only this device, and only variants of so
       many threads. NULL, 0: any. */
    const cg_engine *only;
    uint32_t threads_most;
    cg_cost_memo *memo; /* NULL: none */
    /* What came of it. */
    cg_route route;
    double longest; /* seconds of the segment that route.rival is of */
} cg_costing;

/*
 * What is known of a segment for a request. Where it is excluded, the reason
 * may lie in *refusal, which has to outlive the option.
 */
cellgate_status cg_segment_option(const cg_costing *costing,
                                  const cg_segment *segment, cg_option *option,
                                  cellgate_error *refusal,
                                  cellgate_error *error);
/* The same, asked once for a request: of an excluded one without its reason. */
cellgate_status cg_segment_option_once(const cg_costing *costing,
                                       const cg_segment *segment,
                                       cg_option *option,
                                       cellgate_error *error);
void cg_cost_memo_finish(cg_cost_memo *memo);

/* A segment's candidate, for the book. */
cellgate_status cg_segment_candidate(const cg_segment *segment,
                                     cg_cost_candidate *candidate,
                                     cellgate_error *error);
/* The shape that a segment's cost is of. */
void cg_segment_cost_shape(const cg_segment *segment, const cg_shape *shapes,
                           double fill, cg_cost_shape *shape);

/* ---- choose.c ------------------------------------------------------------ */

/* A chooser; its context is a cg_costing. */
cellgate_status cg_choose_by_cost(void *costing, const size_t *nodes,
                                  size_t longest, cg_choice *choice,
                                  cellgate_error *error);

#endif
