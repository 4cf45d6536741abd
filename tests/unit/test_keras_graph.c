/* SPDX-License-Identifier: Apache-2.0 */
/* Wiring: keras_graph.c, keras_sequential.c, keras_functional.c,
   keras_inputs.c and keras_tensors.c through whole files. */
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

static const keras_weight dense[] = { DENSE_WEIGHTS("layers/dense", 3, 3),
                                      DENSE_WEIGHTS("layers/dense_1", 3, 3),
                                      { NULL, 0, { 0 } } };

#define ROW(name) INPUT(name, "[null, 3]")
#define D(name, tensors) CALLED("Dense", name, ", 'units': 3", tensors, "")
#define X TENSOR("x", "0", "0")

static cellgate_model *load(const char *config, const keras_weight *weights)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (keras_file_load(config, weights, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

static const char *output_name(const cellgate_model *model, size_t index)
{
    return model->values[model->outputs[index]].name;
}

static const char *input_name(const cellgate_model *model, size_t index)
{
    return model->values[model->inputs[index].value].name;
}

/* ---- Structures ---------------------------------------------------------- */

static void dictionaries_go_by_key(void **state)
{
    cellgate_model *model =
        load(FUNCTIONAL(ROW("x") ", " ROW("y") ", " D("a", X) ", " D(
                            "b", TENSOR("y", "0", "0")),
                        "{'q': ['x', 0, 0], 'p': ['y', 0, 0]}",
                        "{'two': ['a', 0, 0], 'one': {'z': ['b', 0, 0], "
                        "'k': ['x', 0, 0]}}"),
             dense);

    (void)state;
    assert_string_equal(input_name(model, 0), "y");
    assert_string_equal(input_name(model, 1), "x");
    assert_int_equal(model->output_count, 3);
    assert_string_equal(output_name(model, 0), "x");
    assert_string_equal(output_name(model, 1), "b");
    assert_string_equal(output_name(model, 2), "a");
    cellgate_model_destroy(model);
}

static void tuples_and_lists_are_flattened(void **state)
{
    cellgate_model *model = load(
        FUNCTIONAL(ROW("x") ", " CALLED(
                       "Dense", "a", ", 'units': 3",
                       "{'class_name': '__tuple__', 'config': [" X "]}", ""),
                   "[['x', 0, 0]]", "[[['a', 0, 0]], ['x', 0, 0]]"),
        dense);

    (void)state;
    assert_int_equal(model->output_count, 2);
    assert_string_equal(output_name(model, 0), "a");
    cellgate_model_destroy(model);
}

static void layers_wait_for_what_they_are_called_on(void **state)
{
    /* The file lists them from the last to the first. */
    cellgate_model *model = load(
        FUNCTIONAL(D("b", TENSOR("a", "0", "0")) ", " D("a", X) ", " ROW("x"),
                   "['x', 0, 0]", "['b', 0, 0]"),
        dense);

    (void)state;
    assert_string_equal(model->nodes[0].name, "a");
    assert_string_equal(model->nodes[1].name, "b");
    cellgate_model_destroy(model);
}

static void a_layer_called_twice_shares_its_weights(void **state)
{
    cellgate_model *model = load(
        FUNCTIONAL(
            ROW("x") ", "
                     "{'module': 'keras.layers', 'class_name': 'Dense', "
                     "'config': {'name': 'd', 'units': 3}, 'name': 'd', "
                     "'inbound_nodes': [{'args': [" X "], 'kwargs': {}}, "
                     "{'args': [" TENSOR("d", "0", "0") "], 'kwargs': {}}]}",
            "['x', 0, 0]", "['d', 1, 0]"),
        dense);

    (void)state;
    assert_int_equal(model->node_count, 2);
    assert_string_equal(model->nodes[0].name, "d");
    assert_string_equal(model->nodes[1].name, "d_2");
    assert_ptr_equal(model->nodes[0].weights[0].data,
                     model->nodes[1].weights[0].data);
    cellgate_model_destroy(model);
}

static void names_stay_apart(void **state)
{
    static const keras_weight weights[] = {
        DENSE_WEIGHTS("layers/dense", 3, 3),
        DENSE_WEIGHTS("layers/dense_1", 3, 3),
        DENSE_WEIGHTS("layers/dense_2", 3, 3),
        { NULL, 0, { 0 } }
    };
    /* The second call of "d" would be called like another layer, and a layer
       is called like the mask of the input. */
    cellgate_model *model = load(
        FUNCTIONAL(
            ROW("x") ", "
                     "{'module': 'keras.layers', 'class_name': 'Dense', "
                     "'config': {'name': 'd', 'units': 3}, 'name': 'd', "
                     "'inbound_nodes': [{'args': [" X "], 'kwargs': {}}, "
                     "{'args': [" TENSOR(
                         "d", "0",
                         "0") "], 'kwargs': {}}]}, " D("d_2",
                                                       TENSOR(
                                                           "d", "1",
                                                           "0")) ", " D("x:"
                                                                        "mask",
                                                                        TENSOR(
                                                                            "d_"
                                                                            "2",
                                                                            "0",
                                                                            "0")),
            "['x', 0, 0]", "['x:mask', 0, 0]"),
        weights);

    (void)state;
    assert_int_equal(model->node_count, 4);
    assert_string_equal(model->nodes[1].name, "d_2");
    assert_string_equal(model->nodes[2].name, "d_2_2");
    assert_string_equal(model->nodes[3].name, "x:mask_2");
    cellgate_model_destroy(model);
}

static void the_way_keras_2_wrote_calls(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    const char *path = keras_file_write(
        "2.15.0",
        FUNCTIONAL("{'class_name': 'InputLayer', 'config': {'name': 'x', "
                   "'batch_input_shape': [null, 3], 'dtype': 'float32', "
                   "'sparse': false, 'ragged': false}, 'name': 'x', "
                   "'inbound_nodes': []}, "
                   "{'class_name': 'Dense', 'config': {'name': 'd', "
                   "'units': 3}, 'name': 'd', 'inbound_nodes': [[['x', 0, 0, "
                   "{}]]]}",
                   "[['x', 0, 0]]", "[['d', 0, 0]]"),
        dense);

    (void)state;
    if (cellgate_model_load(path, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_string_equal(cellgate_model_format_version(model), "2.15.0");
    assert_int_equal(model->node_count, 1);
    cellgate_model_destroy(model);
}

static void wrong_graphs_are_refused(void **state)
{
    (void)state;
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " D("a", TENSOR("b", "0", "0")) ", " D(
                       "b", TENSOR("a", "0", "0")),
                   "['x', 0, 0]", "['b', 0, 0]"),
        dense, CELLGATE_BAD_FILE, "a cycle or a gap");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " D("x", X), "['x', 0, 0]", "['x', 0, 0]"),
        dense, CELLGATE_BAD_FILE,
        "layer 2 of 2, 'x' (Dense): another layer has the same name");
    assert_keras_refuses(FUNCTIONAL(ROW("x") ", " D("a", TENSOR("q", "0", "0")),
                                    "['x', 0, 0]", "['a', 0, 0]"),
                         dense, CELLGATE_BAD_FILE, "there is no layer 'q'");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " D("a", TENSOR("x", "-1", "0")), "['x', 0, 0]",
                   "['a', 0, 0]"),
        dense, CELLGATE_BAD_FILE, "call number -1 is not in the file");
    assert_keras_refuses(FUNCTIONAL(ROW("x") ", " D("a", TENSOR("x", "0", "1")),
                                    "['x', 0, 0]", "['a', 0, 0]"),
                         dense, CELLGATE_BAD_FILE, "no output number 1");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " D("a", X), "['x', 0, 0]", "['a', 1, 0]"),
        dense, CELLGATE_BAD_FILE, "an output of the model is never made");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " D("a", X), "['a', 0, 0]", "['a', 0, 0]"),
        dense, CELLGATE_BAD_FILE, "'a' is not an input layer");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " D("a", X), "[['x', 0, 0], ['x', 0, 0]]",
                   "['a', 0, 0]"),
        dense, CELLGATE_BAD_FILE, "'x' is not an input layer that can be");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " D("a", X), "[]", "['x', 0, 0]"), dense,
        CELLGATE_BAD_FILE, "a cycle or a gap");
    assert_keras_refuses(FUNCTIONAL(ROW("x"), "['x', 0, 0]", "[]"), dense,
                         CELLGATE_BAD_FILE, "no outputs");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " D("a", "7"), "['x', 0, 0]", "['a', 0, 0]"),
        dense, CELLGATE_BAD_FILE, "called on 0 tensors");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " D("a", "{'class_name': '__keras_tensor__'}"),
                   "['x', 0, 0]", "['a', 0, 0]"),
        dense, CELLGATE_BAD_FILE, "no keras_history");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " CALLED("InputLayer", "y",
                                        ", 'batch_shape': [null, 3]", X, ""),
                   "['x', 0, 0]", "['y', 0, 0]"),
        dense, CELLGATE_BAD_FILE, "an input cannot be called");
}

