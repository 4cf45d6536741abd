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

#define BOTH(forward, backward)                                                \
    LSTM_WEIGHTS("layers/bidirectional/forward_layer/cell", 3, forward),       \
        LSTM_WEIGHTS("layers/bidirectional/backward_layer/cell", 3, backward), \
    {                                                                          \
        NULL, 0,                                                               \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

static const keras_weight weights[] = { BOTH(2, 2) };

#define X TENSOR("x", "0", "0")
#define LSTM(options) LAYER("LSTM", "inner", ", 'units': 2" options)
#define WRAPS(options)                                                         \
    FUNCTIONAL(INPUT("x", "[null, 6, 3]") ", " CALLED("Bidirectional", "b",    \
                                                      options, X, ""),         \
               "['x', 0, 0]", "[['b', 0, 0]]")
#define WRAPS_TWO(options)                                                     \
    FUNCTIONAL(INPUT("x", "[null, 6, 3]") ", " CALLED("Bidirectional", "b",    \
                                                      options, X, ""),         \
               "['x', 0, 0]", "[['b', 0, 0], ['b', 0, 1]]")

static cellgate_model *load(const char *config, const keras_weight *list)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (keras_file_load(config, list, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

static void alike_layers_are_one_node(void **state)
{
    cellgate_model *model = load(
        WRAPS(", 'layer': " LSTM(
            ", 'return_sequences': true, "
            "'activation': 'tanh'") ", 'backward_layer': " LSTM(", "
                                                                "'return_"
                                                                "sequences': "
                                                                "true, "
                                                                "'go_backwards'"
                                                                ": true, "
                                                                "'activation': "
                                                                "'relu'")),
        weights);
    const cg_node *node = &model->nodes[0];

    (void)state;
    assert_int_equal(model->node_count, 1);
    assert_int_equal(node->as.lstm.shape.directions, 2);
    assert_int_equal(node->as.lstm.shape.activations[0][1].kind, CELLGATE_TANH);
    assert_int_equal(node->as.lstm.shape.activations[1][1].kind, CELLGATE_RELU);
    assert_true(node->as.lstm.zero_masked);
    assert_ptr_not_equal(node->weights[0].data, node->weights[5].data);
    assert_int_equal(model->values[model->outputs[0]].shape[2], 4);
    cellgate_model_destroy(model);
}

static void the_backward_layer_may_be_left_out(void **state)
{
    cellgate_model *model = load(WRAPS(", 'layer': " LSTM("")), weights);

    (void)state;
    assert_int_equal(model->node_count, 1);
    assert_int_equal(model->nodes[0].as.lstm.shape.outputs, CELLGATE_LSTM_LAST);
    /* Only with return_sequences does Keras force zeros. */
    assert_false(model->nodes[0].as.lstm.zero_masked);
    cellgate_model_destroy(model);
}

static void merge_modes(void **state)
{
    static const struct {
        const char *config;
        cg_merge_mode mode;
    } modes[] = {
        { WRAPS(", 'merge_mode': 'sum', 'layer': " LSTM("")), CG_MERGE_SUM },
        { WRAPS(", 'merge_mode': 'ave', 'layer': " LSTM("")),
          CG_MERGE_AVERAGE },
        { WRAPS(", 'merge_mode': 'mul', 'layer': " LSTM("")),
          CG_MERGE_PRODUCT },
    };

    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        cellgate_model *model = load(modes[i].config, weights);

        assert_int_equal(model->node_count, 2);
        assert_int_equal(model->nodes[1].kind, CG_MERGE);
        assert_int_equal(model->nodes[1].as.merge, modes[i].mode);
        assert_string_equal(model->values[model->outputs[0]].name, "b");
        assert_int_equal(model->values[model->outputs[0]].shape[1], 2);
        cellgate_model_destroy(model);
    }
    assert_keras_refuses(WRAPS(", 'merge_mode': 'max', 'layer': " LSTM("")),
                         weights, CELLGATE_BAD_FILE, "'merge_mode' must be");
}

static void without_merging_there_are_two_outputs(void **state)
{
    cellgate_model *model =
        load(WRAPS_TWO(", 'merge_mode': null, 'layer': " LSTM("")), weights);

    (void)state;
    assert_int_equal(model->node_count, 3);
    assert_int_equal(model->nodes[1].kind, CG_SLICE);
    assert_int_equal(model->nodes[1].as.slice.end, 2);
    assert_int_equal(model->nodes[2].as.slice.begin, 2);
    assert_string_equal(model->values[model->outputs[1]].name, "b:backward");
    cellgate_model_destroy(model);
}

static void unlike_layers_are_two_nodes(void **state)
{
    static const keras_weight unlike[] = { BOTH(2, 5) };
    cellgate_model *model =
        load(WRAPS(", 'layer': " LSTM("") ", 'backward_layer': " LAYER(
                 "LSTM", "i", ", 'units': 5, 'go_backwards': true")),
             unlike);

    (void)state;
    assert_int_equal(model->node_count, 3);
    assert_int_equal(model->nodes[1].as.lstm.shape.hidden_size, 5);
    assert_int_equal(model->nodes[1].as.lstm.shape.reverse, 1);
    assert_int_equal(model->nodes[2].kind, CG_CONCAT);
    assert_int_equal(model->values[model->outputs[0]].shape[1], 7);
    cellgate_model_destroy(model);
    assert_keras_refuses(
        WRAPS(", 'merge_mode': 'sum', 'layer': " LSTM(
            "") ", 'backward_layer': " LAYER("LSTM", "i",
                                             ", 'units': 5, 'go_backwards': "
                                             "true")),
        unlike, CELLGATE_BAD_FILE, "can only be concatenated");
}

/* Keras turns by place: both come out reversed. */
static void a_reversed_forward_layer(void **state)
{
    cellgate_model *model = load(
        WRAPS(", 'layer': " LSTM(
            ", 'go_backwards': true, 'return_sequences': "
            "true") ", 'backward_layer': " LSTM(", 'return_sequences': true")),
        weights);

    (void)state;
    assert_int_equal(model->node_count, 5);
    assert_int_equal(model->nodes[0].as.lstm.shape.reverse, 1);
    assert_int_equal(model->nodes[1].kind, CG_REVERSE);
    assert_int_equal(model->nodes[2].as.lstm.shape.reverse, 0);
    assert_int_equal(model->nodes[3].kind, CG_REVERSE);
    assert_int_equal(model->nodes[4].kind, CG_CONCAT);
    assert_int_equal(model->nodes[4].inputs[0], model->nodes[1].outputs[0]);
    cellgate_model_destroy(model);
}

static void states_are_forward_then_backward(void **state)
{
    cellgate_model *model = load(
        FUNCTIONAL(INPUT("x", "[null, 6, 3]") ", " CALLED(
                       "Bidirectional", "b",
                       ", 'layer': " LSTM(", 'return_state': true"), X, ""),
                   "['x', 0, 0]",
                   "[['b', 0, 0], ['b', 0, 1], ['b', 0, 2], ['b', 0, 3], "
                   "['b', 0, 4]]"),
        weights);
    const cg_node *node = &model->nodes[0];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(model->outputs[1 + i],
                         node->outputs[CG_LSTM_OUTPUT_STATE + i]);
    assert_string_equal(model->values[model->outputs[3]].name, "b:backward_h");
    cellgate_model_destroy(model);
}

/* Two nodes: the backward one starts from the last two. */
static void unlike_layers_have_their_own_states(void **state)
{
    static const keras_weight unlike[] = { BOTH(2, 5) };
    cellgate_model *model = load(
        FUNCTIONAL(
            INPUT("x", "[null, 6, 3]") ", " INPUT("fh", "[null, 2]") ", " INPUT("fc", "[null, 2]") ", " INPUT("bh", "[null, 5]") ", " INPUT(
                "bc",
                "[null, 5]") ", " CALLED("Bidirectional", "b",
                                         ", 'layer': " LSTM("") ", "
                                                                "'backward_"
                                                                "layer':"
                                                                " " LAYER(
                                                                    "LSTM", "i",
                                                                    ", "
                                                                    "'units': "
                                                                    "5, "
                                                                    "'go_"
                                                                    "backwards'"
                                                                    ": true"),
                                         X,
                                         "'initial_state': [" TENSOR("fh", "0", "0") ", " TENSOR(
                                             "fc", "0",
                                             "0") ", " TENSOR("bh", "0",
                                                              "0") ", " TENSOR("bc",
                                                                               "0",
                                                                               "0") "]"),
            "[['x', 0, 0], ['fh', 0, 0], ['fc', 0, 0], ['bh', 0, 0], "
            "['bc', 0, 0]]",
            "['b', 0, 0]"),
        unlike);

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            model->nodes[i / 2].inputs[CG_LSTM_INPUT_STATE + i % 2],
            model->inputs[1 + i].value);
    cellgate_model_destroy(model);
}

static void wrong_pairs_are_refused(void **state)
{
    (void)state;
    assert_keras_refuses(
        WRAPS(", 'layer': " LSTM("") ", 'backward_layer': " LSTM("")), weights,
        CELLGATE_BAD_FILE, "must differ in go_backwards");
    assert_keras_refuses(
        WRAPS(", 'layer': " LSTM("") ", 'backward_layer': " LSTM(
            ", 'go_backwards': true, 'return_sequences': true")),
        weights, CELLGATE_BAD_FILE, "agree in return_sequences");
    assert_keras_refuses(
        WRAPS(", 'layer': " LAYER("Dense", "d", ", 'units': 2")), weights,
        CELLGATE_UNSUPPORTED,
        "layer 2 of 2, 'b' (Bidirectional): Bidirectional is supported around "
        "LSTM, GRU, SimpleRNN and RNN only, not around Dense");
    assert_keras_refuses(WRAPS(""), weights, CELLGATE_UNSUPPORTED,
                         "not around this");
    /* What was not read is not used: MemorySanitizer or UBSan tell. */
    assert_keras_refuses(WRAPS(", 'layer': " LAYER("LSTM", "l", "")), weights,
                         CELLGATE_BAD_FILE, "'units' must be");
    assert_keras_refuses(
        WRAPS(", 'layer': " LAYER("LSTM", "l", ", 'units': 2, 'gates': 4")),
        weights, CELLGATE_UNSUPPORTED, "option 'gates' is not supported");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alike_layers_are_one_node),
        cmocka_unit_test(the_backward_layer_may_be_left_out),
        cmocka_unit_test(merge_modes),
        cmocka_unit_test(without_merging_there_are_two_outputs),
        cmocka_unit_test(unlike_layers_are_two_nodes),
        cmocka_unit_test(a_reversed_forward_layer),
        cmocka_unit_test(states_are_forward_then_backward),
        cmocka_unit_test(unlike_layers_have_their_own_states),
        cmocka_unit_test(wrong_pairs_are_refused),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
