/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the candidates of a piece compute what the host ops do. */
#include "config.h"

#include "runtime/session/once.h"
#include "runtime/session/piece_survey.h"
#include "runtime/session/trial.h"

void cg_piece_survey_exclude(cg_piece_survey *of, size_t at, const char *why)
{
    const cg_segment *segment = of->piece->segments[at];

    of->excluded[at] = true;
    cg_log_line(cg_device_table_log(of->session->table), CELLGATE_LOG_WARNING,
                "%s %s is not measured for %s: %s",
                cg_device_name(segment->engine->device), segment->variant.name,
                segment->names, why);
}

cellgate_status cg_piece_survey_settle(cg_piece_survey *of,
                                       cellgate_status status,
                                       const cellgate_error *cause,
                                       cellgate_error *error)
{
    if (status == CELLGATE_IO || status == CELLGATE_BUSY) {
        of->unkept = *cause;
        return CELLGATE_OK;
    }
    return status == CELLGATE_OK
               ? status
               : cellgate_fail(error, status, "%s", cause->text);
}

/* A small shape that a candidate takes, or the first of the survey's that it
   does; NULL: none, so it is not measured at any. */
static const cg_cost_shape *shape_for(const cg_piece_survey *of, size_t at)
{
    static const cg_cost_shape small = { 3, 5, 1 };

    if (cg_piece_survey_takes(of, at, &small))
        return &small;
    for (size_t cell = 0; cell < of->cell_count; cell++)
        if (cg_piece_survey_takes(of, at, &of->cells[cell]))
            return &of->cells[cell];
    return NULL;
}

static cellgate_status compare(cg_piece_survey *of, size_t at,
                               const cg_cost_shape *shape,
                               cg_cost_verdict *verdict, cellgate_error *cause)
{
    cg_trial *trial = NULL;
    cellgate_status status = cg_trial_create(
        &of->session->pool, of->piece->segments[at], shape->batch, shape->steps,
        true, of->session->watchdog, &trial, cause);

    if (status == CELLGATE_OK)
        status = cg_trial_check(trial, &verdict->right, &verdict->worst, cause);
    cg_trial_destroy(trial);
    verdict->checked = status == CELLGATE_OK;
    return status;
}

/* What takes that shape and cannot be run there is not measured at any. */
static cellgate_status look(cg_piece_survey *of, size_t at,
                            const cg_cost_candidate *candidate,
                            cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_cost_verdict verdict = { .checked = false };
    const cg_cost_shape *shape = shape_for(of, at);
    cellgate_status status = CELLGATE_OK;

    if (shape == NULL)
        return CELLGATE_OK;
    status = compare(of, at, shape, &verdict, &cause);
    if (status != CELLGATE_OK) {
        of->result->failed++;
        cg_piece_survey_exclude(of, at, cause.text);
        return CELLGATE_OK;
    }
    if (!verdict.right) {
        of->result->wrong++;
        cg_piece_survey_exclude(
            of, at, "its results differ from the host's; it is not chosen");
    }
    status = cg_cost_book_put_verdict(of->session->book, candidate,
                                      segment->structure, &verdict, &cause);
    return cg_piece_survey_settle(of, status, &cause, error);
}

/* Lays out its weights, to know how long that takes now: the time before may
   have been that of a device that compiled first. What cannot be laid out will
   say so when it is measured. */
static cellgate_status prepare(cg_piece_survey *of, size_t at,
                               cellgate_error *error)
{
    cg_segment *segment = of->piece->segments[at];
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cellgate_status status;

    if (cg_segment_pool_prepare(&of->session->pool, segment, &cause) !=
        CELLGATE_OK)
        return CELLGATE_OK;
    status = cg_once_keep_preparing(of->session, segment, &cause);
    return cg_piece_survey_settle(of, status, &cause, error);
}

cellgate_status cg_piece_survey_known(const cg_piece_survey *of, size_t at,
                                      bool *known, cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cg_cost_verdict verdict = { .checked = false };
    cg_cost_candidate candidate;
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    if (status == CELLGATE_OK)
        status = cg_cost_book_verdict(of->session->book, &candidate,
                                      segment->structure, &verdict, error);
    *known = verdict.checked && verdict.right;
    return status;
}

cellgate_status cg_piece_survey_check(cg_piece_survey *of, size_t at,
                                      cellgate_error *error)
{
    cg_cost_candidate candidate;
    bool known = false;
    cellgate_status status =
        cg_segment_candidate(of->piece->segments[at], &candidate, error);

    if (status == CELLGATE_OK)
        status = cg_piece_survey_known(of, at, &known, error);
    if (status == CELLGATE_OK && !known)
        status = look(of, at, &candidate, error);
    return status == CELLGATE_OK && !of->excluded[at] ? prepare(of, at, error)
                                                      : status;
}
