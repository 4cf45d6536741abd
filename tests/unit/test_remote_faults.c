/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the stand-in on demand, and how many runs it does at once. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/remote_rig.h"

/* A device with these settings, the lone LSTM, one plan of 2 x 3, one call. */
struct fixture {
    struct rig rig;
    struct rig_model model;
    struct rig_call call;
    struct rig_plan plan;
    cellgate_error error;
};

static void start(struct fixture *f, const char *const *settings)
{
    memset(f, 0, sizeof *f);
    f->error.struct_size = sizeof f->error;
    rig_open(&f->rig, settings);
    rig_model_init(&f->model, false);
    rig_plan_make(&f->rig, &f->model, "any", 2, 3, &f->plan);
    rig_call_init(&f->call, &f->model, 2, 3);
}

static void end(struct fixture *f)
{
    rig_plan_free(&f->rig, &f->plan);
    rig_close(&f->rig);
}

static cellgate_status run(struct fixture *f)
{
    return rig_run(&f->rig, &f->plan, &f->call, &f->error);
}

static void test_one_run_fails(void **state)
{
    static const char *const settings[] = { "fail_at", "2", NULL };
    struct fixture f;

    (void)state;
    start(&f, settings);
    assert_int_equal(run(&f), CELLGATE_OK);
    assert_int_equal(run(&f), CELLGATE_DEVICE_FAILED);
    assert_int_equal(f.error.status, CELLGATE_DEVICE_FAILED);
    assert_int_equal(f.error.vendor_code, 719);
    assert_int_equal(run(&f), CELLGATE_OK);
    end(&f);
}

static void test_refused_runs_are_not_counted(void **state)
{
    static const char *const settings[] = { "fail_at", "1", NULL };
    struct fixture f;

    (void)state;
    start(&f, settings);
    f.call.run.batch = 9;
    assert_int_equal(run(&f), CELLGATE_INVALID);
    f.call.run.batch = 2;
    assert_int_equal(run(&f), CELLGATE_DEVICE_FAILED);
    end(&f);
}

static void test_a_failed_run_leaves_resident_state(void **state)
{
    static const char *const settings[] = { "fail_at", "2", NULL };
    struct fixture f;
    cellgate_resident *resident;
    float h[RIG_BATCH * RIG_HIDDEN];

    (void)state;
    start(&f, settings);
    assert_int_equal(
        f.rig.plugin->resident_create(f.plan.weights, 2, &resident, &f.error),
        CELLGATE_OK);
    f.call.run.resident = resident;
    assert_int_equal(run(&f), CELLGATE_OK);
    memcpy(h, f.call.h, sizeof h);
    assert_int_equal(run(&f), CELLGATE_DEVICE_FAILED);
    assert_int_equal(
        f.rig.plugin->resident_export(resident, f.call.states, &f.error),
        CELLGATE_OK);
    assert_memory_equal(f.call.h, h, sizeof h);
    assert_int_equal(run(&f), CELLGATE_OK);
    assert_memory_not_equal(f.call.h, h, 2 * RIG_HIDDEN * sizeof(float));
    f.rig.plugin->resident_destroy(resident);
    end(&f);
}

