/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/chain.h"
#include "runtime/session/partition.h"

/* A partition under construction. */
typedef struct cutter {
    cg_partition *partition;
    const cg_engine *engine;
    const char *host_reason;
    cg_segment_list *list;
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

/* ---- Segments ---------------------------------------------------------- */

static cg_segment *find_segment(const cg_segment_list *list,
                                const size_t *nodes, size_t count)
{
    for (size_t at = 0; at < list->count; at++) {
        cg_segment *segment = list->segments[at];

        if (segment->node_count == count &&
            memcmp(segment->nodes, nodes, count * sizeof *nodes) == 0)
            return segment;
    }
    return NULL;
}

static cellgate_status add_segment(cg_segment_list *list, cg_segment *segment,
                                   cellgate_error *error)
{
    if (list->count == list->capacity) {
        size_t capacity = 2 * list->capacity + 8;
        cg_segment **grown = realloc(list->segments, capacity * sizeof *grown);

        if (grown == NULL)
            return no_memory(error);
        list->segments = grown;
        list->capacity = capacity;
    }
    segment->index = list->count;
    list->segments[list->count++] = segment;
    return CELLGATE_OK;
}

void cg_segment_list_finish(cg_segment_list *list)
{
    for (size_t at = 0; at < list->count; at++)
        cg_segment_destroy(list->segments[at]);
    free(list->segments);
    memset(list, 0, sizeof *list);
}

/* Notes why a chain stops before a node that the rules would have let in. */
static cellgate_status note_cut(cg_segment *segment, const cg_graph *graph,
                                size_t refused, const cellgate_error *reason,
                                cellgate_error *error)
{
    const char *name = graph->nodes[refused].name;
    size_t size = strlen(name) + strlen(reason->text) + 32;
    char *text = malloc(size);

    if (text == NULL)
        return no_memory(error);
    snprintf(text, size, "not together with %s: %s", name, reason->text);
    free(segment->reason);
    segment->reason = text;
    return CELLGATE_OK;
}

static cellgate_status segment_for(cutter *work, size_t count,
                                   cg_segment **segment,
                                   cellgate_error *refusal)
{
    cellgate_status status;

    *segment = find_segment(work->list, work->nodes, count);
    if (*segment != NULL)
        return CELLGATE_OK;
    status = cg_segment_create(work->cutting.graph, work->engine, work->nodes,
                               count, segment, refusal);
    if (status != CELLGATE_OK)
        return status;
    status = add_segment(work->list, *segment, refusal);
    if (status != CELLGATE_OK)
        cg_segment_destroy(*segment);
    return status;
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

/* The longest chain that the device takes; the node alone on the host if it
   does not even take that. */
static cellgate_status add_chain(cutter *work, size_t start)
{
    cg_partition *partition = work->partition;
    cellgate_error refusal = CELLGATE_ERROR_INIT, cut = CELLGATE_ERROR_INIT;
    size_t longest = cg_chain_longest(&work->cutting, start, work->nodes);
    cg_part *part = &partition->parts[partition->count];
    cellgate_status status = CELLGATE_UNSUPPORTED;
    cg_segment *segment = NULL;
    size_t before = work->list->count, count;

    for (count = longest; count > 0; count--) {
        status = segment_for(work, count, &segment, &refusal);
        if (status != CELLGATE_UNSUPPORTED)
            break;
        cut = count > 1 ? refusal : cut;
    }
    if (status == CELLGATE_UNSUPPORTED)
        return add_host_part(work, start, refusal.text);
    /* One that was there already is in use, and so is its reason. */
    if (status == CELLGATE_OK && count < longest && work->list->count > before)
        status = note_cut(segment, work->cutting.graph, work->nodes[count],
                          &cut, &refusal);
    if (status != CELLGATE_OK)
        return cellgate_fail(work->error, status, "%s", refusal.text);
    part->segment = segment;
    part->node = start;
    join(work, part, segment);
    partition->count++;
    return CELLGATE_OK;
}

static cellgate_status add_part(cutter *work, size_t node)
{
    const cg_node *at = &work->cutting.graph->nodes[node];

    if (work->engine == NULL)
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
                                  const cg_engine *engine,
                                  const char *host_reason, bool masked,
                                  cg_segment_list *list, cellgate_error *error)
{
    size_t count = graph->node_count + 1;
    cutter work = {
        partition, engine, host_reason, list, { graph, NULL, NULL, NULL },
        NULL,      error
    };
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
