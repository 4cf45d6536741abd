/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to measure next: the cell whose decision is most in doubt, where being
 * wrong costs most. Pure arithmetic.
 *
 * Of two candidates with log-normal estimates, taking the one that looks
 * cheaper loses, when it is the wrong one, the difference; the expected loss
 * relative to the cost is s * f(d / s) - d * F(-d / s), with d = ln(rival /
 * best), s the standard error of d, and f and F the normal density and
 * distribution (the expected improvement of Jones, Schonlau, Welch 1998).
 */
#ifndef CELLGATE_RUNTIME_COST_SURVEY_H
#define CELLGATE_RUNTIME_COST_SURVEY_H

#include "runtime/cost/surface.h"

typedef struct cg_doubt {
    size_t best;  /* the candidate that looks cheapest; SIZE_MAX: none known */
    size_t rival; /* the one that contributes most; SIZE_MAX without one */
    double loss;  /* expected, relative: 0.01 is one percent */
} cg_doubt;

/* Of `count` candidates' estimates at one cell; those of kind NONE are as
   doubtful as anything can be. */
void cg_doubt_of(const cg_cost *costs, size_t count, cg_doubt *doubt);

/* The expected loss that candidate `index` contributes at a cell where `best`
   is taken. */
double cg_doubt_between(const cg_cost *best, const cg_cost *rival);

/*
 * The cell to measure next, or SIZE_MAX when no loss, times the cell's weight,
 * is above `enough`. `surfaces`: one a candidate, NULL where nothing is
 * measured. `able`: for each candidate which cells it can run at all, NULL
 * where these are all of them; likewise for all candidates. `weights`: traffic,
 * one a cell, NULL for equal ones. `measured`: cells that are not to be chosen
 * again. More than 256 candidates: the first ones count.
 */
size_t cg_survey_next(const cg_surface *const *surfaces,
                      const bool *const *able, size_t candidates,
                      const cg_cost_shape *cells, const double *weights,
                      const bool *measured, size_t count, double enough);

#endif
