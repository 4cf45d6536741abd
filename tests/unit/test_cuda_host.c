/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA plugin, linked in over the stand-ins, when things go wrong: memory
 * that is not there, a device that breaks, algorithms that cuDNN refuses only
 * when they run, weights that lie elsewhere, a second GPU beside a broken one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/cuda/plan.h"
#include "tests/cuda/standin.h"
#include "tests/oracle/oracle.h"

#define BATCH 5
#define STEPS 21
#define INPUT 7
#define HIDDEN 12

static float kernel[INPUT * 4 * HIDDEN], recurrent[HIDDEN * 4 * HIDDEN];
static float bias[4 * HIDDEN], x[BATCH * STEPS * INPUT];
static float y[BATCH * STEPS * HIDDEN];
static double expected[BATCH * STEPS * HIDDEN];
static cellgate_lstm lstm = {
    .op = { sizeof lstm, CELLGATE_OP_LSTM, 0 },
    .input_size = INPUT,
    .hidden_size = HIDDEN,
    .directions = 1,
    .outputs = CELLGATE_LSTM_SEQUENCE,
    .has_bias = 1,
    .activations = { { { CELLGATE_SIGMOID, 0, 0 },
                       { CELLGATE_TANH, 0, 0 },
                       { CELLGATE_TANH, 0, 0 } } },
    .weights = { { kernel, recurrent, bias, NULL, NULL } },
};
static const cellgate_op *const ops[] = { &lstm.op };
static const cellgate_segment segment = { sizeof segment, 1, 0, ops };
static const cellgate_shape shape = { sizeof shape, BATCH, STEPS };

static const cellgate_plugin *table;
static cellgate_instance *instance;
static cellgate_error error = CELLGATE_ERROR_INIT;
static char logged[2000];

/* ---- A host ------------------------------------------------------------ */

static void take_log(void *context, int32_t level, const char *text)
{
    (void)context;
    (void)level;
    (void)snprintf(logged + strlen(logged), sizeof logged - strlen(logged),
                   "%s\n", text);
}

