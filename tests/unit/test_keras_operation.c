/* SPDX-License-Identifier: Apache-2.0 */
/* keras_operation.c and keras_steps_first.c: what is refused, and how it is
   said. What they compute is compared with Keras in test_keras_fixtures. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/model/model.h"
#include "tests/unit/keras_file.h"
#include "tests/unit/scratch_folder.h"

static const keras_weight none[] = { { NULL, 0, { 0 } } };
static const keras_weight lstm[] = { LSTM_WEIGHTS("layers/lstm/cell", 3, 3),
                                     { NULL, 0, { 0 } } };

#define X TENSOR("x", "0", "0")
#define Y TENSOR("y", "0", "0")
#define OPERATION(class_name, options, args)                                   \
    "{'module': 'keras.src.ops.numpy', 'class_name': '" class_name "', "       \
    "'config': {'name': 'o'" options "}, 'name': 'o', 'inbound_nodes': ["      \
    "{'args': [" args "], 'kwargs': {}}]}"
#define TF(function, inbound)                                                  \
    "{'class_name': 'TFOpLambda', 'config': {'name': 'o', 'function': "        \
    "'" function "'}, 'name': 'o', 'inbound_nodes': [" inbound "]}"
#define WITH(operation)                                                        \
    FUNCTIONAL(INPUT("x", "[null, 4, 3]") ", " INPUT(                          \
                   "y", "[null, 3]") ", " operation,                           \
               "[['x', 0, 0], ['y', 0, 0]]", "[['o', 0, 0]]")

static cellgate_model *load(const char *config, const keras_weight *weights)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (keras_file_load(config, weights, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

static void refused(const char *config, const char *part)
{
    assert_keras_refuses(config, none, CELLGATE_UNSUPPORTED, part);
}

/* ---- Operations ---------------------------------------------------------- */

static void numbers_become_scale_and_offset(void **state)
{
    cellgate_model *model =
        load(WITH(OPERATION("Subtract", "", "2, " X)), none);

    (void)state;
    assert_int_equal(model->node_count, 1);
    assert_int_equal(model->nodes[0].kind, CG_AFFINE);
    assert_float_equal(model->nodes[0].weights[1].data[0], -1, 0);
    assert_float_equal(model->nodes[0].weights[2].data[0], 2, 0);
    cellgate_model_destroy(model);
}

/* As .h5 of Keras 3 has them: without modules, and this layer's configuration
   does not say whether it is trained. */
static void a_layer_is_no_operation(void **state)
{
    cellgate_model *model = load(
        WITH("{'class_name': 'SpatialDropout1D', 'config': {'name': 'o', "
             "'rate': 0.5, 'seed': null, 'dtype': 'float32'}, 'name': 'o', "
             "'inbound_nodes': [{'args': [" X "], 'kwargs': {}}]}"),
        none);

    (void)state;
    assert_int_equal(model->node_count, 0);
    cellgate_model_destroy(model);
}

static void other_arithmetic_is_refused(void **state)
{
    const char *text = "'o' (TrueDivide): an operation on tensors, as x[:, 0]";

    (void)state;
    refused(WITH(OPERATION("TrueDivide", "", X)), text);
    refused(WITH(OPERATION("TrueDivide", "", "1, " X)),
            "numbers divided by a tensor");
    refused(WITH(OPERATION("TrueDivide", "", X ", 0")), "it divides by 0");
    refused(WITH(OPERATION("Add", "", "1, 2")), "an operation on tensors");
    refused(WITH(OPERATION("Add", "", "[" X ", " X "], " X)),
            "an operation on tensors");
    refused(WITH(OPERATION("Add", "", X ", [0.5, 1]")),
            "does not fit the last axes");
    refused(WITH(OPERATION("Add", "", X ", [[[[1]], [[2]]]]")),
            "does not fit the last axes");
    refused(WITH(OPERATION("Add", "", X)), "an operation on tensors");
    refused(WITH(OPERATION("Multiply", "", X ", 1e300")),
            "an operation on tensors");
    refused(WITH(OPERATION("Maximum", "", X ", [0.5, 1, 2]")),
            "with one number, or another tensor");
    refused(WITH(OPERATION("Power", "", X ", 0.5")), "whole exponents");
    refused(WITH(OPERATION("Power", "", X ", 9")), "whole exponents");
    refused(WITH(OPERATION("Power", "", "2, " X)), "whole exponents");
    refused(WITH(OPERATION("Clip", ", 'x_min': [0, 1, 2], 'x_max': 1", X)),
            "limits are supported that are numbers");
    refused(WITH(OPERATION("Matmul", "", X ", " Y)), "for weights use Dense");
    refused(WITH(OPERATION("LogSoftmax", ", 'axis': 1", X)),
            "over the last axis");
    refused(WITH(OPERATION("Einsum", ", 'subscripts': 'ab,ab->a'", X ", " X)),
            "Rebuild the model with Dot");
    refused(WITH(OPERATION("Add", "", X ", " Y)),
            "between tensors of as many axes");
}

