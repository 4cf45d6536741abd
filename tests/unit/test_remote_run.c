/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on the stand-in: shapes, variants, state, memory, pinned buffers. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/remote_rig.h"

static const char *const no_settings[] = { NULL };

static void expect_near(const float *a, const float *b, size_t count,
                        float limit)
{
    size_t at;

    for (at = 0; at < count; at++)
        if (!(fabsf(a[at] - b[at]) <= limit))
            fail_msg("element %zu: %g and %g", at, (double)a[at],
                     (double)b[at]);
}

/* LSTM(1) with known weights, one step, worked out here by hand. */
static void test_one_step_by_hand(void **state)
{
    const float kernel[4] = { 0.5f, -0.25f, 1.0f, 0.75f };
    const float recurrent[4] = { 0.1f, 0.2f, 0.3f, 0.4f };
    const double x = 2, h0 = 0.5, c0 = -1;
    const double i = 1 / (1 + exp(-(0.5 * x + 0.1 * h0)));
    const double f = 1 / (1 + exp(-(-0.25 * x + 0.2 * h0)));
    const double g = tanh(1.0 * x + 0.3 * h0);
    const double o = 1 / (1 + exp(-(0.75 * x + 0.4 * h0)));
    const double c = f * c0 + i * g, h = o * tanh(c);
    struct rig rig;
    struct rig_model model;
    struct rig_call call;
    struct rig_plan plan;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    model.lstm.input_size = model.lstm.hidden_size = 1;
    model.lstm.has_bias = 0;
    model.lstm.weights[0].bias = NULL;
    model.lstm.weights[0].kernel = kernel;
    model.lstm.weights[0].recurrent_kernel = recurrent;
    rig_call_init(&call, &model, 1, 1);
    call.x[0] = (float)x;
    call.h0[0] = (float)h0;
    call.c0[0] = (float)c0;
    call.states[0].h0 = call.h0;
    call.states[0].c0 = call.c0;
    rig_plan_make(&rig, &model, "any", 1, 1, &plan);
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_OK);
    assert_true(fabs(call.h[0] - h) < 1e-6);
    assert_true(fabs(call.c[0] - c) < 1e-6);
    assert_true(call.y[0] == call.h[0] && call.last[0] == call.h[0]);
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
}

/* A run of this batch and steps in a plan of 4 and 6. */
static cellgate_status run_in_plan(const char *variant, int64_t batch,
                                   int64_t steps)
{
    struct rig rig;
    struct rig_model model;
    struct rig_call call;
    struct rig_plan plan;
    cellgate_status status;

    rig_open(&rig, NULL);
    rig_model_init(&model, true);
    rig_plan_make(&rig, &model, variant, 4, 6, &plan);
    rig_call_init(&call, &model, batch, steps);
    status = rig_run(&rig, &plan, &call, NULL);
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
    return status;
}

static void test_a_plan_runs_its_shapes_only(void **state)
{
    (void)state;
    assert_int_equal(run_in_plan("any", 4, 6), CELLGATE_OK);
    assert_int_equal(run_in_plan("any", 3, 2), CELLGATE_OK);
    assert_int_equal(run_in_plan("any", 1, 0), CELLGATE_OK);
    assert_int_equal(run_in_plan("any", 5, 6), CELLGATE_INVALID);
    assert_int_equal(run_in_plan("any", 4, 7), CELLGATE_INVALID);
    assert_int_equal(run_in_plan("any", 0, 6), CELLGATE_INVALID);
    assert_int_equal(run_in_plan("batch", 4, 6), CELLGATE_OK);
    assert_int_equal(run_in_plan("batch", 4, 2), CELLGATE_OK);
    assert_int_equal(run_in_plan("batch", 3, 6), CELLGATE_INVALID);
    assert_int_equal(run_in_plan("batch", 4, 7), CELLGATE_INVALID);
    assert_int_equal(run_in_plan("exact", 4, 6), CELLGATE_OK);
    assert_int_equal(run_in_plan("exact", 4, 5), CELLGATE_INVALID);
    assert_int_equal(run_in_plan("exact", 3, 6), CELLGATE_INVALID);
}

