/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/segment.h"

bool cg_segment_takes(cg_kind kind)
{
    return kind == CG_LSTM || kind == CG_DENSE || kind == CG_EMBEDDING ||
           kind == CG_ACTIVATION || kind == CG_SOFTMAX;
}

static int64_t features(const cg_graph *graph, const cg_node *node)
{
    const cg_value *x = &graph->model->values[node->inputs[0]];

    return x->shape[x->rank - 1];
}

static void head_init(cellgate_op *head, size_t size, cellgate_op_kind kind)
{
    head->struct_size = size;
    head->kind = kind;
}

/*
 * Final states are always possible: a stream may want them of any request, and
 * one set of weights and plans serves requests with and without. A run says
 * which it wants.
 */
static void lstm_init(cellgate_lstm *op, const cg_node *node)
{
    *op = node->as.lstm.shape;
    memset(op->weights, 0, sizeof op->weights);
    head_init(&op->op, sizeof *op, CELLGATE_OP_LSTM);
    op->outputs = CELLGATE_LSTM_H | CELLGATE_LSTM_C;
    if (node->outputs[CG_LSTM_OUTPUT_SEQUENCE] != CG_NO_VALUE)
        op->outputs |= CELLGATE_LSTM_SEQUENCE;
    if (node->outputs[CG_LSTM_OUTPUT_LAST] != CG_NO_VALUE)
        op->outputs |= CELLGATE_LSTM_LAST;
}

static void op_init(cg_any_op *op, const cg_graph *graph, const cg_node *node)
{
    memset(op, 0, sizeof *op);
    switch (node->kind) {
    case CG_LSTM:
        lstm_init(&op->lstm, node);
        break;
    case CG_DENSE:
        head_init(&op->head, sizeof op->dense, CELLGATE_OP_DENSE);
        op->dense.input_size = node->as.dense.input_size;
        op->dense.units = node->as.dense.units;
        op->dense.has_bias = node->as.dense.has_bias;
        op->dense.activation = node->as.dense.activation;
        break;
    case CG_EMBEDDING:
        head_init(&op->head, sizeof op->embedding, CELLGATE_OP_EMBEDDING);
        op->embedding.vocabulary = node->as.embedding.vocabulary;
        op->embedding.size = node->as.embedding.size;
        break;
    case CG_ACTIVATION:
        head_init(&op->head, sizeof op->activation, CELLGATE_OP_ACTIVATION);
        op->activation.size = features(graph, node);
        op->activation.activation = node->as.activation;
        break;
    default: /* CG_SOFTMAX: cg_segment_takes() no other */
        head_init(&op->head, sizeof op->softmax, CELLGATE_OP_SOFTMAX);
        op->softmax.size = features(graph, node);
        break;
    }
}

static const float *weight(const cg_node *node, size_t index)
{
    return index < node->weight_count ? node->weights[index].data : NULL;
}

static void op_set_weights(cg_any_op *op, const cg_node *node)
{
    if (node->kind == CG_DENSE) {
        op->dense.kernel = weight(node, 0);
        op->dense.bias = op->dense.has_bias ? weight(node, 1) : NULL;
    } else if (node->kind == CG_EMBEDDING) {
        op->embedding.table = weight(node, 0);
    }
    if (node->kind != CG_LSTM)
        return;
    for (int32_t direction = 0; direction < op->lstm.directions; direction++) {
        cellgate_lstm_weights *to = &op->lstm.weights[direction];
        size_t first = CG_LSTM_WEIGHTS * (size_t)direction;

        to->kernel = weight(node, first);
        to->recurrent_kernel = weight(node, first + 1);
        to->bias = weight(node, first + 2);
        to->peephole = weight(node, first + 3);
        to->projection = weight(node, first + 4);
    }
}

cellgate_status cg_segment_variant(const cg_segment *segment,
                                   const cellgate_shape *shape, uint32_t index,
                                   cellgate_variant *variant,
                                   cellgate_error *error)
{
    const cg_engine *engine = segment->engine;
    cellgate_status status = cg_engine_hold(engine, error);

    if (status != CELLGATE_OK)
        return status;
    memset(variant, 0, sizeof *variant);
    variant->struct_size = sizeof *variant;
    status = engine->ops->support(engine->handle, &segment->chain, shape, index,
                                  variant, error);
    cg_engine_let_go(engine);
    variant->note[sizeof variant->note - 1] = '\0';
    variant->refusal[sizeof variant->refusal - 1] = '\0';
    variant->name[sizeof variant->name - 1] = '\0';
    if (status == CELLGATE_OK)
        (void)cg_device_excludes(engine->device, variant->name,
                                 variant->refusal, sizeof variant->refusal);
    return status;
}

