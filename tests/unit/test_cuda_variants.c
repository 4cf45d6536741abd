/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA plugin's variants over the stand-ins: which of them run before they
 * are wanted, what becomes of those that libraries refuse only when they run,
 * weights that lie elsewhere, several plans and GPUs at once.
 */
#include "tests/unit/cuda_rig.h"

#include <pthread.h>

static const cellgate_shape two_rows = { sizeof two_rows, 2, STEPS };

/* A run in the variant, with weights that are there. */
static cellgate_status run_in(cellgate_device *device,
                              cellgate_weights *weights, const char *name,
                              int64_t rows)
{
    cellgate_plan *plan = make_plan(device, weights, name);
    const cellgate_status status = run_rows(plan, rows);

    table->plan_destroy(plan);
    return status;
}

static bool is_refused(cellgate_device *device, const char *name,
                       const cellgate_shape *at, const char *text)
{
    const cellgate_variant variant = find_at(device, name, at);

    return variant.refusal[0] != '\0' && strstr(variant.refusal, text) != NULL;
}

static bool is_offered(cellgate_device *device, const char *name,
                       const cellgate_shape *at)
{
    return find_at(device, name, at).refusal[0] == '\0';
}

/* ---- What runs before it is wanted ------------------------------------- */

/* One that breaks the device is no loss to who runs another. */
static void only_the_plain_ones_warm_up(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights;
    long before;

    (void)state;
    standin_settings.cudnn_fault = 1;
    weights = prepare(device, "cudnn-static");
    assert_int_equal(run_in(device, weights, "cudnn", BATCH), CELLGATE_OK);
    check_y();
    table->weights_free(weights);
    before = standin_launches();
    table->weights_free(prepare(device, "step-f16"));
    table->weights_free(prepare(device, "step-bf16"));
    assert_int_equal(standin_launches(), before);
    weights = prepare(device, "cudnn-static");
    assert_int_equal(run_in(device, weights, "cudnn-static", BATCH),
                     CELLGATE_DEVICE_LOST);
    table->weights_free(weights);
    table->device_close(device);
}

static void what_is_excluded_does_not_warm_up(void **state)
{
    cellgate_device *device = open_device(0);
    long before = standin_launches();

    (void)state;
    table->weights_free(prepare(device, "cudnn"));
    assert_true(standin_launches() > before);
    before = standin_launches();
    excluded = "cudnn";
    table->weights_free(prepare(device, "cudnn"));
    excluded = "step";
    table->weights_free(prepare(device, "step"));
    assert_int_equal(standin_launches(), before);
    table->device_close(device);
}

/* Nor is memory taken for its weights. */
static void what_is_excluded_is_not_laid_out(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights;

    (void)state;
    standin_settings.cudnn_layouts = 2;
    excluded = "cudnn-tf32";
    weights = prepare(device, "cudnn");
    assert_int_equal(weights->stages[0].space_count, 5);
    assert_int_equal(run_in(device, weights, "cudnn-static-tf32", BATCH),
                     CELLGATE_OK);
    check_y();
    table->weights_free(weights);
    excluded = "cudnn";
    weights = prepare(device, "cudnn-static");
    assert_int_equal(weights->stages[0].space_count, 5);
    table->weights_free(weights);
    standin_settings.memory = 0;
    assert_int_equal(table->prepare(device, &segment,
                                    find(device, "cudnn-static").pack, &weights,
                                    &error),
                     CELLGATE_DEVICE_MEMORY);
    table->device_close(device);
}

static int32_t beyond_the_host(void *context, const cellgate_settings *settings,
                               const char *variant)
{
    (void)context;
    (void)settings;
    fail_msg("%s: the host has no excludes", variant);
    return 1;
}

/* It was made before there was one: nothing is excluded. */
static void a_host_without_excludes(void **state)
{
    cellgate_host older = host;
    cellgate_device *device;

    (void)state;
    older.struct_size = offsetof(cellgate_host, excludes);
    older.excludes = beyond_the_host;
    instance->host = &older;
    device = open_device(0);
    table->weights_free(prepare(device, "cudnn"));
    table->weights_free(prepare(device, "step"));
    table->device_close(device);
    older = (cellgate_host){ .struct_size = sizeof older };
    cellgate_struct_copy(&older, &host);
    older.excludes = NULL;
    device = open_device(0);
    table->weights_free(prepare(device, "cudnn"));
    table->device_close(device);
    instance->host = &host;
}

