/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/schedule/queue.h"

/* A clock that stands where the test puts it. */
static _Atomic double fake_time;

static double fake_now(void *context)
{
    (void)context;
    return fake_time;
}

static void fake_sleep(void *context, double seconds)
{
    (void)context;
    fake_time = fake_time + seconds;
}

static const cg_clock fake_clock = { fake_now, fake_sleep, NULL };

/* A job that waits for its gate, and writes its letter. */
typedef struct lettered {
    cg_queue_job job;
    pthread_mutex_t *gate; /* NULL: none */
    char letter;
} lettered;

static pthread_mutex_t order_mutex = PTHREAD_MUTEX_INITIALIZER;
static char order[64];
static atomic_int running, most_running;

static void write_letter(cg_queue_job *job)
{
    lettered *self = (lettered *)job;
    int now = atomic_fetch_add(&running, 1) + 1;

    if (now > atomic_load(&most_running))
        atomic_store(&most_running, now);
    if (self->gate != NULL) {
        pthread_mutex_lock(self->gate);
        pthread_mutex_unlock(self->gate);
    }
    pthread_mutex_lock(&order_mutex);
    strncat(order, &self->letter, 1);
    pthread_mutex_unlock(&order_mutex);
    atomic_fetch_sub(&running, 1);
}

static lettered letter(char which, const void *lane)
{
    return (lettered){ .job = { .work = write_letter, .lane = lane },
                       .letter = which };
}

static cg_queue *start(unsigned threads, size_t limit)
{
    cg_queue *queue = NULL;

    order[0] = '\0';
    fake_time = 100;
    atomic_store(&most_running, 0);
    assert_int_equal(cg_queue_create(threads, limit, &fake_clock, &queue, NULL),
                     CELLGATE_OK);
    return queue;
}

static void put(cg_queue *queue, lettered *job)
{
    assert_int_equal(cg_queue_put(queue, &job->job, NULL), CELLGATE_OK);
}

static void expect(cg_queue *queue, lettered *job, cg_job_state state)
{
    assert_int_equal(cg_queue_wait(queue, &job->job, -1), state);
}

/* Until the job has left the queue for its thread. */
static void until_running(cg_queue *queue, lettered *job)
{
    while (cg_queue_wait(queue, &job->job, 0.001) == CG_JOB_QUEUED)
        continue;
}

static void first_come_first_served(void **state)
{
    cg_queue *queue = start(1, 8);
    lettered jobs[] = { letter('a', NULL), letter('b', NULL),
                        letter('c', NULL) };

    (void)state;
    for (int at = 0; at < 3; at++)
        put(queue, &jobs[at]);
    for (int at = 2; at >= 0; at--)
        expect(queue, &jobs[at], CG_JOB_DONE);
    assert_string_equal(order, "abc");
    cg_queue_destroy(queue);
}

/* Two of one lane wait for each other; one of no lane passes the second. */
static void lanes_do_not_overlap(void **state)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    cg_queue *queue = start(2, 8);
    const char lane = 'x';
    lettered first = letter('a', &lane), second = letter('b', &lane);
    lettered other = letter('c', NULL);

    (void)state;
    pthread_mutex_lock(&gate);
    first.gate = &gate;
    put(queue, &first);
    until_running(queue, &first);
    put(queue, &second);
    put(queue, &other);
    expect(queue, &other, CG_JOB_DONE);
    assert_string_equal(order, "c");
    pthread_mutex_unlock(&gate);
    expect(queue, &second, CG_JOB_DONE);
    expect(queue, &first, CG_JOB_DONE);
    assert_string_equal(order, "cab");
    cg_queue_destroy(queue);
}

static void threads_work_side_by_side(void **state)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    cg_queue *queue = start(3, 8);
    lettered jobs[] = { letter('a', NULL), letter('b', NULL),
                        letter('c', NULL) };

    (void)state;
    pthread_mutex_lock(&gate);
    for (int at = 0; at < 3; at++) {
        jobs[at].gate = &gate;
        put(queue, &jobs[at]);
    }
    for (int at = 0; at < 3; at++)
        until_running(queue, &jobs[at]);
    pthread_mutex_unlock(&gate);
    for (int at = 0; at < 3; at++)
        expect(queue, &jobs[at], CG_JOB_DONE);
    assert_int_equal(atomic_load(&most_running), 3);
    cg_queue_destroy(queue);
}

