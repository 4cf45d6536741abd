/* SPDX-License-Identifier: Apache-2.0 */
/* Checking and measuring the candidates of one piece. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/cost/measure.h"
#include "runtime/session/piece_survey.h"
#include "runtime/session/trial.h"

#define MOST_BYTES ((int64_t)1 << 30) /* of one trial's inputs and outputs */
#define WARM_UP 2

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to measure a model");
}

/* ---- Right or wrong ----------------------------------------------------- */

static void exclude(cg_piece_survey *of, size_t at, const char *why)
{
    const cg_segment *segment = of->piece->segments[at];

    of->excluded[at] = true;
    cg_log_line(cg_device_table_log(of->session->table), CELLGATE_LOG_WARNING,
                "%s %s is not measured for %s: %s",
                cg_device_name(segment->engine->device), segment->variant.name,
                segment->names, why);
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

/* A candidate is checked once, on a small ragged shape; one that was wrong is
   looked at again. */
static cellgate_status check(cg_piece_survey *of, size_t at,
                             cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_cost_verdict verdict = { .checked = false };
    cg_cost_candidate candidate;
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    if (status == CELLGATE_OK)
        status = cg_cost_book_verdict(of->session->book, &candidate,
                                      segment->structure, &verdict, error);
    if (status != CELLGATE_OK || (verdict.checked && verdict.right))
        return status;
    status = compare(of, at, &verdict, &cause);
    if (status == CELLGATE_NO_MEMORY)
        return no_memory(error);
    if (status != CELLGATE_OK) {
        exclude(of, at, cause.text);
        return CELLGATE_OK;
    }
    if (!verdict.right) {
        of->result->wrong++;
        exclude(of, at, "its results differ from the host's; it is not chosen");
    }
    return cg_cost_book_put_verdict(of->session->book, &candidate,
                                    segment->structure, &verdict, error);
}

/* ---- One cell ----------------------------------------------------------- */

static double left(const cg_piece_survey *of)
{
    return of->budget - (cg_now(&cg_real_clock) - of->start);
}

static bool go_on(void *context, double used)
{
    cg_piece_survey *of = context;
    const double done = fmin(1, 1 - left(of) / of->budget);

    (void)used;
    if (of->options->progress != NULL &&
        of->options->progress(of->options->progress_context,
                              of->share_from +
                                  done * (of->share_to - of->share_from)) != 0)
        of->stopped = true;
    return !of->stopped;
}

static void set_measuring(cg_piece_survey *of, cg_measuring *how)
{
    cg_measuring_init(how);
    how->clock = &cg_real_clock;
    how->budget = fmax(left(of) / 3, 1e-3);
    how->warm_up = WARM_UP;
    how->most = 31;
    how->enough = 0.015;
    how->gap = of->regime == CG_SPACED ? 20e-3 : 0;
    how->go_on = go_on;
    how->go_on_context = of;
}

/* What holds for this process alone is no reason to stop. */
static cellgate_status put(cg_piece_survey *of, const cg_segment *segment,
                           const cg_cost_point *point, cellgate_error *error)
{
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_cost_candidate candidate;
    cellgate_status status = cg_segment_candidate(segment, &candidate, &cause);

    if (status == CELLGATE_OK)
        status =
            cg_cost_book_put(of->session->book, &candidate, segment->structure,
                             of->regime, point, &cause);
    if (status == CELLGATE_IO || status == CELLGATE_BUSY) {
        of->unkept = cause;
        return CELLGATE_OK;
    }
    return status == CELLGATE_OK
               ? status
               : cellgate_fail(error, status, "%s", cause.text);
}

static cellgate_status keep(cg_piece_survey *of, size_t at,
                            const cg_cost_shape *cell,
                            const cg_measured *measured, cellgate_error *error)
{
    const cg_cost_point point = { *cell, measured->summary };
    cellgate_status status;

    if (measured->status != CELLGATE_OK) {
        exclude(of, at, measured->error.text);
        return CELLGATE_OK;
    }
    if (measured->summary.count == 0)
        return CELLGATE_OK;
    status = put(of, of->piece->segments[at], &point, error);
    if (status == CELLGATE_OK)
        status = cg_piece_survey_read_surface(of, at, error);
    of->result->samples += measured->summary.count;
    return status;
}

/* Trials of all candidates that take the cell; *count of them, whose numbers
   are in which[]. */
static cellgate_status make_trials(cg_piece_survey *of,
                                   const cg_cost_shape *cell, cg_trial **trials,
                                   size_t *which, size_t *count,
                                   cellgate_error *error)
{
    for (size_t at = 0; at < of->piece->segment_count; at++) {
        cellgate_error cause = CELLGATE_ERROR_INIT;
        cellgate_status status;

        if (of->excluded[at])
            continue;
        status = cg_trial_create(
            &of->session->pool, of->piece->segments[at], cell->batch,
            cell->steps, false, of->session->watchdog, &trials[*count], &cause);
        if (status == CELLGATE_NO_MEMORY)
            return cellgate_fail(error, status, "%s", cause.text);
        if (status == CELLGATE_OK)
            which[(*count)++] = at;
        else if (status != CELLGATE_UNSUPPORTED)
            exclude(of, at, cause.text);
    }
    return CELLGATE_OK;
}

static cellgate_status time_trials(cg_piece_survey *of,
                                   const cg_cost_shape *cell, cg_trial **trials,
                                   const size_t *which, size_t count,
                                   cellgate_error *error)
{
    cg_subject *subjects = calloc(count, sizeof *subjects);
    cg_measured *results = calloc(count, sizeof *results);
    cellgate_status status = CELLGATE_OK;
    cg_measuring how;

    if (subjects == NULL || results == NULL)
        status = no_memory(error);
    for (size_t at = 0; status == CELLGATE_OK && at < count; at++)
        subjects[at] = (cg_subject){ cg_trial_run, trials[at] };
    set_measuring(of, &how);
    if (status == CELLGATE_OK)
        status = cg_measure(&how, subjects, count, results, error);
    for (size_t at = 0; status == CELLGATE_OK && at < count; at++)
        status = keep(of, which[at], cell, &results[at], error);
    free(subjects);
    free(results);
    return status;
}

static cellgate_status measure_cell(cg_piece_survey *of, size_t cell,
                                    cellgate_error *error)
{
    const size_t most = of->piece->segment_count;
    cg_trial **trials = calloc(most, sizeof(cg_trial *));
    size_t *which = calloc(most, sizeof *which);
    size_t count = 0;
    cellgate_status status = CELLGATE_OK;

    of->done[cell] = true;
    if (trials == NULL || which == NULL)
        status = no_memory(error);
    if (status == CELLGATE_OK)
        status =
            make_trials(of, &of->cells[cell], trials, which, &count, error);
    if (status == CELLGATE_OK && count > 0)
        status = time_trials(of, &of->cells[cell], trials, which, count, error);
    for (size_t at = 0; at < count; at++)
        cg_trial_destroy(trials[at]);
    free(trials);
    free(which);
    of->result->cells_measured += status == CELLGATE_OK && count > 0;
    return status;
}

/* ---- All cells ---------------------------------------------------------- */

/* Too much memory for one trial, or so slow that the fewest runs of all that
   are known would take half of the time that is left. */
static bool too_large(const cg_piece_survey *of, const cg_cost_shape *cell)
{
    const int64_t bytes = cg_trial_bytes(
        &of->session->pool, of->piece->segments[0], cell->batch, cell->steps);
    double sum = 0;

    for (size_t at = 0; at < of->piece->segment_count; at++) {
        cg_cost cost;

        cg_surface_predict(of->surfaces[at], cell, &cost);
        if (!of->excluded[at] && cost.kind != CG_COST_NONE)
            sum += cost.seconds;
    }
    return bytes < 0 || bytes > MOST_BYTES ||
           sum * (WARM_UP + 1) > left(of) / 2;
}

static cellgate_status measure_cells(cg_piece_survey *of, cellgate_error *error)
{
    while (!of->stopped && left(of) > 0) {
        cellgate_status status;
        size_t cell;

        status = cg_piece_survey_next(of, &cell, error);
        if (status != CELLGATE_OK || cell == SIZE_MAX)
            return status;
        if (too_large(of, &of->cells[cell])) {
            of->done[cell] = true;
            of->result->cells_left_out++;
            continue;
        }
        status = measure_cell(of, cell, error);
        if (status != CELLGATE_OK)
            return status;
    }
    return CELLGATE_OK;
}

cellgate_status cg_piece_survey_run(cg_piece_survey *of, cellgate_error *error)
{
    const size_t count = of->piece->segment_count;
    cellgate_status status = CELLGATE_OK;

    of->surfaces = calloc(count + 1, sizeof(cg_surface *));
    of->excluded = calloc(count + 1, sizeof *of->excluded);
    of->start = cg_now(&cg_real_clock);
    status = of->surfaces != NULL && of->excluded != NULL
                 ? cg_piece_survey_list_cells(of, error)
                 : no_memory(error);
    for (size_t at = 0; status == CELLGATE_OK && at < count && go_on(of, 0);
         at++)
        status = check(of, at, error);
    if (status == CELLGATE_OK)
        status = cg_piece_survey_read_known(of, error);
    if (status == CELLGATE_OK)
        status = measure_cells(of, error);
    of->result->cells += (uint32_t)of->cell_count;
    of->result->candidates += (uint32_t)count;
    for (size_t at = 0; of->surfaces != NULL && at < count; at++)
        cg_surface_destroy(of->surfaces[at]);
    free(of->surfaces);
    free(of->excluded);
    free(of->cells);
    free(of->done);
    return status;
}
