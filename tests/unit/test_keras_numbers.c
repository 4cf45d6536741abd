/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The literal values of Keras's own tests of LSTM and Bidirectional: keras
 * 3.15.1, keras/src/layers/rnn/lstm_test.py (correctness, statefulness,
 * initial state, masking) and bidirectional_test.py (correctness, statefulness,
 * initial state, masking, returned states). There, kernels are 0.01, recurrent
 * kernels 0.02, biases 0.03 and those of forget gates 1 unless said otherwise,
 * and inputs count from 0. The bound is theirs too.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/keras_file.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/session_rig.h"

#define CELL_WEIGHTS(path, features, units, gates)                             \
    { path "/cell/vars/0", 2, { features, (gates) * (units) } },               \
        { path "/cell/vars/1", 2, { units, (gates) * (units) } },              \
    {                                                                          \
        path "/cell/vars/2", 1,                                                \
        {                                                                      \
            (gates) * (units)                                                  \
        }                                                                      \
    }
#define GRU_WEIGHTS(path, features, units)                                     \
    { path "/cell/vars/0", 2, { features, 3 * (units) } },                     \
        { path "/cell/vars/1", 2, { units, 3 * (units) } },                    \
    {                                                                          \
        path "/cell/vars/2", 2,                                                \
        {                                                                      \
            2, 3 * (units)                                                     \
        }                                                                      \
    }