static void a_full_queue_refuses(void **state)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_queue *queue = start(1, 2);
    lettered jobs[] = { letter('a', NULL), letter('b', NULL), letter('c', NULL),
                        letter('d', NULL) };

    (void)state;
    pthread_mutex_lock(&gate);
    jobs[0].gate = &gate;
    put(queue, &jobs[0]);
    until_running(queue, &jobs[0]);
    put(queue, &jobs[1]);
    put(queue, &jobs[2]);
    assert_int_equal(cg_queue_put(queue, &jobs[3].job, &error), CELLGATE_BUSY);
    assert_non_null(strstr(error.text, "2 requests wait already"));
    assert_int_equal(cg_queue_cancel(queue, &jobs[2].job), CG_JOB_CANCELLED);
    put(queue, &jobs[3]);
    pthread_mutex_unlock(&gate);
    expect(queue, &jobs[3], CG_JOB_DONE);
    expect(queue, &jobs[2], CG_JOB_CANCELLED);
    assert_string_equal(order, "abd");
    cg_queue_destroy(queue);
}

static void what_runs_is_not_cancelled(void **state)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    cg_queue *queue = start(1, 2);
    lettered job = letter('a', NULL);

    (void)state;
    pthread_mutex_lock(&gate);
    job.gate = &gate;
    put(queue, &job);
    until_running(queue, &job);
    assert_int_equal(cg_queue_cancel(queue, &job.job), CG_JOB_RUNNING);
    assert_int_equal(cg_queue_wait(queue, &job.job, 0), CG_JOB_RUNNING);
    pthread_mutex_unlock(&gate);
    expect(queue, &job, CG_JOB_DONE);
    assert_int_equal(cg_queue_cancel(queue, &job.job), CG_JOB_DONE);
    cg_queue_destroy(queue);
}

static void deadlines_are_kept(void **state)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    cg_queue *queue = start(1, 8);
    lettered first = letter('a', NULL), late = letter('b', NULL);
    lettered in_time = letter('c', NULL);

    (void)state;
    pthread_mutex_lock(&gate);
    first.gate = &gate;
    put(queue, &first);
    until_running(queue, &first);
    late.job.deadline = 101;
    in_time.job.deadline = 200;
    put(queue, &late);
    put(queue, &in_time);
    fake_time = 150;
    pthread_mutex_unlock(&gate);
    expect(queue, &late, CG_JOB_LATE);
    expect(queue, &in_time, CG_JOB_DONE);
    assert_string_equal(order, "ac");
    cg_queue_destroy(queue);
}

static void *destroy(void *queue)
{
    cg_queue_destroy(queue);
    return NULL;
}

/* The end waits for what runs, so the queue is still there to ask. */
static void the_end_cancels_what_waits(void **state)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    cg_queue *queue = start(1, 8);
    lettered first = letter('a', NULL), second = letter('b', NULL);
    pthread_t ending;

    (void)state;
    pthread_mutex_lock(&gate);
    first.gate = &gate;
    put(queue, &first);
    until_running(queue, &first);
    put(queue, &second);
    assert_int_equal(pthread_create(&ending, NULL, destroy, queue), 0);
    expect(queue, &second, CG_JOB_CANCELLED);
    assert_int_equal(first.job.state, CG_JOB_RUNNING);
    pthread_mutex_unlock(&gate);
    pthread_join(ending, NULL);
    assert_int_equal(first.job.state, CG_JOB_DONE);
    assert_string_equal(order, "a");
    cg_queue_destroy(NULL);
}

/* Many threads put, wait and cancel; every job ends once. */
#define PUTTERS 4
#define EACH 200

static atomic_int ended[2]; /* done, cancelled */

static void count_done(cg_queue_job *job)
{
    (void)job;
    atomic_fetch_add(&ended[0], 1);
}

static void *put_many(void *argument)
{
    cg_queue *queue = argument;

    for (int at = 0; at < EACH; at++) {
        cg_queue_job job = { .work = count_done,
                             .lane = at % 3 ? NULL : argument };

        while (cg_queue_put(queue, &job, NULL) == CELLGATE_BUSY)
            continue;
        if (at % 5 == 0)
            (void)cg_queue_cancel(queue, &job);
        if (cg_queue_wait(queue, &job, -1) == CG_JOB_CANCELLED)
            atomic_fetch_add(&ended[1], 1);
    }
    return NULL;
}

static void every_job_ends_once(void **state)
{
    cg_queue *queue = start(3, 2);
    pthread_t threads[PUTTERS];

    (void)state;
    for (int at = 0; at < PUTTERS; at++)
        assert_int_equal(pthread_create(&threads[at], NULL, put_many, queue),
                         0);
    for (int at = 0; at < PUTTERS; at++)
        pthread_join(threads[at], NULL);
    assert_int_equal(atomic_load(&ended[0]) + atomic_load(&ended[1]),
                     PUTTERS * EACH);
    cg_queue_destroy(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_come_first_served),
        cmocka_unit_test(lanes_do_not_overlap),
        cmocka_unit_test(threads_work_side_by_side),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(what_runs_is_not_cancelled),
        cmocka_unit_test(deadlines_are_kept),
        cmocka_unit_test(the_end_cancels_what_waits),
        cmocka_unit_test(every_job_ends_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
