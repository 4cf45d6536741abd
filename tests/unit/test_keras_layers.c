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

static const keras_weight no_weights[] = { { NULL, 0, { 0 } } };

static cellgate_model *load(const char *config, const keras_weight *weights)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (keras_file_load(config, weights, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

#define SERIES INPUT("x", "[null, 6, 3]")
#define IDS INPUT("ids", "[null, 6]")
#define ON_SERIES(layers) SEQUENTIAL(SERIES ", " layers)
#define ON_IDS(layers) SEQUENTIAL(IDS ", " layers)
#define LSTM(name, units) LAYER("LSTM", name, ", 'units': " units)

static void identities_leave_nothing(void **state)
{
    cellgate_model *model = load(
        ON_SERIES(LAYER("Dropout", "a", ", 'rate': 0.5, 'seed': 1") ", " LAYER("SpatialDropout1D", "b", ", 'rate': 0.5") ", " LAYER(
            "GaussianNoise", "c",
            ", 'stddev': 0.5") ", " LAYER("GaussianDropout", "d",
                                          ", 'rate': 0.5") ", " LAYER("AlphaDro"
                                                                      "pout",
                                                                      "e",
                                                                      ", "
                                                                      "'rate': "
                                                                      "0.5") ","
                                                                             " " LAYER(
                                                                                 "ActivityRegularization",
                                                                                 "f",
                                                                                 ", 'l1': 0.5") ", " LAYER("Identity",
                                                                                                           "g",
                                                                                                           "")),
        no_weights);

    (void)state;
    assert_int_equal(model->node_count, 0);
    assert_int_equal(model->outputs[0], model->inputs[0].value);
    cellgate_model_destroy(model);
}

static void dense_has_bias_and_activation(void **state)
{
    static const keras_weight weights[] = {
        DENSE_WEIGHTS("layers/dense", 3, 4),
        { "layers/dense_1/vars/0", 2, { 4, 2 } },
        { NULL, 0, { 0 } }
    };
    cellgate_model *model = load(
        ON_SERIES(LAYER(
            "Dense", "one",
            ", 'units': 4, 'activation': 'relu'") ", " LAYER("Dense", "two",
                                                             ", 'units': 2, "
                                                             "'use_bias': "
                                                             "false, "
                                                             "'activation': "
                                                             "'softmax'")),
        weights);

    (void)state;
    assert_int_equal(model->node_count, 3);
    assert_int_equal(model->nodes[0].kind, CG_DENSE);
    assert_int_equal(model->nodes[0].as.dense.input_size, 3);
    assert_int_equal(model->nodes[0].as.dense.activation.kind, CELLGATE_RELU);
    assert_float_equal(model->nodes[0].weights[1].data[3], 0.04f, 0);
    assert_null(model->nodes[1].weights[1].data);
    assert_int_equal(model->nodes[2].kind, CG_SOFTMAX);
    assert_string_equal(model->nodes[2].name, "two:softmax");
    assert_string_equal(model->values[model->outputs[0]].name, "two");
    cellgate_model_destroy(model);
}

static void embedding_makes_ids_of_its_input(void **state)
{
    static const keras_weight weights[] = {
        { "layers/embedding/vars/0", 2, { 9, 2 } },
        LSTM_WEIGHTS("layers/lstm/cell", 2, 3),
        { NULL, 0, { 0 } }
    };
    cellgate_model *model =
        load(ON_IDS(LAYER("Embedding", "e",
                          ", 'input_dim': 9, 'output_dim': 2, "
                          "'mask_zero': true") ", " LSTM("l", "3")),
             weights);

    (void)state;
    assert_int_equal(model->values[model->inputs[0].value].dtype, CELLGATE_I32);
    /* The mask comes from the ids, so one with the request has no use. */
    assert_int_equal(model->inputs[0].mask, CG_NO_VALUE);
    assert_int_equal(model->node_count, 3);
    assert_int_equal(model->nodes[1].kind, CG_NONZERO);
    assert_int_equal(model->nodes[2].inputs[CG_LSTM_INPUT_MASK],
                     model->nodes[1].outputs[0]);
    cellgate_model_destroy(model);

    model = load(
        ON_IDS(LAYER("Embedding", "e",
                     ", 'input_dim': 9, 'output_dim': 2") ", " LSTM("l", "3")),
        weights);
    assert_int_equal(model->node_count, 2);
    assert_int_not_equal(model->inputs[0].mask, CG_NO_VALUE);
    assert_int_equal(model->nodes[1].inputs[CG_LSTM_INPUT_MASK],
                     model->inputs[0].mask);
    cellgate_model_destroy(model);
}

static void masking_replaces_the_mask(void **state)
{
    static const keras_weight weights[] = {
        LSTM_WEIGHTS("layers/lstm/cell", 3, 2), { NULL, 0, { 0 } }
    };
    cellgate_model *model =
        load(ON_SERIES(LAYER("Masking", "m",
                             ", 'mask_value': -1.5") ", " LSTM("l", "2")),
             weights);

    (void)state;
    assert_int_equal(model->node_count, 3);
    assert_int_equal(model->nodes[0].kind, CG_NOT_EQUAL);
    assert_float_equal(model->nodes[0].as.not_equal, -1.5f, 0);
    assert_int_equal(model->nodes[1].kind, CG_MASKED);
    assert_int_equal(model->nodes[2].inputs[0], model->nodes[1].outputs[0]);
    assert_int_equal(model->nodes[2].inputs[1], model->nodes[0].outputs[0]);
    assert_int_equal(model->inputs[0].mask, CG_NO_VALUE);
    cellgate_model_destroy(model);
    assert_keras_refuses(
        SEQUENTIAL(INPUT("x", "[null, 3]") ", " LAYER("Masking", "m", "")),
        no_weights, CELLGATE_UNSUPPORTED, "no steps");
}

static void time_distributed_is_what_it_holds(void **state)
{
    static const keras_weight weights[] = {
        DENSE_WEIGHTS("layers/time_distributed/layer", 3, 2), { NULL, 0, { 0 } }
    };
    cellgate_model *model = load(
        ON_SERIES(LAYER("TimeDistributed", "t",
                        ", 'layer': " LAYER("Dense", "inner", ", 'units': 2"))),
        weights);

    (void)state;
    assert_int_equal(model->node_count, 1);
    assert_string_equal(model->nodes[0].name, "t");
    cellgate_model_destroy(model);
    assert_keras_refuses(
        ON_SERIES(
            LAYER("TimeDistributed", "t", ", 'layer': " LSTM("inner", "2"))),
        no_weights, CELLGATE_UNSUPPORTED,
        "layer 1 of 1 of 't', 'inner' (LSTM): inside a TimeDistributed");
    assert_keras_refuses(ON_SERIES(LAYER("TimeDistributed", "t",
                                         ", 'layer': {'class_name': "
                                         "'Mine', 'module': 'm', 'config': "
                                         "{'name': 'own'}}")),
                         no_weights, CELLGATE_UNSUPPORTED,
                         "layer 1 of 1 of 't', 'own' (Mine): a custom layer");
    assert_keras_refuses(ON_SERIES(LAYER("TimeDistributed", "t", "")),
                         no_weights, CELLGATE_BAD_FILE,
                         "'t' (TimeDistributed): 'layer' must be a layer");
    assert_keras_refuses(
        SEQUENTIAL(INPUT("x", "[null, 3]") ", " LAYER(
            "TimeDistributed", "t",
            ", 'layer': " LAYER("Dense", "inner", ", 'units': 2"))),
        no_weights, CELLGATE_BAD_FILE, "no steps");
}

static void unknown_layers_are_named_with_their_place(void **state)
{
    (void)state;
    assert_keras_refuses(
        ON_SERIES(LAYER("Conv9D", "c", "")), no_weights, CELLGATE_UNSUPPORTED,
        "layer 2 of 2, 'c' (Conv9D): this kind of layer is not supported; "
        "README.md lists those that are");
    assert_keras_refuses(
        ON_SERIES(LAYER("MultiHeadAttention", "attn", "")), no_weights,
        CELLGATE_UNSUPPORTED,
        "layer 2 of 2, 'attn' (MultiHeadAttention): this kind of layer is not "
        "supported; attention of one head is supported");
    assert_keras_refuses(ON_SERIES(LAYER("ConvLSTM2D", "c", "")), no_weights,
                         CELLGATE_UNSUPPORTED,
                         "layer 2 of 2, 'c' (ConvLSTM2D): this kind of layer "
                         "is not supported; images are not computed here");
    assert_keras_refuses(
        ON_SERIES("{'module': 'mine', 'class_name': 'LSTM', 'config': {"
                  "'name': 'l'}, 'registered_name': 'mine>LSTM'}"),
        no_weights, CELLGATE_UNSUPPORTED, "a custom layer");
    /* An operation is not the layer of the same name. */
    assert_keras_refuses(
        ON_SERIES("{'module': 'keras.src.ops.nn', 'class_name': 'Dot', "
                  "'config': {'name': 'd'}}"),
        no_weights, CELLGATE_UNSUPPORTED,
        "layer 2 of 2, 'd' (Dot): an operation on tensors, as x[:, 0] and "
        "keras.ops make them, that is not supported, or not as it is used "
        "here; README.md lists those that are. Rebuild the model with the "
        "layer of this name in its place");
    assert_keras_refuses(
        ON_SERIES("{'module': 'keras.src.ops.numpy', 'class_name': 'Arctan2', "
                  "'config': {'name': 'a'}}"),
        no_weights, CELLGATE_UNSUPPORTED,
        "layer 2 of 2, 'a' (Arctan2): an operation");
    assert_keras_refuses(ON_SERIES("{'class_name': 'Dense'}"), no_weights,
                         CELLGATE_BAD_FILE, "layer 2 of 2 lacks");
    assert_keras_refuses(ON_SERIES("7"), no_weights, CELLGATE_BAD_FILE,
                         "lacks its class_name");
}

static void layers_that_prepare_data_are_refused(void **state)
{
    static const char *const names[] = { "CategoryEncoding", "Discretization",
                                         "HashedCrossing",   "Hashing",
                                         "IntegerLookup",    "StringLookup",
                                         "TextVectorization" };
    char config[2048], text[256];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(config, sizeof config, ON_IDS(LAYER("%s", "p", "")), names[i]);
        snprintf(text, sizeof text,
                 "layer 2 of 2, 'p' (%s): a layer that prepares data for a "
                 "model is not run; do what it does in your program, and "
                 "rebuild the model from the layers behind it",
                 names[i]);
        assert_keras_refuses(config, no_weights, CELLGATE_UNSUPPORTED, text);
    }
}

/* The file says float32: the numbers stay whole, and are cast to ids. */
static void ids_and_numbers_meet_in_a_cast(void **state)
{
    static const keras_weight weights[] = {
        { "layers/embedding/vars/0", 2, { 9, 2 } },
        DENSE_WEIGHTS("layers/dense", 6, 2),
        { NULL, 0, { 0 } }
    };
    cellgate_model *model = load(
        FUNCTIONAL(IDS ", " CALLED("Embedding", "e",
                                   ", 'input_dim': 9, 'output_dim': 2",
                                   TENSOR("ids", "0", "0"),
                                   "") ", " CALLED("Dense", "d", ", 'units': 2",
                                                   TENSOR("ids", "0", "0"), ""),
                   "['ids', 0, 0]", "[['e', 0, 0], ['d', 0, 0]]"),
        weights);

    (void)state;
    assert_int_equal(model->node_count, 3);
    assert_int_equal(model->values[model->inputs[0].value].dtype, CELLGATE_F32);
    assert_int_equal(model->nodes[0].kind, CG_CAST);
    assert_int_equal(model->nodes[0].as.cast, CG_CAST_IDS);
    assert_int_equal(model->nodes[1].kind, CG_EMBEDDING);
    assert_int_equal(model->nodes[1].inputs[0], model->nodes[0].outputs[0]);
    assert_int_equal(model->nodes[2].inputs[0], model->inputs[0].value);
    cellgate_model_destroy(model);
}

static void masks_as_operations(void **state)
{
    static const keras_weight weights[] = {
        LSTM_WEIGHTS("layers/lstm/cell", 3, 2), { NULL, 0, { 0 } }
    };
#define OPERATION(class_name, name, options, arguments)                        \
    "{'module': 'keras.src.ops.numpy', 'class_name': '" class_name             \
    "', 'config': {'name': '" name "'" options "}, 'name': '" name             \
    "', 'inbound_nodes': [{'args': [" arguments "], 'kwargs': {}}]}"
    cellgate_model *model = load(
        FUNCTIONAL(
            SERIES ", " OPERATION(
                "NotEqual", "ne", "",
                TENSOR(
                    "x", "0",
                    "0") ", 0.5") ", " OPERATION("Any", "any",
                                                 ", 'axis': [-1], 'keepdims': "
                                                 "false",
                                                 TENSOR(
                                                     "ne", "0",
                                                     "0")) ", " CALLED("LSTM",
                                                                       "l",
                                                                       ", "
                                                                       "'units'"
                                                                       ": 2",
                                                                       TENSOR(
                                                                           "x",
                                                                           "0",
                                                                           "0"),
                                                                       "'mask':"
                                                                       " " TENSOR(
                                                                           "an"
                                                                           "y",
                                                                           "0",
                                                                           "0")),
            "['x', 0, 0]", "['l', 0, 0]"),
        weights);

    (void)state;
    assert_int_equal(model->node_count, 2);
    assert_int_equal(model->nodes[0].kind, CG_NOT_EQUAL);
    assert_int_equal(model->nodes[1].inputs[1], model->nodes[0].outputs[0]);
    cellgate_model_destroy(model);
    assert_keras_refuses(
        FUNCTIONAL(SERIES ", " OPERATION("Any", "any", ", 'axis': -1",
                                         TENSOR("x", "0", "0")),
                   "['x', 0, 0]", "['any', 0, 0]"),
        no_weights, CELLGATE_UNSUPPORTED, "features of a comparison only");
    assert_keras_refuses(
        FUNCTIONAL(SERIES ", " OPERATION("NotEqual", "ne", "",
                                         TENSOR("x", "0", "0") ", 'text'"),
                   "['x', 0, 0]", "['ne', 0, 0]"),
        no_weights, CELLGATE_UNSUPPORTED, "(NotEqual): an operation on");
    assert_keras_refuses(
        FUNCTIONAL(SERIES ", " OPERATION("NotEqual", "ne", "",
                                         TENSOR("x", "0", "0") ", [1.0]"),
                   "['x', 0, 0]", "['ne', 0, 0]"),
        no_weights, CELLGATE_UNSUPPORTED, "a tensor and a number only");
    assert_keras_refuses(
        FUNCTIONAL(SERIES ", " OPERATION("NotEqual", "ne", "",
                                         TENSOR("x", "0", "0") ", 1.0"),
                   "['x', 0, 0]", "['ne', 0, 0]"),
        no_weights, CELLGATE_UNSUPPORTED, "a mask as an output");
    assert_keras_refuses(
        FUNCTIONAL(
            SERIES ", " OPERATION(
                "NotEqual", "ne", "",
                TENSOR("x", "0",
                       "0") ", 1.0") ", " CALLED("Dense", "d", ", 'units': 1",
                                                 TENSOR("ne", "0", "0"), ""),
            "['x', 0, 0]", "['d', 0, 0]"),
        no_weights, CELLGATE_UNSUPPORTED, "as a mask only");
}

#define MASKED_EMBEDDING(name, ids)                                            \
    CALLED("Embedding", name,                                                  \
           ", 'input_dim': 9, 'output_dim': 2, 'mask_zero': true",             \
           TENSOR(ids, "0", "0"), "")

/* Keras 2 takes a step as valid where all have it so, Keras 3 where any has. */
static void merged_masks_follow_the_version(void **state)
{
    static const keras_weight weights[] = {
        { "layers/embedding/vars/0", 2, { 9, 2 } },
        { "layers/embedding_1/vars/0", 2, { 9, 2 } },
        LSTM_WEIGHTS("layers/lstm/cell", 2, 3),
        { NULL, 0, { 0 } }
    };
    static const struct {
        const char *version;
        cg_logic logic;
    } cases[] = { { "2.15.0", CG_LOGIC_AND }, { "3.15.1", CG_LOGIC_OR } };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_model *model = NULL;
        const cg_node *lstm, *logic;
        const cg_value *mask;
        const char *path = keras_file_write(
            cases[i].version,
            FUNCTIONAL(
                IDS ", " INPUT("more", "[null, 6]") ", " MASKED_EMBEDDING(
                    "e",
                    "id"
                    "s") ", " MASKED_EMBEDDING("f",
                                               "more") ", " CALLED("Add", "a",
                                                                   "",
                                                                   "[" TENSOR("e", "0", "0") ", " TENSOR(
                                                                       "f", "0",
                                                                       "0") "]",
                                                                   "") ","
                                                                       " " CALLED(
                                                                           "LST"
                                                                           "M",
                                                                           "l",
                                                                           ", "
                                                                           "'un"
                                                                           "its"
                                                                           "': "
                                                                           "3",
                                                                           TENSOR(
                                                                               "a",
                                                                               "0",
                                                                               "0"),
                                                                           ""),
                "[['ids', 0, 0], ['more', 0, 0]]", "['l', 0, 0]"),
            weights);

        if (cellgate_model_load(path, &model, &error) != CELLGATE_OK)
            fail_msg("%s", error.text);
        lstm = &model->nodes[model->node_count - 1];
        assert_int_equal(lstm->kind, CG_LSTM);
        mask = &model->values[lstm->inputs[CG_LSTM_INPUT_MASK]];
        logic = &model->nodes[mask->producer];
        assert_int_equal(logic->kind, CG_LOGIC);
        assert_int_equal(logic->as.logic, cases[i].logic);
        cellgate_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identities_leave_nothing),
        cmocka_unit_test(dense_has_bias_and_activation),
        cmocka_unit_test(embedding_makes_ids_of_its_input),
        cmocka_unit_test(masking_replaces_the_mask),
        cmocka_unit_test(time_distributed_is_what_it_holds),
        cmocka_unit_test(unknown_layers_are_named_with_their_place),
        cmocka_unit_test(layers_that_prepare_data_are_refused),
        cmocka_unit_test(ids_and_numbers_meet_in_a_cast),
        cmocka_unit_test(masks_as_operations),
        cmocka_unit_test(merged_masks_follow_the_version),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
