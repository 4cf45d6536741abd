/* SPDX-License-Identifier: Apache-2.0 */
/* The host ops other than LSTM and activations, against literal numbers. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "tests/unit/host_call.h"

static void assert_floats(const float *got, const float *wanted, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (!(fabsf(got[k] - wanted[k]) < 1e-6f))
            fail_msg("number %zu is %.9g, not %.9g", k, (double)got[k],
                     (double)wanted[k]);
}

static void dense_on_steps(void **state)
{
    const float x[4] = { 1, 2, -3, 0.5f };
    const float kernel[6] = { 1, 0, -1, 2, 1, 0.5f };
    const float bias[3] = { 0, 10, -0.5f };
    float y[6];
    host_call call;

    (void)state;
    host_call_init(&call, CG_DENSE);
    call.node.as.dense.input_size = 2;
    call.node.as.dense.units = 3;
    call.node.as.dense.has_bias = true;
    call.node.as.dense.activation.kind = CELLGATE_RELU;
    host_call_input(&call, CELLGATE_F32, x, 3, 1, 2, 2);
    host_call_output(&call, CELLGATE_F32, y, 3, 1, 2, 3);
    host_call_weight(&call, kernel);
    host_call_weight(&call, bias);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 5, 12, 0, 0, 10.5f, 2.75f }, 6);
    call.node.as.dense.has_bias = false;
    call.node.as.dense.activation.kind = CELLGATE_LINEAR;
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 5, 2, 0, -2, 0.5f, 3.25f }, 6);
}

static void embedding_picks_rows(void **state)
{
    const float table[6] = { 1, 2, 3, 4, 5, 6 };
    int32_t ids[4] = { 2, 0, 1, 2 };
    float y[8];
    host_call call;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    host_call_init(&call, CG_EMBEDDING);
    call.node.as.embedding.vocabulary = 3;
    call.node.as.embedding.size = 2;
    host_call_input(&call, CELLGATE_I32, ids, 2, 2, 2, 0);
    host_call_output(&call, CELLGATE_F32, y, 3, 2, 2, 2);
    host_call_weight(&call, table);
    assert_int_equal(host_call_run(&call, &error), CELLGATE_OK);
    assert_floats(y, (float[]){ 5, 6, 1, 2, 3, 4, 5, 6 }, 8);
    ids[3] = 3;
    assert_int_equal(host_call_run(&call, &error), CELLGATE_OUT_OF_RANGE);
    assert_non_null(strstr(error.text, "id 3 in row 1, step 1"));
    ids[3] = -1;
    assert_int_equal(host_call_run(&call, &error), CELLGATE_OUT_OF_RANGE);
}

static void softmax_is_stable(void **state)
{
    const float x[9] = { 0, 0, 1e4f, -1e30f, 0, 0, NAN, 1, 2 };
    float y[9];
    host_call call;

    (void)state;
    host_call_init(&call, CG_SOFTMAX);
    host_call_input(&call, CELLGATE_F32, x, 2, 3, 3, 0);
    host_call_output(&call, CELLGATE_F32, y, 2, 3, 3, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 0, 0, 1, 0, 0.5f, 0.5f }, 6);
    for (int k = 6; k < 9; k++)
        assert_true(isnan(y[k]));
}

static void softmax_values(void **state)
{
    const float x[3] = { 1, 2, 3 };
    float y[3];
    host_call call;

    (void)state;
    host_call_init(&call, CG_SOFTMAX);
    host_call_input(&call, CELLGATE_F32, x, 2, 1, 3, 0);
    host_call_output(&call, CELLGATE_F32, y, 2, 1, 3, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 0.09003057f, 0.24472847f, 0.66524096f }, 3);
}

static void activation_on_each_number(void **state)
{
    const float x[4] = { -1, 0, 0.5f, NAN };
    float y[4];
    host_call call;

    (void)state;
    host_call_init(&call, CG_ACTIVATION);
    call.node.as.activation.kind = CELLGATE_LEAKY_RELU;
    call.node.as.activation.alpha = 0.25f;
    host_call_input(&call, CELLGATE_F32, x, 2, 1, 4, 0);
    host_call_output(&call, CELLGATE_F32, y, 2, 1, 4, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ -0.25f, 0, 0.5f }, 3);
    assert_true(isnan(y[3]));
}

static void reverse_turns_time(void **state)
{
    const float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    const uint8_t mask[4] = { 1, 0, 1, 1 };
    float y[8];
    uint8_t turned[4];
    host_call call;

    (void)state;
    host_call_init(&call, CG_REVERSE);
    host_call_input(&call, CELLGATE_F32, x, 3, 2, 2, 2);
    host_call_output(&call, CELLGATE_F32, y, 3, 2, 2, 2);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 3, 4, 1, 2, 7, 8, 5, 6 }, 8);
    host_call_init(&call, CG_REVERSE);
    host_call_input(&call, CELLGATE_U8, mask, 2, 1, 4, 0);
    host_call_output(&call, CELLGATE_U8, turned, 2, 1, 4, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_memory_equal(turned, ((uint8_t[]){ 1, 1, 0, 1 }), 4);
}

static void merge_joins_halves(void **state)
{
    const float x[8] = { 1, 2, 3, 4, -1, 0, 2, 5 };
    const float wanted[3][4] = { { 4, 6, 1, 5 },
                                 { 2, 3, 0.5f, 2.5f },
                                 { 3, 8, -2, 0 } };
    float y[4];
    host_call call;

    (void)state;
    host_call_init(&call, CG_MERGE);
    host_call_input(&call, CELLGATE_F32, x, 2, 2, 4, 0);
    host_call_output(&call, CELLGATE_F32, y, 2, 2, 2, 0);
    for (int mode = CG_MERGE_SUM; mode <= CG_MERGE_PRODUCT; mode++) {
        call.node.as.merge = (cg_merge_mode)mode;
        assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
        assert_floats(y, wanted[mode], 4);
    }
}

static void slice_takes_a_range(void **state)
{
    const float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    float y[4];
    host_call call;

    (void)state;
    host_call_init(&call, CG_SLICE);
    call.node.as.slice.begin = 1;
    call.node.as.slice.end = 3;
    host_call_input(&call, CELLGATE_F32, x, 3, 1, 2, 4);
    host_call_output(&call, CELLGATE_F32, y, 3, 1, 2, 2);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 2, 3, 6, 7 }, 4);
}

static void concat_joins_features(void **state)
{
    const float a[4] = { 1, 2, 3, 4 }, b[2] = { 5, 6 };
    float y[6];
    host_call call;

    (void)state;
    host_call_init(&call, CG_CONCAT);
    host_call_input(&call, CELLGATE_F32, a, 2, 2, 2, 0);
    host_call_input(&call, CELLGATE_F32, b, 2, 2, 1, 0);
    host_call_output(&call, CELLGATE_F32, y, 2, 2, 3, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 1, 2, 5, 3, 4, 6 }, 6);
}

static void masks_are_made(void **state)
{
    const int32_t ids[4] = { 0, 3, -1, 0 };
    const float x[8] = { -1, -1, -1, 0, NAN, -1, -1, -1 };
    uint8_t mask[4];
    host_call call;

    (void)state;
    host_call_init(&call, CG_NONZERO);
    host_call_input(&call, CELLGATE_I32, ids, 2, 1, 4, 0);
    host_call_output(&call, CELLGATE_U8, mask, 2, 1, 4, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_memory_equal(mask, ((uint8_t[]){ 0, 1, 1, 0 }), 4);
    host_call_init(&call, CG_NOT_EQUAL);
    call.node.as.not_equal = -1;
    host_call_input(&call, CELLGATE_F32, x, 3, 1, 4, 2);
    host_call_output(&call, CELLGATE_U8, mask, 2, 1, 4, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_memory_equal(mask, ((uint8_t[]){ 0, 1, 1, 0 }), 4);
}

static void masked_steps_become_zero(void **state)
{
    const float x[4] = { 1, 2, NAN, 4 };
    const uint8_t mask[2] = { 1, 0 };
    float y[4];
    host_call call;

    (void)state;
    host_call_init(&call, CG_MASKED);
    host_call_input(&call, CELLGATE_F32, x, 3, 1, 2, 2);
    host_call_input(&call, CELLGATE_U8, mask, 2, 1, 2, 0);
    host_call_output(&call, CELLGATE_F32, y, 3, 1, 2, 2);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 1, 2, 0, 0 }, 4);
}

static void unknown_kind_is_refused(void **state)
{
    host_call call;

    (void)state;
    host_call_init(&call, CG_KIND_COUNT);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_on_steps),
        cmocka_unit_test(embedding_picks_rows),
        cmocka_unit_test(softmax_is_stable),
        cmocka_unit_test(softmax_values),
        cmocka_unit_test(activation_on_each_number),
        cmocka_unit_test(reverse_turns_time),
        cmocka_unit_test(merge_joins_halves),
        cmocka_unit_test(slice_takes_a_range),
        cmocka_unit_test(concat_joins_features),
        cmocka_unit_test(masks_are_made),
        cmocka_unit_test(masked_steps_become_zero),
        cmocka_unit_test(unknown_kind_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
