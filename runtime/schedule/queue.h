/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded queue of jobs and the threads that do them, first come, first
 * served. Jobs of one lane (the requests of one stream) never run side by side
 * and keep their order; a lane that is busy does not hold up the others.
 *
 * Jobs live in their owner's memory: putting one allocates nothing. No lock is
 * held while a job runs. Any thread.
 */
#ifndef CELLGATE_RUNTIME_SCHEDULE_QUEUE_H
#define CELLGATE_RUNTIME_SCHEDULE_QUEUE_H

#include <stdbool.h>

#include "cellgate/plugin.h"
#include "runtime/cost/clock.h"

typedef enum cg_job_state {
    CG_JOB_QUEUED,
    CG_JOB_RUNNING,
    CG_JOB_DONE, /* `work` returned */
    CG_JOB_CANCELLED,
    CG_JOB_LATE /* its deadline passed before it began */
} cg_job_state;

typedef struct cg_queue_job {
    void (*work)(struct cg_queue_job *job); /* on a thread of the queue */
    const void *lane;                       /* NULL: of none */
    double deadline; /* on the queue's clock, to begin by; 0: none */
    /* The queue's: */
    struct cg_queue_job *next;
    cg_job_state state;
} cg_queue_job;

typedef struct cg_queue cg_queue;

/* `threads` at least 1, started with the first job; `limit`: jobs that may wait
   at once. */
cellgate_status cg_queue_create(unsigned threads, size_t limit,
                                const cg_clock *clock, cg_queue **queue,
                                cellgate_error *error);
/* Waits for running jobs; those that are queued are cancelled. NULL is
   allowed. */
void cg_queue_destroy(cg_queue *queue);

/* BUSY: `limit` jobs wait already. NO_MEMORY: no thread could be started. The
   job stays in place until cg_queue_wait() says that it has ended. */
cellgate_status cg_queue_put(cg_queue *queue, cg_queue_job *job,
                             cellgate_error *error);
/* Jobs that have not begun. */
size_t cg_queue_waiting(cg_queue *queue);
/* Until the job has ended, or `seconds` have passed (negative: no limit); the
   state then. */
cg_job_state cg_queue_wait(cg_queue *queue, cg_queue_job *job, double seconds);
/* Takes back a job that has not begun; the state then. */
cg_job_state cg_queue_cancel(cg_queue *queue, cg_queue_job *job);

#endif