static void run_variant(struct rig *rig, const struct rig_model *model,
                        const char *variant, struct rig_call *call)
{
    struct rig_plan plan;

    rig_call_init(call, model, RIG_BATCH, RIG_STEPS);
    rig_plan_make(rig, model, variant, RIG_BATCH, RIG_STEPS, &plan);
    assert_int_equal(rig_run(rig, &plan, call, NULL), CELLGATE_OK);
    rig_plan_free(rig, &plan);
}

static void test_variants_agree(void **state)
{
    struct rig rig;
    struct rig_model model;
    struct rig_call any, other;
    const size_t count = RIG_BATCH * RIG_STEPS * RIG_HIDDEN;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    run_variant(&rig, &model, "any", &any);
    run_variant(&rig, &model, "batch", &other);
    assert_memory_equal(any.y, other.y, sizeof any.y);
    run_variant(&rig, &model, "exact", &other);
    assert_memory_equal(any.y, other.y, sizeof any.y);
    run_variant(&rig, &model, "bf16", &other);
    /* 8 bits of mantissa; sums of 8 products below 1 into a contraction. */
    expect_near(any.y, other.y, count, 8.0f / 256);
    assert_memory_not_equal(any.y, other.y, sizeof any.y);
    rig_close(&rig);
}

static void test_bf16_weights_take_half(void **state)
{
    struct rig rig;
    struct rig_model model;
    static float kernel[RIG_INPUT * 4 * 512], recurrent[512 * 4 * 512];
    uint64_t f32, bf16;
    cellgate_weights *weights;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    model.lstm.hidden_size = 512;
    model.lstm.has_bias = 0;
    model.lstm.weights[0].kernel = kernel;
    model.lstm.weights[0].recurrent_kernel = recurrent;
    assert_int_equal(
        rig.plugin->prepare(rig.device, &model.segment, 0, &weights, &error),
        CELLGATE_OK);
    f32 = rig.plugin->memory_used(rig.device);
    rig.plugin->weights_free(weights);
    assert_int_equal(rig.plugin->memory_used(rig.device), 0);
    assert_int_equal(
        rig.plugin->prepare(rig.device, &model.segment, 1, &weights, &error),
        CELLGATE_OK);
    bf16 = rig.plugin->memory_used(rig.device);
    assert_int_equal(2 * bf16, f32);
    rig.plugin->weights_free(weights);
    assert_int_equal(
        rig.plugin->prepare(rig.device, &model.segment, 2, &weights, &error),
        CELLGATE_INVALID);
    rig_close(&rig);
}

static void test_a_variant_needs_its_pack(void **state)
{
    const cellgate_shape shape = { sizeof shape, 1, 1 };
    struct rig rig;
    struct rig_model model;
    cellgate_weights *weights;
    cellgate_plan *plan = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;
    uint32_t pack;
    uint64_t id;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    id = rig_variant(&rig, &model, "bf16", &pack);
    assert_int_equal(
        rig.plugin->prepare(rig.device, &model.segment, 0, &weights, &error),
        CELLGATE_OK);
    assert_int_equal(
        rig.plugin->plan_create(rig.device, weights, id, &shape, &plan, &error),
        CELLGATE_INVALID);
    assert_null(plan);
    rig.plugin->weights_free(weights);
    rig_close(&rig);
}

static void test_what_does_not_fit_is_device_memory(void **state)
{
    static const char *const settings[] = { "memory", "8192", NULL };
    const int64_t steps[] = { 1000, INT64_MAX / 2 };
    struct rig rig;
    struct rig_model model;
    struct rig_plan fits;
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_plan *plan = NULL;
    uint64_t before, id;
    uint32_t pack;
    size_t at;

    (void)state;
    rig_open(&rig, settings);
    rig_model_init(&model, false);
    rig_plan_make(&rig, &model, "any", 1, 1, &fits);
    before = rig.plugin->memory_used(rig.device);
    id = rig_variant(&rig, &model, "any", &pack);
    for (at = 0; at < 2; at++) {
        const cellgate_shape shape = { sizeof shape, 4, steps[at] };
        assert_int_equal(rig.plugin->plan_create(rig.device, fits.weights, id,
                                                 &shape, &plan, &error),
                         CELLGATE_DEVICE_MEMORY);
        assert_null(plan);
        assert_int_equal(rig.plugin->memory_used(rig.device), before);
    }
    rig_plan_free(&rig, &fits);
    rig_close(&rig);
}