#define SLICE(start, stop, step)                                               \
    "{'class_name': '__slice__', 'config': {'start': " start ", 'stop': " stop \
    ", 'step': " step "}}"
#define ALL SLICE("null", "null", "null")
/* Of a batch, 4 steps and 3 features. */
#define PICK(axes) WITH(OPERATION("GetItem", "", X ", [" axes "]"))
/* Of any number of steps. */
#define PICK_OPEN(slice)                                                       \
    FUNCTIONAL(INPUT("x", "[null, null, 3]") ", " OPERATION(                   \
                   "GetItem", "", X ", [" ALL ", " slice "]"),                 \
               "[['x', 0, 0]]", "[['o', 0, 0]]")

static void other_steps_are_refused(void **state)
{
    const char *bounds = "the step of what it picks of axis 1 is 0 or out";
    const char *empty = "what it picks of axis 1 is empty, or beyond its";

    (void)state;
    refused(PICK(ALL ", " SLICE("null", "null", "0")), bounds);
    refused(PICK(ALL ", " SLICE("null", "null", "268435457")), bounds);
    refused(PICK(ALL ", " SLICE("null", "null", "-9223372036854775808")),
            bounds);
    refused(PICK(ALL ", " SLICE("null", "null", "0.5")),
            "an operation on tensors");
    refused(PICK(SLICE("null", "null", "2")), "it picks rows of the batch");
    refused(PICK(SLICE("null", "null", "-1")), "it picks rows of the batch");
    refused(PICK(ALL ", " SLICE("1", "2", "-1")), empty);
    refused(PICK(ALL ", " SLICE("2", "2", "-1")), empty);
    refused(PICK(ALL ", " SLICE("-5", "null", "-1")), empty);
    refused(PICK(ALL ", " SLICE("null", "-1", "-1")), empty);
    refused(PICK(ALL ", " SLICE("4", "null", "2")), empty);
    refused(PICK_OPEN(SLICE("1", "2", "-1")), empty);
    refused(PICK_OPEN(SLICE("-3", "-2", "-1")), empty);
    refused(PICK_OPEN(SLICE("null", "-1", "-2")), empty);
    refused(PICK_OPEN(SLICE("9223372036854775807", "null", "-2")), empty);
    refused(PICK_OPEN(SLICE("null", "0", "2")), empty);
}

static void other_transpositions_are_refused(void **state)
{
    (void)state;
    refused(WITH(OPERATION("Transpose", ", 'axes': [2, 1, 0]", X)),
            "takes rows elsewhere");
    refused(WITH(OPERATION("Transpose", ", 'axes': null", X)),
            "an operation on tensors");
    refused(WITH(OPERATION("Transpose", ", 'axes': [0, 1, 1]", X)),
            "an operation on tensors");
    refused(WITH(OPERATION("Transpose", ", 'axes': [0, 1]", X)),
            "an operation on tensors");
    refused(WITH(OPERATION("Transpose", ", 'axes': [0, 1, 3]", X)),
            "an operation on tensors");
}

static void functions_of_tensorflow_are_named(void **state)
{
    (void)state;
    refused(WITH(TF("math.sqrt", "['x', 0, 0, {}]")),
            "'o' (TFOpLambda): tf.math.sqrt, as it is called here, is "
            "an operation of TensorFlow");
    refused(WITH(TF("math.truediv", "['_CONSTANT_VALUE', -1, 2, "
                                    "{'y': ['x', 0, 0]}]")),
            "numbers divided by a tensor are not supported");
    refused(WITH(TF("math.add", "[['x', 0, 0, {'y': 1}]]")), "tf.math.add, as");
    refused(WITH(TF("math.add", "['_CONSTANT_VALUE', -1, 2, {'y': 3}]")),
            "tf.math.add, as");
    refused(WITH(TF("compat.v1.transpose", "['x', 0, 0, {'perm': null}]")),
            "tf.compat.v1.transpose, as");
}

