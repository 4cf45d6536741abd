/* SPDX-License-Identifier: Apache-2.0 */
/* Which pieces of a model are measured, and on what. */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/offers.h"
#include "runtime/session/pieces.h"

/* Collects pieces; the context of a chooser that cuts nothing itself. */
typedef struct collecting {
    cellgate_session *session;
    cg_piece_list *list;
    bool *seen; /* nodes of the chains so far */
} collecting;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to list what is to be measured");
}

void cg_pieces_free(cg_piece_list *list)
{
    for (size_t at = 0; at < list->count; at++) {
        free(list->pieces[at].nodes);
        free(list->pieces[at].segments);
    }
    free(list->pieces);
    memset(list, 0, sizeof *list);
}

/* ---- Candidates of a piece ---------------------------------------------- */

static cellgate_status add_segment(cg_piece *piece, cg_segment *segment,
                                   cellgate_error *error)
{
    cg_segment **grown;

    for (size_t at = 0; at < piece->segment_count; at++)
        if (piece->segments[at] == segment)
            return CELLGATE_OK;
    grown = realloc(piece->segments,
                    (piece->segment_count + 1) * sizeof(cg_segment *));
    if (grown == NULL)
        return no_memory(error);
    piece->segments = grown;
    piece->segments[piece->segment_count++] = segment;
    return CELLGATE_OK;
}

static cellgate_status add_offer(void *context, const cg_offer *offer,
                                 cellgate_error *error)
{
    return offer->segment != NULL ? add_segment(context, offer->segment, error)
                                  : CELLGATE_OK;
}

/* ---- Pieces ------------------------------------------------------------- */

static bool has_piece(const cg_piece_list *list, const size_t *nodes,
                      size_t count)
{
    for (size_t at = 0; at < list->count; at++)
        if (list->pieces[at].count == count &&
            memcmp(list->pieces[at].nodes, nodes, count * sizeof *nodes) == 0)
            return true;
    return false;
}

static cellgate_status add_piece(collecting *to, const size_t *nodes,
                                 size_t count, cellgate_error *error)
{
    cg_piece_list *list = to->list;
    cellgate_session *session = to->session;
    cellgate_status status = CELLGATE_OK;
    cg_piece *grown, *piece;

    if (has_piece(list, nodes, count))
        return CELLGATE_OK;
    grown = realloc(list->pieces, (list->count + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(error);
    list->pieces = grown;
    piece = &list->pieces[list->count++];
    memset(piece, 0, sizeof *piece);
    piece->nodes = malloc(count * sizeof *nodes);
    if (piece->nodes == NULL)
        return no_memory(error);
    memcpy(piece->nodes, nodes, count * sizeof *nodes);
    piece->count = count;
    for (size_t at = 0; status == CELLGATE_OK && at < session->candidate_count;
         at++)
        if (cg_candidate_ready(&session->candidates[at]))
            status = cg_offers_visit(
                &session->pool, session->candidates[at].engine, piece->nodes,
                piece->count, add_offer, piece, error);
    return status;
}

/* Marks where an engine's greedy segments of a chain begin; one that fails to
   say has no more of them. */
static cellgate_status mark_cuts(collecting *to, const cg_engine *engine,
                                 const size_t *nodes, size_t longest,
                                 bool *cuts, cellgate_error *error)
{
    cg_greedy greedy = { &to->session->pool, engine, NULL };

    for (size_t at = 0; at < longest;) {
        cellgate_status status;
        cellgate_error cause = CELLGATE_ERROR_INIT;
        cg_choice choice = { .segment = NULL };

        cuts[at] = true;
        status = cg_choose_greedily(&greedy, nodes + at, longest - at, &choice,
                                    &cause);
        if (status == CELLGATE_NO_MEMORY)
            return no_memory(error);
        if (status != CELLGATE_OK)
            return CELLGATE_OK;
        at += choice.segment != NULL ? choice.segment->node_count : 1;
    }
    return CELLGATE_OK;
}

/* Every stretch from one cut to another. */
static cellgate_status add_stretches(collecting *to, const size_t *nodes,
                                     size_t longest, const bool *cuts,
                                     cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t from = 0; from < longest; from++)
        for (size_t end = from + 1;
             status == CELLGATE_OK && cuts[from] && end <= longest; end++)
            if (end == longest || cuts[end])
                status = add_piece(to, nodes + from, end - from, error);
    return status;
}

static cellgate_status collect(void *context, const size_t *nodes,
                               size_t longest, cg_choice *choice,
                               cellgate_error *error)
{
    collecting *to = context;
    cellgate_session *session = to->session;
    cellgate_status status = CELLGATE_OK;
    bool *cuts;

    /* The partition goes on with the chain's next node: all is done. */
    choice->segment = NULL;
    if (to->seen[nodes[0]])
        return CELLGATE_OK;
    cuts = calloc(longest + 1, sizeof *cuts);
    if (cuts == NULL)
        return no_memory(error);
    for (size_t at = 0; at < longest; at++)
        to->seen[nodes[at]] = true;
    for (size_t at = 0; status == CELLGATE_OK && at < session->candidate_count;
         at++)
        if (cg_candidate_ready(&session->candidates[at]))
            status = mark_cuts(to, session->candidates[at].engine, nodes,
                               longest, cuts, error);
    if (status == CELLGATE_OK)
        status = add_stretches(to, nodes, longest, cuts, error);
    free(cuts);
    return status;
}

cellgate_status cg_pieces_list(cellgate_session *session, cg_piece_list *list,
                               cellgate_error *error)
{
    collecting to = { .session = session, .list = list };
    const cg_chooser chooser = { collect, &to };
    cg_partition ignored;
    cellgate_status status;

    memset(list, 0, sizeof *list);
    to.seen = calloc(session->graph.node_count + 1, sizeof *to.seen);
    if (to.seen == NULL)
        return no_memory(error);
    cg_session_open_all(session);
    status = cg_partition_init(&ignored, &session->graph, &chooser, "", false,
                               error);
    free(to.seen);
    if (status == CELLGATE_OK)
        cg_partition_finish(&ignored);
    else
        cg_pieces_free(list);
    return status;
}
