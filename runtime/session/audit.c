/* SPDX-License-Identifier: Apache-2.0 */
/* cellgate_audit(): the shapes in turn, and what they add up to. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/cost/clock.h"
#include "runtime/given.h"
#include "runtime/session/audit.h"
#include "runtime/session/extents.h"

/* A shape that needs it may take so many times its part of the time. */
#define GENEROUS 4

const char *cellgate_audit_verdict_name(int32_t verdict)
{
    switch (verdict) {
    case CELLGATE_AUDIT_RIGHT:
        return "right";
    case CELLGATE_AUDIT_WRONG:
        return "wrong";
    case CELLGATE_AUDIT_LEFT_OUT:
        return "left out";
    default:
        return "undecided";
    }
}

static cellgate_status read_options(const cellgate_audit_options *options,
                                    cellgate_audit_options *read,
                                    cellgate_error *error)
{
    *read = (cellgate_audit_options){ .struct_size = sizeof *read };
    if (options != NULL) {
        if (!cg_given_known(options, CG_FIRST_ANY, sizeof *read))
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "the audit's options have members that this "
                                 "libcellgate does not know");
        cellgate_struct_copy(read, options);
    }
    read->seconds = read->seconds > 0 ? read->seconds : 60;
    return cg_extents_settle("audit", &read->batch_least, &read->batch_most,
                             &read->steps_least, &read->steps_most, error);
}

/* ---- Going through them -------------------------------------------------- */

static double left(const cg_audit *audit)
{
    return audit->options.seconds - (cg_now(&cg_real_clock) - audit->start);
}

bool cg_audit_goes_on(void *context)
{
    cg_audit *audit = context;
    const cellgate_audit_options *options = &audit->options;
    const double cells = (double)audit->done / (double)audit->count;
    const double time = 1 - left(audit) / options->seconds;

    if (options->progress != NULL &&
        options->progress(options->progress_context,
                          fmin(1, fmax(cells, time))) != 0)
        audit->stopped = true;
    return !audit->stopped;
}

static void tell(cg_audit *audit, cg_audit_cell *cell)
{
    cell->told.struct_size = sizeof cell->told;
    cell->told.choice = cell->choice;
    cell->told.best = cell->best;
    cell->told.note = cell->note;
    if (audit->options.cell != NULL)
        audit->options.cell(audit->options.cell_context, &cell->told);
}

static cellgate_status measure_all(cg_audit *audit, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    while (audit->done < audit->count && cg_audit_goes_on(audit) &&
           left(audit) > 0) {
        cg_audit_cell *cell = &audit->cells[audit->done];
        const double part = left(audit) / (double)(audit->count - audit->done);

        status = cg_audit_measure(audit, cell,
                                  fmin(GENEROUS * part, left(audit)), error);
        if (status != CELLGATE_OK)
            return status;
        /* One that was stopped in the middle has not been reached. */
        if (audit->stopped && cell->told.verdict == CELLGATE_AUDIT_UNDECIDED)
            break;
        audit->done++;
        tell(audit, cell);
    }
    return status;
}

/* ---- Adding up ----------------------------------------------------------- */

static void count_cell(const cg_audit_cell *cell, uint32_t *right,
                       uint32_t *wrong, uint32_t *undecided)
{
    *right += cell->told.verdict == CELLGATE_AUDIT_RIGHT;
    *wrong += cell->told.verdict == CELLGATE_AUDIT_WRONG;
    *undecided += cell->told.verdict == CELLGATE_AUDIT_UNDECIDED;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void add_cell(const cg_audit_cell *cell, cellgate_audit_result *result)
{
    count_cell(cell, &result->right, &result->wrong, &result->undecided);
    if (cell->told.crossover)
        count_cell(cell, &result->crossover_right, &result->crossover_wrong,
                   &result->crossover_undecided);
    if (cell->told.estimate == CELLGATE_ESTIMATE_EXACT)
        count_cell(cell, &result->exact_right, &result->exact_wrong,
                   &result->exact_undecided);
    result->left_out += cell->told.verdict == CELLGATE_AUDIT_LEFT_OUT;
}

static void add_up(const cg_audit *audit, double *selves,
                   cellgate_audit_result *result)
{
    size_t count = 0;

    *result = (cellgate_audit_result){ .struct_size = sizeof *result };
    result->cells = (uint32_t)audit->count;
    result->unreached = (uint32_t)(audit->count - audit->done);
    result->worst = 1;
    for (size_t at = 0; at < audit->done; at++) {
        const cg_audit_cell *cell = &audit->cells[at];

        add_cell(cell, result);
        if (cell->told.verdict == CELLGATE_AUDIT_LEFT_OUT)
            continue;
        selves[count++] = fabs(cell->told.self - 1);
        if (cell->told.verdict == CELLGATE_AUDIT_UNDECIDED)
            continue;
        result->regret += cell->loss - 1;
        result->worst = fmax(result->worst, cell->loss);
    }
    if (count == 0)
        return;
    qsort(selves, count, sizeof *selves, by_value);
    result->self_median = selves[count / 2];
    result->self_worst = selves[count - 1];
    if (result->right + result->wrong > 0)
        result->regret /= result->right + result->wrong;
}

static cellgate_status audit_all(cg_audit *audit, cellgate_audit_result *result,
                                 cellgate_error *error)
{
    double *selves = NULL;
    cellgate_status status = cg_audit_list_cells(audit, error);

    if (status == CELLGATE_OK) {
        selves = calloc(audit->count, sizeof *selves);
        status = selves != NULL ? measure_all(audit, error)
                                : cellgate_fail(error, CELLGATE_NO_MEMORY,
                                                "no memory for an audit");
    }
    if (status == CELLGATE_OK)
        add_up(audit, selves, result);
    free(selves);
    return status;
}

/* Its own one, so that the application's is as it was. */
static cellgate_status open_session(const cellgate_session *like,
                                    cg_audit *audit, cellgate_error *error)
{
    const char *device =
        like->named ? cg_candidate_name(&like->candidates[0]) : NULL;
    cellgate_status status =
        cg_audit_session(like, device, like->variant, &audit->session, error);

    audit->rivals.of = audit->session;
    return status;
}

cellgate_status cellgate_audit(cellgate_session *session,
                               const cellgate_audit_options *options,
                               cellgate_audit_result *result,
                               cellgate_error *error)
{
    cg_audit audit = { .done = 0 };
    cellgate_audit_result filled;
    cg_policy ignored;
    cellgate_status status = cg_process_check(error);

    if (status == CELLGATE_OK &&
        (session == NULL || !cg_given_fillable(result)))
        status = cellgate_fail(error, CELLGATE_INVALID,
                               "an audit needs a session and a result whose "
                               "struct_size is set");
    if (status == CELLGATE_OK)
        status = read_options(options, &audit.options, error);
    if (status != CELLGATE_OK)
        return status;
    cg_route_settings(session, &audit.regime, &ignored);
    audit.start = cg_now(&cg_real_clock);
    status = open_session(session, &audit, error);
    if (status == CELLGATE_OK && audit.regime == CG_SPACED)
        status = cg_displacer_init(&audit.displacer, error);
    if (status == CELLGATE_OK)
        status = audit_all(&audit, &filled, error);
    cg_displacer_finish(&audit.displacer);
    cg_audit_rivals_finish(&audit.rivals);
    cellgate_session_destroy(audit.session);
    free(audit.cells);
    if (status == CELLGATE_OK)
        cellgate_struct_copy(result, &filled);
    return status;
}
