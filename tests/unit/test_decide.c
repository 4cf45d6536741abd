/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/schedule/decide.h"

static cg_option option(double seconds, double error)
{
    return (cg_option){ .cost = { seconds, error, CG_COST_EXACT, 31, 0 },
                        .share = 1 };
}

static cg_option unmeasured(void)
{
    return (cg_option){ .cost = { HUGE_VAL, HUGE_VAL, CG_COST_NONE, 0, 0 },
                        .share = 1 };
}

static cg_decision decided(const cg_option *options, size_t count,
                           size_t pinned)
{
    cg_decision decision;
    cg_policy policy;

    cg_policy_init(&policy);
    cg_decide(options, count, pinned, &policy, &decision);
    return decision;
}

static void the_least_is_taken(void **state)
{
    const cg_option options[] = { option(3e-3, 0.01), option(1e-3, 0.01),
                                  option(2e-3, 0.02) };
    cg_decision decision = decided(options, 3, CG_NO_OPTION);

    (void)state;
    assert_int_equal(decision.chosen, 1);
    assert_int_equal(decision.rival, 2);
    assert_int_equal(decision.because, CG_BECAUSE_BEST);
    assert_true(decision.score == 1e-3);
    assert_true(fabs(decision.ahead - 2) < 1e-12);
    assert_true(fabs(decision.error - hypot(0.01, 0.02)) < 1e-12);
}

static void waiting_counts(void **state)
{
    cg_option options[] = { option(1e-3, 0.01), option(3e-3, 0.01) };

    (void)state;
    options[0].wait = 5e-3;
    assert_int_equal(decided(options, 2, CG_NO_OPTION).chosen, 1);
    options[0].wait = 1e-3;
    assert_int_equal(decided(options, 2, CG_NO_OPTION).chosen, 0);
}

static void what_is_done_once_is_spread(void **state)
{
    cg_option options[] = { option(1e-3, 0.01), option(3e-3, 0.01) };
    cg_decision decision;
    cg_policy policy;

    (void)state;
    options[0].once = 1;
    cg_policy_init(&policy);
    cg_decide(options, 2, CG_NO_OPTION, &policy, &decision);
    assert_int_equal(decision.chosen, 1);
    policy.expected_requests = 10000;
    cg_decide(options, 2, CG_NO_OPTION, &policy, &decision);
    assert_int_equal(decision.chosen, 0);
}

/* Four of four threads for 1 ms keep the cores longer than one for 3 ms. */
static void throughput_counts_what_is_taken(void **state)
{
    cg_option options[] = { option(1e-3, 0.01), option(3e-3, 0.01) };
    cg_decision decision;
    cg_policy policy;

    (void)state;
    options[1].share = 0.25;
    options[1].wait = 1; /* there is always something to do meanwhile */
    cg_policy_init(&policy);
    policy.objective = CG_THROUGHPUT;
    cg_decide(options, 2, CG_NO_OPTION, &policy, &decision);
    assert_int_equal(decision.chosen, 1);
    assert_true(fabs(decision.score - 0.75e-3) < 1e-12);
}

static void a_pin_holds_within_the_margin(void **state)
{
    cg_option options[] = { option(1.04e-3, 0.001), option(1e-3, 0.001) };
    cg_decision decision = decided(options, 2, 0);

    (void)state;
    assert_int_equal(decision.chosen, 0);
    assert_int_equal(decision.because, CG_BECAUSE_KEPT);
    assert_int_equal(decision.rival, 1);
    assert_true(decision.ahead < 1);
    assert_true(fabs(decision.needed - 1.05) < 1e-9);
    options[0] = option(1.06e-3, 0.001);
    assert_int_equal(decided(options, 2, 0).chosen, 1);
}

/* Ten percent better, known to ten percent each: not beyond the noise. */
static void a_pin_holds_within_the_noise(void **state)
{
    cg_option options[] = { option(1.1e-3, 0.1), option(1e-3, 0.1) };
    cg_decision decision;

    (void)state;
    decision = decided(options, 2, 0);
    assert_int_equal(decision.chosen, 0);
    /* 95% of a normal variable lies below 1.645 of its deviations. */
    assert_true(fabs(decision.needed - exp(1.645 * decision.error)) < 1e-9);
    assert_int_equal(decided(options, 2, CG_NO_OPTION).chosen, 1);
    options[0] = option(1.1e-3, 0.01);
    options[1] = option(1e-3, 0.01);
    assert_int_equal(decided(options, 2, 0).chosen, 1);
}

/* A spike on the pinned one, and its end: nothing moves to and fro. */
static void noise_does_not_flap(void **state)
{
    cg_option options[] = { option(1e-3, 0.01), option(1.02e-3, 0.01) };
    size_t pinned = 0;
    int changes = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        cg_decision decision;

        options[0].cost.seconds = i % 2 ? 1.03e-3 : 0.98e-3;
        decision = decided(options, 2, pinned);
        changes += decision.chosen != pinned;
        pinned = decision.chosen;
    }
    assert_int_equal(changes, 0);
}

static void ties_go_to_the_first(void **state)
{
    const cg_option options[] = { option(1e-3, 0.01), option(1e-3, 0.01) };

    (void)state;
    assert_int_equal(decided(options, 2, CG_NO_OPTION).chosen, 0);
    assert_int_equal(decided(options, 2, 1).chosen, 1);
}

static void the_unmeasured_is_never_before_the_measured(void **state)
{
    cg_option options[] = { unmeasured(), option(10, 0.5), unmeasured() };
    cg_decision decision = decided(options, 3, CG_NO_OPTION);

    (void)state;
    assert_int_equal(decision.chosen, 1);
    assert_int_equal(decision.because, CG_BECAUSE_BEST);
    assert_int_equal(decision.rival, 0);
    assert_true(decision.ahead == 0);
    assert_int_equal(decided(options, 3, 0).chosen, 1);
    options[1] = unmeasured();
    decision = decided(options, 3, CG_NO_OPTION);
    assert_int_equal(decision.chosen, 0);
    assert_int_equal(decision.because, CG_BECAUSE_UNKNOWN);
    assert_int_equal(decided(options, 3, 2).chosen, 2);
}

static void the_excluded_is_not_taken(void **state)
{
    cg_option options[] = { option(1e-3, 0.01), option(2e-3, 0.01) };
    cg_decision decision;

    (void)state;
    options[0].excluded = "it is out of service";
    decision = decided(options, 2, 0);
    assert_int_equal(decision.chosen, 1);
    assert_int_equal(decision.because, CG_BECAUSE_ONLY);
    assert_int_equal(decision.rival, CG_NO_OPTION);
    options[1].excluded = "so is this one";
    decision = decided(options, 2, 0);
    assert_int_equal(decision.chosen, CG_NO_OPTION);
    assert_int_equal(decision.because, CG_BECAUSE_NONE);
    assert_int_equal(decided(NULL, 0, CG_NO_OPTION).chosen, CG_NO_OPTION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_is_taken),
        cmocka_unit_test(waiting_counts),
        cmocka_unit_test(what_is_done_once_is_spread),
        cmocka_unit_test(throughput_counts_what_is_taken),
        cmocka_unit_test(a_pin_holds_within_the_margin),
        cmocka_unit_test(a_pin_holds_within_the_noise),
        cmocka_unit_test(noise_does_not_flap),
        cmocka_unit_test(ties_go_to_the_first),
        cmocka_unit_test(the_unmeasured_is_never_before_the_measured),
        cmocka_unit_test(the_excluded_is_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
