/* SPDX-License-Identifier: Apache-2.0 */
/* When a device is taken out of service and tried again: times are made up. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/plugin/breaker.h"

static cg_breaker make(unsigned failures)
{
    const cg_breaker made = {
        .failures = failures, .window = 60, .pause = 30, .longest = 100
    };

    return made;
}

static void expect_pause(double got, double wanted)
{
    assert_true(got == wanted);
}

static void many_failures_within_the_window(void **state)
{
    cg_breaker breaker = make(3);

    (void)state;
    assert_false(cg_breaker_failed(&breaker, 100));
    assert_false(cg_breaker_failed(&breaker, 120));
    assert_true(cg_breaker_failed(&breaker, 160)); /* 60 s: within */
}

static void failures_far_apart_are_forgiven(void **state)
{
    cg_breaker breaker = make(3);

    (void)state;
    for (double now = 0; now < 1000; now += 31)
        assert_false(cg_breaker_failed(&breaker, now));
    assert_false(cg_breaker_failed(&breaker, 1030));
    assert_true(cg_breaker_failed(&breaker, 1031));
}

static void one_is_enough_and_none_is_ever(void **state)
{
    cg_breaker one = make(1), never = make(0), most = make(CG_BREAKER_MOST);

    (void)state;
    assert_true(cg_breaker_failed(&one, 5));
    for (int at = 0; at < 1000; at++)
        assert_false(cg_breaker_failed(&never, 5));
    for (int at = 0; at < CG_BREAKER_MOST - 1; at++)
        assert_false(cg_breaker_failed(&most, 5));
    assert_true(cg_breaker_failed(&most, 5));
}

static void failures_before_a_pause_do_not_count_after_it(void **state)
{
    cg_breaker breaker = make(2);

    (void)state;
    assert_false(cg_breaker_failed(&breaker, 10));
    expect_pause(cg_breaker_out(&breaker, 11), 30);
    cg_breaker_back(&breaker, 41);
    assert_false(cg_breaker_failed(&breaker, 42));
    assert_true(cg_breaker_failed(&breaker, 43));
}

static void the_pause_doubles_up_to_the_longest(void **state)
{
    cg_breaker breaker = make(3);

    (void)state;
    expect_pause(cg_breaker_out(&breaker, 0), 30);
    expect_pause(cg_breaker_out(&breaker, 30), 60); /* its check failed */
    cg_breaker_back(&breaker, 90);
    expect_pause(cg_breaker_out(&breaker, 91), 100); /* at once again */
    cg_breaker_back(&breaker, 191);
    expect_pause(cg_breaker_out(&breaker, 291), 100); /* just so long */
    cg_breaker_back(&breaker, 391);
    expect_pause(cg_breaker_out(&breaker, 492), 30); /* long in service */
}

static void without_a_pause_it_is_for_good(void **state)
{
    cg_breaker breaker = make(3);

    (void)state;
    breaker.pause = 0;
    assert_true(isinf(cg_breaker_out(&breaker, 5)));
    assert_true(isinf(cg_breaker_out(&breaker, 5)));
}

/* The first pause may be longer than what it would double up to. */
static void the_first_pause_is_what_was_asked_for(void **state)
{
    cg_breaker breaker = make(3);

    (void)state;
    breaker.pause = 5000;
    expect_pause(cg_breaker_out(&breaker, 0), 5000);
    expect_pause(cg_breaker_out(&breaker, 5000), 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_failures_within_the_window),
        cmocka_unit_test(failures_far_apart_are_forgiven),
        cmocka_unit_test(one_is_enough_and_none_is_ever),
        cmocka_unit_test(failures_before_a_pause_do_not_count_after_it),
        cmocka_unit_test(the_pause_doubles_up_to_the_longest),
        cmocka_unit_test(without_a_pause_it_is_for_good),
        cmocka_unit_test(the_first_pause_is_what_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
