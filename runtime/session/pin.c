/* SPDX-License-Identifier: Apache-2.0 */
/* What is pinned for a class of requests: the ways, and which is the best. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/schedule/dispatch.h"
#include "runtime/session/session.h"
#include "runtime/session/split.h"

/* A way that is weighed. */
typedef struct weighed {
    cg_way way;
    cg_cost cost;
    const cg_segment *longest;
    double longest_seconds;
} weighed;

/* What the making of a pin knows. */
typedef struct weighing {
    cg_costing *costing;
    cg_cut **cuts;
    bool masked;
    weighed *of;
    cg_option *options; /* of each */
    size_t count;
} weighing;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to choose devices");
}

/* ---- One way ------------------------------------------------------------ */

static void add_on_device(cg_way *way, const cg_engine *engine, double seconds)
{
    for (size_t at = 0; at < way->cut->engine_count; at++)
        if (way->cut->engines[at] == engine)
            way->on[at] += (float)seconds;
}

static bool has_part(const cg_cut *cut, const cg_segment *segment)
{
    for (size_t at = 0; at < cut->partition.count; at++)
        if (cut->partition.parts[at].segment == segment)
            return true;
    return false;
}

/*
 * Adds a segment to a way's cost. One that nothing is known of excludes the
 * way, unless the best one has it too: where nothing at all is known of a
 * chain, it goes one way.
 */
static void add_segment(const weighing *all, const cg_segment *segment,
                        const cg_option *known, weighed *of, cg_option *option)
{
    const double seconds = known->cost.seconds, before = of->cost.seconds;
    cg_cost *cost = &of->cost;

    if (known->excluded != NULL) {
        option->excluded = "";
        return;
    }
    if (known->cost.kind == CG_COST_NONE) {
        if (!has_part(all->of[0].way.cut, segment))
            option->excluded = "";
        return;
    }
    option->share =
        (option->share * before + known->share * seconds) / (before + seconds);
    cost->error = hypot(cost->error * before, known->cost.error * seconds) /
                  (before + seconds);
    cost->seconds += seconds;
    option->once += known->once;
    if (cost->kind == CG_COST_NONE || known->cost.kind < cost->kind)
        cost->kind = known->cost.kind;
    if (seconds > of->longest_seconds) {
        of->longest = segment;
        of->longest_seconds = seconds;
        cost->samples = known->cost.samples;
    }
    add_on_device(&of->way, segment->engine, seconds);
}

static cellgate_status weigh(weighing *all, cg_cut *cut, cellgate_error *error)
{
    weighed *of = &all->of[all->count];
    cg_option *option = &all->options[all->count];
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; at < all->count; at++)
        if (all->of[at].way.cut == cut)
            return CELLGATE_OK;
    memset(of, 0, sizeof *of);
    memset(option, 0, sizeof *option);
    of->way.cut = cut;
    for (size_t at = 0; status == CELLGATE_OK && at < cut->partition.count;
         at++) {
        const cg_segment *segment = cut->partition.parts[at].segment;
        cg_option known;

        if (segment == NULL)
            continue;
        status = cg_segment_option_once(all->costing, segment, &known, error);
        if (status == CELLGATE_OK)
            add_segment(all, segment, &known, of, option);
    }
    of->way.seconds = (float)of->cost.seconds;
    of->way.kind = of->cost.kind;
    option->cost = of->cost;
    all->count += status == CELLGATE_OK;
    return status;
}

/* ---- All ways ----------------------------------------------------------- */

static cellgate_status cut_by_cost(weighing *all, cellgate_error *error)
{
    const cg_chooser chooser = { cg_choose_by_cost, all->costing };
    cg_partition partition;
    cellgate_status status =
        cg_partition_init(&partition, &all->costing->session->graph, &chooser,
                          "", all->masked, error);
    cg_cut *cut;

    if (status != CELLGATE_OK)
        return status;
    if (!all->costing->route.measured) {
        cg_partition_finish(&partition);
        return CELLGATE_OK;
    }
    cut = cg_cuts_put(all->cuts, &partition, all->masked);
    if (cut == NULL) {
        cg_partition_finish(&partition);
        return no_memory(error);
    }
    return weigh(all, cut, error);
}

