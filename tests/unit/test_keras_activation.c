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

/* The activation of a model of one activation node. */
static cellgate_activation load_activation(const char *version,
                                           const char *layer, cg_kind *kind)
{
    char config[2048];
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    cellgate_activation activation;

    snprintf(config, sizeof config, SEQUENTIAL("%s, %s"),
             INPUT("x", "[null, 4]"), layer);
    if (cellgate_model_load(keras_file_write(version, config, no_weights),
                            &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(model->node_count, 1);
    *kind = model->nodes[0].kind;
    activation = model->nodes[0].as.activation;
    cellgate_model_destroy(model);
    return activation;
}

#define ACTIVATION(what) LAYER("Activation", "act", ", 'activation': " what)

static void every_name_is_known(void **state)
{
    static const struct {
        const char *name;
        cellgate_activation activation;
    } names[] = {
        { "celu", { CELLGATE_CELU, 1, 0 } },
        { "elu", { CELLGATE_ELU, 1, 0 } },
        { "exponential", { CELLGATE_EXPONENTIAL, 0, 0 } },
        { "gelu", { CELLGATE_GELU_ERF, 0, 0 } },
        { "hard_shrink", { CELLGATE_HARD_SHRINK, 0.5f, 0 } },
        { "hard_sigmoid", { CELLGATE_HARD_SIGMOID, 1.0f / 6, 0.5f } },
        { "hard_silu", { CELLGATE_HARD_SILU, 0, 0 } },
        { "hard_swish", { CELLGATE_HARD_SILU, 0, 0 } },
        { "hard_tanh", { CELLGATE_HARD_TANH, 0, 0 } },
        { "leaky_relu", { CELLGATE_LEAKY_RELU, 0.2f, 0 } },
        { "linear", { CELLGATE_LINEAR, 0, 0 } },
        { "log_sigmoid", { CELLGATE_LOG_SIGMOID, 0, 0 } },
        { "mish", { CELLGATE_MISH, 0, 0 } },
        { "relu", { CELLGATE_RELU, 0, 0 } },
        { "relu6", { CELLGATE_RELU6, 0, 0 } },
        { "selu", { CELLGATE_SELU, 0, 0 } },
        { "sigmoid", { CELLGATE_SIGMOID, 0, 0 } },
        { "silu", { CELLGATE_SILU, 0, 0 } },
        { "soft_shrink", { CELLGATE_SOFT_SHRINK, 0.5f, 0 } },
        { "softplus", { CELLGATE_SOFTPLUS, 0, 0 } },
        { "softsign", { CELLGATE_SOFTSIGN, 0, 0 } },
        { "sparse_plus", { CELLGATE_SPARSE_PLUS, 0, 0 } },
        { "sparse_sigmoid", { CELLGATE_SPARSE_SIGMOID, 0, 0 } },
        { "squareplus", { CELLGATE_SQUAREPLUS, 4, 0 } },
        { "swish", { CELLGATE_SILU, 0, 0 } },
        { "tanh", { CELLGATE_TANH, 0, 0 } },
        { "tanh_shrink", { CELLGATE_TANH_SHRINK, 0, 0 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char layer[256];
        cg_kind kind;
        cellgate_activation got;

        snprintf(layer, sizeof layer, ACTIVATION("'%s'"), names[i].name);
        got = load_activation("3.0.5", layer, &kind);
        assert_int_equal(kind, CG_ACTIVATION);
        assert_int_equal(got.kind, names[i].activation.kind);
        assert_float_equal(got.alpha, names[i].activation.alpha, 0);
        assert_float_equal(got.beta, names[i].activation.beta, 0);
    }
}

static void hard_sigmoid_goes_by_the_version(void **state)
{
    cg_kind kind;
    const cellgate_activation old =
        load_activation("2.15.0", ACTIVATION("'hard_sigmoid'"), &kind);

    (void)state;
    assert_int_equal(kind, CG_ACTIVATION);
    assert_float_equal(old.alpha, 0.2f, 0);
    assert_float_equal(old.beta, 0.5f, 0);
}

static void null_is_linear(void **state)
{
    cg_kind kind;

    (void)state;
    assert_int_equal(load_activation("3.0", ACTIVATION("null"), &kind).kind,
                     CELLGATE_LINEAR);
    /* An Activation layer has no default. */
    assert_keras_refuses(
        SEQUENTIAL(INPUT("x", "[null, 5]") ", " LAYER("Activation", "act", "")),
        NULL, CELLGATE_BAD_FILE, "'activation' must be a name or an object");
}

static void objects_are_read(void **state)
{
    cg_kind kind;
    cellgate_activation got;

    (void)state;
    got = load_activation(
        "3.0",
        ACTIVATION("{'class_name': 'function', 'config': 'relu', 'module': "
                   "'builtins', 'registered_name': 'relu'}"),
        &kind);
    assert_int_equal(got.kind, CELLGATE_RELU);
    got = load_activation(
        "3.0",
        ACTIVATION("{'module': 'keras.layers', 'class_name': 'LeakyReLU', "
                   "'config': {'negative_slope': 0.25}}"),
        &kind);
    assert_int_equal(got.kind, CELLGATE_LEAKY_RELU);
    assert_float_equal(got.alpha, 0.25f, 0);
}

static void layers_are_read(void **state)
{
    static const struct {
        const char *layer;
        cellgate_activation activation;
    } layers[] = {
        { LAYER("ReLU", "r", ""), { CELLGATE_RELU, 0, 0 } },
        { LAYER("ReLU", "r", ", 'max_value': 6.0, 'negative_slope': 0.0"),
          { CELLGATE_RELU6, 0, 0 } },
        { LAYER("ReLU", "r", ", 'max_value': null, 'negative_slope': 0.5"),
          { CELLGATE_LEAKY_RELU, 0.5f, 0 } },
        { LAYER("ReLU", "r",
                ", 'max_value': null, 'negative_slope': {'class_name': "
                "'__numpy__', 'config': {'value': 0.5, 'dtype': 'float32'}}"),
          { CELLGATE_LEAKY_RELU, 0.5f, 0 } },
        { LAYER("ReLU", "r", ", 'threshold': 0.5"),
          { CELLGATE_THRESHOLD, 0.5f, 0 } },
        { LAYER("LeakyReLU", "r", ", 'alpha': 0.25"),
          { CELLGATE_LEAKY_RELU, 0.25f, 0 } },
        { LAYER("LeakyReLU", "r", ""), { CELLGATE_LEAKY_RELU, 0.3f, 0 } },
        { LAYER("ELU", "r", ", 'alpha': 2.0"), { CELLGATE_ELU, 2, 0 } },
        { LAYER("ThresholdedReLU", "r", ", 'theta': 0.75"),
          { CELLGATE_THRESHOLD, 0.75f, 0 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        cg_kind kind;
        const cellgate_activation got =
            load_activation("3.0", layers[i].layer, &kind);

        assert_int_equal(kind, CG_ACTIVATION);
        assert_int_equal(got.kind, layers[i].activation.kind);
        assert_float_equal(got.alpha, layers[i].activation.alpha, 0);
    }
}

static void softmax_is_a_kind_of_its_own(void **state)
{
    cg_kind kind;

    (void)state;
    (void)load_activation("3.0", ACTIVATION("'softmax'"), &kind);
    assert_int_equal(kind, CG_SOFTMAX);
    (void)load_activation("3.0", LAYER("Softmax", "s", ", 'axis': -1"), &kind);
    assert_int_equal(kind, CG_SOFTMAX);
    (void)load_activation("3.0", ACTIVATION("'log_softmax'"), &kind);
    assert_int_equal(kind, CG_LOG_SOFTMAX);
    (void)load_activation("2.15.0", ACTIVATION("'log_softmax'"), &kind);
    assert_int_equal(kind, CG_LOG_SOFTMAX);
    (void)load_activation("3.0", ACTIVATION("'sparsemax'"), &kind);
    assert_int_equal(kind, CG_SPARSEMAX);
    (void)load_activation("3.0", LAYER("ReLU", "r", ", 'max_value': 3.0"),
                          &kind);
    assert_int_equal(kind, CG_RELU);
}

#define MODEL(layer) SEQUENTIAL(INPUT("x", "[null, 4]") ", " layer)

static void others_are_refused(void **state)
{
    (void)state;
    assert_keras_refuses(MODEL(ACTIVATION("'glu'")), no_weights,
                         CELLGATE_UNSUPPORTED,
                         "layer 2 of 2, 'act' (Activation): activation 'glu' "
                         "is not supported: it halves");
    assert_keras_refuses(MODEL(ACTIVATION("'threshold'")), no_weights,
                         CELLGATE_UNSUPPORTED, "has two parameters");
    assert_keras_refuses(MODEL(ACTIVATION("'mine'")), no_weights,
                         CELLGATE_UNSUPPORTED,
                         "'mine' is not an activation of Keras's own");
    assert_keras_refuses(MODEL(ACTIVATION("7")), no_weights, CELLGATE_BAD_FILE,
                         "'activation' must be a name or an object");
    assert_keras_refuses(
        MODEL(ACTIVATION("{'class_name': 'function', 'config': 'mine', "
                         "'registered_name': 'mine'}")),
        no_weights, CELLGATE_UNSUPPORTED, "'mine'");
    /* Lambdas, as Keras 3 writes them, and did at first. */
    assert_keras_refuses(
        MODEL(ACTIVATION("{'value': ['4wEA', null, null]}")), no_weights,
        CELLGATE_UNSUPPORTED, "its activation is a lambda: code of your own");
    assert_keras_refuses(
        MODEL(ACTIVATION("{'class_name': '__lambda__', 'config': {'value': "
                         "['4wEA', null, null]}}")),
        no_weights, CELLGATE_UNSUPPORTED, "its activation is a lambda");
    /* Of the user's own, although named after one of Keras. */
    assert_keras_refuses(
        MODEL(ACTIVATION("{'class_name': 'function', 'config': 'relu', "
                         "'registered_name': 'mine>relu'}")),
        no_weights, CELLGATE_UNSUPPORTED, "custom activation 'mine>relu'");
    assert_keras_refuses(
        MODEL(ACTIVATION("{'module': 'builtins', 'class_name': 'function', "
                         "'config': 'my>tanh', 'registered_name': "
                         "'function'}")),
        no_weights, CELLGATE_UNSUPPORTED, "custom activation 'my>tanh'");
    assert_keras_refuses(
        MODEL(ACTIVATION("{'module': 'mine', 'class_name': 'LeakyReLU', "
                         "'config': {}}")),
        no_weights, CELLGATE_UNSUPPORTED, "object 'LeakyReLU'");
    assert_keras_refuses(MODEL(LAYER("ReLU", "r", ", 'threshold': -1.0")),
                         no_weights, CELLGATE_BAD_FILE, "negative");
    assert_keras_refuses(
        MODEL(ACTIVATION("{'module': 'keras.layers', 'class_name': 'Softmax', "
                         "'config': {'axis': 1}}")),
        no_weights, CELLGATE_UNSUPPORTED, "last axis");
    assert_keras_refuses(MODEL(LAYER("ELU", "r", ", 'alpha': 1e300")),
                         no_weights, CELLGATE_BAD_FILE, "fits float32");
    assert_keras_refuses(MODEL(LAYER("ELU", "r", ", 'alpha': 'big'")),
                         no_weights, CELLGATE_BAD_FILE, "must be a number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_known),
        cmocka_unit_test(hard_sigmoid_goes_by_the_version),
        cmocka_unit_test(null_is_linear),
        cmocka_unit_test(objects_are_read),
        cmocka_unit_test(layers_are_read),
        cmocka_unit_test(softmax_is_a_kind_of_its_own),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
