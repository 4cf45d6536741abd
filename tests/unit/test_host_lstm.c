/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host LSTM against literal numbers. They come from a few lines of NumPy
 * in float64 that follow the formulas in plugin.h, on the weights below.
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
static float kernel[16], recurrent[16], bias[8];
static const float peephole[6] = { 0.1f, 0.2f, 0.3f, -0.4f, -0.5f, 0.6f };
static const float projection[2] = { 2, -1 };

static int fill_weights(void **state)
{
    (void)state;
    for (int k = 0; k < 16; k++) {
        kernel[k] = ((float)k - 7.5f) / 10;
        recurrent[k] = (float)(k % 5 - 2) / 4;
    }
    for (int k = 0; k < 8; k++)
        bias[k] = (float)(k % 3 - 1) / 2;
    return 0;
}

typedef struct lstm_results {
    float sequence[24], last[8], h[2][4], c[2][4];
} lstm_results;

typedef struct lstm_options {
    const uint8_t *mask;
    const float *h0, *c0;
    bool reverse, coupled, peepholes, projected, zero_masked;
    float clip;
    int64_t batch;
    const float *x;
    int32_t directions;
} lstm_options;

static void add_direction_weights(host_call *call, const lstm_options *options)
{
    host_call_weight(call, kernel);
    host_call_weight(call, recurrent);
    host_call_weight(call, bias);
    host_call_weight(call, options->peepholes ? peephole : NULL);
    host_call_weight(call, options->projected ? projection : NULL);
}

static void shape_init(cellgate_lstm *shape, const lstm_options *options)
{
    shape->input_size = 2;
    shape->hidden_size = 2;
    shape->projection_size = options->projected ? 1 : 0;
    shape->directions = options->directions ? options->directions : 1;
    shape->reverse = options->reverse;
    shape->has_bias = 1;
    shape->has_peepholes = options->peepholes;
    shape->coupled = options->coupled;
    shape->clip = options->clip;
    for (int direction = 0; direction < 2; direction++)
        shape->activations[direction][0].kind = CELLGATE_SIGMOID;
}

static void run_lstm(const lstm_options *options, lstm_results *results)
{
    int64_t batch = options->batch ? options->batch : 1;
    int64_t width = options->projected ? 1 : 2;
    host_call call;
    cellgate_lstm *shape = &call.node.as.lstm.shape;

    memset(results, 0x5a, sizeof *results);
    host_call_init(&call, CG_LSTM);
    shape_init(shape, options);
    call.node.as.lstm.zero_masked = options->zero_masked;
    host_call_input(&call, CELLGATE_F32, options->x ? options->x : input, 3,
                    batch, 3, 2);
    host_call_input(&call, CELLGATE_U8, options->mask, 2, batch, 3, 0);
    host_call_input(&call, CELLGATE_F32, options->h0, 2, batch, width, 0);
    host_call_input(&call, CELLGATE_F32, options->c0, 2, batch, 2, 0);
    host_call_output(&call, CELLGATE_F32, results->sequence, 3, batch, 3,
                     width * shape->directions);
    host_call_output(&call, CELLGATE_F32, results->last, 2, batch,
                     width * shape->directions, 0);
    for (int direction = 0; direction < shape->directions; direction++) {
        host_call_output(&call, CELLGATE_F32, results->h[direction], 2, batch,
                         width, 0);
        host_call_output(&call, CELLGATE_F32, results->c[direction], 2, batch,
                         2, 0);
        add_direction_weights(&call, options);
    }
    assert_true(cg_host_scratch(&call.node, call.shapes) <=
                sizeof call.scratch);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
}

static void assert_near(const float *got, const double *wanted, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (!(fabs((double)got[k] - wanted[k]) < 1e-6))
            fail_msg("number %zu is %.9g, not %.9g", k, (double)got[k],
                     wanted[k]);
}

static void plain(void **state)
{
    const double sequence[6] = { -0.0354628498, -0.0209193236, -0.0515148709,
                                 0.0608101911,  0.235808786,   0.511320983 };
    const double c[2] = { 0.338882949, 0.732521436 };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ 0 }, &results);
    assert_near(results.sequence, sequence, 6);
    assert_near(results.last, sequence + 4, 2);
    assert_near(results.h[0], sequence + 4, 2);
    assert_near(results.c[0], c, 2);
}

static void reversed_keeps_time_order(void **state)
{
    const double sequence[6] = { -0.0154708525, 0.00347505394, 0.0738426504,
                                 0.147230656,   0.297643877,   0.470450167 };
    const double c[2] = { -0.0654032128, 0.0115947224 };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .reverse = true }, &results);
    assert_near(results.sequence, sequence, 6);
    assert_near(results.last, sequence, 2);
    assert_near(results.h[0], sequence, 2);
    assert_near(results.c[0], c, 2);
}

static void coupled_gates(void **state)
{
    const double sequence[6] = { -0.0354628498, -0.0209193236, -0.0671167608,
                                 0.048357801,   0.253866274,   0.489430586 };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .coupled = true }, &results);
    assert_near(results.sequence, sequence, 6);
}

static void clipped_gates(void **state)
{
    const double sequence[6] = { -0.065208483, -0.025041005, -0.0708253315,
                                 0.0656761634, 0.0858292518, 0.217125146 };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .clip = 0.5f }, &results);
    assert_near(results.sequence, sequence, 6);
}

static void peepholes(void **state)
{
    const double sequence[6] = { -0.0376673137, -0.0203527944, -0.0528154249,
                                 0.0621183124,  0.224422899,   0.5481884 };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .peepholes = true }, &results);
    assert_near(results.sequence, sequence, 6);
}