/* The best way within a device, and with so many threads. */
static cellgate_status cut_within(weighing *all, const cg_engine *only,
                                  uint32_t threads_most, cellgate_error *error)
{
    cg_costing within = *all->costing;
    cg_costing *whole = all->costing;
    cellgate_status status;

    within.only = only;
    within.threads_most = threads_most;
    memset(&within.route, 0, sizeof within.route);
    within.longest = 0;
    all->costing = &within;
    status = cut_by_cost(all, error);
    all->costing = whole;
    return status;
}

static cellgate_status cut_for_each(weighing *all, cellgate_error *error)
{
    cellgate_session *session = all->costing->session;
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < session->candidate_count;
         at++) {
        const cg_candidate *candidate = &session->candidates[at];

        if (!cg_candidate_ready(candidate) || candidate->left_out)
            continue;
        status = cut_within(all, candidate->engine, 0, error);
        if (status == CELLGATE_OK && !candidate->engine->staged &&
            cg_device_thread_budget(candidate->device) > 1)
            status = cut_within(all, candidate->engine, 1, error);
    }
    return status;
}

/* ---- The pin ------------------------------------------------------------ */

static void take(const weighing *all, size_t which, cg_pin *pin)
{
    pin->ways[pin->way_count++] = all->of[which].way;
}

/* The chosen one, and then the others from the best down. */
static void order(weighing *all, size_t chosen, cg_pin *pin)
{
    const cg_policy *policy = &all->costing->policy;

    take(all, chosen, pin);
    all->options[chosen].excluded = "";
    while (pin->way_count < CG_WAYS) {
        double best = HUGE_VAL;
        size_t next = all->count;

        for (size_t at = 0; at < all->count; at++) {
            const double score = cg_option_score(&all->options[at], policy);

            if (score < best) {
                best = score;
                next = at;
            }
        }
        if (next == all->count)
            return;
        take(all, next, pin);
        all->options[next].excluded = "";
    }
}

static void tell_kept(const weighing *all, const cg_decision *decision,
                      cg_route *route)
{
    route->kept = true;
    route->cost = all->of[decision->chosen].cost;
    route->once = (float)all->options[decision->chosen].once;
    route->rival = all->of[decision->rival].longest;
    route->ahead = decision->ahead;
    route->needed = (float)decision->needed;
    route->by_margin =
        decision->needed <= 1 + all->costing->policy.margin + 1e-9;
}

static void decide(weighing *all, const cg_pin *before, cg_pin *pin)
{
    size_t pinned = CG_NO_OPTION;
    cg_decision decision;

    for (size_t at = 0; before != NULL && at < all->count; at++)
        if (all->of[at].way.cut == before->ways[0].cut)
            pinned = at;
    cg_decide(all->options, all->count, pinned, &all->costing->policy,
              &decision);
    if (decision.chosen == CG_NO_OPTION)
        return;
    pin->route = all->costing->route;
    pin->route.requests = all->costing->policy.expected_requests;
    pin->since =
        decision.chosen == pinned ? before->since : (uint32_t)time(NULL);
    if (decision.because == CG_BECAUSE_KEPT)
        tell_kept(all, &decision, &pin->route);
    order(all, decision.chosen, pin);
}

/* Whether all of its devices are in service, in the opening that it is of. */
static bool in_service(const cg_cut *cut)
{
    for (size_t at = 0; at < cut->partition.count; at++) {
        const cg_segment *segment = cut->partition.parts[at].segment;
        const cg_device *device =
            segment != NULL ? segment->engine->device : NULL;

        if (device != NULL &&
            (cg_device_usable(device, NULL) != CELLGATE_OK ||
             segment->engine->epoch != cg_device_epoch(device)))
            return false;
    }
    return true;
}

