/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring by a clock that only the subjects move. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cost/measure.h"

typedef struct fake_clock {
    double time;
    double tick; /* what reading it takes, and shows */
    double slept;
} fake_clock;

static double fake_now(void *context)
{
    fake_clock *clock = context;

    clock->time += clock->tick;
    return clock->time;
}

static void fake_sleep(void *context, double seconds)
{
    fake_clock *clock = context;

    clock->time += seconds;
    clock->slept = clock->time;
}

typedef struct fake {
    fake_clock *clock;
    double cold, warm; /* the first run, and those after it */
    double sleepy;     /* a run that follows a sleep within 1 ms */
    double drowsy;     /* a run after another one's */
    double slower;     /* grows by this share each second */
    int spike_every;   /* that run takes 50 times as long; 0: none */
    int runs, fail_at; /* 0: never fails */
    char *order;       /* its letter goes here */
    char letter;
} fake;

static const fake *last_to_run;

static cellgate_status fake_run(void *context, cellgate_error *error)
{
    fake *of = context;
    double seconds = of->runs == 0 ? of->cold : of->warm;

    if (of->drowsy > 0 && last_to_run != of)
        seconds = of->drowsy;
    last_to_run = of;
    seconds *= 1 + of->slower * (of->clock->time - 1000);
    if (of->spike_every > 0 && of->runs % of->spike_every == 0)
        seconds *= 50;
    if (of->sleepy > 0 && of->clock->time - of->clock->slept < 1e-3)
        seconds = of->sleepy;
    of->clock->time += seconds;
    of->runs++;
    if (of->order != NULL)
        strncat(of->order, &of->letter, 1);
    if (of->runs == of->fail_at)
        return cellgate_fail(error, CELLGATE_DEVICE_LOST, "it went away");
    return CELLGATE_OK;
}

static fake_clock clock_of;

static cg_clock start_clock(void)
{
    clock_of = (fake_clock){ .time = 1000, .tick = 1e-8, .slept = -1 };
    return (cg_clock){ fake_now, fake_sleep, &clock_of };
}

static void measure(const cg_measuring *how, fake *fakes, size_t count,
                    cg_measured *results)
{
    cg_subject subjects[4];
    cellgate_error error = CELLGATE_ERROR_INIT;

    for (size_t i = 0; i < count; i++) {
        fakes[i].clock = &clock_of;
        subjects[i] = (cg_subject){ fake_run, &fakes[i] };
    }
    if (cg_measure(how, subjects, count, results, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value / expected - 1) < 0.01))
        fail_msg("%g is not %g", value, expected);
}

static void cold_calls_are_apart(void **state)
{
    fake fakes[] = { { .cold = 2, .warm = 1e-3 },
                     { .cold = 1e-3, .warm = 3e-3 } };
    const cg_clock clock = start_clock();
    cg_measured results[2];
    cg_measuring how;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    measure(&how, fakes, 2, results);
    assert_near(results[0].first, 2);
    assert_near(results[0].summary.median, 1e-3);
    assert_near(results[0].summary.high, 1e-3);
    assert_near(results[1].first, 1e-3);
    assert_near(results[1].summary.median, 3e-3);
    assert_int_equal(results[0].runs_a_sample, 1);
}

static void subjects_take_turns(void **state)
{
    char order[64] = "";
    fake fakes[] = { { .cold = 1, .warm = 1, .order = order, .letter = 'a' },
                     { .cold = 1, .warm = 1, .order = order, .letter = 'b' },
                     { .cold = 1, .warm = 1, .order = order, .letter = 'c' } };
    const cg_clock clock = start_clock();
    cg_measured results[3];
    cg_measuring how;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    how.budget = 100;
    how.warm_up = 2;
    how.least = how.most = 3;
    measure(&how, fakes, 3, results);
    /* Two to warm up; then one that is dropped, and two samples, a turn. */
    assert_string_equal(order, "aabbcc"
                               "aaabbbccc"
                               "bbcca"
                               "a");
}

static void short_runs_go_together(void **state)
{
    fake fakes[] = { { .cold = 1e-7, .warm = 1e-7 } };
    cg_clock clock = start_clock();
    cg_measured results[1];
    cg_measuring how;

    (void)state;
    clock_of.tick = 1e-7;
    cg_measuring_init(&how);
    how.clock = &clock;
    measure(&how, fakes, 1, results);
    assert_in_range(results[0].runs_a_sample, 64, 256);
    assert_true(fabs(results[0].summary.median / 1e-7 - 1) < 0.02);
}

