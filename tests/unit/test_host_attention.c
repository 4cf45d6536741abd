/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention on the host against literal numbers, from NumPy in float64 by the
 * formulas in model.h; where everything is masked, from Keras 3.15 and tf_keras
 * 2.21 in float32, which agree.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "tests/unit/host_call.h"

static const float query[4] = { 0.5f, -1, 1, 0.25f };
static const float key[6] = { 0.25f, 1, -0.5f, 0.75f, 2, -1 };
static const float value[9] = { 1, 2, 3, -1, 0.5f, 0.25f, 4, -2, 1 };
static const float scale[] = { 0.7f, -0.3f };
static const float weight[] = { 1.5f };

typedef struct options {
    cg_attention_mode mode;
    bool plain, causal;
    const uint8_t *query_mask, *value_mask;
    const float *query;
} options;

static void expect(options with, const double weights[6],
                   const double context[6])
{
    float got_context[6], got_weights[6];
    host_call call;

    host_call_init(&call, CG_ATTENTION);
    call.node.as.attention =
        (cg_attention){ with.mode, 2, !with.plain, with.causal };
    host_call_input(&call, CELLGATE_F32,
                    with.query != NULL ? with.query : query, 3, 1, 2, 2);
    host_call_input(&call, CELLGATE_F32, value, 3, 1, 3, 3);
    host_call_input(&call, CELLGATE_F32, key, 3, 1, 3, 2);
    host_call_input(&call, CELLGATE_U8, with.query_mask, 2, 1, 2, 0);
    host_call_input(&call, CELLGATE_U8, with.value_mask, 2, 1, 3, 0);
    host_call_output(&call, CELLGATE_F32, got_context, 3, 1, 2, 3);
    host_call_output(&call, CELLGATE_F32, got_weights, 3, 1, 2, 3);
    host_call_weight(&call, with.plain ? NULL : scale);
    host_call_weight(&call, weight);
    assert_true(cg_host_scratch(&call.node, call.shapes) <=
                sizeof call.scratch);
    assert_int_equal(host_call_run(&call, NULL), CELLGATE_OK);
    for (size_t k = 0; k < 6; k++) {
        if (!(fabs((double)got_weights[k] - weights[k]) < 1e-6))
            fail_msg("weight %zu is %.9g, not %.9g", k, (double)got_weights[k],
                     weights[k]);
        if (!(fabs((double)got_context[k] - context[k]) < 2e-6))
            fail_msg("number %zu is %.9g, not %.9g", k, (double)got_context[k],
                     context[k]);
    }
}

static void modes(void **state)
{
    (void)state;
    expect((options){ .mode = CG_ATTENTION_DOT },
           (double[]){ 0.106403152, 0.0974885756, 0.796108273, 0.252199935,
                       0.142803872, 0.604996193 },
           (double[]){ 3.19334767, -1.33066595, 1.13968987, 2.52938083,
                       -0.63419058, 1.39729697 });
    expect((options){ .mode = CG_ATTENTION_CONCAT },
           (double[]){ 0.525571625, 0.196823826, 0.277604549, 0.571991703,
                       0.28387178, 0.144136517 },
           (double[]){ 1.439166, 0.594346063, 1.90352538, 0.86466599,
                       0.997646264, 1.93107957 });
    expect((options){ .mode = CG_ATTENTION_ADDITIVE },
           (double[]){ 0.29430782, 0.203059199, 0.502632981, 0.284686451,
                       0.222979248, 0.492334301 },
           (double[]){ 2.10178054, -0.315120721, 1.43632124, 2.03104441,
                       -0.303806076, 1.40213847 });
}

static void masks(void **state)
{
    static const uint8_t not_first[3] = { 0, 1, 1 }, second[2] = { 0, 1 };

    (void)state;
    expect((options){ .mode = CG_ATTENTION_DOT, .causal = true },
           (double[]){ 1, 0, 0, 0.638474694, 0.361525306, 0 },
           (double[]){ 1, 2, 3, 0.276949388, 1.45771204, 2.00580541 });
    expect(
        (options){ .mode = CG_ATTENTION_DOT, .value_mask = not_first },
        (double[]){ 0, 0.109096821, 0.890903179, 0, 0.190965311, 0.809034689 },
        (double[]){ 3.45451589, -1.72725795, 0.918177384, 3.04517344,
                    -1.52258672, 0.856776017 });
    /* The weights do not look at the mask of the query. */
    expect(
        (options){ .mode = CG_ATTENTION_DOT,
                   .value_mask = not_first,
                   .query_mask = second },
        (double[]){ 0, 0.109096821, 0.890903179, 0, 0.190965311, 0.809034689 },
        (double[]){ 0, 0, 0, 3.04517344, -1.52258672, 0.856776017 });
}

static void where_everything_is_masked(void **state)
{
    static const uint8_t none[3] = { 0 }, not_first[3] = { 0, 1, 1 };
    static const float large[4] = { 50, -100, 100, 25 };
    const double third = 1.0 / 3;

    (void)state;
    expect((options){ .mode = CG_ATTENTION_DOT,
                      .plain = true,
                      .value_mask = none },
           (double[]){ third, third, third, third, third, third },
           (double[]){ 1.33333337, 0.166666687, 1.41666675, 1.33333337,
                       0.166666687, 1.41666675 });
    expect((options){ .mode = CG_ATTENTION_DOT,
                      .plain = true,
                      .causal = true,
                      .value_mask = not_first },
           (double[]){ third, third, third, 0, 1, 0 },
           (double[]){ 1.33333337, 0.166666687, 1.41666675, -1, 0.5, 0.25 });
    /* Scores that single precision tells apart from 1e9 below. */
    expect((options){ .mode = CG_ATTENTION_DOT,
                      .plain = true,
                      .value_mask = none,
                      .query = large },
           (double[]){ 0, 0, 1, 0, 0, 1 }, (double[]){ 4, -2, 1, 4, -2, 1 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes),
        cmocka_unit_test(masks),
        cmocka_unit_test(where_everything_is_masked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
