/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellgate_calibrate(): for each piece of the model, the corners and the middle
 * of the shapes that are asked for, and then whatever is most in doubt, until
 * the decisions are sure or the time is up.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/cost/survey.h"
#include "runtime/session/calibrate.h"
#include "runtime/session/trial.h"

#define ENOUGH 0.002 /* expected relative loss that is not worth measuring */
#define MOST_BYTES ((int64_t)1 << 30) /* of one trial's inputs and outputs */
#define AXIS_CELLS 32

/* The work on one piece. */
typedef struct survey {
    cellgate_session *session;
    const cellgate_calibration *options;
    cellgate_calibration_result *result;
    const cg_piece *piece;
    cg_regime regime;
    double start, budget;        /* seconds, of this piece */
    double share_from, share_to; /* of the whole, for progress */
    cg_cost_shape *cells;
    bool *measured; /* or left out */
    size_t cell_count, columns;
    cg_surface **surfaces; /* one a candidate */
    bool *excluded;        /* its results are wrong, or it fails */
    bool stopped;          /* by the application */
} survey;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to measure a model");
}

/* ---- Cells
 * ---------------------------------------------------------------------- */

/* Powers of two from the least to the most, both ends among them. */
static size_t axis(int64_t least, int64_t most, int64_t values[AXIS_CELLS])
{
    size_t count = 0;
    int64_t at = 1;

    values[count++] = least;
    while (at <= least)
        at *= 2;
    for (; at < most && count < AXIS_CELLS - 1; at *= 2)
        values[count++] = at;
    if (most > least)
        values[count++] = most;
    return count;
}

/* Steps that the piece's input has whatever the request says, or unknown. */
static int64_t fixed_steps(const survey *of)
{
    const cg_segment *segment = of->piece->segments[0];
    const cg_value *x = &of->session->graph.model->values[segment->x];

    if (segment->rows)
        return 1;
    return x->shape[1];
}

static bool make_cells(survey *of)
{
    const cellgate_calibration *options = of->options;
    const int64_t fixed = fixed_steps(of);
    int64_t batches[AXIS_CELLS], steps[AXIS_CELLS];
    const size_t rows =
        axis(options->batch_least, options->batch_most, batches);
    const size_t columns =
        fixed != CG_UNKNOWN
            ? axis(fixed, fixed, steps)
            : axis(options->steps_least, options->steps_most, steps);

    of->cells = calloc(rows * columns, sizeof *of->cells);
    of->measured = calloc(rows * columns, sizeof *of->measured);
    if (of->cells == NULL || of->measured == NULL)
        return false;
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column++)
            of->cells[of->cell_count++] =
                (cg_cost_shape){ batches[row], steps[column], 1 };
    of->columns = columns;
    return true;
}

/* ---- What is known
 * --------------------------------------------------------------- */

static void mark_known(survey *of, const cg_cost_point *points, size_t count,
                       uint32_t *known)
{
    for (size_t cell = 0; cell < of->cell_count; cell++)
        for (size_t at = 0; at < count; at++)
            if (points[at].shape.batch == of->cells[cell].batch &&
                points[at].shape.steps == of->cells[cell].steps &&
                points[at].shape.fill == of->cells[cell].fill)
                known[cell]++;
}

static cellgate_status read_surface(survey *of, size_t at, uint32_t *known,
                                    cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cg_cost_candidate candidate;
    cg_cost_point *points = NULL;
    size_t count = 0;
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    if (status == CELLGATE_OK)
        status = cg_cost_book_points(of->session->book, &candidate,
                                     segment->structure, of->regime, &points,
                                     &count, error);
    if (status != CELLGATE_OK)
        return status;
    if (known != NULL)
        mark_known(of, points, count, known);
    cg_surface_destroy(of->surfaces[at]);
    of->surfaces[at] = cg_surface_create(points, count);
    free(points);
    return of->surfaces[at] != NULL ? CELLGATE_OK : no_memory(error);
}

