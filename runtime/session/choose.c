/* SPDX-License-Identifier: Apache-2.0 */
/* The cut of a chain, and its candidates, by predicted cost. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/session/numeric.h"
#include "runtime/session/offers.h"
#include "runtime/session/route.h"
#include "runtime/session/session.h"

/* The best way to do a chain from one of its nodes on. */
typedef struct best {
    double score; /* of all from here on; infinite: nothing is measured */
    double seconds, variance;
    cg_segment *segment; /* the first piece */
    cg_cost cost;
    double rival; /* score of the best other candidate for that piece */
    const cg_segment *other; /* that one */
} best;

cellgate_status cg_segment_candidate(const cg_segment *segment,
                                     cg_cost_candidate *candidate,
                                     cellgate_error *error)
{
    cg_device *device = segment->engine->device;
    cg_device_identity identity;
    cellgate_status status = cg_device_identify(device, &identity, error);

    if (status != CELLGATE_OK)
        return status;
    *candidate = (cg_cost_candidate){ .device = cg_device_name(device),
                                      .plugin = identity.plugin,
                                      .build = identity.build,
                                      .identity = identity.identity,
                                      .settings = identity.settings,
                                      .variant = segment->variant.name,
                                      .numeric = cg_numeric_name(
                                          segment->variant.numeric),
                                      .host = identity.host };
    return CELLGATE_OK;
}

void cg_segment_cost_shape(const cg_segment *segment, const cg_shape *shapes,
                           double fill, cg_cost_shape *shape)
{
    const cg_shape *x = &shapes[segment->x];

    *shape = (cg_cost_shape){ .batch = x->extent[0],
                              .steps = segment->rows ? 1 : x->extent[1],
                              .fill = segment->rows ? 1 : fill };
}

/* ---- One piece on one candidate
 * ---------------------------------------------- */

static double share_of(const cg_segment *segment)
{
    const cg_engine *engine = segment->engine;

    if (engine->staged)
        return 1.0 / engine->queue_depth;
    return (double)segment->variant.threads /
           fmax(cg_device_thread_budget(engine->device), 1);
}

cellgate_status cg_segment_option(const cg_costing *costing,
                                  const cg_segment *segment, cg_option *option,
                                  cellgate_error *refusal,
                                  cellgate_error *error)
{
    cg_cost_book *book = costing->session->book;
    cg_cost_verdict verdict;
    cg_cost_candidate candidate;
    cg_cost_shape shape;
    cellgate_shape wanted = { .struct_size = sizeof wanted };
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    memset(option, 0, sizeof *option);
    option->share = share_of(segment);
    cg_segment_cost_shape(segment, costing->shapes, costing->fill, &shape);
    if (status == CELLGATE_OK)
        status = cg_cost_book_verdict(book, &candidate, segment->structure,
                                      &verdict, error);
    if (status == CELLGATE_OK)
        status =
            cg_cost_book_predict(book, &candidate, segment->structure,
                                 costing->regime, &shape, &option->cost, error);
    if (status != CELLGATE_OK)
        return status;
    wanted.batch = shape.batch;
    wanted.steps = shape.steps;
    if (verdict.checked && !verdict.right)
        option->excluded = "its results are wrong";
    else if (cg_segment_fits(segment, &wanted, refusal) != CELLGATE_OK)
        option->excluded = refusal->text;
    return CELLGATE_OK;
}

/* Takes a candidate for the piece if it is the best so far. */
static void compare(const cg_costing *costing, const cg_option *option,
                    cg_segment *segment, const best *after, best *so_far)
{
    const double score =
        cg_option_score(option, &costing->policy) + after->score;
    bool same;

    if (isinf(score))
        return;
    /* The one before is the rival only where it does the same piece. */
    same = so_far->segment != NULL &&
           so_far->segment->node_count == segment->node_count;
    if (score < so_far->score)
        *so_far = (best){ .score = score,
                          .seconds = option->cost.seconds + after->seconds,
                          .variance =
                              after->variance +
                              pow(option->cost.seconds * option->cost.error, 2),
                          .segment = segment,
                          .cost = option->cost,
                          .rival = same ? so_far->score : HUGE_VAL,
                          .other = same ? so_far->segment : NULL };
    else if (same && score < so_far->rival) {
        so_far->rival = score;
        so_far->other = segment;
    }
}