#define END                                                                    \
    {                                                                          \
        NULL, 0,                                                               \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

#define X TENSOR("x", "0", "0")
#define X_SERIES INPUT("x", "[null, null, 4]")
#define X_TRIPLES INPUT("x", "[null, null, 3]")
#define X_IN "[['x', 0, 0]]"
#define ONE_OUT "[['y', 0, 0]]"
#define MODEL(series, class_name, options)                                     \
    FUNCTIONAL(series ", " CALLED(class_name, "y", options, X, ""), X_IN,      \
               ONE_OUT)
#define BOTH(class_name, options, rest)                                        \
    ", 'layer': " LAYER(class_name, "inner", ", 'units': 2" options) rest

static const char config[] = "[device cpu]\nplugin = openmp\n";
static const char *const devices[] = { "cpu", "host" };
static cellgate_runtime *runtime;

/* One of Keras's checks. */
typedef struct keras_check {
    const char *model;
    const keras_weight *weights;
    float forget; /* bias of forget gates; 0: 1 */
    /* Of a layer that is called backward; 0: as the other one. */
    float backward_kernel, backward_bias;
    int64_t rows, steps, features;
    const uint8_t *mask;
    int states; /* further inputs: state i counts by i + 1, or by 1 */
    bool equal_states;
    int calls; /* of a stream; 0: one, without */
    int outputs;
    const float *expected;
} keras_check;

static float constant(const cg_node *node, const cg_weight *weight,
                      const keras_check *check, int64_t column)
{
    const bool backward = strstr(node->name, ":backward") != NULL;
    const int64_t hidden =
        node->kind == CG_LSTM ? node->as.lstm.shape.hidden_size : 0;

    if (strstr(weight->name, "recurrent_kernel") != NULL)
        return 0.02f;
    if (strstr(weight->name, "kernel") != NULL)
        return backward && check->backward_kernel != 0 ? check->backward_kernel
                                                       : 0.01f;
    if (hidden != 0 && column / hidden == 1)
        return check->forget != 0 ? check->forget : 1;
    return backward && check->backward_bias != 0 ? check->backward_bias : 0.03f;
}

/* Weights live as the model does, and are the test's to set. */
static void set_weights(const cellgate_model *model, const keras_check *check)
{
    for (size_t i = 0; i < model->node_count; i++)
        for (size_t j = 0; j < model->nodes[i].weight_count; j++) {
            const cg_weight *weight = &model->nodes[i].weights[j];
            const int64_t columns =
                weight->rank == 0 ? 1 : weight->shape[weight->rank - 1];
            float *data = (float *)(uintptr_t)weight->data;
            int64_t size = data != NULL;

            for (int32_t axis = 0; axis < weight->rank; axis++)
                size *= weight->shape[axis];
            for (int64_t k = 0; k < size; k++)
                data[k] =
                    constant(&model->nodes[i], weight, check, k % columns);
        }
}

static void fill_request(rig_request *request, const keras_check *check)
{
    const size_t count = (size_t)(check->rows * check->steps * check->features);

    for (size_t k = 0; k < count; k++)
        ((float *)request->inputs[0].tensor.data)[k] = (float)k;
    request->inputs[0].mask = check->mask;
    for (int i = 0; i < check->states; i++) {
        float *state = request->inputs[1 + i].tensor.data;

        for (int k = 0; k < 4; k++)
            state[k] = (float)(check->equal_states ? k : k * (i + 1));
    }
}

static void expect_numbers(const rig_request *request, const keras_check *check)
{
    size_t count;
    float *outputs = rig_outputs(request, &count);

    assert_int_equal(request->request.output_count, check->outputs);
    for (size_t k = 0; k < count; k++) {
        const double expected = (double)check->expected[k];

        if (fabs((double)outputs[k] - expected) > 1e-5 + 1e-5 * fabs(expected))
            fail_msg("number %zu is %.8g, not %.8g", k, (double)outputs[k],
                     expected);
    }
    free(outputs);
}

static void run_check(cellgate_session *session, const cellgate_model *model,
                      const keras_check *check)
{
    cellgate_stream *stream = NULL;
    rig_request request;
    uint64_t random = 1;

    rig_request_init(&request, session, model, check->rows, check->steps, 0,
                     &random);
    fill_request(&request, check);
    if (check->calls > 0)
        assert_int_equal(
            cellgate_stream_create(session, check->rows, &stream, NULL),
            CELLGATE_OK);
    request.request.stream = stream;
    for (int again = 0; again < (stream != NULL ? 2 : 1); again++) {
        for (int call = 0; call < (stream != NULL ? check->calls : 1); call++)
            rig_run(session, &request, NULL);
        expect_numbers(&request, check);
        if (stream != NULL)
            assert_int_equal(cellgate_stream_reset(stream, NULL), CELLGATE_OK);
    }
    request.inputs[0].mask = NULL;
    cellgate_stream_destroy(stream);
    rig_request_finish(&request);
}

static void expect(const keras_check *check)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (keras_file_load(check->model, check->weights, &model, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    set_weights(model, check);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        cellgate_session *session =
            rig_session(runtime, model, devices[i], NULL);

        run_check(session, model, check);
        cellgate_session_destroy(session);
    }
    cellgate_model_destroy(model);
}

/* ---- lstm_test.py ------------------------------------------------------- */

static const keras_weight lstm3[] = { CELL_WEIGHTS("layers/lstm", 4, 3, 4),
                                      END };
static const keras_weight lstm3_no_bias[] = {
    { "layers/lstm/cell/vars/0", 2, { 4, 12 } },
    { "layers/lstm/cell/vars/1", 2, { 3, 12 } },
    END
};
static const keras_weight lstm4[] = { CELL_WEIGHTS("layers/lstm", 4, 4, 4),
                                      END };
static const keras_weight lstm2[] = { CELL_WEIGHTS("layers/lstm", 3, 2, 4),
                                      END };

#define THREE(a, b, c)                                                         \
    {                                                                          \
        a, a, a, b, b, b, c, c, c                                              \
    }

static void lstm_correctness(void **state)
{
    static const struct {
        const char *options;
        float forget;
        float expected[9];
    } cases[] = {
        { MODEL(X_SERIES, "LSTM", ", 'units': 3"), 1,
          THREE(0.6288687f, 0.86899155f, 0.9460773f) },
        { MODEL(X_SERIES, "LSTM", ", 'units': 3, 'implementation': 2"), 1,
          THREE(0.6288687f, 0.86899155f, 0.9460773f) },
        { MODEL(X_SERIES, "LSTM", ", 'units': 3, 'go_backwards': true"), 1,
          THREE(0.35622165f, 0.74789524f, 0.8872726f) },
        { MODEL(X_SERIES, "LSTM", ", 'units': 3, 'unroll': true"), 1,
          THREE(0.6288687f, 0.86899155f, 0.9460773f) },
        { MODEL(X_SERIES, "LSTM", ", 'units': 3, 'unit_forget_bias': false"),
          0.03f, THREE(0.57019705f, 0.8661914f, 0.9459622f) },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(&(keras_check){ .model = cases[i].options,
                               .weights = lstm3,
                               .forget = cases[i].forget,
                               .rows = 3,
                               .steps = 6,
                               .features = 4,
                               .outputs = 1,
                               .expected = cases[i].expected });
    expect(&(keras_check){
        .model = MODEL(X_SERIES, "LSTM", ", 'units': 3, 'use_bias': false"),
        .weights = lstm3_no_bias,
        .rows = 3,
        .steps = 6,
        .features = 4,
        .outputs = 1,
        .expected = (float[])THREE(0.54986924f, 0.86226785f, 0.9443936f) });
}

static void lstm_statefulness(void **state)
{
    static const float expected[] = { 0.3124785f, 0.3124785f, 0.3124785f,
                                      0.3124785f, 0.6863672f, 0.6863672f,
                                      0.6863672f, 0.6863672f };

    (void)state;
    expect(&(keras_check){
        .model = MODEL(X_SERIES, "LSTM", ", 'units': 4, 'stateful': true"),
        .weights = lstm4,
        .rows = 2,
        .steps = 3,
        .features = 4,
        .calls = 2,
        .outputs = 1,
        .expected = expected });
}

#define STARTED(options)                                                       \
    FUNCTIONAL(                                                                \
        X_TRIPLES                                                              \
        ", " INPUT("h", "[null, 2]") ", " INPUT("c", "[null, 2]") ", " CALLED( \
            "LSTM", "y", ", 'units': 2" options, X,                            \
            "'initial_state': [" TENSOR("h", "0", "0") ", " TENSOR("c", "0",   \
                                                                   "0") "]"),  \
        "[['x', 0, 0], ['h', 0, 0], ['c', 0, 0]]", ONE_OUT)

static void lstm_initial_state(void **state)
{
    keras_check check = { .model = STARTED(""),
                          .weights = lstm2,
                          .rows = 2,
                          .steps = 4,
                          .features = 3,
                          .states = 2,
                          .equal_states = true,
                          .outputs = 1 };

    (void)state;
    check.expected =
        (float[]){ 0.20574439f, 0.3558822f, 0.64930826f, 0.66276f };
    expect(&check);
    check.model = STARTED(", 'go_backwards': true");
    check.expected =
        (float[]){ 0.13281618f, 0.2790356f, 0.5839337f, 0.5992567f };
    expect(&check);
}

static void lstm_masking(void **state)
{
    static const uint8_t mask[] = { 1, 1, 1, 0, 1, 1, 0, 0 };
    static const uint8_t backwards[] = { 0, 1, 1, 1, 0, 0, 1, 1 };
    static const float last[] = { 0.11755939f, 0.11755939f, 0.28556206f,
                                  0.28556206f };
    static const float repeated[] = { 0.01588910f, 0.01588910f, 0.05552048f,
                                      0.05552048f, 0.11755939f, 0.11755939f,
                                      0.11755939f, 0.11755939f, 0.14185596f,
                                      0.14185596f, 0.28556206f, 0.28556206f,
                                      0.28556206f, 0.28556206f, 0.28556206f,
                                      0.28556206f };
    static const float zeroed[] = {
        0.01588910f, 0.01588910f, 0.05552048f, 0.05552048f,
        0.11755939f, 0.11755939f, 0,           0,
        0.14185596f, 0.14185596f, 0.28556206f, 0.28556206f,
        0,           0,           0,           0
    };
    static const float reversed[] = { 0.15341201f, 0.15341201f, 0.3844719f,
                                      0.3844719f };
    const struct {
        const char *model;
        const uint8_t *mask;
        const float *expected;
    } cases[] = {
        { MODEL(X_TRIPLES, "LSTM", ", 'units': 2, 'unroll': true"), mask,
          last },
        { MODEL(X_TRIPLES, "LSTM", ", 'units': 2, 'return_sequences': true"),
          mask, repeated },
        { MODEL(X_TRIPLES, "LSTM",
                ", 'units': 2, 'return_sequences': true, "
                "'zero_output_for_mask': true"),
          mask, zeroed },
        { MODEL(X_TRIPLES, "LSTM", ", 'units': 2, 'go_backwards': true"),
          backwards, reversed },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(&(keras_check){ .model = cases[i].model,
                               .weights = lstm2,
                               .rows = 2,
                               .steps = 4,
                               .features = 3,
                               .mask = cases[i].mask,
                               .outputs = 1,
                               .expected = cases[i].expected });
}

/* ---- bidirectional_test.py ---------------------------------------------- */

#define FORWARD "layers/bidirectional/forward_layer"
#define BACKWARD "layers/bidirectional/backward_layer"

static const keras_weight simple_pair[] = { CELL_WEIGHTS(FORWARD, 4, 2, 1),
                                            CELL_WEIGHTS(BACKWARD, 4, 2, 1),
                                            END };
static const keras_weight gru_pair4[] = { GRU_WEIGHTS(FORWARD, 4, 2),
                                          GRU_WEIGHTS(BACKWARD, 4, 2), END };
static const keras_weight gru_pair3[] = { GRU_WEIGHTS(FORWARD, 3, 2),
                                          GRU_WEIGHTS(BACKWARD, 3, 2), END };
static const keras_weight lstm_pair[] = { CELL_WEIGHTS(FORWARD, 3, 2, 4),
                                          CELL_WEIGHTS(BACKWARD, 3, 2, 4),
                                          END };

static void bidirectional_correctness(void **state)
{
    keras_check check = { .weights = simple_pair,
                          .rows = 2,
                          .steps = 3,
                          .features = 4,
                          .outputs = 1 };

    (void)state;
    check.model = MODEL(X_SERIES, "Bidirectional", BOTH("SimpleRNN", "", ""));
    check.expected =
        (float[]){ 0.39687276f, 0.39687276f, 0.10004295f, 0.10004295f,
                   0.7237238f,  0.7237238f,  0.53391594f, 0.53391594f };
    expect(&check);
    check.model = MODEL(X_SERIES, "Bidirectional",
                        BOTH("SimpleRNN", "", ", 'merge_mode': 'ave'"));
    check.expected =
        (float[]){ 0.24845785f, 0.24845785f, 0.6288199f, 0.6288199f };
    expect(&check);
    check.model = FUNCTIONAL(
        X_SERIES
        ", " CALLED("Bidirectional", "y",
                    BOTH("SimpleRNN", "", ", 'merge_mode': null"), X, ""),
        X_IN, "[['y', 0, 0], ['y', 0, 1]]");
    check.outputs = 2;
    check.expected =
        (float[]){ 0.39687276f, 0.39687276f, 0.7237238f,  0.7237238f,
                   0.10004295f, 0.10004295f, 0.53391594f, 0.53391594f };
    expect(&check);
    check.model = MODEL(
        X_SERIES, "Bidirectional",
        BOTH("SimpleRNN", "",
             ", 'merge_mode': 'mul', 'backward_layer': " LAYER(
                 "SimpleRNN", "back", ", 'units': 2, 'go_backwards': true")));
    check.backward_kernel = 0.03f;
    check.backward_bias = 0.01f;
    check.outputs = 1;
    check.expected =
        (float[]){ 0.08374989f, 0.08374989f, 0.6740834f, 0.6740834f };
    expect(&check);
}

static void bidirectional_gru(void **state)
{
    static const uint8_t mask[] = { 1, 1, 0, 1, 1, 0, 0, 1 };

    (void)state;
    expect(&(keras_check){
        .model = MODEL(
            X_SERIES, "Bidirectional",
            BOTH("GRU", ", 'return_sequences': true", ", 'merge_mode': 'sum'")),
        .weights = gru_pair4,
        .rows = 2,
        .steps = 3,
        .features = 4,
        .outputs = 1,
        .expected =
            (float[]){ 0.20937867f, 0.20937867f, 0.34462988f, 0.34462988f,
                       0.40290534f, 0.40290534f, 0.59829646f, 0.59829646f,
                       0.6734641f, 0.6734641f, 0.6479671f, 0.6479671f } });
    expect(&(keras_check){
        .model = MODEL(X_TRIPLES, "Bidirectional", BOTH("GRU", "", "")),
        .weights = gru_pair3,
        .rows = 2,
        .steps = 4,
        .features = 3,
        .mask = mask,
        .outputs = 1,
        .expected =
            (float[]){ 0.19393763f, 0.19393763f, 0.11669192f, 0.11669192f,
                       0.30818558f, 0.30818558f, 0.28380975f, 0.28380975f } });
}

#define BOTH_STARTED                                                                                       \
    FUNCTIONAL(                                                                                            \
        X_TRIPLES                                                                                          \
        ", " INPUT("a", "[null, 2]") ", " INPUT("b", "[null, 2]") ", " INPUT("c", "[null, 2]") ", " INPUT( \
            "d", "[null,"                                                                                  \
                 " 2]") ", " CALLED("Bidirectional", "y",                                                  \
                                    BOTH("LSTM", "", ""), X,                                               \
                                    "'initial_state': [" TENSOR("a", "0", "0") ", " TENSOR(                \
                                        "b", "0",                                                          \
                                        "0") ", " TENSOR("c", "0",                                         \
                                                         "0") ", " TENSOR("d",                             \
                                                                          "0",                             \
                                                                          "0") "]"),                       \
        "[['x', 0, 0], ['a', 0, 0], ['b', 0, 0], ['c', 0, 0], ['d', 0, 0]]",                               \
        ONE_OUT)

static void bidirectional_states(void **state)
{
    keras_check check = {
        .weights = lstm_pair, .rows = 2, .steps = 4, .features = 3, .outputs = 1
    };

    (void)state;
    check.model = MODEL(X_TRIPLES, "Bidirectional",
                        BOTH("LSTM", ", 'stateful': true", ""));
    check.calls = 2;
    check.expected =
        (float[]){ 0.26234663f, 0.26234663f, 0.16959146f, 0.16959146f,
                   0.6137073f,  0.6137073f,  0.5381646f,  0.5381646f };
    expect(&check);
    check.model = BOTH_STARTED;
    check.calls = 0;
    check.states = 4;
    check.expected =
        (float[]){ 0.20794602f, 0.4577124f, 0.14046375f, 0.48191673f,
                   0.6682636f,  0.6711909f, 0.60943645f, 0.60950446f };
    expect(&check);
    check.model = FUNCTIONAL(
        X_TRIPLES
        ", " CALLED("Bidirectional", "y",
                    BOTH("LSTM", ", 'return_state': true", ""), X, ""),
        X_IN,
        "[['y', 0, 0], ['y', 0, 1], ['y', 0, 2], ['y', 0, 3], ['y', 0, 4]]");
    check.states = 0;
    check.outputs = 5;
    check.expected = (float[]){
        0.1990008f,  0.1990008f,  0.12659755f, 0.12659755f,
        0.52335435f, 0.52335435f, 0.44717982f, 0.44717982f, /* output */
        0.1990008f,  0.1990008f,  0.52335435f, 0.52335435f, /* forward h */
        0.35567185f, 0.35567185f, 1.0492687f,  1.0492687f,  /* forward c */
        0.12659755f, 0.12659755f, 0.44717982f, 0.44717982f, /* backward h */
        0.2501858f,  0.2501858f,  0.941473f,   0.941473f    /* backward c */
    };
    expect(&check);
}

static int set_up(void **state)
{
    runtime = rig_runtime(config);
    return scratch_folder_setup(state);
}

static int tear_down(void **state)
{
    cellgate_runtime_destroy(runtime);
    return scratch_folder_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm_correctness),
        cmocka_unit_test(lstm_statefulness),
        cmocka_unit_test(lstm_initial_state),
        cmocka_unit_test(lstm_masking),
        cmocka_unit_test(bidirectional_correctness),
        cmocka_unit_test(bidirectional_gru),
        cmocka_unit_test(bidirectional_states),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
