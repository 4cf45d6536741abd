/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/session/call.h"
#include "runtime/session/session.h"
#include "runtime/session/trial.h"

void cg_shadow_init(cg_shadow *shadow, cellgate_session *session, double share)
{
    shadow->session = session;
    shadow->share = share;
    atomic_init(&shadow->busy, false);
}

/* ---- The run ------------------------------------------------------------ */

/* One run of the trial; whether it was alone on its resource. */
static cellgate_status run_alone(cg_shadow *shadow, cg_trial *trial,
                                 double *seconds, bool *alone)
{
    const cg_segment *segment = shadow->segment;
    double start;
    cellgate_status status;
    cg_hold hold;

    cg_load_begin(segment->engine->load, segment->variant.threads, 0, &hold);
    start = cg_now(&cg_real_clock);
    status = cg_trial_run(trial, NULL);
    *seconds = cg_now(&cg_real_clock) - start;
    *alone = cg_load_end(segment->engine->load, &hold);
    return status;
}

/* It ran at once after another, whatever way requests come. */
static void learn(cg_shadow *shadow, double seconds)
{
    cellgate_session *session = shadow->session;
    const cg_watched of = { shadow->segment, shadow->shape, CG_BACK_TO_BACK };
    cg_summary seen;

    if (cg_learner_note(session->learner, &of, cg_route_generation(session),
                        seconds, &seen) == CG_NOTED_FULL)
        cg_session_correct(session, &of, &seen);
}

/* The first run after others is slow, and does not count. */
static void work(cg_queue_job *job)
{
    cg_shadow *shadow = (cg_shadow *)job;
    const double start = cg_now(&cg_real_clock);
    cellgate_session *session = shadow->session;
    cg_trial *trial = NULL;
    double seconds;
    bool alone;
    cellgate_status status = cg_trial_create(
        &session->pool, shadow->segment, shadow->shape.batch,
        shadow->shape.steps, false, session->watchdog, &trial, NULL);

    if (status == CELLGATE_OK)
        status = cg_trial_run(trial, NULL);
    if (status == CELLGATE_OK)
        status = run_alone(shadow, trial, &seconds, &alone);
    if (status == CELLGATE_OK && alone)
        learn(shadow, seconds);
    cg_trial_destroy(trial);
    cg_learner_shadowed(session->learner, cg_now(&cg_real_clock) - start);
    atomic_store_explicit(&shadow->busy, false, memory_order_release);
}

/* ---- Whether, and of what ----------------------------------------------- */

/* A segment of the runner-up that takes the same input as one that was just
   timed, whose shape it has. */
static bool find_rival(cg_shadow *shadow, const cg_call *call)
{
    const cg_partition *rival = &call->pin->ways[1].cut->partition;

    for (size_t at = 0; at < rival->count; at++)
        for (size_t of = 0; of < call->lesson_count; of++) {
            const cg_lesson *lesson = &call->lessons[of];
            cg_segment *segment = rival->parts[at].segment;

            if (segment == NULL || segment->x != lesson->segment->x ||
                segment == lesson->segment)
                continue;
            shadow->segment = segment;
            shadow->shape = lesson->shape;
            return true;
        }
    return false;
}

/* Puts the job into the queue, unless requests wait there. Its run may be over,
   and the queue still about to say so. */
static bool put(cg_shadow *shadow)
{
    cg_queue *queue;

    if (cg_session_queue(shadow->session, &queue, NULL) != CELLGATE_OK ||
        cg_queue_waiting(queue) > 0 ||
        (shadow->queued &&
         cg_queue_wait(queue, &shadow->job, 0) == CG_JOB_RUNNING))
        return false;
    shadow->job = (cg_queue_job){ .work = work };
    shadow->queued = cg_queue_put(queue, &shadow->job, NULL) == CELLGATE_OK;
    return shadow->queued;
}

void cg_shadow_after(cg_shadow *shadow, const cg_call *call)
{
    cellgate_session *session = shadow->session;

    /* Made-up inputs have no padding, and come at once after others. */
    if (shadow->share <= 0 || call->is_part || call->pin->way_count < 2 ||
        call->way != &call->pin->ways[0] || call->fill < 1 ||
        cg_route_arrivals(session) != CG_BACK_TO_BACK ||
        !cg_learner_shadow_due(session->learner, shadow->share) ||
        atomic_exchange_explicit(&shadow->busy, true, memory_order_acquire))
        return;
    if (!find_rival(shadow, call) || !put(shadow))
        atomic_store_explicit(&shadow->busy, false, memory_order_release);
}
