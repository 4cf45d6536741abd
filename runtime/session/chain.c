/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/session/chain.h"
#include "runtime/session/segment.h"

int32_t cg_chain_mask(const cg_cutting *cutting, const cg_node *node)
{
    int32_t mask = CG_NO_VALUE;

    if (node->kind == CG_LSTM)
        mask = node->inputs[CG_LSTM_INPUT_MASK];
    return mask != CG_NO_VALUE && cutting->present[mask] ? mask : CG_NO_VALUE;
}

bool cg_chain_start(const cg_cutting *cutting, size_t at)
{
    const cg_node *node = &cutting->graph->nodes[at];
    int32_t rank;

    if (!cg_segment_takes(node->kind))
        return false;
    rank = cutting->graph->model->values[node->inputs[0]].rank;
    if (node->kind == CG_EMBEDDING)
        return rank == 2;
    if (node->kind == CG_LSTM)
        return rank == 3;
    return rank == 2 || rank == 3;
}

int32_t cg_chain_link(const cg_graph *graph, const cg_node *node)
{
    int32_t link, other = CG_NO_VALUE;

    if (node->kind == CG_LSTM) {
        link = node->outputs[CG_LSTM_OUTPUT_SEQUENCE];
        other = node->outputs[CG_LSTM_OUTPUT_LAST];
        if (link == CG_NO_VALUE) {
            link = other;
            other = CG_NO_VALUE;
        }
    } else {
        link = node->outputs[0];
    }
    if (link == CG_NO_VALUE || other != CG_NO_VALUE)
        return CG_NO_VALUE;
    return graph->uses[link] == 1 ? link : CG_NO_VALUE;
}

/* The node that reads `link` as its first input; node_count for none. */
static size_t reader(const cg_graph *graph, int32_t link)
{
    for (size_t at = 0; at < graph->node_count; at++)
        if (graph->nodes[at].input_count > 0 &&
            graph->nodes[at].inputs[0] == link)
            return at;
    return graph->node_count;
}

/*
 * Whether the results of an LSTM with a mask can go on inside the segment. The
 * device knows lengths only: what a masked step holds is put right after the
 * segment, and that must still be possible then.
 */
static bool mask_lets_pass(const cg_node *node, const cg_node *next)
{
    const cg_lstm *lstm = &node->as.lstm;

    if (node->outputs[CG_LSTM_OUTPUT_SEQUENCE] == CG_NO_VALUE)
        return !lstm->zero_masked;
    return lstm->zero_masked || lstm->shape.directions == 1 ||
           next->kind == CG_LSTM;
}

/* All LSTMs of a chain run with the same lengths. */
static bool masks_agree(const cg_cutting *cutting, const size_t *nodes,
                        size_t count, const cg_node *next)
{
    if (next->kind != CG_LSTM)
        return true;
    for (size_t at = 0; at < count; at++) {
        const cg_node *node = &cutting->graph->nodes[nodes[at]];

        if (node->kind == CG_LSTM &&
            cg_chain_mask(cutting, node) != cg_chain_mask(cutting, next))
            return false;
    }
    return true;
}

static bool reads_reached(const cg_cutting *cutting, const cg_node *node,
                          size_t first_input)
{
    const cellgate_model *model = cutting->graph->model;

    for (size_t k = first_input; k < node->input_count; k++) {
        int32_t value = node->inputs[k];
        int32_t producer;

        if (!cg_graph_own(cutting->graph, value))
            continue;
        producer = model->values[value].producer;
        if (producer >= 0 && cutting->reached[producer])
            return true;
    }
    return false;
}

/* A part is computed as a whole: reaching one of its nodes reaches all. */
static bool reach_group(const cg_cutting *cutting, size_t node)
{
    bool more = !cutting->reached[node];

    cutting->reached[node] = 1;
    if (cutting->group[node] < 0)
        return more;
    for (size_t at = 0; at < cutting->graph->node_count; at++)
        if (cutting->group[at] == cutting->group[node] &&
            !cutting->reached[at]) {
            cutting->reached[at] = 1;
            more = true;
        }
    return more;
}

/* Marks the chain and everything that needs a result of it. */
static void mark_reached(const cg_cutting *cutting, const size_t *nodes,
                         size_t count)
{
    bool more = true;

    memset(cutting->reached, 0, cutting->graph->node_count);
    for (size_t at = 0; at < count; at++)
        cutting->reached[nodes[at]] = 1;
    while (more) {
        more = false;
        for (size_t at = 0; at < cutting->graph->node_count; at++)
            if (!cutting->reached[at] &&
                reads_reached(cutting, &cutting->graph->nodes[at], 0))
                more = reach_group(cutting, at) || more;
    }
}

/* The next node of the chain, or node_count: the chain ends. */
static size_t extension(const cg_cutting *cutting, const size_t *nodes,
                        size_t count)
{
    const cg_graph *graph = cutting->graph;
    const size_t none = graph->node_count;
    const cg_node *end = &graph->nodes[nodes[count - 1]], *node;
    int32_t link = cg_chain_link(graph, end);
    size_t next;

    if (link == CG_NO_VALUE)
        return none;
    next = reader(graph, link);
    if (next == none || cutting->group[next] >= 0 ||
        !cg_chain_start(cutting, next))
        return none;
    node = &graph->nodes[next];
    if (node->kind == CG_EMBEDDING || !masks_agree(cutting, nodes, count, node))
        return none;
    if (cg_chain_mask(cutting, end) != CG_NO_VALUE &&
        !mask_lets_pass(end, node))
        return none;
    /* What else it reads must not wait for this very segment. */
    mark_reached(cutting, nodes, count);
    return reads_reached(cutting, node, 1) ? none : next;
}

size_t cg_chain_longest(const cg_cutting *cutting, size_t start, size_t *nodes)
{
    size_t count = 1, next;

    nodes[0] = start;
    while ((next = extension(cutting, nodes, count)) <
           cutting->graph->node_count)
        nodes[count++] = next;
    return count;
}