/* ---- Inputs -------------------------------------------------------------- */

static void a_batch_size_is_not_baked_in(void **state)
{
    cellgate_model *model = load(SEQUENTIAL(INPUT("x", "[8, 3]") ", " LAYER(
                                     "Dense", "d", ", 'units': 3")),
                                 dense);

    (void)state;
    assert_int_equal(model->values[0].shape[0], CG_UNKNOWN);
    assert_int_equal(model->values[0].shape[1], 3);
    cellgate_model_destroy(model);
}

static void inputs_without_an_input_layer(void **state)
{
    cellgate_model *model =
        load(SEQUENTIAL(LAYER("Dense", "d",
                              ", 'units': 3, 'batch_input_shape': [null, 3]")),
             dense);

    (void)state;
    assert_string_equal(input_name(model, 0), "input");
    cellgate_model_destroy(model);
    model = load("{'class_name': 'Sequential', 'config': {'name': 's', "
                 "'build_input_shape': [null, 3], 'layers': [" LAYER(
                     "Dense", "d", ", 'units': 3") "]}}",
                 dense);
    assert_int_equal(model->node_count, 1);
    cellgate_model_destroy(model);
    assert_keras_refuses(SEQUENTIAL(LAYER("Dense", "d", ", 'units': 3")), dense,
                         CELLGATE_UNSUPPORTED, "saved before it was built");
}

