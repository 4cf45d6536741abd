/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/model/model.h"
#include "tests/unit/keras_file.h"
#include "tests/unit/scratch_folder.h"

static const keras_weight weights[] = { LSTM_WEIGHTS("layers/lstm/cell", 3, 2),
                                        { NULL, 0, { 0 } } };

#define SERIES INPUT("x", "[null, 6, 3]")
#define LSTM(options)                                                          \
    SEQUENTIAL(SERIES ", " LAYER("LSTM", "l", ", 'units': 2" options))

static cellgate_model *load_with(const char *config, const keras_weight *list)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (keras_file_load(config, list, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

static cellgate_model *load(const char *config)
{
    return load_with(config, weights);
}

static void the_defaults(void **state)
{
    cellgate_model *model = load(LSTM(", 'activation': 'tanh', "
                                      "'recurrent_activation': 'sigmoid'"));
    const cg_node *node = &model->nodes[0];
    const cellgate_lstm *lstm = &node->as.lstm.shape;

    (void)state;
    assert_int_equal(model->node_count, 1);
    assert_int_equal(lstm->input_size, 3);
    assert_int_equal(lstm->hidden_size, 2);
    assert_int_equal(lstm->directions, 1);
    assert_int_equal(lstm->reverse, 0);
    assert_int_equal(lstm->has_bias, 1);
    assert_int_equal(lstm->outputs, CELLGATE_LSTM_LAST);
    assert_int_equal(lstm->activations[0][0].kind, CELLGATE_SIGMOID);
    assert_int_equal(lstm->activations[0][1].kind, CELLGATE_TANH);
    assert_int_equal(lstm->activations[0][2].kind, CELLGATE_TANH);
    assert_false(node->as.lstm.zero_masked);
    assert_int_equal(node->inputs[CG_LSTM_INPUT_MASK], model->inputs[0].mask);
    assert_float_equal(node->weights[1].data[15], 0.16f, 0);
    assert_string_equal(model->values[model->outputs[0]].name, "l");
    cellgate_model_destroy(model);
}

/* As LSTM.from_config() of Keras 3 has it; null is linear. */
static void activations_left_out(void **state)
{
    cellgate_model *model = load(LSTM(""));
    const cellgate_lstm *lstm = &model->nodes[0].as.lstm.shape;

    (void)state;
    assert_int_equal(lstm->activations[0][0].kind, CELLGATE_SIGMOID);
    assert_int_equal(lstm->activations[0][1].kind, CELLGATE_TANH);
    assert_int_equal(lstm->activations[0][2].kind, CELLGATE_TANH);
    cellgate_model_destroy(model);
    model = load(LSTM(", 'activation': null, 'recurrent_activation': null"));
    lstm = &model->nodes[0].as.lstm.shape;
    assert_int_equal(lstm->activations[0][0].kind, CELLGATE_LINEAR);
    assert_int_equal(lstm->activations[0][1].kind, CELLGATE_LINEAR);
    cellgate_model_destroy(model);
}

static void every_option(void **state)
{
    static const keras_weight no_bias[] = {
        { "layers/lstm/cell/vars/0", 2, { 3, 8 } },
        { "layers/lstm/cell/vars/1", 2, { 2, 8 } },
        { NULL, 0, { 0 } }
    };
    cellgate_model *model = load_with(
        LSTM(", 'use_bias': false, 'activation': 'relu', "
             "'recurrent_activation': 'hard_sigmoid', 'stateful': true, "
             "'return_sequences': true, 'zero_output_for_mask': true, "
             "'unroll': true, 'unit_forget_bias': true, 'dropout': 0.5, "
             "'recurrent_dropout': 0.5, 'seed': 3, 'implementation': 2, "
             "'use_cudnn': 'auto', 'kernel_initializer': {'class_name': 'Z'}, "
             "'recurrent_regularizer': {'class_name': 'Z'}, "
             "'bias_constraint': {'class_name': 'Z'}"),
        no_bias);
    const cg_node *node = &model->nodes[0];

    (void)state;
    assert_int_equal(node->as.lstm.shape.has_bias, 0);
    assert_int_equal(node->as.lstm.shape.outputs, CELLGATE_LSTM_SEQUENCE);
    assert_int_equal(node->as.lstm.shape.activations[0][0].kind,
                     CELLGATE_HARD_SIGMOID);
    assert_int_equal(node->as.lstm.shape.activations[0][2].kind, CELLGATE_RELU);
    assert_true(node->as.lstm.zero_masked);
    assert_true(node->as.lstm.stateful);
    assert_null(node->weights[2].data);
    cellgate_model_destroy(model);
    model = load(LSTM(", 'time_major': false"));
    cellgate_model_destroy(model);
    assert_keras_refuses(LSTM(", 'activation': 'softmax'"), weights,
                         CELLGATE_UNSUPPORTED, "softmax as 'activation'");
}

static void backwards_sequences_stay_reversed(void **state)
{
    cellgate_model *model =
        load(LSTM(", 'go_backwards': true, 'return_sequences': true"));

    (void)state;
    assert_int_equal(model->node_count, 2);
    assert_int_equal(model->nodes[0].as.lstm.shape.reverse, 1);
    assert_int_equal(model->nodes[1].kind, CG_REVERSE);
    assert_string_equal(model->values[model->outputs[0]].name, "l");
    cellgate_model_destroy(model);
    model = load(LSTM(", 'go_backwards': true"));
    assert_int_equal(model->node_count, 1);
    assert_int_equal(model->nodes[0].as.lstm.shape.reverse, 1);
    cellgate_model_destroy(model);
}

/* ---- In functional models ------------------------------------------------ */

#define STATE(name) INPUT(name, "[null, 2]")
#define RUNS(options, tensors, keywords)                                       \
    CALLED("LSTM", "l", ", 'units': 2" options, tensors, keywords)
#define X TENSOR("x", "0", "0")
#define H TENSOR("h", "0", "0")
#define C TENSOR("c", "0", "0")

static void states_go_in_and_out(void **state)
{
    cellgate_model *model = load(FUNCTIONAL(
        SERIES ", " STATE("h") ", " STATE("c") ", " RUNS(
            ", 'return_state': true", X, "'initial_state': [" H ", " C "]"),
        "[['x', 0, 0], ['h', 0, 0], ['c', 0, 0]]",
        "[['l', 0, 0], ['l', 0, 2], ['l', 0, 1]]"));
    const cg_node *node = &model->nodes[0];

    (void)state;
    assert_int_equal(model->input_count, 3);
    assert_int_equal(model->output_count, 3);
    assert_int_equal(node->inputs[CG_LSTM_INPUT_STATE], model->inputs[1].value);
    assert_int_equal(node->inputs[CG_LSTM_INPUT_STATE + 1],
                     model->inputs[2].value);
    assert_int_equal(model->outputs[1],
                     node->outputs[CG_LSTM_OUTPUT_STATE + 1]);
    assert_string_equal(model->values[model->outputs[1]].name, "l:c");
    assert_string_equal(model->values[model->outputs[2]].name, "l:h");
    /* As Keras does: with states as tensors, it doesn't look at the mask. */
    assert_int_equal(node->inputs[CG_LSTM_INPUT_MASK], CG_NO_VALUE);
    assert_int_equal(model->inputs[0].mask, CG_NO_VALUE);
    cellgate_model_destroy(model);
}

/* Of two layers, what the first one hands on: the mask of its input, which it
   doesn't look at with states as tensors, or the one given as mask=. */
static void masks_are_handed_on(void **state)
{
    static const keras_weight two[] = { LSTM_WEIGHTS("layers/lstm/cell", 3, 2),
                                        LSTM_WEIGHTS("layers/lstm_1/cell", 2,
                                                     2),
                                        { NULL, 0, { 0 } } };
#define OPERATION(class, name, options, arguments)                             \
    "{'module': 'keras.src.ops.numpy', 'class_name': '" class                  \
        "', 'config': {'name': '" name "'" options "}, 'name': '" name         \
        "', 'inbound_nodes': [{'args': [" arguments "], 'kwargs': {}}]}"
#define THEN ", " CALLED("LSTM", "m", ", 'units': 2", TENSOR("l", "0", "0"), "")
    cellgate_model *model = load_with(
        FUNCTIONAL(SERIES ", " STATE("h") ", " STATE("c") ", " RUNS(
                       ", 'return_sequences': true", X,
                       "'initial_state': [" H ", " C "]") THEN,
                   "[['x', 0, 0], ['h', 0, 0], ['c', 0, 0]]", "['m', 0, 0]"),
        two);

    (void)state;
    assert_int_not_equal(model->inputs[0].mask, CG_NO_VALUE);
    assert_int_equal(model->nodes[0].inputs[CG_LSTM_INPUT_MASK], CG_NO_VALUE);
    assert_int_equal(model->nodes[1].inputs[CG_LSTM_INPUT_MASK],
                     model->inputs[0].mask);
    cellgate_model_destroy(model);
    model = load_with(
        FUNCTIONAL(
            SERIES
            ", " OPERATION("NotEqual", "ne", "", X ", 0.5") ", " OPERATION(
                "Any", "any", ", 'axis': [-1]",
                TENSOR("ne", "0",
                       "0")) ", " RUNS(", 'return_sequences': true", X,
                                       "'mask': " TENSOR("any", "0", "0")) THEN,
            "['x', 0, 0]", "['m', 0, 0]"),
        two);
    assert_int_equal(model->node_count, 3);
    for (int i = 1; i < 3; i++)
        assert_int_equal(model->nodes[i].inputs[CG_LSTM_INPUT_MASK],
                         model->nodes[0].outputs[0]);
    cellgate_model_destroy(model);
#undef OPERATION
#undef THEN
}

static void states_may_be_positional(void **state)
{
    cellgate_model *model = load(FUNCTIONAL(
        SERIES
        ", " STATE("h") ", " STATE("c") ", " RUNS("", X ", [" H ", " C "]", ""),
        "[['x', 0, 0], ['h', 0, 0], ['c', 0, 0]]", "['l', 0, 0]"));

    (void)state;
    assert_int_equal(model->nodes[0].inputs[CG_LSTM_INPUT_STATE + 1],
                     model->inputs[2].value);
    cellgate_model_destroy(model);
}

static void unused_states_are_not_asked_for(void **state)
{
    cellgate_model *model =
        load(FUNCTIONAL(SERIES ", " RUNS(", 'return_state': true", X, ""),
                        "['x', 0, 0]", "[['l', 0, 1]]"));

    (void)state;
    assert_int_equal(model->nodes[0].as.lstm.shape.outputs, CELLGATE_LSTM_H);
    assert_int_equal(model->nodes[0].outputs[CG_LSTM_OUTPUT_LAST], CG_NO_VALUE);
    cellgate_model_destroy(model);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    assert_keras_refuses(
        FUNCTIONAL(SERIES
                   ", " STATE("h") ", " RUNS("", X, "'initial_state': [" H "]"),
                   "[['x', 0, 0], ['h', 0, 0]]", "['l', 0, 0]"),
        weights, CELLGATE_BAD_FILE, "it has 1 initial states; it takes 2");
    assert_keras_refuses(
        FUNCTIONAL(SERIES ", " INPUT("h", "[null, 5]") ", " RUNS(
                       "", X, "'initial_state': [" H ", " H "]"),
                   "[['x', 0, 0], ['h', 0, 0]]", "['l', 0, 0]"),
        weights, CELLGATE_BAD_FILE, "size of an initial state is 5");
    assert_keras_refuses(FUNCTIONAL(SERIES ", " STATE("h") ", " RUNS("", H, ""),
                                    "[['x', 0, 0], ['h', 0, 0]]",
                                    "['l', 0, 0]"),
                         weights, CELLGATE_BAD_FILE, "its input has 2 axes");
    assert_keras_refuses(
        FUNCTIONAL(INPUT("x", "[null, 6, null]") ", " RUNS("", X, ""),
                   "['x', 0, 0]", "['l', 0, 0]"),
        weights, CELLGATE_BAD_FILE, "number of features");
    assert_keras_refuses(
        FUNCTIONAL(SERIES ", " STATE("h") ", " RUNS("", X, "'mask': " H),
                   "[['x', 0, 0], ['h', 0, 0]]", "['l', 0, 0]"),
        weights, CELLGATE_UNSUPPORTED, "'h' is not a mask");
    assert_keras_refuses(FUNCTIONAL(SERIES ", " RUNS("", X, "'speed': 3"),
                                    "['x', 0, 0]", "['l', 0, 0]"),
                         weights, CELLGATE_UNSUPPORTED, "called with speed=");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults),
        cmocka_unit_test(activations_left_out),
        cmocka_unit_test(every_option),
        cmocka_unit_test(backwards_sequences_stay_reversed),
        cmocka_unit_test(states_go_in_and_out),
        cmocka_unit_test(masks_are_handed_on),
        cmocka_unit_test(states_may_be_positional),
        cmocka_unit_test(unused_states_are_not_asked_for),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
