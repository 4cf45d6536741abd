/* SPDX-License-Identifier: Apache-2.0 */
/* How requests follow each other, on a clock that the test sets. */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/schedule/pace.h"

static double time_now;

static double now(void *context)
{
    (void)context;
    return time_now;
}

static const cg_clock set_clock = { now, NULL, NULL };

/* Requests of a millisecond, each after such a gap; how often what is said
   changed. */
static int requests(cg_pace *pace, int count, double gap)
{
    int changes = 0;

    for (int at = 0; at < count; at++) {
        time_now += gap;
        changes += cg_pace_begin(pace);
        time_now += 1e-3;
        cg_pace_end(pace);
    }
    return changes;
}

static void begin(cg_pace *pace)
{
    time_now = 100;
    cg_pace_init(pace, &set_clock);
}

static void nothing_is_seen_yet(void **state)
{
    cg_pace pace;

    (void)state;
    begin(&pace);
    assert_int_equal(cg_pace_regime(&pace), CG_BACK_TO_BACK);
    /* Before the first one there is no gap. */
    assert_int_equal(requests(&pace, 1, 1000), 0);
    assert_int_equal(requests(&pace, CG_PACE_VOTES - 1, 1), 0);
    assert_int_equal(cg_pace_regime(&pace), CG_BACK_TO_BACK);
}

static void gaps_make_it_spaced_and_back(void **state)
{
    cg_pace pace;

    (void)state;
    begin(&pace);
    assert_int_equal(requests(&pace, CG_PACE_VOTES + 1, 20e-3), 1);
    assert_int_equal(cg_pace_regime(&pace), CG_SPACED);
    assert_int_equal(requests(&pace, 100, 20e-3), 0);
    assert_int_equal(requests(&pace, CG_PACE_VOTES - 1, 10e-6), 0);
    assert_int_equal(cg_pace_regime(&pace), CG_SPACED);
    assert_int_equal(requests(&pace, 1, 10e-6), 1);
    assert_int_equal(cg_pace_regime(&pace), CG_BACK_TO_BACK);
}

/* A pause now and then, and a burst now and then. */
static void single_gaps_do_nothing(void **state)
{
    cg_pace pace;

    (void)state;
    begin(&pace);
    for (int at = 0; at < 200; at++) {
        assert_int_equal(requests(&pace, 9, 10e-6), 0);
        assert_int_equal(requests(&pace, 8, 1), 0);
    }
    assert_int_equal(cg_pace_regime(&pace), CG_BACK_TO_BACK);
    assert_int_equal(requests(&pace, 100, 1), 1);
    for (int at = 0; at < 200; at++) {
        assert_int_equal(requests(&pace, 8, 10e-6), 0);
        assert_int_equal(requests(&pace, 9, 1), 0);
    }
    assert_int_equal(cg_pace_regime(&pace), CG_SPACED);
}

static void what_lies_between_says_nothing(void **state)
{
    cg_pace pace;

    (void)state;
    begin(&pace);
    assert_int_equal(requests(&pace, 1000, 2e-3), 0);
    assert_int_equal(cg_pace_regime(&pace), CG_BACK_TO_BACK);
    assert_int_equal(requests(&pace, CG_PACE_VOTES, 20e-3), 1);
    assert_int_equal(requests(&pace, 1000, 2e-3), 0);
    assert_int_equal(cg_pace_regime(&pace), CG_SPACED);
}

/* Of requests that overlap there is no gap, however long they take. */
static void overlapping_is_back_to_back(void **state)
{
    cg_pace pace;

    (void)state;
    begin(&pace);
    assert_int_equal(requests(&pace, 100, 1), 1);
    (void)cg_pace_begin(&pace);
    for (int at = 0; at < CG_PACE_VOTES; at++) {
        time_now += 1;
        (void)cg_pace_begin(&pace);
        time_now += 1;
        cg_pace_end(&pace);
    }
    cg_pace_end(&pace);
    assert_int_equal(cg_pace_regime(&pace), CG_BACK_TO_BACK);
}

static void *many(void *argument)
{
    cg_pace *pace = argument;

    for (int at = 0; at < 20000; at++) {
        (void)cg_pace_begin(pace);
        cg_pace_end(pace);
    }
    return NULL;
}

static void any_thread(void **state)
{
    pthread_t threads[4];
    cg_pace pace;

    (void)state;
    begin(&pace);
    for (int at = 0; at < 4; at++)
        assert_int_equal(pthread_create(&threads[at], NULL, many, &pace), 0);
    for (int at = 0; at < 4; at++)
        assert_int_equal(pthread_join(threads[at], NULL), 0);
    assert_int_equal(atomic_load(&pace.running), 0);
    assert_int_equal(cg_pace_regime(&pace), CG_BACK_TO_BACK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_seen_yet),
        cmocka_unit_test(gaps_make_it_spaced_and_back),
        cmocka_unit_test(single_gaps_do_nothing),
        cmocka_unit_test(what_lies_between_says_nothing),
        cmocka_unit_test(overlapping_is_back_to_back),
        cmocka_unit_test(any_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
