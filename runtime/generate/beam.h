/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beam search for one row: what is kept, and nothing of how scores are made.
 *
 * At each step every live hypothesis is continued by every id. A continuation
 * by the stop id, or one that reaches the largest length, is finished: of
 * those, the `width` best by value are kept. Of the others, the `width` best
 * by their sum of log probabilities live on. The value of a finished hypothesis
 * is its sum divided by (ids, the stop id included) ^ penalty. Of equal ones
 * the earlier wins: by step, then parent, then id. Impossible continuations
 * (log probability -infinity) are left out.
 */
#ifndef CELLGATE_RUNTIME_GENERATE_BEAM_H
#define CELLGATE_RUNTIME_GENERATE_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "cellgate/types.h"

/* A sequence of ids: live, or finished. */
typedef struct cg_hypothesis {
    double sum;   /* of log probabilities, the stop id's included */
    double value; /* of a finished one */
    int32_t *ids; /* [length], without the stop id */
    int64_t length;
    bool stopped;   /* by the stop id */
    int64_t parent; /* live ones after a step: the number of the one of the
                       step before that it continues */
} cg_hypothesis;

typedef struct cg_beam {
    int64_t width;
    int64_t longest; /* ids, without the stop id */
    int32_t stop;    /* -1: none */
    double penalty;
    cg_hypothesis *live, *next, *finished; /* [width] each; best first */
    int64_t live_count, next_count, finished_count;
    int32_t *memory; /* of all ids */
} cg_beam;

/*
 * One live hypothesis without ids. INVALID never; NO_MEMORY. The caller ends it
 * with cg_beam_finish(), which takes one that is all zeros.
 */
cellgate_status cg_beam_init(cg_beam *beam, int64_t width, int64_t longest,
                             int32_t stop, double penalty,
                             cellgate_error *error);
void cg_beam_finish(cg_beam *beam);

/* Offers all continuations of live hypothesis `parent`; parents in order. */
void cg_beam_continue(cg_beam *beam, int64_t parent, const double *log,
                      int64_t count);
/*
 * Ends the step. The live hypotheses are the new ones, none where the search
 * is over: nothing that lives can still get among the finished ones.
 */
void cg_beam_advance(cg_beam *beam);

#endif
