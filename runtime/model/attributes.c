/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "runtime/model/kinds.h"

const cg_activation_entry cg_activations[CELLGATE_ACTIVATION_COUNT] = {
#define ENTRY(name, value, text, parameters) [value] = { text, parameters },
    CELLGATE_ACTIVATION_LIST(ENTRY)
#undef ENTRY
};

cellgate_status cg_check_size(const cg_node *node, const char *name,
                              int64_t size, int64_t least,
                              cellgate_error *error)
{
    if (size >= least && size <= CG_MAX_SIZE)
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                        "%s is %lld; it must be between %lld and %lld", name,
                        (long long)size, (long long)least,
                        (long long)CG_MAX_SIZE);
}

static cellgate_status check_one_activation(const cg_node *node,
                                            const cellgate_activation *a,
                                            cellgate_error *error)
{
    if (a->kind < 0 || a->kind >= CELLGATE_ACTIVATION_COUNT)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "there is no activation number %d", (int)a->kind);
    if (!isfinite(a->alpha) || !isfinite(a->beta))
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "a parameter of the activation is not finite");
    return CELLGATE_OK;
}

cellgate_status cg_check_embedding(const cg_node *node, cellgate_error *error)
{
    cellgate_status status = cg_check_size(
        node, "the vocabulary", node->as.embedding.vocabulary, 1, error);

    if (status == CELLGATE_OK)
        status = cg_check_size(node, "the embedding size",
                               node->as.embedding.size, 1, error);
    return status;
}

cellgate_status cg_check_dense(const cg_node *node, cellgate_error *error)
{
    const cg_dense *dense = &node->as.dense;
    cellgate_status status =
        cg_check_size(node, "the input size", dense->input_size, 1, error);

    if (status == CELLGATE_OK)
        status = cg_check_size(node, "units", dense->units, 1, error);
    if (status == CELLGATE_OK)
        status = check_one_activation(node, &dense->activation, error);
    return status;
}

cellgate_status cg_check_activation(const cg_node *node, cellgate_error *error)
{
    return check_one_activation(node, &node->as.activation, error);
}

cellgate_status cg_check_not_equal(const cg_node *node, cellgate_error *error)
{
    if (isfinite(node->as.not_equal))
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                        "the mask value is not finite");
}

static cellgate_status check_lstm_sizes(const cg_node *node,
                                        cellgate_error *error)
{
    const cellgate_lstm *lstm = &node->as.lstm.shape;
    cellgate_status status =
        cg_check_size(node, "the input size", lstm->input_size, 1, error);

    if (status == CELLGATE_OK)
        status =
            cg_check_size(node, "the hidden size", lstm->hidden_size, 1, error);
    if (status == CELLGATE_OK)
        status = cg_check_size(node, "the projection size",
                               lstm->projection_size, 0, error);
    return status;
}

cellgate_status cg_check_lstm(const cg_node *node, cellgate_error *error)
{
    const cellgate_lstm *lstm = &node->as.lstm.shape;
    cellgate_status status;

    if (lstm->directions != 1 && lstm->directions != 2)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "an LSTM has 1 or 2 directions, not %d",
                            (int)lstm->directions);
    if (lstm->reverse != 0 && lstm->directions == 2)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "only an LSTM of one direction can be reversed");
    if (!isfinite(lstm->clip) || lstm->clip < 0)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "clip must be 0 or a positive number");
    status = check_lstm_sizes(node, error);
    for (int32_t i = 0; status == CELLGATE_OK && i < 3 * lstm->directions; i++)
        status =
            check_one_activation(node, &lstm->activations[i / 3][i % 3], error);
    if (status != CELLGATE_OK)
        return status;
    if (node->input_count != 2 + 2 * (size_t)lstm->directions ||
        node->output_count != node->input_count)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "an LSTM of %d directions has %d inputs and as "
                            "many outputs, not %zu and %zu",
                            (int)lstm->directions, 2 + 2 * lstm->directions,
                            node->input_count, node->output_count);
    return CELLGATE_OK;
}

cellgate_status cg_check_recurrent(const cg_node *node, cellgate_error *error)
{
    const cg_recurrent *recurrent = &node->as.recurrent;
    cellgate_status status =
        cg_check_size(node, "the input size", recurrent->input_size, 1, error);

    if (status == CELLGATE_OK)
        status = cg_check_size(node, "the hidden size", recurrent->hidden_size,
                               1, error);
    if (status == CELLGATE_OK && node->kind == CG_GRU)
        status = check_one_activation(node, &recurrent->gate, error);
    if (status == CELLGATE_OK)
        status = check_one_activation(node, &recurrent->activation, error);
    return status;
}

