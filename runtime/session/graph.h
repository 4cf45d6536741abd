/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph as a session sees it: the model's nodes, with a value number for
 * every LSTM's initial and final state whether the model uses it or not, so
 * that streams reach state that the graph does not mention. Immutable.
 */
#ifndef CELLGATE_RUNTIME_SESSION_GRAPH_H
#define CELLGATE_RUNTIME_SESSION_GRAPH_H

#include "runtime/model/model.h"

typedef struct cg_graph {
    const cellgate_model *model;
    /* The model's, in its order. An LSTM's inputs and outputs are complete:
       none of its state entries is CG_NO_VALUE. */
    cg_node *nodes;
    size_t node_count;
    size_t value_count; /* the model's, and then the added state values */
    uint32_t *uses;     /* [value_count]: inputs of nodes and model outputs */
    size_t *lstms;      /* nodes of the LSTMs, in node order */
    size_t lstm_count;
    int32_t *arrays; /* memory of the completed inputs and outputs */
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

/* Whether a value is the model's own, not one that was added for state. */
static inline bool cg_graph_own(const cg_graph *graph, int32_t value)
{
    return value != CG_NO_VALUE && (size_t)value < graph->model->value_count;
}

/* Value of a state of an LSTM node: number `state` counts h and c of each
   direction: h of 0, c of 0, h of 1, c of 1. */
static inline int32_t cg_graph_initial(const cg_node *lstm, int32_t state)
{
    return lstm->inputs[CG_LSTM_INPUT_STATE + state];
}

static inline int32_t cg_graph_final(const cg_node *lstm, int32_t state)
{
    return lstm->outputs[CG_LSTM_OUTPUT_STATE + state];
}

/* Numbers a row of a state holds: R for h (state even), H for c. */
static inline int64_t cg_graph_width(const cg_node *lstm, int32_t state)
{
    const cellgate_lstm *shape = &lstm->as.lstm.shape;

    return state % 2 == 0 && shape->projection_size > 0 ? shape->projection_size
                                                        : shape->hidden_size;
}

#endif
