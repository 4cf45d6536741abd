/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of the stand-in that take modelled time. Times are looked at from below
   alone: a busy machine may make anything longer. */
#include "config.h"

#include <math.h>
#include <time.h>

#include "tests/unit/remote_rig.h"

struct fixture {
    struct rig rig;
    struct rig_model model;
    struct rig_call call;
    struct rig_plan plan;
};

static void start(struct fixture *f, const char *const *settings)
{
    memset(f, 0, sizeof *f);
    rig_open(&f->rig, settings);
    rig_model_init(&f->model, true);
    rig_plan_make(&f->rig, &f->model, "any", 4, 6, &f->plan);
    rig_call_init(&f->call, &f->model, 4, 6);
}

static void end(struct fixture *f)
{
    rig_plan_free(&f->rig, &f->plan);
    rig_close(&f->rig);
}

static void run(struct fixture *f)
{
    assert_int_equal(rig_run(&f->rig, &f->plan, &f->call, NULL), CELLGATE_OK);
}

static double run_time(struct fixture *f)
{
    const uint64_t before = f->rig.host.clock(f->rig.host.context);

    run(f);
    return (double)(f->rig.host.clock(f->rig.host.context) - before) * 1e-9;
}

#define FREE "bus", "0", "rate", "0"

static void a_run_takes_its_time(void **state)
{
    static const char *const launch[] = { "simulate", "yes", "launch", "0.003",
                                          "step",     "0",   FREE,     NULL };
    static const char *const steps[] = { "simulate", "yes",   "launch", "0",
                                         "step",     "0.001", FREE,     NULL };
    static const char *const large[] = { "simulate",    "yes",  "launch",
                                         "0",           "step", "0",
                                         "large_batch", "4",    "large_step",
                                         "0.001",       FREE,   NULL };
    struct fixture f;

    (void)state;
    start(&f, launch);
    assert_true(run_time(&f) >= 0.003);
    end(&f);
    start(&f, steps);
    assert_true(run_time(&f) >= 0.006);
    end(&f);
    start(&f, large);
    assert_true(run_time(&f) >= 0.006);
    end(&f);
}

/* 4 rows of 6 steps: LSTM 3 -> 5 is 8 * 5 * (3 + 5) operations a step, Dense
   5 -> 2 is 20; x and y are 3 and 2 numbers of 4 bytes. Tiles of 8 rows. */
static void work_and_bytes_count(void **state)
{
    static const char *const work[] = { "simulate", "yes",     "launch", "0",
                                        "step",     "0",       "bus",    "0",
                                        "rate",     "5440000", "tile",   "8",
                                        NULL };
    static const char *const moved[] = { "simulate", "yes", "launch", "0",
                                         "step",     "0",   "bus",    "160000",
                                         "rate",     "0",   NULL };
    struct fixture f;

    (void)state;
    start(&f, work);
    assert_true(run_time(&f) >= 8 * 6 * (320 + 20) / 5440000.0);
    end(&f);
    start(&f, moved);
    assert_true(run_time(&f) >= 4 * 6 * (3 + 2) * 4 / 160000.0);
    end(&f);
}

/* The results are those of a run without modelled time, at the first run, at
   one over the same input, over another one, and over the first one again. */
static void results_are_real(void **state)
{
    static const char *const modelled[] = { "simulate", "yes", "launch", "0",
                                            "step",     "0",   NULL };
    struct fixture plain, f;

    (void)state;
    start(&plain, (const char *const[]){ NULL });
    start(&f, modelled);
    for (int turn = 0; turn < 6; turn++) {
        const float first = turn < 2 || turn == 4 ? 0.25f : -2.0f;

        plain.call.x[5] = f.call.x[5] = first;
        plain.call.h0[1] = f.call.h0[1] = turn == 5 ? 0.5f : 0.0f;
        memset(f.call.y, 0, sizeof f.call.y);
        memset(f.call.c, 0, sizeof f.call.c);
        run(&plain);
        run(&f);
        assert_memory_equal(plain.call.y, f.call.y, sizeof f.call.y);
        assert_memory_equal(plain.call.c, f.call.c, sizeof f.call.c);
    }
    end(&plain);
    end(&f);
}

static void faults_strike_all_the_same(void **state)
{
    static const char *const settings[] = { "simulate",   "yes",     "launch",
                                            "0",          "fail_at", "2",
                                            "lose_after", "4",       NULL };
    struct fixture f;

    (void)state;
    start(&f, settings);
    run(&f);
    assert_int_equal(rig_run(&f.rig, &f.plan, &f.call, NULL),
                     CELLGATE_DEVICE_FAILED);
    run(&f);
    assert_int_equal(rig_run(&f.rig, &f.plan, &f.call, NULL),
                     CELLGATE_DEVICE_LOST);
    end(&f);
}

/* The first run finds the device idle, and so does one after a pause. */
static void idle_devices_are_slow_to_begin(void **state)
{
    static const char *const drowsy[] = { "simulate",   "yes",   "launch",
                                          "0",          "step",  "0",
                                          "idle_after", "0.005", "idle_penalty",
                                          "0.04",       FREE,    NULL };
    const struct timespec pause = { 0, 6000000 };
    double least = 1;
    struct fixture f;

    (void)state;
    start(&f, drowsy);
    assert_true(run_time(&f) >= 0.04);
    /* A busy machine may make pauses of its own, but not always. */
    for (int at = 0; at < 20; at++)
        least = fmin(least, run_time(&f));
    assert_true(least < 0.04);
    (void)nanosleep(&pause, NULL);
    assert_true(run_time(&f) >= 0.04);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_takes_its_time),
        cmocka_unit_test(work_and_bytes_count),
        cmocka_unit_test(results_are_real),
        cmocka_unit_test(faults_strike_all_the_same),
        cmocka_unit_test(idle_devices_are_slow_to_begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
