/* SPDX-License-Identifier: Apache-2.0 */
/* From scores to log probabilities, and to an id: greedy and drawn. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "runtime/generate/scores.h"

#define DRAWS 20000

/* ---- Log probabilities -------------------------------------------------- */

static void probabilities_are_taken_as_they_are(void **state)
{
    const float scores[4] = { 0.5f, 0.25f, 0, 0.25f };
    double result[4];

    (void)state;
    assert_null(cg_scores_log(scores, 4, true, result));
    assert_true(fabs(result[0] + M_LN2) < 1e-15);
    assert_true(fabs(result[1] + 2 * M_LN2) < 1e-15);
    assert_true(result[2] == -INFINITY);
}

/* softmax(ln 1, ln 2, ln 5) = 1/8, 2/8, 5/8; large logits do not overflow. */
static void logits_go_through_a_softmax(void **state)
{
    const float small[3] = { 0, 0.6931471805599453f, 1.6094379124341003f };
    const float large[3] = { 30000, 29999, -INFINITY };
    double result[3];

    (void)state;
    assert_null(cg_scores_log(small, 3, false, result));
    for (int id = 0; id < 3; id++)
        assert_true(fabs(exp(result[id]) - (id == 0   ? 0.125
                                            : id == 1 ? 0.25
                                                      : 0.625)) < 1e-7);
    assert_null(cg_scores_log(large, 3, false, result));
    assert_true(fabs(result[0] - log(1 / (1 + exp(-1)))) < 1e-12);
    assert_true(fabs(result[1] - result[0] + 1) < 1e-12);
    assert_true(result[2] == -INFINITY);
}

static void what_is_no_distribution_is_told(void **state)
{
    const float not_a_number[2] = { 0.5f, NAN };
    const float infinite[2] = { 1, INFINITY };
    const float negative[2] = { 1.5f, -0.5f };
    const float nothing[2] = { 0, 0 };
    const float minus[2] = { -INFINITY, -INFINITY };
    double result[2];

    (void)state;
    for (int softmax = 0; softmax < 2; softmax++) {
        assert_non_null(
            strstr(cg_scores_log(not_a_number, 2, softmax, result), "NaN"));
        assert_non_null(
            strstr(cg_scores_log(infinite, 2, softmax, result), "infinite"));
    }
    assert_non_null(cg_scores_log(negative, 2, true, result));
    assert_null(cg_scores_log(negative, 2, false, result));
    assert_non_null(cg_scores_log(nothing, 2, true, result));
    assert_null(cg_scores_log(nothing, 2, false, result));
    assert_non_null(cg_scores_log(minus, 2, false, result));
}

static void greedy_takes_the_first_of_the_largest(void **state)
{
    const double values[5] = { -INFINITY, -3, -1, -2, -1 };

    (void)state;
    assert_int_equal(cg_scores_greedy(values, 5), 2);
    assert_int_equal(cg_scores_greedy(values, 1), 0);
}

/* ---- Random numbers ----------------------------------------------------- */

/* Outputs of SplitMix64 that others publish, for seeds 0 and 1234567. */
static void the_generator_is_splitmix64(void **state)
{
    static const uint64_t zero[3] = { UINT64_C(0xe220a8397b1dcdaf),
                                      UINT64_C(0x6e789e6aa1b965f4),
                                      UINT64_C(0x06c45d188009454f) };
    static const uint64_t other[3] = { UINT64_C(6457827717110365317),
                                       UINT64_C(3203168211198807973),
                                       UINT64_C(9817491932198370423) };

    (void)state;
    for (uint64_t step = 0; step < 3; step++) {
        assert_true(cg_random_bits(0, 0, step) == zero[step]);
        assert_true(cg_random_bits(1234567, 0, step) == other[step]);
        assert_true(cg_random_bits(0, 1, step) != zero[step]);
    }
    assert_true(cg_random_uniform(0, 0, 0) ==
                ldexp((double)(zero[0] >> 11), -53));
}

/* ---- Sampling ----------------------------------------------------------- */

static const double chances[6] = { 0.05, 0.3, 0.1, 0, 0.35, 0.2 };

/*
 * Draws, and compares the frequencies with `wanted` by Pearson's chi-square;
 * `bound` is the quantile 0.999 for the degrees of freedom, from a table.
 */
