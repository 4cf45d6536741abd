/* SPDX-License-Identifier: Apache-2.0 */
/* From the scores of one step to log probabilities, and to one chosen id. */
#ifndef CELLGATE_RUNTIME_GENERATE_SCORES_H
#define CELLGATE_RUNTIME_GENERATE_SCORES_H

#include <stdbool.h>
#include <stdint.h>

#include "cellgate/types.h"

/*
 * The natural logarithms of probabilities: of the scores themselves, with
 * `probabilities`, else of the softmax of them. In double; log[count] is the
 * caller's. Returns NULL, or what is wrong with the scores, for people:
 * NaN, infinite logits, probabilities below 0, or nothing that can follow.
 */
const char *cg_scores_log(const float *scores, int64_t count,
                          bool probabilities, double *log);

/* The largest; of equal ones the first. */
int64_t cg_scores_greedy(const double *log, int64_t count);

/*
 * An id drawn from the distribution proportional to exp(log / temperature)
 * over the `top` most probable ids (0: all; of equal ones the first): the first
 * id at which the sum of those before it and its own, in the order of ids,
 * exceeds `uniform`, from [0, 1), of the whole sum. Temperature 0 is the limit:
 * greedy. weights[count] is scratch.
 */
int64_t cg_scores_sample(const double *log, int64_t count, double temperature,
                         int64_t top, double uniform, double *weights);

/*
 * Number `step` of stream `stream`, in [0, 1): the top 53 bits of output number
 * `step` of SplitMix64 (Steele, Lea and Flood 2014), whose state begins at
 * seed ^ mix(stream), where mix() is its output function; mix(0) is 0.
 */
double cg_random_uniform(uint64_t seed, uint64_t stream, uint64_t step);
/* The 64 bits that it comes from. */
uint64_t cg_random_bits(uint64_t seed, uint64_t stream, uint64_t step);

#endif
