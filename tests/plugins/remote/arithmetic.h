/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels compute with, and how they find their operands in a view. */
#ifndef REMOTE_ARITHMETIC_H
#define REMOTE_ARITHMETIC_H

#include "tests/plugins/remote/support.h"

/* One of the activations that segment.c lets through. NaN gives NaN. */
float remote_activate(const cellgate_activation *activation, float x);

/* x limited to [-clip, clip], unless clip is 0. NaN gives NaN. */
float remote_limit(float x, float clip);

/* sums[count] = bias, or zeros where it is NULL. */
void remote_start_sums(const float *bias, int64_t count, float *sums);

/* sums[columns] += x[rows] * weights[rows][columns], in the pack's numerics. */
void remote_multiply(enum remote_pack pack, const float *x, int64_t rows,
                     const void *weights, int64_t columns, float *sums);

/* `count` floats at element `at` of a view; NULL if any lies outside. */
float *remote_floats(const struct remote_view *view, int64_t at, int64_t count);

/* A matrix of `count` elements in the pack's type; NULL if it is no such. */
const void *remote_matrix(const struct remote_view *view, enum remote_pack pack,
                          int64_t count);

#endif
