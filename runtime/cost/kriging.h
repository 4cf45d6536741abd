/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values at scattered places, interpolated with an error: kriging, that is a
 * Gaussian process of mean zero (Rasmussen & Williams, Gaussian Processes for
 * Machine Learning, 2006, chapter 2). The covariance of two places is Matern's
 * with nu = 3/2 over their distance, and each value has an error of its own.
 * The length over which values resemble each other is the most likely one of a
 * few. Pure arithmetic.
 */
#ifndef CELLGATE_RUNTIME_COST_KRIGING_H
#define CELLGATE_RUNTIME_COST_KRIGING_H

#include <stdbool.h>
#include <stddef.h>

#define CG_KRIGING_AXES 3
#define CG_KRIGING_MOST 512 /* places: work grows with their cube */

typedef struct cg_kriging cg_kriging;

/*
 * Of `count` places, values and standard errors, which are copied. NULL: no
 * memory, or more than CG_KRIGING_MOST. The caller destroys it; immutable, so
 * any thread may ask it.
 */
cg_kriging *cg_kriging_create(const double (*places)[CG_KRIGING_AXES],
                              const double *values, const double *errors,
                              size_t count);
void cg_kriging_destroy(cg_kriging *kriging); /* NULL is allowed */

/* The value at a place, and its standard error. */
void cg_kriging_at(const cg_kriging *kriging,
                   const double place[CG_KRIGING_AXES], double *value,
                   double *error);

#endif