static void test_weights_freed_too_early_fail_the_run(void **state)
{
    struct rig rig;
    struct rig_model model;
    struct rig_call call;
    struct rig_plan plan;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    rig_call_init(&call, &model, 1, 2);
    rig_plan_make(&rig, &model, "any", 1, 2, &plan);
    rig.plugin->weights_free(plan.weights);
    assert_true(rig_logged(&rig, "weights freed before"));
    assert_int_equal(rig_run(&rig, &plan, &call, &error),
                     CELLGATE_DEVICE_FAILED);
    assert_true(rig_logged(&rig, "freed or was never allocated"));
    assert_int_equal(error.vendor_code, 700);
    rig.plugin->plan_destroy(plan.plan);
    rig_close(&rig);
}

static void test_strides_are_followed(void **state)
{
    struct rig rig;
    struct rig_model model;
    struct rig_call dense, strided;
    struct rig_plan plan;
    float x[RIG_STEPS * RIG_BATCH * 4], y[RIG_STEPS * RIG_BATCH * 7];
    int b, t, k;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    rig_plan_make(&rig, &model, "any", RIG_BATCH, RIG_STEPS, &plan);
    rig_call_init(&dense, &model, RIG_BATCH, RIG_STEPS);
    assert_int_equal(rig_run(&rig, &plan, &dense, NULL), CELLGATE_OK);

    /* Time-major, with a gap after each row, and the batch backwards in y. */
    rig_call_init(&strided, &model, RIG_BATCH, RIG_STEPS);
    for (b = 0; b < RIG_BATCH; b++)
        for (t = 0; t < RIG_STEPS; t++)
            for (k = 0; k < RIG_INPUT; k++)
                x[(t * RIG_BATCH + b) * 4 + k] =
                    dense.x[(b * RIG_STEPS + t) * RIG_INPUT + k];
    strided.run.x.data = x;
    strided.run.x.batch_stride = 4;
    strided.run.x.time_stride = 4 * RIG_BATCH;
    strided.run.y.data = y + 7 * (RIG_BATCH - 1);
    strided.run.y.batch_stride = -7;
    strided.run.y.time_stride = 7 * RIG_BATCH;
    assert_int_equal(rig_run(&rig, &plan, &strided, NULL), CELLGATE_OK);
    for (b = 0; b < RIG_BATCH; b++)
        for (t = 0; t < RIG_STEPS; t++)
            assert_memory_equal(&y[(t * RIG_BATCH + RIG_BATCH - 1 - b) * 7],
                                &dense.y[(b * RIG_STEPS + t) * RIG_HIDDEN],
                                RIG_HIDDEN * sizeof(float));
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
}

static void test_lengths(void **state)
{
    int32_t lengths[3] = { 2, 0, 6 };
    struct rig rig;
    struct rig_model model;
    struct rig_call call;
    struct rig_plan plan;
    const float *y = call.y;
    int k;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    rig_plan_make(&rig, &model, "any", 3, 6, &plan);
    rig_call_init(&call, &model, 3, 6);
    call.states[0].h0 = call.h0;
    call.run.lengths = lengths;
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_OK);
    for (k = 0; k < RIG_HIDDEN; k++) {
        assert_true(y[1 * RIG_HIDDEN + k] == call.last[k]);
        assert_true(y[1 * RIG_HIDDEN + k] == call.h[k]);
        assert_true(y[2 * RIG_HIDDEN + k] == 0);
        assert_true(call.last[RIG_HIDDEN + k] == 0);
        assert_true(call.h[RIG_HIDDEN + k] == call.h0[RIG_HIDDEN + k]);
    }
    lengths[0] = 7;
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_INVALID);
    lengths[0] = -1;
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_INVALID);
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
}

static void test_missing_buffers_are_invalid(void **state)
{
    struct rig rig;
    struct rig_model model;
    struct rig_call call;
    struct rig_plan plan;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    rig_plan_make(&rig, &model, "any", 1, 2, &plan);
    rig_call_init(&call, &model, 1, 2);
    call.run.x.data = NULL;
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_INVALID);
    rig_call_init(&call, &model, 1, 2);
    call.run.y_last.data = NULL;
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_INVALID);
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
}

