/* SPDX-License-Identifier: Apache-2.0 */
/* What is split where, and what cannot be. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/generate/parts.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/model_graph.h"

#define WORDS 7
#define UNITS 4

static cg_node embedding(void)
{
    return (cg_node){ .kind = CG_EMBEDDING,
                      .as.embedding = { .vocabulary = WORDS, .size = UNITS } };
}

static int32_t embedded(cellgate_model *model, const char *name, int32_t ids)
{
    const int32_t value = graph_value(model, name, CELLGATE_F32);
    char node[32];

    snprintf(node, sizeof node, "%s_node", name);
    graph_node(model, node, embedding(), ids, value);
    return value;
}

/* An LSTM; initial and made: h and c; made may be NULL. */
typedef struct layer {
    int32_t x, mask, initial[2]; /* CG_NO_VALUE: none */
    int32_t sequence, last, made[2];
} layer;

static layer layer_on(int32_t x)
{
    return (layer){ .x = x,
                    .mask = CG_NO_VALUE,
                    .initial = { CG_NO_VALUE, CG_NO_VALUE } };
}

static void add_layer(cellgate_model *model, const char *name, layer *lstm)
{
    const int32_t inputs[4] = { lstm->x, lstm->mask, lstm->initial[0],
                                lstm->initial[1] };
    static const char *const made[4] = { "", ":last", ":h", ":c" };
    int32_t outputs[4];
    cellgate_error error = CELLGATE_ERROR_INIT;

    for (int at = 0; at < 4; at++) {
        char text[32];

        snprintf(text, sizeof text, "%s_out%s", name, made[at]);
        outputs[at] = graph_value(model, text, CELLGATE_F32);
    }
    lstm->sequence = outputs[0];
    lstm->last = outputs[1];
    lstm->made[0] = outputs[2];
    lstm->made[1] = outputs[3];
    if (graph_try_lstm(model, name, graph_lstm(UNITS, UNITS, 1), inputs,
                       outputs, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
}

static int32_t add_scores(cellgate_model *model, int32_t x, bool softmax)
{
    const int32_t logits = graph_value(model, "logits", CELLGATE_F32);
    int32_t scores;

    graph_node(model, "words", graph_dense(UNITS, WORDS), x, logits);
    if (!softmax)
        return logits;
    scores = graph_value(model, "scores", CELLGATE_F32);
    graph_node(model, "softmax", (cg_node){ .kind = CG_SOFTMAX }, logits,
               scores);
    return scores;
}

/* source -> LSTM -> states; target -> LSTM from them -> scores */
static cellgate_model *translator(void)
{
    cellgate_model *model = graph_create();
    const int32_t source =
        graph_input(model, "source", CELLGATE_I32, CG_UNKNOWN, 0);
    const int32_t target =
        graph_input(model, "target", CELLGATE_I32, CG_UNKNOWN, 0);
    layer encoder = layer_on(embedded(model, "source_words", source)), decoder;

    add_layer(model, "encoder", &encoder);
    decoder = layer_on(embedded(model, "target_words", target));
    decoder.initial[0] = encoder.made[0];
    decoder.initial[1] = encoder.made[1];
    add_layer(model, "decoder", &decoder);
    graph_output(model, add_scores(model, decoder.sequence, true));
    graph_finish(model);
    return model;
}

static cg_parts split(const cellgate_model *model)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_parts parts;

    if (cg_split(model, NULL, NULL, &parts, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return parts;
}

static void expect_refused(cellgate_model *model, const char *token,
                           const char *scores, cellgate_status status,
                           const char *part, const char *and_part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_parts parts;

    assert_int_equal(cg_split(model, token, scores, &parts, &error), status);
    if (strstr(error.text, part) == NULL ||
        strstr(error.text, and_part) == NULL)
        fail_msg("%s", error.text);
    cellgate_model_destroy(model);
}

/* ---- What can be split -------------------------------------------------- */

static void a_translator_is_an_encoder_and_a_step(void **state)
{
    cellgate_model *model = translator();
    cg_parts parts = split(model);
    const cellgate_model *step = parts.step;

    (void)state;
    /* The parts keep the weights alive. */
    cellgate_model_destroy(model);
    assert_int_equal(parts.encoder->node_count, 2);
    assert_int_equal(parts.encoder->input_count, 1);
    assert_int_equal(parts.encoder->output_count, 2);
    assert_int_equal(step->node_count, 4);
    assert_int_equal(step->input_count, 3);
    assert_int_equal(step->output_count, 3);
    assert_string_equal(step->values[step->inputs[parts.token].value].name,
                        "target");
    assert_int_equal(step->values[step->inputs[parts.token].value].shape[1], 1);
    for (size_t state_input = 1; state_input < 3; state_input++) {
        assert_int_equal(parts.wires[state_input].from, state_input - 1);
        assert_int_equal(parts.wires[state_input].carried, state_input);
    }
    assert_int_equal(parts.scores, 0);
    assert_int_equal(parts.words, WORDS);
    assert_int_equal(parts.known, WORDS);
    assert_true(parts.probabilities);
    cg_parts_finish(&parts);
}

/* Without an encoder states begin with zeros; the last step's scores do. */
static void a_language_model_has_no_encoder(void **state)
{
    (void)state;
    for (int last = 0; last < 2; last++) {
        cellgate_model *model = graph_create();
        const int32_t ids =
            graph_input(model, "ids", CELLGATE_I32, CG_UNKNOWN, 0);
        layer lstm = layer_on(embedded(model, "look_up", ids));
        cg_parts parts;

        add_layer(model, "lstm", &lstm);
        graph_output(
            model, add_scores(model, last ? lstm.last : lstm.sequence, false));
        graph_finish(model);
        parts = split(model);
        cellgate_model_destroy(model);
        assert_null(parts.encoder);
        assert_false(parts.probabilities);
        assert_int_equal(parts.step->input_count, 3);
        assert_true(parts.wires[1].from == CG_NONE);
        assert_int_equal(parts.wires[2].carried, 2);
        cg_parts_finish(&parts);
    }
}

/* What is the same at every step is an input that stays what it is. */
static void features_of_the_encoder_go_to_each_step(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t features =
        graph_input(model, "features", CELLGATE_F32, UNITS, 0);
    const int32_t ids = graph_input(model, "ids", CELLGATE_I32, CG_UNKNOWN, 0);
    const int32_t both = graph_value(model, "both", CELLGATE_F32);
    layer lstm = layer_on(embedded(model, "look_up", ids));
    int32_t inputs[2];
    cg_node join = { .kind = CG_CONCAT,
                     .name = (char *)(uintptr_t) "join",
                     .inputs = inputs,
                     .input_count = 2,
                     .outputs = (int32_t[]){ both },
                     .output_count = 1 };
    const int32_t logits = graph_value(model, "logits", CELLGATE_F32);
    cg_parts parts;

    (void)state;
    add_layer(model, "lstm", &lstm);
    inputs[0] = lstm.last;
    inputs[1] = features;
    assert_int_equal(cg_model_add_node(model, &join, NULL), CELLGATE_OK);
    graph_node(model, "words", graph_dense(2 * UNITS, WORDS), both, logits);
    graph_output(model, logits);
    graph_finish(model);
    parts = split(model);
    cellgate_model_destroy(model);
    /* It hands its input on. */
    assert_int_equal(parts.encoder->node_count, 0);
    assert_int_equal(parts.encoder->output_count, 1);
    assert_int_equal(parts.step->input_count, 4);
    for (size_t at = 1; at < 4; at++)
        assert_true((parts.wires[at].from == 0) ==
                    (parts.wires[at].carried == CG_NONE));
    cg_parts_finish(&parts);
}

/* ---- What cannot -------------------------------------------------------- */

/* ids -> embedding -> the node -> scores */
static cellgate_model *with_node(cg_node node)
{
    cellgate_model *model = graph_create();
    const int32_t ids = graph_input(model, "ids", CELLGATE_I32, CG_UNKNOWN, 0);
    const int32_t made = graph_value(model, "made", CELLGATE_F32);

    graph_node(model, "culprit", node, embedded(model, "look_up", ids), made);
    graph_output(model, add_scores(model, made, true));
    graph_finish(model);
    return model;
}

static cellgate_model *with_lstm(int32_t directions, int32_t reverse)
{
    cellgate_model *model = graph_create();
    const int32_t ids = graph_input(model, "ids", CELLGATE_I32, CG_UNKNOWN, 0);
    const int32_t x = embedded(model, "look_up", ids);
    const int32_t y = graph_value(model, "y", CELLGATE_F32);
    cg_node node = graph_lstm(UNITS, UNITS / directions, directions);
    int32_t inputs[6] = { x,           CG_NO_VALUE, CG_NO_VALUE,
                          CG_NO_VALUE, CG_NO_VALUE, CG_NO_VALUE };
    int32_t outputs[6] = { y,           CG_NO_VALUE, CG_NO_VALUE,
                           CG_NO_VALUE, CG_NO_VALUE, CG_NO_VALUE };

    node.as.lstm.shape.reverse = reverse;
    assert_int_equal(
        graph_try_lstm(model, "culprit", node, inputs, outputs, NULL),
        CELLGATE_OK);
    graph_output(model, add_scores(model, y, true));
    graph_finish(model);
    return model;
}

static void layers_that_look_ahead_are_refused_by_name(void **state)
{
    (void)state;
    expect_refused(with_node((cg_node){ .kind = CG_REVERSE }), NULL, NULL,
                   CELLGATE_UNSUPPORTED, "culprit: it turns round the order",
                   "a step at a time");
    expect_refused(with_lstm(2, 0), NULL, NULL, CELLGATE_UNSUPPORTED,
                   "culprit: it has a backward direction", "a step at a time");
    expect_refused(with_lstm(1, 1), NULL, NULL, CELLGATE_UNSUPPORTED,
                   "culprit: it goes backwards", "a step at a time");
}

/* The source could only be what is generated if the target were known. */
static void states_from_the_ids_themselves_are_refused(void **state)
{
    (void)state;
    expect_refused(translator(), "source", NULL, CELLGATE_UNSUPPORTED,
                   "decoder: its initial state, 'encoder_out:h', follows from "
                   "all of the ids",
                   "a step at a time");
}

/* The encoder's steps cannot be joined with the decoder's one by one. */
static void steps_of_both_sides_are_not_joined(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t source =
        graph_input(model, "source", CELLGATE_I32, CG_UNKNOWN, 0);
    const int32_t target =
        graph_input(model, "target", CELLGATE_I32, CG_UNKNOWN, 0);
    const int32_t both = graph_value(model, "both", CELLGATE_F32);
    const int32_t logits = graph_value(model, "logits", CELLGATE_F32);
    int32_t inputs[2] = { embedded(model, "source_words", source),
                          embedded(model, "target_words", target) };
    cg_node join = { .kind = CG_CONCAT,
                     .name = (char *)(uintptr_t) "culprit",
                     .inputs = inputs,
                     .input_count = 2,
                     .outputs = (int32_t[]){ both },
                     .output_count = 1 };

    (void)state;
    assert_int_equal(cg_model_add_node(model, &join, NULL), CELLGATE_OK);
    graph_node(model, "words", graph_dense(2 * UNITS, WORDS), both, logits);
    graph_output(model, logits);
    graph_finish(model);
    expect_refused(model, "target", NULL, CELLGATE_UNSUPPORTED, "culprit",
                   "'source_words'");
}

static void all_steps_and_the_newest_are_not_joined(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t ids = graph_input(model, "ids", CELLGATE_I32, CG_UNKNOWN, 0);
    layer first = layer_on(embedded(model, "look_up", ids)), second;

    (void)state;
    add_layer(model, "first", &first);
    second = layer_on(first.sequence);
    second.initial[0] = first.made[0];
    add_layer(model, "culprit", &second);
    graph_output(model, add_scores(model, second.sequence, true));
    graph_finish(model);
    expect_refused(model, NULL, NULL, CELLGATE_UNSUPPORTED,
                   "culprit: its initial state, 'first_out:h'",
                   "a step at a time");
}

static void names_and_ambiguities_are_told(void **state)
{
    cellgate_model *model = graph_create();
    const int32_t ids = graph_input(model, "ids", CELLGATE_I32, CG_UNKNOWN, 0);
    layer lstm = layer_on(embedded(model, "look_up", ids));

    (void)state;
    expect_refused(translator(), "nobody", NULL, CELLGATE_NOT_FOUND, "'nobody'",
                   "'source', 'target'");
    expect_refused(translator(), NULL, "nothing", CELLGATE_NOT_FOUND,
                   "no output 'nothing'", "'scores'");
    add_layer(model, "lstm", &lstm);
    graph_output(model, add_scores(model, lstm.sequence, false));
    graph_output(model, lstm.made[0]);
    graph_finish(model);
    expect_refused(model, NULL, NULL, CELLGATE_INVALID, "'logits'",
                   "name the output");
    model = graph_create();
    graph_output(model, graph_input(model, "x", CELLGATE_F32, 3, 4));
    graph_finish(model);
    expect_refused(model, NULL, NULL, CELLGATE_UNSUPPORTED, "takes ids", "'x'");
}

/* A language model over `steps` ids; `masked`: it leaves out padding. */
static cellgate_model *language(int64_t steps, bool newest, bool masked)
{
    cellgate_model *model = graph_create();
    const int32_t ids = graph_input(model, "ids", CELLGATE_I32, steps, 0);
    layer lstm = layer_on(embedded(model, "look_up", ids));

    if (masked) {
        lstm.mask = graph_value(model, "mask", CELLGATE_U8);
        graph_node(model, "nonzero", (cg_node){ .kind = CG_NONZERO }, ids,
                   lstm.mask);
    }
    add_layer(model, "lstm", &lstm);
    graph_output(model,
                 add_scores(model, newest ? lstm.last : lstm.sequence, true));
    graph_finish(model);
    return model;
}

static int64_t window_of(cellgate_model *model)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_parts parts;
    int64_t window;

    if (cg_split(model, NULL, NULL, &parts, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    window = parts.window;
    cg_parts_finish(&parts);
    cellgate_model_destroy(model);
    return window;
}

/* Keras refuses more steps than the file says, and pads fewer. */
static void fixed_steps_end_a_sequence(void **state)
{
    cellgate_model *stateful = language(5, true, false);

    (void)state;
    assert_int_equal(window_of(language(CG_UNKNOWN, false, false)), 0);
    assert_int_equal(window_of(language(CG_UNKNOWN, true, false)), 0);
    assert_int_equal(window_of(language(1, false, false)), 0);
    assert_int_equal(window_of(language(5, false, false)), 5);
    assert_int_equal(window_of(language(5, true, true)), 5);
    expect_refused(language(5, true, false), NULL, NULL, CELLGATE_UNSUPPORTED,
                   "input 'ids' at 5 steps", "'scores' scores");
    for (size_t n = 0; n < stateful->node_count; n++)
        if (stateful->nodes[n].kind == CG_LSTM)
            stateful->nodes[n].as.lstm.stateful = true;
    assert_int_equal(window_of(stateful), 0);
}

/* ---- Two models --------------------------------------------------------- */

/* Inputs source -> outputs h and c, the other way round if asked. */
static cellgate_model *encoder_alone(bool swapped, int64_t units)
{
    cellgate_model *model = graph_create();
    const int32_t source =
        graph_input(model, "source", CELLGATE_I32, CG_UNKNOWN, 0);
    const int32_t x = embedded(model, "source_words", source);
    const int32_t h = graph_value(model, "enc_h", CELLGATE_F32);
    const int32_t c = graph_value(model, "enc_c", CELLGATE_F32);
    const int32_t inputs[4] = { x, CG_NO_VALUE, CG_NO_VALUE, CG_NO_VALUE };
    const int32_t outputs[4] = { CG_NO_VALUE, CG_NO_VALUE, h, c };

    assert_int_equal(graph_try_lstm(model, "encoder",
                                    graph_lstm(UNITS, units, 1), inputs,
                                    outputs, NULL),
                     CELLGATE_OK);
    graph_output(model, swapped ? c : h);
    graph_output(model, swapped ? h : c);
    graph_finish(model);
    return model;
}

/* token, h0, c0 -> scores, h, c */
static cellgate_model *decoder_alone(void)
{
    cellgate_model *model = graph_create();
    const int32_t h0 = graph_input(model, "h0", CELLGATE_F32, UNITS, 0);
    const int32_t token = graph_input(model, "token", CELLGATE_I32, 1, 0);
    const int32_t c0 = graph_input(model, "c0", CELLGATE_F32, UNITS, 0);
    layer lstm = layer_on(embedded(model, "target_words", token));

    lstm.initial[0] = h0;
    lstm.initial[1] = c0;
    add_layer(model, "decoder", &lstm);
    graph_output(model, add_scores(model, lstm.sequence, true));
    graph_output(model, lstm.made[0]);
    graph_output(model, lstm.made[1]);
    graph_finish(model);
    return model;
}

static cellgate_status pair(cellgate_model *encoder, const cg_pairs *pairs,
                            cg_parts *parts, cellgate_error *error)
{
    cellgate_model *decoder = decoder_alone();
    const cellgate_status status =
        cg_pair(encoder, decoder, NULL, NULL, pairs, parts, error);

    cellgate_model_destroy(decoder);
    cellgate_model_destroy(encoder);
    return status;
}

static void two_models_are_paired_in_order(void **state)
{
    const cg_pairs none = { NULL, 0, NULL, 0 };
    cg_parts parts;

    (void)state;
    assert_int_equal(pair(encoder_alone(false, UNITS), &none, &parts, NULL),
                     CELLGATE_OK);
    assert_int_equal(parts.token, 1);
    assert_int_equal(parts.wires[0].from, 0);
    assert_int_equal(parts.wires[2].from, 1);
    assert_int_equal(parts.wires[0].carried, 1);
    assert_int_equal(parts.wires[2].carried, 2);
    assert_int_equal(parts.words, WORDS);
    cg_parts_finish(&parts);
}

static void two_models_are_paired_by_name(void **state)
{
    static const char *const initial[2] = { "enc_h=h0", "enc_c=c0" };
    static const char *const carried[2] = { "decoder_out:c=c0",
                                            "decoder_out:h=h0" };
    static const char *const wrong[1] = { "enc_h=nowhere" };
    const cg_pairs named = { initial, 2, carried, 2 };
    const cg_pairs bad = { wrong, 1, NULL, 0 };
    const cg_pairs few = { initial, 1, initial, 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_parts parts;

    (void)state;
    assert_int_equal(pair(encoder_alone(true, UNITS), &named, &parts, NULL),
                     CELLGATE_OK);
    assert_int_equal(parts.wires[0].from, 1);
    assert_int_equal(parts.wires[2].from, 0);
    assert_int_equal(parts.wires[0].carried, 1);
    cg_parts_finish(&parts);
    assert_int_equal(pair(encoder_alone(true, UNITS), &bad, &parts, &error),
                     CELLGATE_NOT_FOUND);
    assert_non_null(strstr(error.text, "'enc_h=nowhere'"));
    /* A state that no pair begins with begins with zeros. */
    assert_int_equal(pair(encoder_alone(true, UNITS), &few, &parts, NULL),
                     CELLGATE_OK);
    assert_true(parts.wires[2].from == CG_NONE);
    cg_parts_finish(&parts);
}

static void pairs_that_do_not_fit_are_refused(void **state)
{
    const cg_pairs none = { NULL, 0, NULL, 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *one = translator();
    cg_parts parts;

    (void)state;
    assert_int_equal(
        pair(encoder_alone(false, UNITS + 1), &none, &parts, &error),
        CELLGATE_BAD_SHAPE);
    assert_non_null(strstr(error.text, "'enc_h'"));
    assert_int_equal(cg_pair(NULL, one, NULL, NULL, &none, &parts, &error),
                     CELLGATE_INVALID);
    assert_non_null(strstr(error.text, "'source', 'target'"));
    assert_int_equal(cg_pair(NULL, one, "nobody", NULL, &none, &parts, &error),
                     CELLGATE_NOT_FOUND);
    assert_non_null(strstr(error.text, "'nobody' that takes one step's ids"));
    cellgate_model_destroy(one);
}

/* ---- Memory ------------------------------------------------------------- */

static cellgate_status split_once(void *context)
{
    cg_parts parts;
    const cellgate_status status = cg_split(context, NULL, NULL, &parts, NULL);

    cg_parts_finish(&parts);
    return status;
}

static cellgate_status pair_once(void *context)
{
    static const char *const carried[2] = { "decoder_out:h=h0",
                                            "decoder_out:c=c0" };
    const cg_pairs pairs = { NULL, 0, carried, 2 };
    cg_parts parts;
    const cellgate_status status =
        cg_pair(NULL, context, NULL, NULL, &pairs, &parts, NULL);

    cg_parts_finish(&parts);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    cellgate_model *model = translator(), *decoder = decoder_alone();

    (void)state;
    assert_true(fail_each_allocation(split_once, model) > 20);
    assert_true(fail_each_allocation(pair_once, decoder) > 5);
    cellgate_model_destroy(model);
    cellgate_model_destroy(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_translator_is_an_encoder_and_a_step),
        cmocka_unit_test(a_language_model_has_no_encoder),
        cmocka_unit_test(features_of_the_encoder_go_to_each_step),
        cmocka_unit_test(layers_that_look_ahead_are_refused_by_name),
        cmocka_unit_test(states_from_the_ids_themselves_are_refused),
        cmocka_unit_test(steps_of_both_sides_are_not_joined),
        cmocka_unit_test(all_steps_and_the_newest_are_not_joined),
        cmocka_unit_test(names_and_ambiguities_are_told),
        cmocka_unit_test(fixed_steps_end_a_sequence),
        cmocka_unit_test(two_models_are_paired_in_order),
        cmocka_unit_test(two_models_are_paired_by_name),
        cmocka_unit_test(pairs_that_do_not_fit_are_refused),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