static void wrong_inputs_are_refused(void **state)
{
    (void)state;
    assert_keras_refuses(SEQUENTIAL(INPUT("x", "[null, 0]")), dense,
                         CELLGATE_BAD_FILE, "axis 1 of its input");
    assert_keras_refuses(SEQUENTIAL(INPUT("x", "[null, 'a']")), dense,
                         CELLGATE_BAD_FILE, "axis 1 of its input");
    assert_keras_refuses(SEQUENTIAL(INPUT("x", "[]")), dense, CELLGATE_BAD_FILE,
                         "shape of its input");
    assert_keras_refuses(SEQUENTIAL(INPUT("x", "[1, 2, 3, 4, 5, 6, 7, 8, 9]")),
                         dense, CELLGATE_BAD_FILE, "1 to 8 axes");
    assert_keras_refuses(SEQUENTIAL(INPUT("x", "[null, 268435457]")), dense,
                         CELLGATE_BAD_FILE, "axis 1");
    assert_keras_refuses(
        SEQUENTIAL(LAYER("InputLayer", "x",
                         ", 'batch_shape': [null, 3], 'sparse': true")),
        dense, CELLGATE_UNSUPPORTED, "option 'sparse'");
    assert_keras_refuses(
        SEQUENTIAL("{'module': 'keras.layers', 'class_name': 'InputLayer', "
                   "'config': {'batch_shape': [null, 3], 'dtype': 'string', "
                   "'name': 'x'}}"),
        dense, CELLGATE_UNSUPPORTED,
        "an input of dtype 'string' is not supported; numbers, ids and bool "
        "are: "
        "turn texts into ids in your program");
}

/* ---- Sequential ---------------------------------------------------------- */

#define STATES                                                                 \
    INPUT("x", "[null, 6, 3]")                                                 \
    ", " LAYER("LSTM", "l", ", 'units': 2, 'return_state': true")

static void sequential_models_pass_on_lists(void **state)
{
    static const keras_weight weights[] = {
        LSTM_WEIGHTS("layers/lstm/cell", 3, 2), { NULL, 0, { 0 } }
    };
    cellgate_model *model = load(SEQUENTIAL(STATES), weights);

    (void)state;
    assert_int_equal(cellgate_model_output_count(model), 3);
    cellgate_model_destroy(model);
    model =
        load(SEQUENTIAL(STATES ", " LAYER("Concatenate", "c", "")), weights);
    assert_int_equal(cellgate_model_output_count(model), 1);
    cellgate_model_destroy(model);
    assert_keras_refuses(
        SEQUENTIAL(STATES ", " LAYER("Dense", "d", ", 'units': 3")), weights,
        CELLGATE_BAD_FILE, "it is called on 3 tensors; it takes one");
}