/* With and without resident state, which is updated all the same. */
static void test_final_states_may_be_unwanted(void **state)
{
    struct rig rig;
    struct rig_model model;
    struct rig_call wanted, unwanted;
    struct rig_plan plan;
    cellgate_resident *resident;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    rig_plan_make(&rig, &model, "any", 1, 2, &plan);
    rig_call_init(&wanted, &model, 1, 2);
    assert_int_equal(rig_run(&rig, &plan, &wanted, NULL), CELLGATE_OK);
    rig_call_init(&unwanted, &model, 1, 2);
    unwanted.run.states = NULL;
    assert_int_equal(rig_run(&rig, &plan, &unwanted, NULL), CELLGATE_OK);
    assert_memory_equal(unwanted.last, wanted.last, sizeof wanted.last);

    assert_int_equal(
        rig.plugin->resident_create(plan.weights, 1, &resident, &error),
        CELLGATE_OK);
    unwanted.run.resident = resident;
    assert_int_equal(rig_run(&rig, &plan, &unwanted, NULL), CELLGATE_OK);
    assert_int_equal(
        rig.plugin->resident_export(resident, unwanted.states, &error),
        CELLGATE_OK);
    assert_memory_equal(unwanted.h, wanted.h, sizeof wanted.h);
    assert_memory_equal(unwanted.c, wanted.c, sizeof wanted.c);
    rig.plugin->resident_destroy(resident);
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
}

/* Six steps at once, and in pieces of 1, 2 and 3 over resident state. */
static void test_resident_pieces_equal_the_whole(void **state)
{
    struct rig rig;
    struct rig_model model;
    struct rig_call whole, piece;
    struct rig_plan plan;
    cellgate_resident *resident;
    cellgate_error error = CELLGATE_ERROR_INIT;
    int64_t done = 0, steps;

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, false);
    rig_plan_make(&rig, &model, "any", 1, RIG_STEPS, &plan);
    rig_call_init(&whole, &model, 1, RIG_STEPS);
    assert_int_equal(rig_run(&rig, &plan, &whole, NULL), CELLGATE_OK);

    assert_int_equal(
        rig.plugin->resident_create(plan.weights, 1, &resident, &error),
        CELLGATE_OK);
    for (steps = 1; steps <= 3; done += steps++) {
        rig_call_init(&piece, &model, 1, steps);
        piece.run.resident = resident;
        piece.run.x.data = whole.x + done * RIG_INPUT;
        assert_int_equal(rig_run(&rig, &plan, &piece, NULL), CELLGATE_OK);
        assert_memory_equal(piece.y, whole.y + done * RIG_HIDDEN,
                            (size_t)steps * RIG_HIDDEN * sizeof(float));
    }
    memset(piece.h, 0, sizeof piece.h);
    memset(piece.c, 0, sizeof piece.c);
    assert_int_equal(
        rig.plugin->resident_export(resident, piece.states, &error),
        CELLGATE_OK);
    assert_memory_equal(piece.h, whole.h, RIG_HIDDEN * sizeof(float));
    assert_memory_equal(piece.c, whole.c, RIG_HIDDEN * sizeof(float));
    rig.plugin->resident_destroy(resident);
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
}

static void test_resident_import_and_export(void **state)
{
    struct rig rig;
    struct rig_model model;
    struct rig_call call;
    struct rig_plan plan;
    cellgate_resident *resident;
    cellgate_error error = CELLGATE_ERROR_INIT;
    const float zeros[RIG_BATCH * RIG_HIDDEN] = { 0 };

    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, true);
    rig_plan_make(&rig, &model, "any", 4, 2, &plan);
    rig_call_init(&call, &model, 4, 2);
    assert_int_equal(
        rig.plugin->resident_create(plan.weights, 4, &resident, &error),
        CELLGATE_OK);
    memset(call.h, 1, sizeof call.h);
    assert_int_equal(rig.plugin->resident_export(resident, call.states, &error),
                     CELLGATE_OK);
    assert_memory_equal(call.h, zeros, sizeof zeros);

    call.states[0].h0 = call.h0;
    call.states[0].c0 = call.c0;
    assert_int_equal(rig.plugin->resident_import(resident, call.states, &error),
                     CELLGATE_OK);
    assert_int_equal(rig.plugin->resident_export(resident, call.states, &error),
                     CELLGATE_OK);
    assert_memory_equal(call.h, call.h0, sizeof call.h0);
    assert_memory_equal(call.c, call.c0, sizeof call.c0);

    /* Beside resident state there is no other initial state. */
    call.run.resident = resident;
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_INVALID);
    call.states[0].h0 = call.states[0].c0 = NULL;
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_OK);
    call.run.batch = 3;
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_INVALID);

    call.states[0].h = NULL;
    assert_int_equal(rig.plugin->resident_export(resident, call.states, &error),
                     CELLGATE_INVALID);
    rig.plugin->resident_destroy(resident);
    assert_int_equal(
        rig.plugin->resident_create(plan.weights, 0, &resident, &error),
        CELLGATE_INVALID);
    assert_int_equal(
        rig.plugin->resident_create(plan.weights, INT64_MAX, &resident, &error),
        CELLGATE_DEVICE_MEMORY);
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
}