/* Rows of several lengths are the standard algorithm's in every variant. */
static void without_the_standard_algorithm_nothing_is_fused(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights = NULL;
    const uint32_t pack = find(device, "cudnn").pack;

    (void)state;
    standin_settings.cudnn_standard = CUD_CUDNN_EXECUTION_FAILED;
    assert_int_equal(table->prepare(device, &segment, pack, &weights, &error),
                     CELLGATE_UNSUPPORTED);
    assert_true(is_refused(device, "cudnn", NULL, "cudnnRNNForward answers"));
    assert_true(is_refused(device, "cudnn-small-f16", &two_rows, "(5000)"));
    assert_true(is_offered(device, "step", NULL));
    assert_non_null(strstr(logged, "no LSTM of this kind is fused"));
    table->device_close(device);
}

/* Memory may be there again. */
static void no_memory_refuses_nothing(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights = NULL;
    const uint32_t pack = find(device, "cudnn").pack;

    (void)state;
    standin_settings.cudnn_standard = CUD_CUDNN_DEVICE_ALLOCATION_FAILED;
    assert_int_equal(table->prepare(device, &segment, pack, &weights, &error),
                     CELLGATE_DEVICE_MEMORY);
    standin_settings.cudnn_standard = 0;
    assert_true(is_offered(device, "cudnn", NULL));
    weights = prepare(device, "cudnn");
    standin_settings.cudnn_refuse = CUD_CUDNN_DEVICE_ALLOCATION_FAILED;
    assert_int_equal(run_in(device, weights, "cudnn-static", BATCH),
                     CELLGATE_DEVICE_MEMORY);
    standin_settings.cudnn_refuse = 0;
    assert_int_equal(run_in(device, weights, "cudnn-static", BATCH),
                     CELLGATE_OK);
    check_y();
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- Refused when it runs ---------------------------------------------- */

/* A small shape says nothing of a larger one. */
static void refused_at_one_shape(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights;

    (void)state;
    standin_settings.cudnn_refuse = CUD_CUDNN_NOT_SUPPORTED;
    standin_settings.cudnn_refuse_below = BATCH;
    weights = prepare(device, "cudnn-static");
    assert_int_equal(run_in(device, weights, "cudnn-static", 2),
                     CELLGATE_UNSUPPORTED);
    assert_true(is_refused(device, "cudnn-static", &two_rows,
                           "answers CUDNN_STATUS_NOT_SUPPORTED"));
    assert_true(is_offered(device, "cudnn-static", &shape));
    assert_true(is_offered(device, "cudnn-static", NULL));
    assert_true(is_offered(device, "cudnn-small", &two_rows));
    assert_int_equal(run_in(device, weights, "cudnn-static", BATCH),
                     CELLGATE_OK);
    check_y();
    table->weights_free(weights);
    table->device_close(device);
}

/* Whatever cuDNN answers: until the variant has run something, it is its own
   fault, and then the device's. */
static void whose_fault_it_is(void **state)
{
    static const int answers[] = { CUD_CUDNN_BAD_PARAM, 4000,
                                   CUD_CUDNN_EXECUTION_FAILED, 1002 };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        cellgate_device *device = open_device(0);
        cellgate_weights *weights = prepare(device, "cudnn-static");

        standin_settings.cudnn_refuse = answers[i];
        assert_int_equal(run_in(device, weights, "cudnn-static", 2),
                         CELLGATE_UNSUPPORTED);
        assert_true(is_refused(device, "cudnn-static", &two_rows,
                               "cudnnRNNForward answers"));
        standin_settings.cudnn_refuse = 0;
        assert_int_equal(run_in(device, weights, "cudnn-static", BATCH),
                         CELLGATE_OK);
        standin_settings.cudnn_refuse = answers[i];
        assert_int_equal(run_in(device, weights, "cudnn-static", 3),
                         answers[i] == CUD_CUDNN_BAD_PARAM
                             ? CELLGATE_INTERNAL
                             : CELLGATE_DEVICE_FAILED);
        standin_settings.cudnn_refuse = 0;
        table->weights_free(weights);
        table->device_close(device);
    }
}