static void wrong_sequential_models_are_refused(void **state)
{
    (void)state;
    assert_keras_refuses(
        SEQUENTIAL(ROW("x") ", " LAYER("Dense", "d", ", 'units': 3") ", " LAYER(
            "Dense", "d", ", 'units': 3")),
        dense, CELLGATE_BAD_FILE, "the same name");
    assert_keras_refuses(SEQUENTIAL(ROW("x") ", " ROW("y")), dense,
                         CELLGATE_BAD_FILE, "an input cannot be called");
    assert_keras_refuses(SEQUENTIAL(""), dense, CELLGATE_BAD_FILE,
                         "the model has no layers");
}

/* ---- Models in models ---------------------------------------------------- */

static void nested_models_are_built_in_place(void **state)
{
    static const keras_weight weights[] = {
        DENSE_WEIGHTS("layers/sequential/layers/dense", 3, 3),
        DENSE_WEIGHTS("layers/sequential/layers/dense_1", 3, 3),
        { NULL, 0, { 0 } }
    };
    /* Called twice: its second call is on its first one's output. */
    cellgate_model *model = load(
        FUNCTIONAL(
            ROW("x") ", "
                     "{'module': 'keras', 'class_name': 'Sequential', "
                     "'config': {"
                     "'name': 'inner', 'layers': [" ROW("i") ", " LAYER(
                         "Dense", "d",
                         ", 'units': 3") ", " LAYER("Dense", "e",
                                                    ", 'units': 3") "]}, "
                                                                    "'name': "
                                                                    "'inner', "
                                                                    "'inbound_"
                                                                    "nodes': "
                                                                    "[{'args': "
                                                                    "[" X "], "
                                                                    "'kwargs': "
                                                                    "{'mask': "
                                                                    "null}}, "
                                                                    "{'args': "
                                                                    "[" TENSOR(
                                                                        "inner",
                                                                        "0",
                                                                        "0") "]"
                                                                             ","
                                                                             " "
                                                                             "'"
                                                                             "k"
                                                                             "w"
                                                                             "a"
                                                                             "r"
                                                                             "g"
                                                                             "s"
                                                                             "'"
                                                                             ":"
                                                                             " "
                                                                             "{"
                                                                             "}"
                                                                             "}"
                                                                             "]"
                                                                             "}",
            "['x', 0, 0]", "[['inner', 0, 0], ['inner', 1, 0]]"),
        weights);

    (void)state;
    assert_int_equal(model->node_count, 4);
    assert_string_equal(model->nodes[0].name, "inner/d");
    assert_string_equal(model->nodes[1].name, "inner/e");
    assert_string_equal(model->nodes[2].name, "inner_2/d");
    assert_string_equal(model->nodes[0].layer,
                        "layer 2 of 3 of 'inner', 'd' (Dense)");
    assert_int_equal(model->nodes[2].inputs[0], model->outputs[0]);
    assert_ptr_equal(model->nodes[0].weights[0].data,
                     model->nodes[2].weights[0].data);
    cellgate_model_destroy(model);
}

#define INNER(inputs)                                                          \
    "{'module': 'keras', 'class_name': 'Functional', 'config': {"              \
    "'name': 'inner', 'layers': [" ROW("i") ", " ROW("j") ", " D(              \
        "d",                                                                   \
        TENSOR("i", "0",                                                       \
               "0")) "], 'input_layers': [['i', 0, 0], "                       \
                     "['j', 0, 0]], 'output_layers': [['d', 0, 0], ['j', 0, "  \
                     "0]]}, "                                                  \
                     "'name': 'inner', 'inbound_nodes': [{'args': [" inputs    \
                     "], 'kwargs': {}}]}"

static void functional_models_count_a_call_of_their_own(void **state)
{
    static const keras_weight weights[] = {
        DENSE_WEIGHTS("layers/functional/layers/dense", 3, 3),
        DENSE_WEIGHTS("layers/dense", 3, 3),
        { NULL, 0, { 0 } }
    };
    /* From 0 where a layer is called on them, from 1 among the outputs. */
    cellgate_model *model =
        load(FUNCTIONAL(ROW("x") ", " INNER("[" X ", " X "]") ", " D(
                            "d", TENSOR("inner", "0", "0")),
                        "['x', 0, 0]", "[['d', 0, 0], ['inner', 1, 1]]"),
             weights);

    (void)state;
    assert_int_equal(model->node_count, 2);
    assert_string_equal(output_name(model, 1), "x");
    cellgate_model_destroy(model);
    assert_keras_refuses(FUNCTIONAL(ROW("x") ", " INNER("[" X "]"),
                                    "['x', 0, 0]", "['inner', 1, 0]"),
                         weights, CELLGATE_BAD_FILE,
                         "it is called on 1 tensors");
    assert_keras_refuses(
        FUNCTIONAL(ROW("x") ", " INNER("[" X ", " X ", " X "]"), "['x', 0, 0]",
                   "['inner', 1, 0]"),
        weights, CELLGATE_BAD_FILE, "called on 3 tensors; it takes 2");
}

