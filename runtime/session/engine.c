/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/session/pool.h"

typedef struct cg_engine_holds {
    pthread_mutex_t mutex;
    size_t count;
    bool retired;
    cg_opening *opening; /* NULL: released */
    cg_segment_pool *pool;
} cg_engine_holds;

cellgate_status cg_engine_create(cg_device *device, cg_opening *opening,
                                 cg_load *load, cg_segment_pool *pool,
                                 cg_engine **engine, cellgate_error *error)
{
    const cellgate_device_description *about =
        cg_device_description_get(device);
    cg_engine *made = calloc(1, sizeof *made);

    if (made != NULL)
        made->holds = calloc(1, sizeof *made->holds);
    if (made == NULL || made->holds == NULL) {
        free(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a session's devices");
    }
    pthread_mutex_init(&made->holds->mutex, NULL);
    made->holds->opening = opening;
    made->holds->pool = pool;
    made->device = device;
    made->ops = opening->ops;
    made->handle = opening->handle;
    made->epoch = opening->epoch;
    made->opened_in = opening->seconds;
    made->flags = about->flags;
    made->staged = (about->flags & CELLGATE_DEVICE_ON_CALLER) == 0;
    made->queue_depth = about->queue_depth > 0 ? about->queue_depth : 1;
    made->load = load;
    *engine = made;
    return CELLGATE_OK;
}

void cg_engine_destroy(cg_engine *engine)
{
    if (engine == NULL)
        return;
    cg_opening_release(engine->holds->opening);
    pthread_mutex_destroy(&engine->holds->mutex);
    free(engine->holds);
    free(engine);
}

cellgate_status cg_engine_hold(const cg_engine *engine, cellgate_error *error)
{
    cg_engine_holds *holds = engine->holds;
    bool retired;

    pthread_mutex_lock(&holds->mutex);
    retired = holds->retired;
    holds->count += !retired;
    pthread_mutex_unlock(&holds->mutex);
    if (!retired)
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_DEVICE_LOST,
                         "device '%s' has been opened anew meanwhile: what was "
                         "made for it before is gone",
                         cg_device_name(engine->device));
}

/* Whoever finds it retired and unheld, once. */
static void free_rest(const cg_engine *engine, cg_opening *opening)
{
    if (opening == NULL)
        return;
    cg_segment_pool_drop(engine->holds->pool, engine);
    cg_opening_release(opening);
}

/* With the mutex held: the opening to be freed, or NULL. */
static cg_opening *take_rest(cg_engine_holds *holds)
{
    cg_opening *opening = holds->opening;

    if (!holds->retired || holds->count > 0 || opening == NULL ||
        atomic_load(&opening->hung))
        return NULL;
    holds->opening = NULL;
    return opening;
}

void cg_engine_let_go(const cg_engine *engine)
{
    cg_engine_holds *holds = engine->holds;
    cg_opening *rest;

    pthread_mutex_lock(&holds->mutex);
    holds->count--;
    rest = take_rest(holds);
    pthread_mutex_unlock(&holds->mutex);
    free_rest(engine, rest);
}

void cg_engine_retire(cg_engine *engine)
{
    cg_engine_holds *holds = engine->holds;
    cg_opening *rest;

    pthread_mutex_lock(&holds->mutex);
    holds->retired = true;
    rest = take_rest(holds);
    pthread_mutex_unlock(&holds->mutex);
    free_rest(engine, rest);
}

bool cg_engine_hung(const cg_engine *engine)
{
    cg_engine_holds *holds = engine->holds;
    bool hung;

    pthread_mutex_lock(&holds->mutex);
    hung = holds->opening != NULL && atomic_load(&holds->opening->hung);
    pthread_mutex_unlock(&holds->mutex);
    return hung;
}

cellgate_status cg_engine_usable(const cg_engine *engine, cellgate_error *error)
{
    if (engine->epoch > cg_device_epoch(engine->device))
        return cg_process_check(error);
    return cg_device_usable(engine->device, error);
}

void cg_engine_failed(const cg_engine *engine, cellgate_status status,
                      const char *reason)
{
    if (status == CELLGATE_TIMEOUT)
        cg_device_quarantine(engine->device, engine->epoch, status, reason);
    else
        cg_device_run_failed(engine->device, engine->epoch, status, reason);
}
