/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of each kind of node: what passes, and why another does not. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/generate/parts.h"
#include "tests/unit/model_graph.h"

#define WORDS 7
#define UNITS 4

/* A model with ids that are embedded, as "steps", and "source", numbers of
   steps of their own; both [batch][?][UNITS]. "mask" is that of the source,
   "ids_mask" the one that the ids say. */
typedef struct draft {
    cellgate_model *model;
    int32_t steps, source, mask, ids_mask, newest;
} draft;

/* A node whose weights and shapes are right. */
static int32_t add(const draft *of, const char *name, cg_node node,
                   const int32_t *inputs, size_t count)
{
    const int32_t value = graph_value(
        of->model, name, node.kind == CG_NONZERO ? CELLGATE_U8 : CELLGATE_F32);
    int32_t outputs[3] = { value, CG_NO_VALUE, CG_NO_VALUE };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_weight weights[10] = { 0 };
    char text[32];

    snprintf(text, sizeof text, "%s_node", name);
    node.name = text;
    node.inputs = (int32_t *)(uintptr_t)inputs;
    node.input_count = count;
    node.outputs = outputs;
    if (node.output_count == 0)
        node.output_count = 1;
    graph_weights(of->model, &node, weights);
    if (cg_model_add_node(of->model, &node, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return value;
}

static cg_node recurrent(cg_kind kind, bool reverse)
{
    return (cg_node){
        .kind = kind,
        .output_count = 3,
        .as.recurrent = { .input_size = UNITS,
                          .hidden_size = UNITS,
                          .reverse = reverse,
                          .has_bias = true,
                          .reset_after = kind == CG_GRU,
                          .gate.kind = CELLGATE_SIGMOID,
                          .activation.kind = CELLGATE_TANH },
    };
}

/* A GRU's last output: what belongs to the newest step alone. */
static int32_t add_newest(draft *of)
{
    const int32_t inputs[3] = { of->steps, CG_NO_VALUE, CG_NO_VALUE };
    const int32_t last = graph_value(of->model, "newest", CELLGATE_F32);
    int32_t outputs[3] = { CG_NO_VALUE, last, CG_NO_VALUE };
    cg_node node = recurrent(CG_GRU, false);
    cg_weight weights[10] = { 0 };

    node.name = (char *)(uintptr_t) "reader";
    node.inputs = (int32_t *)(uintptr_t)inputs;
    node.input_count = 3;
    node.outputs = outputs;
    graph_weights(of->model, &node, weights);
    assert_int_equal(cg_model_add_node(of->model, &node, NULL), CELLGATE_OK);
    return last;
}

static draft begin(void)
{
    draft of = { .model = graph_create() };
    const int32_t ids =
        graph_input(of.model, "ids", CELLGATE_I32, CG_UNKNOWN, 0);
    const cg_node words = { .kind = CG_EMBEDDING,
                            .as.embedding = { WORDS, UNITS } };

    of.source =
        graph_input(of.model, "source", CELLGATE_F32, CG_UNKNOWN, UNITS);
    of.ids_mask =
        add(&of, "ids_mask", (cg_node){ .kind = CG_NONZERO }, &ids, 1);
    of.mask = of.model->inputs[1].mask;
    of.steps = add(&of, "steps", words, &ids, 1);
    of.newest = add_newest(&of);
    return of;
}

/* Splits the model whose scores are `made`; returns the error's text. */
static const char *split(draft *of, int32_t made, cg_parts *parts)
{
    static cellgate_error error;
    cellgate_status status;

    graph_output(of->model, made);
    graph_finish(of->model);
    error = (cellgate_error)CELLGATE_ERROR_INIT;
    status = cg_split(of->model, "ids", NULL, parts, &error);
    cellgate_model_destroy(of->model);
    assert_true(status == CELLGATE_OK || status == CELLGATE_UNSUPPORTED);
    return status == CELLGATE_OK ? NULL : error.text;
}

/* `part` NULL: it passes. */
static void expect(draft *of, int32_t made, const char *part)
{
    cg_parts parts;
    const char *text = split(of, made, &parts);

    if (text == NULL && part != NULL)
        fail_msg("split in spite of: %s", part);
    if (text != NULL && (part == NULL || strstr(text, part) == NULL ||
                         strstr(text, "a step at a time") == NULL))
        fail_msg("%s", text);
    cg_parts_finish(&parts);
}

/* A node of one input on the decoder's steps. */
static void expect_one(cg_node node, const char *part)
{
    draft of = begin();

    expect(&of, add(&of, "made", node, &of.steps, 1), part);
}

/* ---- One input ---------------------------------------------------------- */

static void features_may_be_moved_and_steps_may_not(void **state)
{
    cg_node node = { .kind = CG_SLICE, .as.slice = { .begin = 1, .end = 3, .axis = 2 } };

    (void)state;
    expect_one(node, NULL);
    node.as.slice = (cg_slice){ .begin = 0, .end = -1, .axis = 1 };
    expect_one(node, "made_node: it takes some of the steps of 'steps'");
    node = (cg_node){ .kind = CG_PAD, .as.pad = { 1, 0, 2 } };
    expect_one(node, NULL);
    node.as.pad.axis = 1;
    expect_one(node, "made_node: it adds steps to those of 'steps'");
    node = (cg_node){ .kind = CG_REPEAT, .as.repeat = { 2, 2 } };
    expect_one(node, NULL);
    node.as.repeat.axis = 1;
    expect_one(node, "made_node: it repeats the steps of 'steps'");
    node = (cg_node){ .kind = CG_RESHAPE,
                      .as.reshape = { { 2, { -1, UNITS } }, 1 } };
    expect_one(node,
               "made_node: it merges or splits the axis of the decoder's");
    node.as.reshape = (cg_reshape){ { 1, { UNITS } }, 2 };
    expect_one(node, NULL);
    node = (cg_node){ .kind = CG_PERMUTE, .as.permute = { 3, { 0, 1, 2 } } };
    expect_one(node, NULL);
    node.as.permute = (cg_extents){ 3, { 0, 2, 1 } };
    expect_one(node, "made_node: it moves the axis of the decoder's steps");
    expect_one((cg_node){ .kind = CG_REVERSE },
               "made_node: it turns round the order of the steps of 'steps'");
}

static void each_element_for_itself_passes(void **state)
{
    (void)state;
    expect_one(graph_activation(CELLGATE_TANH), NULL);
    expect_one((cg_node){ .kind = CG_SOFTMAX }, NULL);
    expect_one((cg_node){ .kind = CG_LOG_SOFTMAX }, NULL);
    expect_one((cg_node){ .kind = CG_SPARSEMAX }, NULL);
    expect_one((cg_node){ .kind = CG_RELU }, NULL);
    expect_one((cg_node){ .kind = CG_MERGE }, NULL);
    expect_one(graph_dense(UNITS, WORDS), NULL);
}

static void windows_of_one_step_pass(void **state)
{
    cg_node node = { .kind = CG_WINDOW, .as.window = { 1, 1, 1, 0 } };

    (void)state;
    expect_one(node, NULL);
    node.as.window = (cg_window){ 3, 1, 1, CG_PADDING_CAUSAL };
    expect_one(node, "made_node: its windows hold several, or leave out some, "
                     "of the steps of 'steps'");
    node.as.window = (cg_window){ 1, 2, 1, CG_PADDING_VALID };
    expect_one(node, "made_node: its windows hold several, or leave out some");
    node = (cg_node){ .kind = CG_POOL,
                      .as.pool = { CG_POOL_MAXIMUM, { 2, 1, 1, 1 } } };
    expect_one(node, "made_node: its windows hold several");
    node = (cg_node){ .kind = CG_REDUCE };
    expect_one(node, "made_node: it makes one of all the steps of 'steps'");
}

static void weights_and_moments_within_a_step_pass(void **state)
{
    const cg_extents features = { 1, { UNITS } }, both = { 2, { 1, UNITS } };
    const cg_extents steps = { 2, { 5, UNITS } };
    cg_node node = { .kind = CG_NORMALIZE, .as.normalize.extents = features };

    (void)state;
    node.as.normalize.epsilon = 1e-3f;
    expect_one(node, NULL);
    node.as.normalize.extents = steps;
    expect_one(node, "made_node: what it divides by comes from all the steps");
    node = (cg_node){ .kind = CG_AFFINE, .as.affine.extents = both };
    expect_one(node, NULL);
    node.as.affine.extents = steps;
    expect_one(node, "made_node: it has weights of its own for each of the");
    node = (cg_node){ .kind = CG_PRELU, .as.prelu = both };
    expect_one(node, NULL);
    node.as.prelu = steps;
    expect_one(node, "made_node: it has weights of its own for each of the");
}

/* ---- Several inputs ----------------------------------------------------- */

static void elements_meet_within_a_step(void **state)
{
    const cg_node sum = { .kind = CG_COMBINE };
    draft of = begin();
    const int32_t both[2] = { of.steps, of.steps };
    const int32_t other[2] = { of.steps, of.source };
    const int32_t newest[2] = { of.steps, of.newest };

    (void)state;
    expect(&of, add(&of, "made", sum, both, 2), NULL);
    of = begin();
    expect(&of, add(&of, "made", sum, other, 2),
           "made_node: it joins the decoder's steps with those of 'source'");
    of = begin();
    expect(&of, add(&of, "made", sum, newest, 2),
           "made_node: it joins all steps with the newest one's result");
}

/* A mask that goes with x has an axis less than x. */
static void masks_meet_their_steps(void **state)
{
    static const cg_kind kinds[2] = { CG_SELECT, CG_MASKED };

    (void)state;
    for (int at = 0; at < 2; at++) {
        const cg_node node = { .kind = kinds[at] };
        draft of = begin();
        const int32_t own[2] = { of.steps, of.ids_mask };
        const int32_t other[2] = { of.steps, of.mask };

        expect(&of, add(&of, "made", node, own, 2), NULL);
        of = begin();
        expect(&of, add(&of, "made", node, other, 2),
               "made_node: it joins the decoder's steps with those of "
               "'source:mask'");
    }
}

static void products_keep_the_steps_first(void **state)
{
    cg_node node = { .kind = CG_DOT, .as.dot = { .axis_a = 2, .axis_b = 2 } };
    draft of = begin();
    const int32_t first[2] = { of.newest, of.steps };
    const int32_t last[2] = { of.source, of.steps };
    const int32_t both[2] = { of.steps, of.steps };
    cg_node scores = graph_dense(UNITS, WORDS);
    int32_t product[2];

    (void)state;
    /* Scores of the source's steps, and their sum by these. */
    product[0] = of.steps;
    product[1] = of.source;
    product[0] = add(&of, "match", node, product, 2);
    node.as.dot.axis_b = 1;
    product[0] = add(&of, "context", node, product, 2);
    expect(&of, add(&of, "made", scores, product, 1), NULL);
    of = begin();
    expect(&of, add(&of, "made", node, both, 2),
           "made_node: its sums go over the decoder's steps");
    node.as.dot.axis_b = 2;
    of = begin();
    expect(&of, add(&of, "made", node, both, 2),
           "made_node: it multiplies all of the decoder's steps with 'steps'");
    of = begin();
    expect(&of, add(&of, "made", node, last, 2),
           "made_node: its result has the decoder's steps behind an axis of "
           "'source'");
    of = begin();
    node.as.dot.axis_a = 1;
    expect(&of, add(&of, "made", node, first, 2),
           "made_node: it multiplies all of the decoder's steps with 'newest'");
}

/* ---- Recurrent ---------------------------------------------------------- */

static void gru_and_simple_rnn_carry_their_state(void **state)
{
    static const cg_kind kinds[2] = { CG_GRU, CG_SIMPLE_RNN };

    (void)state;
    for (int at = 0; at < 2; at++) {
        draft of = begin();
        const int32_t inputs[3] = { of.steps, CG_NO_VALUE, CG_NO_VALUE };
        const int32_t masked[3] = { of.steps, of.mask, CG_NO_VALUE };
        const int32_t begun[3] = { of.source, CG_NO_VALUE, of.newest };
        cg_parts parts;
        int32_t made = add(&of, "made", recurrent(kinds[at], false), inputs, 3);

        assert_null(split(&of, made, &parts));
        assert_int_equal(parts.step->input_count, 2);
        assert_int_equal(parts.step->output_count, 2);
        assert_int_equal(parts.wires[1].carried, 1);
        assert_true(parts.wires[1].from == CG_NONE);
        cg_parts_finish(&parts);
        of = begin();
        made = add(&of, "made", recurrent(kinds[at], true), inputs, 3);
        expect(&of, made, "made_node: it goes backwards");
        of = begin();
        made = add(&of, "made", recurrent(kinds[at], false), masked, 3);
        expect(&of, made,
               "made_node: its mask, 'source:mask', does not belong");
        of = begin();
        made = add(&of, "made", recurrent(kinds[at], false), begun, 3);
        expect(&of, made, "made_node: its initial state, 'newest', follows");
    }
}

/* ---- Attention ---------------------------------------------------------- */

static cg_node attention(bool causal)
{
    return (cg_node){ .kind = CG_ATTENTION,
                      .output_count = 2,
                      .as.attention = { .size = UNITS, .causal = causal } };
}

/* Value and mask are what the encoder hands on, also where it has nothing to
   compute. */
static void steps_may_attend_to_the_source(void **state)
{
    draft of = begin();
    const int32_t inputs[5] = { of.steps, of.source, CG_NO_VALUE, of.ids_mask,
                                of.mask };
    const int32_t made = add(&of, "made", attention(false), inputs, 5);
    cg_parts parts;

    (void)state;
    assert_null(split(&of, made, &parts));
    assert_int_equal(parts.step->input_count, 3);
    assert_int_equal(parts.wires[1].from, 0);
    assert_true(parts.wires[1].carried == CG_NONE);
    assert_int_equal(parts.wires[2].request_mask, 0);
    cg_parts_finish(&parts);
}

static void steps_may_not_attend_to_each_other(void **state)
{
    /* query, value, key, masks of query and value; causal */
    static const struct {
        const char *inputs; /* s: steps, x: source, n: none, m and i: masks */
        bool causal;
        const char *text;
    } cases[] = {
        { "ssnnn", false, "it looks at all of the decoder's own steps, later" },
        { "ssnnn", true, "it looks at the decoder's own earlier steps, which" },
        { "xsnnn", false, "it looks at all of the decoder's own steps, later" },
        { "xxsnn", false, "it looks at all of the decoder's own steps, later" },
        { "xxnni", false, "it looks at all of the decoder's own steps, later" },
        { "xxnin", false, "its query's mask belongs to the decoder's steps" },
        { "sxnmn", false, "its query's mask, 'source:mask', does not belong" },
        { "sxnnn", true, "it is causal, and what a step may look at depends" },
    };

    (void)state;
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        draft of = begin();
        int32_t inputs[5];

        for (int i = 0; i < 5; i++) {
            const char which = cases[at].inputs[i];

            inputs[i] = which == 's'   ? of.steps
                        : which == 'x' ? of.source
                        : which == 'm' ? of.mask
                        : which == 'i' ? of.ids_mask
                                       : CG_NO_VALUE;
        }
        expect(&of, add(&of, "made", attention(cases[at].causal), inputs, 5),
               cases[at].text);
    }
}

/* A state that looks back at the source: one step of a query, and no time axis
   of the decoder. What it makes of that axis cannot be scores. */
static void the_newest_step_alone_may_attend(void **state)
{
    const cg_node widen = { .kind = CG_RESHAPE,
                            .as.reshape = { { 2, { 1, UNITS } }, 1 } };
    const cg_node narrow = { .kind = CG_RESHAPE,
                             .as.reshape = { { 1, { UNITS } }, 1 } };

    (void)state;
    for (int scores = 0; scores < 2; scores++) {
        draft of = begin();
        int32_t inputs[5] = { CG_NO_VALUE, of.source, CG_NO_VALUE, CG_NO_VALUE,
                              of.mask };
        int32_t made;

        inputs[0] = add(&of, "query", widen, &of.newest, 1);
        made = add(&of, "context", attention(true), inputs, 5);
        if (scores == 0)
            made = add(&of, "made", narrow, &made, 1);
        expect(&of, made,
               scores == 0 ? NULL
                           : "the scores 'context' have steps that are not "
                             "those of input 'ids'");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_may_be_moved_and_steps_may_not),
        cmocka_unit_test(each_element_for_itself_passes),
        cmocka_unit_test(windows_of_one_step_pass),
        cmocka_unit_test(weights_and_moments_within_a_step_pass),
        cmocka_unit_test(elements_meet_within_a_step),
        cmocka_unit_test(masks_meet_their_steps),
        cmocka_unit_test(products_keep_the_steps_first),
        cmocka_unit_test(gru_and_simple_rnn_carry_their_state),
        cmocka_unit_test(steps_may_attend_to_the_source),
        cmocka_unit_test(steps_may_not_attend_to_each_other),
        cmocka_unit_test(the_newest_step_alone_may_attend),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
