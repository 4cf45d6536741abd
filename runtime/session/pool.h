/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments of a session, each made once and shared by its placements, and
 * their prepared weights, shared by the segments of a device that have the same
 * nodes and the same pack. What is in the pool stays until the session ends,
 * and for good where a run hangs that uses it.
 */
#ifndef CELLGATE_RUNTIME_SESSION_POOL_H
#define CELLGATE_RUNTIME_SESSION_POOL_H

#include <pthread.h>

#include "runtime/session/segment.h"

/* Head of something that a hung run keeps from being freed. */
typedef struct cg_remnant {
    struct cg_remnant *next;
} cg_remnant;

typedef struct cg_segment_pool {
    const cg_graph *graph;
    pthread_mutex_t mutex; /* of all below, and of preparing */
    cg_segment **segments;
    size_t count, capacity;
    cg_remnant
        *remnants; /* for leak checkers, and to know that there are any */
} cg_segment_pool;

void cg_segment_pool_init(cg_segment_pool *pool, const cg_graph *graph);
/* Frees the segments: nothing may use them any more, so there must not be
   remnants. */
void cg_segment_pool_finish(cg_segment_pool *pool);

/* Leaves something behind, and with it the pool and all that its segments use:
   the devices, the graph and the model must stay for good. Any thread. */
void cg_segment_pool_leave(cg_segment_pool *pool, cg_remnant *remnant);
bool cg_segment_pool_has_remnants(cg_segment_pool *pool);

/* The segment of these nodes, device and variant, made on first need; as
   cg_segment_create(). Any thread. */
cellgate_status cg_segment_pool_get(cg_segment_pool *pool,
                                    const cg_engine *engine,
                                    const size_t *nodes, size_t count,
                                    const cellgate_variant *wanted,
                                    const char *name, cg_segment **segment,
                                    cellgate_error *error);
/* One that was made, or NULL after the last. Any thread. */
const cg_segment *cg_segment_pool_at(cg_segment_pool *pool, size_t index);
/* Lays out the weights, once; the slow part. Any thread; others wait.
   DEVICE_LOST: the engine is retired. */
cellgate_status cg_segment_pool_prepare(cg_segment_pool *pool,
                                        cg_segment *segment,
                                        cellgate_error *error);

/* Whether its weights are laid out, or are those of another segment that are;
 *seconds: what that took, 0 where it was not. */
bool cg_segment_pool_prepared(cg_segment_pool *pool, const cg_segment *segment,
                              double *seconds);

/* Frees the weights of an engine that is retired, and held by nobody. */
void cg_segment_pool_drop(cg_segment_pool *pool, const cg_engine *engine);

#endif
