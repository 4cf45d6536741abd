/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of a survey: what is known of each, and which comes next. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/cost/survey.h"
#include "runtime/session/extents.h"
#include "runtime/session/piece_survey.h"

#define ENOUGH 0.002 /* expected relative loss that is not worth measuring */

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to measure a model");
}

/* ---- The cells ---------------------------------------------------------- */

/* Steps that the piece's input has whatever the request says, or unknown. */
static int64_t fixed_steps(const cg_piece_survey *of)
{
    const cg_segment *segment = of->piece->segments[0];
    const cg_value *x = &of->session->graph.model->values[segment->x];

    return segment->rows ? 1 : x->shape[1];
}

cellgate_status cg_piece_survey_list_cells(cg_piece_survey *of,
                                           cellgate_error *error)
{
    const cellgate_calibration *options = of->options;
    const int64_t fixed = fixed_steps(of);
    int64_t batches[CG_AXIS_MOST], steps[CG_AXIS_MOST];
    const size_t rows =
        cg_extents_axis(options->batch_least, options->batch_most, batches);
    const size_t columns =
        fixed != CG_UNKNOWN
            ? cg_extents_axis(fixed, fixed, steps)
            : cg_extents_axis(options->steps_least, options->steps_most, steps);

    of->cells = calloc(rows * columns, sizeof *of->cells);
    of->done = calloc(rows * columns, sizeof *of->done);
    of->able =
        calloc(rows * columns * of->piece->segment_count + 1, sizeof *of->able);
    of->weights = calloc(rows * columns, sizeof *of->weights);
    if (of->cells == NULL || of->done == NULL || of->able == NULL ||
        of->weights == NULL)
        return no_memory(error);
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column++)
            of->cells[of->cell_count++] =
                (cg_cost_shape){ batches[row], steps[column], 1 };
    of->columns = columns;
    cg_cost_book_weights(of->session->book, of->piece->segments[0]->structure,
                         of->cells, of->cell_count, of->weights);
    return CELLGATE_OK;
}

/* ---- What is known ------------------------------------------------------ */

/* The points of candidate `at`; the caller frees them. */
static cellgate_status read_points(const cg_piece_survey *of, size_t at,
                                   cg_cost_point **points, size_t *count,
                                   cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cg_cost_candidate candidate;
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    return status == CELLGATE_OK
               ? cg_cost_book_points(of->session->book, &candidate,
                                     segment->structure, of->regime, points,
                                     count, error)
               : status;
}

static cellgate_status make_surface(cg_piece_survey *of, size_t at,
                                    const cg_cost_point *points, size_t count,
                                    cellgate_error *error)
{
    cg_surface_destroy(of->surfaces[at]);
    of->surfaces[at] = cg_surface_create(points, count);
    return of->surfaces[at] != NULL ? CELLGATE_OK : no_memory(error);
}

cellgate_status cg_piece_survey_read_surface(cg_piece_survey *of, size_t at,
                                             cellgate_error *error)
{
    cg_cost_point *points = NULL;
    size_t count = 0;
    cellgate_status status = read_points(of, at, &points, &count, error);

    if (status == CELLGATE_OK)
        status = make_surface(of, at, points, count, error);
    free(points);
    return status;
}

bool cg_piece_survey_takes(const cg_piece_survey *of, size_t at,
                           const cg_cost_shape *cell)
{
    const cellgate_shape shape = { sizeof shape, cell->batch, cell->steps };
    cellgate_error refusal = CELLGATE_ERROR_INIT;

    return cg_segment_fits(of->piece->segments[at], &shape, &refusal) ==
           CELLGATE_OK;
}

static bool is_known(const cg_surface *surface, const cg_cost_shape *cell)
{
    cg_cost cost;

    cg_surface_predict(surface, cell, &cost);
    return cost.kind == CG_COST_EXACT && cost.samples >= CG_SURVEY_LEAST;
}

