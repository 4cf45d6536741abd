/* SPDX-License-Identifier: Apache-2.0 */
/*
 * [scheduler] regime = auto: the costs that count are those of the regime in
 * which a session's requests come, on a clock that the test sets.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/cost_rig.h"
#include "tests/unit/scratch_folder.h"

#define CONFIG(learn, store)                                                   \
    "[cellgate]\nunlisted = no\n"                                              \
    "[scheduler]\nsplit = no\nlearn = " learn "\nregime = auto\n"              \
    "[calibration]\nstore = " store "\n"                                       \
    "[device cpu]\nplugin = openmp\nthreads = 1\n"                             \
    "[device card]\nplugin = remote\nvariants = any\n"

static const char config[] = CONFIG("no", "/dev/null/none");

static double time_now;

static double now(void *context)
{
    (void)context;
    return time_now;
}

static const cg_clock set_clock = { now, NULL, NULL };

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
} set_up;

static void begin_as(set_up *with, const char *how)
{
    with->runtime = rig_runtime(how);
    with->model = cost_rig_model();
    with->session = rig_session(with->runtime, with->model, NULL, NULL);
    time_now = 100;
    with->session->pace.clock = &set_clock;
}

static void begin(set_up *with)
{
    begin_as(with, config);
}

static void end(set_up *with)
{
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

static void put(const set_up *with, const char *device, const char *variant,
                cg_regime regime, double seconds)
{
    const cg_cost_point point = { { 1, 5, 1 },
                                  { .median = seconds,
                                    .low = seconds,
                                    .high = seconds,
                                    .error = 0.01,
                                    .count = 31 },
                                  0 };
    const cg_segment *segment =
        cost_rig_segment(with->session, device, variant, 0, 2);
    cg_cost_candidate candidate;

    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    (void)cg_cost_book_put(with->session->book, &candidate, segment->structure,
                           regime, &point, NULL);
}

/* So many requests, each after such a gap; where the last one went. */
static const char *requests(set_up *with, int count, double gap)
{
    static cellgate_report report;
    uint64_t random = 1;
    rig_request request;

    report = (cellgate_report){ .struct_size = sizeof report };
    rig_request_init(&request, with->session, with->model, 1, 5, 0, &random);
    for (int at = 0; at < count; at++) {
        time_now += gap;
        rig_run(with->session, &request, &report);
    }
    rig_request_finish(&request);
    return report.device;
}

/* The CPU is best while it is kept busy, and asleep after a pause. */
static void the_gaps_decide(void **state)
{
    const cellgate_question question = { sizeof question, 1, 5, 0 };
    cellgate_decision decision = { .struct_size = sizeof decision };
    cellgate_explanation *explanation = NULL;
    set_up with;

    (void)state;
    begin(&with);
    put(&with, "cpu", "t1", CG_BACK_TO_BACK, 1e-4);
    put(&with, "card", "any", CG_BACK_TO_BACK, 1e-3);
    put(&with, "cpu", "t1", CG_SPACED, 1e-2);
    put(&with, "card", "any", CG_SPACED, 1e-3);
    assert_string_equal(requests(&with, 1, 0), "cpu");
    assert_string_equal(requests(&with, CG_PACE_VOTES - 1, 0.02), "cpu");
    assert_string_equal(requests(&with, 1, 0.02), "card");
    assert_int_equal(
        cellgate_explain(with.session, &question, &explanation, NULL),
        CELLGATE_OK);
    cellgate_explanation_decision(explanation, &decision);
    assert_string_equal(decision.choice, "card any");
    assert_string_equal(decision.regime, "spaced");
    cellgate_explanation_destroy(explanation);
    /* A burst that ends soon changes nothing. */
    assert_string_equal(requests(&with, CG_PACE_VOTES - 1, 0), "card");
    assert_string_equal(requests(&with, CG_PACE_VOTES, 0.02), "card");
    assert_string_equal(requests(&with, CG_PACE_VOTES, 0), "cpu");
    end(&with);
}

/* How one session's requests come says nothing about another's: its pins stay,
   and so does what its windows expect. */
static void the_gaps_are_of_a_session(void **state)
{
    cellgate_session *other;
    uint64_t before, before_here;
    set_up with;

    (void)state;
    begin(&with);
    put(&with, "cpu", "t1", CG_BACK_TO_BACK, 1e-4);
    put(&with, "cpu", "t1", CG_SPACED, 1e-2);
    other = rig_session(with.runtime, with.model, NULL, NULL);
    assert_string_equal(requests(&with, 1, 0), "cpu");
    before = cg_route_generation(other);
    before_here = cg_route_generation(with.session);
    assert_non_null(requests(&with, CG_PACE_VOTES, 0.02));
    assert_int_equal(cg_pace_regime(&with.session->pace), CG_SPACED);
    assert_true(cg_route_generation(other) == before);
    assert_true(cg_route_generation(with.session) > before_here);
    cellgate_session_destroy(other);
    end(&with);
}

