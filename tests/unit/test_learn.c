/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of times in service, and which of them count. Times are made up. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/schedule/learn.h"

static const cg_cost_shape shape = { 8, 32, 1 };
static const cg_cost_shape another = { 8, 64, 1 };

/* Notes `count` times; whether the last one filled the window. */
static bool note(cg_learner *learner, const cg_cost_shape *of, double seconds,
                 uint32_t count, cg_summary *seen)
{
    const cg_watched watched = { "thing", *of, CG_BACK_TO_BACK };
    cg_noted noted = CG_NOTED;

    for (uint32_t at = 0; at < count; at++)
        noted = cg_learner_note(learner, &watched, 1, seconds, seen);
    return noted == CG_NOTED_FULL;
}

static void a_full_window_is_summed_up(void **state)
{
    cg_learner *learner = cg_learner_create();
    cg_summary seen = { .count = 0 };

    (void)state;
    assert_false(note(learner, &shape, 2e-3, CG_LEARN_WINDOW - 1, &seen));
    assert_true(note(learner, &shape, 2e-3, 1, &seen));
    assert_int_equal(seen.count, CG_LEARN_WINDOW);
    assert_true(fabs(seen.median - 2e-3) < 1e-12);
    /* The next one knows nothing of it. */
    assert_false(note(learner, &shape, 5e-3, CG_LEARN_WINDOW - 1, &seen));
    assert_true(note(learner, &shape, 5e-3, 1, &seen));
    assert_true(fabs(seen.median - 5e-3) < 1e-12);
    cg_learner_destroy(learner);
}

static void shapes_are_kept_apart(void **state)
{
    cg_learner *learner = cg_learner_create();
    cg_summary seen = { .count = 0 };

    (void)state;
    assert_false(note(learner, &shape, 1, CG_LEARN_WINDOW - 1, &seen));
    assert_false(note(learner, &another, 9, 1, &seen));
    assert_int_equal(seen.count, 0);
    cg_learner_destroy(learner);
}

/* A variant whose threads sleep between requests takes longer then: medians of
   both together would be of neither. */
static void regimes_are_kept_apart(void **state)
{
    const cg_watched close = { "thing", shape, CG_BACK_TO_BACK };
    const cg_watched spaced = { "thing", shape, CG_SPACED };
    cg_learner *learner = cg_learner_create();
    cg_summary seen = { .count = 0 };

    (void)state;
    for (uint32_t at = 1; at < CG_LEARN_WINDOW; at++) {
        assert_int_equal(cg_learner_note(learner, &close, 1, 1, &seen),
                         CG_NOTED);
        assert_int_equal(cg_learner_note(learner, &spaced, 1, 9, &seen),
                         CG_NOTED);
    }
    assert_int_equal(cg_learner_note(learner, &close, 1, 1, &seen),
                     CG_NOTED_FULL);
    assert_true(fabs(seen.median - 1) < 1e-12);
    assert_int_equal(cg_learner_note(learner, &spaced, 1, 9, &seen),
                     CG_NOTED_FULL);
    assert_true(fabs(seen.median - 9) < 1e-12);
    cg_learner_destroy(learner);
}

/* Fills a window: `outside` times above what is expected, the others in it. */
static cg_noted fill(cg_learner *learner, const cg_watched *of,
                     uint64_t generation, uint32_t outside, cg_summary *seen)
{
    cg_noted noted = CG_NOTED;

    for (uint32_t at = 0; at < CG_LEARN_WINDOW; at++)
        noted = cg_learner_note(learner, of, generation,
                                at < outside ? 1.2e-3 : 1e-3, seen);
    return noted;
}

/* The median of 31 is the 16th: 15 outside do not move it out. What is known
   later is expected anew. */
