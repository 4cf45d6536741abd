/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/placement.h"

const char *cg_placement_name(const cg_placement *placement)
{
    return placement->on_host ? "host"
                              : cg_device_name(placement->engine.device);
}

/* ---- Partitions -------------------------------------------------------- */

static cellgate_status prepare_segments(cg_placement *placement,
                                        cellgate_error *error)
{
    cg_segment_list *list = &placement->segments;
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < list->count; at++)
        status = cg_segment_prepare(list->segments[at], error);
    return status;
}

static cellgate_status make_partition(cg_placement *placement, bool masked,
                                      cellgate_error *error)
{
    cg_partition *partition = &placement->partitions[masked];
    cellgate_status status = cg_partition_init(
        partition, placement->graph,
        placement->on_host ? NULL : &placement->engine, placement->reason,
        masked, &placement->segments, error);

    if (status != CELLGATE_OK)
        return status;
    status = prepare_segments(placement, error);
    if (status != CELLGATE_OK) {
        cg_partition_finish(partition);
        return status;
    }
    atomic_store_explicit(&placement->ready[masked], true,
                          memory_order_release);
    return CELLGATE_OK;
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
            status = make_partition(placement, masked, error);
        pthread_mutex_unlock(&placement->preparing);
    }
    if (status == CELLGATE_OK)
        *partition = &placement->partitions[masked];
    return status;
}

/* ---- Contexts ---------------------------------------------------------- */

cellgate_status cg_placement_acquire(cg_placement *placement,
                                     cg_context **context,
                                     cellgate_error *error)
{
    cg_context *taken = NULL;
    cellgate_status status;

    pthread_mutex_lock(&placement->mutex);
    while (placement->idle == NULL && placement->context_limit > 0 &&
           placement->context_count >= placement->context_limit)
        pthread_cond_wait(&placement->released, &placement->mutex);
    if (placement->idle != NULL) {
        taken = placement->idle;
        placement->idle = taken->next;
    } else {
        placement->context_count++;
    }
    pthread_mutex_unlock(&placement->mutex);
    if (taken != NULL) {
        *context = taken;
        return CELLGATE_OK;
    }
    status = cg_context_create(placement->graph,
                               placement->on_host ? NULL : &placement->engine,
                               placement->staged, context, error);
    if (status != CELLGATE_OK) {
        pthread_mutex_lock(&placement->mutex);
        placement->context_count--;
        pthread_cond_signal(&placement->released);
        pthread_mutex_unlock(&placement->mutex);
    }
    return status;
}

void cg_placement_release(cg_placement *placement, cg_context *context)
{
    pthread_mutex_lock(&placement->mutex);
    context->next = placement->idle;
    placement->idle = context;
    pthread_cond_signal(&placement->released);
    pthread_mutex_unlock(&placement->mutex);
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
    pthread_cond_broadcast(&placement->released);
    pthread_mutex_unlock(&placement->mutex);
}

/* ---- Creation ---------------------------------------------------------- */

static cellgate_status open_device(cg_placement *placement, cg_device *device,
                                   const char *variant, cellgate_error *error)
{
    const cellgate_device_description *description;
    cg_engine *engine = &placement->engine;
    cellgate_status status = cg_device_usable(device, error);

    if (status == CELLGATE_OK)
        status = cg_device_open(device, &engine->ops, &engine->handle, error);
    if (status != CELLGATE_OK)
        return status;
    description = cg_device_description_get(device);
    engine->device = device;
    engine->flags = description->flags;
    engine->variant = variant;
    placement->staged = (description->flags & CELLGATE_DEVICE_ON_CALLER) == 0;
    if (placement->staged)
        placement->context_limit =
            description->queue_depth > 0 ? description->queue_depth : 1;
    return CELLGATE_OK;
}

static cellgate_status placement_init(cg_placement *placement,
                                      cg_device *device, const char *variant,
                                      cellgate_error *error)
{
    const cg_partition *partition;
    cellgate_status status = CELLGATE_OK;

    placement->on_host = device == NULL;
    if (device != NULL)
        status = open_device(placement, device, variant, error);
    if (status == CELLGATE_OK)
        status = cg_placement_partition(placement, false, &partition, error);
    return status;
}

cellgate_status cg_placement_create(const cg_graph *graph, cg_device *device,
                                    const char *variant, const char *reason,
                                    double watchdog, cg_placement **placement,
                                    cellgate_error *error)
{
    cg_placement *made = calloc(1, sizeof *made);
    cellgate_status status;

    if (made != NULL)
        made->reason = strdup(reason);
    if (made == NULL || made->reason == NULL) {
        free(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to place the model on a device");
    }
    made->graph = graph;
    made->watchdog = watchdog;
    pthread_mutex_init(&made->preparing, NULL);
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->released, NULL);
    status = placement_init(made, device, variant, error);
    if (status != CELLGATE_OK) {
        cg_placement_destroy(made);
        return status;
    }
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
        cg_context_destroy(context);
    }
    cg_partition_finish(&placement->partitions[0]);
    cg_partition_finish(&placement->partitions[1]);
    cg_segment_list_finish(&placement->segments);
    pthread_cond_destroy(&placement->released);
    pthread_mutex_destroy(&placement->mutex);
    pthread_mutex_destroy(&placement->preparing);
    free(placement->reason);
    free(placement);
    return true;
}