/* A run that the clock does not see is not called free. */
static void clock_that_stands_still(void **state)
{
    fake fakes[] = { { .cold = 0, .warm = 0 } };
    cg_clock clock = start_clock();
    cg_measured results[1];
    cg_measuring how;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    measure(&how, fakes, 1, results);
    assert_true(results[0].summary.median > 0);
}

static void time_is_kept(void **state)
{
    fake fakes[] = { { .cold = 0.3, .warm = 0.3 },
                     { .cold = 0.2, .warm = 0.2 } };
    const cg_clock clock = start_clock();
    cg_measured results[2];
    cg_measuring how;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    how.budget = 2;
    how.warm_up = 1;
    measure(&how, fakes, 2, results);
    /* A turn that has begun: the run that is dropped, and one sample. */
    assert_true(clock_of.time - 1000 < 2 + 2 * 0.3 + 1e-3);
    assert_true(results[0].summary.count >= 2);
    /* Too little for anything: one sample of each all the same. */
    how.budget = 1e-6;
    measure(&how, fakes, 2, results);
    assert_int_equal(results[0].summary.count, 1);
    assert_int_equal(results[1].summary.count, 1);
}

static void a_failure_is_its_own(void **state)
{
    fake fakes[] = { { .cold = 1e-3, .warm = 1e-3, .fail_at = 6 },
                     { .cold = 1e-3, .warm = 1e-3 },
                     { .cold = 1e-3, .warm = 1e-3, .fail_at = 1 } };
    const cg_clock clock = start_clock();
    cg_measured results[3];
    cg_measuring how;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    measure(&how, fakes, 3, results);
    assert_int_equal(results[0].status, CELLGATE_DEVICE_LOST);
    assert_string_equal(results[0].error.text, "it went away");
    assert_int_equal(fakes[0].runs, 6);
    assert_int_equal(results[1].status, CELLGATE_OK);
    assert_true(results[1].summary.count >= how.least);
    assert_int_equal(results[2].status, CELLGATE_DEVICE_LOST);
    assert_int_equal(results[2].summary.count, 0);
}

static void far_ones_are_left(void **state)
{
    fake fakes[] = { { .cold = 1e-3, .warm = 1e-3 },
                     { .cold = 5e-3, .warm = 5e-3 } };
    const cg_clock clock = start_clock();
    cg_measured results[2];
    cg_measuring how;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    how.enough = -1; /* never known well enough */
    how.budget = 100;
    measure(&how, fakes, 2, results);
    assert_int_equal(results[0].summary.count, how.most);
    assert_int_equal(results[1].summary.count, how.least);
}

/* A team that spins is fast at once and slow to wake: what is best back to
   back is worst when spaced. */
static void regimes_differ(void **state)
{
    fake fakes[] = { { .cold = 1e-4, .warm = 1e-4 },
                     { .cold = 5e-5, .warm = 5e-5, .sleepy = 7e-3 } };
    const cg_clock clock = start_clock();
    cg_measured results[2];
    cg_measuring how;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    how.budget = 10;
    measure(&how, fakes, 2, results);
    assert_true(results[1].summary.median < results[0].summary.median);
    how.gap = 20e-3;
    measure(&how, fakes, 2, results);
    assert_true(results[1].summary.median > results[0].summary.median);
    assert_near(results[1].summary.median, 7e-3);
}

/* While others run, threads fall asleep: back to back does not mean that. */
static void a_turn_begins_awake(void **state)
{
    fake fakes[] = { { .cold = 1e-4, .warm = 1e-4 },
                     { .cold = 5e-5, .warm = 5e-5, .drowsy = 7e-3 } };
    const cg_clock clock = start_clock();
    cg_measured results[2];
    cg_measuring how;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    how.budget = 10;
    measure(&how, fakes, 2, results);
    assert_near(results[1].summary.median, 5e-5);
    assert_near(results[1].summary.high, 5e-5);
}

/* Interruptions, one run in seven, do not move the median. */
static void spikes_do_not_count(void **state)
{
    fake fakes[] = { { .cold = 1e-3, .warm = 1e-3, .spike_every = 7 },
                     { .cold = 1.1e-3, .warm = 1.1e-3 } };
    const cg_clock clock = start_clock();
    cg_measured results[2];
    cg_measuring how;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    how.budget = 10;
    measure(&how, fakes, 2, results);
    assert_near(results[0].summary.median, 1e-3);
    assert_near(results[1].summary.median, 1.1e-3);
}