static void what_is_expected_is_not_summed_up(void **state)
{
    const cg_watched of = { "thing", shape, CG_BACK_TO_BACK };
    cg_learner *learner = cg_learner_create();
    cg_summary seen = { .count = 0 };

    (void)state;
    assert_int_equal(fill(learner, &of, 7, 0, &seen), CG_NOTED_FULL);
    cg_learner_expect(learner, &of, 7, 0.9e-3, 1.1e-3);
    assert_int_equal(fill(learner, &of, 7, 15, &seen), CG_NOTED_USUAL);
    assert_int_equal(fill(learner, &of, 7, 16, &seen), CG_NOTED_FULL);
    assert_true(fabs(seen.median - 1.2e-3) < 1e-12);
    assert_int_equal(fill(learner, &of, 7, 15, &seen), CG_NOTED_USUAL);
    assert_int_equal(fill(learner, &of, 8, 15, &seen), CG_NOTED_FULL);
    assert_int_equal(fill(learner, &of, 7, 15, &seen), CG_NOTED_USUAL);
    cg_learner_expect(learner, &of, 7, 1.1e-3, 2e-3); /* now too fast */
    assert_int_equal(fill(learner, &of, 7, 15, &seen), CG_NOTED_FULL);
    assert_int_equal(fill(learner, &of, 7, 16, &seen), CG_NOTED_USUAL);
    cg_learner_destroy(learner);
}

/* Times that came before anybody knew what to expect count as well. */
static void what_came_before_is_compared(void **state)
{
    const cg_watched of = { "thing", shape, CG_BACK_TO_BACK };
    cg_learner *learner = cg_learner_create();
    cg_summary seen = { .count = 0 };

    (void)state;
    for (uint32_t at = 0; at < 16; at++)
        (void)cg_learner_note(learner, &of, 7, 5e-3, &seen);
    cg_learner_expect(learner, &of, 7, 0.9e-3, 1.1e-3);
    for (uint32_t at = 16; at < CG_LEARN_WINDOW - 1; at++)
        (void)cg_learner_note(learner, &of, 7, 1e-3, &seen);
    assert_int_equal(cg_learner_note(learner, &of, 7, 1e-3, &seen),
                     CG_NOTED_FULL);
    cg_learner_destroy(learner);
}

static void a_clock_that_jumps_is_not_believed(void **state)
{
    cg_learner *learner = cg_learner_create();
    cg_summary seen = { .count = 0 };

    (void)state;
    assert_false(note(learner, &shape, -1, 2 * CG_LEARN_WINDOW, &seen));
    assert_false(note(learner, &shape, 0, 2 * CG_LEARN_WINDOW, &seen));
    assert_false(note(learner, &shape, NAN, 2 * CG_LEARN_WINDOW, &seen));
    assert_false(note(learner, &shape, HUGE_VAL, 2 * CG_LEARN_WINDOW, &seen));
    cg_learner_destroy(learner);
}

/* A few spikes in a window do not move its median. */
static void spikes_are_no_drift(void **state)
{
    const cg_cost expected = { 1e-3, 0.01, CG_COST_EXACT, 31, 0 };
    cg_learner *learner = cg_learner_create();
    cg_summary seen = { .count = 0 };

    (void)state;
    (void)note(learner, &shape, 1e-3, CG_LEARN_WINDOW - 6, &seen);
    assert_true(note(learner, &shape, 50e-3, 6, &seen));
    assert_false(cg_lesson_counts(&expected, &seen, 0.05));
    cg_learner_destroy(learner);
}

/* A device that throttles to half its clock. */
static void drift_counts(void **state)
{
    const cg_cost expected = { 1e-3, 0.01, CG_COST_EXACT, 31, 0 };
    const cg_cost rough = { 1e-3, 1.0, CG_COST_BORROWED, 3, 0 };
    const cg_cost unknown = { HUGE_VAL, HUGE_VAL, CG_COST_NONE, 0, 0 };
    const cg_summary half = { 2e-3, 1.9e-3, 2.1e-3, 0.02, 31 };
    const cg_summary slight = { 1.04e-3, 1.03e-3, 1.05e-3, 0.005, 31 };
    const cg_summary noisy = { 1.2e-3, 0.8e-3, 1.8e-3, 0.2, 31 };

    (void)state;
    assert_true(cg_lesson_counts(&expected, &half, 0.05));
    assert_false(cg_lesson_counts(&expected, &slight, 0.05));
    assert_true(cg_lesson_counts(&expected, &slight, 0.01));
    assert_false(cg_lesson_counts(&expected, &noisy, 0.05));
    assert_true(cg_lesson_counts(&rough, &half, 0.05));
    assert_false(cg_lesson_counts(&unknown, &half, 0.05));
}

