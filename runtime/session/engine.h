/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine: one opening of a device, as a session uses it. When the device has
 * been opened anew, the session retires its engine and makes another one.
 *
 * Whoever calls the plugin with the handle, or with what was made from it (a
 * plan, weights, pinned memory), holds the engine meanwhile. A retired engine
 * is not held any more: what is left of it on the device is freed when the last
 * holder lets go. The engine itself, and the segments that name it, stay until
 * the session ends.
 */
#ifndef CELLGATE_RUNTIME_SESSION_ENGINE_H
#define CELLGATE_RUNTIME_SESSION_ENGINE_H

#include "runtime/plugin/devices.h"
#include "runtime/schedule/load.h"

struct cg_segment_pool;

typedef struct cg_engine {
    cg_device *device;
    const cellgate_plugin *ops;
    cellgate_device *handle;
    uint64_t epoch;       /* which opening of the device */
    double opened_in;     /* seconds; 0: not measured */
    uint32_t flags;       /* of its description */
    uint32_t queue_depth; /* plans worth running at once; at least 1 */
    bool staged;          /* runs go through worker threads and own memory */
    cg_load *load;        /* of its resource; the runtime's, or NULL */
    struct cg_engine_holds *holds;
    struct cg_engine *next; /* of the session's */
} cg_engine;

/* Takes over the opening, unless it fails. `pool`: of its segments; it must
   outlive the engine's use. NO_MEMORY. */
cellgate_status cg_engine_create(cg_device *device, cg_opening *opening,
                                 cg_load *load, struct cg_segment_pool *pool,
                                 cg_engine **engine, cellgate_error *error);
/* When nothing holds it, and its pool is finished. NULL is allowed. */
void cg_engine_destroy(cg_engine *engine);

/* DEVICE_LOST: it is retired. Any thread. */
cellgate_status cg_engine_hold(const cg_engine *engine, cellgate_error *error);
void cg_engine_let_go(const cg_engine *engine);

/*
 * Nothing new is begun with it. Its weights are freed and its opening is
 * released when nobody holds it, now or later; but not if a run of it hung:
 * then they stay until the session ends, since freeing anything of such a
 * device may hang as well.
 */
void cg_engine_retire(cg_engine *engine);
/* Whether a run of it hung. */
bool cg_engine_hung(const cg_engine *engine);

/* OK, or why it must not be used: what its device says, unless it is an opening
   that is being checked before it is the device's. */
cellgate_status cg_engine_usable(const cg_engine *engine,
                                 cellgate_error *error);
/* What its device is to be told of a run that failed, or hung. */
void cg_engine_failed(const cg_engine *engine, cellgate_status status,
                      const char *reason);

#endif
