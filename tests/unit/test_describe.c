/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/model_graph.h"

/* A model of one node, on x [batch][6][3] or ids [batch][6]. */
static cellgate_model *model_of(cg_node node, int32_t output_dtype)
{
    cellgate_model *model = graph_create();
    const bool ids = node.kind == CG_EMBEDDING || node.kind == CG_NONZERO;
    const int32_t x = graph_input(model, "x", ids ? CELLGATE_I32 : CELLGATE_F32,
                                  6, ids ? 0 : 3);
    const int32_t y = graph_value(model, "y", output_dtype);

    graph_node(model, "n", node, x, y);
    graph_output(model, y);
    graph_finish(model);
    return model;
}

static void assert_node(cellgate_model *model, size_t index, const char *kind,
                        const char *detail, int64_t parameters,
                        int64_t operations)
{
    cellgate_node_info info = { .struct_size = sizeof info };

    assert_int_equal(cellgate_model_node_get(model, index, &info), CELLGATE_OK);
    assert_string_equal(info.kind, kind);
    assert_string_equal(info.detail, detail);
    assert_int_equal(info.parameters, parameters);
    assert_int_equal(info.operations, operations);
}

static void assert_one(cg_node node, const char *kind, const char *detail,
                       int64_t parameters, int64_t operations)
{
    cellgate_model *model = model_of(node, CELLGATE_F32);

    assert_node(model, 0, kind, detail, parameters, operations);
    cellgate_model_destroy(model);
}

static void simple_nodes(void **state)
{
    cg_node node = graph_dense(3, 4);

    (void)state;
    assert_one(node, "dense", "4 units, linear", 16, 2 * 12 + 4);
    node.as.dense.has_bias = false;
    node.as.dense.activation =
        (cellgate_activation){ CELLGATE_LEAKY_RELU, 0.25f, 0 };
    assert_one(node, "dense", "4 units, leaky_relu(0.25), no bias", 12, 24);
    assert_one((cg_node){ .kind = CG_EMBEDDING, .as.embedding = { 9, 4 } },
               "embedding", "vocabulary of 9", 36, 0);
    assert_one(graph_activation(CELLGATE_GELU_ERF), "activation", "gelu_erf", 0,
               0);
    assert_one(
        (cg_node){ .kind = CG_ACTIVATION,
                   .as.activation = { CELLGATE_HARD_SIGMOID, 0.2f, 0.5f } },
        "activation", "hard_sigmoid(0.2, 0.5)", 0, 0);
    assert_one((cg_node){ .kind = CG_SOFTMAX }, "softmax", "", 0, 0);
    assert_one((cg_node){ .kind = CG_REVERSE }, "reverse", "", 0, 0);
    assert_one(
        (cg_node){ .kind = CG_SLICE, .as.slice = { .begin = 1, .end = 3 } },
        "slice", "features 1 to 2", 0, 0);
    assert_one((cg_node){ .kind = CG_SLICE,
                          .as.slice = { .end = 0, .axis = 1, .step = -2 } },
               "slice", "axis 1, 0 to the end, step -2", 0, 0);
}

static void a_merge_counts_its_sums(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 8, 0);
    const int32_t y = graph_value(model, "y", CELLGATE_F32);
    const int32_t z = graph_value(model, "z", CELLGATE_F32);

    (void)state;
    graph_node(model, "a",
               (cg_node){ .kind = CG_MERGE, .as.merge = CG_MERGE_AVERAGE }, x,
               y);
    graph_node(model, "b",
               (cg_node){ .kind = CG_MERGE, .as.merge = CG_MERGE_PRODUCT }, y,
               z);
    graph_output(model, z);
    graph_finish(model);
    assert_node(model, 0, "merge", "average of the two halves", 0, 8);
    assert_node(model, 1, "merge", "product of the two halves", 0, 2);
    cellgate_model_destroy(model);
}

