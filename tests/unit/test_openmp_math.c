/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels' exponential, sigmoid and tanh, and every other activation,
 * against the C library in double precision, on each level of this machine.
 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/openmp/activation.h"
#include "tests/unit/openmp_levels.h"

/*
 * Every STRIDE-th float, by its bits: some millions, over all magnitudes, both
 * signs, infinities and NaNs. With --every all 2^32 of them, which takes
 * minutes and is what the bounds in vec_math.h were proved with.
 */
#define STRIDE 1009u
#define CHUNK 4096

static uint64_t stride = STRIDE;

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
    const char *name;
    int32_t kind;
    double (*exact)(double);
    double absolute;
    double relative; /* infinity: none */
};

/* The largest errors that were seen on a level; infinite for what should have
   been a NaN and was not. */
struct worst {
    double absolute, relative;
    float at; /* the x of the larger relative error */
};

#define LEVELS_MOST 8

static void worsen(struct worst *worst, double absolute, double relative,
                   float at)
{
    worst->absolute = fmax(worst->absolute, absolute);
    if (relative > worst->relative) {
        worst->relative = relative;
        worst->at = at;
    }
}

static void look_at(struct worst *worst, const float *x, const double *want,
                    const float *y, int count)
{
    int i;

    for (i = 0; i < count; i++) {
        const double error = fabs(y[i] - want[i]);

        if (isnan(x[i]) || isnan(y[i]))
            worsen(worst, isnan(x[i]) && isnan(y[i]) ? 0 : INFINITY, 0, x[i]);
        else
            worsen(worst, error,
                   fabs(want[i]) > 1e-37 ? error / fabs(want[i]) : 0, x[i]);
    }
}

/* Every stride-th float from `first` on, up to CHUNK of them, on each level. */
static void look_at_chunk(const struct claim *claim, uint64_t first,
                          struct worst worst[LEVELS_MOST])
{
    const cellgate_activation activation = { claim->kind, 0, 0 };
    const struct cpu_kernels *kernels;
    double want[CHUNK];
    float x[CHUNK], y[CHUNK];
    int count;

    for (count = 0; count < CHUNK && first <= UINT32_MAX; count++) {
        x[count] = from_bits((uint32_t)first);
        want[count] = claim->exact(x[count]);
        first += stride;
    }
    EACH_LEVEL(kernels)
    {
        kernels->activate(&activation, x, y, count);
        look_at(&worst[level_at], x, want, y, count);
    }
}

static void check_everywhere(const struct claim *claim)
{
    const int64_t chunks = (int64_t)((UINT32_MAX / stride + CHUNK) / CHUNK);
    struct worst worst[LEVELS_MOST] = { 0 };
    const struct cpu_kernels *kernels;
    int64_t at;
    int i;

#pragma omp parallel private(i)
    {
        struct worst own[LEVELS_MOST] = { 0 };

#pragma omp for schedule(dynamic, 16)
        for (at = 0; at < chunks; at++)
            look_at_chunk(claim, (uint64_t)at * CHUNK * stride, own);
#pragma omp critical
        for (i = 0; i < LEVELS_MOST; i++)
            worsen(&worst[i], own[i].absolute, own[i].relative, own[i].at);
    }
    EACH_LEVEL(kernels)
    {
        const struct worst *of = &worst[level_at];

        print_message("%s %s: off by at most %.4g, and %.4g of itself (at "
                      "%.9g)\n",
                      kernels->name, claim->name, of->absolute, of->relative,
                      (double)of->at);
        assert_true(of->absolute <= claim->absolute);
        assert_true(of->relative <= claim->relative);
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
    const struct claim claim = { "tanh", CELLGATE_TANH, tanh, 1.6e-7, 3.1e-7 };
    const struct cpu_kernels *kernels;

    (void)state;
    check_everywhere(&claim);
    EACH_LEVEL(kernels)
    {
        check_limits(kernels, CELLGATE_TANH, -1, 1);
        check_range(kernels, CELLGATE_TANH, -1, 1);
    }
}

static void test_sigmoid(void **state)
{
    const struct claim claim = { "sigmoid", CELLGATE_SIGMOID, exact_sigmoid,
                                 1.2e-7, INFINITY };
    const struct cpu_kernels *kernels;

    (void)state;
    check_everywhere(&claim);
    EACH_LEVEL(kernels)
    {
        check_limits(kernels, CELLGATE_SIGMOID, 0, 1);
        check_range(kernels, CELLGATE_SIGMOID, 0, 1);
    }
}

/* Through a softmax whose largest is 0: its probabilities are to each other as
   the exponentials; a quotient of two of them is rounded four times. */
static bool exponentials_hold(const struct cpu_kernels *kernels, uint64_t first,
                              uint64_t end)
{
    /* SIMDe multiplies and adds in two steps. */
    const bool fused = strncmp(kernels->name, "avx", 3) == 0;
    float x[CHUNK] = { 0 }, y[CHUNK];
    int count, i;

    for (count = 1; count < CHUNK && first < end; count++, first += stride)
        x[count] = from_bits((uint32_t)first);
    memcpy(y, x, sizeof y);
    softmax_in_place(kernels, y, count);
    for (i = 1; i < count; i++) {
        const double want = exp((double)x[i]);
        const double bound = x[i] > -0.5f ? 3e-7 : fused ? 2e-6 : 5e-6;
        const double off = fabs((double)y[i] / (double)y[0] - want);

        if (!(off <= (bound + 0x1p-22) * want) && y[i] > FLT_MIN) {
            print_error("%s: e^%.9g is off by %g\n", kernels->name,
                        (double)x[i], off / want);
            return false;
        }
    }
    return true;
}

/* The negative floats down to -87. */
static void test_exponential(void **state)
{
    const uint64_t first = 0x80000000u, end = 0xc2ae0000u;
    const int64_t chunks =
        (int64_t)((end - first) / (stride * (CHUNK - 1))) + 1;
    const struct cpu_kernels *kernels;
    bool hold = true;
    int64_t at;

    (void)state;
    EACH_LEVEL(kernels)
    {
#pragma omp parallel for schedule(dynamic, 16) reduction(&& : hold)
        for (at = 0; at < chunks; at++)
            if (hold)
                hold = exponentials_hold(
                    kernels, first + (uint64_t)at * (CHUNK - 1) * stride, end);
    }
    assert_true(hold);
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
    softmax_in_place(kernels, row, count);
    for (i = 0; i < count; i++)
        /* The differences from the largest are rounded: up to 2 spread. */
        assert_true(fabs(row[i] - want[i] / total) <=
                    (1e-6 + 4e-7 * (double)spread) * (want[i] / total) + 1e-37);
    row[count / 2] = NAN;
    softmax_in_place(kernels, row, count);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_sigmoid),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_every_activation),
        cmocka_unit_test(test_softmax),
    };

    if (argc == 2 && strcmp(argv[1], "--every") == 0)
        stride = 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
