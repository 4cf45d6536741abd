/* SPDX-License-Identifier: Apache-2.0 */
/* Windows, pooling and reduction, against numbers worked out by hand. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "tests/unit/host_call.h"

static const float steps7[7] = { 1, 2, 3, 4, 5, 6, 7 };

static void assert_floats(const float *got, const float *wanted, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (!(fabsf(got[k] - wanted[k]) < 1e-6f))
            fail_msg("number %zu is %.9g, not %.9g", k, (double)got[k],
                     (double)wanted[k]);
}

/* One feature, seven steps. */
static void assert_windows(cg_window window, int64_t count, const float *wanted)
{
    float y[32] = { 0 };
    host_call call;
    int64_t before;

    assert_int_equal(cg_window_count(&window, 7, &before), count);
    host_call_init(&call, CG_WINDOW);
    call.node.as.window = window;
    host_call_input(&call, CELLGATE_F32, steps7, 3, 1, 7, 1);
    host_call_output(&call, CELLGATE_F32, y, 3, 1, count, window.size);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, wanted, (size_t)(count * window.size));
}

static void windows_of_each_padding(void **state)
{
    (void)state;
    assert_windows((cg_window){ 3, 2, 1, CG_PADDING_VALID }, 3,
                   (float[]){ 1, 2, 3, 3, 4, 5, 5, 6, 7 });
    assert_windows((cg_window){ 2, 1, 5, CG_PADDING_VALID }, 2,
                   (float[]){ 1, 6, 2, 7 });
    assert_windows((cg_window){ 3, 2, 1, CG_PADDING_SAME }, 4,
                   (float[]){ 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 0 });
    /* An odd number of padding steps: one more behind. */
    assert_windows((cg_window){ 4, 3, 1, CG_PADDING_SAME }, 3,
                   (float[]){ 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 0, 0 });
    assert_windows((cg_window){ 2, 5, 1, CG_PADDING_SAME }, 2,
                   (float[]){ 1, 2, 6, 7 });
    assert_windows((cg_window){ 2, 3, 2, CG_PADDING_CAUSAL }, 3,
                   (float[]){ 0, 1, 2, 4, 5, 7 });
}

static void counts_of_few_steps(void **state)
{
    cg_window window = { 3, 1, 2, CG_PADDING_VALID };
    int64_t before = 7;

    (void)state;
    assert_int_equal(cg_window_count(&window, 4, &before), -1);
    assert_int_equal(cg_window_count(&window, 5, &before), 1);
    assert_int_equal(cg_window_count(&window, 0, &before), -1);
    window.padding = CG_PADDING_SAME;
    assert_int_equal(cg_window_count(&window, 1, &before), 1);
    assert_int_equal(before, 2);
    assert_int_equal(cg_window_count(&window, 0, &before), 0);
    window.padding = CG_PADDING_CAUSAL;
    assert_int_equal(cg_window_count(&window, 1, &before), 1);
    assert_int_equal(before, 4);
    assert_int_equal(cg_window_count(&window, 0, &before), 0);
}

/* Features stay side by side, rows apart; any axes lead. */
static void windows_of_several_features(void **state)
{
    const float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    float y[16];
    host_call call;

    (void)state;
    host_call_init(&call, CG_WINDOW);
    call.node.as.window = (cg_window){ 2, 1, 1, CG_PADDING_VALID };
    host_call_input(&call, CELLGATE_F32, x, 3, 2, 3, 2);
    host_call_output(&call, CELLGATE_F32, y, 3, 2, 2, 4);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(
        y, (float[]){ 1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9, 10, 9, 10, 11, 12 }, 16);
    /* [1][2][3][2]: the same rows */
    call.shapes[0] = (cg_shape){ 4, { 1, 2, 3, 2 } };
    call.shapes[1] = (cg_shape){ 4, { 1, 2, 2, 4 } };
    memset(y, 0, sizeof y);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y + 8, (float[]){ 7, 8, 9, 10, 9, 10, 11, 12 }, 8);
}

static void assert_pool(cg_pool_mode mode, cg_window window, int64_t count,
                        const float *wanted)
{
    float y[8];
    host_call call;

    host_call_init(&call, CG_POOL);
    call.node.as.pool = (cg_pool){ mode, window };
    host_call_input(&call, CELLGATE_F32, steps7, 3, 1, 7, 1);
    host_call_output(&call, CELLGATE_F32, y, 3, 1, count, 1);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, wanted, (size_t)count);
}

static void padding_does_not_count_in_a_pool(void **state)
{
    (void)state;
    assert_pool(CG_POOL_AVERAGE, (cg_window){ 4, 3, 1, CG_PADDING_SAME }, 3,
                (float[]){ 2, 4.5f, 6.5f });
    assert_pool(CG_POOL_MAXIMUM, (cg_window){ 4, 3, 1, CG_PADDING_SAME }, 3,
                (float[]){ 3, 6, 7 });
    assert_pool(CG_POOL_AVERAGE, (cg_window){ 3, 2, 1, CG_PADDING_VALID }, 3,
                (float[]){ 2, 4, 6 });
    /* A window may be much longer than the row. */
    assert_pool(CG_POOL_AVERAGE,
                (cg_window){ CG_MAX_SIZE, 7, 1, CG_PADDING_SAME }, 1,
                (float[]){ 4 });
}

static void a_pool_keeps_nan_and_negative_numbers(void **state)
{
    const float x[6] = { -3, -2, NAN, -5, -7, -6 };
    float y[3];
    host_call call;

    (void)state;
    host_call_init(&call, CG_POOL);
    call.node.as.pool =
        (cg_pool){ CG_POOL_MAXIMUM, { 2, 2, 1, CG_PADDING_SAME } };
    host_call_input(&call, CELLGATE_F32, x, 3, 1, 6, 1);
    host_call_output(&call, CELLGATE_F32, y, 3, 1, 3, 1);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_float_equal(y[0], -2, 0);
    assert_true(isnan(y[1]));
    assert_float_equal(y[2], -6, 0);
}

static void reduction_counts_valid_steps(void **state)
{
    const float x[12] = { 1, 10, 3, 30, 5, 50, 2, -2, 4, -4, 6, -6 };
    const uint8_t mask[6] = { 1, 0, 1, 0, 0, 0 };
    float y[4];
    host_call call;

    (void)state;
    host_call_init(&call, CG_REDUCE);
    call.node.as.reduce.mode = CG_POOL_AVERAGE;
    host_call_input(&call, CELLGATE_F32, x, 3, 2, 3, 2);
    host_call_input(&call, CELLGATE_U8, mask, 2, 2, 3, 0);
    host_call_output(&call, CELLGATE_F32, y, 2, 2, 2, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 3, 30 }, 2);
    assert_true(isnan(y[2]) && isnan(y[3]));
    call.buffers[1] = NULL; /* the request gave none */
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 3, 30, 4, -4 }, 4);
    call.node.as.reduce.mode = CG_POOL_MAXIMUM;
    call.node.input_count = 1;
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 5, 50, 6, -2 }, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_each_padding),
        cmocka_unit_test(counts_of_few_steps),
        cmocka_unit_test(windows_of_several_features),
        cmocka_unit_test(padding_does_not_count_in_a_pool),
        cmocka_unit_test(a_pool_keeps_nan_and_negative_numbers),
        cmocka_unit_test(reduction_counts_valid_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