/* Cells that every candidate was measured at are done: calibration goes on
   where it was left. */
static cellgate_status read_known(survey *of, cellgate_error *error)
{
    uint32_t *known = calloc(of->cell_count + 1, sizeof *known);
    cellgate_status status = known != NULL ? CELLGATE_OK : no_memory(error);

    for (size_t at = 0; status == CELLGATE_OK && at < of->piece->segment_count;
         at++)
        status = read_surface(of, at, known, error);
    for (size_t cell = 0; status == CELLGATE_OK && cell < of->cell_count;
         cell++)
        of->measured[cell] = known[cell] >= of->piece->segment_count;
    free(known);
    return status;
}

/* ---- Right or wrong
 * ---------------------------------------------------------------- */

static void exclude(survey *of, size_t at, const char *why)
{
    const cg_segment *segment = of->piece->segments[at];

    of->excluded[at] = true;
    cg_log_line(cg_device_table_log(of->session->table), CELLGATE_LOG_WARNING,
                "%s %s is not measured for %s: %s",
                cg_device_name(segment->engine->device), segment->variant.name,
                segment->names, why);
}

/* A candidate is checked once, on a small ragged shape. */
static cellgate_status check(survey *of, size_t at, cellgate_error *error)
{
    cg_segment *segment = of->piece->segments[at];
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_cost_verdict verdict = { .checked = true };
    cg_cost_candidate candidate;
    cg_trial *trial = NULL;
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    if (status == CELLGATE_OK)
        status = cg_cost_book_verdict(of->session->book, &candidate,
                                      segment->structure, &verdict, error);
    if (status != CELLGATE_OK || (verdict.checked && verdict.right))
        return status;
    status = cg_trial_create(&of->session->pool, segment, 3, 5, true,
                             of->session->watchdog, &trial, &cause);
    if (status == CELLGATE_OK)
        status = cg_trial_check(trial, &verdict.right, &verdict.worst, &cause);
    cg_trial_destroy(trial);
    if (status != CELLGATE_OK) {
        exclude(of, at, cause.text);
        return status == CELLGATE_NO_MEMORY ? no_memory(error) : CELLGATE_OK;
    }
    verdict.checked = true;
    if (!verdict.right) {
        of->result->wrong++;
        exclude(of, at, "its results differ from the host's; it is not chosen");
    }
    return cg_cost_book_put_verdict(of->session->book, &candidate,
                                    segment->structure, &verdict, error);
}

/* ---- One cell
 * ------------------------------------------------------------------------ */

static double now(const survey *of)
{
    (void)of;
    return cg_now(&cg_real_clock);
}

static double left(const survey *of)
{
    return of->budget - (now(of) - of->start);
}

static bool go_on(void *context, double used)
{
    survey *of = context;
    const double done = fmin(1, (now(of) - of->start) / of->budget);

    (void)used;
    if (of->options->progress != NULL &&
        of->options->progress(of->options->progress_context,
                              of->share_from +
                                  done * (of->share_to - of->share_from)) != 0)
        of->stopped = true;
    return !of->stopped;
}

static void set_measuring(survey *of, cg_measuring *how)
{
    cg_measuring_init(how);
    how->budget = fmax(left(of) / 3, 1e-3);
    how->warm_up = 2;
    how->most = 31;
    how->enough = 0.015;
    how->gap = of->regime == CG_SPACED ? 20e-3 : 0;
    how->go_on = go_on;
    how->go_on_context = of;
}

static cellgate_status keep(survey *of, size_t at, const cg_cost_shape *cell,
                            const cg_measured *measured, cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    const cg_cost_point point = { *cell, measured->summary };
    cg_cost_candidate candidate;
    cellgate_status status;

    if (measured->status != CELLGATE_OK) {
        exclude(of, at, measured->error.text);
        return CELLGATE_OK;
    }
    if (measured->summary.count == 0)
        return CELLGATE_OK;
    status = cg_segment_candidate(segment, &candidate, error);
    if (status == CELLGATE_OK)
        status =
            cg_cost_book_put(of->session->book, &candidate, segment->structure,
                             of->regime, &point, error);
    if (status == CELLGATE_OK)
        status = read_surface(of, at, NULL, error);
    of->result->samples += measured->summary.count;
    return status;
}

