/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said about a decision, and about what was measured: costs are put
 * into the book, and the decision is asked for.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/cost_rig.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/scratch_folder.h"

#define TWO_DEVICES                                                            \
    "[cellgate]\nunlisted = no\n"                                              \
    "[calibration]\nstore = /dev/null/none\n"                                  \
    "[device cpu]\nplugin = openmp\nthreads = 1\n"                             \
    "[device card]\nplugin = remote\n"

/* A batch goes to one of them. */
static const char two_devices[] = "[scheduler]\nsplit = no\n" TWO_DEVICES;

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    cellgate_explanation *explanation;
    cellgate_decision decision;
} set_up;

static void begin(set_up *with, const char *config, const char *device)
{
    memset(with, 0, sizeof *with);
    with->runtime = rig_runtime(config);
    with->model = cost_rig_model();
    with->session = rig_session(with->runtime, with->model, device, NULL);
    with->decision.struct_size = sizeof with->decision;
}

static void end(set_up *with)
{
    cellgate_explanation_destroy(with->explanation);
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

static void ask_filled(set_up *with, int64_t batch, double fill)
{
    const cellgate_question question = { sizeof question, batch, 5, fill };
    cellgate_error error = CELLGATE_ERROR_INIT;

    cellgate_explanation_destroy(with->explanation);
    if (cellgate_explain(with->session, &question, &with->explanation,
                         &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(
        cellgate_explanation_decision(with->explanation, &with->decision),
        CELLGATE_OK);
}

static void ask(set_up *with, int64_t batch)
{
    ask_filled(with, batch, 0);
}

/* The line of a candidate; the nodes are those of the whole chain unless
   `alone`, then those of the LSTM. */
static cellgate_candidate_info line_of(const set_up *with, const char *device,
                                       const char *variant, bool alone)
{
    cellgate_candidate_info info = { .struct_size = sizeof info };

    for (size_t at = 0;
         cellgate_explanation_get(with->explanation, at, &info) == CELLGATE_OK;
         at++)
        if (strcmp(info.device, device) == 0 &&
            strcmp(info.variant, variant) == 0 &&
            (strchr(info.nodes, ',') == NULL) == alone)
            return info;
    fail_msg("there is no line of %s %s", device, variant);
    return info;
}

/* ---- Decisions ----------------------------------------------------------- */

static void every_candidate_is_told(void **state)
{
    cellgate_candidate_info line;
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-5, 9e-4);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    ask(&with, 64);
    assert_string_equal(with.decision.choice, "card any");
    assert_string_equal(with.decision.rival, "cpu t1");
    assert_float_equal(with.decision.seconds, 3e-4, 1e-9);
    assert_float_equal(with.decision.ahead, 3, 1e-6);
    assert_int_equal(with.decision.estimate, CELLGATE_ESTIMATE_EXACT);
    assert_int_equal(with.decision.batch, 64);
    assert_int_equal(with.decision.steps, 5);
    assert_int_equal(with.decision.pieces, 1);
    assert_non_null(strstr(with.decision.reason, "3.0 times ahead of cpu t1"));
    line = line_of(&with, "card", "any", false);
    assert_int_equal(line.chosen, 1);
    assert_int_equal(line.samples, 31);
    assert_float_equal(line.error, 0.01, 1e-6);
    assert_string_equal(line.excluded, "");
    line = line_of(&with, "cpu", "t1", false);
    assert_int_equal(line.chosen, 0);
    assert_int_equal(line.threads, 1);
    assert_float_equal(line.seconds, 9e-4, 1e-9);
    ask(&with, 4);
    assert_string_equal(with.decision.choice, "cpu t1");
    assert_int_equal(with.decision.estimate, CELLGATE_ESTIMATE_INTERPOLATED);
    end(&with);
}

/* What another model's structure costs, as measured; much like this one's. */
static void lend(const set_up *with, const char *device, const char *variant,
                 double seconds)
{
    const cg_segment *segment =
        cost_rig_segment(with->session, device, variant, 0, 2);
    const cg_cost_point point = { { 8, 5, 1 },
                                  { seconds, seconds, seconds, 0.01, 31 },
                                  0 };
    const char *structure = segment->structure;
    cg_cost_candidate candidate;
    char other[256];

    assert_int_equal(strncmp(structure, "lstm 4 6 ", 9), 0);
    snprintf(other, sizeof other, "lstm 5 6 %s", structure + 9);
    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    (void)cg_cost_book_put(with->session->book, &candidate, other,
                           CG_BACK_TO_BACK, &point, NULL);
}

/* A model that was never measured goes where one much like it is quick; but
   something measured is left for that only where it is far slower. */
static void unmeasured_models_borrow(void **state)
{
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    lend(&with, "cpu", "t1", 1e-3);
    lend(&with, "card", "any", 1e-4);
    ask(&with, 8);
    assert_string_equal(with.decision.choice, "card any");
    assert_int_equal(with.decision.estimate, CELLGATE_ESTIMATE_BORROWED);
    assert_non_null(strstr(with.decision.reason, "borrowed"));
    assert_int_equal(line_of(&with, "cpu", "t1", false).estimate,
                     CELLGATE_ESTIMATE_BORROWED);
    cost_rig_put(with.session,
                 cost_rig_segment(with.session, "cpu", "t1", 0, 2), 8, 1.2e-4);
    ask(&with, 8);
    assert_string_equal(with.decision.choice, "cpu t1");
    cost_rig_put(with.session,
                 cost_rig_segment(with.session, "cpu", "t1", 0, 2), 8, 1.2e-3);
    ask(&with, 8);
    assert_string_equal(with.decision.choice, "card any");
    end(&with);
}

/* What is explained is what happens. */
static void requests_go_where_it_says(void **state)
{
    cellgate_report report = { .struct_size = sizeof report };
    uint64_t random = 5;
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-5, 9e-4);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    for (int64_t batch = 1; batch <= 16; batch *= 2) {
        rig_request request;
        char ran[160];

        ask(&with, batch);
        rig_request_init(&request, with.session, with.model, batch, 5, 0,
                         &random);
        rig_run(with.session, &request, &report);
        snprintf(ran, sizeof ran, "%s %s", report.device, report.variant);
        assert_string_equal(ran, with.decision.choice);
        assert_string_equal(report.reason, with.decision.reason);
        rig_request_finish(&request);
    }
    end(&with);
}

/* A batch that goes to two devices. */
static void a_split_is_told(void **state)
{
    cellgate_report report = { .struct_size = sizeof report };
    uint64_t random = 5;
    rig_request request;
    set_up with;

    (void)state;
    begin(&with, "[scheduler]\nthreads = 2\n" TWO_DEVICES, NULL);
    cost_rig_set(with.session, "cpu", "t1", 0.03, 1.92);
    cost_rig_set(with.session, "card", "any", 0.01, 0.64);
    ask(&with, 64);
    assert_string_equal(with.decision.choice, "card any + cpu t1");
    assert_non_null(strstr(with.decision.reason, "75% of the rows on card"));
    assert_true(with.decision.seconds > 0.45 && with.decision.seconds < 0.6);
    rig_request_init(&request, with.session, with.model, 64, 5, 0, &random);
    rig_run(with.session, &request, &report);
    assert_non_null(strstr(report.reason, "75% of the rows on card"));
    rig_request_finish(&request);
    end(&with);
}

static void reasons_against(void **state)
{
    const cg_cost_verdict wrong = { .checked = true,
                                    .worst = 0.3,
                                    .at = 1785585600 };
    const cg_segment *segment;
    cg_cost_candidate candidate;
    cellgate_candidate_info line;
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    ask(&with, 64);
    assert_string_equal(with.decision.choice, "cpu t1");
    assert_int_equal(with.decision.estimate, CELLGATE_ESTIMATE_NONE);
    assert_non_null(strstr(with.decision.reason, "first usable device"));
    line = line_of(&with, "cpu", "t1", false);
    assert_string_equal(line.excluded, "it is not measured");
    assert_int_equal(line.chosen, 1);
    assert_true(line.seconds == 0);

    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    segment = cost_rig_segment(with.session, "card", "any", 0, 2);
    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    (void)cg_cost_book_put_verdict(with.session->book, &candidate,
                                   segment->structure, &wrong, NULL);
    ask(&with, 64);
    line = line_of(&with, "card", "any", false);
    assert_string_equal(line.excluded,
                        "its results are wrong, by 0.3 of the largest, as it "
                        "was found on 2026-08-01");
    assert_float_equal(line.seconds, 3e-4, 1e-9);
    assert_int_equal(line.chosen, 0);
    end(&with);
}

/* What an explanation says of a pin is what requests have made of it. */
static void a_kept_pin_is_told(void **state)
{
    const int64_t before = (int64_t)time(NULL);
    uint64_t random = 3;
    rig_request request;
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-4, 1e-4);
    cost_rig_set(with.session, "card", "any", 2e-4, 2e-4);
    rig_request_init(&request, with.session, with.model, 64, 5, 0, &random);
    rig_run(with.session, &request, NULL);
    rig_request_finish(&request);
    ask(&with, 64);
    assert_string_equal(with.decision.choice, "cpu t1");
    assert_int_equal(with.decision.kept, 0);
    assert_true(with.decision.pinned >= before);
    cost_rig_set(with.session, "card", "any", 0.96e-4, 0.96e-4);
    ask(&with, 64);
    assert_string_equal(with.decision.choice, "cpu t1");
    assert_int_equal(with.decision.kept, 1);
    assert_true(with.decision.pinned >= before);
    assert_string_equal(with.decision.rival, "card any");
    assert_float_equal(with.decision.needed, 1.05, 1e-6);
    assert_non_null(strstr(with.decision.reason,
                           "kept: card any is predicted 4% faster; more than "
                           "5% (the margin) would overturn that"));
    /* No request of a smaller batch has come: nothing is pinned there. */
    ask(&with, 1);
    assert_string_equal(with.decision.choice, "card any");
    assert_true(with.decision.pinned == 0);
    /* What would overturn it does. */
    cost_rig_set(with.session, "card", "any", 0.95e-4, 0.95e-4);
    ask(&with, 64);
    assert_string_equal(with.decision.choice, "card any");
    assert_int_equal(with.decision.kept, 0);
    end(&with);
}

