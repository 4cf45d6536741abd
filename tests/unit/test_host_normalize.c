/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation, AFFINE, PRELU, RELU and the kin of softmax, against numbers
   worked out by hand. */
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

static void assert_normal(cg_normalize normalize, const float *gamma,
                          const float *beta, const float *wanted)
{
    const float x[4] = { 1, 5, 3, 3 };
    float y[4];
    host_call call;

    host_call_init(&call, CG_NORMALIZE);
    call.node.as.normalize = normalize;
    host_call_input(&call, CELLGATE_F32, x, 2, 2, 2, 0);
    host_call_output(&call, CELLGATE_F32, y, 2, 2, 2, 0);
    host_call_weight(&call, gamma);
    host_call_weight(&call, beta);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, wanted, 4);
}

/* Mean 3 and variance 4, then 3 and 0; squares of 26 and 18 together. */
static void normalisation_of_each_mode(void **state)
{
    const cg_extents two = { .count = 1, .extent = { 2 } };
    const float gamma[2] = { 2, 3 }, beta[2] = { 10, 20 };

    (void)state;
    assert_normal((cg_normalize){ .extents = two, .epsilon = 5 }, NULL, NULL,
                  (float[]){ -2.0f / 3, 2.0f / 3, 0, 0 });
    assert_normal((cg_normalize){ .extents = two, .epsilon = 5 }, gamma, beta,
                  (float[]){ 10 - 4.0f / 3, 22, 10, 20 });
    assert_normal(
        (cg_normalize){
            .mode = CG_NORMALIZE_VARIANCE, .extents = two, .epsilon = 5 },
        gamma, NULL, (float[]){ 2.0f / 3, 5, 2.683281573f, 4.024922359f });
    assert_normal(
        (cg_normalize){
            .mode = CG_NORMALIZE_RMS, .extents = two, .epsilon = 3 },
        gamma, NULL, (float[]){ 0.5f, 3.75f, 1.732050808f, 2.598076211f });
    assert_normal(
        (cg_normalize){
            .mode = CG_NORMALIZE_UNIT, .extents = two, .epsilon = 25 },
        NULL, NULL, (float[]){ 0.196116135f, 0.980580676f, 0.6f, 0.6f });
}

static void affine_spreads_its_weights(void **state)
{
    const float x[6] = { 1, 2, 3, 4, 5, 6 };
    const float shift[3] = { 1, 2, 3 }, scale[3] = { 2, 4, 8 };
    const float offset[3] = { 0.5f, 0, -0.5f };
    float y[6];
    host_call call;

    (void)state;
    host_call_init(&call, CG_AFFINE);
    call.node.as.affine.extents = (cg_extents){ 1, { 3 } };
    host_call_input(&call, CELLGATE_F32, x, 3, 1, 2, 3);
    host_call_output(&call, CELLGATE_F32, y, 3, 1, 2, 3);
    host_call_weight(&call, shift);
    host_call_weight(&call, scale);
    host_call_weight(&call, offset);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 0.5f, 0, -0.5f, 6.5f, 12, 23.5f }, 6);
    /* One a step, then one for all. */
    call.node.as.affine.extents = (cg_extents){ 2, { 2, 1 } };
    call.weights[0].data = call.weights[2].data = NULL;
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 2, 4, 6, 16, 20, 24 }, 6);
    call.node.as.affine.extents = (cg_extents){ 1, { 1 } };
    call.weights[2].data = offset;
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ 2.5f, 4.5f, 6.5f, 8.5f, 10.5f, 12.5f }, 6);
}

static void prelu_has_slopes(void **state)
{
    const float x[6] = { -1, 2, -3, -4, 5, NAN };
    const float alpha[3] = { 0.5f, 2, -1 };
    float y[6];
    host_call call;

    (void)state;
    host_call_init(&call, CG_PRELU);
    call.node.as.prelu = (cg_extents){ 2, { 1, 3 } };
    host_call_input(&call, CELLGATE_F32, x, 3, 1, 2, 3);
    host_call_output(&call, CELLGATE_F32, y, 3, 1, 2, 3);
    host_call_weight(&call, alpha);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    assert_floats(y, (float[]){ -0.5f, 2, 3, -2, 5 }, 5);
    assert_true(isnan(y[5]));
}

