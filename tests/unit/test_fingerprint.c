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

/* x -> dense -> activation -> LSTM, with one thing changed. */
typedef struct recipe {
    const char *name;   /* of the first node and its value */
    int64_t steps;      /* of the input */
    float weight;       /* the first one */
    int32_t activation; /* of the node in the middle */
    float alpha;
    int32_t reverse;
    bool sequence;
    bool dead; /* a node that nothing needs, in front */
} recipe;

static const recipe plain = { "dense", 6, 0.5f,  CELLGATE_ELU,
                              1.0f,    0, false, false };

static cellgate_model *build(recipe r)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, r.steps, 3);
    const int32_t extra = r.dead ? graph_value(model, "dead", CELLGATE_F32) : 0;
    const int32_t a = graph_value(model, r.name, CELLGATE_F32);
    const int32_t b = graph_value(model, "b", CELLGATE_F32);
    const int32_t y = graph_value(model, "y", CELLGATE_F32);
    const int32_t inputs[4] = { b, model->inputs[0].mask, -1, -1 };
    const int32_t outputs[4] = { r.sequence ? y : -1, r.sequence ? -1 : y, -1,
                                 -1 };
    cg_node activation = graph_activation(r.activation);
    cg_node lstm = graph_lstm(4, 2, 1);

    if (r.dead)
        graph_node(model, "dead", graph_activation(CELLGATE_TANH), x, extra);
    graph_node(model, r.name, graph_dense(3, 4), x, a);
    *(float *)(uintptr_t)model->nodes[model->node_count - 1].weights[0].data =
        r.weight;
    activation.as.activation.alpha = r.alpha;
    graph_node(model, "act", activation, a, b);
    lstm.as.lstm.shape.reverse = r.reverse;
    assert_int_equal(graph_try_lstm(model, "lstm", lstm, inputs, outputs, NULL),
                     CELLGATE_OK);
    graph_output(model, y);
    graph_finish(model);
    return model;
}

static bool same_as_plain(recipe r)
{
    cellgate_model *one = build(plain), *other = build(r);
    const bool same = strcmp(cellgate_model_fingerprint(one),
                             cellgate_model_fingerprint(other)) == 0;

    cellgate_model_destroy(one);
    cellgate_model_destroy(other);
    return same;
}

static void it_is_32_hex_digits(void **state)
{
    cellgate_model *model = build(plain);

    (void)state;
    assert_int_equal(strlen(cellgate_model_fingerprint(model)), 32);
    assert_int_equal(
        strspn(cellgate_model_fingerprint(model), "0123456789abcdef"), 32);
    cellgate_model_destroy(model);
}

static void what_makes_no_difference(void **state)
{
    recipe r = plain;

    (void)state;
    assert_true(same_as_plain(r));
    r.name = "another";
    assert_true(same_as_plain(r));
    r.dead = true;
    assert_true(same_as_plain(r));
    r = plain;
    r.activation = CELLGATE_TANH;
    r.alpha = 1;
    {
        recipe without = r;
        cellgate_model *one, *other;

        without.alpha = 0; /* tanh has no alpha */
        one = build(r);
        other = build(without);
        assert_string_equal(cellgate_model_fingerprint(one),
                            cellgate_model_fingerprint(other));
        cellgate_model_destroy(one);
        cellgate_model_destroy(other);
    }
}

static void what_makes_one(void **state)
{
    recipe r = plain;

    (void)state;
    r.weight = 0.50000006f;
    assert_false(same_as_plain(r));
    r = plain;
    r.steps = 7;
    assert_false(same_as_plain(r));
    r = plain;
    r.activation = CELLGATE_CELU;
    assert_false(same_as_plain(r));
    r = plain;
    r.alpha = 2;
    assert_false(same_as_plain(r));
    r = plain;
    r.reverse = 1;
    assert_false(same_as_plain(r));
    r = plain;
    r.sequence = true;
    assert_false(same_as_plain(r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_32_hex_digits),
        cmocka_unit_test(what_makes_no_difference),
        cmocka_unit_test(what_makes_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
