/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of the CUDA plugin over the stand-ins: what its libraries do to a
 * device, graphs of steps, rows of several lengths.
 */
#include "tests/unit/cuda_rig.h"

/* ---- A library that breaks a device ------------------------------------ */

/* It breaks it, or finds it broken, and tells only that it failed. */
static void breaks_in_a_library_at(const char *name)
{
    long before = standin_library_calls(), count, i;

    assert_int_equal(all_of_it(0, name), CELLGATE_OK);
    count = standin_library_calls() - before;
    assert_true(count > 2);
    for (i = 1; i <= count; i++) {
        standin_reset();
        standin_settings.devices = 2;
        standin_settings.library_breaks = standin_library_calls() + i;
        assert_int_equal(all_of_it(0, name), CELLGATE_DEVICE_LOST);
    }
    standin_reset();
    standin_settings.devices = 2;
    assert_int_equal(all_of_it(1, name), CELLGATE_OK);
}

static void breaks_in_a_library(void **state)
{
    (void)state;
    breaks_in_a_library_at("cudnn");
    breaks_in_a_library_at("step-blas");
}

/* A kernel of ours has broken it when cuDNN refuses, and nobody has asked yet:
   the run says what is worse. */
static void breaks_before_a_refusal(void **state)
{
    const cellgate_dense dense = {
        .op = { sizeof dense, CELLGATE_OP_DENSE, 0 },
        .input_size = INPUT,
        .units = INPUT,
        .kernel = x,
    };
    const cellgate_op *const both[] = { &dense.op, &lstm.op };
    const cellgate_segment longer = { sizeof longer, 2, 0, both };
    cellgate_device *device = open_device(0);
    cellgate_variant variant = find(device, "cudnn-static");
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;

    (void)state;
    assert_int_equal(
        table->prepare(device, &longer, variant.pack, &weights, &error),
        CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, variant.id, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(run(plan), CELLGATE_OK);
    standin_settings.cudnn_refuse = CUD_CUDNN_NOT_SUPPORTED;
    standin_settings.sticky = standin_launches() + 1;
    assert_int_equal(run(plan), CELLGATE_DEVICE_LOST);
    assert_int_equal(error.vendor_code, cudaErrorIllegalAddress);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- Graphs ------------------------------------------------------------ */

static cellgate_status run_short(cellgate_plan *plan)
{
    const cellgate_segment_run of = {
        .struct_size = sizeof of,
        .batch = 2,
        .steps = 18,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .y = { y, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };
    const cellgate_status status = table->run(plan, &of, &error);

    if (status == CELLGATE_OK)
        assert_float_equal(y[(STEPS + 17) * HIDDEN],
                           expected[(STEPS + 17) * HIDDEN], 1e-5);
    return status;
}

/* What may not be done in a capture ends it, in the stand-in as in CUDA. */
static void captures_are_strict(void **state)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    void *memory = NULL;
    int i;

    (void)state;
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     cudaSuccess);
    for (i = 0; i < 4; i++) {
        assert_int_equal(
            cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
            cudaSuccess);
        assert_int_equal(i == 0   ? cudaMalloc(&memory, 4)
                         : i == 1 ? cudaFree(NULL)
                         : i == 2 ? cudaStreamSynchronize(stream)
                                  : cudaStreamQuery(stream),
                         cudaErrorStreamCaptureUnsupported);
        assert_int_equal(cudaStreamEndCapture(stream, &graph),
                         cudaErrorStreamCaptureInvalidated);
        assert_null(graph);
    }
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

/* A plan of a variant, and what it is made of. */
static void with_plan(const char *name, void (*use)(cellgate_plan *plan))
{
    cellgate_device *device = open_device(0);
    cellgate_weights *weights = prepare(device, name);
    cellgate_plan *plan = make_plan(device, weights, name);

    use(plan);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

/* Runs of the whole shape launch the graph that came with the plan; of others
   the second alike does, with a graph that has changed. No run makes one. */
static void use_graph(cellgate_plan *plan)
{
    const struct cud_graph *graph = &plan->stages[0].own.graph;
    const long made = standin_instantiations();
    long launched = standin_graph_launches();
    int i;

    assert_non_null(graph->made);
    for (i = 1; i < 4; i++) {
        assert_int_equal(run(plan), CELLGATE_OK);
        check_y();
        assert_int_equal(standin_graph_launches() - launched, 3 * i);
    }
    launched += 9;
    for (i = 0; i < 3; i++) {
        assert_int_equal(run_short(plan), CELLGATE_OK);
        assert_int_equal(standin_graph_launches() - launched, 3 * i);
        assert_int_equal(graph->of.batch, i > 0 ? 2 : BATCH);
    }
    assert_int_equal(run(plan), CELLGATE_OK);
    check_y();
    assert_int_equal(standin_instantiations(), made);
}

static void runs_alike_are_a_graph(void **state)
{
    (void)state;
    with_plan("step", use_graph);
    with_plan("step-blas", use_graph);
}

/* Steps are launched one by one then, and somebody is told why. */
static void use_steps(cellgate_plan *plan)
{
    int i;

    assert_null(plan->stages[0].own.graph.made);
    for (i = 0; i < 3; i++) {
        assert_int_equal(run(plan), CELLGATE_OK);
        check_y();
    }
    assert_non_null(strstr(logged, "variant step launches its steps one by "
                                   "one: making a graph of steps: "));
}

static void lose_graph(cellgate_plan *plan)
{
    assert_non_null(plan->stages[0].own.graph.made);
    assert_int_equal(run_short(plan), CELLGATE_OK);
    standin_settings.update_code = cudaErrorGraphExecUpdateFailure;
    assert_int_equal(run_short(plan), CELLGATE_OK);
    use_steps(plan);
    assert_int_equal(run_short(plan), CELLGATE_OK);
}

static void graphs_that_are_refused(void **state)
{
    (void)state;
    standin_settings.capture_code = cudaErrorStreamCaptureUnsupported;
    with_plan("step", use_steps);
    standin_settings.capture_code = 0;
    logged[0] = '\0';
    standin_settings.instantiate_code = cudaErrorMemoryAllocation;
    with_plan("step", use_steps);
    standin_settings.instantiate_code = 0;
    logged[0] = '\0';
    with_plan("step", lose_graph);
}

/* ---- Shapes that cuDNN has not ----------------------------------------- */

/* More numbers of state than it counts: refused before a run, by name. */
static void too_many_rows(void **state)
{
    const cellgate_shape large = { sizeof large, 1 << 25, 1 };
    const cellgate_shape less = { sizeof less, 3 << 8, 1 };
    cellgate_device *device = open_device(0);
    const cellgate_lstm usual = lstm;

    (void)state;
    lstm.hidden_size = 64;
    assert_string_equal(find_at(device, "cudnn", &less).refusal, "");
    assert_string_equal(find_at(device, "cudnn", &large).refusal,
                        "batch 33554432 by 64 numbers of state is more than "
                        "the 2147483647 that cuDNN takes");
    lstm = usual;
    table->device_close(device);
}

/* Layers of a stack have a dropout between them, or say that they have none. */
static void a_stack(void **state)
{
    static float upper[HIDDEN * 4 * HIDDEN];
    cellgate_lstm second = lstm;
    const cellgate_op *const both[] = { &lstm.op, &second.op };
    const cellgate_segment stack = { sizeof stack, 2, 0, both };
    cellgate_device *device = open_device(0);
    const uint64_t id = find(device, "cudnn").id;
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;

    (void)state;
    second.input_size = HIDDEN;
    second.weights[0].kernel = upper;
    assert_int_equal(table->prepare(device, &stack, find(device, "cudnn").pack,
                                    &weights, &error),
                     CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, id, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(plan->weights->stages[0].layers, 2);
    assert_int_equal(run(plan), CELLGATE_OK);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- Rows of several lengths ------------------------------------------- */

static void run_lengths(cellgate_plan *plan, const int32_t lengths[BATCH],
                        bool time_major)
{
    const cellgate_segment_run of = {
        .struct_size = sizeof of,
        .batch = BATCH,
        .steps = STEPS,
        .lengths = lengths,
        .x = { x, time_major ? INPUT : STEPS * INPUT,
               time_major ? BATCH * INPUT : INPUT, CELLGATE_F32, 0 },
        .y = { y, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };
    int64_t b, t, k;

    memset(y, 0xff, sizeof y);
    if (table->run(plan, &of, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    for (b = 0; b < BATCH; b++)
        for (t = 0; t < STEPS; t++)
            for (k = 0; k < HIDDEN; k++) {
                const int64_t at = (b * STEPS + t) * HIDDEN + k;

                if (t >= lengths[b])
                    assert_true(y[at] == 0);
                else if (!time_major)
                    assert_float_equal(y[at], expected[at], 1e-5);
            }
}

/* Beyond the longest row, in either layout; and no row has a step. */
static void use_short_rows(cellgate_plan *plan)
{
    static const int32_t some[BATCH] = { 3, 1, 7, 2, 7 };
    static const int32_t none[BATCH] = { 0, 0, 0, 0, 0 };

    run_lengths(plan, some, false);
    run_lengths(plan, some, true);
    run_lengths(plan, none, false);
    run_lengths(plan, some, false);
}

static void rows_that_are_all_short(void **state)
{
    (void)state;
    with_plan("cudnn", use_short_rows);
    with_plan("cudnn-static", use_short_rows);
    with_plan("step", use_short_rows);
}

/* Whoever asks for it, what is excluded does not run; that of another math type
   does. */
static void without_the_standard_algorithm(void **state)
{
    static const int32_t some[BATCH] = { 3, 1, 7, 2, 7 };
    const cellgate_shape less = { sizeof less, 2, STEPS };
    const cellgate_segment_run of = {
        .struct_size = sizeof of,
        .batch = BATCH,
        .steps = STEPS,
        .lengths = some,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .y = { y, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };
    cellgate_device *device = open_device(0);
    cellgate_weights *weights;
    cellgate_plan *plan;

    (void)state;
    excluded = "cudnn";
    weights = prepare(device, "cudnn-static");
    plan = make_plan(device, weights, "cudnn-static");
    assert_int_equal(run(plan), CELLGATE_OK);
    check_y();
    assert_int_equal(table->run(plan, &of, &error), CELLGATE_UNSUPPORTED);
    assert_int_equal(error.reason, CELLGATE_REASON_SETTING);
    assert_non_null(strstr(error.text, ", cudnn, which exclude leaves out"));
    assert_string_equal(find_at(device, "cudnn-static", &shape).refusal,
                        error.text);
    assert_string_equal(find_at(device, "cudnn-static", &less).refusal, "");
    assert_non_null(
        strstr(find(device, "cudnn-static").note, "lengths are refused"));
    table->plan_destroy(plan);
    plan = make_plan(device, weights, "cudnn-static-tf32");
    run_lengths(plan, some, false);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

/* Many rows without a step cost as much as one, and lengths like those of the
   run before nothing: no copy, and no word with cuDNN but the run. */
static void use_empty_rows(cellgate_plan *plan)
{
    static const int32_t one[BATCH] = { 0, 9, 9, 9, 9 };
    static const int32_t three[BATCH] = { 0, 9, 0, 9, 0 };
    long before = standin_enqueued(), first, calls;

    run_lengths(plan, one, false);
    first = standin_enqueued() - before;
    before = standin_enqueued();
    run_lengths(plan, three, false);
    assert_int_equal(standin_enqueued() - before, first);
    before = standin_enqueued();
    calls = standin_library_calls();
    run_lengths(plan, three, false);
    assert_int_equal(standin_enqueued() - before, first - 2);
    assert_int_equal(standin_library_calls() - calls, 1);
    run_lengths(plan, one, false);
}

static void rows_without_a_step(void **state)
{
    (void)state;
    with_plan("cudnn", use_empty_rows);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(breaks_in_a_library),
        TEST(breaks_before_a_refusal),
        TEST(captures_are_strict),
        TEST(runs_alike_are_a_graph),
        TEST(graphs_that_are_refused),
        TEST(too_many_rows),
        TEST(a_stack),
        TEST(rows_that_are_all_short),
        TEST(without_the_standard_algorithm),
        TEST(rows_without_a_step),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
