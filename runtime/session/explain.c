/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellgate_explain(): the choice by cost for a shape, with all that it was made
 * from.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/session/append.h"
#include "runtime/session/call.h"
#include "runtime/session/explain_shapes.h"
#include "runtime/session/explanation.h"
#include "runtime/session/offers.h"
#include "runtime/session/once.h"
#include "runtime/session/pieces.h"
#include "runtime/session/split.h"

/* What the making of an explanation knows. */
typedef struct explaining {
    cellgate_session *session;
    cellgate_explanation *made;
    const cellgate_question *question;
    cg_costing costing;
    uint32_t piece;
    const char *nodes;             /* of the piece */
    const cg_candidate *candidate; /* whose offers are visited */
} explaining;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to explain a decision");
}

static void set_cost(cg_explanation_line *at, const cg_cost *cost)
{
    at->info.estimate = (int32_t)cost->kind;
    if (cost->kind == CG_COST_NONE)
        return;
    at->info.seconds = cost->seconds;
    at->info.error = cost->error;
    at->info.samples = cost->samples;
    at->info.measured = cost->at;
}

static const char *why_not(const cg_option *option)
{
    if (option->excluded != NULL)
        return option->excluded;
    return option->cost.kind == CG_COST_NONE ? "it is not measured" : "";
}

/* As a request of that variant would wait for it. */
static double wait_for(const cg_offer *offer)
{
    const uint32_t threads = offer->threads > 0 ? offer->threads : 1;

    return cg_load_wait(offer->engine->load, threads);
}

/* ---- Candidates --------------------------------------------------------- */

static cellgate_status set_once(const explaining *of, const cg_offer *offer,
                                cellgate_candidate_info *info,
                                cellgate_error *error)
{
    cg_cost_candidate candidate;
    cellgate_status status =
        cg_once_opening(of->session, of->candidate, &info->opening, error);

    if (status == CELLGATE_OK && offer->segment != NULL)
        status = cg_segment_candidate(offer->segment, &candidate, error);
    if (status == CELLGATE_OK && offer->segment != NULL)
        status = cg_once_preparing(of->session, offer->segment, &candidate,
                                   &info->preparing, error);
    return status;
}

static cellgate_status explain_offer(void *context, const cg_offer *offer,
                                     cellgate_error *error)
{
    explaining *of = context;
    const char *device = cg_device_name(offer->engine->device);
    cellgate_error refusal = CELLGATE_ERROR_INIT;
    cg_option option = { .excluded = offer->refusal };
    cellgate_status status = CELLGATE_OK;
    cg_explanation_line *added;

    if (offer->segment != NULL)
        status = cg_segment_option(&of->costing, offer->segment, &option,
                                   &refusal, error);
    if (status == CELLGATE_OK)
        status =
            cg_explanation_add(of->made, of->piece, of->nodes, device,
                               offer->variant, why_not(&option), &added, error);
    if (status != CELLGATE_OK)
        return status;
    added->segment = offer->segment;
    added->runs = offer->segment != NULL && option.excluded == NULL;
    added->info.threads = offer->threads;
    added->info.wait = wait_for(offer);
    snprintf(added->info.note, sizeof added->info.note, "%s", offer->note);
    set_cost(added, &option.cost);
    return set_once(of, offer, &added->info, error);
}

static cellgate_status add_refusal(explaining *of,
                                   const cg_candidate *candidate,
                                   const char *why, cellgate_error *error)
{
    cg_explanation_line *added;

    return cg_explanation_add(of->made, of->piece, of->nodes,
                              cg_candidate_name(candidate), "", why, &added,
                              error);
}

static cellgate_status explain_device(explaining *of,
                                      const cg_candidate *candidate,
                                      const cg_piece *piece,
                                      cellgate_error *error)
{
    cellgate_error why = CELLGATE_ERROR_INIT;

    if (candidate->device == NULL)
        return CELLGATE_OK;
    if (cg_device_usable(candidate->device, &why) != CELLGATE_OK)
        return add_refusal(of, candidate, why.text, error);
    if (!candidate->opened)
        return add_refusal(of, candidate,
                           "it cannot be opened; the log says why", error);
    of->candidate = candidate;
    return cg_offers_visit(&of->session->pool, candidate->engine, piece->nodes,
                           piece->count, explain_offer, of, error);
}

