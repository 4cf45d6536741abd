/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a result may be from the exact one, and why: the only place.
 *
 * A fixed tolerance is wrong for recurrences: with 300 steps, or a relu for the
 * cell's activation, a correct float32 computation may be off by far more than
 * a short saturated one. So the tolerance of a case is measured on that case:
 * the oracle runs several more times (tolerance_runs), each time disturbing its
 * own arithmetic at random by what the variant's numeric class permits, and
 *
 *   tolerance = TOLERANCE_FACTOR x (the largest change that this makes in the
 *               row's part of the tensor, or half of the rows' median if that
 *               is more: a row of one number may be lucky)
 *             + 4u x (the largest magnitude in the row's part of the tensor)
 *             + 2^-120 (denormals may be flushed to zero)
 *
 * with u = 2^-24, float32's unit roundoff. The factor covers that a few random
 * disturbances may all be lucky, and polynomials in place of exact functions.
 * What is disturbed:
 *
 *   factors of products   A computed inner product of n terms is the exact one
 *       of factors changed by at most n u, typically sqrt(n) u (Higham,
 *       Accuracy and Stability of Numerical Algorithms, 3.1; Higham & Mary,
 *       SIAM J. Sci. Comput. 41(5), 2019). To sqrt(n) u the class adds its
 *       rounding of each factor: tf32 and f16 2^-11; bf16 2^-8, for truncation
 *       is usual; int8 1/127 of the largest magnitude in the matrix or vector.
 *   activations           By 4u of the magnitudes that enter them (an
 *       activation with values near 1, as tanh, so has an absolute error).
 *   elementwise steps     By 4u of the terms.
 *
 * A wrong formula changes results by 1e-3 or more, a class lower than the one
 * claimed by some 1e-3 (tf32 for f32); the f32 tolerances come to 1e-6 or so.
 *
 * Not compared are rows where float32 says nothing: a row in which an
 * activation's argument comes within a rounding error of a jump (hard_shrink,
 * threshold), or in which an intermediate value leaves a comfortable range, as
 * e^(e^x) does. In the lower classes that range ends where the rounding of one
 * gate's argument can turn the gate over: bf16 says nothing about a gate whose
 * argument is a sum of thousands. Such rows must still come out finite.
 */
#ifndef TESTS_CONFORMANCE_TOLERANCE_H
#define TESTS_CONFORMANCE_TOLERANCE_H

#include "tests/conformance/case.h"
#include "tests/oracle/oracle.h"

#define TOLERANCE_FACTOR 8.0
#define TOLERANCE_CLASSES 5 /* of cellgate_numeric */

/* How many disturbed runs: more for cheap cases, which have few values. */
int tolerance_runs(const test_case *c);

/* The disturbance of run number `run` of a class; the class must be known. */
oracle_noise tolerance_noise(const test_case *c, int32_t numeric, int run);

/*
 * The tolerance of a row's part of a tensor, from the largest change seen and
 * the largest magnitude in it.
 */
double tolerance_of(double change, double magnitude);

/* Whether a row with this record can be compared in this class at all. */
int tolerance_comparable(const test_case *c, int32_t numeric,
                         const oracle_row *row);

/* Whether such a row must be finite all the same: it fits in the class. */
int tolerance_finite(int32_t numeric, const oracle_row *row);

/* "f32", "tf32", ... or NULL for a number that isn't a class. */
const char *tolerance_class_name(int32_t numeric);

/* One sentence: what a tolerance in this class is made of. */
const char *tolerance_reason(int32_t numeric);

#endif
