/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/schedule/learn.h"

/* Windows of one group are all that a segment and shape may lie in; so many
   take turns without one of them losing what it has. */
#define GROUPS 16u
#define GROUP_WINDOWS 8u
/* 95% of a normal variable lies below this many standard deviations. */
#define ONE_SIDED 1.645

typedef struct window {
    const void *of; /* NULL: nothing yet */
    cg_cost_shape shape;
    uint64_t used; /* the group's clock then */
    uint32_t count;
    double seconds[CG_LEARN_WINDOW];
} window;

typedef struct group {
    atomic_flag busy; /* of all below */
    uint64_t clock;
    window windows[GROUP_WINDOWS];
} group;

struct cg_learner {
    group groups[GROUPS];
    pthread_mutex_t mutex; /* of `service` */
    cg_service service;
};

cg_learner *cg_learner_create(void)
{
    cg_learner *made = calloc(1, sizeof *made);

    if (made == NULL)
        return NULL;
    for (size_t at = 0; at < GROUPS; at++)
        atomic_flag_clear(&made->groups[at].busy);
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

static group *group_of(cg_learner *learner, const void *of,
                       const cg_cost_shape *shape)
{
    uint64_t key = (uint64_t)(uintptr_t)of;

    key = (key ^ (uint64_t)shape->batch) * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ (uint64_t)shape->steps) * UINT64_C(0x9e3779b97f4a7c15);
    return &learner->groups[key >> 32 & (GROUPS - 1)];
}

static bool is_of(const window *at, const void *of, const cg_cost_shape *shape)
{
    return at->of == of && at->shape.batch == shape->batch &&
           at->shape.steps == shape->steps &&
           fabs(at->shape.fill - shape->fill) < 0.05;
}

/* Its window, or the one that was used longest ago, emptied. */
static window *window_of(group *in, const void *of, const cg_cost_shape *shape)
{
    window *oldest = &in->windows[0];

    for (size_t at = 0; at < GROUP_WINDOWS; at++) {
        if (is_of(&in->windows[at], of, shape))
            return &in->windows[at];
        if (in->windows[at].used < oldest->used)
            oldest = &in->windows[at];
    }
    oldest->of = of;
    oldest->shape = *shape;
    oldest->count = 0;
    return oldest;
}

bool cg_learner_note(cg_learner *learner, const void *of,
                     const cg_cost_shape *shape, double seconds,
                     cg_summary *seen)
{
    group *in = group_of(learner, of, shape);
    window *at;
    bool full;

    if (!(seconds > 0) || !isfinite(seconds) ||
        atomic_flag_test_and_set_explicit(&in->busy, memory_order_acquire))
        return false;
    at = window_of(in, of, shape);
    at->used = ++in->clock;
    at->seconds[at->count++] = seconds;
    full = at->count == CG_LEARN_WINDOW;
    if (full) {
        cg_summarise(at->seconds, at->count, seen);
        at->count = 0;
    }
    atomic_flag_clear_explicit(&in->busy, memory_order_release);
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
