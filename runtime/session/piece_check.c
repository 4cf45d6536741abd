/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the candidates of a piece compute what the host ops do. */
#include "config.h"

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

static cellgate_status compare(cg_piece_survey *of, size_t at,
                               cg_cost_verdict *verdict, cellgate_error *cause)
{
    cg_trial *trial = NULL;
    cellgate_status status =
        cg_trial_create(&of->session->pool, of->piece->segments[at], 3, 5, true,
                        of->session->watchdog, &trial, cause);

    if (status == CELLGATE_OK)
        status = cg_trial_check(trial, &verdict->right, &verdict->worst, cause);
    cg_trial_destroy(trial);
    verdict->checked = status == CELLGATE_OK;
    return status;
}

/* What cannot even be run at that shape is not measured at any. */
static cellgate_status look(cg_piece_survey *of, size_t at,
                            const cg_cost_candidate *candidate,
                            cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_cost_verdict verdict = { .checked = false };
    cellgate_status status = compare(of, at, &verdict, &cause);

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

cellgate_status cg_piece_survey_check(cg_piece_survey *of, size_t at,
                                      cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cg_cost_verdict verdict = { .checked = false };
    cg_cost_candidate candidate;
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    if (status == CELLGATE_OK)
        status = cg_cost_book_verdict(of->session->book, &candidate,
                                      segment->structure, &verdict, error);
    if (status != CELLGATE_OK || (verdict.checked && verdict.right))
        return status;
    return look(of, at, &candidate, error);
}
