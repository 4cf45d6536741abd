/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/graph.h"

/* x, mask and the states; sequence, last and the states: as many of both. */
static size_t arity_of(const cg_node *node)
{
    return CG_RECURRENT_INPUT_STATE +
           (size_t)(cg_node_state_kinds(node) * cg_node_directions(node));
}

/* Copies what the model says of a node's values and numbers the rest. */
static void complete(cg_graph *graph, int32_t *to, const int32_t *from,
                     size_t count, size_t arity)
{
    for (size_t at = 0; at < arity; at++) {
        to[at] = at < count ? from[at] : CG_NO_VALUE;
        if (to[at] == CG_NO_VALUE && at >= CG_RECURRENT_INPUT_STATE)
            to[at] = (int32_t)graph->value_count++;
    }
}

static void add_states(cg_graph *graph, size_t at)
{
    const int32_t kinds = cg_node_state_kinds(&graph->nodes[at]);
    const size_t number = graph->recurrent_count++;

    graph->recurrent[number] = at;
    graph->first_state[number] = graph->state_count;
    for (int32_t kind = 0; kind < kinds; kind++)
        graph->states[graph->state_count++] = (cg_graph_state){ number, kind };
}

static void complete_recurrent(cg_graph *graph)
{
    int32_t *array = graph->arrays;

    for (size_t at = 0; at < graph->node_count; at++) {
        cg_node *node = &graph->nodes[at];
        size_t arity;

        if (cg_node_state_kinds(node) == 0)
            continue;
        add_states(graph, at);
        arity = arity_of(node);
        complete(graph, array, node->inputs, node->input_count, arity);
        node->inputs = array;
        node->input_count = arity;
        array += arity;
        complete(graph, array, node->outputs, node->output_count, arity);
        node->outputs = array;
        node->output_count = arity;
        array += arity;
    }
}

static bool lacks_input(const cg_node *node, const bool *missing, bool as,
                        bool all)
{
    for (size_t at = 0; at < node->input_count; at++)
        if ((missing[node->inputs[at]] == as) != all)
            return !all;
    return all;
}

bool cg_graph_lacks(const cg_node *node, const bool *missing, bool as)
{
    switch (node->kind) {
    case CG_VALID:
        return true;
    case CG_LOGIC:
        return node->as.logic != CG_LOGIC_NOT &&
               lacks_input(node, missing, as, node->as.logic == CG_LOGIC_AND);
    case CG_REVERSE:
    case CG_SLICE:
    case CG_CONCAT:
    case CG_REPEAT:
    case CG_RESHAPE:
    case CG_PERMUTE:
        return lacks_input(node, missing, as, true);
    default:
        return false;
    }
}

static void count_uses(cg_graph *graph)
{
    const cellgate_model *model = graph->model;

    for (size_t at = 0; at < graph->node_count; at++)
        for (size_t k = 0; k < graph->nodes[at].input_count; k++)
            if (graph->nodes[at].inputs[k] != CG_NO_VALUE)
                graph->uses[graph->nodes[at].inputs[k]]++;
    for (size_t at = 0; at < model->output_count; at++)
        graph->uses[model->outputs[at]]++;
}

cellgate_status cg_graph_init(cg_graph *graph, const cellgate_model *model,
                              cellgate_error *error)
{
    size_t entries = 1, recurrent = 1;

    memset(graph, 0, sizeof *graph);
    for (size_t at = 0; at < model->node_count; at++)
        if (cg_node_state_kinds(&model->nodes[at]) > 0) {
            entries += 2 * arity_of(&model->nodes[at]);
            recurrent++;
        }
    graph->model = model;
    graph->node_count = model->node_count;
    graph->value_count = model->value_count;
    graph->nodes = calloc(model->node_count + 1, sizeof *graph->nodes);
    graph->recurrent = calloc(recurrent, sizeof *graph->recurrent);
    graph->first_state = calloc(recurrent, sizeof *graph->first_state);
    graph->states = calloc(2 * recurrent, sizeof *graph->states);
    graph->arrays = calloc(entries, sizeof *graph->arrays);
    graph->uses = calloc(model->value_count + entries, sizeof *graph->uses);
    if (graph->nodes == NULL || graph->recurrent == NULL ||
        graph->first_state == NULL || graph->states == NULL ||
        graph->arrays == NULL || graph->uses == NULL) {
        cg_graph_finish(graph);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a session on '%s'", model->path);
    }
    memcpy(graph->nodes, model->nodes,
           model->node_count * sizeof *graph->nodes);
    complete_recurrent(graph);
    count_uses(graph);
    return CELLGATE_OK;
}

void cg_graph_finish(cg_graph *graph)
{
    free(graph->nodes);
    free(graph->recurrent);
    free(graph->first_state);
    free(graph->states);
    free(graph->arrays);
    free(graph->uses);
    memset(graph, 0, sizeof *graph);
}