/* Too many shapes push out the first of them. */
static void few_shapes_are_kept(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights = prepare(device, "cudnn-static");
    cellgate_plan *plan = make_plan(device, weights, "cudnn-static");
    int64_t steps;

    (void)state;
    standin_settings.cudnn_refuse = CUD_CUDNN_NOT_SUPPORTED;
    for (steps = 0; steps < 40; steps++) {
        const cellgate_segment_run of = {
            .struct_size = sizeof of,
            .batch = 2 + 2 * (steps / STEPS),
            .steps = 1 + steps % STEPS,
            .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
            .y = { y, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
        };

        assert_int_equal(table->run(plan, &of, &error), CELLGATE_UNSUPPORTED);
    }
    assert_true(is_offered(device, "cudnn-static",
                           &(cellgate_shape){ sizeof shape, 2, 1 }));
    assert_true(is_refused(device, "cudnn-static",
                           &(cellgate_shape){ sizeof shape, 2, STEPS },
                           "NOT_SUPPORTED"));
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

static int times_logged(const char *text)
{
    const char *at = logged;
    int count = 0;

    while ((at = strstr(at, text)) != NULL) {
        at += strlen(text);
        count++;
    }
    return count;
}

/* The same again is not kept again, in the place of others, nor told. */
static void a_refusal_is_kept_once(void **state)
{
    const cellgate_shape three_rows = { sizeof three_rows, 3, STEPS };
    cellgate_device *device = open_device(0);
    cellgate_weights *weights = prepare(device, "cudnn-static");
    cellgate_plan *plan = make_plan(device, weights, "cudnn-static");
    int i;

    (void)state;
    standin_settings.cudnn_refuse = CUD_CUDNN_NOT_SUPPORTED;
    assert_int_equal(run_rows(plan, 3), CELLGATE_UNSUPPORTED);
    for (i = 0; i < 40; i++)
        assert_int_equal(run_rows(plan, 2), CELLGATE_UNSUPPORTED);
    assert_true(
        is_refused(device, "cudnn-static", &three_rows, "NOT_SUPPORTED"));
    assert_true(is_refused(device, "cudnn-static", &two_rows, "NOT_SUPPORTED"));
    assert_int_equal(times_logged("variant cudnn-static is left out"), 2);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

static uint64_t digest_of(cellgate_device *device, const cellgate_op *first,
                          const cellgate_op *second)
{
    const cellgate_op *const ops[] = { first, second };
    const cellgate_segment of = { sizeof of, second ? 2 : 1, 0, ops };
    struct cud_layers layers;

    assert_int_equal(cud_layers_read(device, &of, &layers, &error),
                     CELLGATE_OK);
    cud_layers_free(&layers);
    return layers.digest;
}

/* What fails in one segment says nothing of another with the same LSTMs, or of
   any without. */
static void segments_are_told_apart(void **state)
{
    cellgate_dense dense = { .op = { sizeof dense, CELLGATE_OP_DENSE, 0 },
                             .input_size = HIDDEN,
                             .units = 8 };
    cellgate_activation_op act = {
        .op = { sizeof act, CELLGATE_OP_ACTIVATION, 0 }, .size = HIDDEN
    };
    const cellgate_softmax softmax = {
        .op = { sizeof softmax, CELLGATE_OP_SOFTMAX, 0 }, .size = HIDDEN
    };
    const cellgate_embedding embedding = { .op = { sizeof embedding,
                                                   CELLGATE_OP_EMBEDDING, 0 },
                                           .vocabulary = HIDDEN,
                                           .size = 8 };
    cellgate_device *device = open_device(0);
    uint64_t digests[10];
    size_t i, j;

    (void)state;
    digests[0] = digest_of(device, &lstm.op, NULL);
    digests[1] = digest_of(device, &lstm.op, &dense.op);
    digests[2] = digest_of(device, &dense.op, NULL);
    dense.units = 9;
    digests[3] = digest_of(device, &dense.op, NULL);
    dense.activation.kind = CELLGATE_RELU;
    digests[4] = digest_of(device, &dense.op, NULL);
    digests[5] = digest_of(device, &act.op, NULL);
    act.activation.kind = CELLGATE_RELU;
    digests[6] = digest_of(device, &act.op, NULL);
    digests[7] = digest_of(device, &softmax.op, NULL);
    digests[8] = digest_of(device, &embedding.op, NULL);
    digests[9] = digest_of(device, &lstm.op, &softmax.op);
    for (i = 0; i < 10; i++)
        for (j = 0; j < i; j++)
            assert_int_not_equal(digests[i], digests[j]);
    assert_int_equal(digest_of(device, &lstm.op, &softmax.op), digests[9]);
    table->device_close(device);
}

/* Asked about a shape, cuDNN may fail: those behind it are offered. */
static void what_cannot_be_asked_is_refused(void **state)
{
    static const int answers[] = { CUD_CUDNN_BAD_PARAM, 4000, 5000, 3000 };
    cellgate_device *device = open_device(0);
    size_t i;

    (void)state;
    for (i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        standin_settings.cudnn_sizes = answers[i];
        assert_true(is_refused(device, "cudnn-static", &shape,
                               "cudnnGetRNNTempSpaceSizes answers"));
        assert_true(is_offered(device, "cudnn-static", NULL));
        assert_true(is_offered(device, "cudnn-dynamic", &shape));
        assert_true(is_offered(device, "persistent-bf16", &shape));
    }
    table->device_close(device);
}

/* cuBLASLt of another version is none; one without an algorithm is found when
   it runs. */
static void blaslt_that_does_not_do(void **state)
{
    cellgate_weights *weights;
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
    weights = prepare(device, "step");
    assert_int_equal(run_in(device, weights, "step-blas", BATCH),
                     CELLGATE_UNSUPPORTED);
    assert_true(
        is_refused(device, "step-blas", &shape, "cuBLASLt has no algorithm"));
    assert_int_equal(run_in(device, weights, "step", BATCH), CELLGATE_OK);
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- Weights ----------------------------------------------------------- */

/* Each algorithm and math type reads them where it looks for them. */
static void layouts_differ(void **state)
{
    static const char *const names[] = { "cudnn",           "cudnn-static",
                                         "cudnn-dynamic",   "cudnn-small",
                                         "cudnn-tf32",      "cudnn-static-tf32",
                                         "cudnn-small-f16", "cudnn-dynamic-f16",
                                         "cudnn-f16" };
    static const uint32_t spaces[] = { 1, 2, 6 };
    long kind;
    size_t i;

    (void)state;
    for (kind = 0; kind < 3; kind++) {
        cellgate_device *device = open_device(0);
        cellgate_weights *weights;

        standin_settings.cudnn_layouts = kind;
        weights = prepare(device, "cudnn");
        assert_int_equal(weights->stages[0].space_count, spaces[kind]);
        for (i = 0; i < sizeof names / sizeof names[0]; i++) {
            assert_int_equal(run_in(device, weights, names[i], BATCH),
                             CELLGATE_OK);
            check_y();
        }
        table->weights_free(weights);
        table->device_close(device);
    }
}

/* Weights that do not fit a second time leave out those that need that: it is
   told once, and no memory that is freed later helps. */
static void no_memory_for_another_layout(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights;
    cellgate_plan *plan = NULL;
    int i;

    (void)state;
    standin_settings.cudnn_layouts = 2;
    standin_settings.fail_malloc = standin_mallocs() + 3;
    weights = prepare(device, "cudnn");
    standin_settings.fail_malloc = 0;
    assert_int_equal(weights->stages[0].space_count, 5);
    assert_int_equal(run_in(device, weights, "cudnn-f16", BATCH), CELLGATE_OK);
    check_y();
    for (i = 0; i < 2; i++) {
        static const char *const names[] = { "cudnn-tf32",
                                             "cudnn-static-tf32" };

        assert_int_equal(table->plan_create(device, weights,
                                            find(device, names[i]).id, &shape,
                                            &plan, &error),
                         CELLGATE_UNSUPPORTED);
        assert_non_null(strstr(error.text, "not laid out for cudnn-tf32"));
        assert_non_null(strstr(error.text, "bytes do not fit into NVIDIA"));
        assert_true(is_offered(device, names[i], &shape));
    }
    assert_int_equal(times_logged("not laid out for variant"), 1);
    table->weights_free(weights);
    weights = prepare(device, "cudnn-tf32");
    assert_int_equal(run_in(device, weights, "cudnn-tf32", BATCH), CELLGATE_OK);
    check_y();
    table->weights_free(weights);
    table->device_close(device);
}

/* As many as there are places for. */
static void too_many_layouts(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights = prepare(device, "cudnn");
    struct cud_stage *stage = &weights->stages[0];

    (void)state;
    standin_settings.cudnn_layouts = 1;
    stage->space_count = CUD_SPACES_MAX;
    assert_int_equal(cud_fused_prepare(device, stage, &segment, &error),
                     CELLGATE_OK);
    assert_int_equal(stage->space_count, CUD_SPACES_MAX);
    assert_true(stage->lack_count > 0);
    assert_non_null(strstr(stage->lacks[0].text, "in more than 12 ways"));
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- Several at once --------------------------------------------------- */

#define RUNS 20

struct runner {
    cellgate_plan *plan;
    pthread_barrier_t *barrier;
    float *to; /* pinned: other memory is waited for at once */
    int failed;
};

static void *run_often(void *argument)
{
    struct runner *runner = argument;
    cellgate_error why = CELLGATE_ERROR_INIT;
    const cellgate_segment_run of = {
        .struct_size = sizeof of,
        .batch = BATCH,
        .steps = STEPS,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .y = { runner->to, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };
    int i;

    for (i = 0; i < RUNS; i++) {
        (void)pthread_barrier_wait(runner->barrier);
        runner->failed += table->run(runner->plan, &of, &why) != CELLGATE_OK;
    }
    return NULL;
}

/* Of two openings of one GPU: the stand-in ends the process where two kernels
   that fill a device may be under way at once. */
static void fillers_take_turns(void **state)
{
    static const char *const names[2] = { "cudnn-static", "persistent" };
    cellgate_device *devices[2];
    cellgate_weights *weights[2];
    struct runner runners[2];
    pthread_barrier_t barrier;
    pthread_t threads[2];
    int i;

    (void)state;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    for (i = 0; i < 2; i++) {
        devices[i] = open_device(0);
        weights[i] = prepare(devices[i], names[i]);
        runners[i] = (struct runner){
            .plan = make_plan(devices[i], weights[i], names[i]),
            .barrier = &barrier,
            .to = table->host_allocate(devices[i], sizeof y),
        };
        assert_non_null(runners[i].to);
    }
    standin_settings.late = 2000;
    for (i = 0; i < 2; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, run_often, &runners[i]), 0);
    for (i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(runners[i].failed, 0);
    }
    for (i = 0; i < 2; i++) {
        table->host_release(devices[i], runners[i].to);
        table->plan_destroy(runners[i].plan);
        table->weights_free(weights[i]);
        table->device_close(devices[i]);
    }
    (void)pthread_barrier_destroy(&barrier);
}

/* What is freed is freed on its own GPU, whichever was the current one: the
   stand-in ends the process where it is another. */
static void freed_beside_another_gpu(void **state)
{
    static const char *const names[] = { "cudnn", "cudnn-dynamic", "step",
                                         "persistent-blas" };
    cellgate_device *devices[2] = { open_device(0), open_device(1) };
    size_t i;
    int d;

    (void)state;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        cellgate_resident *residents[2] = { NULL, NULL };
        cellgate_weights *weights[2];
        cellgate_plan *plans[2];

        for (d = 0; d < 2; d++) {
            weights[d] = prepare(devices[d], names[i]);
            plans[d] = make_plan(devices[d], weights[d], names[i]);
            assert_int_equal(run(plans[d]), CELLGATE_OK);
            check_y();
            assert_int_equal(
                table->resident_create(weights[d], 2, &residents[d], &error),
                CELLGATE_OK);
        }
        for (d = 0; d < 2; d++) {
            table->resident_destroy(residents[d]);
            table->plan_destroy(plans[1 - d]);
        }
        for (d = 0; d < 2; d++)
            table->weights_free(weights[d]);
    }
    for (d = 0; d < 2; d++)
        table->device_close(devices[d]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(only_the_plain_ones_warm_up),
        TEST(what_is_excluded_does_not_warm_up),
        TEST(what_is_excluded_is_not_laid_out),
        TEST(a_host_without_excludes),
        TEST(without_the_standard_algorithm_nothing_is_fused),
        TEST(no_memory_refuses_nothing),
        TEST(refused_at_one_shape),
        TEST(whose_fault_it_is),
        TEST(few_shapes_are_kept),
        TEST(a_refusal_is_kept_once),
        TEST(segments_are_told_apart),
        TEST(what_cannot_be_asked_is_refused),
        TEST(blaslt_that_does_not_do),
        TEST(layouts_differ),
        TEST(no_memory_for_another_layout),
        TEST(too_many_layouts),
        TEST(fillers_take_turns),
        TEST(freed_beside_another_gpu),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