/* A machine that gets slower while it measures: each turn is next to the other
   one's, so the ratio stands. */
static void drift_is_shared(void **state)
{
    fake fakes[] = { { .cold = 1e-3, .warm = 1e-3, .slower = 2 },
                     { .cold = 1.1e-3, .warm = 1.1e-3, .slower = 2 } };
    const cg_clock clock = start_clock();
    cg_measured results[2];
    cg_measuring how;
    double ratio;

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    how.budget = 10;
    how.enough = -1; /* all 51 samples */
    measure(&how, fakes, 2, results);
    assert_true(results[0].summary.high > 1.05 * results[0].summary.low);
    ratio = results[1].summary.median / results[0].summary.median;
    assert_true(fabs(ratio / 1.1 - 1) < 0.02);
}

static void mark_idle(void *context)
{
    strcat(context, "i");
}

static char *events;

static void marked_sleep(void *context, double seconds)
{
    strcat(events, seconds == 20e-3 ? "s" : "?");
    fake_sleep(context, seconds);
}

/* Before each spaced run, also of those that are dropped, caches are displaced,
   and then comes the whole gap. */
static void a_gap_lies_before_each_run(void **state)
{
    char order[64] = "";
    fake fakes[] = { { .cold = 1, .warm = 1, .order = order, .letter = 'a' },
                     { .cold = 1, .warm = 1, .order = order, .letter = 'b' } };
    cg_clock clock = start_clock();
    cg_measured results[2];
    cg_measuring how;

    (void)state;
    events = order;
    clock.sleep = marked_sleep;
    cg_measuring_init(&how);
    how.clock = &clock;
    how.budget = 100;
    how.warm_up = 1;
    how.least = how.most = 2;
    how.gap = 20e-3;
    how.idle = mark_idle;
    how.idle_context = order;
    measure(&how, fakes, 2, results);
    assert_string_equal(order, "isaisb"
                               "isaisb"
                               "isbisa");
}

static bool some_times(void *context, double used)
{
    int *left = context;

    assert_true(used >= 0);
    return --*left > 0;
}

static void it_can_be_stopped(void **state)
{
    fake fakes[] = { { .cold = 1e-3, .warm = 1e-3 },
                     { .cold = 1e-3, .warm = 1e-3 } };
    const cg_clock clock = start_clock();
    cg_measured results[2];
    cg_measuring how;
    int left = 5; /* asked before warming up and before each sample */

    (void)state;
    cg_measuring_init(&how);
    how.clock = &clock;
    how.enough = -1;
    how.go_on = some_times;
    how.go_on_context = &left;
    measure(&how, fakes, 1, results);
    assert_int_equal(results[0].summary.count, 3);
    /* Nor is anything begun after that. */
    left = 2;
    fakes[0].runs = 0;
    measure(&how, fakes, 2, results);
    assert_int_equal(fakes[0].runs, 3);
    assert_int_equal(fakes[1].runs, 0);
    assert_int_equal(results[0].summary.count, 0);
    assert_int_equal(results[1].summary.count, 0);
    assert_int_equal(results[1].status, CELLGATE_OK);
}

static void the_real_clock_goes_on(void **state)
{
    const double start = cg_now(&cg_real_clock);

    (void)state;
    cg_real_clock.sleep(cg_real_clock.context, 2e-3);
    assert_true(cg_now(&cg_real_clock) - start >= 2e-3);
    assert_true(cg_clock_resolution(&cg_real_clock) > 0);
    assert_true(cg_clock_resolution(&cg_real_clock) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cold_calls_are_apart),
        cmocka_unit_test(subjects_take_turns),
        cmocka_unit_test(short_runs_go_together),
        cmocka_unit_test(clock_that_stands_still),
        cmocka_unit_test(time_is_kept),
        cmocka_unit_test(a_failure_is_its_own),
        cmocka_unit_test(far_ones_are_left),
        cmocka_unit_test(regimes_differ),
        cmocka_unit_test(a_turn_begins_awake),
        cmocka_unit_test(spikes_do_not_count),
        cmocka_unit_test(drift_is_shared),
        cmocka_unit_test(a_gap_lies_before_each_run),
        cmocka_unit_test(it_can_be_stopped),
        cmocka_unit_test(the_real_clock_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
