/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/formats/keras.h"
#include "tests/unit/keras_file.h"
#include "tests/unit/scratch_folder.h"

static cellgate_model *load(const char *config, const keras_weight *weights)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (keras_file_load(config, weights, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

static void paths_are_made_of_classes(void **state)
{
    static const char *const classes[][2] = {
        { "LSTM", "layers/lstm" },
        { "Dense", "layers/dense" },
        { "LSTM", "layers/lstm_1" },
        { "TimeDistributed", "layers/time_distributed" },
        { "LeakyReLU", "layers/leaky_re_lu" },
        { "LSTM", "layers/lstm_2" },
        { "SpatialDropout1D", "layers/spatial_dropout1d" },
        { "GRUCell", "layers/gru_cell" },
        { "InputLayer", "layers/input_layer" },
        { "ConvLSTM2D", "layers/conv_lstm2d" },
        { "My_Layer", "layers/my__layer" },
        { "PReLU", "layers/p_re_lu" },
        { "Conv1DTranspose", "layers/conv1d_transpose" },
    };
    json_t *counts = json_object();

    (void)state;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        json_t *layer = json_pack("{s:s}", "class_name", classes[i][0]);
        char *path = cg_keras_path(counts, "layers/", layer);

        assert_string_equal(path, classes[i][1]);
        free(path);
        json_decref(layer);
    }
    json_decref(counts);
}

#define SERIES INPUT("x", "[null, 6, 3]")
#define ROW INPUT("x", "[null, 3]")

static void names_of_layers_do_not_matter(void **state)
{
    static const keras_weight weights[] = { DENSE_WEIGHTS("layers/dense", 3, 2),
                                            DENSE_WEIGHTS("layers/dense_1", 2,
                                                          4),
                                            { NULL, 0, { 0 } } };
    cellgate_model *model =
        load(SEQUENTIAL(
                 ROW ", " LAYER("Dense", "dense_1", ", 'units': 2") ", " LAYER(
                     "Dropout", "dense", "") ", " LAYER("Dense", "lstm",
                                                        ", 'units': 4")),
             weights);

    (void)state;
    assert_int_equal(model->nodes[1].weights[0].shape[1], 4);
    cellgate_model_destroy(model);
}

static void the_group_of_keras_2_13(void **state)
{
    static const keras_weight weights[] = {
        DENSE_WEIGHTS("_layer_checkpoint_dependencies/dense", 3, 2),
        { NULL, 0, { 0 } }
    };
    cellgate_model *model =
        load(SEQUENTIAL(ROW ", " LAYER("Dense", "d", ", 'units': 2")), weights);

    (void)state;
    cellgate_model_destroy(model);
}

/* Saved once, where a walk depth first comes to it; here, inside. */
static void a_layer_that_two_models_share(void **state)
{
    static const keras_weight weights[] = {
        DENSE_WEIGHTS("layers/functional/layers/dense", 3, 3),
        { NULL, 0, { 0 } }
    };
#define SHARED(tensors)                                                        \
    "{'module': 'keras.layers', 'class_name': 'Dense', 'config': {'name': "    \
    "'d', 'units': 3}, 'name': 'd', 'shared_object_id': 4711, "                \
    "'inbound_nodes': [{'args': [" tensors "], 'kwargs': {}}]}"
    cellgate_model *model = load(
        FUNCTIONAL(
            ROW
            ", "
            "{'module': 'keras', 'class_name': 'Functional', 'config': {"
            "'name': 'inner', 'layers': [" INPUT("i", "[null, 3]") ", " SHARED(
                TENSOR("i", "0",
                       "0")) "], 'input_layers': ['i', 0, 0], "
                             "'output_layers': ['d', 0, 0]}, 'name': 'inner', "
                             "'inbound_nodes': [{'args': [" TENSOR(
                                 "x", "0",
                                 "0") "]}]}, " SHARED(TENSOR("inner", "0",
                                                             "0")),
            "['x', 0, 0]", "['d', 0, 0]"),
        weights);

    (void)state;
    assert_int_equal(model->node_count, 2);
    assert_ptr_equal(model->nodes[0].weights[0].data,
                     model->nodes[1].weights[0].data);
    cellgate_model_destroy(model);
}

static void weights_have_to_fit(void **state)
{
    static const char config[] =
        SEQUENTIAL(ROW ", " LAYER("Dense", "d", ", 'units': 2"));
    static const char without_bias[] = SEQUENTIAL(
        ROW ", " LAYER("Dense", "d", ", 'units': 2, 'use_bias': false"));
    static const keras_weight missing[] = {
        { "layers/dense/vars/0", 2, { 3, 2 } }, { NULL, 0, { 0 } }
    };
    static const keras_weight transposed[] = {
        { "layers/dense/vars/0", 2, { 2, 3 } }, { NULL, 0, { 0 } }
    };
    static const keras_weight flat[] = { { "layers/dense/vars/0", 1, { 6 } },
                                         { NULL, 0, { 0 } } };
    static const keras_weight sound[] = { DENSE_WEIGHTS("layers/dense", 3, 2),
                                          { NULL, 0, { 0 } } };

    (void)state;
    assert_keras_refuses(config, missing, CELLGATE_BAD_FILE,
                         "layer 2 of 2, 'd' (Dense): bias: model.weights.h5 "
                         "has nothing at 'layers/dense/vars/1'");
    assert_keras_refuses(config, transposed, CELLGATE_BAD_FILE,
                         "kernel: 'layers/dense/vars/0' in model.weights.h5 is "
                         "2 x 3; the layer needs 3 x 2");
    assert_keras_refuses(config, flat, CELLGATE_BAD_FILE, "has 1 axes");
    assert_keras_refuses(without_bias, sound, CELLGATE_BAD_FILE,
                         "more weights than its options account for: "
                         "'layers/dense/vars/1'");
}

/* On inputs of different sizes, one kernel cannot serve both. */
static void shared_weights_have_one_shape(void **state)
{
    static const keras_weight weights[] = { DENSE_WEIGHTS("layers/dense", 3, 2),
                                            { NULL, 0, { 0 } } };

    (void)state;
    assert_keras_refuses(
        FUNCTIONAL(
            ROW ", " INPUT(
                "y", "[null, 4]") ", "
                                  "{'module': 'keras.layers', 'class_name': "
                                  "'Dense', "
                                  "'config': {'name': 'd', 'units': 2}, "
                                  "'name': 'd', "
                                  "'inbound_nodes': [{'args': [" TENSOR(
                                      "x", "0",
                                      "0") "]}, {'args': [" TENSOR("y", "0",
                                                                   "0") "]}]}",
            "[['x', 0, 0], ['y', 0, 0]]", "[['d', 0, 0], ['d', 1, 0]]"),
        weights, CELLGATE_BAD_FILE, "that this use of the layer needs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_made_of_classes),
        cmocka_unit_test(names_of_layers_do_not_matter),
        cmocka_unit_test(the_group_of_keras_2_13),
        cmocka_unit_test(a_layer_that_two_models_share),
        cmocka_unit_test(weights_have_to_fit),
        cmocka_unit_test(shared_weights_have_one_shape),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