static void a_device_out_of_service(void **state)
{
    char config[512];
    uint64_t random = 9;
    rig_request request;
    cellgate_candidate_info line;
    set_up with;

    (void)state;
    snprintf(config, sizeof config,
             "[scheduler]\nfallback = run\nsplit = no\n%slose_after = 1\n",
             TWO_DEVICES);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-2);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    rig_request_init(&request, with.session, with.model, 64, 5, 0, &random);
    rig_run(with.session, &request, NULL);
    rig_request_finish(&request);
    ask(&with, 64);
    line = line_of(&with, "card", "", false);
    assert_non_null(strstr(line.excluded, "fallen off the bus"));
    assert_string_equal(with.decision.choice, "cpu t1");
    end(&with);
}

/* A model that is cut has a choice of two, and two lines are chosen. */
static void a_cut_is_told(void **state)
{
    int chosen = 0;
    cellgate_candidate_info line = { .struct_size = sizeof line };
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-3);
    cost_rig_set(with.session, "card", "any", 1e-3, 1e-3);
    cost_rig_put(with.session,
                 cost_rig_segment(with.session, "card", "any", 0, 1), 1, 2e-4);
    cost_rig_put(with.session,
                 cost_rig_segment(with.session, "cpu", "t1", 1, 1), 1, 1e-4);
    ask(&with, 1);
    assert_string_equal(with.decision.choice, "card any + cpu t1");
    assert_float_equal(with.decision.seconds, 3e-4, 1e-9);
    for (size_t at = 0;
         cellgate_explanation_get(with.explanation, at, &line) == CELLGATE_OK;
         at++)
        chosen += line.chosen;
    assert_int_equal(chosen, 2);
    end(&with);
}

