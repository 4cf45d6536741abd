/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context: all that one request at a time needs besides what it shares. Its
 * memory, its plans and, for a device that does not compute on its caller, its
 * worker thread. Kept and reused, so that a request whose shapes were seen
 * before allocates nothing.
 */
#ifndef CELLGATE_RUNTIME_SESSION_CONTEXT_H
#define CELLGATE_RUNTIME_SESSION_CONTEXT_H

#include "runtime/session/arena.h"
#include "runtime/session/binding.h"
#include "runtime/session/worker.h"

/* Plans kept for one segment; the least recently used one goes. */
#define CG_PLANS_KEPT 16

typedef struct cg_plan_entry {
    cellgate_plan *plan;
    int64_t batch, steps; /* its capacity */
    uint64_t used;        /* the context's clock at its last use */
} cg_plan_entry;

typedef struct cg_plan_set {
    const cg_segment *segment;
    cg_plan_entry entries[CG_PLANS_KEPT];
    size_t count;
    /* The one that was found last, for a run of this shape; CG_PLANS_KEPT:
       none, or there may be a better one since. */
    size_t found;
    int64_t batch, steps;
} cg_plan_set;

/* A run in flight. It lives here and not on a stack, because a run that hangs
   goes on using it after the request has failed. */
typedef struct cg_flight {
    const cellgate_plugin *ops;
    cellgate_plan *plan;
    cellgate_segment_run run;
    cellgate_breakdown breakdown;
    bool has_breakdown;
    cellgate_status status;
    cellgate_error error;
    double seconds;
} cg_flight;

/* Memory for one state of the graph: canonical layout. */
typedef struct cg_state_memory {
    float *initial; /* where the directions must be put together first */
    float *final;   /* NULL where nothing takes it */
} cg_state_memory;

typedef struct cg_context {
    struct cg_context *next; /* in the list of idle ones */
    const cg_graph *graph;
    cg_arena arena;
    cg_binding binding; /* what is below up to `scratch_at` is laid out for */
    void **buffers;     /* by value number, as cg_host_run() takes them */
    cg_shape *shapes;   /* likewise */
    bool *absent;       /* likewise: masks that the request lacks */
    cg_state_memory *memory; /* [graph->state_count] */
    size_t scratch_at; /* place in the arena of memory for one part at a time */
    cellgate_lstm_state *states; /* [node_count]: for one segment at a time */
    cg_plan_set *plans;          /* by the segment's index */
    size_t plan_count;
    uint64_t clock;
    cg_worker *worker; /* NULL: runs are made on the caller */
    cg_flight flight;
    /* The flight's run is set for this segment, as the binding has it, and so
       are its states; NULL: nothing is set. */
    const cg_segment *set_for;
    bool states_set;
    bool states_given; /* some of them are not zero at first */
} cg_context;

/* `staged`: some device runs on a worker, over memory of the context, which is
   of `pinned`'s kind where that offers one (NULL: ordinary memory). */
cellgate_status cg_context_create(const cg_graph *graph, bool staged,
                                  const cg_engine *pinned, cg_context **context,
                                  cellgate_error *error);
/* Not for one whose worker has been abandoned. */
void cg_context_destroy(cg_context *context);

/* Destroys all its plans. */
void cg_context_drop_plans(cg_context *context);

struct cg_placement;

/* The smallest plan of the context that takes a run of this shape; NULL if it
   has none. */
cellgate_plan *cg_context_kept_plan(cg_context *context,
                                    const cg_segment *segment, int64_t batch,
                                    int64_t steps);
/*
 * A new one, with room up to the next powers of two. When the device is out of
 * memory, idle plans of the placement go and the exact shape is tried.
 */
cellgate_status cg_context_new_plan(cg_context *context,
                                    struct cg_placement *placement,
                                    const cg_segment *segment, int64_t batch,
                                    int64_t steps, cellgate_plan **plan,
                                    cellgate_error *error);

#endif
