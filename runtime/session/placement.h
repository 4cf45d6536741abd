/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placement: the model on one device (or on the host ops alone), ready to
 * run. Shared by threads: what they share is immutable or behind a mutex that
 * is never held while a device computes.
 */
#ifndef CELLGATE_RUNTIME_SESSION_PLACEMENT_H
#define CELLGATE_RUNTIME_SESSION_PLACEMENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/session/context.h"
#include "runtime/session/partition.h"

typedef struct cg_placement {
    const cg_graph *graph;
    cg_engine engine;
    bool on_host;    /* no device: engine is unused */
    bool staged;     /* runs go through worker threads and own memory */
    char *reason;    /* why this device, for reports */
    double watchdog; /* seconds, 0 for none; for staged runs */

    /* [0] for requests without masks, [1] for those with. */
    pthread_mutex_t preparing;
    cg_segment_list segments;
    cg_partition partitions[2];
    atomic_bool ready[2];

    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t released;
    cg_context *idle;
    size_t context_count;  /* idle and in use */
    size_t context_limit;  /* 0: none */
    cg_context *abandoned; /* those in which a run hangs: never freed */
} cg_placement;

/*
 * Opens the device, cuts the model for requests without masks and prepares its
 * weights. `device` NULL: the host ops. `reason`: why this device; copied.
 * `variant`: by name, or NULL; it must outlive the placement.
 */
cellgate_status cg_placement_create(const cg_graph *graph, cg_device *device,
                                    const char *variant, const char *reason,
                                    double watchdog, cg_placement **placement,
                                    cellgate_error *error);
/* Returns whether all of it could be freed; false: a run that hangs still uses
   the device, the graph and the model, which must stay for good. */
bool cg_placement_destroy(cg_placement *placement);

/* "host", or the device's name. */
const char *cg_placement_name(const cg_placement *placement);

/* The partition for requests with or without masks; made on first need. */
cellgate_status cg_placement_partition(cg_placement *placement, bool masked,
                                       const cg_partition **partition,
                                       cellgate_error *error);

/*
 * A context for one request: an idle one, or a new one, or, where the device
 * limits how many are worth it, the next to be released.
 */
cellgate_status cg_placement_acquire(cg_placement *placement,
                                     cg_context **context,
                                     cellgate_error *error);
void cg_placement_release(cg_placement *placement, cg_context *context);
/* Instead of releasing one whose worker was abandoned: leaves it behind. */
void cg_placement_abandon(cg_placement *placement, cg_context *context);

/* Destroys the plans of all idle contexts. */
void cg_placement_drop_plans(cg_placement *placement);

#endif
