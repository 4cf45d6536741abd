/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/placement.h"

const char *cg_placement_name(const cg_placement *placement)
{
    return cg_placement_on_host(placement)
               ? "host"
               : cg_device_name(placement->engines[0]->device);
}

bool cg_placement_has_variant(const cg_placement *placement, const char *name)
{
    const cg_partition *partition = &placement->partitions[0];

    for (size_t at = 0; at < partition->count; at++)
        if (partition->parts[at].segment != NULL &&
            strcmp(partition->parts[at].segment->variant.name, name) == 0)
            return true;
    return false;
}

cellgate_status cg_placement_usable(const cg_placement *placement,
                                    cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < placement->engine_count;
         at++)
        status = cg_device_usable(placement->engines[at]->device, error);
    return status;
}

bool cg_placement_outdated(const cg_placement *placement)
{
    for (size_t at = 0; at < placement->engine_count; at++) {
        const cg_engine *engine = placement->engines[at];

        if (engine->epoch != cg_device_epoch(engine->device) &&
            cg_device_usable(engine->device, NULL) == CELLGATE_OK)
            return true;
    }
    return false;
}

/* ---- Partitions -------------------------------------------------------- */

/* Lays out a segment's weights; UNSUPPORTED: in vain, as its variant turned out
   not to run. */
static cellgate_status prepare_segment(cg_placement *placement,
                                       cg_segment *segment,
                                       cellgate_error *error)
{
    const cellgate_status status =
        cg_segment_pool_prepare(placement->pool, segment, error);

    return status == CELLGATE_OK ? cg_segment_fits(segment, NULL, error)
                                 : status;
}

static cellgate_status prepare_segments(cg_placement *placement,
                                        const cg_partition *partition,
                                        cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < partition->count; at++)
        if (partition->parts[at].segment != NULL)
            status =
                prepare_segment(placement, partition->parts[at].segment, error);
    return status;
}

/* Variants that may turn out not to run before the device is given up. */
#define REFUSALS_MOST 32

static cellgate_status make_partition(cg_placement *placement,
                                      const cg_chooser *chooser, bool masked,
                                      cellgate_error *error)
{
    cg_partition *partition = &placement->partitions[masked];
    cellgate_status status = CELLGATE_UNSUPPORTED;

    /* What is refused is not chosen again. */
    for (int left = REFUSALS_MOST; status == CELLGATE_UNSUPPORTED && left > 0;
         left--) {
        status = cg_partition_init(partition, placement->graph, chooser,
                                   placement->reason, masked, error);
        if (status != CELLGATE_OK)
            return status;
        status = prepare_segments(placement, partition, error);
        if (status != CELLGATE_OK)
            cg_partition_finish(partition);
    }
    if (status != CELLGATE_OK)
        return status;
    atomic_store_explicit(&placement->ready[masked], true,
                          memory_order_release);
    return CELLGATE_OK;
}

static cellgate_status make_greedily(cg_placement *placement, bool masked,
                                     cellgate_error *error)
{
    const cg_chooser chooser = { cg_choose_greedily, &placement->greedy };
    cellgate_status status = cg_placement_usable(placement, error);

    if (status != CELLGATE_OK)
        return status;
    if (placement->fixed)
        return cellgate_fail(error, CELLGATE_INTERNAL,
                             "this placement is for requests %s masks",
                             masked ? "without" : "with");
    return make_partition(
        placement, placement->engine != NULL ? &chooser : NULL, masked, error);
}

cellgate_status cg_placement_partition(cg_placement *placement, bool masked,
                                       const cg_partition **partition,
                                       cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (!atomic_load_explicit(&placement->ready[masked],
                              memory_order_acquire)) {
        pthread_mutex_lock(&placement->preparing);
        if (!atomic_load_explicit(&placement->ready[masked],
                                  memory_order_relaxed))
            status = make_greedily(placement, masked, error);
        pthread_mutex_unlock(&placement->preparing);
    }
    if (status == CELLGATE_OK)
        *partition = &placement->partitions[masked];
    return status;
}

/* ---- Contexts ---------------------------------------------------------- */

/* Holds the engines until context_free(). */
static cellgate_status context_new(cg_placement *placement,
                                   cg_context **context, cellgate_error *error)
{
    cellgate_status status = cg_placement_usable(placement, error);
    size_t held = 0;

    while (status == CELLGATE_OK && held < placement->engine_count) {
        status = cg_engine_hold(placement->engines[held], error);
        held += status == CELLGATE_OK;
    }
    if (status == CELLGATE_OK)
        status = cg_context_create(placement->graph, placement->staged,
                                   placement->pinned, context, error);
    while (status != CELLGATE_OK && held > 0)
        cg_engine_let_go(placement->engines[--held]);
    return status;
}