cellgate_status cg_check_attention(const cg_node *node, cellgate_error *error)
{
    return cg_check_size(node, "the size of query and key",
                         node->as.attention.size, 1, error);
}

static bool has_choice(const cg_attribute *attribute, int number)
{
    int count = 0;

    while (attribute->choices[count] != NULL)
        count++;
    return number >= 0 && number < count;
}

cellgate_status cg_node_check(const cg_node *node, cellgate_error *error)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);

    for (size_t i = 0; i < kind->attribute_count; i++) {
        const cg_attribute *attribute = &kind->attributes[i];
        const void *at = (const char *)node + attribute->offset;

        if (attribute->type == CG_ATTRIBUTE_CHOICE &&
            !has_choice(attribute, *(const int *)at))
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "there is no %s number %d", attribute->name,
                                *(const int *)at);
    }
    return kind->check != NULL ? kind->check(node, error) : CELLGATE_OK;
}

bool cg_attribute_left_out(const cg_node *node, const cg_attribute *attribute)
{
    const void *at = (const char *)node + attribute->offset;

    if (!attribute->optional)
        return false;
    switch (attribute->type) {
    case CG_ATTRIBUTE_SIZE:
    case CG_ATTRIBUTE_INTEGER:
        return *(const int64_t *)at == 0;
    case CG_ATTRIBUTE_COUNT:
    case CG_ATTRIBUTE_FLAG:
    case CG_ATTRIBUTE_CHOICE:
        return *(const int *)at == 0;
    case CG_ATTRIBUTE_BOOL:
        return !*(const bool *)at;
    default:
        return false;
    }
}

static void normalise_activation(cellgate_activation *activation)
{
    const int used = cg_activations[activation->kind].parameters;

    if (used < 1)
        activation->alpha = 0;
    if (used < 2)
        activation->beta = 0;
}

static void normalise_lstm(cg_node *node)
{
    cellgate_lstm *lstm = &node->as.lstm.shape;
    const size_t directions = (size_t)lstm->directions;

    memset(&lstm->op, 0, sizeof lstm->op);
    memset(lstm->weights, 0, sizeof lstm->weights);
    lstm->reserved = 0;
    lstm->reverse = lstm->reverse != 0;
    lstm->has_bias = lstm->has_bias != 0;
    lstm->has_peepholes = lstm->has_peepholes != 0;
    lstm->coupled = lstm->coupled != 0;
    for (size_t i = 0; i < 3 * directions; i++)
        normalise_activation(&lstm->activations[i / 3][i % 3]);
    if (directions == 1)
        memset(lstm->activations[1], 0, sizeof lstm->activations[1]);

    lstm->outputs = 0;
    if (node->outputs[CG_LSTM_OUTPUT_SEQUENCE] != CG_NO_VALUE)
        lstm->outputs |= CELLGATE_LSTM_SEQUENCE;
    if (node->outputs[CG_LSTM_OUTPUT_LAST] != CG_NO_VALUE)
        lstm->outputs |= CELLGATE_LSTM_LAST;
    for (size_t d = 0; d < directions; d++) {
        if (node->outputs[CG_LSTM_OUTPUT_STATE + 2 * d] != CG_NO_VALUE)
            lstm->outputs |= CELLGATE_LSTM_H;
        if (node->outputs[CG_LSTM_OUTPUT_STATE + 2 * d + 1] != CG_NO_VALUE)
            lstm->outputs |= CELLGATE_LSTM_C;
    }
}

static void normalise_recurrent(cg_node *node)
{
    cg_recurrent *recurrent = &node->as.recurrent;

    if (node->kind == CG_GRU) {
        normalise_activation(&recurrent->gate);
    } else {
        memset(&recurrent->gate, 0, sizeof recurrent->gate);
        recurrent->reset_after = false;
    }
    normalise_activation(&recurrent->activation);
}

void cg_node_normalise(cg_node *node)
{
    if (node->kind == CG_LSTM)
        normalise_lstm(node);
    else if (node->kind == CG_GRU || node->kind == CG_SIMPLE_RNN)
        normalise_recurrent(node);
    else if (node->kind == CG_DOT && !node->as.dot.normalize)
        node->as.dot.least_square = 0;
    else if (node->kind == CG_DENSE)
        normalise_activation(&node->as.dense.activation);
    else if (node->kind == CG_ACTIVATION)
        normalise_activation(&node->as.activation);
    else if (node->kind == CG_POOL)
        node->as.pool.window.dilation = 1;
    else if (node->kind == CG_SLICE && node->as.slice.step == 1)
        node->as.slice.step = 0;
    else if (node->kind == CG_RELU && !node->as.relu.limited)
        node->as.relu.limit = 0;
}
