/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session makes of a device that fails, is lost, hangs or runs out of
 * memory: the stand-in for an accelerator does so on demand.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/session/session.h"
#include "tests/unit/session_rig.h"

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    rig_request request;
    float *wanted; /* what the host ops give */
} set_up;

static cellgate_model *small_model(int64_t hidden)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    rig_model_begin(&rig, 4);
    x = rig_input(&rig, CG_UNKNOWN, 4);
    rig_lstm_init(&lstm, 4, hidden);
    lstm.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, lstm.sequence);
    rig_output(&rig, lstm.final[1]);
    return rig_model_end(&rig);
}

static void begin(set_up *with, const char *config, const char *device)
{
    uint64_t random = 1;
    cellgate_session *host;
    size_t count;

    with->runtime = rig_runtime(config);
    with->model = small_model(6);
    host = rig_session(with->runtime, with->model, "host", NULL);
    with->session = rig_session(with->runtime, with->model, device, NULL);
    rig_request_init(&with->request, host, with->model, 3, 5, 0, &random);
    rig_run(host, &with->request, NULL);
    with->wanted = rig_outputs(&with->request, &count);
    cellgate_session_destroy(host);
}

static void end(set_up *with)
{
    free(with->wanted);
    rig_request_finish(&with->request);
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

static void expect_failure(set_up *with, cellgate_status status,
                           const char *text)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_status got =
        cellgate_run(with->session, &with->request.request, NULL, &error);

    if (got != status || error.status != (int32_t)status ||
        strstr(error.text, text) == NULL)
        fail_msg("the run said %s: %s", cellgate_status_name(got), error.text);
}

static void expect_success(set_up *with, const char *device, const char *reason)
{
    cellgate_report report = { .struct_size = sizeof report };

    rig_run(with->session, &with->request, &report);
    rig_expect(&with->request, with->wanted, 1e-5);
    assert_string_equal(report.device, device);
    if (strstr(report.reason, reason) == NULL)
        fail_msg("the report's reason is: %s", report.reason);
}

static int32_t device_status(const set_up *with, const char *name,
                             const char **reason)
{
    cellgate_device_info info = { .struct_size = sizeof info };

    for (size_t at = 0;
         cellgate_device_get(with->runtime, at, &info) == CELLGATE_OK; at++)
        if (strcmp(info.name, name) == 0) {
            *reason = info.reason;
            return info.status;
        }
    fail_msg("there is no device %s", name);
    return -1;
}

/* ---- Never falling back ------------------------------------------------ */

static void a_failed_run_is_told_and_the_next_works(void **state)
{
    set_up with;

    (void)state;
    begin(&with,
          "[scheduler]\nfallback = never\n"
          "[device card]\nplugin = remote\nfail_at = 2\n",
          NULL);
    expect_success(&with, "card", "first usable device");
    expect_failure(&with, CELLGATE_DEVICE_FAILED, "card");
    expect_success(&with, "card", "first usable device");
    end(&with);
}

static void a_lost_device_is_quarantined(void **state)
{
    const char *reason = "";
    set_up with;

    (void)state;
    begin(&with, "[device card]\nplugin = remote\nlose_after = 2\n", NULL);
    expect_success(&with, "card", "");
    expect_failure(&with, CELLGATE_DEVICE_LOST, "card");
    assert_int_not_equal(device_status(&with, "card", &reason), CELLGATE_OK);
    assert_true(reason[0] != '\0');
    expect_failure(&with, CELLGATE_DEVICE_LOST, reason);
    end(&with);
}

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static const char hanging[] = "[scheduler]\nwatchdog = 200ms\n"
                              "[device card]\nplugin = remote\n"
                              "hang_at = 2\nhang_for = 3600\n";

static void a_hung_run_times_out(void **state)
{
    const char *reason = "";
    double start;
    set_up with;

    (void)state;
    begin(&with, hanging, NULL);
    expect_success(&with, "card", "");
    start = now();
    expect_failure(&with, CELLGATE_TIMEOUT, "watchdog");
    assert_true(now() - start >= 0.19 && now() - start < 5);
    assert_int_not_equal(device_status(&with, "card", &reason), CELLGATE_OK);
    start = now();
    expect_failure(&with, CELLGATE_TIMEOUT, "watchdog");
    assert_true(now() - start < 0.19); /* at once */
    start = now();
    end(&with); /* doesn't wait for it */
    assert_true(now() - start < 5);
}