static void context_free(const cg_placement *placement, cg_context *context)
{
    cg_context_destroy(context);
    for (size_t at = 0; at < placement->engine_count; at++)
        cg_engine_let_go(placement->engines[at]);
}

/* With the mutex held: waits until there is an idle context, or room for one
   more, or no use in either. */
static void wait_for_room(cg_placement *placement)
{
    while (!placement->retired && placement->idle == NULL &&
           placement->context_limit > 0 &&
           placement->context_count >= placement->context_limit)
        pthread_cond_wait(&placement->released, &placement->mutex);
}

/* With the mutex held. */
static cg_context *take_idle(cg_placement *placement)
{
    cg_context *taken = placement->retired ? NULL : placement->idle;

    if (taken != NULL)
        placement->idle = taken->next;
    return taken;
}

/* None was idle. */
static cellgate_status acquire_later(cg_placement *placement,
                                     cg_context **context,
                                     cellgate_error *error)
{
    cellgate_status status = cg_placement_usable(placement, error);
    cg_context *taken;
    bool retired;

    if (status != CELLGATE_OK)
        return status;
    pthread_mutex_lock(&placement->mutex);
    wait_for_room(placement);
    retired = placement->retired;
    taken = take_idle(placement);
    placement->context_count += !retired && taken == NULL;
    pthread_mutex_unlock(&placement->mutex);
    if (retired)
        return cellgate_fail(error, CELLGATE_DEVICE_LOST,
                             "device '%s' has been opened anew meanwhile",
                             cg_placement_name(placement));
    if (taken != NULL) {
        *context = taken;
        return CELLGATE_OK;
    }
    status = context_new(placement, context, error);
    if (status != CELLGATE_OK) {
        pthread_mutex_lock(&placement->mutex);
        placement->context_count--;
        pthread_cond_signal(&placement->released);
        pthread_mutex_unlock(&placement->mutex);
    }
    return status;
}

cellgate_status cg_placement_acquire(cg_placement *placement,
                                     cg_context **context,
                                     cellgate_error *error)
{
    cg_context *taken;

    pthread_mutex_lock(&placement->mutex);
    taken = take_idle(placement);
    pthread_mutex_unlock(&placement->mutex);
    if (taken == NULL)
        return acquire_later(placement, context, error);
    *context = taken;
    return CELLGATE_OK;
}

static bool any_hung(const cg_placement *placement)
{
    for (size_t at = 0; at < placement->engine_count; at++)
        if (cg_engine_hung(placement->engines[at]))
            return true;
    return false;
}

void cg_placement_release(cg_placement *placement, cg_context *context)
{
    bool last;

    pthread_mutex_lock(&placement->mutex);
    last = placement->retired && !any_hung(placement);
    if (last) {
        placement->context_count--;
    } else {
        context->next = placement->idle;
        placement->idle = context;
    }
    if (placement->context_limit > 0)
        pthread_cond_signal(&placement->released);
    pthread_mutex_unlock(&placement->mutex);
    if (last)
        context_free(placement, context);
}

void cg_placement_retire(cg_placement *placement)
{
    cg_context *idle = NULL;

    pthread_mutex_lock(&placement->mutex);
    placement->retired = true;
    if (!any_hung(placement)) {
        idle = placement->idle;
        placement->idle = NULL;
    }
    pthread_cond_broadcast(&placement->released);
    pthread_mutex_unlock(&placement->mutex);
    while (idle != NULL) {
        cg_context *next = idle->next;

        context_free(placement, idle);
        idle = next;
    }
}

void cg_placement_abandon(cg_placement *placement, cg_context *context)
{
    pthread_mutex_lock(&placement->mutex);
    context->next = placement->abandoned;
    placement->abandoned = context;
    placement->context_count--;
    pthread_cond_signal(&placement->released);
    pthread_mutex_unlock(&placement->mutex);
}

void cg_placement_drop_plans(cg_placement *placement)
{
    cg_context *taken, *last = NULL;
    bool retired;

    pthread_mutex_lock(&placement->mutex);
    taken = placement->idle;
    placement->idle = NULL;
    pthread_mutex_unlock(&placement->mutex);
    for (cg_context *at = taken; at != NULL; at = at->next) {
        cg_context_drop_plans(at);
        last = at;
    }
    if (last == NULL)
        return;
    pthread_mutex_lock(&placement->mutex);
    last->next = placement->idle;
    placement->idle = taken;
    retired = placement->retired;
    pthread_cond_broadcast(&placement->released);
    pthread_mutex_unlock(&placement->mutex);
    if (retired)
        cg_placement_retire(placement); /* these were not there then */
}