static void regret_is_what_the_other_would_have_saved(void **state)
{
    static const cg_answered requests[] = {
        { .seconds = 2, .rival = 3, .alone = true }, /* the other is slower */
        { .seconds = 4, .rival = 3, .alone = true, .elsewhere = true },
        { .seconds = 9, .rival = 1, .failed_over = true },
        { .seconds = 9, .rival = HUGE_VAL, .alone = true },
    };
    cg_learner *learner = cg_learner_create();
    cg_service service;

    (void)state;
    for (size_t at = 0; at < sizeof requests / sizeof requests[0]; at++)
        cg_learner_count(learner, &requests[at]);
    cg_learner_service(learner, &service);
    assert_int_equal(service.requests, 4);
    assert_int_equal(service.elsewhere, 1);
    assert_int_equal(service.failed_over, 1);
    assert_int_equal(service.judged, 2);
    assert_true(fabs(service.all - 24) < 1e-12);
    assert_true(fabs(service.seconds - 6) < 1e-12);
    assert_true(fabs(service.regret - 1) < 1e-12);
    cg_learner_destroy(learner);
}

static void count(cg_learner *learner, double seconds)
{
    cg_learner_count(learner, &(cg_answered){ .seconds = seconds });
}

/* A tenth of the requests' time. */
static void shadows_stay_within_their_share(void **state)
{
    cg_learner *learner = cg_learner_create();
    cg_service service;

    (void)state;
    assert_false(cg_learner_shadow_due(learner, 0.1));
    count(learner, 10);
    assert_true(cg_learner_shadow_due(learner, 0.1));
    cg_learner_shadowed(learner, 3);
    assert_false(cg_learner_shadow_due(learner, 0.1));
    count(learner, 19);
    assert_false(cg_learner_shadow_due(learner, 0.1));
    count(learner, 2);
    assert_true(cg_learner_shadow_due(learner, 0.1));
    cg_learner_service(learner, &service);
    assert_int_equal(service.shadow_runs, 1);
    assert_true(fabs(service.shadow_seconds - 3) < 1e-12);
    cg_learner_destroy(learner);
}

/* Segments whose requests take turns: each learns, wherever they lie. */
static void turns_do_not_starve(void **state)
{
    static const char segments[8];
    cg_summary seen;

    (void)state;
    for (int64_t batch = 1; batch <= 200; batch++) {
        cg_learner *learner = cg_learner_create();
        cg_watched of = { NULL, { batch, 5, 1 }, CG_BACK_TO_BACK };
        int full = 0;

        for (unsigned turn = 0; turn < CG_LEARN_WINDOW; turn++)
            for (int at = 0; at < 8; at++) {
                of.of = &segments[at];
                full += cg_learner_note(learner, &of, 1, 1e-3, &seen) ==
                        CG_NOTED_FULL;
            }
        assert_int_equal(full, 8);
        cg_learner_destroy(learner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_window_is_summed_up),
        cmocka_unit_test(shapes_are_kept_apart),
        cmocka_unit_test(regimes_are_kept_apart),
        cmocka_unit_test(what_is_expected_is_not_summed_up),
        cmocka_unit_test(what_came_before_is_compared),
        cmocka_unit_test(a_clock_that_jumps_is_not_believed),
        cmocka_unit_test(spikes_are_no_drift),
        cmocka_unit_test(drift_counts),
        cmocka_unit_test(regret_is_what_the_other_would_have_saved),
        cmocka_unit_test(shadows_stay_within_their_share),
        cmocka_unit_test(turns_do_not_starve),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
