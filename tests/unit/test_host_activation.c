/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations: values from Keras 3.15 in float64 (where it has them), their
 * limits, and NaN.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "runtime/host/host.h"

typedef struct activation_case {
    cellgate_activation activation;
    double y[4];      /* at -3.5, -0.75, 0.3, 2.25 */
    double limits[2]; /* at -infinity and +infinity */
} activation_case;

#define THIRD_OF_HALF ((float)(1.0 / 6.0))

static const activation_case cases[] = {
    { { CELLGATE_TANH, 0, 0 },
      { -0.9981778976, -0.6351489524, 0.2913126125, 0.9780261147 },
      { -1, 1 } },
    { { CELLGATE_SIGMOID, 0, 0 },
      { 0.02931223075, 0.3208213008, 0.5744425168, 0.9046505351 },
      { 0, 1 } },
    { { CELLGATE_LINEAR, 0, 0 },
      { -3.5, -0.75, 0.3, 2.25 },
      { -INFINITY, INFINITY } },
    { { CELLGATE_RELU, 0, 0 }, { 0, 0, 0.3, 2.25 }, { 0, INFINITY } },
    { { CELLGATE_LEAKY_RELU, 0.2f, 0 },
      { -0.7000000104, -0.1500000022, 0.3, 2.25 },
      { -INFINITY, INFINITY } },
    { { CELLGATE_RELU6, 0, 0 }, { 0, 0, 0.3, 2.25 }, { 0, 6 } },
    { { CELLGATE_ELU, 1, 0 },
      { -0.9698026166, -0.5276334473, 0.3, 2.25 },
      { -1, INFINITY } },
    { { CELLGATE_SELU, 0, 0 },
      { -1.705009341, -0.9276320158, 0.3152102962, 2.364077222 },
      { -1.7580993408473766, INFINITY } },
    { { CELLGATE_CELU, 2, 0 }, /* 2 (e^(x/2) - 1) below 0 */
      { -1.652452113, -0.6254214425, 0.3, 2.25 },
      { -2, INFINITY } },
    { { CELLGATE_SOFTPLUS, 0, 0 },
      { 0.02975041827, 0.3868710061, 0.8543552445, 2.350206559 },
      { 0, INFINITY } },
    { { CELLGATE_SOFTSIGN, 0, 0 },
      { -0.7777777778, -0.4285714286, 0.2307692308, 0.6923076923 },
      { -1, 1 } },
    { { CELLGATE_SQUAREPLUS, 4, 0 },
      { 0.2655644371, 0.6930004682, 1.161187421, 2.630199322 },
      { 0, INFINITY } },
    { { CELLGATE_SOFT_SHRINK, 0.5f, 0 },
      { -3, -0.25, 0, 1.75 },
      { -INFINITY, INFINITY } },
    { { CELLGATE_HARD_SHRINK, 0.5f, 0 },
      { -3.5, -0.75, 0, 2.25 },
      { -INFINITY, INFINITY } },
    { { CELLGATE_SPARSE_PLUS, 0, 0 },
      { 0, 0.015625, 0.4225, 2.25 },
      { 0, INFINITY } },
    { { CELLGATE_SILU, 0, 0 },
      { -0.1025928076, -0.2406159756, 0.172332755, 2.035463704 },
      { 0, INFINITY } },
    { { CELLGATE_GELU_ERF, 0, 0 },
      { -0.0008142019596, -0.1699705172, 0.1853734261, 2.222494934 },
      { 0, INFINITY } },
    { { CELLGATE_GELU_TANH, 0, 0 },
      { -0.000616197721, -0.170039445, 0.185370924, 2.22279867 },
      { 0, INFINITY } },
    { { CELLGATE_TANH_SHRINK, 0, 0 },
      { -2.501822102, -0.1148510476, 0.008687387548, 1.271973885 },
      { -INFINITY, INFINITY } },
    { { CELLGATE_THRESHOLD, 1, 0.25f },
      { 0.25, 0.25, 0.25, 2.25 },
      { 0.25, INFINITY } },
    { { CELLGATE_SPARSE_SIGMOID, 0, 0 }, { 0, 0.125, 0.65, 1 }, { 0, 1 } },
    { { CELLGATE_EXPONENTIAL, 0, 0 },
      { 0.03019738342, 0.4723665527, 1.349858808, 9.487735836 },
      { 0, INFINITY } },
    { { CELLGATE_HARD_SIGMOID, THIRD_OF_HALF, 0.5f },
      { 0, 0.375, 0.55, 0.875 },
      { 0, 1 } },
    { { CELLGATE_HARD_SILU, 0, 0 },
      { 0, -0.28125, 0.165, 1.96875 },
      { 0, INFINITY } },
    { { CELLGATE_HARD_TANH, 0, 0 }, { -1, -0.75, 0.3, 1 }, { -1, 1 } },
    { { CELLGATE_MISH, 0, 0 },
      { -0.1040957545, -0.2764947145, 0.2080013723, 2.209456758 },
      { 0, INFINITY } },
    { { CELLGATE_LOG_SIGMOID, 0, 0 },
      { -3.529750418, -1.136871006, -0.5543552445, -0.1002065589 },
      { -INFINITY, 0 } },
    { { CELLGATE_AFFINE, 2, -1 },
      { -8, -2.5, -0.4, 3.5 },
      { -INFINITY, INFINITY } },
    { { CELLGATE_SCALED_TANH, 2, 0.5f }, /* 2 tanh(x/2) */
      { -1.88275108, -0.7167148, 0.29777007, 1.61860214 },
      { -2, 2 } },
};