static void assert_rows(cg_kind kind, const cg_relu *relu, const float *x,
                        int64_t size, const float *wanted)
{
    float y[8];
    host_call call;

    host_call_init(&call, kind);
    if (relu != NULL)
        call.node.as.relu = *relu;
    host_call_input(&call, CELLGATE_F32, x, 2, 1, size, 0);
    host_call_output(&call, CELLGATE_F32, y, 2, 1, size, 0);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    for (int64_t k = 0; k < size; k++)
        if (isnan(wanted[k]))
            assert_true(isnan(y[k]));
        else
            assert_floats(y + k, wanted + k, 1);
}

/* At the threshold itself Keras takes the slope. */
static void relu_with_all_options(void **state)
{
    const float x[7] = { -2, 0, 1, 1.5f, 3, 7, NAN };

    (void)state;
    assert_rows(CG_RELU, &(cg_relu){ 0.5f, 1, 3, true }, x, 7,
                (float[]){ -1.5f, -0.5f, 0, 1.5f, 3, 3, NAN });
    assert_rows(CG_RELU, &(cg_relu){ 0, 2, 1, true }, x, 7,
                (float[]){ 0, 0, 0, 0, 1, 1, NAN });
    assert_rows(CG_RELU, &(cg_relu){ 0.25f, 0, 0, false }, x, 7,
                (float[]){ -0.5f, 0, 1, 1.5f, 3, 7, NAN });
}

static void log_softmax_of_far_numbers(void **state)
{
    (void)state;
    assert_rows(CG_LOG_SOFTMAX, NULL, (float[]){ 1, 2, 3 }, 3,
                (float[]){ -2.407605964f, -1.407605964f, -0.407605964f });
    assert_rows(CG_LOG_SOFTMAX, NULL, (float[]){ -1000, 0 }, 2,
                (float[]){ -1000, 0 });
    assert_rows(CG_LOG_SOFTMAX, NULL, (float[]){ 1, NAN }, 2,
                (float[]){ NAN, NAN });
}

/* In the second row 1 and 0.5 stay: (1 + 1.5 - 1) / 2 is taken away. The third
   row is Keras's own answer. */
static void sparsemax_is_that_of_keras(void **state)
{
    (void)state;
    assert_rows(CG_SPARSEMAX, NULL, (float[]){ 1, 2, 3 }, 3,
                (float[]){ 0, 0, 1 });
    assert_rows(CG_SPARSEMAX, NULL, (float[]){ 1, 0.5f, -1, 0.25f }, 4,
                (float[]){ 0.25f, 0, 0, 0 });
    assert_rows(CG_SPARSEMAX, NULL, (float[]){ 0.1f, 0.2f, 0.3f }, 3,
                (float[]){ 0, 0.06666663f, 0.16666664f });
    assert_rows(CG_SPARSEMAX, NULL, (float[]){ 0, 0 }, 2,
                (float[]){ 0.5f, 0.5f });
    assert_rows(CG_SPARSEMAX, NULL, (float[]){ -7 }, 1, (float[]){ 1 });
    assert_rows(CG_SPARSEMAX, NULL, (float[]){ 0, NAN, 1 }, 3,
                (float[]){ NAN, NAN, NAN });
    assert_rows(CG_SPARSEMAX, NULL, (float[]){ 0, -INFINITY, 1 }, 3,
                (float[]){ 0, 0, 1 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalisation_of_each_mode),
        cmocka_unit_test(affine_spreads_its_weights),
        cmocka_unit_test(prelu_has_slopes),
        cmocka_unit_test(relu_with_all_options),
        cmocka_unit_test(log_softmax_of_far_numbers),
        cmocka_unit_test(sparsemax_is_that_of_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
