/* SPDX-License-Identifier: Apache-2.0 */
/* Host ops that move, combine and contract values; numbers by numpy. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host_call.h"

static const float counting[24] = { 0,  1,  2,  3,  4,  5,  6,  7,
                                    8,  9,  10, 11, 12, 13, 14, 15,
                                    16, 17, 18, 19, 20, 21, 22, 23 };

/* Fills y from 0, 1 ... in a shape of three axes. */
static void move(host_call *call, const int64_t *in, const int64_t *out,
                 int32_t rank, float *y)
{
    host_call_input(call, CELLGATE_F32, counting, 3, in[0], in[1], in[2]);
    host_call_output(call, CELLGATE_F32, y, rank, out[0], out[1], out[2]);
    assert_int_equal(host_call_run(call, NULL), CELLGATE_OK);
}

#define assert_floats(y, ...)                                                  \
    do {                                                                       \
        const float wanted[] = { __VA_ARGS__ };                                \
        for (size_t i_ = 0; i_ < sizeof wanted / sizeof wanted[0]; i_++)       \
            assert_float_equal((y)[i_], wanted[i_], 0);                        \
    } while (0)

static void slices_of_steps(void **state)
{
    host_call call;
    float y[12];

    (void)state;
    host_call_init(&call, CG_SLICE);
    call.node.as.slice = (cg_slice){ .begin = 1, .end = -1, .axis = 1 };
    move(&call, (int64_t[]){ 2, 3, 2 }, (int64_t[]){ 2, 1, 2 }, 3, y);
    assert_floats(y, 2, 3, 8, 9);
    host_call_init(&call, CG_SLICE);
    call.node.as.slice = (cg_slice){ .begin = 1, .end = 0 };
    move(&call, (int64_t[]){ 2, 2, 3 }, (int64_t[]){ 2, 2, 2 }, 3, y);
    assert_floats(y, 1, 2, 4, 5, 7, 8, 10, 11);
}

static void slices_with_steps(void **state)
{
    host_call call;
    float y[12];

    (void)state;
    host_call_init(&call, CG_SLICE); /* x[:, ::2] */
    call.node.as.slice = (cg_slice){ .axis = 1, .step = 2 };
    move(&call, (int64_t[]){ 2, 3, 2 }, (int64_t[]){ 2, 2, 2 }, 3, y);
    assert_floats(y, 0, 1, 4, 5, 6, 7, 10, 11);
    host_call_init(&call, CG_SLICE); /* x[..., 4:0:-2] */
    call.node.as.slice = (cg_slice){ .begin = 1, .end = 5, .step = -2 };
    move(&call, (int64_t[]){ 1, 2, 6 }, (int64_t[]){ 1, 2, 2 }, 3, y);
    assert_floats(y, 4, 2, 10, 8);
    host_call_init(&call, CG_SLICE); /* x[:, -2::-1] */
    call.node.as.slice = (cg_slice){ .end = -1, .axis = 1, .step = -1 };
    move(&call, (int64_t[]){ 1, 4, 2 }, (int64_t[]){ 1, 3, 2 }, 3, y);
    assert_floats(y, 4, 5, 2, 3, 0, 1);
}

static void paddings_and_repetitions(void **state)
{
    host_call call;
    float y[24];

    (void)state;
    host_call_init(&call, CG_PAD);
    call.node.as.pad = (cg_pad){ .before = 1, .after = 2, .axis = 1 };
    move(&call, (int64_t[]){ 2, 1, 2 }, (int64_t[]){ 2, 4, 2 }, 3, y);
    assert_floats(y, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0);
    host_call_init(&call, CG_REPEAT);
    call.node.as.repeat = (cg_repeat){ .times = 2, .axis = 1 };
    move(&call, (int64_t[]){ 2, 2, 1 }, (int64_t[]){ 2, 4, 1 }, 3, y);
    assert_floats(y, 0, 0, 1, 1, 2, 2, 3, 3);
    host_call_init(&call, CG_REPEAT);
    call.node.as.repeat = (cg_repeat){ .times = 2, .axis = 2 };
    move(&call, (int64_t[]){ 1, 2, 2 }, (int64_t[]){ 1, 2, 4 }, 3, y);
    assert_floats(y, 0, 0, 1, 1, 2, 2, 3, 3);
}

