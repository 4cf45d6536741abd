/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/schedule/queue.h"
#include "runtime/schedule/thread.h"

/* A thread, and the lane that it works on. */
typedef struct server {
    cg_queue *queue;
    pthread_t thread;
    const void *lane;
} server;

struct cg_queue {
    const cg_clock *clock;
    pthread_mutex_t mutex;  /* of all below */
    pthread_cond_t changed; /* a job came or ended, or the queue ends */
    cg_queue_job *first, **last;
    size_t waiting, limit;
    bool ending;
    unsigned started, wanted;
    server servers[];
};

/* ---- Which job is next -------------------------------------------------- */

static bool lane_is_busy(const cg_queue *queue, const void *lane)
{
    for (unsigned at = 0; lane != NULL && at < queue->started; at++)
        if (queue->servers[at].lane == lane)
            return true;
    return false;
}

/* Removes *link from the queue. */
static cg_queue_job *take(cg_queue *queue, cg_queue_job **link)
{
    cg_queue_job *job = *link;

    *link = job->next;
    if (queue->last == &job->next)
        queue->last = link;
    queue->waiting--;
    return job;
}

static void end_job(cg_queue *queue, cg_queue_job *job, cg_job_state state)
{
    job->state = state;
    pthread_cond_broadcast(&queue->changed);
}

/* Jobs whose deadline has passed end where they stand. */
static void drop_late(cg_queue *queue)
{
    cg_queue_job **link = &queue->first;
    double now = 0;

    while (*link != NULL) {
        if ((*link)->deadline > 0 && now == 0)
            now = cg_now(queue->clock);
        if ((*link)->deadline > 0 && now > (*link)->deadline)
            end_job(queue, take(queue, link), CG_JOB_LATE);
        else
            link = &(*link)->next;
    }
}

/* The first whose lane is free; NULL: none. A lane's later jobs stand behind
   its earlier ones, so their order is kept. */
static cg_queue_job *next_job(cg_queue *queue)
{
    drop_late(queue);
    for (cg_queue_job **link = &queue->first; *link != NULL;
         link = &(*link)->next)
        if (!lane_is_busy(queue, (*link)->lane))
            return take(queue, link);
    return NULL;
}

/* ---- Threads ------------------------------------------------------------ */

static void *serve(void *argument)
{
    server *self = argument;
    cg_queue *queue = self->queue;

    pthread_mutex_lock(&queue->mutex);
    while (!queue->ending) {
        cg_queue_job *job = next_job(queue);

        if (job == NULL) {
            pthread_cond_wait(&queue->changed, &queue->mutex);
            continue;
        }
        job->state = CG_JOB_RUNNING;
        self->lane = job->lane;
        pthread_mutex_unlock(&queue->mutex);
        job->work(job);
        pthread_mutex_lock(&queue->mutex);
        self->lane = NULL;
        end_job(queue, job, CG_JOB_DONE);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

static bool start_one(cg_queue *queue)
{
    server *new = &queue->servers[queue->started];
    bool started;

    new->queue = queue;
    started = cg_thread_start(&new->thread, serve, new) == 0;
    queue->started += started;
    return started;
}

/* ---- The queue ---------------------------------------------------------- */

cellgate_status cg_queue_create(unsigned threads, size_t limit,
                                const cg_clock *clock, cg_queue **queue,
                                cellgate_error *error)
{
    cg_queue *made = calloc(1, sizeof *made + threads * sizeof(server));

    if (made == NULL || cg_condition_init(&made->changed) != 0) {
        free(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a queue of requests");
    }
    made->clock = clock;
    made->wanted = threads;
    made->limit = limit;
    made->last = &made->first;
    pthread_mutex_init(&made->mutex, NULL);
    *queue = made;
    return CELLGATE_OK;
}

void cg_queue_destroy(cg_queue *queue)
{
    if (queue == NULL)
        return;
    pthread_mutex_lock(&queue->mutex);
    queue->ending = true;
    while (queue->first != NULL)
        end_job(queue, take(queue, &queue->first), CG_JOB_CANCELLED);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    for (unsigned at = 0; at < queue->started; at++)
        pthread_join(queue->servers[at].thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

cellgate_status cg_queue_put(cg_queue *queue, cg_queue_job *job,
                             cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    pthread_mutex_lock(&queue->mutex);
    drop_late(queue);
    if (queue->started < queue->wanted && !start_one(queue) &&
        queue->started == 0)
        status = cellgate_fail(error, CELLGATE_NO_MEMORY,
                               "no thread for queued requests");
    else if (queue->waiting >= queue->limit)
        status = cellgate_fail(error, CELLGATE_BUSY,
                               "%zu requests wait already, which is the limit; "
                               "wait for some of them",
                               queue->waiting);
    if (status == CELLGATE_OK) {
        job->state = CG_JOB_QUEUED;
        job->next = NULL;
        *queue->last = job;
        queue->last = &job->next;
        queue->waiting++;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

size_t cg_queue_waiting(cg_queue *queue)
{
    size_t waiting;

    pthread_mutex_lock(&queue->mutex);
    waiting = queue->waiting;
    pthread_mutex_unlock(&queue->mutex);
    return waiting;
}

static bool has_ended(const cg_queue_job *job)
{
    return job->state != CG_JOB_QUEUED && job->state != CG_JOB_RUNNING;
}

/* How long to sleep at once: until the caller's limit (negative: none), or the
   moment at which a job that has not begun is late. */
static double sleep_limit(const cg_queue *queue, const cg_queue_job *job,
                          double limit)
{
    double late;

    if (job->state != CG_JOB_QUEUED || job->deadline <= 0)
        return limit;
    late = job->deadline - cg_now(queue->clock) + 1e-3;
    late = late > 1e-3 ? late : 1e-3;
    return limit < 0 || late < limit ? late : limit;
}

/* With the mutex held; wakes for anything that changes. */
static void sleep_for(cg_queue *queue, double limit)
{
    struct timespec end;

    if (limit < 0) {
        pthread_cond_wait(&queue->changed, &queue->mutex);
        return;
    }
    end = cg_deadline_after(limit);
    (void)pthread_cond_timedwait(&queue->changed, &queue->mutex, &end);
}

cg_job_state cg_queue_wait(cg_queue *queue, cg_queue_job *job, double seconds)
{
    const double start = cg_now(&cg_real_clock);
    cg_job_state state;

    pthread_mutex_lock(&queue->mutex);
    for (drop_late(queue); !has_ended(job); drop_late(queue)) {
        const double left =
            seconds < 0 ? -1 : start + seconds - cg_now(&cg_real_clock);

        if (!(seconds < 0) && !(left > 0))
            break;
        sleep_for(queue, sleep_limit(queue, job, left));
    }
    state = job->state;
    pthread_mutex_unlock(&queue->mutex);
    return state;
}

cg_job_state cg_queue_cancel(cg_queue *queue, cg_queue_job *job)
{
    cg_job_state state;

    pthread_mutex_lock(&queue->mutex);
    for (cg_queue_job **link = &queue->first;
         job->state == CG_JOB_QUEUED && *link != NULL; link = &(*link)->next)
        if (*link == job) {
            end_job(queue, take(queue, link), CG_JOB_CANCELLED);
            break;
        }
    state = job->state;
    pthread_mutex_unlock(&queue->mutex);
    return state;
}
