/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "runtime/cost/survey.h"

double cg_doubt_between(const cg_cost *best, const cg_cost *rival)
{
    double difference, error, ratio;

    if (best->kind == CG_COST_NONE || rival->kind == CG_COST_NONE)
        return HUGE_VAL;
    difference = log(rival->seconds / best->seconds);
    error = hypot(best->error, rival->error);
    if (error == 0)
        return difference < 0 ? -difference : 0;
    ratio = difference / error;
    return error * exp(-ratio * ratio / 2) / sqrt(2 * M_PI) -
           difference * erfc(ratio / sqrt(2)) / 2;
}

void cg_doubt_of(const cg_cost *costs, size_t count, cg_doubt *doubt)
{
    *doubt = (cg_doubt){ .best = SIZE_MAX, .rival = SIZE_MAX };
    for (size_t i = 0; i < count; i++)
        if (costs[i].kind != CG_COST_NONE &&
            (doubt->best == SIZE_MAX ||
             costs[i].seconds < costs[doubt->best].seconds))
            doubt->best = i;
    if (doubt->best == SIZE_MAX) {
        doubt->loss = count > 0 ? HUGE_VAL : 0;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double loss;

        if (i == doubt->best)
            continue;
        loss = cg_doubt_between(&costs[doubt->best], &costs[i]);
        if (doubt->rival == SIZE_MAX || loss > doubt->loss) {
            doubt->rival = i;
            doubt->loss = loss;
        }
    }
}

#define CANDIDATES 256

static double loss_at(const cg_surface *const *surfaces,
                      const bool *const *able, size_t candidates,
                      const cg_cost_shape *cells, size_t cell)
{
    cg_cost costs[CANDIDATES];
    size_t count = 0;
    cg_doubt doubt;

    for (size_t i = 0; i < candidates && count < CANDIDATES; i++)
        if (able == NULL || able[i] == NULL || able[i][cell])
            cg_surface_predict(surfaces[i], &cells[cell], &costs[count++]);
    cg_doubt_of(costs, count, &doubt);
    return doubt.loss;
}

size_t cg_survey_next(const cg_surface *const *surfaces,
                      const bool *const *able, size_t candidates,
                      const cg_cost_shape *cells, const double *weights,
                      const bool *measured, size_t count, double enough)
{
    size_t next = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        double loss;

        if (measured != NULL && measured[i])
            continue;
        loss = loss_at(surfaces, able, candidates, cells, i) *
               (weights != NULL ? weights[i] : 1);
        if (loss > enough) {
            enough = loss;
            next = i;
        }
    }
    return next;
}
