/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a model a decoder's steps need again and again, and whether a
 * step at a time computes what the model computes for the whole sequence.
 */
#ifndef CELLGATE_RUNTIME_GENERATE_CAUSAL_H
#define CELLGATE_RUNTIME_GENERATE_CAUSAL_H

#include "runtime/model/model.h"

/* How a value follows from the ids that the decoder reads. */
typedef enum cg_reach {
    CG_APART,   /* not at all: it's the same at every step */
    CG_STEPS,   /* step by step: axis 1 is the decoder's time axis */
    CG_NEWEST,  /* no time axis: it belongs to the newest step */
    CG_UNNEEDED /* no part of the scores */
} cg_reach;

/*
 * Finds out for each value of the model how it follows from input `token`, as
 * far as output `scores` (a value) needs it; reach[value_count] is the
 * caller's. UNSUPPORTED names the layer that needs more than a step's own
 * numbers and the states carried from step to step, and says why.
 */
cellgate_status cg_causal_trace(const cellgate_model *model, size_t token,
                                int32_t scores, cg_reach *reach,
                                cellgate_error *error);

/* Whether a value follows from input `token`; follows[value_count]. */
void cg_causal_follow(const cellgate_model *model, size_t token, bool *follows);

/* Whether a node runs over the decoder's steps, and carries its state from one
   to the next. */
static inline bool cg_causal_carries(const cg_node *node, const cg_reach *reach)
{
    return cg_node_state_kinds(node) > 0 && reach[node->inputs[0]] == CG_STEPS;
}

/* Of a recurrent node: its output is zero at masked steps. */
static inline bool cg_causal_zero_masked(const cg_node *node)
{
    return node->kind == CG_LSTM ? node->as.lstm.zero_masked
                                 : node->as.recurrent.zero_masked;
}

#endif
