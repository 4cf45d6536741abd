/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the core's that calls a device which does not compute on its
 * caller, under a watchdog. One job at a time.
 */
#ifndef CELLGATE_RUNTIME_SESSION_WORKER_H
#define CELLGATE_RUNTIME_SESSION_WORKER_H

#include <stdbool.h>

#include "cellgate/types.h"

typedef struct cg_worker cg_worker;
typedef void (*cg_job)(void *argument);

cellgate_status cg_worker_create(cg_worker **worker, cellgate_error *error);
/* Ends the thread. Not for a worker that has been abandoned. NULL is allowed.
 */
void cg_worker_destroy(cg_worker *worker);

/*
 * Runs job(argument) on the worker and waits for it; `limit` in seconds, 0 for
 * none. False: the limit passed. The worker is then abandoned: it, `argument`
 * and all that the job uses must be left alone for good, since the job may
 * still be running. It ends by itself if the job ever returns.
 */
bool cg_worker_run(cg_worker *worker, cg_job job, void *argument, double limit);

#endif
