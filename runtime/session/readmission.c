/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "runtime/cost/clock.h"
#include "runtime/schedule/thread.h"
#include "runtime/session/readmission.h"
#include "runtime/session/recheck.h"

struct cg_readmission {
    atomic_size_t references;
    cg_device_table *table;
    double limit;           /* seconds, of a check */
    pthread_mutex_t mutex;  /* of all below */
    pthread_cond_t changed; /* a device went out, or this ends */
    pthread_t thread;
    bool started, ending;
};

/* Until the next device is to be tried, which is *next; infinite: none is. */
static double next_wait(const cg_readmission *readmission, cg_device **next)
{
    double least = HUGE_VAL;

    for (size_t at = 0; at < cg_device_table_count(readmission->table); at++) {
        cg_device *device = cg_device_table_at(readmission->table, at);
        const double wait = cg_device_retry_in(device);

        if (wait < least) {
            least = wait;
            *next = device;
        }
    }
    return least;
}

/* With the mutex held. */
static void sleep_for(cg_readmission *readmission, double seconds)
{
    struct timespec end;

    if (isinf(seconds)) {
        pthread_cond_wait(&readmission->changed, &readmission->mutex);
        return;
    }
    end = cg_deadline_after(seconds);
    (void)pthread_cond_timedwait(&readmission->changed, &readmission->mutex,
                                 &end);
}

/* Nothing that fails here fails a request: the log has it. */
static void try(const cg_readmission *readmission, cg_device *device)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cg_recheck(readmission->table, device, readmission->limit, &error) !=
        CELLGATE_OK)
        cg_device_stay_out(device, CELLGATE_DEVICE_FAILED, error.text, false);
}

static void *serve(void *context)
{
    cg_readmission *readmission = context;

    pthread_mutex_lock(&readmission->mutex);
    while (!readmission->ending) {
        cg_device *device = NULL;
        const double wait = next_wait(readmission, &device);

        if (wait > 0) {
            sleep_for(readmission, wait);
            continue;
        }
        pthread_mutex_unlock(&readmission->mutex);
        try(readmission, device);
        pthread_mutex_lock(&readmission->mutex);
    }
    pthread_mutex_unlock(&readmission->mutex);
    return NULL;
}

/* A device was taken out of service. */
static void wake(void *context)
{
    cg_readmission *readmission = context;

    pthread_mutex_lock(&readmission->mutex);
    if (!readmission->started && !readmission->ending)
        readmission->started =
            cg_thread_start(&readmission->thread, serve, readmission) == 0;
    if (!readmission->started)
        cg_log_line(cg_device_table_log(readmission->table),
                    CELLGATE_LOG_WARNING,
                    "no thread to bring devices back into service");
    pthread_cond_broadcast(&readmission->changed);
    pthread_mutex_unlock(&readmission->mutex);
}

cellgate_status cg_readmission_create(cg_device_table *table,
                                      cg_readmission **readmission,
                                      cellgate_error *error)
{
    const double watchdog = cg_device_table_config(table)->watchdog;
    cg_readmission *made = calloc(1, sizeof *made);

    if (made == NULL || cg_condition_init(&made->changed) != 0) {
        free(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to bring devices back into service");
    }
    pthread_mutex_init(&made->mutex, NULL);
    atomic_init(&made->references, 1);
    made->table = cg_device_table_reference(table);
    made->limit =
        watchdog > 0 ? fmin(watchdog, CG_RECHECK_LIMIT) : CG_RECHECK_LIMIT;
    cg_device_table_watch(table, wake, made);
    *readmission = made;
    return CELLGATE_OK;
}

cg_readmission *cg_readmission_reference(cg_readmission *readmission)
{
    (void)atomic_fetch_add_explicit(&readmission->references, 1,
                                    memory_order_relaxed);
    return readmission;
}

void cg_readmission_release(cg_readmission *readmission)
{
    if (readmission == NULL || cg_process_forked() ||
        atomic_fetch_sub_explicit(&readmission->references, 1,
                                  memory_order_acq_rel) != 1)
        return;
    cg_device_table_watch(readmission->table, NULL, NULL);
    pthread_mutex_lock(&readmission->mutex);
    readmission->ending = true;
    pthread_cond_broadcast(&readmission->changed);
    pthread_mutex_unlock(&readmission->mutex);
    if (readmission->started)
        pthread_join(readmission->thread, NULL);
    pthread_cond_destroy(&readmission->changed);
    pthread_mutex_destroy(&readmission->mutex);
    cg_device_table_release(readmission->table);
    free(readmission);
}