/* What was pinned is weighed with the others, if it can be taken at all. */
static cellgate_status find_ways(weighing *all, const cg_pin *before,
                                 cellgate_error *error)
{
    cellgate_status status = cut_by_cost(all, error);

    if (status != CELLGATE_OK || all->count == 0)
        return status;
    status = cut_for_each(all, error);
    if (status == CELLGATE_OK && before != NULL &&
        in_service(before->ways[0].cut))
        status = weigh(all, before->ways[0].cut, error);
    return status;
}

cellgate_status cg_pin_decide(cg_costing *costing, cg_cut **cuts, bool masked,
                              const cg_pin *before, cg_pin *pin,
                              cellgate_error *error)
{
    /* The best, two a device, and what was pinned. */
    const size_t most = 2 * costing->session->candidate_count + 2;
    cg_cost_memo memo = { .entries = NULL };
    weighing all = { .costing = costing,
                     .cuts = cuts,
                     .masked = masked,
                     .of = calloc(most, sizeof *all.of),
                     .options = calloc(most, sizeof *all.options) };
    cellgate_status status = CELLGATE_OK;

    memset(pin, 0, sizeof *pin);
    costing->memo = &memo;
    if (before != NULL && before->way_count == 0)
        before = NULL;
    status = all.of != NULL && all.options != NULL
                 ? find_ways(&all, before, error)
                 : no_memory(error);
    if (status == CELLGATE_OK && all.count > 0)
        decide(&all, before, pin);
    if (status == CELLGATE_OK)
        status = cg_split_decide(costing, pin, error);
    pin->narrow = memo.refused;
    costing->memo = NULL;
    cg_cost_memo_finish(&memo);
    free(all.of);
    free(all.options);
    return status;
}

cellgate_status cg_pin_check(const cg_costing *costing,
                             const cg_partition *partition, cg_pin *pin,
                             cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < partition->count; at++) {
        const cg_segment *segment = partition->parts[at].segment;
        cg_cost_candidate candidate;
        cg_cost_verdict verdict = { .checked = false };

        if (segment == NULL)
            continue;
        status = cg_segment_candidate(segment, &candidate, error);
        if (status == CELLGATE_OK)
            status = cg_cost_book_verdict(costing->session->book, &candidate,
                                          segment->structure, &verdict, error);
        if (status == CELLGATE_OK && verdict.checked && !verdict.right)
            pin->wrong = segment;
    }
    return status;
}

/* ---- Its turn ----------------------------------------------------------- */

static void look_at(const cg_way *way, cg_turn *turn)
{
    const cg_cut *cut = way->cut;

    *turn = (cg_turn){ .seconds = (double)way->seconds };
    for (size_t at = 0; at < cut->engine_count; at++) {
        cg_load *load = cut->engines[at]->load;
        const double wait = cg_load_wait(load, cut->places[at]);
        const double rate = (double)cg_load_places(load) / cut->places[at] /
                            fmax((double)way->on[at], 1e-9);

        turn->wait = fmax(turn->wait, wait);
        turn->rate = at == 0 ? rate : fmin(turn->rate, rate);
    }
}

bool cg_way_is_free(const cg_way *way)
{
    const cg_cut *cut = way->cut;

    for (size_t at = 0; at < cut->engine_count; at++)
        if (cg_load_wait(cut->engines[at]->load, cut->places[at]) > 0)
            return false;
    return true;
}

size_t cg_pin_turn(const cg_pin *pin, size_t behind)
{
    cg_turn turns[CG_WAYS];

    if (pin->way_count == 1 || cg_way_is_free(&pin->ways[0]))
        return 0;
    for (size_t at = 0; at < pin->way_count; at++)
        look_at(&pin->ways[at], &turns[at]);
    return cg_dispatch(turns, pin->way_count, behind);
}
