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

#define RELU graph_activation(CELLGATE_RELU)

static int32_t row(cellgate_model *model, const char *name)
{
    return graph_value(model, name, CELLGATE_F32);
}

static void nodes_are_put_in_order(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 3, 0);
    const int32_t a = row(model, "a"), b = row(model, "b"), c = row(model, "c");

    (void)state;
    graph_node(model, "c", RELU, b, c);
    graph_node(model, "b", RELU, a, b);
    graph_node(model, "a", RELU, x, a);
    graph_output(model, c);
    graph_finish(model);
    assert_string_equal(model->nodes[0].name, "a");
    assert_string_equal(model->nodes[1].name, "b");
    assert_string_equal(model->nodes[2].name, "c");
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(model->values[model->nodes[i].outputs[0]].producer, i);
    cellgate_model_destroy(model);
}

static void a_usable_order_is_kept(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 3, 0);
    const int32_t a = row(model, "a"), b = row(model, "b"), c = row(model, "c");

    /* The outputs ask for c first; still b was before it. */
    (void)state;
    graph_node(model, "a", RELU, x, a);
    graph_node(model, "b", RELU, x, b);
    graph_node(model, "c", RELU, a, c);
    graph_output(model, c);
    graph_output(model, b);
    graph_finish(model);
    assert_string_equal(model->nodes[1].name, "b");
    assert_string_equal(model->nodes[2].name, "c");
    cellgate_model_destroy(model);
}

static void what_no_output_needs_is_dropped(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 3, 0);
    const int32_t a = row(model, "a"), b = row(model, "b"), c = row(model, "c");

    (void)state;
    graph_node(model, "dead", RELU, x, a);
    graph_node(model, "dead too", RELU, a, b);
    graph_node(model, "live", RELU, x, c);
    graph_output(model, c);
    graph_finish(model);
    assert_int_equal(model->node_count, 1);
    assert_string_equal(model->nodes[0].name, "live");
    assert_int_equal(model->value_count, 2);
    assert_int_equal(model->outputs[0], 1);
    assert_int_equal(model->nodes[0].inputs[0], 0);
    cellgate_model_destroy(model);
}

static void an_unused_mask_is_dropped(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 6, 3);
    const int32_t y = row(model, "y");

    (void)state;
    assert_int_not_equal(model->inputs[0].mask, CG_NO_VALUE);
    graph_node(model, "n", RELU, x, y);
    graph_output(model, y);
    graph_finish(model);
    assert_int_equal(model->inputs[0].mask, CG_NO_VALUE);
    assert_int_equal(model->value_count, 2);
    cellgate_model_destroy(model);
}

static void an_lstm_makes_what_is_used(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 6, 3);
    const int32_t s = row(model, "s"), l = row(model, "l"), h = row(model, "h"),
                  c = row(model, "c");
    const int32_t mask = model->inputs[0].mask;
    const int32_t inputs[4] = { x, mask, -1, -1 };
    const int32_t outputs[4] = { s, l, h, c };

    (void)state;
    assert_int_equal(
        graph_try_lstm(model, "n", graph_lstm(3, 2, 1), inputs, outputs, NULL),
        CELLGATE_OK);
    graph_output(model, c);
    graph_output(model, s);
    graph_finish(model);
    assert_int_equal(model->nodes[0].as.lstm.shape.outputs,
                     CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_C);
    assert_int_equal(model->nodes[0].outputs[1], CG_NO_VALUE);
    assert_int_equal(model->nodes[0].outputs[2], CG_NO_VALUE);
    assert_int_not_equal(model->inputs[0].mask, CG_NO_VALUE);
    assert_int_equal(model->value_count, 4);
    assert_int_equal(model->values[model->outputs[1]].rank, 3);
    assert_int_equal(model->values[model->outputs[1]].shape[1], 6);
    assert_int_equal(model->values[model->outputs[1]].shape[2], 2);
    cellgate_model_destroy(model);
}

static void attributes_without_meaning_are_cleared(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 3, 0);
    const int32_t a = row(model, "a");
    cg_node node = RELU;

    (void)state;
    node.as.activation.alpha = 7;
    node.as.activation.beta = 8;
    graph_node(model, "a", node, x, a);
    graph_output(model, a);
    graph_finish(model);
    assert_float_equal(model->nodes[0].as.activation.alpha, 0, 0);
    assert_float_equal(model->nodes[0].as.activation.beta, 0, 0);
    cellgate_model_destroy(model);
}

/* ---- What is refused ---------------------------------------------------- */

