/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/model/kinds.h"

static void expect(cg_weight *weight, const char *name, int32_t rank,
                   int64_t rows, int64_t columns)
{
    memset(weight, 0, sizeof *weight);
    weight->name = name;
    weight->rank = rank;
    weight->shape[0] = rows;
    weight->shape[1] = rank > 1 ? columns : 0;
}

size_t cg_weight_count_embedding(const cg_node *node)
{
    (void)node;
    return 1;
}

bool cg_weight_embedding(const cg_node *node, size_t index, cg_weight *expected)
{
    (void)index;
    expect(expected, "table", 2, node->as.embedding.vocabulary,
           node->as.embedding.size);
    return true;
}

size_t cg_weight_count_dense(const cg_node *node)
{
    (void)node;
    return 2;
}

bool cg_weight_dense(const cg_node *node, size_t index, cg_weight *expected)
{
    const cg_dense *dense = &node->as.dense;

    if (index == 0) {
        expect(expected, "kernel", 2, dense->input_size, dense->units);
        return true;
    }
    expect(expected, "bias", 1, dense->units, 0);
    return dense->has_bias;
}

size_t cg_weight_count_lstm(const cg_node *node)
{
    return (size_t)CG_LSTM_WEIGHTS * (size_t)node->as.lstm.shape.directions;
}

bool cg_weight_lstm(const cg_node *node, size_t index, cg_weight *expected)
{
    static const char *const names[2][CG_LSTM_WEIGHTS] = {
        { "kernel", "recurrent_kernel", "bias", "peephole", "projection" },
        { "backward_kernel", "backward_recurrent_kernel", "backward_bias",
          "backward_peephole", "backward_projection" },
    };
    const cellgate_lstm *lstm = &node->as.lstm.shape;
    const int64_t hidden = lstm->hidden_size;
    const int64_t output =
        lstm->projection_size != 0 ? lstm->projection_size : hidden;
    const char *name = names[index / CG_LSTM_WEIGHTS][index % CG_LSTM_WEIGHTS];

    switch (index % CG_LSTM_WEIGHTS) {
    case 0:
        expect(expected, name, 2, lstm->input_size, 4 * hidden);
        return true;
    case 1:
        expect(expected, name, 2, output, 4 * hidden);
        return true;
    case 2:
        expect(expected, name, 1, 4 * hidden, 0);
        return lstm->has_bias != 0;
    case 3:
        expect(expected, name, 2, 3, hidden);
        return lstm->has_peepholes != 0;
    default:
        expect(expected, name, 2, hidden, output);
        return lstm->projection_size != 0;
    }
}

size_t cg_weight_count_recurrent(const cg_node *node)
{
    (void)node;
    return CG_RECURRENT_WEIGHTS;
}

bool cg_weight_recurrent(const cg_node *node, size_t index, cg_weight *expected)
{
    const cg_recurrent *recurrent = &node->as.recurrent;
    const int64_t columns =
        (node->kind == CG_GRU ? 3 : 1) * recurrent->hidden_size;

    if (index == 0)
        expect(expected, "kernel", 2, recurrent->input_size, columns);
    else if (index == 1)
        expect(expected, "recurrent_kernel", 2, recurrent->hidden_size,
               columns);
    else if (node->kind == CG_GRU && recurrent->reset_after)
        expect(expected, "bias", 2, 2, columns);
    else
        expect(expected, "bias", 1, columns, 0);
    return index < 2 || recurrent->has_bias;
}

size_t cg_weight_count_attention(const cg_node *node)
{
    (void)node;
    return 2;
}

bool cg_weight_attention(const cg_node *node, size_t index, cg_weight *expected)
{
    const cg_attention *attention = &node->as.attention;

    if (index == 1) {
        expect(expected, "weight", 0, 0, 0);
        return attention->mode == CG_ATTENTION_CONCAT;
    }
    if (attention->mode == CG_ATTENTION_ADDITIVE)
        expect(expected, "scale", 1, attention->size, 0);
    else
        expect(expected, "scale", 0, 0, 0);
    return attention->scaled;
}

size_t cg_node_weight_count(const cg_node *node)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);

    return kind != NULL && kind->weight_count != NULL ? kind->weight_count(node)
                                                      : 0;
}

bool cg_node_weight(const cg_node *node, size_t index, cg_weight *expected)
{
    return cg_kind_get((int)node->kind)->weight(node, index, expected);
}