static void expect_frequencies(double temperature, int64_t top,
                               const double *wanted, double bound)
{
    double values[6], weights[6], square = 0;
    int64_t counts[6] = { 0 };

    for (int id = 0; id < 6; id++)
        values[id] = log(chances[id]);
    for (uint64_t step = 0; step < DRAWS; step++)
        counts[cg_scores_sample(values, 6, temperature, top,
                                cg_random_uniform(42, 7, step), weights)]++;
    for (int id = 0; id < 6; id++) {
        const double mean = wanted[id] * DRAWS;

        if (wanted[id] == 0)
            assert_int_equal(counts[id], 0);
        else
            square += ((double)counts[id] - mean) *
                      ((double)counts[id] - mean) / mean;
    }
    if (!(square < bound))
        fail_msg("temperature %g, top %d: chi-square is %g, not below %g",
                 temperature, (int)top, square, bound);
}

static void ids_are_drawn_by_their_probability(void **state)
{
    (void)state;
    expect_frequencies(1, 0, chances, 18.467); /* 4 degrees of freedom */
}

/* Temperature 1/2 squares, and 2 takes the root, before the sum is made 1. */
static void the_temperature_sharpens_and_flattens(void **state)
{
    double squared[6], rooted[6], squares = 0, roots = 0;

    (void)state;
    for (int id = 0; id < 6; id++) {
        squares += chances[id] * chances[id];
        roots += sqrt(chances[id]);
    }
    for (int id = 0; id < 6; id++) {
        squared[id] = chances[id] * chances[id] / squares;
        rooted[id] = sqrt(chances[id]) / roots;
    }
    expect_frequencies(0.5, 0, squared, 18.467);
    expect_frequencies(2, 0, rooted, 18.467);
}

static void only_the_top_ids_are_drawn(void **state)
{
    const double wanted[6] = { 0, 0.3 / 0.85, 0, 0, 0.35 / 0.85, 0.2 / 0.85 };

    (void)state;
    expect_frequencies(1, 3, wanted, 13.816); /* 2 degrees of freedom */
    expect_frequencies(1, 100, chances, 18.467);
}

/* Of equal ids the first ones count among the top. */
static void ties_at_the_top_are_broken_by_order(void **state)
{
    const double values[5] = { -2, -1, -1, -1, -3 };
    double weights[5];

    (void)state;
    for (uint64_t step = 0; step < 200; step++) {
        const int64_t id = cg_scores_sample(
            values, 5, 1, 2, cg_random_uniform(1, 0, step), weights);

        assert_true(id == 1 || id == 2);
    }
}

static void a_temperature_towards_zero_is_greedy(void **state)
{
    const float scores[6] = { 0.1f, 3.25f, -2, 3.24f, 3.25f, 1 };
    static const double temperatures[4] = { 0, 1e-6, 1e-300, 5e-324 };
    double values[6], weights[6];

    (void)state;
    assert_null(cg_scores_log(scores, 6, false, values));
    for (int at = 0; at < 4; at++)
        for (uint64_t step = 0; step < 100; step++) {
            const int64_t id =
                cg_scores_sample(values, 6, temperatures[at], 0,
                                 cg_random_uniform(9, 0, step), weights);

            /* 1 and 4 are equal: only at 0 does the first one win. */
            assert_true(id == 1 || (at > 0 && id == 4));
        }
}

static void the_ends_of_the_interval_give_ids_that_are_possible(void **state)
{
    const double values[4] = { -INFINITY, log(0.5), log(0.5), -INFINITY };
    double weights[4];

    (void)state;
    assert_int_equal(cg_scores_sample(values, 4, 1, 0, 0, weights), 1);
    assert_int_equal(cg_scores_sample(values, 4, 1, 0, 1 - 0x1p-53, weights),
                     2);
    assert_int_equal(cg_scores_sample(values, 4, 1e9, 0, 1 - 0x1p-53, weights),
                     2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_taken_as_they_are),
        cmocka_unit_test(logits_go_through_a_softmax),
        cmocka_unit_test(what_is_no_distribution_is_told),
        cmocka_unit_test(greedy_takes_the_first_of_the_largest),
        cmocka_unit_test(the_generator_is_splitmix64),
        cmocka_unit_test(ids_are_drawn_by_their_probability),
        cmocka_unit_test(the_temperature_sharpens_and_flattens),
        cmocka_unit_test(only_the_top_ids_are_drawn),
        cmocka_unit_test(ties_at_the_top_are_broken_by_order),
        cmocka_unit_test(a_temperature_towards_zero_is_greedy),
        cmocka_unit_test(the_ends_of_the_interval_give_ids_that_are_possible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