/* Every call after the loss says so, and what was made can still be freed. */
static void test_a_lost_device_stays_lost(void **state)
{
    static const char *const settings[] = { "lose_after", "2", NULL };
    const cellgate_shape shape = { sizeof shape, 1, 1 };
    struct fixture f;
    const cellgate_plugin *plugin;
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_breakdown parts = { .struct_size = sizeof parts };
    cellgate_resident *resident, *other;
    cellgate_weights *weights;
    cellgate_plan *plan;

    (void)state;
    start(&f, settings);
    plugin = f.rig.plugin;
    assert_int_equal(
        plugin->resident_create(f.plan.weights, 2, &resident, &f.error),
        CELLGATE_OK);
    assert_int_equal(run(&f), CELLGATE_OK);
    assert_int_equal(run(&f), CELLGATE_DEVICE_LOST);
    assert_int_equal(f.error.vendor_code, 79);
    assert_int_equal(run(&f), CELLGATE_DEVICE_LOST);
    assert_int_equal(plugin->support(f.rig.device, &f.model.segment, NULL, 0,
                                     &variant, &f.error),
                     CELLGATE_DEVICE_LOST);
    assert_int_equal(
        plugin->prepare(f.rig.device, &f.model.segment, 0, &weights, &f.error),
        CELLGATE_DEVICE_LOST);
    assert_int_equal(plugin->plan_create(f.rig.device, f.plan.weights, 3,
                                         &shape, &plan, &f.error),
                     CELLGATE_DEVICE_LOST);
    assert_int_equal(plugin->breakdown(f.plan.plan, &parts, &f.error),
                     CELLGATE_DEVICE_LOST);
    assert_int_equal(
        plugin->resident_create(f.plan.weights, 2, &other, &f.error),
        CELLGATE_DEVICE_LOST);
    assert_int_equal(plugin->resident_export(resident, f.call.states, &f.error),
                     CELLGATE_DEVICE_LOST);
    assert_int_equal(plugin->resident_import(resident, f.call.states, &f.error),
                     CELLGATE_DEVICE_LOST);
    plugin->resident_destroy(resident);
    end(&f);
}

static double now(struct rig *rig)
{
    return (double)rig->host.clock(rig->host.context) * 1e-9;
}

static void test_a_hung_run_gives_up_in_the_end(void **state)
{
    static const char *const settings[] = { "hang_at", "1", "hang_for", "0.25",
                                            NULL };
    struct fixture f;
    double before;

    (void)state;
    start(&f, settings);
    before = now(&f.rig);
    assert_int_equal(run(&f), CELLGATE_DEVICE_LOST);
    assert_true(now(&f.rig) - before >= 0.25);
    assert_int_equal(run(&f), CELLGATE_DEVICE_LOST);
    end(&f);
}

static void expect_scaled(const float *right, const float *wrong, size_t count)
{
    size_t at;

    for (at = 0; at < count; at++)
        assert_true(fabsf(wrong[at] - 1.01f * right[at]) <= 1e-6f);
}

static void test_wrong_results_are_off_by_one_percent(void **state)
{
    static const char *const once[] = { "wrong_at", "2", NULL };
    static const char *const always[] = { "wrong", "yes", NULL };
    struct fixture f;
    struct rig_call right;

    (void)state;
    start(&f, once);
    assert_int_equal(run(&f), CELLGATE_OK);
    right = f.call;
    assert_int_equal(run(&f), CELLGATE_OK);
    expect_scaled(right.y, f.call.y, 2 * 3 * RIG_HIDDEN);
    expect_scaled(right.last, f.call.last, 2 * RIG_HIDDEN);
    expect_scaled(right.h, f.call.h, 2 * RIG_HIDDEN);
    expect_scaled(right.c, f.call.c, 2 * RIG_HIDDEN);
    assert_int_equal(run(&f), CELLGATE_OK);
    assert_memory_equal(right.y, f.call.y, sizeof right.y);
    end(&f);

    start(&f, always);
    assert_int_equal(run(&f), CELLGATE_OK);
    expect_scaled(right.y, f.call.y, 2 * 3 * RIG_HIDDEN);
    end(&f);
}

/* A caller with a plan of its own. */
struct caller {
    struct rig *rig;
    struct rig_plan plan;
    struct rig_call call;
    pthread_t thread;
    cellgate_status status;
};

static void *call_once(void *argument)
{
    struct caller *caller = argument;

    caller->status = rig_run(caller->rig, &caller->plan, &caller->call, NULL);
    return NULL;
}

/* Seconds that `count` runs take, started together. */
static double run_together(struct rig *rig, const struct rig_model *model,
                           unsigned count)
{
    struct caller callers[8];
    double before;
    unsigned at;

    assert_true(count <= 8);
    for (at = 0; at < count; at++) {
        callers[at].rig = rig;
        rig_call_init(&callers[at].call, model, 2, 3);
        rig_plan_make(rig, model, "any", 2, 3, &callers[at].plan);
    }
    before = now(rig);
    for (at = 0; at < count; at++)
        assert_int_equal(
            pthread_create(&callers[at].thread, NULL, call_once, &callers[at]),
            0);
    for (at = 0; at < count; at++)
        (void)pthread_join(callers[at].thread, NULL);
    before = now(rig) - before;
    for (at = 0; at < count; at++) {
        assert_int_equal(callers[at].status, CELLGATE_OK);
        assert_memory_equal(callers[at].call.y, callers[0].call.y,
                            sizeof callers[0].call.y);
        rig_plan_free(rig, &callers[at].plan);
    }
    return before;
}