static void an_lstm_tells_its_options(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 6, 3);
    const int32_t h0 = graph_input(model, "h0", CELLGATE_F32, 2, 0);
    const int32_t c0 = graph_input(model, "c0", CELLGATE_F32, 5, 0);
    const int32_t y = graph_value(model, "y", CELLGATE_F32);
    const int32_t h = graph_value(model, "h", CELLGATE_F32);
    const int32_t inputs[6] = { x, model->inputs[0].mask, h0, c0, h0, c0 };
    const int32_t outputs[6] = { y, -1, h, -1, -1, -1 };
    cg_node node = graph_lstm(3, 5, 2);

    (void)state;
    node.as.lstm.shape.projection_size = 2;
    node.as.lstm.shape.has_peepholes = 1;
    node.as.lstm.shape.coupled = 1;
    node.as.lstm.shape.clip = 3;
    node.as.lstm.shape.activations[1][1].kind = CELLGATE_RELU;
    node.as.lstm.zero_masked = true;
    node.as.lstm.stateful = true;
    assert_int_equal(graph_try_lstm(model, "n", node, inputs, outputs, NULL),
                     CELLGATE_OK);
    graph_output(model, y);
    graph_output(model, h);
    graph_finish(model);
    assert_node(
        model, 0, "lstm",
        "5 units, tanh, sigmoid, bidirectional, backward, relu, sigmoid, "
        "output activation, tanh, projection to 2, peepholes, coupled gates, "
        "clip 3, stateful, initial state, returns sequences, returns states, "
        "zero where masked",
        2 * (3 * 20 + 2 * 20 + 20 + 15 + 10),
        2 * (8 * 5 * (3 + 2) + 4 * 5 + 4 * 5 + 6 * 5 + 2 * 5 * 2));
    cellgate_model_destroy(model);
}

static void values_are_told(void **state)
{
    cellgate_model *model = model_of(graph_dense(3, 4), CELLGATE_F32);
    cellgate_value_info value = { .struct_size = sizeof value };
    cellgate_node_info node = { .struct_size = sizeof node };

    (void)state;
    assert_int_equal(cellgate_model_input_count(model), 1);
    assert_int_equal(cellgate_model_output_count(model), 1);
    assert_int_equal(cellgate_model_node_count(model), 1);
    assert_int_equal(cellgate_model_input_get(model, 0, &value), CELLGATE_OK);
    assert_string_equal(value.name, "x");
    assert_int_equal(value.dtype, CELLGATE_F32);
    assert_int_equal(value.rank, 3);
    assert_int_equal(value.shape[0], -1);
    assert_int_equal(value.shape[1], 6);
    assert_int_equal(cellgate_model_output_get(model, 0, &value), CELLGATE_OK);
    assert_string_equal(value.name, "y");
    assert_int_equal(value.shape[2], 4);
    assert_int_equal(cellgate_model_node_get(model, 0, &node), CELLGATE_OK);
    assert_int_equal(node.rank, 3);
    assert_int_equal(node.shape[2], 4);
    assert_int_equal(cellgate_model_input_get(model, 1, &value), CELLGATE_END);
    assert_int_equal(cellgate_model_output_get(model, 1, &value), CELLGATE_END);
    assert_int_equal(cellgate_model_node_get(model, 1, &node), CELLGATE_END);
    cellgate_model_destroy(model);
}

/* An application built with another size of the struct. */
static void structs_of_other_sizes(void **state)
{
    cellgate_model *model = model_of(graph_dense(3, 4), CELLGATE_F32);
    struct {
        cellgate_value_info info;
        char more[16];
    } newer;
    cellgate_value_info older;

    (void)state;
    memset(&newer, 7, sizeof newer);
    newer.info.struct_size = sizeof newer;
    assert_int_equal(cellgate_model_input_get(model, 0, &newer.info),
                     CELLGATE_OK);
    assert_int_equal(newer.info.struct_size, sizeof newer);
    assert_int_equal(newer.info.rank, 3);
    for (size_t i = 0; i < sizeof newer.more; i++)
        assert_int_equal(newer.more[i], 0);
    memset(&older, 7, sizeof older);
    older.struct_size = offsetof(cellgate_value_info, rank);
    assert_int_equal(cellgate_model_input_get(model, 0, &older), CELLGATE_OK);
    assert_string_equal(older.name, "x");
    assert_int_equal(older.rank, 0x07070707);
    cellgate_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_nodes),
        cmocka_unit_test(a_merge_counts_its_sums),
        cmocka_unit_test(an_lstm_tells_its_options),
        cmocka_unit_test(values_are_told),
        cmocka_unit_test(structs_of_other_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
