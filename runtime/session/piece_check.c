/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the candidates of a piece compute what the host ops do. */
#include "config.h"

#include <math.h>

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

static cellgate_status compare_once(cg_piece_survey *of, size_t at,
                                    const cg_cost_shape *shape, bool *ragged,
                                    cg_cost_verdict *verdict,
                                    cellgate_error *cause)
{
    cg_trial *trial = NULL;
    bool right = false;
    double worst = 0;
    cellgate_status status = cg_trial_create(
        &of->session->pool, of->piece->segments[at], shape->batch, shape->steps,
        *ragged, of->session->watchdog, &trial, cause);

    if (status == CELLGATE_OK) {
        *ragged = cg_trial_is_ragged(trial);
        status = cg_trial_check(trial, &right, &worst, cause);
    }
    cg_trial_destroy(trial);
    verdict->right = verdict->right && right;
    verdict->worst = fmax(verdict->worst, worst);
    return status;
}

/* Rows of several lengths, and rows that are alike: a device may have a way of
   its own for either. */
static cellgate_status compare(cg_piece_survey *of, size_t at,
                               const cg_cost_shape *shape,
                               cg_cost_verdict *verdict, cellgate_error *cause)
{
    bool ragged = true;
    cellgate_status status;

    *verdict = (cg_cost_verdict){ .right = true };
    status = compare_once(of, at, shape, &ragged, verdict, cause);
    if (status == CELLGATE_OK && ragged) {
        ragged = false;
        status = compare_once(of, at, shape, &ragged, verdict, cause);
    }
    verdict->checked = status == CELLGATE_OK;
    return status;
}

/* Shapes at which a candidate may refuse to run before it is given up. */
#define SHAPES_TRIED 4

/* At a small shape that the candidate takes, or the first of the survey's that
   it does and runs at; END: it takes none, so it is not measured at any. */
static cellgate_status compare_somewhere(cg_piece_survey *of, size_t at,
                                         cg_cost_verdict *verdict,
                                         cellgate_error *cause)
{
    static const cg_cost_shape small = { 3, 5, 1 };
    cellgate_status status = CELLGATE_END;
    int tried = 0;

    for (size_t i = 0; i <= of->cell_count && tried < SHAPES_TRIED; i++) {
        const cg_cost_shape *shape = i == 0 ? &small : &of->cells[i - 1];

        if (!cg_piece_survey_takes(of, at, shape))
            continue;
        tried++;
        status = compare(of, at, shape, verdict, cause);
        if (status != CELLGATE_UNSUPPORTED)
            break;
    }
    return status;
}

/* Keeps what was found of a candidate. */
static cellgate_status put_verdict(cg_piece_survey *of, size_t at,
                                   const cg_cost_candidate *candidate,
                                   const cg_cost_verdict *verdict,
                                   cellgate_error *error)
{
    cellgate_error cause = CELLGATE_ERROR_INIT;
    const cellgate_status status = cg_cost_book_put_verdict(
        of->session->book, candidate, of->piece->segments[at]->structure,
        verdict, &cause);

    return cg_piece_survey_settle(of, status, &cause, error);
}

/* It took its device along, and would do so at each calibration, before others
   have had their turn: that is kept, and the line says how to go without it. */
static cellgate_status broke(cg_piece_survey *of, size_t at,
                             const cg_cost_candidate *candidate,
                             const char *why, cellgate_error *error)
{
    const cg_cost_verdict verdict = { .checked = true,
                                      .worst = CG_VERDICT_BROKE };
    char text[600];

    snprintf(text, sizeof text,
             "%.400s; exclude = %s in the section of the device goes without "
             "the variant",
             why, of->piece->segments[at]->variant.name);
    cg_piece_survey_exclude(of, at, text);
    return put_verdict(of, at, candidate, &verdict, error);
}

static cellgate_status failed(cg_piece_survey *of, size_t at,
                              const cg_cost_candidate *candidate,
                              cellgate_status status, const char *why,
                              cellgate_error *error)
{
    of->result->failed++;
    if (status == CELLGATE_DEVICE_LOST || status == CELLGATE_TIMEOUT)
        return broke(of, at, candidate, why, error);
    cg_piece_survey_exclude(of, at, why);
    return CELLGATE_OK;
}

static cellgate_status look(cg_piece_survey *of, size_t at,
                            const cg_cost_candidate *candidate,
                            cellgate_error *error)
{
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_cost_verdict verdict = { .checked = false };
    cellgate_status status;

    /* Another one of the device may have broken it. */
    if (cg_engine_usable(of->piece->segments[at]->engine, &cause) !=
        CELLGATE_OK) {
        of->result->failed++;
        cg_piece_survey_exclude(of, at, cause.text);
        return CELLGATE_OK;
    }
    status = compare_somewhere(of, at, &verdict, &cause);
    if (status == CELLGATE_END)
        return CELLGATE_OK;
    if (status != CELLGATE_OK)
        return failed(of, at, candidate, status, cause.text, error);
    if (!verdict.right) {
        of->result->wrong++;
        cg_piece_survey_exclude(
            of, at, "its results differ from the host's; it is not chosen");
    }
    return put_verdict(of, at, candidate, &verdict, error);
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

cellgate_status cg_piece_survey_standing(const cg_piece_survey *of, size_t at,
                                         cg_standing *standing,
                                         cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cg_cost_verdict verdict = { .checked = false };
    cg_cost_candidate candidate;
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    if (status == CELLGATE_OK)
        status = cg_cost_book_verdict(of->session->book, &candidate,
                                      segment->structure, &verdict, error);
    *standing = !verdict.checked ? CG_UNCHECKED
                : verdict.right  ? CG_RIGHT
                                 : CG_WRONG;
    return status;
}

cellgate_status cg_piece_survey_check(cg_piece_survey *of, size_t at,
                                      cellgate_error *error)
{
    cg_cost_candidate candidate;
    cg_standing standing = CG_UNCHECKED;
    cellgate_status status =
        cg_segment_candidate(of->piece->segments[at], &candidate, error);

    if (status == CELLGATE_OK)
        status = cg_piece_survey_standing(of, at, &standing, error);
    if (status == CELLGATE_OK && standing != CG_RIGHT)
        status = look(of, at, &candidate, error);
    return status == CELLGATE_OK && !of->excluded[at] ? prepare(of, at, error)
                                                      : status;
}