/* ---- Creation ---------------------------------------------------------- */

bool cg_placement_has(const cg_placement *placement, const cg_engine *engine)
{
    for (size_t at = 0; at < placement->engine_count; at++)
        if (placement->engines[at] == engine)
            return true;
    return false;
}

static void add_engine(cg_placement *placement, const cg_engine *engine)
{
    if (cg_placement_has(placement, engine))
        return;
    placement->engines[placement->engine_count++] = engine;
    if (!engine->staged)
        return;
    placement->staged = true;
    if (placement->pinned == NULL)
        placement->pinned = engine;
    if (placement->context_limit == 0 ||
        engine->queue_depth < placement->context_limit)
        placement->context_limit = engine->queue_depth;
}

/* The device that was asked for counts, even if it got no segment. */
static cellgate_status list_engines(cg_placement *placement, bool masked,
                                    cellgate_error *error)
{
    const cg_partition *partition = &placement->partitions[masked];

    placement->engines =
        calloc(partition->count + 1, sizeof(const cg_engine *));
    if (placement->engines == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to place the model on a device");
    if (placement->engine != NULL)
        add_engine(placement, placement->engine);
    for (size_t at = 0; at < partition->count; at++)
        if (partition->parts[at].segment != NULL)
            add_engine(placement, partition->parts[at].segment->engine);
    return CELLGATE_OK;
}

static cg_placement *placement_new(cg_segment_pool *pool, const char *reason,
                                   double watchdog, cellgate_error *error)
{
    cg_placement *made = calloc(1, sizeof *made);

    if (made != NULL)
        made->reason = strdup(reason);
    if (made == NULL || made->reason == NULL) {
        free(made);
        (void)cellgate_fail(error, CELLGATE_NO_MEMORY,
                            "no memory to place the model on a device");
        return NULL;
    }
    made->graph = pool->graph;
    made->pool = pool;
    made->watchdog = watchdog;
    pthread_mutex_init(&made->preparing, NULL);
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->released, NULL);
    return made;
}

cellgate_status cg_placement_create(cg_segment_pool *pool,
                                    const cg_engine *engine,
                                    const char *variant, const char *reason,
                                    double watchdog, cg_placement **placement,
                                    cellgate_error *error)
{
    cg_placement *made = placement_new(pool, reason, watchdog, error);
    const cg_partition *partition;
    cellgate_status status;

    if (made == NULL)
        return CELLGATE_NO_MEMORY;
    made->engine = engine;
    made->greedy = (cg_greedy){ pool, engine, variant };
    status = cg_placement_partition(made, false, &partition, error);
    if (status == CELLGATE_OK)
        status = list_engines(made, false, error);
    if (status != CELLGATE_OK) {
        cg_placement_destroy(made);
        return status;
    }
    *placement = made;
    return CELLGATE_OK;
}

cellgate_status
cg_placement_create_cut(cg_segment_pool *pool, const cg_partition *partition,
                        bool masked, const char *reason, double watchdog,
                        cg_placement **placement, cellgate_error *error)
{
    cg_placement *made = placement_new(pool, reason, watchdog, error);
    cellgate_status status;

    if (made == NULL)
        return CELLGATE_NO_MEMORY;
    made->fixed = true;
    made->partitions[masked] = *partition;
    status = prepare_segments(made, partition, error);
    if (status == CELLGATE_OK)
        status = list_engines(made, masked, error);
    if (status != CELLGATE_OK) { /* the partition is the caller's */
        memset(&made->partitions[masked], 0, sizeof *partition);
        cg_placement_destroy(made);
        return status;
    }
    atomic_store_explicit(&made->ready[masked], true, memory_order_release);
    *placement = made;
    return CELLGATE_OK;
}

bool cg_placement_destroy(cg_placement *placement)
{
    if (placement == NULL)
        return true;
    /* Freeing anything of a device that hangs may hang as well. */
    if (placement->abandoned != NULL)
        return false;
    while (placement->idle != NULL) {
        cg_context *context = placement->idle;

        placement->idle = context->next;
        context_free(placement, context);
    }
    cg_partition_finish(&placement->partitions[0]);
    cg_partition_finish(&placement->partitions[1]);
    pthread_cond_destroy(&placement->released);
    pthread_mutex_destroy(&placement->mutex);
    pthread_mutex_destroy(&placement->preparing);
    free(placement->engines);
    free(placement->reason);
    free(placement);
    return true;
}