static void test_breakdown_is_of_the_last_run(void **state)
{
    static const char *const settings[] = { "latency", "0.02", NULL };
    struct rig rig;
    struct rig_model model;
    struct rig_call call;
    struct rig_plan plan;
    cellgate_breakdown parts = { .struct_size = sizeof parts };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    rig_open(&rig, settings);
    rig_model_init(&model, false);
    rig_plan_make(&rig, &model, "any", 4, 6, &plan);
    assert_int_equal(rig.plugin->breakdown(plan.plan, &parts, &error),
                     CELLGATE_INVALID);
    rig_call_init(&call, &model, 4, 6);
    assert_int_equal(rig_run(&rig, &plan, &call, NULL), CELLGATE_OK);
    assert_int_equal(rig.plugin->breakdown(plan.plan, &parts, &error),
                     CELLGATE_OK);
    assert_true(parts.upload > 0 && parts.download > 0);
    assert_true(parts.compute >= 0.02);
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
}

static void test_required_pinned_memory(void **state)
{
    static const char *const settings[] = { "require_pinned", "yes", NULL };
    struct rig rig;
    struct rig_model model;
    struct rig_call call, *pinned;
    struct rig_plan plan;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    rig_open(&rig, settings);
    rig_model_init(&model, false);
    rig_plan_make(&rig, &model, "any", 4, 6, &plan);
    rig_call_init(&call, &model, 4, 6);
    assert_int_equal(rig_run(&rig, &plan, &call, &error),
                     CELLGATE_DEVICE_FAILED);
    assert_non_null(strstr(error.text, "x is not in memory"));

    pinned = rig.plugin->host_allocate(rig.device, sizeof *pinned);
    assert_non_null(pinned);
    rig_call_init(pinned, &model, 4, 6);
    assert_int_equal(rig_run(&rig, &plan, pinned, &error), CELLGATE_OK);
    pinned->states[0].c = call.c;
    assert_int_equal(rig_run(&rig, &plan, pinned, &error),
                     CELLGATE_DEVICE_FAILED);
    assert_non_null(strstr(error.text, "c is not in memory"));
    rig.plugin->host_release(rig.device, pinned);
    rig.plugin->host_release(rig.device, NULL);
    assert_string_equal(rig.log, "");
    rig.plugin->host_release(rig.device, &call);
    assert_true(rig_logged(&rig, "host_allocate() did not give"));
    rig_plan_free(&rig, &plan);
    rig_close(&rig);
}

static void test_nothing_is_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, no_settings);
    rig.plugin->plan_destroy(NULL);
    rig.plugin->weights_free(NULL);
    rig.plugin->resident_destroy(NULL);
    rig.plugin->device_close(NULL);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_step_by_hand),
        cmocka_unit_test(test_a_plan_runs_its_shapes_only),
        cmocka_unit_test(test_variants_agree),
        cmocka_unit_test(test_bf16_weights_take_half),
        cmocka_unit_test(test_a_variant_needs_its_pack),
        cmocka_unit_test(test_what_does_not_fit_is_device_memory),
        cmocka_unit_test(test_weights_freed_too_early_fail_the_run),
        cmocka_unit_test(test_strides_are_followed),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_missing_buffers_are_invalid),
        cmocka_unit_test(test_final_states_may_be_unwanted),
        cmocka_unit_test(test_resident_pieces_equal_the_whole),
        cmocka_unit_test(test_resident_import_and_export),
        cmocka_unit_test(test_breakdown_is_of_the_last_run),
        cmocka_unit_test(test_required_pinned_memory),
        cmocka_unit_test(test_nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
