/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/keras_file.h"
#include "tests/unit/scratch_folder.h"

static const keras_weight weights[] = { DENSE_WEIGHTS("layers/dense", 3, 2),
                                        { NULL, 0, { 0 } } };

#define DENSE(options)                                                         \
    SEQUENTIAL(INPUT("x", "[null, 3]") ", " LAYER("Dense", "d", options))
#define POLICY(name)                                                           \
    ", 'units': 2, 'dtype': {'module': 'keras', 'class_name': 'DTypePolicy', " \
    "'config': {'name': '" name "'}}"

static void assert_loads(const char *config)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (keras_file_load(config, weights, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    cellgate_model_destroy(model);
}

static void options_that_say_nothing_pass(void **state)
{
    (void)state;
    assert_loads(DENSE(", 'units': 2, 'new_option': null"));
    assert_loads(DENSE(", 'units': 2, 'new_option': false"));
    assert_loads(DENSE(", 'units': 2, 'new_option': 0"));
    assert_loads(DENSE(", 'units': 2, 'new_option': 0.0"));
    assert_loads(DENSE(", 'units': 2, 'new_option': ''"));
    assert_loads(DENSE(", 'units': 2, 'new_option': {}"));
    assert_loads(DENSE(", 'units': 2, 'new_option': []"));
    assert_keras_refuses(DENSE(", 'units': 2, 'new_option': true"), weights,
                         CELLGATE_UNSUPPORTED,
                         "layer 2 of 2, 'd' (Dense): option 'new_option' is "
                         "not supported");
    assert_keras_refuses(DENSE(", 'units': 2, 'new_option': 0.5"), weights,
                         CELLGATE_UNSUPPORTED, "'new_option'");
    assert_keras_refuses(DENSE(", 'units': 2, 'new_option': 'on'"), weights,
                         CELLGATE_UNSUPPORTED, "'new_option'");
}

static void options_of_training_pass(void **state)
{
    (void)state;
    assert_loads(DENSE(
        ", 'units': 2, 'trainable': true, 'kernel_initializer': {'class_name': "
        "'GlorotUniform'}, 'bias_regularizer': {'class_name': 'L2'}, "
        "'kernel_constraint': {'class_name': 'MaxNorm'}, "
        "'activity_regularizer': {'class_name': 'L1'}"));
}

static void sizes_are_checked(void **state)
{
    (void)state;
    assert_keras_refuses(DENSE(""), weights, CELLGATE_BAD_FILE,
                         "'units' must be a whole number");
    assert_keras_refuses(DENSE(", 'units': 0"), weights, CELLGATE_BAD_FILE,
                         "'units'");
    assert_keras_refuses(DENSE(", 'units': 268435457"), weights,
                         CELLGATE_BAD_FILE, "'units'");
    assert_keras_refuses(DENSE(", 'units': 2.0"), weights, CELLGATE_BAD_FILE,
                         "'units'");
    assert_keras_refuses(DENSE(", 'units': 2, 'use_bias': 2"), weights,
                         CELLGATE_BAD_FILE, "'use_bias' must be true or false");
}

/* Keras saves a flag as the program gave it: return_sequences=1 as 1. */
static void flags_are_numbers_too(void **state)
{
    (void)state;
    assert_loads(DENSE(", 'units': 2, 'use_bias': 1"));
    assert_loads(DENSE(", 'units': 2, 'use_bias': true"));
    assert_keras_refuses(DENSE(", 'units': 2, 'use_bias': 0"), weights,
                         CELLGATE_BAD_FILE, "more weights than its options");
}

static void floating_policies_pass(void **state)
{
    (void)state;
    assert_loads(DENSE(POLICY("float32")));
    assert_loads(DENSE(POLICY("mixed_float16")));
    assert_loads(DENSE(POLICY("mixed_bfloat16")));
    assert_loads(DENSE(POLICY("float64")));
    assert_loads(DENSE(", 'units': 2, 'dtype': 'float32'"));
    assert_loads(DENSE(", 'units': 2, 'dtype': null"));
    assert_keras_refuses(DENSE(POLICY("int8_from_float32")), weights,
                         CELLGATE_UNSUPPORTED,
                         "dtype policy 'int8_from_float32'");
    assert_keras_refuses(DENSE(", 'units': 2, 'dtype': {}"), weights,
                         CELLGATE_UNSUPPORTED, "dtype policy");
    assert_keras_refuses(
        DENSE(", 'units': 2, 'dtype': {'module': 'keras.dtype_policies', "
              "'class_name': 'QuantizedDTypePolicy', 'config': {'mode': "
              "'int8', 'source_name': 'float32'}}"),
        weights, CELLGATE_UNSUPPORTED,
        "its weights are quantized ('int8'), which is not supported; save the "
        "model before its quantize()");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_say_nothing_pass),
        cmocka_unit_test(options_of_training_pass),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(flags_are_numbers_too),
        cmocka_unit_test(floating_policies_pass),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
