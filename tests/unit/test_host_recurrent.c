/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GRU and SimpleRNN on the host against literal numbers. They come from a few
 * lines of NumPy in float64 that follow the formulas in model.h, on the weights
 * below.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "tests/unit/host_call.h"

static const float input[6] = { 0.5f, -1, 1, 0.25f, -0.75f, 2 };
static const float initial[2] = { 0.25f, -0.5f };
static float kernel[12], recurrent[12], bias[12];
static const float simple_kernel[4] = { -0.375f, -0.125f, 0.125f, 0.375f };
static const float simple_recurrent[4] = { -0.5f, 0, 0.5f, -0.5f };
static const float simple_bias[2] = { 0.1f, -0.2f };

static int fill_weights(void **state)
{
    (void)state;
    for (int k = 0; k < 12; k++) {
        kernel[k] = ((float)k - 5.5f) / 10;
        recurrent[k] = (float)(k % 5 - 2) / 4;
        bias[k] = (float)(k % 3 - 1) / 2;
    }
    return 0;
}

typedef struct options {
    cg_kind kind; /* CG_GRU, or CG_SIMPLE_RNN */
    const uint8_t *mask;
    const float *h0;
    bool before, reverse, no_bias, zero_masked;
} options;

typedef struct results {
    float sequence[6], last[2], h[2];
} results;

static void add_weights(host_call *call, const options *with)
{
    const bool gru = with->kind == CG_GRU;

    host_call_weight(call, gru ? kernel : simple_kernel);
    host_call_weight(call, gru ? recurrent : simple_recurrent);
    host_call_weight(call, with->no_bias ? NULL : gru ? bias : simple_bias);
}

static results run(options with)
{
    results got;
    host_call call;

    memset(&got, 0x5a, sizeof got);
    host_call_init(&call, with.kind);
    call.node.as.recurrent = (cg_recurrent){
        .input_size = 2,
        .hidden_size = 2,
        .has_bias = !with.no_bias,
        .reset_after = !with.before,
        .reverse = with.reverse,
        .zero_masked = with.zero_masked,
        .gate.kind = CELLGATE_SIGMOID,
        .activation.kind = CELLGATE_TANH,
    };
    host_call_input(&call, CELLGATE_F32, input, 3, 1, 3, 2);
    host_call_input(&call, CELLGATE_U8, with.mask, 2, 1, 3, 0);
    host_call_input(&call, CELLGATE_F32, with.h0, 2, 1, 2, 0);
    host_call_output(&call, CELLGATE_F32, got.sequence, 3, 1, 3, 2);
    host_call_output(&call, CELLGATE_F32, got.last, 2, 1, 2, 0);
    host_call_output(&call, CELLGATE_F32, got.h, 2, 1, 2, 0);
    add_weights(&call, &with);
    assert_true(cg_host_scratch(&call.node, call.shapes) <=
                sizeof call.scratch);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    return got;
}

static void assert_near(const float *got, const double *wanted, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (!(fabs((double)got[k] - wanted[k]) < 1e-6))
            fail_msg("number %zu is %.9g, not %.9g", k, (double)got[k],
                     wanted[k]);
}

/* The sequence; last output and state are those of its step `last`. */
static void expect(options with, const double sequence[6], size_t last)
{
    const results got = run(with);

    assert_near(got.sequence, sequence, 6);
    assert_near(got.last, sequence + 2 * last, 2);
    assert_near(got.h, sequence + 2 * last, 2);
}

static void gru(void **state)
{
    (void)state;
    expect((options){ .kind = CG_GRU },
           (double[]){ -0.380430299, 0.0107213034, -0.211140061, 0.368717404,
                       0.314783737, 0.564835005 },
           2);
    expect((options){ .kind = CG_GRU, .h0 = initial },
           (double[]){ -0.17475588, -0.193304311, -0.0596907027, 0.286892219,
                       0.41705189, 0.515150289 },
           2);
    expect((options){ .kind = CG_GRU, .h0 = initial, .no_bias = true },
           (double[]){ -0.109624367, -0.511558868, -0.0202772136, -0.113399808,
                       0.272130339, 0.209147363 },
           2);
}

static void gru_with_reset_before_the_product(void **state)
{
    (void)state;
    expect((options){ .kind = CG_GRU, .before = true },
           (double[]){ -0.334819971, -0.0443668384, -0.185301451, 0.326556793,
                       0.244401453, 0.529033204 },
           2);
    expect(
        (options){
            .kind = CG_GRU, .before = true, .h0 = initial, .reverse = true },
        (double[]){ -0.288934507, 0.0143441811, 0.203262964, 0.264195373,
                    0.546517917, 0.0125407953 },
        0);
}

static void simple_rnn(void **state)
{
    (void)state;
    expect((options){ .kind = CG_SIMPLE_RNN },
           (double[]){ -0.209358169, -0.563194928, -0.397493356, 0.0503049656,
                       0.693749948, 0.550150784 },
           2);
    expect((options){ .kind = CG_SIMPLE_RNN, .h0 = initial, .reverse = true },
           (double[]){ -0.438539056, -0.356891252, -0.0125211997, -0.528362317,
                       0.250784699, 0.713240991 },
           0);
}

/* Before the first valid step the output is zero, not the initial state. */
static void masks(void **state)
{
    static const uint8_t middle[3] = { 0, 1, 0 };
    const double repeated[6] = { 0,           0,           0.209488201,
                                 0.177151253, 0.209488201, 0.177151253 };
    const double zeroed[6] = { 0, 0, 0.209488201, 0.177151253, 0, 0 };
    options with = { .kind = CG_GRU, .h0 = initial, .mask = middle };
    results got;

    (void)state;
    expect(with, repeated, 2);
    with.zero_masked = true;
    got = run(with);
    assert_near(got.sequence, zeroed, 6);
    assert_near(got.last, zeroed, 2);
    assert_near(got.h, repeated + 4, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gru),
        cmocka_unit_test(gru_with_reset_before_the_product),
        cmocka_unit_test(simple_rnn),
        cmocka_unit_test(masks),
    };

    return cmocka_run_group_tests(tests, fill_weights, NULL);
}
