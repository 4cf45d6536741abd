/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "runtime/session/worker.h"

struct job {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    int runs;
    int may_end;
};

static struct job job = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                          0, 0, 0 };

static void count(void *argument)
{
    struct job *of = argument;

    of->thread = pthread_self();
    of->runs++;
}

static void hang(void *argument)
{
    struct job *of = argument;

    pthread_mutex_lock(&of->mutex);
    while (!of->may_end)
        pthread_cond_wait(&of->changed, &of->mutex);
    of->runs++;
    pthread_cond_broadcast(&of->changed);
    pthread_mutex_unlock(&of->mutex);
}

static void jobs_run_on_the_worker(void **state)
{
    cg_worker *worker;

    (void)state;
    job.runs = 0;
    assert_int_equal(cg_worker_create(&worker, NULL), CELLGATE_OK);
    for (int at = 1; at <= 100; at++) {
        assert_true(cg_worker_run(worker, count, &job, at % 2 ? 0 : 60));
        assert_int_equal(job.runs, at);
    }
    assert_false(pthread_equal(job.thread, pthread_self()));
    cg_worker_destroy(worker);
}

static void an_unused_worker_ends(void **state)
{
    cg_worker *worker;

    (void)state;
    assert_int_equal(cg_worker_create(&worker, NULL), CELLGATE_OK);
    cg_worker_destroy(worker);
    cg_worker_destroy(NULL);
}

/* The job goes on after the limit, and its worker with it; both end later. */
static void a_job_past_its_limit_is_left_behind(void **state)
{
    cg_worker *worker;
    struct timespec before, after;
    double seconds;

    (void)state;
    job.runs = job.may_end = 0;
    assert_int_equal(cg_worker_create(&worker, NULL), CELLGATE_OK);
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_false(cg_worker_run(worker, hang, &job, 0.05));
    clock_gettime(CLOCK_MONOTONIC, &after);
    seconds = (double)(after.tv_sec - before.tv_sec) +
              (double)(after.tv_nsec - before.tv_nsec) * 1e-9;
    assert_true(seconds >= 0.049);
    pthread_mutex_lock(&job.mutex);
    assert_int_equal(job.runs, 0);
    job.may_end = 1;
    pthread_cond_broadcast(&job.changed);
    while (job.runs == 0)
        pthread_cond_wait(&job.changed, &job.mutex);
    pthread_mutex_unlock(&job.mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_on_the_worker),
        cmocka_unit_test(an_unused_worker_ends),
        cmocka_unit_test(a_job_past_its_limit_is_left_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
