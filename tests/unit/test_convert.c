/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cellgate/plugin.h"
#include "runtime/formats/convert.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static cellgate_tensor vector(int32_t dtype, void *data, size_t count)
{
    cellgate_tensor tensor = { .struct_size = sizeof tensor,
                               .dtype = dtype,
                               .rank = 1,
                               .shape = { (int64_t)count },
                               .data = data };
    return tensor;
}

/* Value of a binary16 by its definition, exact in double. */
static double half_by_definition(unsigned bits)
{
    unsigned exponent = bits >> 10 & 31;
    unsigned fraction = bits & 1023;
    double value = exponent == 0 ? ldexp(fraction, -24)
                                 : ldexp(1024 + fraction, (int)exponent - 25);
    return bits & 0x8000 ? -value : value;
}

static void every_half(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        uint32_t got = bits_of(cg_half_to_float((uint16_t)bits));
        uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
        uint32_t want;
        if ((bits >> 10 & 31) == 31) /* infinity or NaN with its payload */
            want = sign | 0x7f800000 | (uint32_t)(bits & 1023) << 13;
        else
            want = bits_of((float)half_by_definition(bits));
        if (got != want)
            fail_msg("half %04x gives %08x, not %08x", bits, got, want);
    }
}

/* The processor's own conversion, where the compiler has one. */
static void every_half_as_the_compiler(void **state)
{
    (void)state;
#ifdef __FLT16_MANT_DIG__
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        uint16_t pattern = (uint16_t)bits;
        _Float16 half;
        float want;
        memcpy(&half, &pattern, sizeof half);
        want = (float)half;
        if (isnan(want)) /* it may turn a signalling NaN into a quiet one */
            assert_true(isnan(cg_half_to_float(pattern)));
        else
            assert_int_equal(bits_of(cg_half_to_float(pattern)), bits_of(want));
    }
#else
    skip();
#endif
}

static void every_bfloat16(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++)
        assert_int_equal(bits_of(cg_bfloat16_to_float((uint16_t)bits)),
                         bits << 16);
}

static void expect_floats(const cellgate_tensor *tensor, const float *want,
                          size_t count)
{
    float got[16];
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cg_narrow_f32(tensor, got, NULL, &error), CELLGATE_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(bits_of(got[i]), bits_of(want[i]));
}

static void f32_from_each_dtype(void **state)
{
    float f32[] = { 1.5f, -0.0f, INFINITY };
    uint16_t f16[] = { 0x3e00, 0x8000, 0x7c00 };
    uint16_t bf16[] = { 0x3fc0, 0x8000, 0x7f80 };
    double f64[] = { 1.5, -0.0, (double)INFINITY };
    int32_t i32[] = { 3, -7, INT32_MAX };
    int64_t i64[] = { 3, -7, INT32_MAX };
    uint8_t u8[] = { 0, 1, 255 };
    uint8_t flags[] = { 0, 1, 200 };
    const float floats[] = { 1.5f, -0.0f, INFINITY };
    const float integers[] = { 3.0f, -7.0f, 2147483648.0f };
    const float bytes[] = { 0.0f, 1.0f, 255.0f };
    const float bools[] = { 0.0f, 1.0f, 1.0f };
    cellgate_tensor tensor;

    (void)state;
    tensor = vector(CELLGATE_F32, f32, 3);
    expect_floats(&tensor, floats, 3);
    tensor = vector(CELLGATE_F16, f16, 3);
    expect_floats(&tensor, floats, 3);
    tensor = vector(CELLGATE_BF16, bf16, 3);
    expect_floats(&tensor, floats, 3);
    tensor = vector(CELLGATE_F64, f64, 3);
    expect_floats(&tensor, floats, 3);
    tensor = vector(CELLGATE_I32, i32, 3);
    expect_floats(&tensor, integers, 3);
    tensor = vector(CELLGATE_I64, i64, 3);
    expect_floats(&tensor, integers, 3);
    tensor = vector(CELLGATE_U8, u8, 3);
    expect_floats(&tensor, bytes, 3);
    tensor = vector(CELLGATE_BOOL, flags, 3);
    expect_floats(&tensor, bools, 3);
}

static void f64_keeps_nan_and_rounds(void **state)
{
    /* The last one is the largest double that still rounds to FLT_MAX. */
    double f64[] = { (double)NAN, 0.1, 1e-60, -0x1.fffffefffffffp127 };
    cellgate_tensor tensor = vector(CELLGATE_F64, f64, COUNT(f64));
    float got[COUNT(f64)];

    (void)state;
    assert_int_equal(cg_narrow_f32(&tensor, got, NULL, NULL), CELLGATE_OK);
    assert_true(isnan(got[0]));
    assert_int_equal(bits_of(got[1]), bits_of(0.1f));
    assert_int_equal(bits_of(got[2]), 0);
    assert_int_equal(bits_of(got[3]), bits_of(-FLT_MAX));
}

static void f64_out_of_range_is_named(void **state)
{
    static const double beyond[] = { 1e39, -1e300, 0x1.ffffffp127 };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(beyond); i++) {
        double f64[] = { 1, 2, 0, 4 };
        cellgate_tensor tensor = vector(CELLGATE_F64, f64, 4);
        float got[4];
        int64_t where = -1;
        f64[2] = beyond[i];
        assert_int_equal(cg_narrow_f32(&tensor, got, &where, &error),
                         CELLGATE_OUT_OF_RANGE);
        assert_int_equal(where, 2);
        assert_non_null(strstr(error.text, "flat index 2"));
    }
}