/* "lstm, dense"; malloc'ed. */
static char *names_of(const cg_graph *graph, const cg_piece *piece)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL)
        return NULL;
    for (size_t at = 0; at < piece->count; at++)
        fprintf(to, "%s%s", at > 0 ? ", " : "",
                graph->nodes[piece->nodes[at]].name);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

static cellgate_status explain_piece(explaining *of, const cg_piece *piece,
                                     cellgate_error *error)
{
    cellgate_session *session = of->session;
    const size_t first = of->made->count;
    char *names = names_of(&session->graph, piece);
    cellgate_status status = names != NULL ? CELLGATE_OK : no_memory(error);

    of->nodes = names;
    for (size_t at = 0; status == CELLGATE_OK && at < session->candidate_count;
         at++)
        status = explain_device(of, &session->candidates[at], piece, error);
    cg_explanation_runners_first(of->made, first);
    of->piece++;
    free(names);
    return status;
}

/* ---- The decision ------------------------------------------------------- */

static bool same_candidate(const cg_segment *a, const cg_segment *b)
{
    return a->engine == b->engine &&
           strcmp(a->variant.name, b->variant.name) == 0;
}

static bool mark_chosen(cellgate_explanation *made, const cg_segment *segment)
{
    bool found = false;

    for (size_t at = 0; at < made->count; at++)
        if (made->lines[at].segment == segment) {
            made->lines[at].info.chosen = 1;
            found = true;
        }
    return found;
}

/* What was measured of another model may cut this one in other places. */
static cellgate_status tell_segment(explaining *of, const cg_segment *segment,
                                    cellgate_error *error)
{
    const cg_piece piece = { .nodes = segment->nodes,
                             .count = segment->node_count };
    cellgate_status status;

    if (mark_chosen(of->made, segment))
        return CELLGATE_OK;
    status = explain_piece(of, &piece, error);
    if (status == CELLGATE_OK)
        (void)mark_chosen(of->made, segment);
    return status;
}

static cellgate_status tell_choice(explaining *of, const cg_partition *cut,
                                   cellgate_error *error)
{
    cellgate_explanation *made = of->made;
    const cg_segment *before = NULL;
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < cut->count; at++) {
        const cg_segment *segment = cut->parts[at].segment;

        if (segment == NULL) {
            made->decision.host_parts++;
            continue;
        }
        status = tell_segment(of, segment, error);
        if (before == NULL || !same_candidate(before, segment))
            cg_append(made->choice, sizeof made->choice, "%s%s %s",
                      made->choice[0] != '\0' ? " + " : "",
                      cg_device_name(segment->engine->device),
                      segment->variant.name);
        before = segment;
    }
    if (made->choice[0] == '\0')
        snprintf(made->choice, sizeof made->choice, "host");
    return status;
}

static const cg_candidate *candidate_of(const cellgate_session *session,
                                        const cg_engine *engine)
{
    const cg_candidate *at = session->candidates;

    while (at->engine != engine)
        at++;
    return at;
}

/* What the choice's devices take to be opened and its weights to be laid out.
 */
static cellgate_status tell_once(explaining *of, const cg_cut *cut,
                                 cellgate_error *error)
{
    cellgate_decision *decision = &of->made->decision;
    cellgate_status status = CELLGATE_OK;
    cg_cost_candidate candidate;
    double seconds;

    for (size_t at = 0; status == CELLGATE_OK && at < cut->engine_count; at++) {
        status = cg_once_opening(of->session,
                                 candidate_of(of->session, cut->engines[at]),
                                 &seconds, error);
        decision->once += status == CELLGATE_OK ? seconds : 0;
    }
    for (size_t at = 0; status == CELLGATE_OK && at < cut->partition.count;
         at++) {
        const cg_segment *segment = cut->partition.parts[at].segment;

        if (segment == NULL)
            continue;
        status = cg_segment_candidate(segment, &candidate, error);
        if (status == CELLGATE_OK)
            status = cg_once_preparing(of->session, segment, &candidate,
                                       &seconds, error);
        decision->once += status == CELLGATE_OK ? seconds : 0;
    }
    return status;
}

