/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes may stand behind each other in one segment: the rules of the
 * graph and of masks, before any device is asked.
 */
#ifndef CELLGATE_RUNTIME_SESSION_CHAIN_H
#define CELLGATE_RUNTIME_SESSION_CHAIN_H

#include "runtime/session/graph.h"

/* What chains are cut from. */
typedef struct cg_cutting {
    const cg_graph *graph;
    const bool *present; /* by value: see cg_partition */
    int64_t *group;      /* by node: the part it belongs to, -1 for none yet */
    uint8_t *reached;    /* by node: scratch */
} cg_cutting;

/* The mask that an LSTM has in these requests, or CG_NO_VALUE. */
int32_t cg_chain_mask(const cg_cutting *cutting, const cg_node *node);

/* Whether a node alone may be a segment: kind and ranks. */
bool cg_chain_start(const cg_cutting *cutting, size_t node);

/*
 * The longest chain from `start` that the rules allow; nodes[] has room for
 * all of the graph. At least 1.
 */
size_t cg_chain_longest(const cg_cutting *cutting, size_t start, size_t *nodes);

/* The value that a node passes on in a chain, or CG_NO_VALUE. */
int32_t cg_chain_link(const cg_graph *graph, const cg_node *node);

#endif
