/* SPDX-License-Identifier: Apache-2.0 */
/* The cut of a chain, and its candidates, by predicted cost. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/session/offers.h"
#include "runtime/session/route.h"
#include "runtime/session/session.h"

/* The best way to do a chain from one of its nodes on. */
typedef struct best {
    double score; /* of all from here on; infinite: nothing is measured */
    double seconds, variance;
    cg_segment *segment; /* the first piece */
    cg_cost cost;
    double once;
    double rival; /* score of the best other candidate for that piece */
    const cg_segment *other; /* that one */
} best;

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
                          .once = option->once,
                          .rival = same ? so_far->score : HUGE_VAL,
                          .other = same ? so_far->segment : NULL };
    else if (same && score < so_far->rival) {
        so_far->rival = score;
        so_far->other = segment;
    }
}

/* ---- One piece on every candidate --------------------------------------- */

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
    const uint32_t most = with->costing->threads_most;
    cg_option option;
    cellgate_status status;

    if (offer->segment == NULL || (most > 0 && offer->threads > most))
        return CELLGATE_OK;
    status =
        cg_segment_option_once(with->costing, offer->segment, &option, error);
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

        if (cg_candidate_ready(candidate) && !candidate->left_out &&
            (costing->only == NULL || costing->only == candidate->engine))
            status = cg_offers_visit(&session->pool, candidate->engine, nodes,
                                     count, try_offer, &with, error);
    }
    return status;
}

/* ---- The chain ---------------------------------------------------------- */

/* From the last node to the first: what is best from each on. */
static cellgate_status solve_within(cg_costing *costing, const size_t *nodes,
                                    size_t longest, best *from,
                                    cellgate_error *error)
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

/* Where one device alone cannot do the chain, or is not measured, all may. */
static cellgate_status solve(cg_costing *costing, const size_t *nodes,
                             size_t longest, best *from, cellgate_error *error)
{
    const cg_engine *only = costing->only;
    const uint32_t most = costing->threads_most;
    cellgate_status status = solve_within(costing, nodes, longest, from, error);

    if (status != CELLGATE_OK || from[0].segment != NULL ||
        (only == NULL && most == 0))
        return status;
    costing->only = NULL;
    costing->threads_most = 0;
    status = solve_within(costing, nodes, longest, from, error);
    costing->only = only;
    costing->threads_most = most;
    return status;
}

static void add_to_route(cg_costing *costing, const best *first)
{
    cg_route *route = &costing->route;
    const double seconds = first->cost.seconds;
    const double error =
        route->cost.seconds > 0 ? route->cost.error * route->cost.seconds : 0;

    route->measured = true;
    route->once += (float)first->once;
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
    cg_greedy greedy = { &session->pool, primary->engine, NULL };

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
