/* SPDX-License-Identifier: Apache-2.0 */
/* What requests in service say about costs, and about the choice. */
#include "config.h"

#include <math.h>

#include "runtime/given.h"
#include "runtime/session/call.h"
#include "runtime/session/session.h"

/* ---- Costs -------------------------------------------------------------- */

/* What cannot be written holds for the process, and the book says so. */
static void write_learned(cellgate_session *session, const cg_learned *learned)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_cost_candidate candidate;
    cellgate_status status =
        cg_segment_candidate(learned->segment, &candidate, &error);

    if (status == CELLGATE_OK)
        status = cg_cost_book_put(session->book, &candidate,
                                  learned->segment->structure, learned->regime,
                                  &learned->point, &error);
    if (status != CELLGATE_OK && status != CELLGATE_IO &&
        status != CELLGATE_BUSY)
        cg_log_line(cg_device_table_log(session->table), CELLGATE_LOG_WARNING,
                    "what was learned is lost: %s", error.text);
}

void cg_session_keep_learned(cellgate_session *session)
{
    for (size_t at = 0; at < session->lessons.count; at++)
        write_learned(session, &session->lessons.of[at]);
    session->lessons.count = 0;
}

/* A request does not wait for the store: what is learned is written when the
   session ends. Of more than there is room for the first ones are. */
static void remember(cellgate_session *session, const cg_segment *segment,
                     cg_regime regime, const cg_cost_point *point)
{
    cg_lessons *lessons = &session->lessons;
    size_t at = 0;

    pthread_mutex_lock(&lessons->mutex);
    while (at < lessons->count &&
           (lessons->of[at].segment != segment ||
            lessons->of[at].regime != regime ||
            lessons->of[at].point.shape.batch != point->shape.batch ||
            lessons->of[at].point.shape.steps != point->shape.steps))
        at++;
    if (at < CG_LEARNED_MOST) {
        lessons->of[at] = (cg_learned){ segment, regime, *point };
        if (at == lessons->count)
            lessons->count++;
    }
    pthread_mutex_unlock(&lessons->mutex);
}

/* Requests may come spaced where costs were measured back to back alone. */
static bool of_another_regime(const cellgate_session *session, cg_regime costs)
{
    return session->watches_pace && cg_pace_regime(&session->pace) != costs;
}

void cg_session_correct(cellgate_session *session, const cg_segment *segment,
                        const cg_cost_shape *shape, const cg_summary *seen)
{
    const cg_cost_point point = { *shape, *seen, 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_cost_candidate candidate;
    cg_regime regime;
    cg_policy policy;
    cg_cost expected;
    cellgate_status status = cg_segment_candidate(segment, &candidate, &error);

    cg_route_settings(session, &regime, &policy);
    if (of_another_regime(session, regime))
        return;
    if (status == CELLGATE_OK)
        status =
            cg_cost_book_predict(session->book, &candidate, segment->structure,
                                 regime, shape, &expected, &error);
    if (status != CELLGATE_OK ||
        !cg_lesson_counts(&expected, seen, policy.margin) ||
        cg_cost_book_hold(session->book, &candidate, segment->structure, regime,
                          &point, &error) != CELLGATE_OK)
        return;
    remember(session, segment, regime, &point);
    cg_learner_learned(session->learner);
    cg_log_line(cg_device_table_log(session->table), CELLGATE_LOG_INFO,
                "%s %s takes %.0f us for %s at batch %lld, %lld steps, where "
                "%.0f us were predicted",
                cg_device_name(segment->engine->device), segment->variant.name,
                seen->median * 1e6, segment->names, (long long)shape->batch,
                (long long)shape->steps, expected.seconds * 1e6);
}

static void learn(cellgate_session *session, const cg_lesson *lesson)
{
    cg_summary seen;

    if (!cg_learner_note(session->learner, lesson->segment, &lesson->shape,
                         lesson->seconds, &seen))
        return;
    cg_cost_book_saw(session->book, lesson->segment->structure, &lesson->shape,
                     seen.count);
    cg_session_correct(session, lesson->segment, &lesson->shape, &seen);
}

/* ---- The choice --------------------------------------------------------- */

/* What the best of the ways that were not taken is predicted to take. */
static double rival_seconds(const cg_call *call)
{
    double best = HUGE_VAL;

    for (size_t at = 0; at < call->pin.way_count; at++)
        if (&call->pin.ways[at] != call->way)
            best = fmin(best, (double)call->pin.ways[at].seconds);
    return best;
}

void cg_call_learn(const cg_call *call, cellgate_session *session, bool alone,
                   bool failed_over)
{
    if (!call->is_part)
        cg_learner_count(session->learner, call->way != &call->pin.ways[0],
                         failed_over, call->times.device);
    cg_learner_judge(session->learner, call->times.device, rival_seconds(call),
                     alone);
    for (size_t at = 0; session->learns && alone && at < call->lesson_count;
         at++)
        learn(session, &call->lessons[at]);
    cg_shadow_after(&session->shadow, call);
}

cellgate_status cellgate_session_service(const cellgate_session *session,
                                         cellgate_service *service)
{
    cellgate_service filled = { .struct_size = sizeof filled };
    cg_service read = { .requests = 0 };

    if (session == NULL || !cg_given_fillable(service))
        return CELLGATE_INVALID;
    if (session->learner != NULL)
        cg_learner_service(session->learner, &read);
    filled.requests = read.requests;
    filled.elsewhere = read.elsewhere;
    filled.failed_over = read.failed_over;
    filled.learned = read.learned;
    filled.judged = read.judged;
    filled.seconds = read.seconds;
    filled.regret = read.regret;
    filled.shadow_runs = read.shadow_runs;
    filled.shadow_seconds = read.shadow_seconds;
    cellgate_struct_copy(service, &filled);
    return CELLGATE_OK;
}
