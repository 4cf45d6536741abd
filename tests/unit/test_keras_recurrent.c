/* SPDX-License-Identifier: Apache-2.0 */
/* What GRU, SimpleRNN, RNN and Attention refuse, and what they say of it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/keras_file.h"
#include "tests/unit/scratch_folder.h"

static const keras_weight no_weights[] = { { NULL, 0, { 0 } } };

#define SERIES INPUT("x", "[null, 6, 3]")
#define VECTOR INPUT("v", "[null, 2]")
#define X TENSOR("x", "0", "0")
#define V TENSOR("v", "0", "0")
#define ON_SERIES(layer) SEQUENTIAL(SERIES ", " layer)
#define CELL(class_name, options) LAYER(class_name, "inner", options)
#define RNN_OF(cell) ON_SERIES(LAYER("RNN", "r", ", 'cell': " cell))
/* Of one layer, called on these. */
#define ON(class_name, options, tensors, keywords)                             \
    FUNCTIONAL(SERIES ", " VECTOR ", " CALLED(class_name, "l", options,        \
                                              tensors, keywords),              \
               "[['x', 0, 0], ['v', 0, 0]]", "[['l', 0, 0]]")

static void options_that_nobody_knows(void **state)
{
    (void)state;
    assert_keras_refuses(
        ON_SERIES(LAYER("GRU", "g", ", 'units': 2, 'peephole': true")),
        no_weights, CELLGATE_UNSUPPORTED,
        "layer 2 of 2, 'g' (GRU): option 'peephole'");
    assert_keras_refuses(
        ON_SERIES(LAYER("SimpleRNN", "s",
                        ", 'units': 2, 'recurrent_activation': 'tanh'")),
        no_weights, CELLGATE_UNSUPPORTED,
        "layer 2 of 2, 's' (SimpleRNN): option 'recurrent_activation'");
    assert_keras_refuses(RNN_OF(CELL("GRUCell", ", 'units': 2, 'clip': 3.0")),
                         no_weights, CELLGATE_UNSUPPORTED,
                         "'inner' (GRUCell): option 'clip'");
    assert_keras_refuses(ON("Attention", ", 'heads': 2", "[" X ", " X "]", ""),
                         no_weights, CELLGATE_UNSUPPORTED,
                         "layer 3 of 3, 'l' (Attention): option 'heads'");
}

static void values_that_mean_nothing(void **state)
{
    (void)state;
    assert_keras_refuses(ON_SERIES(LAYER("GRU", "g", ", 'units': 0")),
                         no_weights, CELLGATE_BAD_FILE,
                         "layer 2 of 2, 'g' (GRU): 'units'");
    assert_keras_refuses(
        ON_SERIES(LAYER("GRU", "g", ", 'units': 2, 'reset_after': 'yes'")),
        no_weights, CELLGATE_BAD_FILE,
        "layer 2 of 2, 'g' (GRU): 'reset_after'");
    assert_keras_refuses(
        ON_SERIES(LAYER("GRU", "g", ", 'units': 2, 'activation': 'softmax'")),
        no_weights, CELLGATE_UNSUPPORTED,
        "layer 2 of 2, 'g' (GRU): softmax as 'activation' of a recurrent layer "
        "is not supported; any activation that looks at one number");
    assert_keras_refuses(
        ON("Attention", ", 'score_mode': 'cosine'", "[" X ", " X "]", ""),
        no_weights, CELLGATE_BAD_FILE,
        "layer 3 of 3, 'l' (Attention): 'score_mode' must be dot or concat");
}

static void inputs_of_another_number_or_rank(void **state)
{
    (void)state;
    assert_keras_refuses(
        ON("GRU", ", 'units': 2", X, "'initial_state': [" V ", " V "]"),
        no_weights, CELLGATE_BAD_FILE,
        "layer 3 of 3, 'l' (GRU): it has 2 initial states; it takes 1");
    assert_keras_refuses(ON("SimpleRNN", ", 'units': 2", V, ""), no_weights,
                         CELLGATE_BAD_FILE,
                         "layer 3 of 3, 'l' (SimpleRNN): its input has 2 axes; "
                         "it must have 3: batch, steps and features");
    assert_keras_refuses(ON("Attention", "", "[" X "]", ""), no_weights,
                         CELLGATE_BAD_FILE,
                         "layer 3 of 3, 'l' (Attention): it is called on 1 "
                         "tensors; it takes a query, a value and perhaps a "
                         "key");
    assert_keras_refuses(
        ON("AdditiveAttention", "", "[" X ", " X ", " X ", " X "]", ""),
        no_weights, CELLGATE_BAD_FILE,
        "layer 3 of 3, 'l' (AdditiveAttention): it is called on 4 tensors");
    assert_keras_refuses(ON("Attention", "", "[" X ", " V "]", ""), no_weights,
                         CELLGATE_UNSUPPORTED,
                         "layer 3 of 3, 'l' (Attention): input 2 has 2 axes; "
                         "it must have 3: batch, steps and features");
    assert_keras_refuses(ON("Attention", "", "[" X ", " X "]", "'mask': " X),
                         no_weights, CELLGATE_BAD_FILE,
                         "layer 3 of 3, 'l' (Attention): mask= must be a list");
}

static void cells_that_an_rnn_does_not_take(void **state)
{
    (void)state;
    assert_keras_refuses(ON_SERIES(LAYER("GRUCell", "c", ", 'units': 2")),
                         no_weights, CELLGATE_UNSUPPORTED,
                         "layer 2 of 2, 'c' (GRUCell): a cell is supported "
                         "inside an RNN layer only");
    assert_keras_refuses(
        RNN_OF(CELL("Dense", ", 'units': 2")), no_weights, CELLGATE_UNSUPPORTED,
        "'inner' (Dense): as a cell of an RNN, only LSTMCell, GRUCell and "
        "SimpleRNNCell are supported");
    assert_keras_refuses(RNN_OF(CELL("StackedRNNCells", ", 'cells': []")),
                         no_weights, CELLGATE_UNSUPPORTED,
                         "'r' (RNN): it has 0 cells; 1 to ");
    assert_keras_refuses(
        RNN_OF("{'module': 'mine', 'class_name': 'SlowCell', 'config': {"
               "'name': 'slow'}, 'registered_name': 'mine>SlowCell'}"),
        no_weights, CELLGATE_UNSUPPORTED, "'slow' (SlowCell): a custom layer");
}

static void weights_of_another_shape(void **state)
{
    /* Of reset_after=False: one bias. */
    static const keras_weight one_bias[] = {
        { "layers/gru/cell/vars/0", 2, { 3, 6 } },
        { "layers/gru/cell/vars/1", 2, { 2, 6 } },
        { "layers/gru/cell/vars/2", 1, { 6 } },
        { NULL, 0, { 0 } }
    };

    (void)state;
    assert_keras_refuses(ON_SERIES(LAYER("GRU", "g", ", 'units': 2")),
                         no_weights, CELLGATE_BAD_FILE,
                         "layer 2 of 2, 'g' (GRU): ");
    assert_keras_refuses(ON_SERIES(LAYER("GRU", "g", ", 'units': 2")), one_bias,
                         CELLGATE_BAD_FILE, "layer 2 of 2, 'g' (GRU): ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_nobody_knows),
        cmocka_unit_test(values_that_mean_nothing),
        cmocka_unit_test(inputs_of_another_number_or_rank),
        cmocka_unit_test(cells_that_an_rnn_does_not_take),
        cmocka_unit_test(weights_of_another_shape),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
