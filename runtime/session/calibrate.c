/* SPDX-License-Identifier: Apache-2.0 */
/* cellgate_calibrate(): the survey of each piece of the model. */
#include "config.h"

#include <stdlib.h>

#include "runtime/cost/clock.h"
#include "runtime/given.h"
#include "runtime/session/extents.h"
#include "runtime/session/once.h"
#include "runtime/session/piece_survey.h"

#define GAP 20e-3 /* seconds before each run of the spaced regime */

static cellgate_status read_options(const cellgate_calibration *options,
                                    cellgate_calibration *read,
                                    cellgate_error *error)
{
    *read = (cellgate_calibration){ .struct_size = sizeof *read };
    if (options != NULL) {
        if (!cg_given_known(options, CG_FIRST_ANY, sizeof *read))
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "the calibration has members that this "
                                 "libcellgate does not know");
        cellgate_struct_copy(read, options);
    }
    read->seconds = read->seconds > 0 ? read->seconds : 30;
    return cg_extents_settle("measure", &read->batch_least, &read->batch_most,
                             &read->steps_least, &read->steps_most, error);
}

/* Each piece has an equal part of the time that the ones before it left.
 *unkept: OK, or why something holds for this process alone. */
static cellgate_status measure_pieces(const cg_piece_survey *how,
                                      const cg_piece_list *list,
                                      cellgate_error *unkept,
                                      cellgate_error *error)
{
    const double pieces = (double)list->count;
    const double end = cg_now(&cg_real_clock) + how->options->seconds;
    cellgate_status status = CELLGATE_OK;
    bool stopped = false;

    for (size_t at = 0; status == CELLGATE_OK && !stopped && at < list->count;
         at++) {
        cg_piece_survey of = *how;

        of.piece = &list->pieces[at];
        of.budget = (end - cg_now(&cg_real_clock)) / (pieces - (double)at);
        of.share_from = (double)at / pieces;
        of.share_to = (double)(at + 1) / pieces;
        if (of.piece->segment_count > 0)
            status = cg_piece_survey_run(&of, error);
        if (of.unkept.status != CELLGATE_OK)
            *unkept = of.unkept;
        stopped = of.stopped;
    }
    return status;
}

/* How long opening took, of what this process has opened. */
static cellgate_status keep_openings(cellgate_session *session,
                                     cellgate_error *unkept,
                                     cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    pthread_mutex_lock(&session->mutex);
    for (size_t at = 0; status == CELLGATE_OK && at < session->candidate_count;
         at++) {
        cellgate_error cause = CELLGATE_ERROR_INIT;

        status =
            cg_once_keep_opening(session, &session->candidates[at], &cause);
        if (status == CELLGATE_IO || status == CELLGATE_BUSY) {
            *unkept = cause;
            status = CELLGATE_OK;
        } else if (status != CELLGATE_OK) {
            (void)cellgate_fail(error, status, "%s", cause.text);
        }
    }
    pthread_mutex_unlock(&session->mutex);
    return status;
}

static cellgate_status
measure_regime(cellgate_session *session, cg_regime regime,
               const cellgate_calibration *options, const cg_piece_list *list,
               cellgate_calibration_result *result, cellgate_error *unkept,
               cellgate_error *error)
{
    cg_piece_survey how = { .session = session,
                            .options = options,
                            .result = result,
                            .regime = regime };
    cg_displacer displacer = { .memory = NULL };
    cellgate_status status = CELLGATE_OK;

    if (regime == CG_SPACED) {
        how.gap = GAP;
        how.displacer = &displacer;
        status = cg_displacer_init(&displacer, error);
    }
    if (status == CELLGATE_OK)
        status = measure_pieces(&how, list, unkept, error);
    cg_displacer_finish(&displacer);
    return status;
}

/* The progress of both regimes, one after the other. */
typedef struct halves {
    const cellgate_calibration *of;
    double done;
    bool stopped;
} halves;

static int32_t tell_half(void *context, double done)
{
    halves *in = context;

    if (in->of->progress != NULL &&
        in->of->progress(in->of->progress_context, in->done + done / 2) != 0)
        in->stopped = true;
    return in->stopped;
}

/* A session that watches how its requests come may need either. */
static cellgate_status
measure_both(cellgate_session *session, const cellgate_calibration *options,
             const cg_piece_list *list, cellgate_calibration_result *result,
             cellgate_error *unkept, cellgate_error *error)
{
    halves in = { options, 0, false };
    cellgate_calibration half = *options;
    cellgate_calibration_result second = { 0 };
    cellgate_status status;

    half.seconds /= 2;
    half.progress = tell_half;
    half.progress_context = &in;
    status = measure_regime(session, CG_BACK_TO_BACK, &half, list, result,
                            unkept, error);
    in.done = 0.5;
    if (status != CELLGATE_OK || in.stopped)
        return status;
    status =
        measure_regime(session, CG_SPACED, &half, list, &second, unkept, error);
    result->cells += second.cells;
    result->cells_measured += second.cells_measured;
    result->cells_left_out += second.cells_left_out;
    result->samples += second.samples;
    result->failed += second.failed;
    if (result->unreached < second.unreached)
        result->unreached = second.unreached;
    return status;
}

static cellgate_status
measure_all(cellgate_session *session, const cellgate_calibration *options,
            const cg_piece_list *list, cellgate_calibration_result *result,
            cellgate_error *unkept, cellgate_error *error)
{
    cellgate_status status = keep_openings(session, unkept, error);
    cg_regime regime;
    cg_policy policy;

    if (status != CELLGATE_OK)
        return status;
    if (cg_device_table_config(session->table)->regime == CG_ARRIVALS_AUTO)
        return measure_both(session, options, list, result, unkept, error);
    cg_route_settings(session, &regime, &policy);
    return measure_regime(session, regime, options, list, result, unkept,
                          error);
}

cellgate_status cellgate_calibrate(cellgate_session *session,
                                   const cellgate_calibration *options,
                                   cellgate_calibration_result *result,
                                   cellgate_error *error)
{
    cellgate_error unkept = CELLGATE_ERROR_INIT;
    cellgate_calibration_result filled = { .struct_size = sizeof filled };
    cellgate_calibration read;
    cg_piece_list list;
    cellgate_status status = cg_process_check(error);

    if (status == CELLGATE_OK && session == NULL)
        status = cellgate_fail(error, CELLGATE_INVALID,
                               "a calibration needs a session");
    if (status == CELLGATE_OK)
        status = read_options(options, &read, error);
    if (status != CELLGATE_OK)
        return status;
    pthread_mutex_lock(&session->mutex);
    status = cg_pieces_list(session, &list, error);
    pthread_mutex_unlock(&session->mutex);
    if (status != CELLGATE_OK)
        return status;
    status = measure_all(session, &read, &list, &filled, &unkept, error);
    cg_pieces_free(&list);
    if (status == CELLGATE_OK && unkept.status != CELLGATE_OK)
        status = cellgate_fail(error, (cellgate_status)unkept.status, "%s",
                               unkept.text);
    if (status == CELLGATE_OK && result != NULL)
        cellgate_struct_copy(result, &filled);
    return status;
}
