/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle against numbers that other implementations gave (literals.h). */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/oracle/literals.h"
#include "tests/oracle/oracle.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MOST 128

/* One layer's literals; arrays of both directions follow one another. */
typedef struct layer {
    cellgate_lstm lstm;
    int64_t batch, steps;
    const int32_t *lengths;
    const float *x, *kernel, *recurrent, *bias, *peephole, *projection;
    const float *h0, *c0;
    const double *y, *h, *c;
    size_t y_count, h_count, c_count;
    double tolerance;
} layer;

static cellgate_lstm lstm_of(int64_t input, int64_t hidden, int32_t directions)
{
    cellgate_lstm lstm = { .op = { sizeof lstm, CELLGATE_OP_LSTM, 0 },
                           .input_size = input,
                           .hidden_size = hidden,
                           .directions = directions,
                           .has_bias = 1 };

    lstm.outputs = CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST |
                   CELLGATE_LSTM_H | CELLGATE_LSTM_C;
    for (int d = 0; d < 2; d++) {
        lstm.activations[d][0].kind = CELLGATE_SIGMOID;
        lstm.activations[d][1].kind = CELLGATE_TANH;
        lstm.activations[d][2].kind = CELLGATE_TANH;
    }
    return lstm;
}

static void point_to_weights(cellgate_lstm *lstm, const layer *l)
{
    int64_t i = lstm->input_size, h = lstm->hidden_size;
    int64_t p = lstm->projection_size, r = p > 0 ? p : h;

    lstm->has_peepholes = l->peephole != NULL;
    for (int d = 0; d < lstm->directions; d++) {
        lstm->weights[d] = (cellgate_lstm_weights){
            .kernel = l->kernel + d * i * 4 * h,
            .recurrent_kernel = l->recurrent + d * r * 4 * h,
            .bias = l->bias + d * 4 * h,
            .peephole = l->peephole != NULL ? l->peephole + d * 3 * h : NULL,
            .projection = p > 0 ? l->projection + d * h * r : NULL,
        };
    }
}

static void assert_close(const double *got, const double *wanted, size_t count,
                         double tolerance)
{
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(got[i] - wanted[i]) <= tolerance))
            fail_msg("element %zu: got %.17g, wanted %.17g", i, got[i],
                     wanted[i]);
    }
}

static void check_layer(layer *l)
{
    const cellgate_op *ops[] = { &l->lstm.op };
    cellgate_segment segment = { sizeof segment, 1, 0, ops };
    double y[MOST] = { 0 }, h[MOST] = { 0 }, c[MOST] = { 0 };
    oracle_state state = { l->h0, l->c0, h, c };
    oracle_run run = { .batch = l->batch,
                       .steps = l->steps,
                       .x = l->x,
                       .lengths = l->lengths,
                       .y = y,
                       .states = &state };

    assert_true(l->y_count <= MOST && l->h_count <= MOST);
    point_to_weights(&l->lstm, l);
    assert_int_equal(oracle_segment_run(&segment, &run), 0);
    assert_close(y, l->y, l->y_count, l->tolerance);
    assert_close(h, l->h, l->h_count, l->tolerance);
    assert_close(c, l->c, l->c_count, l->tolerance);
}

