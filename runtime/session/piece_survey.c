/* SPDX-License-Identifier: Apache-2.0 */
/* The survey of one piece: what is done in which order, and for how long. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/cost/clock.h"
#include "runtime/session/once.h"
#include "runtime/session/piece_survey.h"
#include "runtime/session/trial.h"

#define MOST_BYTES ((int64_t)1 << 30) /* of one trial's inputs and outputs */

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to measure a model");
}

double cg_piece_survey_left(const cg_piece_survey *of)
{
    return of->budget - (cg_now(&cg_real_clock) - of->start);
}

bool cg_piece_survey_go_on(cg_piece_survey *of)
{
    const double left = fmax(cg_piece_survey_left(of), 0);
    const double done = of->budget > 0 ? 1 - left / of->budget : 1;

    if (of->options->progress != NULL &&
        of->options->progress(of->options->progress_context,
                              of->share_from +
                                  done * (of->share_to - of->share_from)) != 0)
        of->stopped = true;
    return !of->stopped;
}

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
            sum += cost.seconds + of->gap;
    }
    /* Those that warm up, one that begins a turn, and one sample. */
    return bytes < 0 || bytes > MOST_BYTES ||
           sum * (CG_SURVEY_WARM_UP + 2) > cg_piece_survey_left(of) / 2;
}

static cellgate_status measure_cells(cg_piece_survey *of, cellgate_error *error)
{
    const uint32_t before = of->result->cells_measured;
    const uint32_t most = of->options->cells_most;

    while (!of->stopped && cg_piece_survey_left(of) > 0 &&
           (most == 0 || of->result->cells_measured - before < most)) {
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
        status = cg_piece_survey_measure(of, cell, error);
        if (status != CELLGATE_OK)
            return status;
    }
    return CELLGATE_OK;
}

static void finish(cg_piece_survey *of)
{
    for (size_t at = 0; of->surfaces != NULL && at < of->piece->segment_count;
         at++)
        cg_surface_destroy(of->surfaces[at]);
    free(of->surfaces);
    free(of->excluded);
    free(of->able);
    free(of->cells);
    free(of->weights);
    free(of->done);
}

/* What laying out a candidate's weights takes that was never found right. */
#define UNKNOWN HUGE_VAL

/* Where a device compiles first, laying out weights takes long, and cannot be
   interrupted: half of the time is for measuring what is there. */
static cellgate_status check(cg_piece_survey *of, size_t at, double seconds,
                             cellgate_error *error)
{
    const double left = cg_piece_survey_left(of);

    if (left > of->budget / 2 || seconds < left / 10)
        return cg_piece_survey_check(of, at, error);
    of->result->unreached++;
    cg_piece_survey_exclude(of, at,
                            "half of the time was over before its weights "
                            "were laid out; calibrating again goes on there");
    return CELLGATE_OK;
}

/* A candidate's turn. */
typedef struct turn {
    cg_standing standing;
    double seconds;
} turn;

static cellgate_status find_turn(const cg_piece_survey *of, size_t at, turn *to,
                                 cellgate_error *error)
{
    const cg_segment *segment = of->piece->segments[at];
    cg_cost_candidate candidate;
    cellgate_status status =
        cg_piece_survey_standing(of, at, &to->standing, error);

    to->seconds = UNKNOWN;
    if (status != CELLGATE_OK || to->standing != CG_RIGHT)
        return status;
    status = cg_segment_candidate(segment, &candidate, error);
    return status == CELLGATE_OK
               ? cg_once_preparing(of->session, segment, &candidate,
                                   &to->seconds, error)
               : status;
}

/* Those that were never checked come first, so that each gets its turn, however
   long it takes; those that were wrong come last, as one may break its device.
 */
static cellgate_status check_all(cg_piece_survey *of, cellgate_error *error)
{
    static const cg_standing order[] = { CG_UNCHECKED, CG_RIGHT, CG_WRONG };
    const size_t count = of->piece->segment_count;
    turn *turns = calloc(count + 1, sizeof *turns);
    cellgate_status status = turns != NULL ? CELLGATE_OK : no_memory(error);

    for (size_t at = 0; status == CELLGATE_OK && at < count; at++)
        status = find_turn(of, at, &turns[at], error);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        for (size_t at = 0;
             status == CELLGATE_OK && at < count && cg_piece_survey_go_on(of);
             at++)
            if (turns[at].standing == order[i])
                status = check(of, at, turns[at].seconds, error);
    free(turns);
    return status;
}

cellgate_status cg_piece_survey_run(cg_piece_survey *of, cellgate_error *error)
{
    const size_t count = of->piece->segment_count;
    cellgate_status status;

    of->surfaces = calloc(count + 1, sizeof(cg_surface *));
    of->excluded = calloc(count + 1, sizeof *of->excluded);
    of->start = cg_now(&cg_real_clock);
    status = of->surfaces != NULL && of->excluded != NULL
                 ? cg_piece_survey_list_cells(of, error)
                 : no_memory(error);
    if (status == CELLGATE_OK)
        status = check_all(of, error);
    if (status == CELLGATE_OK)
        status = cg_piece_survey_read_known(of, error);
    if (status == CELLGATE_OK)
        status = measure_cells(of, error);
    of->result->cells += (uint32_t)of->cell_count;
    of->result->candidates += (uint32_t)count;
    finish(of);
    return status;
}