/* A Sequential model has one too in the files of Keras 2, none in those of
   Keras 3. */
static void sequential_models_count_by_version(void **state)
{
    static const keras_weight weights[] = {
        DENSE_WEIGHTS("layers/sequential/layers/dense", 3, 3),
        { NULL, 0, { 0 } }
    };
#define TWICE(output)                                                          \
    FUNCTIONAL(ROW("x") ", {'class_name': 'Sequential', 'config': {'name': "   \
                        "'s', 'layers': [" LAYER(                              \
                            "Dense", "d",                                      \
                            ", 'units': 3") "]}, "                             \
                                            "'name': 's', 'inbound_nodes': "   \
                                            "[[['x', 0, 0, {}]], "             \
                                            "[['s', " output ", 0, {}]]]}",    \
               "['x', 0, 0]", "['s', " output ", 0]")
    static const struct {
        const char *version, *config;
        cellgate_status status;
    } files[] = { { "2.15.0", TWICE("1"), CELLGATE_OK },
                  { "2.15.0", TWICE("0"), CELLGATE_BAD_FILE },
                  { "3.15.1", TWICE("0"), CELLGATE_OK } };
#undef TWICE

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_model *model = NULL;
        const cellgate_status got = cellgate_model_load(
            keras_file_write(files[i].version, files[i].config, weights),
            &model, &error);

        if (got != files[i].status)
            fail_msg("file %zu: %s", i, error.text);
        if (model != NULL) /* the output is the first of the two calls */
            assert_int_equal(model->node_count, 1);
        cellgate_model_destroy(model);
    }
}

static void models_cannot_nest_without_end(void **state)
{
    enum { DEEP = 40 };
    static const char head[] =
        "{'module': 'keras', 'class_name': 'Sequential', 'config': {'name': "
        "'s', 'build_input_shape': [null, 3], 'layers': [";
    char *config = malloc(DEEP * (sizeof head + 4) + 200);
    char *at = config;

    (void)state;
    assert_non_null(config);
    for (int i = 0; i < DEEP; i++)
        at += sprintf(at, "%s", head);
    at += sprintf(at, "%s", LAYER("Dense", "d", ", 'units': 3"));
    for (int i = 0; i < DEEP; i++)
        at += sprintf(at, "]}}");
    assert_keras_refuses(config, dense, CELLGATE_BAD_FILE, "nested more than");
    free(config);
}

/* Each model calls the one inside it twice: 2^15 calls of a layer. */
static void calls_cannot_multiply_without_end(void **state)
{
    enum { DEEP = 15, ROOM = 1 << 20 };
    char *config = malloc(ROOM), *larger = malloc(ROOM);

    (void)state;
    assert_non_null(config);
    assert_non_null(larger);
    strcpy(config, LAYER("Identity", "m", ""));
    for (int i = 0; i < DEEP; i++) {
        char *end = strrchr(config, '}');

        *end = '\0';
        snprintf(larger, ROOM,
                 "{'module': 'keras', 'class_name': 'Functional', 'config': {"
                 "'name': 'm', 'layers': [%s, %s, 'name': 'm', "
                 "'inbound_nodes': [{'args': [%s]}, {'args': [%s]}, "
                 "{'args': [%s]}]}], 'input_layers': ['x', 0, 0], "
                 "'output_layers': ['m', %d, 0]}}",
                 ROW("x"), config, X, TENSOR("m", "0", "0"),
                 TENSOR("m", "1", "0"), i == 0 ? 2 : 3);
        strcpy(config, larger);
    }
    assert_keras_refuses(config, dense, CELLGATE_BAD_FILE,
                         "more than 65536 layers");
    free(config);
    free(larger);
}