/* Those whose devices would not even be opened. */
static cellgate_status tell_left_out(explaining *of, const cg_pin *pin,
                                     cellgate_error *error)
{
    cellgate_explanation *made = of->made;
    cellgate_status status = CELLGATE_OK;
    const double requests = of->costing.policy.expected_requests;

    for (size_t at = 0; status == CELLGATE_OK && at < made->count; at++) {
        cg_explanation_line *line = &made->lines[at];
        char why[200];

        if (line->excluded[0] != '\0' || line->segment == NULL ||
            !candidate_of(of->session, line->segment->engine)->left_out)
            continue;
        snprintf(
            why, sizeof why,
            "opening its device takes %lld us, and what is open answers "
            "%.15g request%s in %lld us",
            (long long)(line->info.opening * 1e6 + 0.5), requests,
            requests == 1 ? "" : "s",
            (long long)((double)pin->ways[0].seconds * requests * 1e6 + 0.5));
        status = cg_explanation_exclude(line, why, error);
    }
    return status;
}

static void tell_route(cellgate_explanation *made, const cg_route *route)
{
    cellgate_decision *decision = &made->decision;

    decision->seconds = route->cost.seconds;
    decision->error = route->cost.error;
    decision->estimate = (int32_t)route->cost.kind;
    decision->ahead = route->ahead;
    decision->kept = route->kept;
    decision->needed = (double)route->needed;
    if (route->ahead > 0)
        snprintf(made->rival, sizeof made->rival, "%s %s",
                 cg_device_name(route->rival->engine->device),
                 route->rival->variant.name);
    cg_route_text(route, made->reason, sizeof made->reason);
}

/* What no cost led to. */
static cellgate_status tell_placed(explaining *of, cg_placement *placement,
                                   bool masked, cellgate_error *error)
{
    const cg_partition *partition;
    cellgate_status status =
        cg_placement_partition(placement, masked, &partition, error);

    if (status != CELLGATE_OK)
        return status;
    snprintf(of->made->reason, sizeof of->made->reason, "%s",
             placement->reason);
    return tell_choice(of, partition, error);
}

/* The choice, or the two ways that share the rows. */
static cellgate_status tell_pin(explaining *of, const cg_pin *pin,
                                cellgate_error *error)
{
    cellgate_explanation *made = of->made;
    cellgate_status status =
        tell_choice(of, &pin->ways[0].cut->partition, error);

    tell_route(made, &pin->route);
    if (status == CELLGATE_OK)
        status = tell_once(of, pin->ways[0].cut, error);
    if (status == CELLGATE_OK)
        status = tell_left_out(of, pin, error);
    if (status != CELLGATE_OK || pin->split.other == 0)
        return status;
    made->decision.seconds = (double)pin->split.seconds;
    cg_split_text(pin, made->reason, sizeof made->reason);
    return tell_choice(of, &pin->ways[pin->split.other].cut->partition, error);
}

/* What requests of that shape are pinned to; *found: anything. */
static cellgate_status find_pinned(const explaining *of, bool masked,
                                   cg_pin *pin, bool *found,
                                   cellgate_error *error)
{
    static const int32_t none = 0;
    const cellgate_model *model = of->session->model;
    cellgate_input *inputs = calloc(model->input_count, sizeof *inputs);
    const cellgate_request request = { .struct_size = sizeof request,
                                       .inputs = inputs,
                                       .input_count = model->input_count };
    cg_call call = { .request = &request, .masked = masked };

    if (inputs == NULL)
        return no_memory(error);
    for (size_t at = 0; at < model->input_count; at++) {
        cg_explain_input(&model->values[model->inputs[at].value], of->question,
                         &inputs[at]);
        inputs[at].lengths = masked ? &none : NULL;
    }
    *found = cg_router_find(of->session->router, &call, of->costing.fill, pin);
    free(inputs);
    return CELLGATE_OK;
}

static cellgate_status tell_routed(explaining *of, cg_placement *first,
                                   bool masked, cellgate_error *error)
{
    cg_cut **cuts = cg_router_cuts(of->session->router);
    cg_pin before, pin;
    bool pinned = false;
    cellgate_status status = find_pinned(of, masked, &before, &pinned, error);

    if (status == CELLGATE_OK)
        status = cg_once_decide(&of->costing, cuts, masked,
                                pinned ? &before : NULL, &pin, error);
    if (status != CELLGATE_OK)
        return status;
    if (pin.way_count == 0)
        return tell_placed(of, first, masked, error);
    if (pinned && before.way_count > 0 && before.ways[0].cut == pin.ways[0].cut)
        of->made->decision.pinned = before.since;
    return tell_pin(of, &pin, error);
}

