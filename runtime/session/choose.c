/* SPDX-License-Identifier: Apache-2.0 */
/* The cut of a chain, and its candidates, by predicted cost. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

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

static const char *numeric_name(int32_t numeric)
{
    switch (numeric) {
#define NUMERIC_CASE(name, value, text)                                        \
    case CELLGATE_##name:                                                      \
        return text;
        CELLGATE_NUMERIC_LIST(NUMERIC_CASE)
#undef NUMERIC_CASE
    default:
        return "?";
    }
}

cellgate_status cg_segment_candidate(const cg_segment *segment,
                                     cg_cost_candidate *candidate,
                                     cellgate_error *error)
{
    cg_device *device = segment->engine->device;
    cg_device_identity identity;
    cellgate_status status = cg_device_identify(device, &identity, error);

    if (status != CELLGATE_OK)
        return status;
    *candidate =
        (cg_cost_candidate){ .device = cg_device_name(device),
                             .plugin = identity.plugin,
                             .build = identity.build,
                             .identity = identity.identity,
                             .settings = identity.settings,
                             .variant = segment->variant.name,
                             .numeric = numeric_name(segment->variant.numeric),
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

static bool fits(const cg_segment *segment, const cg_cost_shape *shape)
{
    const cellgate_shape wanted = { sizeof wanted, shape->batch, shape->steps };
    cellgate_error refusal = CELLGATE_ERROR_INIT;

    return cg_segment_fits(segment, &wanted, &refusal) == CELLGATE_OK;
}

static cellgate_status cost_of(const cg_costing *costing,
                               const cg_segment *segment, cg_option *option,
                               cellgate_error *error)
{
    cg_cost_book *book = costing->session->book;
    cg_cost_verdict verdict;
    cg_cost_candidate candidate;
    cg_cost_shape shape;
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    memset(option, 0, sizeof *option);
    option->share = (double)segment->variant.threads /
                    fmax(cg_device_thread_budget(segment->engine->device), 1);
    if (segment->engine->staged)
        option->share = 1.0 / segment->engine->queue_depth;
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
    if (verdict.checked && !verdict.right)
        option->excluded = "its results were wrong";
    else if (option->cost.kind != CG_COST_NONE && !fits(segment, &shape))
        option->excluded = "it does not take this shape";
    return CELLGATE_OK;
}

/* Takes a candidate for the piece if it is the best so far. */
static void compare(const cg_costing *costing, const cg_option *option,
                    cg_segment *segment, const best *after, best *so_far)
{
    const double score =
        cg_option_score(option, &costing->policy) + after->score;

    if (isinf(score))
        return;
    if (score < so_far->score) {
        /* The one before is the rival only where it does the same piece. */
        const bool same = so_far->segment != NULL &&
                          so_far->segment->node_count == segment->node_count;

        *so_far = (best){ .score = score,
                          .seconds = option->cost.seconds + after->seconds,
                          .variance =
                              after->variance +
                              pow(option->cost.seconds * option->cost.error, 2),
                          .segment = segment,
                          .cost = option->cost,
                          .rival = same ? so_far->score : so_far->rival,
                          .other = same ? so_far->segment : so_far->other };
    } else if (score < so_far->rival) {
        so_far->rival = score;
        so_far->other = segment;
    }
}

/* ---- One piece on every candidate
 * -------------------------------------------- */

static bool may_run(const cg_engine *engine, const cellgate_variant *variant)
{
    return variant->numeric == CELLGATE_NUMERIC_F32 &&
           variant->threads <= cg_device_thread_budget(engine->device);
}

static cellgate_status try_variant(cg_costing *costing, const cg_engine *engine,
                                   const size_t *nodes, size_t count,
                                   const cellgate_variant *variant,
                                   const best *after, best *so_far,
                                   cellgate_error *error)
{
    cg_segment *segment;
    cg_option option;
    cellgate_status status =
        cg_segment_pool_get(&costing->session->pool, engine, nodes, count,
                            variant, NULL, &segment, error);

    if (status == CELLGATE_OK)
        status = cost_of(costing, segment, &option, error);
    if (status == CELLGATE_OK)
        compare(costing, &option, segment, after, so_far);
    return status;
}

/* A device that refuses the piece, or fails to say, has no variant of it. */
static cellgate_status try_engine(cg_costing *costing, const cg_engine *engine,
                                  const size_t *nodes, size_t count,
                                  const best *after, best *so_far,
                                  cellgate_error *error)
{
    cellgate_error refusal = CELLGATE_ERROR_INIT;
    cellgate_variant variant;
    cg_segment *first;
    cellgate_status status =
        cg_segment_pool_get(&costing->session->pool, engine, nodes, count, NULL,
                            NULL, &first, &refusal);

    if (status != CELLGATE_OK)
        return status == CELLGATE_NO_MEMORY
                   ? cellgate_fail(error, status, "%s", refusal.text)
                   : CELLGATE_OK;
    for (uint32_t index = 0; status == CELLGATE_OK &&
                             cg_segment_variant(first, NULL, index, &variant,
                                                &refusal) == CELLGATE_OK;
         index++) {
        variant.name[sizeof variant.name - 1] = '\0';
        variant.threads = variant.threads > 0 ? variant.threads : 1;
        if (may_run(engine, &variant))
            status = try_variant(costing, engine, nodes, count, &variant, after,
                                 so_far, error);
    }
    return status;
}

static cellgate_status try_piece(cg_costing *costing, const size_t *nodes,
                                 size_t count, const best *after, best *so_far,
                                 cellgate_error *error)
{
    cellgate_session *session = costing->session;
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < session->candidate_count;
         at++) {
        const cg_candidate *candidate = &session->candidates[at];

        if (candidate->opened &&
            cg_device_usable(candidate->device, NULL) == CELLGATE_OK)
            status = try_engine(costing, &candidate->engine, nodes, count,
                                after, so_far, error);
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
