/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the kinds that remember, or look at, other steps. */
#include "config.h"

#include "runtime/generate/causal_rules.h"

/* ---- Recurrent ---------------------------------------------------------- */

static cellgate_status forward_only(const cg_node *node, cellgate_error *error)
{
    const bool lstm = node->kind == CG_LSTM;

    if (cg_node_directions(node) != 1)
        return cg_causal_refuse(node, error,
                                "it has a backward direction, which begins at "
                                "the last step");
    if (lstm ? node->as.lstm.shape.reverse != 0 : node->as.recurrent.reverse)
        return cg_causal_refuse(node, error,
                                "it goes backwards, from the last step");
    return CELLGATE_OK;
}

static cellgate_status states_from_apart(const cg_trace *trace,
                                         const cg_node *node,
                                         cellgate_error *error)
{
    for (size_t i = CG_RECURRENT_INPUT_STATE; i < node->input_count; i++)
        if (cg_causal_reach(trace, node, i) != CG_APART)
            return cg_causal_refuse(
                node, error,
                "its initial state, '%s', follows from all of the ids that are "
                "being generated",
                cg_causal_input(trace, node, i)->name);
    return CELLGATE_OK;
}

static bool has_initial(const cg_node *node)
{
    for (size_t i = CG_RECURRENT_INPUT_STATE; i < node->input_count; i++)
        if (node->inputs[i] != CG_NO_VALUE)
            return true;
    return false;
}

static cellgate_status mask_of_steps(const cg_trace *trace, const cg_node *node,
                                     cellgate_error *error)
{
    if (node->inputs[CG_RECURRENT_INPUT_MASK] == CG_NO_VALUE)
        return CELLGATE_OK;
    if (cg_causal_reach(trace, node, CG_RECURRENT_INPUT_MASK) != CG_STEPS)
        return cg_causal_refuse(
            node, error,
            "its mask, '%s', does not belong to the decoder's steps",
            cg_causal_input(trace, node, CG_RECURRENT_INPUT_MASK)->name);
    if (!cg_causal_zero_masked(node) && has_initial(node))
        return cg_causal_refuse(
            node, error,
            "it has a mask and initial states, and repeats, in masked steps, "
            "an output of the steps before");
    return CELLGATE_OK;
}

/* It runs over something else: over all of it, at each step. */
static cellgate_status anew(const cg_trace *trace, const cg_node *node,
                            cellgate_error *error)
{
    for (size_t i = 1; i < node->input_count; i++)
        if (cg_causal_reach(trace, node, i) == CG_STEPS)
            return cg_causal_refuse(
                node, error,
                "'%s' belongs to the decoder's steps, and what it runs over "
                "does not",
                cg_causal_input(trace, node, i)->name);
    cg_causal_set(trace, node, CG_NEWEST);
    return CELLGATE_OK;
}

cellgate_status cg_causal_rule_recurrent(const cg_trace *trace,
                                         const cg_node *node,
                                         cellgate_error *error)
{
    const int32_t sequence = node->outputs[CG_RECURRENT_OUTPUT_SEQUENCE];
    const cg_reach x = cg_causal_reach(trace, node, 0);
    cellgate_status status = CELLGATE_OK;

    if (x == CG_STEPS)
        status = forward_only(node, error);
    if (x != CG_NEWEST && status == CELLGATE_OK)
        status = states_from_apart(trace, node, error);
    if (x != CG_STEPS)
        return status == CELLGATE_OK ? anew(trace, node, error) : status;
    if (status == CELLGATE_OK)
        status = mask_of_steps(trace, node, error);
    if (status != CELLGATE_OK)
        return status;
    cg_causal_set(trace, node, CG_NEWEST);
    if (sequence != CG_NO_VALUE && trace->reach[sequence] != CG_UNNEEDED)
        trace->reach[sequence] = CG_STEPS;
    return CELLGATE_OK;
}

/* ---- Attention ---------------------------------------------------------- */

/* Whether value, key or the value's mask follow from the ids so. */
static bool attends_to(const cg_trace *trace, const cg_node *node,
                       cg_reach reach)
{
    return cg_causal_reach(trace, node, 1) == reach ||
           cg_causal_reach(trace, node, CG_ATTENTION_INPUT_KEY) == reach ||
           cg_causal_reach(trace, node, CG_ATTENTION_INPUT_VALUE_MASK) == reach;
}

static cellgate_status query_of_steps(const cg_trace *trace,
                                      const cg_node *node,
                                      cellgate_error *error)
{
    const int32_t mask = node->inputs[CG_ATTENTION_INPUT_QUERY_MASK];

    if (attends_to(trace, node, CG_NEWEST))
        return cg_causal_refuse(
            node, error, "it joins all steps with the newest one's result");
    if (node->as.attention.causal)
        return cg_causal_refuse(node, error,
                                "it is causal, and what a step may look at "
                                "depends on the step's number");
    if (mask != CG_NO_VALUE && trace->reach[mask] != CG_STEPS)
        return cg_causal_refuse(
            node, error,
            "its query's mask, '%s', does not belong to the decoder's steps",
            trace->model->values[mask].name);
    cg_causal_set(trace, node, CG_STEPS);
    return CELLGATE_OK;
}

/* The query alone may be of the decoder's steps: what they look at has to be
   there from the first one on. */
cellgate_status cg_causal_rule_attention(const cg_trace *trace,
                                         const cg_node *node,
                                         cellgate_error *error)
{
    if (attends_to(trace, node, CG_STEPS))
        return cg_causal_refuse(
            node, error, "it looks at %s",
            node->as.attention.causal
                ? "the decoder's own earlier steps, which a step does not have"
                : "all of the decoder's own steps, later ones too");
    if (cg_causal_reach(trace, node, 0) == CG_STEPS)
        return query_of_steps(trace, node, error);
    if (cg_causal_reach(trace, node, CG_ATTENTION_INPUT_QUERY_MASK) == CG_STEPS)
        return cg_causal_refuse(node, error,
                                "its query's mask belongs to the decoder's "
                                "steps, and the query does not");
    cg_causal_set(trace, node, CG_NEWEST);
    return CELLGATE_OK;
}