/* Trials of all candidates that take the cell; *count of them, whose numbers
   are in which[]. */
static cellgate_status make_trials(survey *of, const cg_cost_shape *cell,
                                   cg_trial **trials, size_t *which,
                                   size_t *count, cellgate_error *error)
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

/* Too much memory for one trial, or so slow that little else would be
   measured in the time. */
static bool too_large(const survey *of, const cg_cost_shape *cell)
{
    const int64_t bytes = cg_trial_bytes(
        &of->session->pool, of->piece->segments[0], cell->batch, cell->steps);
    double least = HUGE_VAL;

    for (size_t at = 0; at < of->piece->segment_count; at++) {
        cg_cost cost;

        cg_surface_predict(of->surfaces[at], cell, &cost);
        if (!of->excluded[at])
            least = fmin(least, cost.seconds);
    }
    return bytes < 0 || bytes > MOST_BYTES ||
           (!isinf(least) && least > left(of) / 10);
}

static cellgate_status measure_cell(survey *of, size_t cell,
                                    cellgate_error *error)
{
    const size_t most = of->piece->segment_count;
    cg_trial **trials = calloc(most + 1, sizeof(cg_trial *));
    cg_subject *subjects = calloc(most + 1, sizeof *subjects);
    cg_measured *results = calloc(most + 1, sizeof *results);
    size_t *which = calloc(most + 1, sizeof *which);
    size_t count = 0;
    cellgate_status status = CELLGATE_OK;
    cg_measuring how;

    of->measured[cell] = true;
    if (trials == NULL || subjects == NULL || results == NULL || which == NULL)
        status = no_memory(error);
    if (status == CELLGATE_OK)
        status =
            make_trials(of, &of->cells[cell], trials, which, &count, error);
    for (size_t at = 0; at < count; at++)
        subjects[at] = (cg_subject){ cg_trial_run, trials[at] };
    set_measuring(of, &how);
    if (status == CELLGATE_OK && count > 0)
        status = cg_measure(&how, subjects, count, results, error);
    for (size_t at = 0; status == CELLGATE_OK && at < count; at++)
        status = keep(of, which[at], &of->cells[cell], &results[at], error);
    for (size_t at = 0; at < count; at++)
        cg_trial_destroy(trials[at]);
    free(trials);
    free(subjects);
    free(results);
    free(which);
    of->result->cells_measured += status == CELLGATE_OK && count > 0;
    return status;
}

/* ---- All cells
 * -------------------------------------------------------------------------- */

/* The corners and the middle come first; SIZE_MAX when all of them are done. */
static size_t first_cell(const survey *of)
{
    const size_t last = of->cell_count - 1, columns = of->columns;
    const size_t rows = of->cell_count / columns;
    const size_t first[] = { 0, columns - 1, last + 1 - columns, last,
                             rows / 2 * columns + columns / 2 };

    for (size_t at = 0; at < sizeof first / sizeof first[0]; at++)
        if (!of->measured[first[at]])
            return first[at];
    return SIZE_MAX;
}

static size_t doubtful_cell(const survey *of)
{
    const cg_surface *surfaces[64];
    size_t count = 0;

    for (size_t at = 0; at < of->piece->segment_count && count < 64; at++)
        if (!of->excluded[at])
            surfaces[count++] = of->surfaces[at];
    return cg_survey_next(surfaces, count, of->cells, NULL, of->measured,
                          of->cell_count, ENOUGH);
}

static cellgate_status work(survey *of, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < of->piece->segment_count;
         at++)
        status = check(of, at, error);
    while (status == CELLGATE_OK && !of->stopped && left(of) > 0) {
        size_t cell = first_cell(of);

        if (cell == SIZE_MAX)
            cell = doubtful_cell(of);
        if (cell == SIZE_MAX)
            break;
        if (too_large(of, &of->cells[cell])) {
            of->measured[cell] = true;
            of->result->cells_left_out++;
            continue;
        }
        status = measure_cell(of, cell, error);
    }
    return status;
}

