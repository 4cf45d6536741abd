/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/schedule/learn.h"

#define WINDOWS 64u
/* 95% of a normal variable lies below this many standard deviations. */
#define ONE_SIDED 1.645

typedef struct window {
    atomic_flag busy; /* of all below */
    const void *of;
    cg_cost_shape shape;
    uint32_t count;
    double seconds[CG_LEARN_WINDOW];
} window;

struct cg_learner {
    window windows[WINDOWS];
    pthread_mutex_t mutex; /* of `service` */
    cg_service service;
};

cg_learner *cg_learner_create(void)
{
    cg_learner *made = calloc(1, sizeof *made);

    if (made == NULL)
        return NULL;
    for (size_t at = 0; at < WINDOWS; at++)
        atomic_flag_clear(&made->windows[at].busy);
    pthread_mutex_init(&made->mutex, NULL);
    return made;
}

void cg_learner_destroy(cg_learner *learner)
{
    if (learner == NULL)
        return;
    pthread_mutex_destroy(&learner->mutex);
    free(learner);
}

/* ---- Windows ------------------------------------------------------------ */

static window *window_of(cg_learner *learner, const void *of,
                         const cg_cost_shape *shape)
{
    uint64_t key = (uint64_t)(uintptr_t)of;

    key = (key ^ (uint64_t)shape->batch) * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ (uint64_t)shape->steps) * UINT64_C(0x9e3779b97f4a7c15);
    return &learner->windows[key >> 32 & (WINDOWS - 1)];
}

static bool is_of(const window *at, const void *of, const cg_cost_shape *shape)
{
    return at->of == of && at->shape.batch == shape->batch &&
           at->shape.steps == shape->steps &&
           fabs(at->shape.fill - shape->fill) < 0.05;
}

bool cg_learner_note(cg_learner *learner, const void *of,
                     const cg_cost_shape *shape, double seconds,
                     cg_summary *seen)
{
    window *at = window_of(learner, of, shape);
    bool full;

    if (!(seconds > 0) || !isfinite(seconds) ||
        atomic_flag_test_and_set_explicit(&at->busy, memory_order_acquire))
        return false;
    if (!is_of(at, of, shape)) {
        at->of = of;
        at->shape = *shape;
        at->count = 0;
    }
    at->seconds[at->count++] = seconds;
    full = at->count == CG_LEARN_WINDOW;
    if (full) {
        cg_summarise(at->seconds, at->count, seen);
        at->count = 0;
    }
    atomic_flag_clear_explicit(&at->busy, memory_order_release);
    return full;
}

bool cg_lesson_counts(const cg_cost *expected, const cg_summary *seen,
                      double margin)
{
    double off, noise;

    if (expected->kind == CG_COST_NONE || seen->count == 0)
        return false;
    off = fabs(log(seen->median / expected->seconds));
    /* An estimate that was not measured here is no evidence against it. */
    noise = expected->kind == CG_COST_EXACT
                ? hypot(expected->error, seen->error)
                : seen->error;
    return off > log1p(margin) && off > ONE_SIDED * noise;
}

/* ---- The service -------------------------------------------------------- */

void cg_learner_judge(cg_learner *learner, double seconds, double rival,
                      bool alone)
{
    if (!alone || isinf(rival))
        return;
    pthread_mutex_lock(&learner->mutex);
    learner->service.judged++;
    learner->service.seconds += seconds;
    if (seconds > rival)
        learner->service.regret += seconds - rival;
    pthread_mutex_unlock(&learner->mutex);
}

void cg_learner_count(cg_learner *learner, bool elsewhere, bool failed_over,
                      double seconds)
{
    pthread_mutex_lock(&learner->mutex);
    learner->service.requests++;
    learner->service.elsewhere += elsewhere;
    learner->service.failed_over += failed_over;
    learner->service.all += seconds;
    pthread_mutex_unlock(&learner->mutex);
}

bool cg_learner_shadow_due(cg_learner *learner, double share)
{
    bool due;

    pthread_mutex_lock(&learner->mutex);
    due = learner->service.shadow_seconds < share * learner->service.all;
    pthread_mutex_unlock(&learner->mutex);
    return due;
}

void cg_learner_shadowed(cg_learner *learner, double seconds)
{
    pthread_mutex_lock(&learner->mutex);
    learner->service.shadow_runs++;
    learner->service.shadow_seconds += seconds;
    pthread_mutex_unlock(&learner->mutex);
}

void cg_learner_learned(cg_learner *learner)
{
    pthread_mutex_lock(&learner->mutex);
    learner->service.learned++;
    pthread_mutex_unlock(&learner->mutex);
}

void cg_learner_service(cg_learner *learner, cg_service *service)
{
    pthread_mutex_lock(&learner->mutex);
    *service = learner->service;
    pthread_mutex_unlock(&learner->mutex);
}