cellgate_status cg_segment_fits(const cg_segment *segment,
                                const cellgate_shape *shape,
                                cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    cellgate_variant variant;

    for (uint32_t index = 0; status == CELLGATE_OK; index++) {
        status = cg_segment_variant(segment, shape, index, &variant, error);
        if (status == CELLGATE_OK && variant.id == segment->variant.id)
            return variant.refusal[0] == '\0'
                       ? CELLGATE_OK
                       : cellgate_refuse(error, CELLGATE_REASON_DEVICE,
                                         "its variant %s cannot run: %s",
                                         segment->variant.name,
                                         variant.refusal);
    }
    if (status == CELLGATE_END)
        return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                               "its variant %s is not offered at this shape",
                               segment->variant.name);
    return status;
}

/* Which variant is looked for. */
typedef struct variant_search {
    const char *name; /* of any numeric class; NULL: any name, */
    bool exact;       /* and float32, or what the configuration allows */
} variant_search;

/* None may be refused, need more threads than there are to give, or be of a
   numeric class that a later version added. */
static bool variant_fits(const cg_engine *engine, const variant_search *search,
                         const cellgate_variant *variant)
{
    if (variant->refusal[0] != '\0' ||
        cellgate_numeric_name(variant->numeric) == NULL ||
        variant->threads > cg_device_thread_budget(engine->device))
        return false;
    if (search->name != NULL)
        return strcmp(search->name, variant->name) == 0;
    if (search->exact)
        return variant->numeric == CELLGATE_NUMERIC_F32;
    return cg_device_needs_precision(engine->device, variant->numeric) == NULL;
}

/* END: the device takes the segment, but has no such variant. */
static cellgate_status find_variant(cg_segment *segment,
                                    const variant_search *search,
                                    cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    cellgate_variant variant;

    for (uint32_t index = 0; status == CELLGATE_OK; index++) {
        status = cg_segment_variant(segment, NULL, index, &variant, error);
        if (status != CELLGATE_OK ||
            !variant_fits(segment->engine, search, &variant))
            continue;
        variant.name[sizeof variant.name - 1] = '\0';
        if (variant.threads == 0)
            variant.threads = 1;
        segment->variant = variant;
        return CELLGATE_OK;
    }
    return status;
}

/* Why none of its variants may run, by the first of them. */
static cellgate_status refuse_variants(const cg_segment *segment,
                                       cellgate_error *error)
{
    const char *numeric, *needs;
    cellgate_variant first;

    if (cg_segment_variant(segment, NULL, 0, &first, error) != CELLGATE_OK)
        return cellgate_refuse(error, CELLGATE_REASON_DTYPE,
                               "it offers no variant for %s", segment->names);
    if (first.refusal[0] != '\0')
        return cellgate_refuse(error, CELLGATE_REASON_DEVICE,
                               "its variant %.31s cannot run: %s", first.name,
                               first.refusal);
    numeric = cellgate_numeric_name(first.numeric);
    needs = cg_device_needs_precision(segment->engine->device, first.numeric);
    if (numeric != NULL && needs != NULL)
        return cellgate_refuse(
            error, CELLGATE_REASON_SETTING,
            "its results are %s, which [scheduler] precision = %s allows",
            numeric, needs);
    return cellgate_refuse(error, CELLGATE_REASON_DTYPE,
                           "it has no variant for %s that may run: too many "
                           "threads, or an unknown numeric class",
                           segment->names);
}

/* A chain that lacks the variant asked for runs in the default one. */
static cellgate_status choose_variant(cg_segment *segment, const char *name,
                                      cellgate_error *error)
{
    cellgate_status status = CELLGATE_END;

    if (name != NULL)
        status =
            find_variant(segment, &(variant_search){ .name = name }, error);
    if (status == CELLGATE_END)
        status =
            find_variant(segment, &(variant_search){ .exact = true }, error);
    if (status == CELLGATE_END)
        status =
            find_variant(segment, &(variant_search){ .exact = false }, error);
    if (status == CELLGATE_END)
        return refuse_variants(segment, error);
    return status;
}