static cellgate_status measure_piece(survey *of, cellgate_error *error)
{
    const size_t count = of->piece->segment_count;
    cellgate_status status = CELLGATE_OK;

    of->surfaces = calloc(count + 1, sizeof(cg_surface *));
    of->excluded = calloc(count + 1, sizeof *of->excluded);
    of->start = now(of);
    if (of->surfaces == NULL || of->excluded == NULL || !make_cells(of))
        status = no_memory(error);
    if (status == CELLGATE_OK)
        status = read_known(of, error);
    if (status == CELLGATE_OK)
        status = work(of, error);
    of->result->cells += (uint32_t)of->cell_count;
    of->result->candidates += (uint32_t)count;
    for (size_t at = 0; of->surfaces != NULL && at < count; at++)
        cg_surface_destroy(of->surfaces[at]);
    free(of->surfaces);
    free(of->excluded);
    free(of->cells);
    free(of->measured);
    return status;
}

/* ---- The public function
 * ------------------------------------------------------------------ */

static cellgate_status read_options(const cellgate_calibration *options,
                                    cellgate_calibration *read,
                                    cellgate_error *error)
{
    *read = (cellgate_calibration){ .struct_size = sizeof *read };
    if (options != NULL) {
        if (options->struct_size < sizeof(size_t) ||
            !cellgate_struct_known(options, sizeof *read))
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "the calibration has members that this "
                                 "libcellgate does not know");
        cellgate_struct_copy(read, options);
    }
    read->seconds = read->seconds > 0 ? read->seconds : 30;
    read->batch_least = read->batch_least > 0 ? read->batch_least : 1;
    read->batch_most = read->batch_most > 0 ? read->batch_most : 64;
    read->steps_least = read->steps_least > 0 ? read->steps_least : 1;
    read->steps_most = read->steps_most > 0 ? read->steps_most : 128;
    if (read->batch_most < read->batch_least ||
        read->steps_most < read->steps_least || read->batch_most > INT32_MAX ||
        read->steps_most > INT32_MAX)
        return cellgate_fail(
            error, CELLGATE_INVALID,
            "no shapes to measure: batch %lld to %lld, steps "
            "%lld to %lld",
            (long long)read->batch_least, (long long)read->batch_most,
            (long long)read->steps_least, (long long)read->steps_most);
    return CELLGATE_OK;
}

static cellgate_status measure_all(cellgate_session *session,
                                   const cellgate_calibration *options,
                                   const cg_piece_list *list,
                                   cellgate_calibration_result *result,
                                   cellgate_error *error)
{
    const cg_config *config = cg_device_table_config(session->table);
    cellgate_status status = CELLGATE_OK;
    bool stopped = false;

    for (size_t at = 0; status == CELLGATE_OK && !stopped && at < list->count;
         at++) {
        survey of = {
            .session = session,
            .options = options,
            .result = result,
            .piece = &list->pieces[at],
            .regime = config->regime == CG_ARRIVALS_SPACED ? CG_SPACED
                                                           : CG_BACK_TO_BACK,
            .budget = options->seconds / (double)list->count,
            .share_from = (double)at / (double)list->count,
            .share_to = (double)(at + 1) / (double)list->count,
        };

        if (of.piece->segment_count > 0)
            status = measure_piece(&of, error);
        stopped = of.stopped;
    }
    return status;
}

cellgate_status cellgate_calibrate(cellgate_session *session,
                                   const cellgate_calibration *options,
                                   cellgate_calibration_result *result,
                                   cellgate_error *error)
{
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
    status = measure_all(session, &read, &list, &filled, error);
    cg_pieces_free(&list);
    if (status == CELLGATE_OK && result != NULL)
        cellgate_struct_copy(result, &filled);
    return status;
}
