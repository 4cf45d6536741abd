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
    bool full = false;

    for (uint32_t at = 0; at < count; at++)
        full = cg_learner_note(learner, "thing", of, seconds, seen);
    return full;
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
    cg_learner *learner = cg_learner_create();
    cg_service service;

    (void)state;
    cg_learner_count(learner, false, false, 2);
    cg_learner_judge(learner, 2, 3, true); /* the other is slower */
    cg_learner_count(learner, true, false, 4);
    cg_learner_judge(learner, 4, 3, true); /* the other is faster, by one */
    cg_learner_count(learner, false, true, 9);
    cg_learner_judge(learner, 9, 1, false);       /* it was not alone */
    cg_learner_judge(learner, 9, HUGE_VAL, true); /* there is no other */
    cg_learner_service(learner, &service);
    assert_int_equal(service.requests, 3);
    assert_int_equal(service.elsewhere, 1);
    assert_int_equal(service.failed_over, 1);
    assert_int_equal(service.judged, 2);
    assert_true(fabs(service.seconds - 6) < 1e-12);
    assert_true(fabs(service.regret - 1) < 1e-12);
    cg_learner_destroy(learner);
}

/* A tenth of the requests' time. */
static void shadows_stay_within_their_share(void **state)
{
    cg_learner *learner = cg_learner_create();
    cg_service service;

    (void)state;
    assert_false(cg_learner_shadow_due(learner, 0.1));
    cg_learner_count(learner, false, false, 10);
    assert_true(cg_learner_shadow_due(learner, 0.1));
    cg_learner_shadowed(learner, 3);
    assert_false(cg_learner_shadow_due(learner, 0.1));
    cg_learner_count(learner, false, false, 19);
    assert_false(cg_learner_shadow_due(learner, 0.1));
    cg_learner_count(learner, false, false, 2);
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
        const cg_cost_shape at_batch = { batch, 5, 1 };
        int full = 0;

        for (unsigned turn = 0; turn < CG_LEARN_WINDOW; turn++)
            for (int at = 0; at < 8; at++)
                full += cg_learner_note(learner, &segments[at], &at_batch, 1e-3,
                                        &seen);
        assert_int_equal(full, 8);
        cg_learner_destroy(learner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_window_is_summed_up),
        cmocka_unit_test(shapes_are_kept_apart),
        cmocka_unit_test(a_clock_that_jumps_is_not_believed),
        cmocka_unit_test(spikes_are_no_drift),
        cmocka_unit_test(drift_counts),
        cmocka_unit_test(regret_is_what_the_other_would_have_saved),
        cmocka_unit_test(shadows_stay_within_their_share),
        cmocka_unit_test(turns_do_not_starve),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
