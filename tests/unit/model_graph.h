/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models built by a test, without a file. Whatever cannot be done ends the
 * test with a cmocka failure; include this after cmocka.h.
 */
#ifndef CELLGATE_TESTS_UNIT_MODEL_GRAPH_H
#define CELLGATE_TESTS_UNIT_MODEL_GRAPH_H

#include <stdlib.h>
#include <string.h>

#include "runtime/model/model.h"

static inline cellgate_model *graph_create(void)
{
    cellgate_model *model = NULL;

    assert_int_equal(cg_model_create("file", "test", "1", &model, NULL),
                     CELLGATE_OK);
    return model;
}

/* A value whose shape is inferred. */
static inline int32_t graph_value(cellgate_model *model, const char *name,
                                  int32_t dtype)
{
    int32_t value = -1;

    assert_int_equal(
        cg_model_add_value(model, name, dtype, 0, NULL, &value, NULL),
        CELLGATE_OK);
    return value;
}

/* An input [batch][a] or, with b not 0, [batch][a][b]. */
static inline int32_t graph_input(cellgate_model *model, const char *name,
                                  int32_t dtype, int64_t a, int64_t b)
{
    const int64_t shape[3] = { CG_UNKNOWN, a, b };
    int32_t value = -1;

    assert_int_equal(cg_model_add_value(model, name, dtype, b != 0 ? 3 : 2,
                                        shape, &value, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_model_add_input(model, value, NULL), CELLGATE_OK);
    return value;
}

static inline void graph_output(cellgate_model *model, int32_t value)
{
    assert_int_equal(cg_model_add_output(model, value, NULL), CELLGATE_OK);
}

static inline float *graph_data(cellgate_model *model, size_t count,
                                float first)
{
    float *data = cg_model_memory(model, count * sizeof *data);

    assert_non_null(data);
    for (size_t i = 0; i < count; i++)
        data[i] = first + 0.01f * (float)i;
    return data;
}

/* Weights of every slot that the node has, of the right shapes. */
static inline void graph_weights(cellgate_model *model, cg_node *node,
                                 cg_weight *weights)
{
    node->weights = weights;
    node->weight_count = cg_node_weight_count(node);
    for (size_t i = 0; i < node->weight_count; i++) {
        size_t count = 1;

        if (!cg_node_weight(node, i, &weights[i]))
            continue;
        for (int32_t axis = 0; axis < weights[i].rank; axis++)
            count *= (size_t)weights[i].shape[axis];
        weights[i].data = graph_data(model, count, 0.5f * (float)(i + 1));
    }
}

/* A node of one input and one output. */
static inline cellgate_status graph_try_node(cellgate_model *model,
                                             const char *name, cg_node node,
                                             int32_t input, int32_t output,
                                             cellgate_error *error)
{
    cg_weight weights[10];

    node.name = (char *)(uintptr_t)name;
    node.inputs = &input;
    node.input_count = 1;
    node.outputs = &output;
    node.output_count = 1;
    graph_weights(model, &node, weights);
    return cg_model_add_node(model, &node, error);
}

static inline void graph_node(cellgate_model *model, const char *name,
                              cg_node node, int32_t input, int32_t output)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (graph_try_node(model, name, node, input, output, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
}

static inline cg_node graph_dense(int64_t input_size, int64_t units)
{
    return (cg_node){ .kind = CG_DENSE,
                      .as.dense = { .input_size = input_size,
                                    .units = units,
                                    .has_bias = true,
                                    .activation.kind = CELLGATE_LINEAR } };
}

static inline cg_node graph_activation(int32_t kind)
{
    return (cg_node){ .kind = CG_ACTIVATION, .as.activation.kind = kind };
}

/* An LSTM node; `inputs` and `outputs` have 2 + 2 * directions entries. */
static inline cg_node graph_lstm(int64_t input_size, int64_t hidden_size,
                                 int32_t directions)
{
    cg_node node = { .kind = CG_LSTM,
                     .input_count = 2 + 2 * (size_t)directions,
                     .output_count = 2 + 2 * (size_t)directions };
    cellgate_lstm *lstm = &node.as.lstm.shape;

    lstm->input_size = input_size;
    lstm->hidden_size = hidden_size;
    lstm->directions = directions;
    lstm->has_bias = 1;
    for (int d = 0; d < 2; d++) {
        lstm->activations[d][0].kind = CELLGATE_SIGMOID;
        lstm->activations[d][1].kind = CELLGATE_TANH;
        lstm->activations[d][2].kind = CELLGATE_TANH;
    }
    return node;
}

static inline cellgate_status graph_try_lstm(cellgate_model *model,
                                             const char *name, cg_node node,
                                             const int32_t *inputs,
                                             const int32_t *outputs,
                                             cellgate_error *error)
{
    cg_weight weights[2 * CG_LSTM_WEIGHTS];

    memset(weights, 0, sizeof weights);
    node.name = (char *)(uintptr_t)name;
    node.inputs = (int32_t *)(uintptr_t)inputs;
    node.outputs = (int32_t *)(uintptr_t)outputs;
    graph_weights(model, &node, weights);
    return cg_model_add_node(model, &node, error);
}

static inline void graph_finish(cellgate_model *model)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cg_model_finish(model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
}

/* Finishing fails with BAD_FILE and this part of a text; the model is gone. */
static inline void graph_refuse(cellgate_model *model, const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cg_model_finish(model, &error), CELLGATE_BAD_FILE);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
    cellgate_model_destroy(model);
}

#endif