static void no_elements(void **state)
{
    cellgate_tensor tensor = vector(CELLGATE_F32, NULL, 0);

    (void)state;
    assert_int_equal(cg_narrow_f32(&tensor, NULL, NULL, NULL), CELLGATE_OK);
    assert_int_equal(cg_narrow_ids(&tensor, 0, 9, NULL, NULL, NULL),
                     CELLGATE_OK);
}

static void no_tensor(void **state)
{
    float data[1] = { 0 };
    float out[1];
    int32_t ids[1];
    cellgate_tensor tensor = vector(42, data, 1);

    (void)state;
    assert_int_equal(cg_narrow_f32(&tensor, out, NULL, NULL), CELLGATE_INVALID);
    assert_int_equal(cg_narrow_ids(&tensor, 0, 9, ids, NULL, NULL),
                     CELLGATE_INVALID);
}

static void expect_ids(int32_t dtype, void *data, const int32_t *want)
{
    cellgate_tensor tensor = vector(dtype, data, 3);
    int32_t got[3];
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cg_narrow_ids(&tensor, 0, 9, got, NULL, &error),
                     CELLGATE_OK);
    assert_memory_equal(got, want, sizeof got);
}

static void ids_from_each_dtype(void **state)
{
    const int32_t want[] = { 0, 9, 3 };
    const int32_t bools[] = { 0, 1, 1 };
    int64_t i64[] = { 0, 9, 3 };
    uint8_t u8[] = { 0, 9, 3 };
    uint8_t flags[] = { 0, 1, 200 };
    float f32[] = { -0.0f, 9.0f, 3.0f };
    double f64[] = { 0, 9, 3 };
    uint16_t f16[] = { 0x0000, 0x4880, 0x4200 };
    uint16_t bf16[] = { 0x0000, 0x4110, 0x4040 };
    int32_t i32[] = { 0, 9, 3 };

    (void)state;
    expect_ids(CELLGATE_I32, i32, want);
    expect_ids(CELLGATE_I64, i64, want);
    expect_ids(CELLGATE_U8, u8, want);
    expect_ids(CELLGATE_BOOL, flags, bools);
    expect_ids(CELLGATE_F32, f32, want);
    expect_ids(CELLGATE_F64, f64, want);
    expect_ids(CELLGATE_F16, f16, want);
    expect_ids(CELLGATE_BF16, bf16, want);
}

static void expect_refused(int32_t dtype, void *data, int32_t lowest,
                           int32_t highest, const char *text)
{
    cellgate_tensor tensor = vector(dtype, data, 3);
    cellgate_error error = CELLGATE_ERROR_INIT;
    int32_t got[3];
    int64_t where = -1;

    assert_int_equal(
        cg_narrow_ids(&tensor, lowest, highest, got, &where, &error),
        CELLGATE_OUT_OF_RANGE);
    assert_int_equal(error.status, CELLGATE_OUT_OF_RANGE);
    assert_int_equal(where, 1);
    assert_non_null(strstr(error.text, text));
    assert_non_null(strstr(error.text, "flat index 1"));
}

static void ids_out_of_range_are_named(void **state)
{
    int32_t above[] = { 0, 10, 3 };
    int32_t below[] = { 0, -1, 3 };
    int64_t wide[] = { 0, (int64_t)1 << 32, 3 };
    int64_t far_below[] = { 0, INT64_MIN, 3 };
    double part[] = { 0, 2.5, 3 };
    double huge[] = { 0, 1e300, 3 };
    float nan[] = { 0, NAN, 3 };

    (void)state;
    expect_refused(CELLGATE_I32, above, 0, 9, "10");
    expect_refused(CELLGATE_I32, below, 0, 9, "-1");
    expect_refused(CELLGATE_I64, wide, INT32_MIN, INT32_MAX, "4294967296");
    expect_refused(CELLGATE_I64, far_below, INT32_MIN, INT32_MAX,
                   "-9223372036854775808");
    expect_refused(CELLGATE_F64, part, 0, 9, "2.5");
    expect_refused(CELLGATE_F64, huge, INT32_MIN, INT32_MAX, "1e+300");
    expect_refused(CELLGATE_F32, nan, 0, 9, "nan");
}

static void ids_at_the_ends_of_int32(void **state)
{
    int64_t i64[] = { INT32_MIN, INT32_MAX, 0 };
    double f64[] = { INT32_MIN, INT32_MAX, 0 };
    const int32_t want[] = { INT32_MIN, INT32_MAX, 0 };
    int32_t got[3];
    cellgate_tensor tensor = vector(CELLGATE_I64, i64, 3);

    (void)state;
    assert_int_equal(
        cg_narrow_ids(&tensor, INT32_MIN, INT32_MAX, got, NULL, NULL),
        CELLGATE_OK);
    assert_memory_equal(got, want, sizeof want);
    tensor = vector(CELLGATE_F64, f64, 3);
    assert_int_equal(
        cg_narrow_ids(&tensor, INT32_MIN, INT32_MAX, got, NULL, NULL),
        CELLGATE_OK);
    assert_memory_equal(got, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half),
        cmocka_unit_test(every_half_as_the_compiler),
        cmocka_unit_test(every_bfloat16),
        cmocka_unit_test(f32_from_each_dtype),
        cmocka_unit_test(f64_keeps_nan_and_rounds),
        cmocka_unit_test(f64_out_of_range_is_named),
        cmocka_unit_test(no_elements),
        cmocka_unit_test(no_tensor),
        cmocka_unit_test(ids_from_each_dtype),
        cmocka_unit_test(ids_out_of_range_are_named),
        cmocka_unit_test(ids_at_the_ends_of_int32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