/* A model of many layers, none of them called, is itself called often. */
static void layers_cannot_multiply_without_end(void **state)
{
    enum { WIDE = 700, OFTEN = 100, ROOM = 1 << 20 };
    char *config = malloc(ROOM), *at = config;

    (void)state;
    assert_non_null(config);
    at += sprintf(at,
                  "{'module': 'keras', 'class_name': 'Functional', 'config': {"
                  "'name': 'f', 'layers': [%s, "
                  "{'module': 'keras', 'class_name': 'Functional', 'config': {"
                  "'name': 'm', 'layers': [%s",
                  ROW("x"), ROW("x"));
    for (int i = 0; i < WIDE; i++)
        at += sprintf(at,
                      ", {'class_name': 'Identity', 'config': {}, 'name': "
                      "'i%d', 'inbound_nodes': []}",
                      i);
    at += sprintf(at, "], 'input_layers': ['x', 0, 0], 'output_layers': "
                      "['x', 0, 0]}, 'name': 'm', 'inbound_nodes': [");
    for (int i = 0; i < OFTEN; i++)
        at += sprintf(at, "%s{'args': [%s]}", i > 0 ? ", " : "", X);
    at += sprintf(at, "]}], 'input_layers': ['x', 0, 0], 'output_layers': "
                      "['m', 1, 0]}}");
    assert_true(at - config < ROOM);
    assert_keras_refuses(config, dense, CELLGATE_BAD_FILE,
                         "more than 65536 layers");
    free(config);
}

/* A call on many tensors waits for the end of a chain that the file lists
   backwards: each sweep over the layers looks all of its tensors up again. */
static void lookups_cannot_multiply_without_end(void **state)
{
    enum { WIDE = 1500, LONG = 900, ROOM = 1 << 20 };
    char *config = malloc(ROOM), *at = config;

    (void)state;
    assert_non_null(config);
    at += sprintf(at,
                  "{'module': 'keras', 'class_name': 'Functional', 'config': {"
                  "'name': 'f', 'layers': [%s, {'class_name': 'Identity', "
                  "'config': {'trainable': true}, 'name': 'wide', "
                  "'inbound_nodes': [{'args': [[",
                  ROW("c0"));
    for (int i = 0; i < WIDE; i++)
        at += sprintf(at, "['c0', 0, 0], ");
    at += sprintf(at, "['c%d', 0, 0]]]}]}", LONG);
    for (int i = LONG; i > 0; i--)
        at += sprintf(at,
                      ", {'class_name': 'Identity', 'config': {'trainable': "
                      "true}, 'name': "
                      "'c%d', 'inbound_nodes': [{'args': ['c%d', 0, 0]}]}",
                      i, i - 1);
    at += sprintf(at, "], 'input_layers': ['c0', 0, 0], 'output_layers': "
                      "['wide', 0, 0]}}");
    assert_true(at - config < ROOM);
    assert_keras_refuses(config, dense, CELLGATE_BAD_FILE, "too many tensors");
    free(config);
}

static void only_models_with_a_structure(void **state)
{
    (void)state;
    assert_keras_refuses("{'class_name': 'MyModel', 'module': 'mine', "
                         "'config': {'name': 'm'}}",
                         dense, CELLGATE_UNSUPPORTED, "subclassed model");
    assert_keras_refuses(LAYER("Dense", "d", ", 'units': 3"), dense,
                         CELLGATE_UNSUPPORTED, "Sequential and functional");
    assert_keras_refuses("{}", dense, CELLGATE_BAD_FILE, "lacks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dictionaries_go_by_key),
        cmocka_unit_test(tuples_and_lists_are_flattened),
        cmocka_unit_test(layers_wait_for_what_they_are_called_on),
        cmocka_unit_test(a_layer_called_twice_shares_its_weights),
        cmocka_unit_test(names_stay_apart),
        cmocka_unit_test(the_way_keras_2_wrote_calls),
        cmocka_unit_test(wrong_graphs_are_refused),
        cmocka_unit_test(a_batch_size_is_not_baked_in),
        cmocka_unit_test(inputs_without_an_input_layer),
        cmocka_unit_test(wrong_inputs_are_refused),
        cmocka_unit_test(sequential_models_pass_on_lists),
        cmocka_unit_test(wrong_sequential_models_are_refused),
        cmocka_unit_test(nested_models_are_built_in_place),
        cmocka_unit_test(functional_models_count_a_call_of_their_own),
        cmocka_unit_test(sequential_models_count_by_version),
        cmocka_unit_test(models_cannot_nest_without_end),
        cmocka_unit_test(calls_cannot_multiply_without_end),
        cmocka_unit_test(layers_cannot_multiply_without_end),
        cmocka_unit_test(lookups_cannot_multiply_without_end),
        cmocka_unit_test(only_models_with_a_structure),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