static void permutations(void **state)
{
    host_call call;
    float y[24];

    (void)state;
    host_call_init(&call, CG_PERMUTE);
    call.node.as.permute = (cg_extents){ 3, { 0, 2, 1 } };
    move(&call, (int64_t[]){ 2, 2, 3 }, (int64_t[]){ 2, 3, 2 }, 3, y);
    assert_floats(y, 0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11);
    host_call_init(&call, CG_RESHAPE);
    call.node.as.reshape = (cg_reshape){ { 1, { -1 } }, 1 };
    move(&call, (int64_t[]){ 2, 2, 3 }, (int64_t[]){ 2, 6, 0 }, 2, y);
    assert_memory_equal(y, counting, 12 * sizeof *y);
}

/* A mask that is absent is valid. */
static void masks_behind_each_other(void **state)
{
    const uint8_t a[4] = { 1, 0, 0, 1 }, b[2] = { 0, 0 };
    uint8_t y[6];
    host_call call;

    (void)state;
    host_call_init(&call, CG_CONCAT);
    call.node.as.concat = 1;
    host_call_input(&call, CELLGATE_U8, a, 2, 2, 2, 0);
    host_call_input(&call, CELLGATE_U8, b, 2, 2, 1, 0);
    host_call_output(&call, CELLGATE_U8, y, 2, 2, 3, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_memory_equal(y, ((uint8_t[]){ 1, 0, 0, 0, 1, 0 }), 6);
    call.buffers[call.inputs[0]] = NULL;
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_memory_equal(y, ((uint8_t[]){ 1, 1, 0, 1, 1, 0 }), 6);
}

static void casts(void **state)
{
    const float x[6] = { 1.9f, -0.5f, -1.9f, 3e9f, NAN, 2147483520.0f };
    const int32_t ids[2] = { -7, 16777216 };
    int32_t y[6];
    float numbers[2];
    host_call call;

    (void)state;
    host_call_init(&call, CG_CAST);
    call.node.as.cast = CG_CAST_IDS;
    host_call_input(&call, CELLGATE_F32, x, 1, 6, 0, 0);
    host_call_output(&call, CELLGATE_I32, y, 1, 6, 0, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_int_equal(y[0], 1);
    assert_int_equal(y[1], 0);
    assert_int_equal(y[2], -1);
    assert_int_equal(y[3], INT32_MIN);
    assert_int_equal(y[4], INT32_MIN);
    assert_int_equal(y[5], 2147483520);
    host_call_init(&call, CG_CAST);
    host_call_input(&call, CELLGATE_I32, ids, 1, 2, 0, 0);
    host_call_output(&call, CELLGATE_F32, numbers, 1, 2, 0, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(numbers, -7, 16777216);
}

/* x [2][2][3] with a [2][1][3] and a [2][3]. */
static void combinations(void **state)
{
    const float a[6] = { 1, 2, 3, -1, -2, -3 };
    static const float wanted[6][12] = {
        { 2, 5, 8, 5, 8, 11, 4, 3, 2, 7, 6, 5 },
        { -1, -1, -1, 2, 2, 2, 7, 9, 11, 10, 12, 14 },
        { 0, 4, 18, 3, 16, 45, 6, 28, 72, 9, 40, 99 },
        { 2.f / 3, 5.f / 3, 8.f / 3, 5.f / 3, 8.f / 3, 11.f / 3, 4.f / 3, 1,
          2.f / 3, 7.f / 3, 2, 5.f / 3 },
        { 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11 },
        { 0, 1, 2, 1, 2, 3, -1, -2, -3, -1, -2, -3 },
    };

    (void)state;
    for (int mode = CG_COMBINE_ADD; mode <= CG_COMBINE_MINIMUM; mode++) {
        float y[12];
        host_call call;

        host_call_init(&call, CG_COMBINE);
        call.node.as.combine = (cg_combine)mode;
        host_call_input(&call, CELLGATE_F32, counting, 3, 2, 2, 3);
        host_call_input(&call, CELLGATE_F32, a, 3, 2, 1, 3);
        if (mode != CG_COMBINE_SUBTRACT)
            host_call_input(&call, CELLGATE_F32, a, 2, 2, 3, 0);
        host_call_output(&call, CELLGATE_F32, y, 3, 2, 2, 3);
        assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
        for (int k = 0; k < 12; k++)
            assert_float_equal(y[k], wanted[mode][k], 0);
    }
}

static void not_a_number_stays(void **state)
{
    const float a[2] = { NAN, 1 }, b[2] = { 1, NAN };
    float y[2];

    (void)state;
    for (int mode = CG_COMBINE_ADD; mode <= CG_COMBINE_MINIMUM; mode++) {
        host_call call;

        host_call_init(&call, CG_COMBINE);
        call.node.as.combine = (cg_combine)mode;
        host_call_input(&call, CELLGATE_F32, a, 2, 1, 2, 0);
        host_call_input(&call, CELLGATE_F32, b, 2, 1, 2, 0);
        host_call_output(&call, CELLGATE_F32, y, 2, 1, 2, 0);
        assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
        assert_true(isnan(y[0]) && isnan(y[1]));
    }
}

static void logic(void **state)
{
    const uint8_t a[4] = { 1, 0, 7, 0 }, b[4] = { 1, 1, 0, 0 };
    static const uint8_t wanted[3][4] = { { 1, 0, 0, 0 },
                                          { 1, 1, 1, 0 },
                                          { 0, 1, 0, 1 } };

    (void)state;
    for (int mode = CG_LOGIC_AND; mode <= CG_LOGIC_NOT; mode++) {
        uint8_t y[4];
        host_call call;

        host_call_init(&call, CG_LOGIC);
        call.node.as.logic = (cg_logic)mode;
        host_call_input(&call, CELLGATE_U8, a, 2, 2, 2, 0);
        if (mode != CG_LOGIC_NOT)
            host_call_input(&call, CELLGATE_U8, b, 2, 2, 2, 0);
        host_call_output(&call, CELLGATE_U8, y, 2, 2, 2, 0);
        assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
        assert_memory_equal(y, wanted[mode], 4);
    }
}

static void selection(void **state)
{
    const uint8_t mask[4] = { 1, 0, 0, 1 };
    const float other[2] = { -5, -6 };
    float y[8];
    host_call call;

    (void)state;
    host_call_init(&call, CG_SELECT);
    call.node.as.select = 1;
    host_call_input(&call, CELLGATE_F32, counting, 3, 2, 2, 2);
    host_call_input(&call, CELLGATE_U8, mask, 2, 2, 2, 0);
    host_call_output(&call, CELLGATE_F32, y, 3, 2, 2, 2);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, 0, 1, 1, 1, 1, 1, 6, 7);
    host_call_input(&call, CELLGATE_F32, other, 3, 2, 1, 1);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, 0, 1, -5, -5, -6, -6, 6, 7);
}

/* einsum('bij,bkj->bik') and 'bij,bj->bi', and cosines. */
static void contractions(void **state)
{
    const float b[4] = { 1, -1, 2, 0 }, c[4] = { 3, 4, 0, 1e-9f };
    float y[4];
    host_call call;

    (void)state;
    host_call_init(&call, CG_DOT);
    call.node.as.dot = (cg_dot){ .axis_a = 2, .axis_b = 2 };
    host_call_input(&call, CELLGATE_F32, counting, 3, 1, 2, 2);
    host_call_input(&call, CELLGATE_F32, b, 3, 1, 2, 2);
    host_call_output(&call, CELLGATE_F32, y, 3, 1, 2, 2);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, -1, 0, -1, 4);
    call.node.as.dot = (cg_dot){ .axis_a = 1, .axis_b = 2 };
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, -2, 0, -2, 2);
    host_call_init(&call, CG_DOT);
    call.node.as.dot = (cg_dot){ 1, 1, 1e-14f, true };
    host_call_input(&call, CELLGATE_F32, c, 2, 2, 2, 0);
    host_call_input(&call, CELLGATE_F32, b, 2, 2, 2, 0);
    host_call_output(&call, CELLGATE_F32, y, 2, 2, 1, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_float_equal(y[0], -0.2 / sqrt(2), 1e-7);
    assert_float_equal(y[1], 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_of_steps),
        cmocka_unit_test(slices_with_steps),
        cmocka_unit_test(paddings_and_repetitions),
        cmocka_unit_test(permutations),
        cmocka_unit_test(masks_behind_each_other),
        cmocka_unit_test(casts),
        cmocka_unit_test(combinations),
        cmocka_unit_test(not_a_number_stays),
        cmocka_unit_test(logic),
        cmocka_unit_test(selection),
        cmocka_unit_test(contractions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
