/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph as a session sees it: the model's nodes, with a value number for
 * every recurrent node's initial and final state whether the model uses it or
 * not, so that streams reach state that the graph does not mention. Immutable.
 */
#ifndef CELLGATE_RUNTIME_SESSION_GRAPH_H
#define CELLGATE_RUNTIME_SESSION_GRAPH_H

#include "runtime/model/model.h"

/* One state of the graph: h or c of a recurrent node, of all directions. */
typedef struct cg_graph_state {
    size_t recurrent; /* number among the recurrent nodes */
    int32_t kind;     /* 0: h, 1: c */
} cg_graph_state;

typedef struct cg_graph {
    const cellgate_model *model;
    /* The model's, in its order. A recurrent node's inputs and outputs are
       complete: none of its state entries is CG_NO_VALUE. */
    cg_node *nodes;
    size_t node_count;
    size_t value_count; /* the model's, and then the added state values */
    uint32_t *uses;     /* [value_count]: inputs of nodes and model outputs */
    size_t *recurrent;  /* the recurrent nodes, in node order */
    size_t recurrent_count;
    cg_graph_state *states; /* theirs, in that order: h, then c if there is */
    size_t state_count;
    size_t *first_state; /* [recurrent_count]: number of its h in `states` */
    int32_t *arrays;     /* memory of the completed inputs and outputs */
} cg_graph;

/* Keeps no reference to the model: it must outlive the graph. */
cellgate_status cg_graph_init(cg_graph *graph, const cellgate_model *model,
                              cellgate_error *error);
void cg_graph_finish(cg_graph *graph);

/*
 * Whether the mask that a node makes is valid everywhere because masks that it
 * is made of are absent: it need not be made then, and counts as absent too.
 * missing[value] == `as` says which values are.
 */
bool cg_graph_lacks(const cg_node *node, const bool *missing, bool as);

/* Axis 1 of an input counts steps unless it is the last axis of numbers. */
static inline bool cg_value_has_steps(const cg_value *value)
{
    return value->rank >= (value->dtype == CELLGATE_I32 ? 2 : 3);
}

/* Whether a value is the model's own, not one that was added for state. */
static inline bool cg_graph_own(const cg_graph *graph, int32_t value)
{
    return value != CG_NO_VALUE && (size_t)value < graph->model->value_count;
}

/* Value of a state of a recurrent node; states of a node are numbered as in
   cg_node_directions(): h of 0, c of 0, h of 1, c of 1 for an LSTM. */
static inline int32_t cg_graph_initial(const cg_node *node, int32_t state)
{
    return node->inputs[CG_RECURRENT_INPUT_STATE + state];
}

static inline int32_t cg_graph_final(const cg_node *node, int32_t state)
{
    return node->outputs[CG_RECURRENT_OUTPUT_STATE + state];
}

/* The node that a state of the graph belongs to. */
static inline const cg_node *cg_graph_state_node(const cg_graph *graph,
                                                 size_t state)
{
    return &graph->nodes[graph->recurrent[graph->states[state].recurrent]];
}

#endif
