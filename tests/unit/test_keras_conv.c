/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of Conv1D, pooling and normalisation make, and refuse. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/model/model.h"
#include "tests/unit/keras_file.h"
#include "tests/unit/scratch_folder.h"

static const keras_weight no_weights[] = { { NULL, 0, { 0 } } };

static cellgate_model *load(const char *config, const keras_weight *weights)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (keras_file_load(config, weights, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

#define ON_SERIES(layers) SEQUENTIAL(INPUT("x", "[null, 6, 4]") ", " layers)
#define CONV(options) LAYER("Conv1D", "c", ", 'filters': 6" options)

static void a_convolution_is_windows_and_a_product(void **state)
{
    static const keras_weight weights[] = {
        { "layers/conv1d/vars/0", 3, { 2, 4, 6 } },
        { "layers/conv1d/vars/1", 1, { 6 } },
        { NULL, 0, { 0 } }
    };
    cellgate_model *model =
        load(ON_SERIES(CONV(", 'kernel_size': [2]")), weights);

    (void)state;
    assert_int_equal(model->node_count, 2);
    assert_int_equal(model->nodes[0].kind, CG_WINDOW);
    assert_int_equal(model->nodes[1].kind, CG_DENSE);
    assert_int_equal(model->nodes[1].as.dense.input_size, 8);
    assert_string_equal(model->nodes[1].name, "c");
    cellgate_model_destroy(model);
}

/* Group 1 has filters 3 to 5: of 6 columns the last ones. */
static void groups_take_their_columns(void **state)
{
    static const keras_weight weights[] = {
        { "layers/conv1d/vars/0", 3, { 1, 2, 6 } }, { NULL, 0, { 0 } }
    };
    cellgate_model *model =
        load(ON_SERIES(CONV(", 'kernel_size': 1, 'groups': 2, "
                            "'use_bias': false")),
             weights);
    const cg_node *dense = NULL;

    (void)state;
    for (size_t i = 0; i < model->node_count; i++)
        if (model->nodes[i].kind == CG_DENSE)
            dense = &model->nodes[i];
    assert_non_null(dense);
    assert_int_equal(dense->as.dense.units, 3);
    for (int row = 0; row < 2; row++)
        for (int column = 0; column < 3; column++)
            assert_float_equal(dense->weights[0].data[3 * row + column],
                               0.01 * (6 * row + 3 + column + 1), 1e-6);
    cellgate_model_destroy(model);
}

static void options_of_windows_are_checked(void **state)
{
    (void)state;
    assert_keras_refuses(ON_SERIES(CONV(", 'kernel_size': [2, 2]")), no_weights,
                         CELLGATE_BAD_FILE,
                         "'kernel_size' must be a whole number");
    assert_keras_refuses(ON_SERIES(CONV("")), no_weights, CELLGATE_BAD_FILE,
                         "'kernel_size' must be");
    assert_keras_refuses(
        ON_SERIES(CONV(", 'kernel_size': 2, 'padding': 'full'")), no_weights,
        CELLGATE_BAD_FILE, "'padding' must be 'valid', 'same' or 'causal'");
    assert_keras_refuses(
        ON_SERIES(CONV(", 'kernel_size': 2, 'data_format': 'sideways'")),
        no_weights, CELLGATE_BAD_FILE, "'data_format' must be");
    assert_keras_refuses(ON_SERIES(CONV(", 'kernel_size': 2, 'groups': 3")),
                         no_weights, CELLGATE_BAD_FILE,
                         "4 features and 6 filters cannot be divided into 3");
    assert_keras_refuses(
        ON_SERIES(LAYER("MaxPooling1D", "p", ", 'padding': 'causal'")),
        no_weights, CELLGATE_BAD_FILE, "'valid' or 'same'");
    assert_keras_refuses(
        ON_SERIES(LAYER("AveragePooling1D", "p", ", 'pool_size': 7")),
        no_weights, CELLGATE_BAD_FILE, "6 steps are fewer than its window");
    assert_keras_refuses(SEQUENTIAL(INPUT("x", "[null, 4]") ", " LAYER(
                             "GlobalMaxPooling1D", "p", "")),
                         no_weights, CELLGATE_BAD_FILE, "no steps");
}

static void axes_are_checked(void **state)
{
    (void)state;
    assert_keras_refuses(
        ON_SERIES(LAYER("LayerNormalization", "n", ", 'axis': [0, 1]")),
        no_weights, CELLGATE_UNSUPPORTED, "axis 0, which is the batch");
    assert_keras_refuses(
        ON_SERIES(LAYER("LayerNormalization", "n", ", 'axis': 3")), no_weights,
        CELLGATE_BAD_FILE, "'axis' says axis 3 of an input of 3 axes");
    assert_keras_refuses(
        ON_SERIES(LAYER("UnitNormalization", "n", ", 'axis': [2, -1]")),
        no_weights, CELLGATE_BAD_FILE, "axis 2 twice");
    assert_keras_refuses(
        ON_SERIES(LAYER("BatchNormalization", "n", ", 'axis': [1, 2]")),
        no_weights, CELLGATE_UNSUPPORTED, "must be one axis, not 2");
    assert_keras_refuses(ON_SERIES(LAYER("Softmax", "n", ", 'axis': 'x'")),
                         no_weights, CELLGATE_BAD_FILE, "a list of axes");
    assert_keras_refuses(ON_SERIES(LAYER("Softmax", "n", ", 'axis': []")),
                         no_weights, CELLGATE_UNSUPPORTED, "must be an axis");
    assert_keras_refuses(
        SEQUENTIAL(INPUT("x", "[null, null, null, 4]") ", " LAYER(
            "Softmax", "n", ", 'axis': [1, 2]")),
        no_weights, CELLGATE_UNSUPPORTED, "the file leaves 2 open; one may be");
    assert_keras_refuses(SEQUENTIAL(INPUT("x", "[null, null, 4]") ", " LAYER(
                             "BatchNormalization", "n", ", 'axis': 1")),
                         no_weights, CELLGATE_BAD_FILE, "the extent of axis 1");
}

static void arrays_of_numbers_are_checked(void **state)
{
    (void)state;
    assert_keras_refuses(ON_SERIES(LAYER("Rescaling", "r",
                                         ", 'scale': [1, 2, 3], "
                                         "'offset': 0")),
                         no_weights, CELLGATE_BAD_FILE,
                         "axis 2 of the input is 4");
    assert_keras_refuses(ON_SERIES(LAYER("Rescaling", "r",
                                         ", 'scale': [1, 2, 3], "
                                         "'offset': [1, 2]")),
                         no_weights, CELLGATE_BAD_FILE, "do not fit");
    assert_keras_refuses(ON_SERIES(LAYER("Rescaling", "r",
                                         ", 'scale': [[1, 2], [3]], "
                                         "'offset': 0")),
                         no_weights, CELLGATE_BAD_FILE,
                         "'scale' must be a number or an array");
    assert_keras_refuses(ON_SERIES(LAYER("Normalization", "n",
                                         ", 'axis': [-1], 'mean': [1, 2]"
                                         ", 'variance': [1, 2]")),
                         no_weights, CELLGATE_BAD_FILE, "'mean' does not fit");
}

/* Keras fails on these, or computes nonsense. */
static void masks_along_other_axes_are_refused(void **state)
{
    (void)state;
    assert_keras_refuses(
        ON_SERIES(LAYER("Masking", "m", "") ", " LAYER("Softmax", "s", "")),
        no_weights, CELLGATE_UNSUPPORTED, "mask of steps");
    assert_keras_refuses(ON_SERIES(LAYER("Masking", "m", "") ", " LAYER(
                             "GlobalAveragePooling1D", "g",
                             ", 'data_format': 'channels_first'")),
                         no_weights, CELLGATE_UNSUPPORTED,
                         "masked along another axis");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_convolution_is_windows_and_a_product),
        cmocka_unit_test(groups_take_their_columns),
        cmocka_unit_test(options_of_windows_are_checked),
        cmocka_unit_test(axes_are_checked),
        cmocka_unit_test(arrays_of_numbers_are_checked),
        cmocka_unit_test(masks_along_other_axes_are_refused),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
