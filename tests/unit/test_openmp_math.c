/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels' exponential, sigmoid and tanh, and every other activation,
 * against the C library in double precision, on each level of this machine.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/openmp/activation.h"
#include "tests/unit/openmp_levels.h"

/*
 * Every STRIDE-th float, by its bits: some millions, over all magnitudes, both
 * signs, infinities and NaNs.
 */
#define STRIDE 1009u
#define CHUNK 4096

static float from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static double exact_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* What a function is held to. */
struct claim {
    int32_t kind;
    double (*exact)(double);
    double absolute;
    double relative; /* infinity: none */
};

static void check_values(const struct claim *claim, const float *x,
                         const float *y, int count)
{
    int i;

    for (i = 0; i < count; i++) {
        double want, error;

        if (isnan(x[i])) {
            assert_true(isnan(y[i]));
            continue;
        }
        want = claim->exact(x[i]);
        error = fabs(y[i] - want);
        if (!(error <= claim->absolute) ||
            (fabs(want) > 1e-37 && error > claim->relative * fabs(want))) {
            print_error("x %.9g gave %.9g, not %.9g\n", (double)x[i],
                        (double)y[i], want);
            fail();
        }
    }
}

static void check_everywhere(const struct cpu_kernels *kernels,
                             const struct claim *claim)
{
    const cellgate_activation activation = { claim->kind, 0, 0 };
    static float x[CHUNK], y[CHUNK];
    uint64_t bits = 0;
    int count;

    while (bits <= UINT32_MAX) {
        for (count = 0; count < CHUNK && bits <= UINT32_MAX; count++) {
            x[count] = from_bits((uint32_t)bits);
            bits += STRIDE;
        }
        kernels->activate(&activation, x, y, count);
        check_values(claim, x, y, count);
    }
}

static void check_limits(const struct cpu_kernels *kernels, int32_t kind,
                         float low, float high)
{
    const cellgate_activation activation = { kind, 0, 0 };
    const float x[] = { -INFINITY, -3.4e38f, -1e30f, -100, INFINITY,
                        3.4e38f,   1e30f,    100,    NAN,  -NAN };
    float y[10];
    int i;

    kernels->activate(&activation, x, y, 10);
    assert_true(y[0] == low && y[4] == high);
    for (i = 0; i < 4; i++) {
        assert_true(fabsf(y[i] - low) <= 1e-37f);
        assert_true(y[4 + i] == high);
    }
    assert_true(isnan(y[8]) && isnan(y[9]));
}

/* No value beyond the limits, wherever rounding might carry it. */
static void check_range(const struct cpu_kernels *kernels, int32_t kind,
                        float low, float high)
{
    const cellgate_activation activation = { kind, 0, 0 };
    static float x[CHUNK], y[CHUNK];
    int chunk, i;

    for (chunk = 0; chunk < 256; chunk++) {
        for (i = 0; i < CHUNK; i++)
            x[i] = -20 + 40 * (float)(chunk * CHUNK + i) / (256 * CHUNK);
        kernels->activate(&activation, x, y, CHUNK);
        for (i = 0; i < CHUNK; i++)
            assert_true(y[i] >= low && y[i] <= high);
    }
}

/* The bounds are those that vec_math.h states. */
static void test_tanh(void **state)
{
    const struct claim claim = { CELLGATE_TANH, tanh, 1.7e-7, 3e-7 };
    const struct cpu_kernels *kernels;

    (void)state;
    EACH_LEVEL(kernels)
    {
        check_everywhere(kernels, &claim);
        check_limits(kernels, CELLGATE_TANH, -1, 1);
        check_range(kernels, CELLGATE_TANH, -1, 1);
    }
}

static void test_sigmoid(void **state)
{
    const struct claim claim = { CELLGATE_SIGMOID, exact_sigmoid, 1.2e-7,
                                 INFINITY };
    const struct cpu_kernels *kernels;

    (void)state;
    EACH_LEVEL(kernels)
    {
        check_everywhere(kernels, &claim);
        check_limits(kernels, CELLGATE_SIGMOID, 0, 1);
        check_range(kernels, CELLGATE_SIGMOID, 0, 1);
    }
}

/* Vectors and lanes agree, for every kind and around every edge. */
static void test_every_activation(void **state)
{
    const struct cpu_kernels *kernels;
    float x[203], y[203];
    int32_t kind;
    int i;

    (void)state;
    for (i = 0; i < 203; i++)
        x[i] = (float)(i - 100) / 8;
    x[201] = NAN;
    x[202] = 1e4f;
    EACH_LEVEL(kernels)
    for (kind = 0; kind < CELLGATE_ACTIVATION_COUNT; kind++) {
        const cellgate_activation activation = { kind, 0.25f, 0.5f };

        kernels->activate(&activation, x, y, 203);
        for (i = 0; i < 203; i++) {
            float want = cpu_activation(&activation, x[i]);

            assert_true(isnan(x[i]) ? isnan(y[i])
                                    : y[i] == want ||
                                          fabsf(y[i] - want) <=
                                              1e-6f * fmaxf(1, fabsf(want)));
        }
    }
}

static void check_softmax(const struct cpu_kernels *kernels, int64_t count,
                          float spread)
{
    float *row = malloc((size_t)count * sizeof *row);
    double *want = malloc((size_t)count * sizeof *want), total = 0;
    int64_t i;

    assert_true(row && want);
    for (i = 0; i < count; i++) {
        row[i] = spread * sinf((float)i * 1.7f);
        want[i] = exp((double)row[i] - (double)spread);
        total += want[i];
    }
    kernels->softmax(row, count);
    for (i = 0; i < count; i++)
        /* The differences from the largest are rounded: up to 2 spread. */
        assert_true(fabs(row[i] - want[i] / total) <=
                    (1e-6 + 4e-7 * (double)spread) * (want[i] / total) + 1e-37);
    row[count / 2] = NAN;
    kernels->softmax(row, count);
    for (i = 0; i < count; i++)
        assert_true(isnan(row[i]));
    free(row);
    free(want);
}

static void test_softmax(void **state)
{
    static const int64_t counts[] = { 1, 2, 7, 16, 33, 10000 };
    const struct cpu_kernels *kernels;
    size_t i;

    (void)state;
    EACH_LEVEL(kernels)
    for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_softmax(kernels, counts[i], 1);
        check_softmax(kernels, counts[i], 30);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_sigmoid),
        cmocka_unit_test(test_every_activation),
        cmocka_unit_test(test_softmax),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
