/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices in half precision: what a number becomes, against the definition of
 * IEEE 754's binary16, and what becomes of a product, within the bound that
 * doc/opencl.md states, on PoCL.
 */
#include "config.h"

#include <math.h>

#include "plugins/opencl/half.h"
#include "tests/unit/opencl_rig.h"

/* The number that a finite half stands for. */
static double value_of(uint16_t half)
{
    const int exponent = half >> 10 & 31, digits = half & 1023;
    const double size = exponent == 0 ? ldexp(digits, -24)
                                      : ldexp(1024 + digits, exponent - 25);

    return half & 0x8000 ? -size : size;
}

/* Every half is itself; what lies between two is the nearer one, and in the
   middle the even one. */
static void test_nearest(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 0x7c00; at++) {
        const float low = (float)value_of((uint16_t)at);
        const float high =
            at < 0x7bff ? (float)value_of((uint16_t)(at + 1)) : 65536.0f;
        const float middle = 0.5f * (low + high);
        const unsigned even = at + (at & 1);

        assert_int_equal(ocl_half(low), at);
        assert_int_equal(ocl_half(middle), even);
        assert_int_equal(ocl_half(nextafterf(middle, 0)), at);
        assert_int_equal(ocl_half(nextafterf(middle, 1e9f)), at + 1);
        assert_int_equal(ocl_half(-low), at | 0x8000);
        assert_int_equal(ocl_half(-middle), even | 0x8000);
    }
    assert_int_equal(ocl_half(1e-30f), 0);
    assert_int_equal(ocl_half(INFINITY), 0x7c00);
    assert_int_equal(ocl_half(-INFINITY), 0xfc00);
    assert_int_equal(ocl_half(NAN) & 0x7e00, 0x7e00);
    assert_true(ocl_half_overflows(65520.0f));
    assert_true(ocl_half_overflows(-1e30f));
    assert_false(ocl_half_overflows(nextafterf(65520.0f, 0)));
    assert_false(ocl_half_overflows(INFINITY));
    assert_false(ocl_half_overflows(NAN));
}

#define DEPTH 50
#define UNITS 70
#define ROWS 9

static float matrix[DEPTH * UNITS], rows[ROWS * DEPTH], result[ROWS * UNITS];
static cellgate_dense dense = {
    .op = { sizeof dense, CELLGATE_OP_DENSE, 0 },
    .input_size = DEPTH,
    .units = UNITS,
    .activation = { CELLGATE_LINEAR, 0, 0 },
    .kernel = matrix,
};
static const cellgate_op *const dense_ops[1] = { &dense.op };
static const cellgate_segment product = { sizeof product, 1, 0, dense_ops };

/* The variant of that numeric class. */
static cellgate_variant find(cellgate_device *device, int32_t numeric)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    uint32_t i = 0;

    do
        assert_int_equal(
            table->support(device, &product, NULL, i, &variant, &error),
            CELLGATE_OK);
    while (variant.numeric != numeric && i++ < 100);
    return variant;
}

/* How far element (row, unit) may be off: 2^-11 of each product, or 2^-25 of
   each element of x where a weight is below 2^-14; and what floats round. */
static double bound(int row, int unit, double *exact, double *of_rounded)
{
    double sum = 0, rounded = 0, most = 0, size = 0;

    for (int k = 0; k < DEPTH; k++) {
        const double factor = rows[row * DEPTH + k];
        const float weight = matrix[k * UNITS + unit];

        sum += factor * weight;
        rounded += factor * value_of(ocl_half(weight));
        size += fabs(factor * weight);
        most += fmax(fabs(factor * weight) * 0x1p-11, fabs(factor) * 0x1p-25);
    }
    *exact = sum;
    *of_rounded = rounded;
    return most + size * DEPTH * 0x1p-24;
}

static void test_bound(void **state)
{
    const cellgate_shape of = { sizeof of, ROWS, 1 };
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = ROWS,
        .steps = 1,
        .x = { rows, DEPTH, DEPTH, CELLGATE_F32, 0 },
        .y = { result, UNITS, UNITS, CELLGATE_F32, 0 },
    };
    const char *const forms[] = { "vectors", "lanes" };
    double largest = 0;

    (void)state;
    make_random(rows, ROWS * DEPTH, 10);
    make_random(matrix, DEPTH * UNITS, 11);
    for (int i = 0; i < DEPTH * UNITS; i += 3)
        matrix[i] = ldexpf(matrix[i], -(i % 29)); /* small ones too */
    for (int form = 0; form < 2; form++) {
        cellgate_device *device;
        cellgate_weights *weights = NULL;
        cellgate_plan *plan = NULL;
        cellgate_variant variant;

        kernels = forms[form];
        device = open_device();
        kernels = "auto";
        variant = find(device, CELLGATE_NUMERIC_F16);
        assert_string_equal(variant.name, "rows-f16");
        assert_int_equal(
            table->prepare(device, &product, variant.pack, &weights, &error),
            CELLGATE_OK);
        assert_int_equal(
            table->plan_create(device, weights, variant.id, &of, &plan, &error),
            CELLGATE_OK);
        assert_int_equal(table->run(plan, &r, &error), CELLGATE_OK);
        for (int i = 0; i < ROWS * UNITS; i++) {
            double exact, rounded;
            const double most = bound(i / UNITS, i % UNITS, &exact, &rounded);

            assert_true(fabs(result[i] - exact) <= most);
            /* Floats do the rest. */
            assert_true(fabs(result[i] - rounded) <= 1e-6);
            largest = fmax(largest, fabs(result[i] - exact));
        }
        table->plan_destroy(plan);
        table->weights_free(weights);
        table->device_close(device);
    }
    assert_true(largest > 1e-5); /* they were halves */
}

/* A weight that no half is near to: refused, and nothing is left behind. */
static void test_overflow(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights = NULL;
    const cellgate_variant variant = find(device, CELLGATE_NUMERIC_F16);

    (void)state;
    matrix[17] = 70000.0f;
    assert_int_equal(
        table->prepare(device, &product, variant.pack, &weights, &error),
        CELLGATE_UNSUPPORTED);
    assert_int_equal(error.reason, CELLGATE_REASON_DTYPE);
    assert_non_null(strstr(error.text, "70000"));
    assert_null(weights);
    assert_int_equal(table->memory_used(device), 0);
    matrix[17] = 0;
    table->device_close(device);
}

/* Half the memory, where matrices are most of it. */
static void test_memory(void **state)
{
    cellgate_device *device = open_device();
    uint64_t sizes[2];

    (void)state;
    for (int half = 0; half < 2; half++) {
        const uint32_t pack = half ? OCL_PACK_HALF : OCL_PACK_FLOAT;
        cellgate_weights *weights = NULL;

        assert_int_equal(
            table->prepare(device, &product, pack, &weights, &error),
            CELLGATE_OK);
        sizes[half] = table->memory_used(device);
        table->weights_free(weights);
    }
    assert_true(sizes[1] < 0.6 * (double)sizes[0]);
    table->device_close(device);
}

int main(void)
{
    const struct CMUnitTest numbers[] = { cmocka_unit_test(test_nearest) };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_memory),
    };
    const int failed = cmocka_run_group_tests(numbers, NULL, NULL);

    if (!opencl_rig_usable())
        return failed ? failed : 77;
    return failed +
           cmocka_run_group_tests(tests, opencl_rig_start, opencl_rig_end);
}
