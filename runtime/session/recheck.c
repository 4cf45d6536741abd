/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/check_model.h"
#include "runtime/session/recheck.h"
#include "runtime/session/trial.h"
#include "runtime/session/worker.h"

#define ROWS 3
#define STEPS 5

/* All that a check uses: one that hangs goes on using it. */
typedef struct recheck {
    struct recheck *next; /* among those left behind */
    cg_device_table *table;
    cg_device *device;
    double limit;
    cellgate_model *model;
    cg_graph graph;
    cg_segment_pool pool;
    cg_engine *engine;
    cg_trial *trial;
    bool right;
    double worst;
    /* What comes of it. */
    cg_opening *opening;
    cellgate_status status;
    cellgate_error error;
} recheck;

/* For leak checkers. */
static recheck *left_behind;
static pthread_mutex_t left_behind_mutex = PTHREAD_MUTEX_INITIALIZER;

static void leave_behind(recheck *check)
{
    pthread_mutex_lock(&left_behind_mutex);
    check->next = left_behind;
    left_behind = check;
    pthread_mutex_unlock(&left_behind_mutex);
}

/* ---- On a worker -------------------------------------------------------- */

static cellgate_status make_engine(recheck *check)
{
    cellgate_status status =
        cg_device_reopen(check->device, &check->opening, &check->error);

    if (status != CELLGATE_OK)
        return status;
    status =
        cg_engine_create(check->device, cg_opening_reference(check->opening),
                         NULL, &check->pool, &check->engine, &check->error);
    if (status != CELLGATE_OK)
        cg_opening_release(check->opening);
    return status;
}

static cellgate_status make_trial(recheck *check)
{
    const size_t node = 0;
    cg_segment *segment;
    cellgate_status status =
        cg_segment_pool_get(&check->pool, check->engine, &node, 1, NULL, NULL,
                            &segment, &check->error);

    if (status != CELLGATE_OK)
        return status;
    return cg_trial_create(&check->pool, segment, ROWS, STEPS, true,
                           check->limit, &check->trial, &check->error);
}

static void work(void *argument)
{
    recheck *check = argument;
    cellgate_status status = make_engine(check);

    if (status == CELLGATE_OK)
        status = make_trial(check);
    if (status == CELLGATE_OK)
        status = cg_trial_check(check->trial, &check->right, &check->worst,
                                &check->error);
    check->status = status;
}

/* ---- Around it ---------------------------------------------------------- */

static recheck *recheck_new(cg_device_table *table, cg_device *device,
                            double limit, cellgate_error *error)
{
    recheck *made = calloc(1, sizeof *made);
    cellgate_status status = CELLGATE_NO_MEMORY;

    if (made == NULL) {
        (void)cellgate_fail(error, status, "no memory to check a device");
        return NULL;
    }
    made->error.struct_size = sizeof made->error;
    made->limit = limit;
    made->device = device;
    status = cg_check_model_create(&made->model, error);
    if (status == CELLGATE_OK)
        status = cg_graph_init(&made->graph, made->model, error);
    if (status != CELLGATE_OK) {
        cellgate_model_destroy(made->model);
        free(made);
        return NULL;
    }
    made->table = cg_device_table_reference(table);
    cg_segment_pool_init(&made->pool, &made->graph);
    return made;
}

/* All but the opening, which the device may take over. */
static void recheck_free(recheck *check)
{
    cg_trial_destroy(check->trial);
    cg_segment_pool_finish(&check->pool);
    cg_engine_destroy(check->engine);
    cg_graph_finish(&check->graph);
    cellgate_model_destroy(check->model);
    cg_device_table_release(check->table);
    free(check);
}

static void judge(recheck *check)
{
    cg_device *device = check->device;
    char text[120];

    check->error.text[sizeof check->error.text - 1] = '\0';
    if (check->status == CELLGATE_OK && check->right) {
        cg_device_readmit(device, cg_opening_reference(check->opening));
        return;
    }
    (void)snprintf(text, sizeof text, "its results are wrong by %.2g",
                   check->worst);
    cg_device_stay_out(
        device,
        check->status != CELLGATE_OK ? check->status : CELLGATE_DEVICE_FAILED,
        check->status != CELLGATE_OK ? check->error.text : text, false);
}

/* On a thread that can be left behind. */
static bool run(recheck *check, cg_worker *worker)
{
    if (!cg_worker_run(worker, work, check, 2 * check->limit))
        return false;
    cg_worker_destroy(worker);
    return check->status != CELLGATE_TIMEOUT;
}

cellgate_status cg_recheck(cg_device_table *table, cg_device *device,
                           double limit, cellgate_error *error)
{
    recheck *check = recheck_new(table, device, limit, error);
    cg_worker *worker = NULL;
    cellgate_status status;

    if (check == NULL)
        return CELLGATE_NO_MEMORY;
    status = cg_worker_create(&worker, error);
    if (status != CELLGATE_OK) {
        recheck_free(check);
        return status;
    }
    if (!run(check, worker)) {
        cg_device_stay_out(device, CELLGATE_TIMEOUT,
                           "its check did not come back", true);
        leave_behind(check);
        return CELLGATE_OK;
    }
    judge(check);
    if (check->opening != NULL)
        cg_opening_release(check->opening);
    recheck_free(check);
    return CELLGATE_OK;
}