/* x [batch][3] of a dtype -> node "n" -> output `name` of a dtype. */
static cellgate_model *one_node(cg_node node, int32_t from, const char *name,
                                int32_t to)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", from, 3, 0);
    const int32_t y = graph_value(model, name, to);

    graph_node(model, "n", node, x, y);
    graph_output(model, y);
    return model;
}

static void cycles(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 3, 0);
    const int32_t a = row(model, "a"), b = row(model, "b"), c = row(model, "c");

    (void)state, (void)x;
    graph_node(model, "first", RELU, c, a);
    graph_node(model, "second", RELU, a, b);
    graph_node(model, "third", RELU, b, c);
    graph_output(model, c);
    graph_refuse(model, "the graph has a cycle");

    model = graph_create();
    (void)graph_input(model, "x", CELLGATE_F32, 3, 0);
    (void)row(model, "a");
    graph_node(model, "self", RELU, a, a);
    graph_output(model, a);
    graph_refuse(model, "self: it depends on its own output");
}

static void values_that_nothing_makes(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 3, 0);
    const int32_t a = row(model, "a"), b = row(model, "b");

    (void)state;
    (void)x;
    graph_node(model, "n", RELU, a, b);
    graph_output(model, b);
    graph_refuse(model, "n: nothing makes its input 'a'");

    model = graph_create();
    (void)graph_input(model, "x", CELLGATE_F32, 3, 0);
    graph_output(model, row(model, "a"));
    graph_refuse(model, "nothing makes the output 'a'");
}

static void no_inputs_or_outputs(void **state)
{
    cellgate_model *model = graph_create();

    (void)state;
    graph_refuse(model, "no inputs");
    model = graph_create();
    (void)graph_input(model, "x", CELLGATE_F32, 3, 0);
    graph_refuse(model, "no outputs");
}

static void names_twice(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 3, 0);
    const int32_t a = row(model, "a"), b = row(model, "b");

    (void)state;
    graph_node(model, "n", RELU, x, a);
    graph_node(model, "n", RELU, a, b);
    graph_output(model, b);
    graph_refuse(model, "two nodes have the name 'n'");

    graph_refuse(one_node(RELU, CELLGATE_F32, "x", CELLGATE_F32),
                 "two values have the name 'x'");
}

static void dtypes_that_do_not_fit(void **state)
{
    (void)state;
    graph_refuse(one_node(RELU, CELLGATE_I32, "y", CELLGATE_F32),
                 "n: it takes numbers, and 'x' is ids");
    graph_refuse(one_node(RELU, CELLGATE_F32, "y", CELLGATE_I32),
                 "n: output 0 has the wrong dtype");
}

static void shapes_that_do_not_fit(void **state)
{
    const int64_t declared[2] = { CG_UNKNOWN, 4 };
    const int64_t open[2] = { CG_UNKNOWN, CG_UNKNOWN };
    int32_t y;
    cellgate_model *model;

    (void)state;
    graph_refuse(one_node(graph_dense(4, 2), CELLGATE_F32, "y", CELLGATE_F32),
                 "n: the number of features is 3; it must be 4");

    model = graph_create();
    (void)graph_input(model, "x", CELLGATE_F32, 3, 0);
    assert_int_equal(
        cg_model_add_value(model, "y", CELLGATE_F32, 2, declared, &y, NULL),
        CELLGATE_OK);
    graph_node(model, "n", graph_dense(3, 2), 0, y);
    graph_output(model, y);
    graph_refuse(model, "n: the shape of 'y' is not the one that follows");

    model = graph_create();
    (void)graph_input(model, "x", CELLGATE_F32, 3, 0);
    assert_int_equal(
        cg_model_add_value(model, "y", CELLGATE_F32, 2, open, &y, NULL),
        CELLGATE_OK);
    graph_node(model, "n", graph_dense(3, 2), 0, y);
    graph_output(model, y);
    graph_finish(model);
    assert_int_equal(model->values[1].shape[1], 2);
    cellgate_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_put_in_order),
        cmocka_unit_test(a_usable_order_is_kept),
        cmocka_unit_test(what_no_output_needs_is_dropped),
        cmocka_unit_test(an_unused_mask_is_dropped),
        cmocka_unit_test(an_lstm_makes_what_is_used),
        cmocka_unit_test(attributes_without_meaning_are_cleared),
        cmocka_unit_test(cycles),
        cmocka_unit_test(values_that_nothing_makes),
        cmocka_unit_test(no_inputs_or_outputs),
        cmocka_unit_test(names_twice),
        cmocka_unit_test(dtypes_that_do_not_fit),
        cmocka_unit_test(shapes_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
