/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cellgate/plugin.h"
#include "runtime/cost/clock.h"
#include "runtime/schedule/thread.h"
#include "runtime/session/worker.h"

enum worker_state {
    WORKER_IDLE,
    WORKER_BUSY,
    WORKER_DONE,
    WORKER_STOP,     /* asked to end */
    WORKER_ABANDONED /* ends by itself after its job */
};

struct cg_worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum worker_state state;
    cg_job job;
    void *argument;
};

static void worker_free(cg_worker *worker)
{
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->mutex);
    free(worker);
}

static void *worker_main(void *context)
{
    cg_worker *worker = context;
    bool abandoned;

    pthread_mutex_lock(&worker->mutex);
    while (worker->state != WORKER_STOP && worker->state != WORKER_ABANDONED) {
        if (worker->state != WORKER_BUSY) {
            pthread_cond_wait(&worker->changed, &worker->mutex);
            continue;
        }
        pthread_mutex_unlock(&worker->mutex);
        worker->job(worker->argument);
        pthread_mutex_lock(&worker->mutex);
        if (worker->state == WORKER_BUSY)
            worker->state = WORKER_DONE;
        pthread_cond_broadcast(&worker->changed);
    }
    abandoned = worker->state == WORKER_ABANDONED;
    pthread_mutex_unlock(&worker->mutex);
    if (abandoned)
        worker_free(worker);
    return NULL;
}

cellgate_status cg_worker_create(cg_worker **worker, cellgate_error *error)
{
    cg_worker *made = calloc(1, sizeof *made);
    int failed;

    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a device's worker thread");
    failed = pthread_mutex_init(&made->mutex, NULL);
    if (!failed)
        failed = cg_condition_init(&made->changed);
    if (!failed)
        failed = cg_thread_start(&made->thread, worker_main, made);
    if (failed) {
        free(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "cannot start a device's worker thread: %s",
                             strerror(failed));
    }
    *worker = made;
    return CELLGATE_OK;
}

void cg_worker_destroy(cg_worker *worker)
{
    if (worker == NULL)
        return;
    pthread_mutex_lock(&worker->mutex);
    worker->state = WORKER_STOP;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(worker->thread, NULL);
    worker_free(worker);
}

static bool wait_done(cg_worker *worker, double limit)
{
    struct timespec deadline = { 0, 0 };
    int late = 0;

    if (limit > 0)
        deadline = cg_deadline_after(limit);
    while (worker->state == WORKER_BUSY && late != ETIMEDOUT)
        late = limit > 0 ? pthread_cond_timedwait(&worker->changed,
                                                  &worker->mutex, &deadline)
                         : pthread_cond_wait(&worker->changed, &worker->mutex);
    if (worker->state == WORKER_BUSY) {
        worker->state = WORKER_ABANDONED;
        pthread_detach(worker->thread);
        return false;
    }
    worker->state = WORKER_IDLE;
    return true;
}

bool cg_worker_run(cg_worker *worker, cg_job job, void *argument, double limit)
{
    bool done;

    pthread_mutex_lock(&worker->mutex);
    worker->job = job;
    worker->argument = argument;
    worker->state = WORKER_BUSY;
    pthread_cond_broadcast(&worker->changed);
    done = wait_done(worker, limit);
    pthread_mutex_unlock(&worker->mutex);
    return done;
}