/* Callers that wait for the hung run's place are told, too. */
static void *run_in_thread(void *argument)
{
    set_up *with = argument;
    rig_request request;
    uint64_t random = 1;
    cellgate_status status;

    rig_request_init(&request, with->session, with->model, 3, 5, 0, &random);
    status = cellgate_run(with->session, &request.request, NULL, NULL);
    rig_request_finish(&request);
    return (void *)(intptr_t)status;
}

static void waiting_callers_are_told(void **state)
{
    pthread_t threads[6];
    int hung = 0;
    set_up with;

    (void)state;
    begin(&with, hanging, NULL);
    for (int at = 0; at < 6; at++)
        assert_int_equal(
            pthread_create(&threads[at], NULL, run_in_thread, &with), 0);
    for (int at = 0; at < 6; at++) {
        void *status;

        pthread_join(threads[at], &status);
        assert_true((intptr_t)status == CELLGATE_OK ||
                    (intptr_t)status == CELLGATE_TIMEOUT);
        hung += (intptr_t)status == CELLGATE_TIMEOUT;
    }
    assert_true(hung >= 1);
    end(&with);
}

/* The place of one that's left behind is free for the next caller. */
static void *wait_for_a_context(void *argument)
{
    cg_placement *placement = argument;
    cg_context *context = NULL;

    if (cg_placement_acquire(placement, &context, NULL) == CELLGATE_OK)
        cg_placement_release(placement, context);
    return context;
}

