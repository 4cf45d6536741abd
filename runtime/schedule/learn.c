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
    cg_watched of; /* of NULL: nothing yet */
    uint64_t used; /* the group's clock then */
    uint32_t count;
    double seconds[CG_LEARN_WINDOW];
    /* What is expected while what is known is of that generation (0: nothing),
       and how many of `seconds` are outside. */
    uint64_t generation;
    double low, high;
    uint32_t below, above;
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

static group *group_of(cg_learner *learner, const cg_watched *of)
{
    uint64_t key = (uint64_t)(uintptr_t)of->of;

    key = (key ^ (uint64_t)of->shape.batch) * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ (uint64_t)of->shape.steps) * UINT64_C(0x9e3779b97f4a7c15);
    return &learner->groups[key >> 32 & (GROUPS - 1)];
}

static bool same(const cg_watched *a, const cg_watched *b)
{
    return a->of == b->of && a->shape.batch == b->shape.batch &&
           a->shape.steps == b->shape.steps && a->regime == b->regime &&
           fabs(a->shape.fill - b->shape.fill) < 0.05;
}

/* Its window, or the one that was used longest ago, emptied. */
static window *window_of(group *in, const cg_watched *of)
{
    window *oldest = &in->windows[0];

    for (size_t at = 0; at < GROUP_WINDOWS; at++) {
        if (same(&in->windows[at].of, of))
            return &in->windows[at];
        if (in->windows[at].used < oldest->used)
            oldest = &in->windows[at];
    }
    oldest->of = *of;
    oldest->count = 0;
    oldest->generation = 0;
    return oldest;
}

static bool enter(group *in)
{
    return !atomic_flag_test_and_set_explicit(&in->busy, memory_order_acquire);
}

static void leave(group *in)
{
    atomic_flag_clear_explicit(&in->busy, memory_order_release);
}

static void compare(window *with, double seconds)
{
    with->below += seconds < with->low;
    with->above += seconds > with->high;
}

/* Of an odd number of times the median lies outside with more than half. */
_Static_assert(CG_LEARN_WINDOW % 2 == 1, "a window has one in the middle");

static cg_noted close_window(window *full, uint64_t generation,
                             cg_summary *seen)
{
    const bool usual = full->generation == generation &&
                       full->below <= CG_LEARN_WINDOW / 2 &&
                       full->above <= CG_LEARN_WINDOW / 2;

    if (!usual)
        cg_summarise(full->seconds, full->count, seen);
    full->count = full->below = full->above = 0;
    return usual ? CG_NOTED_USUAL : CG_NOTED_FULL;
}

cg_noted cg_learner_note(cg_learner *learner, const cg_watched *of,
                         uint64_t generation, double seconds, cg_summary *seen)
{
    group *in = group_of(learner, of);
    cg_noted noted = CG_NOTED;
    window *at;

    if (!(seconds > 0) || !isfinite(seconds) || !enter(in))
        return CG_NOTED;
    at = window_of(in, of);
    at->used = ++in->clock;
    at->seconds[at->count++] = seconds;
    compare(at, seconds);
    if (at->count == CG_LEARN_WINDOW)
        noted = close_window(at, generation, seen);
    leave(in);
    return noted;
}

void cg_learner_expect(cg_learner *learner, const cg_watched *of,
                       uint64_t generation, double low, double high)
{
    group *in = group_of(learner, of);
    window *at;

    if (!enter(in))
        return;
    at = window_of(in, of);
    at->generation = generation;
    at->low = low;
    at->high = high;
    at->below = at->above = 0;
    for (uint32_t i = 0; i < at->count; i++)
        compare(at, at->seconds[i]);
    leave(in);
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

static void judge(cg_service *service, const cg_answered *request)
{
    if (!request->alone || isinf(request->rival))
        return;
    service->judged++;
    service->seconds += request->seconds;
    if (request->seconds > request->rival)
        service->regret += request->seconds - request->rival;
}

void cg_learner_count(cg_learner *learner, const cg_answered *request)
{
    pthread_mutex_lock(&learner->mutex);
    learner->service.requests++;
    learner->service.elsewhere += request->elsewhere;
    learner->service.failed_over += request->failed_over;
    learner->service.all += request->seconds;
    judge(&learner->service, request);
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
