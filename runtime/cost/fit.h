/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least squares with coefficients that are not negative, for a handful of
 * unknowns: every subset of them is solved, and the best solution without a
 * negative one wins, which is exact (Lawson & Hanson 1974 search the same set).
 */
#ifndef CELLGATE_RUNTIME_COST_FIT_H
#define CELLGATE_RUNTIME_COST_FIT_H

#include <stddef.h>

#define CG_FIT_UNKNOWNS 4

/*
 * Minimises sum over rows of (1 - sum_k coefficients[k] * rows[i][k])^2. With
 * equal residuals the solution of fewer unknowns wins, then the later ones.
 */
void cg_fit(const double (*rows)[CG_FIT_UNKNOWNS], size_t count,
            double coefficients[CG_FIT_UNKNOWNS]);

#endif