static void initial_state(void **state)
{
    const float h0[2] = { 0.5f, -0.5f }, c0[2] = { 1, -2 };
    const double sequence[6] = { 0.0748619809,  -0.238119976, 0.0735524326,
                                 -0.0824529446, 0.382630872,  0.408033233 };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .h0 = h0, .c0 = c0 }, &results);
    assert_near(results.sequence, sequence, 6);
}

static void projected(void **state)
{
    const double sequence[3] = { -0.0500063759, -0.168423046, -0.0518029026 };
    const double c[2] = { 0.333892788, 0.737926632 };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .projected = true }, &results);
    assert_near(results.sequence, sequence, 3);
    assert_near(results.h[0], sequence + 2, 1);
    assert_near(results.c[0], c, 2);
}

static const uint8_t middle[3] = { 0, 1, 0 };
static const double middle_h[2] = { -0.0199285345, 0.0689526464 };

static void masked_steps_repeat(void **state)
{
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .mask = middle }, &results);
    assert_near(results.sequence, (double[2]){ 0, 0 }, 2);
    assert_near(results.sequence + 2, middle_h, 2);
    assert_near(results.sequence + 4, middle_h, 2);
    assert_near(results.last, middle_h, 2);
    run_lstm(&(lstm_options){ .mask = middle, .reverse = true }, &results);
    assert_near(results.sequence, middle_h, 2);
    assert_near(results.sequence + 2, middle_h, 2);
    assert_near(results.sequence + 4, (double[2]){ 0, 0 }, 2);
    assert_near(results.last, middle_h, 2);
}

static void masked_steps_zero(void **state)
{
    const double zeros[2] = { 0, 0 };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .mask = middle, .zero_masked = true }, &results);
    assert_near(results.sequence, zeros, 2);
    assert_near(results.sequence + 2, middle_h, 2);
    assert_near(results.sequence + 4, zeros, 2);
    assert_near(results.last, zeros, 2);
    assert_near(results.h[0], middle_h, 2);
}

/* No valid step: the state passes through, the outputs are zero. */
static void fully_masked_row(void **state)
{
    const float h0[2] = { 0.5f, -0.5f }, c0[2] = { 1, -2 };
    const uint8_t none[3] = { 0, 0, 0 };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .mask = none, .h0 = h0, .c0 = c0 }, &results);
    assert_near(results.sequence, (double[6]){ 0 }, 6);
    assert_near(results.last, (double[2]){ 0, 0 }, 2);
    assert_near(results.h[0], (double[2]){ 0.5, -0.5 }, 2);
    assert_near(results.c[0], (double[2]){ 1, -2 }, 2);
}

static void directions_lie_side_by_side(void **state)
{
    float x[12];
    lstm_results both, forward, backward;

    (void)state;
    for (int k = 0; k < 12; k++)
        x[k] = (float)(k * k % 7 - 3) / 4;
    run_lstm(&(lstm_options){ .directions = 2, .batch = 2, .x = x }, &both);
    run_lstm(&(lstm_options){ .batch = 2, .x = x }, &forward);
    run_lstm(&(lstm_options){ .batch = 2, .x = x, .reverse = true }, &backward);
    for (int step = 0; step < 6; step++)
        for (int k = 0; k < 2; k++) {
            assert_true(both.sequence[step * 4 + k] ==
                        forward.sequence[step * 2 + k]);
            assert_true(both.sequence[step * 4 + 2 + k] ==
                        backward.sequence[step * 2 + k]);
        }
    assert_memory_equal(both.h[0], forward.h[0], sizeof both.h[0]);
    assert_memory_equal(both.h[1], backward.h[0], sizeof both.h[1]);
    assert_memory_equal(both.c[1], backward.c[0], sizeof both.c[1]);
}

static void nan_spoils_its_own_row(void **state)
{
    float x[12] = { 0 };
    lstm_results clean, spoilt;

    (void)state;
    run_lstm(&(lstm_options){ .batch = 2, .x = x }, &clean);
    x[2] = NAN;
    run_lstm(&(lstm_options){ .batch = 2, .x = x }, &spoilt);
    assert_memory_equal(spoilt.sequence, clean.sequence, 2 * sizeof(float));
    assert_true(isnan(spoilt.sequence[2]) && isnan(spoilt.sequence[5]));
    assert_memory_equal(spoilt.sequence + 6, clean.sequence + 6,
                        6 * sizeof(float));
    assert_memory_equal(spoilt.c[0] + 2, clean.c[0] + 2, 2 * sizeof(float));
}

static void large_inputs_saturate(void **state)
{
    const float x[6] = { 1e4f, -1e4f, -1e4f, 1e4f, 1e4f, 1e4f };
    lstm_results results;

    (void)state;
    run_lstm(&(lstm_options){ .x = x }, &results);
    for (int k = 0; k < 6; k++)
        assert_true(fabsf(results.sequence[k]) <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(reversed_keeps_time_order),
        cmocka_unit_test(coupled_gates),
        cmocka_unit_test(clipped_gates),
        cmocka_unit_test(peepholes),
        cmocka_unit_test(initial_state),
        cmocka_unit_test(projected),
        cmocka_unit_test(masked_steps_repeat),
        cmocka_unit_test(masked_steps_zero),
        cmocka_unit_test(fully_masked_row),
        cmocka_unit_test(directions_lie_side_by_side),
        cmocka_unit_test(nan_spoils_its_own_row),
        cmocka_unit_test(large_inputs_saturate),
    };

    return cmocka_run_group_tests(tests, fill_weights, NULL);
}