static void test_two_run_at_once_and_a_third_waits(void **state)
{
    static const char *const settings[] = { "latency", "0.4", NULL };
    struct fixture f;

    (void)state;
    start(&f, settings);
    assert_true(run_together(&f.rig, &f.model, 2) < 0.8);
    assert_true(run_together(&f.rig, &f.model, 3) >= 0.8);
    end(&f);
}

static void test_many_callers(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, NULL);
    (void)run_together(&f.rig, &f.model, 8);
    assert_string_equal(f.rig.log, "");
    end(&f);
}

static void test_one_plan_is_one_callers(void **state)
{
    static const char *const settings[] = { "latency", "0.4", NULL };
    struct fixture f;
    struct caller first;
    unsigned tries = 0;
    cellgate_status status;

    (void)state;
    start(&f, settings);
    first.rig = &f.rig;
    first.plan = f.plan;
    rig_call_init(&first.call, &f.model, 2, 3);
    assert_int_equal(pthread_create(&first.thread, NULL, call_once, &first), 0);
    /* Until the other thread is in its run, or for two of these runs. */
    do {
        (void)usleep(20000);
        status = run(&f);
    } while (status == CELLGATE_OK && tries++ < 2);
    (void)pthread_join(first.thread, NULL);
    /* Whichever came second was told. */
    assert_true((status == CELLGATE_INVALID) !=
                (first.status == CELLGATE_INVALID));
    end(&f);
}

static void test_a_child_is_told(void **state)
{
    struct fixture f;
    pid_t child;
    int how;

    (void)state;
    start(&f, NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run(&f) == CELLGATE_FORKED ? 0 : 1);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_int_equal(run(&f), CELLGATE_OK);
    end(&f);
}

/* The failures of 300 runs, a bit each; their number. */
static int random_failures(const char *const *settings, bool *failed)
{
    struct fixture f;
    int count = 0;

    start(&f, settings);
    for (int at = 0; at < 300; at++) {
        failed[at] = run(&f) != CELLGATE_OK;
        count += failed[at];
    }
    end(&f);
    return count;
}

static void test_random_failures(void **state)
{
    static const char *const settings[] = { "fail_percent", "30", "fault_seed",
                                            "5", NULL };
    static const char *const others[] = { "fail_percent", "30", "fault_seed",
                                          "6", NULL };
    bool first[300], again[300], other[300];
    int count = random_failures(settings, first);

    (void)state;
    assert_true(count > 60 && count < 120);
    assert_int_equal(random_failures(settings, again), count);
    assert_memory_equal(first, again, sizeof first);
    (void)random_failures(others, other);
    assert_memory_not_equal(first, other, sizeof first);
}

static void test_a_random_loss_is_for_good(void **state)
{
    static const char *const settings[] = { "lose_percent", "20", NULL };
    struct fixture f;
    int at = 0;

    (void)state;
    start(&f, settings);
    while (at < 100 && run(&f) == CELLGATE_OK)
        at++;
    assert_true(at < 100);
    assert_int_equal(run(&f), CELLGATE_DEVICE_LOST);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_run_fails),
        cmocka_unit_test(test_random_failures),
        cmocka_unit_test(test_a_random_loss_is_for_good),
        cmocka_unit_test(test_refused_runs_are_not_counted),
        cmocka_unit_test(test_a_failed_run_leaves_resident_state),
        cmocka_unit_test(test_a_lost_device_stays_lost),
        cmocka_unit_test(test_a_hung_run_gives_up_in_the_end),
        cmocka_unit_test(test_wrong_results_are_off_by_one_percent),
        cmocka_unit_test(test_two_run_at_once_and_a_third_waits),
        cmocka_unit_test(test_many_callers),
        cmocka_unit_test(test_one_plan_is_one_callers),
        cmocka_unit_test(test_a_child_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