static void shapes_that_are_none(void **state)
{
    cellgate_explanation *none = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_question question = { .struct_size = sizeof question, .batch = 1 };
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    assert_int_equal(cellgate_explain(with.session, &question, &none, &error),
                     CELLGATE_BAD_SHAPE);
    assert_non_null(strstr(error.text, "say how many"));
    question.steps = 5;
    question.batch = 0;
    assert_int_equal(cellgate_explain(with.session, &question, &none, &error),
                     CELLGATE_BAD_SHAPE);
    question.batch = 1;
    question.fill = 1.5;
    assert_int_equal(cellgate_explain(with.session, &question, &none, &error),
                     CELLGATE_INVALID);
    question.fill = NAN;
    assert_int_equal(cellgate_explain(with.session, &question, &none, &error),
                     CELLGATE_INVALID);
    assert_int_equal(cellgate_explain(NULL, &question, &none, &error),
                     CELLGATE_INVALID);
    assert_null(none);
    assert_string_equal(cellgate_estimate_name(3), "interpolated");
    assert_string_equal(cellgate_estimate_name(17), "none");
    ask_filled(&with, 3, 0.5);
    end(&with);
}

/* ---- Memory that runs out ------------------------------------------------ */

static cellgate_status explain_once(void *context)
{
    set_up *with = context;
    const cellgate_question question = { sizeof question, 4, 5, 0 };
    cellgate_explanation *made = NULL;
    cellgate_status status =
        cellgate_explain(with->session, &question, &made, NULL);

    cellgate_explanation_destroy(made);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-5, 9e-4);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    ask(&with, 4); /* what is kept for good is made now */
    assert_true(fail_each_allocation(explain_once, &with) > 20);
    end(&with);
}