static cellgate_status tell_decision(explaining *of, bool masked,
                                     cellgate_error *error)
{
    cellgate_session *session = of->session;
    const cellgate_decision *decision = &of->made->decision;
    cg_rule *rule =
        cg_rules_find(&session->rules, decision->batch, decision->steps);
    cg_placement *first;
    cellgate_status status;

    if (rule != NULL) {
        status = cg_rule_placement_held(rule, session, &first, error);
        return status == CELLGATE_OK ? tell_placed(of, first, masked, error)
                                     : status;
    }
    status =
        cg_session_placement_held(session, session->primary, &first, error);
    if (status != CELLGATE_OK)
        return status;
    if (session->router == NULL)
        return tell_placed(of, first, masked, error);
    return tell_routed(of, first, masked, error);
}

/* What the estimates lack. */
static void tell_trouble(explaining *of)
{
    cellgate_error trouble = CELLGATE_ERROR_INIT;

    if (cg_cost_book_trouble(of->session->book, &trouble) != CELLGATE_OK)
        cg_append(of->made->reason, sizeof of->made->reason, "; %s",
                  trouble.text);
}

/* ---- The public functions ----------------------------------------------- */

static cellgate_status explain(explaining *of,
                               const cellgate_question *question,
                               cellgate_error *error)
{
    cellgate_session *session = of->session;
    cellgate_decision *decision = &of->made->decision;
    cg_piece_list list = { .count = 0 };
    cg_shape *shapes = calloc(session->graph.value_count + 1, sizeof *shapes);
    cellgate_status status =
        shapes == NULL ? no_memory(error)
                       : cg_explain_shapes(&session->graph, question, shapes,
                                           &decision->steps, error);

    of->question = question;
    of->costing.shapes = shapes;
    decision->batch = question->batch;
    pthread_mutex_lock(&session->mutex);
    if (status == CELLGATE_OK)
        status = cg_pieces_list(session, &list, error);
    for (size_t at = 0; status == CELLGATE_OK && at < list.count; at++)
        status = explain_piece(of, &list.pieces[at], error);
    if (status == CELLGATE_OK)
        status = tell_decision(of, question->fill < 1, error);
    pthread_mutex_unlock(&session->mutex);
    tell_trouble(of);
    decision->pieces = of->piece;
    cg_pieces_free(&list);
    free(shapes);
    return status;
}

static cellgate_status read_question(const cellgate_session *session,
                                     const cellgate_question *question,
                                     cellgate_question *read,
                                     cellgate_error *error)
{
    *read = (cellgate_question){ .struct_size = sizeof *read };
    if (session == NULL || question == NULL ||
        !cg_given_known(question, CG_FIRST_QUESTION, sizeof *read))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "an explanation needs a session and a question "
                             "that this libcellgate knows");
    cellgate_struct_copy(read, question);
    if (read->fill == 0)
        read->fill = 1;
    if (!(read->fill > 0 && read->fill <= 1))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a fill of %g is not in (0, 1]", read->fill);
    if (read->fill < 1 && !cg_explain_takes_lengths(session->model))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "no layer of the model would look at lengths");
    return CELLGATE_OK;
}

cellgate_status cellgate_explain(cellgate_session *session,
                                 const cellgate_question *question,
                                 cellgate_explanation **explanation,
                                 cellgate_error *error)
{
    explaining of = { .session = session };
    cellgate_question read;
    cellgate_status status = cg_process_check(error);

    if (status == CELLGATE_OK)
        status = read_question(session, question, &read, error);
    if (status != CELLGATE_OK)
        return status;
    of.made = calloc(1, sizeof *of.made);
    if (of.made == NULL)
        return no_memory(error);
    of.costing.session = session;
    of.costing.fill = read.fill;
    of.costing.asks = true;
    cg_route_settings(session, &of.costing.regime, &of.costing.policy);
    of.made->decision.regime = cg_regime_name(of.costing.regime);
    if (cg_once_counts(&of.costing.policy))
        of.made->decision.expected_requests =
            of.costing.policy.expected_requests;
    status = explain(&of, &read, error);
    if (status == CELLGATE_OK)
        *explanation = of.made;
    else
        cellgate_explanation_destroy(of.made);
    return status;
}
