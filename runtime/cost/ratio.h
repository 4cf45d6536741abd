/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many times longer one thing takes than another, from pairs of times that
 * were measured side by side. Pure arithmetic.
 *
 * What disturbs the machine disturbs both of a pair, so the logarithms of the
 * pairs' ratios are taken for symmetric about a centre. The estimate is
 * Hodges and Lehmann's (1963), the median of the means of all pairs of them;
 * the interval is the one that Wilcoxon's signed-rank test does not reject
 * (Hollander & Wolfe, Nonparametric Statistical Methods, section 3.3), with the
 * test's exact distribution. No other shape is assumed, and a few runs that
 * were interrupted move neither.
 */
#ifndef CELLGATE_RUNTIME_COST_RATIO_H
#define CELLGATE_RUNTIME_COST_RATIO_H

#include <stdbool.h>
#include <stdint.h>

#define CG_RATIO_PAIRS 256 /* at most: the means grow with their square */

typedef struct cg_ratio {
    double estimate;
    /* These hold the true ratio with the confidence that was asked for: 0 and
       infinity where there are too few pairs to say anything. */
    double low, high;
    uint32_t pairs;
} cg_ratio;

/*
 * Of `count` pairs, given as ln(first / second). `confidence` in (0, 1). Of no
 * pairs: an estimate of 1. False: no memory, or too many pairs.
 */
bool cg_ratio_of(const double *logs, uint32_t count, double confidence,
                 cg_ratio *ratio);

/*
 * How many of the means, counted from either end, lie outside of the interval:
 * the largest r such that 2 P(W < r) <= 1 - confidence, with W the signed-rank
 * sum of `count` pairs. 0: there are too few pairs. `scratch` has room for
 * count * (count + 1) / 2 + 1 numbers.
 */
uint32_t cg_ratio_rank(uint32_t count, double confidence, double *scratch);

#endif