/* ---- Measurements as text ------------------------------------------------ */

static void count_line(void *context, const char *line)
{
    assert_non_null(strstr(line, "rows unused"));
    ++*(int *)context;
}

/* What one store exports another one imports, and then requests go there. */
static void a_store_goes_to_another_machine(void **state)
{
    const char *text = scratch_path("costs.txt");
    char config[8192];
    uint64_t rows = 0, unused = 99;
    int lines = 0;
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-5, 9e-4);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    assert_int_equal(cellgate_calibration_export(with.runtime, text, NULL),
                     CELLGATE_OK);
    /* A store that keeps nothing takes nothing in. */
    assert_int_equal(
        cellgate_calibration_import(with.runtime, text, &rows, NULL),
        CELLGATE_IO);
    end(&with);

    snprintf(config, sizeof config,
             "[cellgate]\nunlisted = no\n[scheduler]\nsplit = no\n"
             "[calibration]\nstore = %s\n"
             "[device cpu]\nplugin = openmp\nthreads = 1\n"
             "[device card]\nplugin = remote\n",
             scratch_absolute("costs"));
    begin(&with, config, NULL);
    assert_int_equal(
        cellgate_calibration_import(with.runtime, text, &rows, NULL),
        CELLGATE_OK);
    assert_int_equal(rows, 4);
    ask(&with, 64);
    assert_string_equal(with.decision.choice, "card any");
    assert_int_equal(cellgate_calibration_unused(with.session, count_line,
                                                 &lines, &unused, NULL),
                     CELLGATE_OK);
    assert_int_equal(unused, 0);
    assert_int_equal(lines, 0);
    end(&with);

    /* The card has other settings now: what was measured does not hold. */
    strcat(config, "latency = 0.00001\n");
    begin(&with, config, NULL);
    assert_int_equal(cellgate_calibration_unused(with.session, count_line,
                                                 &lines, &unused, NULL),
                     CELLGATE_OK);
    assert_int_equal(unused, 2);
    assert_int_equal(lines, 1);
    ask(&with, 64);
    assert_string_equal(with.decision.choice, "cpu t1");
    end(&with);
}

static void bad_text_changes_nothing(void **state)
{
    char config[8192];
    uint64_t rows = 7;
    cellgate_error error = CELLGATE_ERROR_INIT;
    set_up with;

    (void)state;
    snprintf(config, sizeof config, "[calibration]\nstore = %s\n",
             scratch_absolute("other"));
    begin(&with, config, NULL);
    assert_int_equal(cellgate_calibration_import(
                         with.runtime, scratch_write("bad.txt", "what?\n", 6),
                         &rows, &error),
                     CELLGATE_BAD_FILE);
    assert_non_null(strstr(error.text, "bad.txt"));
    assert_int_equal(cellgate_calibration_import(
                         with.runtime, scratch_path("none.txt"), &rows, &error),
                     CELLGATE_IO);
    assert_int_equal(rows, 7);
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_candidate_is_told),
        cmocka_unit_test(unmeasured_models_borrow),
        cmocka_unit_test(requests_go_where_it_says),
        cmocka_unit_test(a_split_is_told),
        cmocka_unit_test(reasons_against),
        cmocka_unit_test(a_kept_pin_is_told),
        cmocka_unit_test(a_device_out_of_service),
        cmocka_unit_test(a_cut_is_told),
        cmocka_unit_test(shapes_that_are_none),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(a_store_goes_to_another_machine),
        cmocka_unit_test(bad_text_changes_nothing),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