/* Where nothing was measured spaced, what was measured otherwise counts. */
static void nothing_spaced_is_measured(void **state)
{
    set_up with;

    (void)state;
    begin(&with);
    put(&with, "cpu", "t1", CG_BACK_TO_BACK, 1e-2);
    put(&with, "card", "any", CG_BACK_TO_BACK, 1e-3);
    assert_string_equal(requests(&with, 3 * CG_PACE_VOTES, 0.02), "card");
    assert_int_equal(cg_pace_regime(&with.session->pace), CG_SPACED);
    end(&with);
}

/* What was measured spaced of other models says nothing of this one. */
static void spaced_costs_of_another_model(void **state)
{
    const cg_cost_point point = { { 1, 5, 1 }, { 1e-4, 1e-4, 1e-4, 0, 31 }, 0 };
    cg_cost_candidate candidate;
    set_up with;

    (void)state;
    begin(&with);
    put(&with, "cpu", "t1", CG_BACK_TO_BACK, 1e-2);
    put(&with, "card", "any", CG_BACK_TO_BACK, 1e-3);
    assert_int_equal(
        cg_segment_candidate(cost_rig_segment(with.session, "cpu", "t1", 0, 2),
                             &candidate, NULL),
        CELLGATE_OK);
    (void)cg_cost_book_put(with.session->book, &candidate,
                           "lstm 8 8 d1 a1 a0 a0 o14", CG_SPACED, &point, NULL);
    assert_string_equal(requests(&with, 3 * CG_PACE_VOTES, 0.02), "card");
    assert_int_equal(cg_pace_regime(&with.session->pace), CG_SPACED);
    end(&with);
}

/* What spaced requests take does not correct what was measured back to back,
   which is all that there is. */
static void the_other_regime_learns_nothing(void **state)
{
    cellgate_service service = { .struct_size = sizeof service };
    set_up with;

    (void)state;
    begin_as(&with, CONFIG("yes", "/dev/null/none"));
    put(&with, "card", "any", CG_BACK_TO_BACK, 10);
    /* Now it is seen, by another clock than the one that runs are timed by. */
    (void)requests(&with, CG_PACE_VOTES + 1, 0.02);
    assert_int_equal(cg_pace_regime(&with.session->pace), CG_SPACED);
    (void)requests(&with, 100, 0.02);
    assert_int_equal(cellgate_session_service(with.session, &service),
                     CELLGATE_OK);
    assert_int_equal(service.learned, 0);
    (void)requests(&with, 100, 0);
    assert_int_equal(cellgate_session_service(with.session, &service),
                     CELLGATE_OK);
    assert_true(service.learned > 0);
    end(&with);
}

static int32_t rising(void *context, double done)
{
    double *last = context;

    assert_true(done >= *last - 1e-9 && done <= 1 + 1e-9);
    *last = done;
    return 0;
}

static void both_are_calibrated(void **state)
{
    double last = 0;
    const cellgate_calibration options = { .struct_size = sizeof options,
                                           .seconds = 4,
                                           .batch_most = 1,
                                           .steps_least = 5,
                                           .steps_most = 5,
                                           .progress = rising,
                                           .progress_context = &last };
    cellgate_calibration_result result = { .struct_size = sizeof result };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_cost_candidate candidate;
    const cg_segment *segment;
    cg_cost_point *points;
    size_t count;
    set_up with;

    (void)state;
    begin(&with);
    (void)cellgate_calibrate(with.session, &options, &result, &error);
    assert_int_equal(error.status, CELLGATE_IO); /* /dev/null/none */
    segment = cost_rig_segment(with.session, "card", "any", 0, 2);
    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    for (int regime = 0; regime < CG_REGIMES; regime++) {
        assert_int_equal(cg_cost_book_points(
                             with.session->book, &candidate, segment->structure,
                             (cg_regime)regime, &points, &count, NULL),
                         CELLGATE_OK);
        assert_int_equal(count, 1);
        free(points);
    }
    assert_true(last > 0.5);
    end(&with);
}

/* The one shape counts once for each regime. */
static void both_are_counted(void **state)
{
    const cellgate_calibration options = { .struct_size = sizeof options,
                                           .seconds = 4,
                                           .batch_most = 1,
                                           .steps_least = 5,
                                           .steps_most = 5 };
    cellgate_calibration_result result = { .struct_size = sizeof result };
    cellgate_error error = CELLGATE_ERROR_INIT;
    char how[4096];
    set_up with;

    (void)state;
    snprintf(how, sizeof how, CONFIG("no", "%s"), scratch_absolute("both"));
    begin_as(&with, how);
    if (cellgate_calibrate(with.session, &options, &result, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(result.cells, 2);
    assert_int_equal(result.cells_measured, 2);
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gaps_decide),
        cmocka_unit_test(the_gaps_are_of_a_session),
        cmocka_unit_test(nothing_spaced_is_measured),
        cmocka_unit_test(spaced_costs_of_another_model),
        cmocka_unit_test(the_other_regime_learns_nothing),
        cmocka_unit_test(both_are_calibrated),
        cmocka_unit_test(both_are_counted),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