static void an_abandoned_context_makes_room(void **state)
{
    cg_placement *placement;
    cg_context *first, *second;
    pthread_t waiting;
    void *third;
    set_up with;

    (void)state;
    begin(&with, "[device card]\nplugin = remote\n", NULL);
    placement = with.session->candidates[0].placement;
    assert_int_equal(placement->context_limit, 2); /* its queue depth */
    assert_int_equal(cg_placement_acquire(placement, &first, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_placement_acquire(placement, &second, NULL),
                     CELLGATE_OK);
    assert_int_equal(
        pthread_create(&waiting, NULL, wait_for_a_context, placement), 0);
    cg_placement_abandon(placement, first);
    pthread_join(waiting, &third);
    assert_non_null(third);
    assert_true(third != first && third != second);
    cg_placement_release(placement, second);
    end(&with); /* the session is left behind, as after a hung run */
}

static void no_watchdog_means_no_limit(void **state)
{
    set_up with;

    (void)state;
    begin(&with,
          "[scheduler]\nwatchdog = 0\n[device card]\nplugin = remote\n"
          "latency = 100ms\n",
          NULL);
    expect_success(&with, "card", "");
    end(&with);
}

static void a_stream_is_unchanged_after_an_error(void **state)
{
    cellgate_tensor c = { .struct_size = sizeof c };
    cellgate_stream *stream;
    float before[18], after[18];
    set_up with;

    (void)state;
    begin(&with,
          "[scheduler]\nfallback = never\n"
          "[device card]\nplugin = remote\nfail_at = 2\n",
          NULL);
    assert_int_equal(cellgate_stream_create(with.session, 3, &stream, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_stream_state_shape(stream, 1, &c), CELLGATE_OK);
    with.request.request.stream = stream;
    rig_run(with.session, &with.request, NULL);
    c.data = before;
    assert_int_equal(cellgate_stream_export(stream, 1, &c, NULL), CELLGATE_OK);
    expect_failure(&with, CELLGATE_DEVICE_FAILED, "card");
    c.data = after;
    assert_int_equal(cellgate_stream_export(stream, 1, &c, NULL), CELLGATE_OK);
    assert_memory_equal(before, after, sizeof before);
    rig_run(with.session, &with.request, NULL);
    assert_int_equal(cellgate_stream_export(stream, 1, &c, NULL), CELLGATE_OK);
    assert_memory_not_equal(before, after, sizeof before);
    cellgate_stream_destroy(stream);
    end(&with);
}

/* ---- Falling back ------------------------------------------------------ */

static const char two_devices[] =
    "[scheduler]\nfallback = %s\nwatchdog = 200ms\n"
    "[device card]\nplugin = remote\n%s\n[device cpu]\nplugin = openmp\n";

static void begin_two(set_up *with, const char *fallback, const char *fault)
{
    char config[400];

    snprintf(config, sizeof config, two_devices, fallback, fault);
    begin(with, config, NULL);
}

static void a_failed_run_goes_to_the_next_device(void **state)
{
    set_up with;

    (void)state;
    begin_two(&with, "run", "fail_at = 1");
    expect_success(&with, "cpu", "after a failure: device 'card'");
    expect_success(&with, "card", "first usable device");
    end(&with);
    begin_two(&with, "run", "lose_after = 1");
    expect_success(&with, "cpu", "after a failure");
    expect_success(&with, "cpu", "after a failure");
    end(&with);
    begin_two(&with, "run", "hang_at = 1");
    expect_success(&with, "cpu", "watchdog");
    expect_success(&with, "cpu", "watchdog");
    end(&with);
    begin_two(&with, "load", "fail_at = 1");
    expect_failure(&with, CELLGATE_DEVICE_FAILED, "card");
    end(&with);
}

static void the_host_is_the_last_resort(void **state)
{
    set_up with;

    (void)state;
    begin(&with,
          "[cellgate]\nunlisted = no\n[scheduler]\nfallback = run\n"
          "[device card]\nplugin = remote\nlose_after = 1\n",
          NULL);
    expect_success(&with, "host", "last resort");
    end(&with);
}

/* A request that is wrong is wrong everywhere: nobody else is asked. */
static void a_wrong_request_is_no_fault_of_the_device(void **state)
{
    set_up with;

    (void)state;
    begin_two(&with, "run", "fail_at = 0");
    with.request.outputs[0].shape[0] = 2;
    expect_failure(&with, CELLGATE_BAD_SHAPE, "output");
    with.request.outputs[0].shape[0] = 3;
    expect_success(&with, "card", "first usable device");
    end(&with);
}

/* The weights don't fit: preparing them fails when the session is made. */
static void a_model_that_does_not_fit(void **state)
{
    const char *const never = "[cellgate]\nunlisted = no\n"
                              "[scheduler]\nfallback = never\n"
                              "[device card]\nplugin = remote\n"
                              "memory = 64K\n[device cpu]\nplugin = openmp\n";
    const char *const load = "[cellgate]\nunlisted = no\n"
                             "[scheduler]\nfallback = load\n"
                             "[device card]\nplugin = remote\n"
                             "memory = 64K\n[device cpu]\nplugin = openmp\n";
    cellgate_session_options named = { .struct_size = sizeof named,
                                       .device = "card" };
    cellgate_segment_info info = { .struct_size = sizeof info };
    cellgate_runtime *runtime = rig_runtime(never);
    cellgate_model *model = small_model(200);
    cellgate_session *session;

    (void)state;
    assert_int_equal(
        cellgate_session_create(runtime, model, NULL, &session, NULL),
        CELLGATE_DEVICE_MEMORY);
    cellgate_runtime_destroy(runtime);
    runtime = rig_runtime(load);
    assert_int_equal(
        cellgate_session_create(runtime, model, &named, &session, NULL),
        CELLGATE_DEVICE_MEMORY);
    session = rig_session(runtime, model, NULL, NULL);
    assert_true(
        rig_logged(CELLGATE_LOG_WARNING, "device 'card' is passed over: "));
    assert_int_equal(cellgate_session_segment_get(session, 0, &info),
                     CELLGATE_OK);
    assert_string_equal(info.device, "cpu");
    assert_non_null(strstr(info.reason, "not card"));
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
}

/* ---- Memory and plans -------------------------------------------------- */

static cellgate_status run_shape(const set_up *with, int64_t batch,
                                 int64_t steps, cellgate_error *error)
{
    rig_request request;
    uint64_t random = 2;
    cellgate_status status;

    rig_request_init(&request, with->session, with->model, batch, steps, 0,
                     &random);
    status = cellgate_run(with->session, &request.request, NULL, error);
    rig_request_finish(&request);
    return status;
}

/* Old plans make room for new ones; what can't fit at all is refused. */
static void plans_are_evicted_when_memory_is_short(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    set_up with;

    (void)state;
    begin(&with,
          "[scheduler]\nfallback = never\n[device card]\nplugin = remote\n"
          "variants = exact\nmemory = 256K\n",
          NULL);
    for (int64_t steps = 100; steps < 160; steps++)
        if (run_shape(&with, 4, steps, &error) != CELLGATE_OK)
            fail_msg("%lld steps: %s", (long long)steps, error.text);
    assert_int_equal(run_shape(&with, 64, 2000, &error),
                     CELLGATE_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "smaller batch"));
    expect_success(&with, "card", "");
    end(&with);
}

static void every_variant_runs_every_shape(void **state)
{
    const char *const variants[] = { "batch", "exact", "any" };

    (void)state;
    for (int at = 0; at < 3; at++) {
        char config[200];
        set_up with;

        snprintf(config, sizeof config,
                 "[device card]\nplugin = remote\nvariants = %s\n"
                 "require_pinned = yes\n",
                 variants[at]);
        begin(&with, config, NULL);
        for (int64_t size = 1; size < 40; size += 3)
            assert_int_equal(run_shape(&with, size, 40 - size, NULL),
                             CELLGATE_OK);
        expect_success(&with, "card", "");
        end(&with);
    }
}

static void only_named_variants_lose_precision(void **state)
{
    cellgate_segment_info info = { .struct_size = sizeof info };
    cellgate_session_options none = { .struct_size = sizeof none,
                                      .device = "card",
                                      .variant = "t1" };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session;
    set_up with;

    (void)state;
    begin(&with, "[device card]\nplugin = remote\n", NULL);
    assert_int_equal(cellgate_session_segment_get(with.session, 0, &info),
                     CELLGATE_OK);
    assert_int_equal(info.numeric, CELLGATE_NUMERIC_F32);
    session = rig_session(with.runtime, with.model, "card", "bf16");
    assert_int_equal(cellgate_session_segment_get(session, 0, &info),
                     CELLGATE_OK);
    assert_int_equal(info.numeric, CELLGATE_NUMERIC_BF16);
    rig_run(session, &with.request, NULL);
    rig_expect(&with.request, with.wanted, 0.05);
    cellgate_session_destroy(session);
    assert_int_equal(cellgate_session_create(with.runtime, with.model, &none,
                                             &session, &error),
                     CELLGATE_NOT_FOUND);
    assert_non_null(strstr(error.text, "no variant 't1'"));
    end(&with);
}

/* A variant that turns out not to run, when weights are prepared, is passed
   over, and listed with the reason. */
static void a_refused_variant_is_passed_over(void **state)
{
    cellgate_segment_info info = { .struct_size = sizeof info };
    cellgate_variant_info variant = { .struct_size = sizeof variant };
    set_up with;

    (void)state;
    begin(&with, "[device card]\nplugin = remote\nrefused = batch\n", NULL);
    assert_int_equal(cellgate_session_segment_get(with.session, 0, &info),
                     CELLGATE_OK);
    assert_string_equal(info.variant, "exact");
    expect_success(&with, "card", "");
    assert_int_equal(cellgate_session_variant_get(with.session, 0, &variant),
                     CELLGATE_OK);
    assert_string_equal(variant.name, "batch");
    assert_false(variant.usable);
    assert_string_equal(variant.note, "its kernel did not compile");
    end(&with);
}

static void the_report_has_the_devices_times(void **state)
{
    cellgate_report report = { .struct_size = sizeof report };
    set_up with;

    (void)state;
    begin(&with, "[device card]\nplugin = remote\nlatency = 20ms\n", NULL);
    rig_run(with.session, &with.request, &report);
    assert_true(report.seconds >= report.device_seconds);
    assert_true(report.device_seconds >= 0.019);
    assert_true(report.compute_seconds > 0);
    assert_true(report.host_seconds >= 0 && report.wait_seconds >= 0);
    assert_int_equal(report.segments, 1);
    assert_int_equal(report.host_segments, 0);
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_run_is_told_and_the_next_works),
        cmocka_unit_test(a_lost_device_is_quarantined),
        cmocka_unit_test(a_hung_run_times_out),
        cmocka_unit_test(waiting_callers_are_told),
        cmocka_unit_test(an_abandoned_context_makes_room),
        cmocka_unit_test(no_watchdog_means_no_limit),
        cmocka_unit_test(a_stream_is_unchanged_after_an_error),
        cmocka_unit_test(a_failed_run_goes_to_the_next_device),
        cmocka_unit_test(the_host_is_the_last_resort),
        cmocka_unit_test(a_wrong_request_is_no_fault_of_the_device),
        cmocka_unit_test(a_model_that_does_not_fit),
        cmocka_unit_test(plans_are_evicted_when_memory_is_short),
        cmocka_unit_test(every_variant_runs_every_shape),
        cmocka_unit_test(only_named_variants_lose_precision),
        cmocka_unit_test(a_refused_variant_is_passed_over),
        cmocka_unit_test(the_report_has_the_devices_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