/* ---- One piece on every candidate
 * -------------------------------------------- */

/* What a visit of a piece's offers knows. */
typedef struct trying {
    const cg_costing *costing;
    const best *after;
    best *so_far;
} trying;

static cellgate_status try_offer(void *context, const cg_offer *offer,
                                 cellgate_error *error)
{
    const trying *with = context;
    cellgate_error refusal = CELLGATE_ERROR_INIT;
    cg_option option;
    cellgate_status status;

    if (offer->segment == NULL)
        return CELLGATE_OK;
    status = cg_segment_option(with->costing, offer->segment, &option, &refusal,
                               error);
    if (status == CELLGATE_OK)
        compare(with->costing, &option, offer->segment, with->after,
                with->so_far);
    return status;
}

static cellgate_status try_piece(cg_costing *costing, const size_t *nodes,
                                 size_t count, const best *after, best *so_far,
                                 cellgate_error *error)
{
    cellgate_session *session = costing->session;
    trying with = { costing, after, so_far };
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < session->candidate_count;
         at++) {
        const cg_candidate *candidate = &session->candidates[at];

        if (cg_candidate_ready(candidate))
            status = cg_offers_visit(&session->pool, &candidate->engine, nodes,
                                     count, try_offer, &with, error);
    }
    return status;
}

/* ---- The chain
 * ----------------------------------------------------------------- */

/* From the last node to the first: what is best from each on. */
static cellgate_status solve(cg_costing *costing, const size_t *nodes,
                             size_t longest, best *from, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    from[longest] = (best){ .score = 0 };
    for (size_t at = longest; status == CELLGATE_OK && at-- > 0;) {
        from[at] = (best){ .score = HUGE_VAL, .rival = HUGE_VAL };
        for (size_t count = 1; status == CELLGATE_OK && count <= longest - at;
             count++)
            if (!isinf(from[at + count].score))
                status = try_piece(costing, nodes + at, count,
                                   &from[at + count], &from[at], error);
    }
    return status;
}

static void add_to_route(cg_costing *costing, const best *first)
{
    cg_route *route = &costing->route;
    const double seconds = first->cost.seconds;
    const double error =
        route->cost.seconds > 0 ? route->cost.error * route->cost.seconds : 0;

    route->measured = true;
    route->cost.error = hypot(error, seconds * first->cost.error);
    route->cost.seconds += seconds;
    route->cost.error /= route->cost.seconds;
    if (route->cost.kind == CG_COST_NONE || first->cost.kind < route->cost.kind)
        route->cost.kind = first->cost.kind;
    if (seconds < costing->longest)
        return;
    costing->longest = seconds;
    route->cost.samples = first->cost.samples;
    route->ahead = isinf(first->rival) ? 0 : first->rival / first->score;
    route->rival = first->other;
}

/* The chain that nothing is known of goes to the session's first device. */
static cellgate_status choose_unmeasured(cg_costing *costing,
                                         const size_t *nodes, size_t longest,
                                         cg_choice *choice,
                                         cellgate_error *error)
{
    cellgate_session *session = costing->session;
    const cg_candidate *primary = &session->candidates[session->primary];
    cg_greedy greedy = { &session->pool, &primary->engine, NULL };

    costing->unknown = true;
    if (primary->device == NULL) {
        snprintf(choice->reason, sizeof choice->reason, "%s",
                 primary->placement->reason);
        return CELLGATE_OK;
    }
    return cg_choose_greedily(&greedy, nodes, longest, choice, error);
}

cellgate_status cg_choose_by_cost(void *context, const size_t *nodes,
                                  size_t longest, cg_choice *choice,
                                  cellgate_error *error)
{
    cg_costing *costing = context;
    best *from = calloc(longest + 1, sizeof *from);
    cellgate_status status;

    if (from == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to choose devices");
    status = solve(costing, nodes, longest, from, error);
    if (status == CELLGATE_OK && from[0].segment == NULL) {
        status = choose_unmeasured(costing, nodes, longest, choice, error);
    } else if (status == CELLGATE_OK) {
        choice->segment = from[0].segment;
        add_to_route(costing, &from[0]);
    }
    free(from);
    return status;
}