#define LAYER(name, input, hidden, directions, rows, time, error)              \
    {                                                                          \
        .lstm = lstm_of(input, hidden, directions), .batch = (rows),           \
        .steps = (time), .x = name##_x, .kernel = name##_kernel,               \
        .recurrent = name##_recurrent, .bias = name##_bias, .h0 = name##_h0,   \
        .c0 = name##_c0, .y = name##_y, .h = name##_h, .c = name##_c,          \
        .y_count = COUNT(name##_y), .h_count = COUNT(name##_h),                \
        .c_count = COUNT(name##_c), .tolerance = (error)                       \
    }

/* Both compute in double precision; their sums run in different orders. */
#define DOUBLES 1e-13
/* The other one computes in float32, on numbers of about 1. */
#define FLOATS 2e-6

static void test_keras(void **state)
{
    layer plain = LAYER(keras_plain, 3, 2, 1, 2, 3, DOUBLES);

    (void)state;
    plain.h0 = plain.c0 = NULL;
    check_layer(&plain);
}

/* Keras 3's hard_sigmoid has 1/6, which a float's alpha rounds by 2^-28. */
static void test_keras_activations(void **state)
{
    layer other = LAYER(keras_relu, 2, 3, 1, 2, 3, 1e-7);
    cellgate_activation *a = other.lstm.activations[0];

    (void)state;
    a[0] = (cellgate_activation){ CELLGATE_HARD_SIGMOID, 1.0f / 6, 0.5f };
    a[1].kind = a[2].kind = CELLGATE_SOFTSIGN;
    check_layer(&other);
}

static void test_onnx_both_directions(void **state)
{
    static const int32_t lengths[] = { 4, 1, 3 };
    layer both = LAYER(onnx_both, 3, 2, 2, 3, 4, FLOATS);

    (void)state;
    both.lengths = lengths;
    check_layer(&both);
}

static void test_onnx_peepholes(void **state)
{
    layer l = LAYER(onnx_peepholes, 2, 3, 1, 2, 3, FLOATS);

    (void)state;
    l.peephole = onnx_peepholes_peephole;
    check_layer(&l);
}

static void test_onnx_coupled(void **state)
{
    layer l = LAYER(onnx_coupled, 2, 3, 1, 2, 3, FLOATS);

    (void)state;
    l.lstm.coupled = 1;
    check_layer(&l);
}

static void test_onnx_clip(void **state)
{
    layer l = LAYER(onnx_clip, 3, 2, 2, 2, 4, FLOATS);

    (void)state;
    l.lstm.clip = 0.375f;
    check_layer(&l);
}

static void test_onnx_everything(void **state)
{
    static const int32_t lengths[] = { 2, 4 };
    static const cellgate_activation activations[2][3] = {
        { { CELLGATE_HARD_SIGMOID, 0.25f, 0.5f },
          { CELLGATE_SCALED_TANH, 1.5f, 0.75f },
          { CELLGATE_AFFINE, 0.5f, 0.25f } },
        { { CELLGATE_SIGMOID, 0, 0 },
          { CELLGATE_LEAKY_RELU, 0.125f, 0 },
          { CELLGATE_TANH, 0, 0 } },
    };
    layer l = LAYER(onnx_everything, 2, 3, 2, 2, 4, FLOATS);

    (void)state;
    l.lengths = lengths;
    l.peephole = onnx_everything_peephole;
    l.lstm.coupled = 1;
    l.lstm.clip = 0.75f;
    memcpy(l.lstm.activations, activations, sizeof activations);
    check_layer(&l);
}

static void test_torch_projection(void **state)
{
    layer one = LAYER(torch_projected, 3, 4, 1, 2, 3, DOUBLES);
    layer two = LAYER(torch_projected_both, 2, 3, 2, 2, 4, DOUBLES);

    (void)state;
    one.lstm.projection_size = two.lstm.projection_size = 2;
    one.projection = torch_projected_projection;
    two.projection = torch_projected_both_projection;
    check_layer(&one);
    check_layer(&two);
}

/* ---- Activations --------------------------------------------------------- */

static void test_activations(void **state)
{
    static const double at[] = { -12, -3, -1, -0.25, 0, 0.25, 1, 3, 12 };
    static const struct {
        cellgate_activation activation;
        const double *wanted;
        double tolerance;
    } table[] = {
        { { CELLGATE_TANH, 0, 0 }, activation_tanh, DOUBLES },
        { { CELLGATE_SIGMOID, 0, 0 }, activation_sigmoid, DOUBLES },
        { { CELLGATE_LINEAR, 0, 0 }, activation_linear, 0 },
        { { CELLGATE_RELU, 0, 0 }, activation_relu, 0 },
        { { CELLGATE_LEAKY_RELU, 0.25f, 0 }, activation_leaky_relu, DOUBLES },
        { { CELLGATE_RELU6, 0, 0 }, activation_relu6, 0 },
        { { CELLGATE_ELU, 0.75f, 0 }, activation_elu, DOUBLES },
        { { CELLGATE_SELU, 0, 0 }, activation_selu, DOUBLES },
        { { CELLGATE_CELU, 1.5f, 0 }, activation_celu, DOUBLES },
        { { CELLGATE_SOFTPLUS, 0, 0 }, activation_softplus, DOUBLES },
        { { CELLGATE_SOFTSIGN, 0, 0 }, activation_softsign, DOUBLES },
        { { CELLGATE_SQUAREPLUS, 4, 0 }, activation_squareplus, DOUBLES },
        { { CELLGATE_SOFT_SHRINK, 0.5f, 0 }, activation_soft_shrink, DOUBLES },
        { { CELLGATE_HARD_SHRINK, 0.5f, 0 }, activation_hard_shrink, 0 },
        { { CELLGATE_SPARSE_PLUS, 0, 0 }, activation_sparse_plus, DOUBLES },
        { { CELLGATE_SILU, 0, 0 }, activation_silu, DOUBLES },
        /* Keras rounds the constants of both to float32. */
        { { CELLGATE_GELU_ERF, 0, 0 }, activation_gelu_erf, 1e-8 },
        { { CELLGATE_GELU_TANH, 0, 0 }, activation_gelu_tanh, 1e-8 },
        { { CELLGATE_TANH_SHRINK, 0, 0 }, activation_tanh_shrink, DOUBLES },
        { { CELLGATE_THRESHOLD, 0.5f, -0.75f }, activation_threshold, 0 },
        { { CELLGATE_SPARSE_SIGMOID, 0, 0 }, activation_sparse_sigmoid, 0 },
        { { CELLGATE_EXPONENTIAL, 0, 0 }, activation_exponential, 1e-9 },
        { { CELLGATE_HARD_SIGMOID, 1.0f / 6, 0.5f },
          activation_hard_sigmoid,
          1e-7 },
        { { CELLGATE_HARD_SILU, 0, 0 }, activation_hard_silu, DOUBLES },
        { { CELLGATE_HARD_TANH, 0, 0 }, activation_hard_tanh, 0 },
        { { CELLGATE_MISH, 0, 0 }, activation_mish, DOUBLES },
        { { CELLGATE_LOG_SIGMOID, 0, 0 }, activation_log_sigmoid, DOUBLES },
    };

    (void)state;
    for (size_t k = 0; k < COUNT(table); k++)
        for (size_t i = 0; i < COUNT(at); i++) {
            double got = oracle_activate(&table[k].activation, at[i]);
            if (!(fabs(got - table[k].wanted[i]) <= table[k].tolerance))
                fail_msg("kind %d at %g: got %.17g, wanted %.17g",
                         (int)table[k].activation.kind, at[i], got,
                         table[k].wanted[i]);
        }
}

static void test_every_activation_keeps_nan(void **state)
{
    (void)state;
    for (int32_t k = 0; k < CELLGATE_ACTIVATION_COUNT; k++) {
        cellgate_activation a = { k, 0.5f, 0.25f };
        assert_true(isnan(oracle_activate(&a, NAN)));
        assert_false(isnan(oracle_activate(&a, 1e4)));
        assert_false(isnan(oracle_activate(&a, -1e4)));
    }
}

static void test_softmax(void **state)
{
    cellgate_softmax softmax = { { sizeof softmax, CELLGATE_OP_SOFTMAX, 0 },
                                 4 };
    const cellgate_op *ops[] = { &softmax.op };
    cellgate_segment segment = { sizeof segment, 1, 0, ops };
    double y[8] = { 0 };
    oracle_run run = {
        .batch = 2, .steps = 1, .takes_rows = 1, .x = softmax_x, .y_last = y
    };

    (void)state;
    assert_int_equal(oracle_segment_run(&segment, &run), 0);
    assert_close(y, softmax_y, 8, DOUBLES);
}

/* ---- What no other implementation tells --------------------------------- */

/* A chain by hand: embedding, dense with relu. */
static void test_chain(void **state)
{
    static const float table[] = { 1, 2, 3, 4, 5, 6 };
    static const float kernel[] = { 1, -1, 0.5f, 1 };
    static const float bias[] = { 0.25f, -4 };
    static const int32_t ids[] = { 2, 0 };
    static const double wanted[] = { 8.25, 0, 2.25, 0 };
    cellgate_embedding embedding = {
        { sizeof embedding, CELLGATE_OP_EMBEDDING, 0 }, 3, 2, table
    };
    cellgate_dense dense = { { sizeof dense, CELLGATE_OP_DENSE, 0 },
                             2,
                             2,
                             1,
                             { CELLGATE_RELU, 0, 0 },
                             kernel,
                             bias };
    const cellgate_op *ops[] = { &embedding.op, &dense.op };
    cellgate_segment segment = { sizeof segment, 2, 0, ops };
    double y[4] = { 0 };
    oracle_run run = { .batch = 1, .steps = 2, .ids = ids, .y = y };

    (void)state;
    assert_int_equal(oracle_segment_run(&segment, &run), 0);
    assert_close(y, wanted, 4, 0);
}

/* A row of length 0: zeros for its outputs, its initial state for h and c. */
static void test_no_steps(void **state)
{
    static const int32_t lengths[] = { 0, 2 };
    layer l = LAYER(keras_relu, 2, 3, 1, 2, 3, 0);
    const cellgate_op *ops[] = { &l.lstm.op };
    cellgate_segment segment = { sizeof segment, 1, 0, ops };
    double y[18] = { 0 }, last[6] = { 0 }, h[6] = { 0 }, c[6] = { 0 };
    oracle_state states = { l.h0, l.c0, h, c };
    oracle_run run = { .batch = 2,
                       .steps = 3,
                       .x = l.x,
                       .lengths = lengths,
                       .y = y,
                       .y_last = last,
                       .states = &states };

    (void)state;
    point_to_weights(&l.lstm, &l);
    assert_int_equal(oracle_segment_run(&segment, &run), 0);
    for (int j = 0; j < 9; j++)
        assert_true(y[j] == 0.0);
    for (int j = 0; j < 3; j++) {
        assert_true(last[j] == 0.0);
        assert_true(h[j] == l.h0[j] && c[j] == l.c0[j]);
        assert_true(y[15 + j] == 0.0);         /* beyond row 1's length */
        assert_true(last[3 + j] == y[12 + j]); /* its second step */
        assert_true(h[3 + j] == last[3 + j]);
    }
}

/* A reversed layer is a forward one over the reversed row. */
static void test_reversed(void **state)
{
    layer l = LAYER(keras_plain, 3, 2, 1, 2, 3, 0);
    const cellgate_op *ops[] = { &l.lstm.op };
    cellgate_segment segment = { sizeof segment, 1, 0, ops };
    float turned[18];
    double forward[12] = { 0 }, backward[12] = { 0 };
    oracle_run run = { .batch = 2, .steps = 3, .x = turned, .y = forward };

    (void)state;
    for (int b = 0; b < 2; b++)
        for (int t = 0; t < 3; t++)
            for (int k = 0; k < 3; k++)
                turned[(b * 3 + t) * 3 + k] = l.x[(b * 3 + 2 - t) * 3 + k];
    point_to_weights(&l.lstm, &l);
    assert_int_equal(oracle_segment_run(&segment, &run), 0);
    l.lstm.reverse = 1;
    run.x = l.x;
    run.y = backward;
    assert_int_equal(oracle_segment_run(&segment, &run), 0);
    for (int b = 0; b < 2; b++)
        for (int t = 0; t < 3; t++)
            for (int k = 0; k < 2; k++)
                assert_true(backward[(b * 3 + t) * 2 + k] ==
                            forward[(b * 3 + 2 - t) * 2 + k]);
}

/* Disturbed runs differ a little, repeat for a seed, and keep the exact zeros
 * and states exact. */
static void test_noise(void **state)
{
    oracle_noise noise = { .seed = 5, .operand = 1e-6, .result = 1e-6 };
    layer l = LAYER(keras_plain, 3, 2, 1, 2, 3, 0);
    const cellgate_op *ops[] = { &l.lstm.op };
    cellgate_segment segment = { sizeof segment, 1, 0, ops };
    double first[12] = { 0 }, second[12] = { 0 };
    oracle_run run = { .batch = 2, .steps = 3, .x = l.x, .noise = &noise };
    double most = 0;

    (void)state;
    point_to_weights(&l.lstm, &l);
    run.y = first;
    assert_int_equal(oracle_segment_run(&segment, &run), 0);
    run.y = second;
    assert_int_equal(oracle_segment_run(&segment, &run), 0);
    for (int i = 0; i < 12; i++) {
        double change = fabs(first[i] - keras_plain_y[i]);
        assert_true(first[i] == second[i]);
        most = change > most ? change : most;
    }
    assert_true(most > 1e-8 && most < 1e-4);
}

static void test_nonsense_is_refused(void **state)
{
    cellgate_lstm rows = lstm_of(2, 3, 1), next = lstm_of(3, 2, 1);
    cellgate_softmax wide = { { sizeof wide, CELLGATE_OP_SOFTMAX, 0 }, 9 };
    const cellgate_op *after_rows[] = { &rows.op, &next.op };
    const cellgate_op *other_size[] = { &rows.op, &wide.op };
    cellgate_segment segment = { sizeof segment, 2, 0, after_rows };
    layer l = LAYER(keras_relu, 2, 3, 1, 2, 3, 0);
    oracle_run run = { .batch = 2, .steps = 3, .x = l.x };

    (void)state;
    point_to_weights(&rows, &l);
    rows.outputs = CELLGATE_LSTM_LAST;
    assert_int_equal(oracle_segment_run(&segment, &run), -1);
    segment.ops = other_size;
    assert_int_equal(oracle_segment_run(&segment, &run), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keras),
        cmocka_unit_test(test_keras_activations),
        cmocka_unit_test(test_onnx_both_directions),
        cmocka_unit_test(test_onnx_peepholes),
        cmocka_unit_test(test_onnx_coupled),
        cmocka_unit_test(test_onnx_clip),
        cmocka_unit_test(test_onnx_everything),
        cmocka_unit_test(test_torch_projection),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_every_activation_keeps_nan),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_no_steps),
        cmocka_unit_test(test_reversed),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
