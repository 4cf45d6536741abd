/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ratio of paired times, against published figures: the critical values of
 * Wilcoxon's signed-rank test as tables of it have them, and an example of
 * Hollander & Wolfe.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/cost/ratio.h"

static void assert_near(double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("%.9g is not %.9g", got, wanted);
}

/*
 * Largest sum at which the two-sided test rejects, at 5% and at 1%: the tables
 * in Wilcoxon & Wilcox, Some Rapid Approximate Statistical Procedures (1964).
 * -1: it never does.
 */
static void test_critical_values(void **state)
{
    static const struct {
        uint32_t count;
        int at_5, at_1;
    } published[] = {
        { 5, -1, -1 },  { 6, 0, -1 },   { 7, 2, -1 },  { 8, 3, 0 },
        { 9, 5, 1 },    { 10, 8, 3 },   { 12, 13, 7 }, { 15, 25, 15 },
        { 20, 52, 37 }, { 25, 89, 68 },
    };
    double *scratch = calloc(25 * 26 / 2 + 1, sizeof *scratch);

    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        const uint32_t count = published[i].count;

        assert_int_equal((int)cg_ratio_rank(count, 0.95, scratch) - 1,
                         published[i].at_5);
        assert_int_equal((int)cg_ratio_rank(count, 0.99, scratch) - 1,
                         published[i].at_1);
    }
    free(scratch);
}

/*
 * Hamilton's depression scale before and after (Hollander & Wolfe, example
 * 3.1): a shift of -0.46, and an interval from -0.786 to -0.010 with 96.1%.
 */
static void test_published_example(void **state)
{
    static const double before[] = { 1.83, 0.50, 1.62, 2.48, 1.68,
                                     1.88, 1.55, 3.06, 1.30 };
    static const double after[] = { 0.878, 0.647, 0.598, 2.05, 1.06,
                                    1.29,  1.06,  3.14,  1.29 };
    double shifts[9];
    cg_ratio ratio;

    (void)state;
    for (size_t i = 0; i < 9; i++)
        shifts[i] = after[i] - before[i];
    assert_true(cg_ratio_of(shifts, 9, 0.96, &ratio));
    assert_near(log(ratio.estimate), -0.46, 1e-9);
    assert_near(log(ratio.low), -0.786, 1e-9);
    assert_near(log(ratio.high), -0.010, 1e-9);
    assert_int_equal(ratio.pairs, 9);
}

/* One run in five that took ten times as long moves it by little. */
static void test_interrupted_runs(void **state)
{
    double logs[40];
    cg_ratio ratio;

    (void)state;
    for (int i = 0; i < 40; i++)
        logs[i] = log(1.2) + 0.001 * (i % 7 - 3) + (i % 5 == 0 ? log(10) : 0);
    assert_true(cg_ratio_of(logs, 40, 0.99, &ratio));
    assert_near(ratio.estimate, 1.2, 0.01);
    assert_true(ratio.low < 1.2 && ratio.low > 1.19);
    assert_true(isfinite(ratio.high) && ratio.high > 1.2);
}

static void test_too_few(void **state)
{
    const double logs[7] = { 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1 };
    cg_ratio ratio;

    (void)state;
    assert_true(cg_ratio_of(logs, 7, 0.99, &ratio));
    assert_near(ratio.estimate, exp(0.1), 1e-12);
    assert_true(ratio.low == 0 && isinf(ratio.high));
    assert_true(cg_ratio_of(logs, 0, 0.99, &ratio));
    assert_true(ratio.estimate == 1 && ratio.low == 0 && isinf(ratio.high));
    assert_false(cg_ratio_of(logs, CG_RATIO_PAIRS + 1, 0.99, &ratio));
}

/* The interval holds the true ratio as often as it says: of 2,000 sets of 12
   pairs, with 95%, between 93.5% and 96.5% (three standard errors). */
static void test_coverage(void **state)
{
    uint32_t seed = 7, held = 0;

    (void)state;
    for (int set = 0; set < 2000; set++) {
        double logs[12];
        cg_ratio ratio;

        for (int i = 0; i < 12; i++) {
            double sum = -3;

            for (int k = 0; k < 6; k++) {
                seed = (uint32_t)((uint64_t)seed * 48271 % 2147483647);
                sum += (double)seed / 2147483647;
            }
            logs[i] = sum;
        }
        assert_true(cg_ratio_of(logs, 12, 0.95, &ratio));
        held += ratio.low <= 1 && ratio.high >= 1;
    }
    assert_in_range(held, 1870, 1930);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_critical_values),
        cmocka_unit_test(test_published_example),
        cmocka_unit_test(test_interrupted_runs),
        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_coverage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
