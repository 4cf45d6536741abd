/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/chain.h"
#include "runtime/session/partition.h"

/* A partition under construction. */
typedef struct cutter {
    cg_partition *partition;
    const cg_chooser *chooser;
    const char *host_reason;
    cg_cutting cutting;
    size_t *nodes; /* scratch: one chain */
    cellgate_error *error;
} cutter;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to partition the model");
}

/* ---- Which values there are -------------------------------------------- */

static void find_absent(bool *present, const cg_graph *graph, bool masked)
{
    const cellgate_model *model = graph->model;

    for (size_t at = 0; at < graph->value_count; at++)
        present[at] = true;
    if (masked)
        return;
    for (size_t at = 0; at < model->input_count; at++)
        if (model->inputs[at].mask != CG_NO_VALUE)
            present[model->inputs[at].mask] = false;
    for (size_t at = 0; at < graph->node_count; at++)
        if (cg_graph_lacks(&graph->nodes[at], present, false))
            present[graph->nodes[at].outputs[0]] = false;
}

/* ---- Parts ------------------------------------------------------------- */

static void join(cutter *work, cg_part *part, const cg_segment *segment)
{
    int64_t group = part - work->partition->parts;

    part->mask = CG_NO_VALUE;
    for (size_t at = 0; at < segment->node_count; at++) {
        const cg_node *node = &work->cutting.graph->nodes[segment->nodes[at]];

        work->cutting.group[segment->nodes[at]] = group;
        if (node->kind == CG_LSTM)
            part->mask = cg_chain_mask(&work->cutting, node);
    }
}

static cellgate_status add_host_part(cutter *work, size_t node,
                                     const char *reason)
{
    cg_partition *partition = work->partition;
    cg_part *part = &partition->parts[partition->count];

    part->reason = strdup(reason);
    if (part->reason == NULL)
        return no_memory(work->error);
    part->node = node;
    part->mask = CG_NO_VALUE;
    work->cutting.group[node] = (int64_t)partition->count++;
    return CELLGATE_OK;
}

static cellgate_status add_chain(cutter *work, size_t start)
{
    cg_partition *partition = work->partition;
    const size_t longest = cg_chain_longest(&work->cutting, start, work->nodes);
    cg_part *part = &partition->parts[partition->count];
    cg_choice choice = { .segment = NULL };
    cellgate_status status = work->chooser->choose(
        work->chooser->context, work->nodes, longest, &choice, work->error);

    if (status != CELLGATE_OK)
        return status;
    if (choice.segment == NULL)
        return add_host_part(work, start, choice.reason);
    part->reason = strdup(choice.reason);
    if (part->reason == NULL)
        return no_memory(work->error);
    part->segment = choice.segment;
    part->node = start;
    join(work, part, choice.segment);
    partition->count++;
    return CELLGATE_OK;
}

static cellgate_status add_part(cutter *work, size_t node)
{
    const cg_node *at = &work->cutting.graph->nodes[node];

    if (work->chooser == NULL)
        return add_host_part(work, node, work->host_reason);
    if (!cg_segment_takes(at->kind))
        return add_host_part(work, node,
                             "an op of this kind runs on the "
                             "host");
    if (!cg_chain_start(&work->cutting, node))
        return add_host_part(work, node,
                             "devices take sequences and rows, "
                             "not tensors of this rank");
    return add_chain(work, node);
}

/* ---- Order ------------------------------------------------------------- */

static bool node_ready(const cutter *work, size_t node, int64_t group,
                       const bool *done)
{
    const cg_graph *graph = work->cutting.graph;

    for (size_t k = 0; k < graph->nodes[node].input_count; k++) {
        int32_t value = graph->nodes[node].inputs[k], producer;

        if (!cg_graph_own(graph, value))
            continue;
        producer = graph->model->values[value].producer;
        if (producer >= 0 && work->cutting.group[producer] != group &&
            !done[work->cutting.group[producer]])
            return false;
    }
    return true;
}

static bool part_ready(const cutter *work, size_t at, const bool *done)
{
    const cg_part *part = &work->partition->parts[at];

    if (part->segment == NULL)
        return node_ready(work, part->node, (int64_t)at, done);
    for (size_t k = 0; k < part->segment->node_count; k++)
        if (!node_ready(work, part->segment->nodes[k], (int64_t)at, done))
            return false;
    return true;
}

/* Chains never wait for each other in a circle (chain.c), so each round finds
   a part that can run. */
static cellgate_status sort_parts(cutter *work)
{
    cg_partition *partition = work->partition;
    cg_part *sorted = calloc(partition->count + 1, sizeof *sorted);
    bool *done = calloc(partition->count + 1, sizeof *done);
    size_t count = 0, before = SIZE_MAX;

    if (sorted == NULL || done == NULL) {
        free(sorted);
        free(done);
        return no_memory(work->error);
    }
    while (count < partition->count && count != before) {
        before = count;
        for (size_t at = 0; at < partition->count; at++)
            if (!done[at] && part_ready(work, at, done)) {
                sorted[count++] = partition->parts[at];
                done[at] = true;
            }
    }
    free(done);
    if (count < partition->count) {
        free(sorted);
        return cellgate_fail(work->error, CELLGATE_INTERNAL,
                             "the parts of the model wait for each other");
    }
    free(partition->parts);
    partition->parts = sorted;
    return CELLGATE_OK;
}

static cellgate_status cut(cutter *work)
{
    const cg_graph *graph = work->cutting.graph;
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; at < graph->node_count; at++)
        work->cutting.group[at] = -1;
    for (size_t at = 0; status == CELLGATE_OK && at < graph->node_count; at++)
        if (work->cutting.group[at] < 0)
            status = add_part(work, at);
    return status == CELLGATE_OK ? sort_parts(work) : status;
}

cellgate_status cg_partition_init(cg_partition *partition,
                                  const cg_graph *graph,
                                  const cg_chooser *chooser,
                                  const char *host_reason, bool masked,
                                  cellgate_error *error)
{
    size_t count = graph->node_count + 1;
    cutter work = { .partition = partition,
                    .chooser = chooser,
                    .host_reason = host_reason,
                    .cutting = { .graph = graph },
                    .error = error };
    cellgate_status status;

    memset(partition, 0, sizeof *partition);
    partition->parts = calloc(count, sizeof *partition->parts);
    partition->present =
        calloc(graph->value_count + 1, sizeof *partition->present);
    work.cutting.group = calloc(count, sizeof *work.cutting.group);
    work.cutting.reached = calloc(count, 1);
    work.nodes = calloc(count, sizeof *work.nodes);
    if (partition->parts == NULL || partition->present == NULL ||
        work.cutting.group == NULL || work.cutting.reached == NULL ||
        work.nodes == NULL) {
        status = no_memory(error);
    } else {
        find_absent(partition->present, graph, masked);
        work.cutting.present = partition->present;
        status = cut(&work);
    }
    free(work.cutting.group);
    free(work.cutting.reached);
    free(work.nodes);
    if (status != CELLGATE_OK)
        cg_partition_finish(partition);
    return status;
}

void cg_partition_finish(cg_partition *partition)
{
    for (size_t at = 0; at < partition->count; at++)
        free(partition->parts[at].reason);
    free(partition->parts);
    free(partition->present);
    memset(partition, 0, sizeof *partition);
}