/* ---- Steps before rows --------------------------------------------------- */

#define TURNED "[4, null, 3]"
#define TIME_MAJOR(name, tensors)                                              \
    CALLED("LSTM", name,                                                       \
           ", 'units': 3, 'recurrent_activation': 'sigmoid', "                 \
           "'return_sequences': true, 'time_major': true",                     \
           tensors, "")
#define L TENSOR("l", "0", "0")
#define BEHIND(layer)                                                          \
    FUNCTIONAL(INPUT("x", TURNED) ", " TIME_MAJOR("l", X) ", " layer,          \
               "[['x', 0, 0]]", "[['o', 0, 0]]")

static void refused_behind(const char *config, const char *part)
{
    assert_keras_refuses(config, lstm, CELLGATE_UNSUPPORTED, part);
}

static void inputs_are_turned_by_the_layers_they_reach(void **state)
{
    cellgate_model *model =
        load(BEHIND(CALLED("Activation", "o", ", 'activation': 'tanh'", L, "")),
             lstm);

    (void)state;
    assert_true(model->inputs[0].steps_first);
    assert_true(model->output_steps_first[0]);
    assert_int_equal(model->values[model->inputs[0].value].shape[1], 4);
    assert_int_equal(model->values[model->outputs[0]].shape[1], 4);
    cellgate_model_destroy(model);
}

static void layers_that_look_at_steps_are_refused(void **state)
{
    const char *text = "it is called on a tensor with steps before rows";

    (void)state;
    refused_behind(BEHIND(CALLED("Flatten", "o", "", L, "")), text);
    refused_behind(BEHIND(CALLED("GlobalMaxPooling1D", "o", "", L, "")), text);
    refused_behind(
        BEHIND(CALLED("Concatenate", "o", ", 'axis': 1", "[" L ", " L "]", "")),
        text);
    refused_behind(BEHIND(CALLED("SimpleRNN", "o", ", 'units': 3", L, "")),
                   text);
    refused_behind(BEHIND(OPERATION("Transpose", ", 'axes': [0, 2, 1]", L)),
                   "takes rows elsewhere");
}

static void one_layer_takes_one_order(void **state)
{
    (void)state;
    /* x goes both ways: the layer that looks at rows first loses. */
    refused_behind(BEHIND(CALLED("SimpleRNN", "o", ", 'units': 3", X, "")),
                   "(SimpleRNN): it is called on a tensor with steps before");
    refused_behind(
        FUNCTIONAL(
            INPUT("x", TURNED) ", " INPUT("y", TURNED) ", " TIME_MAJOR(
                "l", X) ", " CALLED("Add", "o", "", "[" L ", " Y "]",
                                    "") ", " CALLED("Flatten", "f", "", Y, ""),
            "[['x', 0, 0], ['y', 0, 0]]", "[['o', 0, 0], ['f', 0, 0]]"),
        "(Add): it is called on a tensor with steps before");
}

/* What reaches it through a model in the model is not looked for. */
static void a_rows_first_input_is_refused(void **state)
{
    (void)state;
    refused_behind(
        FUNCTIONAL(INPUT("x", TURNED) ", " CALLED(
                       "Permute", "p", ", 'dims': [1, 2]", X,
                       "") ", " TIME_MAJOR("o", TENSOR("p", "0", "0")),
                   "[['x', 0, 0]]", "[['o', 0, 0]]"),
        "'o' (LSTM): time_major=True is supported on inputs of the model");
    assert_keras_refuses(FUNCTIONAL(INPUT("x", "[4]") ", " TIME_MAJOR("o", X),
                                    "[['x', 0, 0]]", "[['o', 0, 0]]"),
                         lstm, CELLGATE_BAD_FILE,
                         "its input, of one axis, has no steps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_become_scale_and_offset),
        cmocka_unit_test(a_layer_is_no_operation),
        cmocka_unit_test(other_arithmetic_is_refused),
        cmocka_unit_test(other_steps_are_refused),
        cmocka_unit_test(other_transpositions_are_refused),
        cmocka_unit_test(functions_of_tensorflow_are_named),
        cmocka_unit_test(inputs_are_turned_by_the_layers_they_reach),
        cmocka_unit_test(layers_that_look_at_steps_are_refused),
        cmocka_unit_test(one_layer_takes_one_order),
        cmocka_unit_test(a_rows_first_input_is_refused),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
