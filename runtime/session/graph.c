/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/graph.h"

/* x, mask and the states; sequence, last and the states: as many of both. */
static size_t lstm_arity(const cg_node *node)
{
    return 2 + 2 * (size_t)node->as.lstm.shape.directions;
}

/* Copies what the model says of an LSTM's values and numbers the rest. */
static void complete(cg_graph *graph, int32_t *to, const int32_t *from,
                     size_t count, size_t arity)
{
    for (size_t at = 0; at < arity; at++) {
        to[at] = at < count ? from[at] : CG_NO_VALUE;
        if (to[at] == CG_NO_VALUE && at >= CG_LSTM_INPUT_STATE)
            to[at] = (int32_t)graph->value_count++;
    }
}

static void complete_lstms(cg_graph *graph)
{
    int32_t *array = graph->arrays;

    for (size_t at = 0; at < graph->node_count; at++) {
        cg_node *node = &graph->nodes[at];
        size_t arity;

        if (node->kind != CG_LSTM)
            continue;
        graph->lstms[graph->lstm_count++] = at;
        arity = lstm_arity(node);
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
    size_t entries = 1;

    memset(graph, 0, sizeof *graph);
    for (size_t at = 0; at < model->node_count; at++)
        if (model->nodes[at].kind == CG_LSTM)
            entries += 2 * lstm_arity(&model->nodes[at]);
    graph->model = model;
    graph->node_count = model->node_count;
    graph->value_count = model->value_count;
    graph->nodes = calloc(model->node_count + 1, sizeof *graph->nodes);
    graph->lstms = calloc(model->node_count + 1, sizeof *graph->lstms);
    graph->arrays = calloc(entries, sizeof *graph->arrays);
    graph->uses = calloc(model->value_count + entries, sizeof *graph->uses);
    if (graph->nodes == NULL || graph->lstms == NULL || graph->arrays == NULL ||
        graph->uses == NULL) {
        cg_graph_finish(graph);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a session on '%s'", model->path);
    }
    memcpy(graph->nodes, model->nodes,
           model->node_count * sizeof *graph->nodes);
    complete_lstms(graph);
    count_uses(graph);
    return CELLGATE_OK;
}

void cg_graph_finish(cg_graph *graph)
{
    free(graph->nodes);
    free(graph->lstms);
    free(graph->arrays);
    free(graph->uses);
    memset(graph, 0, sizeof *graph);
}
