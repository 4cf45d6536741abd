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

/* Medians up to there teach nothing while what is known stays as it is. */
static void expect(cellgate_session *session, const cg_watched *of,
                   uint64_t generation, const cg_cost *expected, double margin)
{
    double low = 0, high = HUGE_VAL;

    if (expected->kind != CG_COST_NONE) {
        low = expected->seconds / (1 + margin);
        high = expected->seconds * (1 + margin);
    }
    cg_learner_expect(session->learner, of, generation, low, high);
}

/* Holds it from now on, in the process. */
static void correct(cellgate_session *session,
                    const cg_cost_candidate *candidate, const cg_watched *of,
                    const cg_cost *expected, const cg_summary *seen)
{
    const cg_segment *segment = of->of;
    const cg_cost_point point = { of->shape, *seen, 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cg_cost_book_hold(session->book, candidate, segment->structure,
                          of->regime, &point, &error) != CELLGATE_OK)
        return;
    remember(session, segment, of->regime, &point);
    cg_learner_learned(session->learner);
    cg_log_line(cg_device_table_log(session->table), CELLGATE_LOG_INFO,
                "%s %s takes %.0f us for %s at batch %lld, %lld steps, where "
                "%.0f us were predicted",
                cg_device_name(segment->engine->device), segment->variant.name,
                seen->median * 1e6, segment->names, (long long)of->shape.batch,
                (long long)of->shape.steps, expected->seconds * 1e6);
}

void cg_session_correct(cellgate_session *session, const cg_watched *of,
                        const cg_summary *seen)
{
    const uint64_t generation = cg_route_generation(session);
    const cg_segment *segment = of->of;
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_cost expected = { .kind = CG_COST_NONE };
    cg_cost_candidate candidate;
    cellgate_status status = CELLGATE_OK;
    cg_policy policy;
    cg_regime regime;

    cg_route_settings(session, &regime, &policy);
    /* Requests may come spaced where costs were measured back to back alone. */
    if (of->regime == regime) {
        status = cg_segment_candidate(segment, &candidate, &error);
        if (status == CELLGATE_OK)
            status = cg_cost_book_predict(session->book, &candidate,
                                          segment->structure, regime,
                                          &of->shape, &expected, &error);
    }
    if (status != CELLGATE_OK)
        return;
    if (cg_lesson_counts(&expected, seen, policy.margin))
        correct(session, &candidate, of, &expected, seen);
    else
        expect(session, of, generation, &expected, policy.margin);
}

static void learn(cellgate_session *session, const cg_lesson *lesson,
                  uint64_t generation, cg_regime regime)
{
    const cg_watched of = { lesson->segment, lesson->shape, regime };
    cg_summary seen;
    const cg_noted noted = cg_learner_note(session->learner, &of, generation,
                                           lesson->seconds, &seen);

    if (noted == CG_NOTED)
        return;
    cg_cost_book_saw(session->book, lesson->segment->structure, &lesson->shape,
                     CG_LEARN_WINDOW);
    if (noted == CG_NOTED_FULL)
        cg_session_correct(session, &of, &seen);
}

static void learn_all(const cg_call *call, cellgate_session *session)
{
    const cg_regime regime = cg_route_arrivals(session);

    for (size_t at = 0; at < call->lesson_count; at++)
        learn(session, &call->lessons[at], call->generation, regime);
}

/* ---- The choice --------------------------------------------------------- */

/* What the best of the ways that were not taken is predicted to take. */
static double rival_seconds(const cg_call *call)
{
    const cg_pin *pin = call->pin;
    double best = HUGE_VAL;

    for (size_t at = 0; at < pin->way_count; at++)
        if (&pin->ways[at] != call->way && (double)pin->ways[at].seconds < best)
            best = (double)pin->ways[at].seconds;
    return best;
}

void cg_call_learn(const cg_call *call, cellgate_session *session, bool alone,
                   bool failed_over)
{
    /* A part of a request has no other way, so there is nothing to judge. */
    if (!call->is_part)
        cg_learner_count(
            session->learner,
            &(cg_answered){ .seconds = call->times.device,
                            .rival = rival_seconds(call),
                            .elsewhere = call->way != &call->pin->ways[0],
                            .failed_over = failed_over,
                            .alone = alone });
    if (session->learns && alone)
        learn_all(call, session);
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
