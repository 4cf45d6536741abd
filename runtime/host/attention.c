/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, one step of a query at a time; the formulas are in model.h. */
#include "config.h"

#include <math.h>

#include "runtime/host/ops.h"

/* One row of a batch. */
typedef struct attention_row {
    const cg_attention *attention;
    const float *query, *value, *key; /* [Tq][D], [Tv][V], [Tv][D] */
    const float *scale, *weight;
    const uint8_t *query_mask, *value_mask; /* or NULL */
    int64_t queries, values, width;         /* Tq, Tv, V */
    float *context, *weights;               /* or NULL */
    double *scores;                         /* [Tv] */
} attention_row;

size_t cg_host_attention_scratch(const cg_node *node, const cg_shape *shapes)
{
    return (size_t)shapes[node->inputs[1]].extent[1] * sizeof(double);
}

static double score(const attention_row *row, const float *q, const float *k)
{
    const cg_attention *attention = row->attention;
    const float *scale = row->scale;
    double sum = 0;

    for (int64_t d = 0; d < attention->size; d++) {
        const double both = (double)q[d] + k[d];

        if (attention->mode == CG_ATTENTION_DOT)
            sum += (double)q[d] * k[d];
        else if (attention->mode == CG_ATTENTION_ADDITIVE)
            sum += (scale != NULL ? scale[d] : 1.0) * tanh(both);
        else
            sum += tanh((scale != NULL ? *scale : 1.0) * both);
    }
    if (attention->mode == CG_ATTENTION_DOT && scale != NULL)
        sum *= *scale;
    if (attention->mode == CG_ATTENTION_CONCAT)
        sum *= *row->weight;
    return sum;
}

/* In place; NaN spreads, as it does in Keras. */
static void softmax(double *scores, int64_t count)
{
    double most = -INFINITY, sum = 0;

    for (int64_t j = 0; j < count; j++)
        if (!(scores[j] <= most))
            most = scores[j];
    for (int64_t j = 0; j < count; j++)
        sum += scores[j] = exp(scores[j] - most);
    for (int64_t j = 0; j < count; j++)
        scores[j] /= sum;
}

static void weigh_values(const attention_row *row, int64_t step)
{
    const float *q = row->query + step * row->attention->size;

    for (int64_t j = 0; j < row->values; j++) {
        row->scores[j] = score(row, q, row->key + j * row->attention->size);
        if ((row->value_mask != NULL && row->value_mask[j] == 0) ||
            (row->attention->causal && j > step))
            row->scores[j] = (float)row->scores[j] - 1e9f;
    }
    softmax(row->scores, row->values);
}

static void store_context(const attention_row *row, int64_t step)
{
    const bool hidden = row->query_mask != NULL && row->query_mask[step] == 0;
    float *context = row->context + step * row->width;

    for (int64_t v = 0; v < row->width; v++) {
        double sum = 0;

        for (int64_t j = 0; !hidden && j < row->values; j++)
            sum += row->scores[j] * row->value[j * row->width + v];
        context[v] = (float)sum;
    }
}

static void run_row(const attention_row *row)
{
    for (int64_t step = 0; step < row->queries; step++) {
        weigh_values(row, step);
        if (row->context != NULL)
            store_context(row, step);
        for (int64_t j = 0; row->weights != NULL && j < row->values; j++)
            row->weights[step * row->values + j] = (float)row->scores[j];
    }
}

/* To the next row of the batch. */
static void advance(attention_row *row)
{
    const int64_t size = row->attention->size;

    row->query += row->queries * size;
    row->value += row->values * row->width;
    row->key += row->values * size;
    if (row->query_mask != NULL)
        row->query_mask += row->queries;
    if (row->value_mask != NULL)
        row->value_mask += row->values;
    if (row->context != NULL)
        row->context += row->queries * row->width;
    if (row->weights != NULL)
        row->weights += row->queries * row->values;
}

cellgate_status cg_host_attention(const cg_host_call *call,
                                  cellgate_error *error)
{
    const cg_shape *query = cg_host_input_shape(call, 0);
    const cg_shape *value = cg_host_input_shape(call, 1);
    attention_row row = {
        .attention = &call->node->as.attention,
        .query = cg_host_input(call, 0),
        .value = cg_host_input(call, 1),
        .key = cg_host_input(call, CG_ATTENTION_INPUT_KEY),
        .scale = cg_host_weight(call, 0),
        .weight = cg_host_weight(call, 1),
        .query_mask = cg_host_input(call, CG_ATTENTION_INPUT_QUERY_MASK),
        .value_mask = cg_host_input(call, CG_ATTENTION_INPUT_VALUE_MASK),
        .queries = query->extent[1],
        .values = value->extent[1],
        .width = value->extent[2],
        .context = cg_host_output(call, 0),
        .weights = cg_host_output(call, 1),
        .scores = call->scratch,
    };

    (void)error;
    if (row.key == NULL)
        row.key = row.value;
    for (int64_t b = 0; b < query->extent[0]; b++) {
        run_row(&row);
        advance(&row);
    }
    return CELLGATE_OK;
}
