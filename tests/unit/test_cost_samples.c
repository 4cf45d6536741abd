/* SPDX-License-Identifier: Apache-2.0 */
/* Expected medians and ranks are worked out by hand; the interval's ranks are
   those of the binomial tables for the median. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cost/samples.h"

static cg_summary summary_of(const double *seconds, uint32_t count)
{
    cg_samples samples = { 0 };
    cg_summary summary;

    for (uint32_t i = 0; i < count; i++)
        assert_true(cg_samples_add(&samples, seconds[i]));
    cg_samples_summarise(&samples, &summary);
    return summary;
}

static void none_say_nothing(void **state)
{
    cg_summary summary = summary_of(NULL, 0);

    (void)state;
    assert_int_equal(summary.count, 0);
    assert_true(summary.median == 0);
    assert_true(isinf(summary.error));
}

static void odd_and_even_counts(void **state)
{
    const double three[] = { 3e-3, 1e-3, 2e-3 };
    const double four[] = { 4e-3, 1e-3, 3e-3, 2e-3 };

    (void)state;
    assert_true(summary_of(three, 3).median == 2e-3);
    assert_true(fabs(summary_of(four, 4).median - 2.5e-3) < 1e-15);
}

static void one_is_believed_least(void **state)
{
    const double same[] = { 1, 1, 1, 1, 1, 1 };

    (void)state;
    assert_true(summary_of(same, 1).error > summary_of(same, 2).error);
    assert_true(summary_of(same, 2).error > summary_of(same, 5).error);
    assert_true(summary_of(same, 5).error > 0);
    assert_true(summary_of(same, 6).error == 0);
}

/* Of 51 samples, the 18.5th from either end: ranks 18 and 32, counted from 0.
 */
static void interval_by_order(void **state)
{
    double seconds[51];
    cg_summary summary;

    (void)state;
    for (int i = 0; i < 51; i++)
        seconds[(i * 20) % 51] = 1 + i;
    summary = summary_of(seconds, 51);
    assert_true(summary.median == 26);
    assert_true(summary.low == 19);
    assert_true(summary.high == 33);
    assert_true(fabs(summary.error - log(33.0 / 19.0) / 3.92) < 1e-12);
}

static void spikes_do_not_move_it(void **state)
{
    double seconds[21];
    cg_summary summary;

    (void)state;
    for (int i = 0; i < 21; i++)
        seconds[i] = i % 7 == 3 ? 10.0 : 1e-3;
    summary = summary_of(seconds, 21);
    assert_true(summary.median == 1e-3);
    assert_true(summary.high == 1e-3);
}

static void old_ones_are_forgotten(void **state)
{
    cg_samples samples = { 0 };
    cg_summary summary;

    (void)state;
    for (int i = 0; i < 1000; i++)
        cg_samples_add(&samples, 1e-3);
    for (int i = 0; i < CG_SAMPLES_KEPT; i++)
        cg_samples_add(&samples, 2e-3);
    cg_samples_summarise(&samples, &summary);
    assert_true(summary.median == 2e-3);
    assert_int_equal(summary.count, CG_SAMPLES_KEPT);
    assert_int_equal(samples.total, 1000 + CG_SAMPLES_KEPT);
}

static void clock_that_jumped(void **state)
{
    const double wrong[] = { 0, -1, NAN, INFINITY, -INFINITY };
    cg_samples samples = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(cg_samples_add(&samples, wrong[i]));
    assert_int_equal(samples.count, 0);
    assert_int_equal(samples.total, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_say_nothing),
        cmocka_unit_test(odd_and_even_counts),
        cmocka_unit_test(one_is_believed_least),
        cmocka_unit_test(interval_by_order),
        cmocka_unit_test(spikes_do_not_move_it),
        cmocka_unit_test(old_ones_are_forgotten),
        cmocka_unit_test(clock_that_jumped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
