/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placement: the model cut into segments and each given to a device and a
 * variant (or to the host ops), ready to run. Shared by threads: what they
 * share is immutable or behind a mutex that is never held while a device
 * computes.
 */
#ifndef CELLGATE_RUNTIME_SESSION_PLACEMENT_H
#define CELLGATE_RUNTIME_SESSION_PLACEMENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/session/context.h"
#include "runtime/session/partition.h"

typedef struct cg_placement {
    const cg_graph *graph;
    cg_segment_pool *pool;
    char *reason;    /* why this one, for reports */
    double watchdog; /* seconds, 0 for none; for staged runs */

    /*
     * A placement on one device (`engine`), or on the host ops alone (NULL),
     * makes its partitions as they are needed: [0] for requests without masks,
     * [1] for those with. One that was made for a partition has that one only.
     */
    const cg_engine *engine;
    cg_greedy greedy;
    bool fixed;
    pthread_mutex_t preparing;
    cg_partition partitions[2];
    atomic_bool ready[2];

    /* The devices of its segments. */
    const cg_engine **engines;
    size_t engine_count;
    bool staged; /* some of them runs through worker threads and own memory */
    const cg_engine *pinned; /* of these the first, or NULL */

    struct cg_placement *next; /* of the session's retired ones */
    pthread_mutex_t mutex;     /* of all below */
    bool retired;
    pthread_cond_t released;
    cg_context *idle;
    size_t context_count;  /* idle and in use */
    size_t context_limit;  /* 0: none */
    cg_context *abandoned; /* those in which a run hangs: never freed */
} cg_placement;

/*
 * The model on one device, cut for requests without masks, with its weights
 * prepared. `engine` NULL: the host ops. `variant`: by name, or NULL; it must
 * outlive the placement. `reason`: why this device; copied. The pool and the
 * engine must outlive it.
 */
cellgate_status cg_placement_create(cg_segment_pool *pool,
                                    const cg_engine *engine,
                                    const char *variant, const char *reason,
                                    double watchdog, cg_placement **placement,
                                    cellgate_error *error);
/* The same for a partition that was made for requests with masks or for those
   without, which the placement owns from then on. */
cellgate_status
cg_placement_create_cut(cg_segment_pool *pool, const cg_partition *partition,
                        bool masked, const char *reason, double watchdog,
                        cg_placement **placement, cellgate_error *error);
/* Returns whether all of it could be freed; false: a run that hangs still uses
   the device, the graph and the model, which must stay for good. */
bool cg_placement_destroy(cg_placement *placement);

/* "host", or the name of its device; of several, the first one's. */
const char *cg_placement_name(const cg_placement *placement);
/* Whether nothing of it runs on a device. */
static inline bool cg_placement_on_host(const cg_placement *placement)
{
    return placement->engine_count == 0;
}

/* Whether it runs something with a variant of that name. */
bool cg_placement_has_variant(const cg_placement *placement, const char *name);

/* OK, or why one of its devices must not be used. Cheap. */
cellgate_status cg_placement_usable(const cg_placement *placement,
                                    cellgate_error *error);

/* The partition for requests with or without masks; made on first need. */
cellgate_status cg_placement_partition(cg_placement *placement, bool masked,
                                       const cg_partition **partition,
                                       cellgate_error *error);

/*
 * A context for one request: an idle one, or a new one, or, where a device
 * limits how many are worth it, the next to be released. It holds the
 * placement's engines. DEVICE_LOST: the placement is retired.
 */
cellgate_status cg_placement_acquire(cg_placement *placement,
                                     cg_context **context,
                                     cellgate_error *error);
void cg_placement_release(cg_placement *placement, cg_context *context);
/* Instead of releasing one whose worker was abandoned: leaves it behind. */
void cg_placement_abandon(cg_placement *placement, cg_context *context);

/* Whether one of its devices was opened anew, and is in service. Cheap. */
bool cg_placement_outdated(const cg_placement *placement);
/* Whether one of its segments is the engine's. */
bool cg_placement_has(const cg_placement *placement, const cg_engine *engine);
/* One of its engines is retired: no request begins in it any more, and its
   contexts go, now or when they are released; but not if a run hung. */
void cg_placement_retire(cg_placement *placement);

/* Destroys the plans of all idle contexts. */
void cg_placement_drop_plans(cg_placement *placement);

#endif
