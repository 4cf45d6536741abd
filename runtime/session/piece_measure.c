/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring the candidates of a piece against each other at one shape. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/cost/measure.h"
#include "runtime/session/piece_survey.h"
#include "runtime/session/trial.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to measure a model");
}

/* The trials of one cell that are there at the same time. */
typedef struct group {
    cg_trial **trials;
    size_t *which; /* candidates that they are of */
    size_t count;
    bool *pending; /* by candidate: it is to be measured yet */
    cg_subject *subjects;
    cg_measured *results;
} group;

static void group_finish(group *of)
{
    free(of->trials);
    free(of->which);
    free(of->pending);
    free(of->subjects);
    free(of->results);
}

static bool group_init(group *of, size_t most)
{
    *of = (group){ .trials = calloc(most, sizeof(cg_trial *)),
                   .which = calloc(most, sizeof *of->which),
                   .pending = calloc(most, sizeof *of->pending),
                   .subjects = calloc(most, sizeof *of->subjects),
                   .results = calloc(most, sizeof *of->results) };
    return of->trials != NULL && of->which != NULL && of->pending != NULL &&
           of->subjects != NULL && of->results != NULL;
}

/* ---- Trials ------------------------------------------------------------- */

static bool is_memory(cellgate_status status)
{
    return status == CELLGATE_DEVICE_MEMORY || status == CELLGATE_NO_MEMORY;
}

static cellgate_status give_up(cg_piece_survey *of, size_t at, size_t cell,
                               const cellgate_error *why, cellgate_error *error)
{
    const cellgate_status status = (cellgate_status)why->status;

    if (status == CELLGATE_UNSUPPORTED)
        return CELLGATE_OK;
    if (is_memory(status))
        return cg_piece_survey_too_large(of, at, cell, why, error);
    of->result->failed++;
    cg_piece_survey_exclude(of, at, why->text);
    return CELLGATE_OK;
}

/* Of those that are pending, as many as there is memory for at once. */
static cellgate_status make_trials(cg_piece_survey *of, size_t cell, group *in,
                                   cellgate_error *error)
{
    const cg_cost_shape *shape = &of->cells[cell];
    cellgate_status ended = CELLGATE_OK;

    in->count = 0;
    for (size_t at = 0; ended == CELLGATE_OK && at < of->piece->segment_count;
         at++) {
        cellgate_error cause = CELLGATE_ERROR_INIT;
        cellgate_status status;

        if (!in->pending[at])
            continue;
        status = cg_trial_create(&of->session->pool, of->piece->segments[at],
                                 shape->batch, shape->steps, false,
                                 of->session->watchdog, &in->trials[in->count],
                                 &cause);
        if (is_memory(status) && in->count > 0)
            continue; /* alone it may fit */
        in->pending[at] = false;
        if (status == CELLGATE_OK)
            in->which[in->count++] = at;
        else
            ended = give_up(of, at, cell, &cause, error);
    }
    return ended;
}

/* ---- Times -------------------------------------------------------------- */

static bool go_on(void *context, double used)
{
    (void)used;
    return cg_piece_survey_go_on(context);
}

static void set_measuring(cg_piece_survey *of, cg_measuring *how)
{
    cg_measuring_init(how);
    how->clock = &cg_real_clock;
    how->budget = fmax(cg_piece_survey_left(of) / 3, 1e-3);
    how->warm_up = CG_SURVEY_WARM_UP;
    how->least = CG_SURVEY_LEAST;
    how->most = 31;
    how->enough = 0.015;
    how->gap = of->gap;
    how->idle = of->displacer != NULL ? cg_displace : NULL;
    how->idle_context = of->displacer;
    how->go_on = go_on;
    how->go_on_context = of;
}

/* A stop or the end of the time leaves few samples, which are not to replace
   what is known better. */
static bool is_known_better(const cg_piece_survey *of, size_t at, size_t cell,
                            uint32_t count)
{
    cg_cost known;

    cg_surface_predict(of->surfaces[at], &of->cells[cell], &known);
    return count < CG_SURVEY_LEAST && known.kind == CG_COST_EXACT &&
           known.samples > count;
}

static cellgate_status put(cg_piece_survey *of, size_t at,
                           const cg_cost_point *point, cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_cost_candidate candidate;
    cellgate_status status = cg_segment_candidate(segment, &candidate, &cause);

    if (status == CELLGATE_OK)
        status =
            cg_cost_book_put(of->session->book, &candidate, segment->structure,
                             of->regime, point, &cause);
    return cg_piece_survey_settle(of, status, &cause, error);
}

static cellgate_status keep(cg_piece_survey *of, size_t at, size_t cell,
                            const cg_measured *measured, cellgate_error *error)
{
    const cg_cost_point point = { of->cells[cell], measured->summary, 0 };
    cellgate_status status;

    if (measured->status != CELLGATE_OK) {
        cellgate_error why = measured->error;

        why.status = measured->status;
        return give_up(of, at, cell, &why, error);
    }
    of->result->samples += measured->summary.count;
    if (measured->summary.count == 0 ||
        is_known_better(of, at, cell, measured->summary.count))
        return CELLGATE_OK;
    status = put(of, at, &point, error);
    return status == CELLGATE_OK ? cg_piece_survey_read_surface(of, at, error)
                                 : status;
}

static cellgate_status time_trials(cg_piece_survey *of, size_t cell, group *in,
                                   cellgate_error *error)
{
    cellgate_status status;
    cg_measuring how;

    for (size_t at = 0; at < in->count; at++)
        in->subjects[at] = (cg_subject){ cg_trial_run, in->trials[at] };
    set_measuring(of, &how);
    status = cg_measure(&how, in->subjects, in->count, in->results, error);
    for (size_t at = 0; status == CELLGATE_OK && at < in->count; at++)
        status = keep(of, in->which[at], cell, &in->results[at], error);
    return status;
}

cellgate_status cg_piece_survey_measure(cg_piece_survey *of, size_t cell,
                                        cellgate_error *error)
{
    const size_t most = of->piece->segment_count;
    cellgate_status status = CELLGATE_OK;
    bool measured = false;
    group in;

    of->done[cell] = true;
    if (!group_init(&in, most))
        status = no_memory(error);
    for (size_t at = 0; status == CELLGATE_OK && at < most; at++)
        in.pending[at] =
            !of->excluded[at] && of->able[at * of->cell_count + cell];
    while (status == CELLGATE_OK && !of->stopped) {
        status = make_trials(of, cell, &in, error);
        if (status == CELLGATE_OK && in.count == 0)
            break;
        measured = measured || in.count > 0;
        if (status == CELLGATE_OK)
            status = time_trials(of, cell, &in, error);
        for (size_t at = 0; at < in.count; at++)
            cg_trial_destroy(in.trials[at]);
    }
    group_finish(&in);
    of->result->cells_measured += measured && status == CELLGATE_OK;
    of->result->cells_left_out += !measured && !of->stopped;
    return status;
}