_Static_assert(sizeof cases / sizeof cases[0] == CELLGATE_ACTIVATION_COUNT,
               "every activation has its line");

static void values_are_keras(void **state)
{
    const double x[4] = { -3.5, -0.75, 0.3, 2.25 };

    (void)state;
    for (size_t at = 0; at < CELLGATE_ACTIVATION_COUNT; at++) {
        assert_int_equal(cases[at].activation.kind, (int)at);
        for (int k = 0; k < 4; k++) {
            double y = cg_host_activation(cases[at].activation, x[k]);

            if (!(fabs(y - cases[at].y[k]) <= 1e-6 * (1 + fabs(y))))
                fail_msg("activation %zu at %g gives %.10g, not %.10g", at,
                         x[k], y, cases[at].y[k]);
        }
    }
}

static void limits_are_reached(void **state)
{
    (void)state;
    for (size_t at = 0; at < CELLGATE_ACTIVATION_COUNT; at++)
        for (int end = 0; end < 2; end++) {
            double limit = cases[at].limits[end];
            double y = cg_host_activation(cases[at].activation,
                                          end == 0 ? -INFINITY : INFINITY);
            double near =
                cg_host_activation(cases[at].activation, end == 0 ? -1e4 : 1e4);

            if (!(y == limit || fabs(y - limit) < 1e-12))
                fail_msg("activation %zu tends to %g, not %g", at, y, limit);
            if (isnan(near) || (isfinite(limit) && !isfinite(near)))
                fail_msg("activation %zu gives %g far out", at, near);
        }
}

static void nan_stays_nan(void **state)
{
    (void)state;
    for (size_t at = 0; at < CELLGATE_ACTIVATION_COUNT; at++)
        assert_true(isnan(cg_host_activation(cases[at].activation, NAN)));
}

/* log1p(e^x) must not lose small values, nor squareplus cancel. */
static void small_results_keep_their_digits(void **state)
{
    cellgate_activation softplus = { CELLGATE_SOFTPLUS, 0, 0 };
    cellgate_activation squareplus = { CELLGATE_SQUAREPLUS, 4, 0 };

    (void)state;
    assert_true(fabs(cg_host_activation(softplus, -50) / exp(-50) - 1) < 1e-12);
    assert_true(fabs(cg_host_activation(squareplus, -1e6) * 1e6 - 1) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_keras),
        cmocka_unit_test(limits_are_reached),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(small_results_keep_their_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