static void *allocate(void *context, size_t alignment, size_t size)
{
    (void)context;
    return aligned_alloc(alignment < 16 ? 16 : alignment,
                         (size + 63) / 64 * 64);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static const char *setting(void *context, const cellgate_settings *settings,
                           const char *key)
{
    (void)context;
    (void)settings;
    return strcmp(key, "cudnn") == 0      ? CUDNN_STANDIN
           : strcmp(key, "cublaslt") == 0 ? BLASLT_STANDIN
                                          : "";
}

static uint32_t budget(void *context, const char *resource)
{
    (void)context;
    (void)resource;
    return 2;
}

static uint64_t now(void *context)
{
    (void)context;
    return 0;
}

static int32_t excludes(void *context, const cellgate_settings *settings,
                        const char *variant)
{
    (void)context;
    (void)settings;
    (void)variant;
    return 0;
}

static const cellgate_host host = { .struct_size = sizeof host,
                                    .log = take_log,
                                    .allocate = allocate,
                                    .release = release,
                                    .setting = setting,
                                    .thread_budget = budget,
                                    .clock = now,
                                    .excludes = excludes };

static void make_random(float *to, size_t count, uint64_t seed)
{
    size_t i;

    for (i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        to[i] = ((float)(seed >> 40) / 8388608.0f - 1) * 0.4f;
    }
}

static int start(void **state)
{
    const oracle_run run = {
        .batch = BATCH, .steps = STEPS, .x = x, .y = expected
    };

    (void)state;
    make_random(kernel, sizeof kernel / sizeof *kernel, 1);
    make_random(recurrent, sizeof recurrent / sizeof *recurrent, 2);
    make_random(bias, sizeof bias / sizeof *bias, 3);
    make_random(x, sizeof x / sizeof *x, 4);
    return oracle_segment_run(&segment, &run);
}

static int set_up(void **state)
{
    (void)state;
    standin_reset();
    standin_settings.devices = 2;
    logged[0] = '\0';
    table = cellgate_plugin_entry(0, 0);
    if (table->init(&host, &instance, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    table->finish(instance);
    return 0;
}

/* ---- Words ------------------------------------------------------------- */

static cellgate_device *open_device(uint32_t index)
{
    cellgate_device *device = NULL;

    if (table->device_open(instance, index, NULL, &device, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    return device;
}

/* The variant of a name, with its refusal. */
static cellgate_variant find(cellgate_device *device, const char *name)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    uint32_t i;

    for (i = 0; table->support(device, &segment, NULL, i, &variant, &error) ==
                CELLGATE_OK;
         i++)
        if (strcmp(variant.name, name) == 0)
            return variant;
    fail_msg("no variant %s", name);
    return variant;
}

static cellgate_status run(cellgate_plan *plan)
{
    const cellgate_segment_run of = {
        .struct_size = sizeof of,
        .batch = BATCH,
        .steps = STEPS,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .y = { y, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };

    memset(y, 0, sizeof y);
    return table->run(plan, &of, &error);
}

static void check_y(void)
{
    size_t i;

    for (i = 0; i < sizeof y / sizeof *y; i++)
        assert_float_equal(y[i], expected[i], 1e-5);
}

/* Everything from opening to a right result; the status of what fails first. */
static cellgate_status all_of_it(uint32_t index, const char *name)
{
    cellgate_device *device = NULL;
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;
    cellgate_variant variant;
    cellgate_status status =
        table->device_open(instance, index, NULL, &device, &error);

    if (status != CELLGATE_OK)
        return status;
    variant = find(device, name);
    status = table->prepare(device, &segment, variant.pack, &weights, &error);
    if (status == CELLGATE_OK)
        status = table->plan_create(device, weights, variant.id, &shape, &plan,
                                    &error);
    if (status == CELLGATE_OK)
        status = run(plan);
    if (status == CELLGATE_OK)
        check_y();
    table->plan_destroy(plan);
    table->weights_free(weights);
    if (!standin_settings.sticky)
        assert_int_equal(table->memory_used(device), 0);
    table->device_close(device);
    return status;
}

/* ---- Memory ------------------------------------------------------------ */

/* Each allocation in turn finds none: a clear refusal, and nothing is left. Our
   own path may go on, with fewer input products computed ahead. */
static void no_memory_at(const char *name, bool may_go_on)
{
    long before = standin_mallocs(), count, went_on = 0, i;

    assert_int_equal(all_of_it(0, name), CELLGATE_OK);
    count = standin_mallocs() - before;
    assert_true(count > 10);
    for (i = 1; i <= count; i++) {
        standin_settings.fail_malloc = standin_mallocs() + i;
        if (all_of_it(0, name) == CELLGATE_OK) {
            went_on++;
            continue;
        }
        assert_int_equal(error.status, CELLGATE_DEVICE_MEMORY);
        assert_non_null(strstr(error.text, "bytes do not fit into NVIDIA"));
    }
    assert_in_range(went_on, 0, may_go_on ? count / 3 : 0);
    standin_settings.fail_malloc = 0;
    assert_int_equal(all_of_it(0, name), CELLGATE_OK);
}

static void a_run_without_memory(void **state)
{
    (void)state;
    no_memory_at("cudnn", false);
    no_memory_at("step", true);
    no_memory_at("step-blas", true);
}

/* ---- A device that breaks ---------------------------------------------- */

/* It is lost at the launch, whichever that is; another goes on. */
static void breaks_at_a_launch(const char *name)
{
    long before = standin_launches(), count, i;

    assert_int_equal(all_of_it(0, name), CELLGATE_OK);
    count = standin_launches() - before;
    for (i = 1; i <= count; i += i < 8 ? 1 : 5) {
        standin_reset();
        standin_settings.devices = 2;
        standin_settings.sticky = standin_launches() + i;
        assert_int_equal(all_of_it(0, name), CELLGATE_DEVICE_LOST);
        assert_int_equal(error.vendor_code, cudaErrorIllegalAddress);
        assert_int_equal(all_of_it(1, name), CELLGATE_OK);
    }
    standin_reset();
}

static void a_device_is_lost(void **state)
{
    (void)state;
    breaks_at_a_launch("cudnn");
    breaks_at_a_launch("step");
    breaks_at_a_launch("step-blas");
}

/* What was made of it is freed all the same, and answers say what happened. */
static void a_lost_device_answers(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_variant variant = find(device, "cudnn");
    cellgate_resident *resident = NULL;
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;

    (void)state;
    assert_int_equal(
        table->prepare(device, &segment, variant.pack, &weights, &error),
        CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, variant.id, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(table->resident_create(weights, BATCH, &resident, &error),
                     CELLGATE_OK);
    standin_settings.sticky = standin_launches() + 1;
    assert_int_equal(run(plan), CELLGATE_DEVICE_LOST);
    assert_int_equal(run(plan), CELLGATE_DEVICE_LOST);
    assert_non_null(strstr(error.text, "was lost; it needs a new process"));
    assert_int_equal(
        table->support(device, &segment, NULL, 0, &variant, &error),
        CELLGATE_DEVICE_LOST);
    assert_null(table->host_allocate(device, 100));
    table->resident_destroy(resident);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
    standin_settings.sticky = 0;
    assert_int_equal(all_of_it(1, "cudnn"), CELLGATE_OK);
}

/* ---- Graphs ------------------------------------------------------------ */

/* The second run alike makes a graph, the third launches it; other runs between
   them do not. What a graph of steps launches is less. */
static void runs_alike_are_a_graph(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_variant variant = find(device, "step");
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;
    cellgate_segment_run short_run = {
        .struct_size = sizeof short_run,
        .batch = 2,
        .steps = 18,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .y = { y, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };
    int i;

    (void)state;
    assert_int_equal(
        table->prepare(device, &segment, variant.pack, &weights, &error),
        CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, variant.id, &shape, &plan, &error),
        CELLGATE_OK);
    for (i = 0; i < 4; i++) {
        assert_int_equal(run(plan), CELLGATE_OK);
        check_y();
        assert_int_equal(plan->stages[0].own.graph.made != NULL, i > 0);
    }
    for (i = 0; i < 3; i++) {
        assert_int_equal(table->run(plan, &short_run, &error), CELLGATE_OK);
        assert_float_equal(y[(STEPS + 17) * HIDDEN],
                           expected[(STEPS + 17) * HIDDEN], 1e-5);
        assert_int_equal(plan->stages[0].own.graph.of.batch, i > 0 ? 2 : BATCH);
    }
    assert_int_equal(run(plan), CELLGATE_OK);
    check_y();
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- cuDNN's refusals -------------------------------------------------- */

/* Found when weights are prepared: the variant is refused from then on. */
static void refused_when_it_runs(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights = NULL;
    const uint32_t pack = find(device, "cudnn").pack;

    (void)state;
    standin_settings.cudnn_refuse = 1;
    assert_string_equal(find(device, "cudnn-static").refusal, "");
    assert_int_equal(table->prepare(device, &segment, pack, &weights, &error),
                     CELLGATE_OK);
    assert_string_equal(find(device, "cudnn").refusal, "");
    assert_non_null(strstr(find(device, "cudnn-static").refusal,
                           "cudnnRNNForward answers "
                           "CUDNN_STATUS_NOT_SUPPORTED"));
    assert_non_null(strstr(logged, "variant cudnn-static is left out"));
    table->weights_free(weights);
    table->device_close(device);
}

/* An algorithm that wants its weights elsewhere does not get these. */
static void another_layout(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights = NULL;
    const uint32_t pack = find(device, "cudnn").pack;

    (void)state;
    standin_settings.cudnn_layouts = 1;
    assert_int_equal(table->prepare(device, &segment, pack, &weights, &error),
                     CELLGATE_OK);
    assert_non_null(strstr(find(device, "cudnn-small").refusal,
                           "lays out weights for cudnn-small otherwise"));
    assert_string_equal(find(device, "cudnn").refusal, "");
    table->weights_free(weights);
    table->device_close(device);
}

static bool has_variant(cellgate_device *device, const char *name)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    uint32_t i;

    for (i = 0; table->support(device, &segment, NULL, i, &variant, &error) ==
                CELLGATE_OK;
         i++)
        if (strcmp(variant.name, name) == 0)
            return true;
    return false;
}

/* cuBLASLt of another version is none; one without an algorithm is refused. */
static void blaslt_that_does_not_do(void **state)
{
    cellgate_weights *weights = NULL;
    cellgate_device *device;

    (void)state;
    standin_settings.blaslt = 120300;
    device = open_device(0);
    assert_false(has_variant(device, "step-blas"));
    assert_true(has_variant(device, "step"));
    assert_non_null(strstr(logged, "is of version 12, and 13 is needed"));
    table->device_close(device);
    standin_settings.blaslt = 130000;
    standin_settings.blaslt_none = 1;
    device = open_device(0);
    assert_true(has_variant(device, "step-blas"));
    assert_int_equal(table->prepare(device, &segment, find(device, "step").pack,
                                    &weights, &error),
                     CELLGATE_OK);
    assert_string_equal(find(device, "step").refusal, "");
    assert_non_null(
        strstr(find(device, "step-blas").refusal, "cuBLASLt has no algorithm"));
    table->weights_free(weights);
    table->device_close(device);
}

/* In the words of who wrote the model. */
static void why_it_is_not_fused(void **state)
{
    static const struct {
        int32_t gate, cell, peepholes, coupled, reverse;
        float clip;
        const char *note;
    } cases[] = {
        { CELLGATE_HARD_SIGMOID, CELLGATE_TANH, 0, 0, 0, 0,
          "recurrent_activation hard_sigmoid is not fused" },
        { CELLGATE_SIGMOID, CELLGATE_RELU, 0, 0, 0, 0,
          "activation relu is not fused" },
        { CELLGATE_SIGMOID, CELLGATE_TANH, 1, 0, 0, 0,
          "peepholes are not fused" },
        { CELLGATE_SIGMOID, CELLGATE_TANH, 0, 1, 0, 0,
          "coupled gates (input_forget) are not fused" },
        { CELLGATE_SIGMOID, CELLGATE_TANH, 0, 0, 1, 0,
          "go_backwards is not fused" },
        { CELLGATE_SIGMOID, CELLGATE_TANH, 0, 0, 0, 3, "clip 3 is not fused" },
    };
    const cellgate_lstm usual = lstm;
    cellgate_device *device = open_device(0);
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cellgate_variant first = { .struct_size = sizeof first };

        lstm.activations[0][0].kind = cases[i].gate;
        lstm.activations[0][1].kind = cases[i].cell;
        lstm.has_peepholes = cases[i].peepholes;
        lstm.coupled = cases[i].coupled;
        lstm.reverse = cases[i].reverse;
        lstm.clip = cases[i].clip;
        assert_int_equal(
            table->support(device, &segment, NULL, 0, &first, &error),
            CELLGATE_OK);
        assert_string_equal(first.name, "step");
        assert_non_null(strstr(first.note, cases[i].note));
        lstm = usual;
    }
    table->device_close(device);
}

/* TF32 came with compute capability 8. */
static void no_tf32_before_8(void **state)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_device *device;
    uint32_t i;

    (void)state;
    table->finish(instance);
    standin_settings.capability = 75;
    assert_int_equal(table->init(&host, &instance, &error), CELLGATE_OK);
    if (table->device_open(instance, 0, NULL, &device, &error) != CELLGATE_OK) {
        assert_non_null(strstr(error.text, "compute capability 7.5"));
        skip(); /* built for newer ones only */
    }
    for (i = 0; table->support(device, &segment, NULL, i, &variant, &error) ==
                CELLGATE_OK;
         i++)
        assert_int_not_equal(variant.numeric, CELLGATE_NUMERIC_TF32);
    assert_true(i > 0);
    table->device_close(device);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_run_without_memory),    TEST(a_device_is_lost),
        TEST(a_lost_device_answers),   TEST(refused_when_it_runs),
        TEST(another_layout),          TEST(why_it_is_not_fused),
        TEST(no_tf32_before_8),        TEST(runs_alike_are_a_graph),
        TEST(blaslt_that_does_not_do),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