static char *join_names(const cg_graph *graph, const size_t *nodes,
                        size_t count)
{
    size_t size = 1;
    char *names;

    for (size_t at = 0; at < count; at++)
        size += strlen(graph->nodes[nodes[at]].name) + 2;
    names = calloc(size, 1);
    for (size_t at = 0; names != NULL && at < count; at++) {
        if (at > 0)
            strcat(names, ", ");
        strcat(names, graph->nodes[nodes[at]].name);
    }
    return names;
}

/* Which values come out, and what masks do to them. */
static void results_init(cg_segment *segment, const cg_graph *graph)
{
    const cg_node *end = &graph->nodes[segment->nodes[segment->node_count - 1]];
    bool steps = !segment->rows;

    segment->sequence = segment->last = CG_NO_VALUE;
    segment->shaping_lstm = -1;
    for (size_t at = 0; at < segment->node_count; at++) {
        const cg_node *node = &graph->nodes[segment->nodes[at]];

        if (node->kind != CG_LSTM)
            continue;
        steps = node->outputs[CG_LSTM_OUTPUT_SEQUENCE] != CG_NO_VALUE;
        segment->shaping_lstm = (int64_t)segment->nodes[at];
    }
    if (end->kind == CG_LSTM) {
        segment->sequence = end->outputs[CG_LSTM_OUTPUT_SEQUENCE];
        segment->last = end->outputs[CG_LSTM_OUTPUT_LAST];
        segment->zero_last = end->as.lstm.zero_masked;
    } else if (steps || segment->rows) {
        segment->sequence = end->outputs[0];
    } else {
        segment->last = end->outputs[0];
    }
}

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to describe a segment");
}

static cellgate_status segment_init(cg_segment *segment, const cg_graph *graph,
                                    const size_t *nodes, size_t count)
{
    segment->nodes = malloc(count * sizeof *nodes);
    segment->names = join_names(graph, nodes, count);
    segment->ops = calloc(count, sizeof *segment->ops);
    segment->op_list = calloc(count, sizeof *segment->op_list);
    if (segment->nodes == NULL || segment->names == NULL ||
        segment->ops == NULL || segment->op_list == NULL)
        return CELLGATE_NO_MEMORY;
    memcpy(segment->nodes, nodes, count * sizeof *nodes);
    segment->node_count = count;
    segment->x = graph->nodes[nodes[0]].inputs[0];
    segment->rows = graph->nodes[nodes[0]].kind != CG_EMBEDDING &&
                    graph->model->values[segment->x].rank == 2;
    for (size_t at = 0; at < count; at++) {
        const cg_node *node = &graph->nodes[nodes[at]];

        op_init(&segment->ops[at], graph, node);
        op_set_weights(&segment->ops[at], node);
        segment->op_list[at] = &segment->ops[at].head;
    }
    segment->chain.struct_size = sizeof segment->chain;
    segment->chain.op_count = (uint32_t)count;
    segment->chain.ops = segment->op_list;
    results_init(segment, graph);
    segment->structure = cg_segment_structure(segment);
    return segment->structure != NULL ? CELLGATE_OK : CELLGATE_NO_MEMORY;
}

cellgate_status cg_segment_create(const cg_graph *graph,
                                  const cg_engine *engine, const size_t *nodes,
                                  size_t count, const cellgate_variant *wanted,
                                  const char *name, cg_segment **segment,
                                  cellgate_error *error)
{
    cg_segment *made = calloc(1, sizeof *made);
    cellgate_status status = CELLGATE_OK;

    if (made == NULL)
        return no_memory(error);
    made->engine = engine;
    if (segment_init(made, graph, nodes, count) != CELLGATE_OK) {
        cg_segment_destroy(made);
        return no_memory(error);
    }
    if (wanted != NULL)
        made->variant = *wanted;
    else
        status = choose_variant(made, name, error);
    if (status != CELLGATE_OK) {
        cg_segment_destroy(made);
        return status;
    }
    *segment = made;
    return CELLGATE_OK;
}

void cg_segment_destroy(cg_segment *segment)
{
    if (segment == NULL)
        return;
    if (segment->owns_weights)
        segment->engine->ops->weights_free(segment->weights);
    free(segment->nodes);
    free(segment->names);
    free(segment->structure);
    free(segment->ops);
    free(segment->op_list);
    free(segment);
}