/* There is nothing to know of a shape that a candidate does not take. */
cellgate_status cg_piece_survey_read_known(cg_piece_survey *of,
                                           cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t cell = 0; cell < of->cell_count; cell++)
        of->done[cell] = true;
    for (size_t at = 0; status == CELLGATE_OK && at < of->piece->segment_count;
         at++) {
        bool *able = of->able + at * of->cell_count;

        status = cg_piece_survey_read_surface(of, at, error);
        for (size_t cell = 0; status == CELLGATE_OK && cell < of->cell_count;
             cell++) {
            able[cell] = cg_piece_survey_takes(of, at, &of->cells[cell]);
            if (!of->excluded[at] && able[cell] &&
                !is_known(of->surfaces[at], &of->cells[cell]))
                of->done[cell] = false;
        }
    }
    return status;
}

/* Where the request's memory on the host ends depends on what else runs: only
   what the device said is kept. */
static cellgate_status keep_limit(cg_piece_survey *of,
                                  const cg_segment *segment,
                                  const cg_cost_shape *shape,
                                  cellgate_error *error)
{
    const cg_cost_limit limit = { shape->batch, shape->steps, 0 };
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_cost_candidate candidate;
    cellgate_status status = cg_segment_candidate(segment, &candidate, &cause);

    if (status == CELLGATE_OK)
        status = cg_cost_book_put_limit(of->session->book, &candidate,
                                        segment->structure, &limit, &cause);
    return cg_piece_survey_settle(of, status, &cause, error);
}

cellgate_status cg_piece_survey_too_large(cg_piece_survey *of, size_t at,
                                          size_t cell,
                                          const cellgate_error *why,
                                          cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    const cg_cost_shape *shape = &of->cells[cell];

    for (size_t other = 0; other < of->cell_count; other++)
        if (of->cells[other].batch >= shape->batch &&
            of->cells[other].steps >= shape->steps)
            of->able[at * of->cell_count + other] = false;
    cg_log_line(cg_device_table_log(of->session->table), CELLGATE_LOG_WARNING,
                "%s %s is not measured for %s from batch %lld, steps %lld on: "
                "%s",
                cg_device_name(segment->engine->device), segment->variant.name,
                segment->names, (long long)shape->batch,
                (long long)shape->steps, why->text);
    return why->status == CELLGATE_DEVICE_MEMORY
               ? keep_limit(of, segment, shape, error)
               : CELLGATE_OK;
}

/* ---- What comes next ---------------------------------------------------- */

/* The corners and the middle come first; SIZE_MAX when all of them are done. */
static size_t first_cell(const cg_piece_survey *of)
{
    const size_t last = of->cell_count - 1, columns = of->columns;
    const size_t rows = of->cell_count / columns;
    const size_t first[] = { 0, columns - 1, last + 1 - columns, last,
                             rows / 2 * columns + columns / 2 };

    for (size_t at = 0; at < sizeof first / sizeof first[0]; at++)
        if (!of->done[first[at]])
            return first[at];
    return SIZE_MAX;
}

cellgate_status cg_piece_survey_next(const cg_piece_survey *of, size_t *cell,
                                     cellgate_error *error)
{
    const size_t most = of->piece->segment_count + 1;
    const cg_surface **surfaces;
    const bool **able;
    size_t count = 0;

    *cell = first_cell(of);
    if (*cell != SIZE_MAX)
        return CELLGATE_OK;
    surfaces = calloc(most, sizeof *surfaces);
    able = calloc(most, sizeof *able);
    for (size_t at = 0; surfaces != NULL && able != NULL && at + 1 < most; at++)
        if (!of->excluded[at]) {
            surfaces[count] = of->surfaces[at];
            able[count++] = of->able + at * of->cell_count;
        }
    if (surfaces != NULL && able != NULL)
        *cell = cg_survey_next(surfaces, able, count, of->cells, of->weights,
                               of->done, of->cell_count, ENOUGH);
    free(surfaces);
    free(able);
    return surfaces != NULL && able != NULL ? CELLGATE_OK : no_memory(error);
}
