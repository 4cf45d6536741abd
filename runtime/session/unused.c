/* SPDX-License-Identifier: Apache-2.0 */
/* cellgate_calibration_unused(): what of the store no candidate matches. */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/once.h"
#include "runtime/session/pieces.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to compare what was measured");
}

/* Who all segments of the pieces are, and the openings of the devices; the
   caller frees the list. Their texts
   are the devices' and the segments'. */
static cellgate_status list_candidates(const cellgate_session *session,
                                       const cg_piece_list *list,
                                       cg_cost_candidate **candidates,
                                       size_t *count, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    cg_cost_candidate *made;
    size_t most = session->candidate_count, made_count = 0;

    for (size_t at = 0; at < list->count; at++)
        most += list->pieces[at].segment_count;
    made = calloc(most + 1, sizeof *made);
    if (made == NULL)
        return no_memory(error);
    for (size_t at = 0; at < list->count; at++)
        for (size_t k = 0;
             status == CELLGATE_OK && k < list->pieces[at].segment_count; k++)
            status = cg_segment_candidate(list->pieces[at].segments[k],
                                          &made[made_count++], error);
    for (size_t at = 0; status == CELLGATE_OK && at < session->candidate_count;
         at++)
        if (cg_candidate_ready(&session->candidates[at]))
            status = cg_once_candidate(session->candidates[at].device,
                                       &made[made_count++], error);
    if (status != CELLGATE_OK) {
        free(made);
        return status;
    }
    *candidates = made;
    *count = made_count;
    return CELLGATE_OK;
}

static void tell_lines(char *text,
                       void (*tell)(void *context, const char *line),
                       void *context)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        tell(context, line);
}

static cellgate_status compare(cg_cost_book *book,
                               const cg_cost_candidate *candidates,
                               size_t count, char **text, size_t *unused,
                               cellgate_error *error)
{
    size_t size;
    FILE *stream = open_memstream(text, &size);
    cellgate_status status;

    if (stream == NULL)
        return no_memory(error);
    status = cg_cost_store_diff(cg_cost_book_lock(book), candidates, count,
                                stream, unused, error);
    cg_cost_book_unlock(book, false);
    if (fclose(stream) != 0 && status == CELLGATE_OK)
        status = no_memory(error);
    return status;
}

cellgate_status cellgate_calibration_unused(
    cellgate_session *session, void (*tell)(void *context, const char *line),
    void *context, uint64_t *unused, cellgate_error *error)
{
    cg_piece_list list = { .count = 0 };
    cg_cost_candidate *candidates = NULL;
    char *text = NULL;
    size_t count = 0, rows = 0;
    cellgate_status status = cg_process_check(error);

    if (status == CELLGATE_OK && (session == NULL || unused == NULL))
        status = cellgate_fail(error, CELLGATE_INVALID,
                               "a session and a place for the number of rows "
                               "are needed");
    if (status != CELLGATE_OK)
        return status;
    pthread_mutex_lock(&session->mutex);
    status = cg_pieces_list(session, &list, error);
    pthread_mutex_unlock(&session->mutex);
    if (status == CELLGATE_OK)
        status = list_candidates(session, &list, &candidates, &count, error);
    if (status == CELLGATE_OK)
        status = compare(session->book, candidates, count, &text, &rows, error);
    if (status == CELLGATE_OK && tell != NULL)
        tell_lines(text, tell, context);
    if (status == CELLGATE_OK)
        *unused = rows;
    free(text);
    free(candidates);
    cg_pieces_free(&list);
    return status;
}
