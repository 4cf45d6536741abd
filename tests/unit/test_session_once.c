/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done once, opening a device and laying out weights, where few
 * requests are expected; and where a device's memory ends. What it costs is put
 * into a store by one runtime, and another one, which has opened nothing yet,
 * decides by it.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/session/once.h"
#include "tests/unit/cost_rig.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/scratch_folder.h"

/* Seconds; 0: not measured. */
typedef struct known {
    double cpu, card;          /* a request of any batch */
    double opening, preparing; /* of the card */
} known;

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
} set_up;

static const char *config_of(const char *store, const char *scheduler,
                             const char *card)
{
    static char config[8192];

    snprintf(config, sizeof config,
             "[cellgate]\nunlisted = no\n[scheduler]\nsplit = no\n%s"
             "[calibration]\nstore = %s\n"
             "[device cpu]\nplugin = openmp\nthreads = 1\n"
             "[device card]\nplugin = remote\nvariants = any\n%s",
             scheduler, scratch_absolute(store), card);
    return config;
}

static void begin(set_up *with, const char *config, double requests)
{
    const cellgate_session_options options = { .struct_size = sizeof options,
                                               .expected_requests = requests };
    cellgate_error error = CELLGATE_ERROR_INIT;

    with->runtime = rig_runtime(config);
    with->model = cost_rig_model();
    if (cellgate_session_create(with->runtime, with->model, &options,
                                &with->session, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
}

static void end(set_up *with)
{
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

static cg_candidate *card_of(const set_up *with)
{
    for (size_t at = 0; at < with->session->candidate_count; at++)
        if (strcmp(cg_candidate_name(&with->session->candidates[at]), "card") ==
            0)
            return &with->session->candidates[at];
    fail_msg("there is no card");
    return NULL;
}

static void put_once(const set_up *with, const cg_cost_candidate *of,
                     const char *structure, double seconds)
{
    const cg_cost_once once = { seconds, 0 };

    if (seconds > 0)
        assert_int_equal(cg_cost_book_put_once(with->session->book, of,
                                               structure, &once, NULL),
                         CELLGATE_OK);
}

/* As if another process had calibrated. */
static void learn(const char *config, const known *what)
{
    cg_cost_candidate candidate;
    const cg_segment *segment;
    set_up with;

    begin(&with, config, 0);
    cost_rig_set(with.session, "cpu", "t1", what->cpu, what->cpu);
    cost_rig_set(with.session, "card", "any", what->card, what->card);
    segment = cost_rig_segment(with.session, "card", "any", 0, 2);
    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    put_once(&with, &candidate, segment->structure, what->preparing);
    assert_int_equal(
        cg_once_candidate(card_of(&with)->device, &candidate, NULL),
        CELLGATE_OK);
    put_once(&with, &candidate, CG_OPENING, what->opening);
    end(&with);
}

/* Where a request goes; the report's reason has that text. */
static void expect(set_up *with, const char *device, const char *reason)
{
    cellgate_report report = { .struct_size = sizeof report };
    uint64_t random = 1;
    rig_request request;

    rig_request_init(&request, with->session, with->model, 1, 5, 0, &random);
    rig_run(with->session, &request, &report);
    if (strcmp(report.device, device) != 0 ||
        strstr(report.reason, reason) == NULL)
        fail_msg("it went to %s: %s", report.device, report.reason);
    rig_request_finish(&request);
}

static cellgate_explanation *ask(set_up *with, int64_t batch,
                                 cellgate_decision *decision)
{
    const cellgate_question question = { sizeof question, batch, 5, 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_explanation *explanation = NULL;

    if (cellgate_explain(with->session, &question, &explanation, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    *decision = (cellgate_decision){ .struct_size = sizeof *decision };
    assert_int_equal(cellgate_explanation_decision(explanation, decision),
                     CELLGATE_OK);
    return explanation;
}

/* The line of the card for the whole chain. */
static cellgate_candidate_info line_of_card(const cellgate_explanation *of)
{
    cellgate_candidate_info info = { .struct_size = sizeof info };

    for (size_t at = 0; cellgate_explanation_get(of, at, &info) == CELLGATE_OK;
         at++)
        if (strcmp(info.device, "card") == 0 && strchr(info.nodes, ',') != NULL)
            return info;
    fail_msg("the card has no line");
    return info;
}

/* ---- Opening ------------------------------------------------------------- */

/* The card saves 9 ms a request and takes a second to be opened. */
static const known slow_to_open = { 1e-2, 1e-3, 1, 0 };

static void few_requests_open_nothing_slow(void **state)
{
    const char *config = config_of("slow", "", "");
    set_up with;

    (void)state;
    learn(config, &slow_to_open);
    begin(&with, config, 1);
    expect(&with, "cpu", "measured: 10000 us predicted");
    expect(&with, "cpu", "measured");
    assert_false(card_of(&with)->opened);
    end(&with);
    /* 99 requests take 0.99 s on the CPU. */
    begin(&with, config, 99);
    expect(&with, "cpu", "measured");
    assert_false(card_of(&with)->opened);
    end(&with);
    begin(&with, config, 101);
    expect(&with, "card", "measured: 1000 us predicted");
    end(&with);
}

static void many_requests_do_not_count_it(void **state)
{
    const char *config = config_of("many", "", "");
    set_up with;

    (void)state;
    learn(config, &slow_to_open);
    begin(&with, config, 0);
    expect(&with, "card", "measured: 1000 us predicted (exact");
    end(&with);
}

static void the_configuration_may_say_how_many(void **state)
{
    set_up with;

    (void)state;
    learn(config_of("says", "", ""), &slow_to_open);
    begin(&with, config_of("says", "requests = 5\n", ""), 0);
    expect(&with, "cpu", "measured");
    assert_false(card_of(&with)->opened);
    end(&with);
    /* The application's number goes before. */
    begin(&with, config_of("says", "requests = 5\n", ""), 1000);
    expect(&with, "card", "measured");
    end(&with);
}

/* What was not measured is not made up: the device is opened. */
static void an_unknown_opening_does_not_count(void **state)
{
    const known unknown = { 1e-2, 1e-3, 0, 0 };
    const char *config = config_of("unknown", "", "");
    set_up with;

    (void)state;
    learn(config, &unknown);
    begin(&with, config, 1);
    expect(&with, "card",
           "measured: 1000 us predicted (exact, 31 samples), "
           "10.0 times ahead");
    end(&with);
}

/* Another session of the process has opened it: that is done already. */
static void what_is_open_is_taken(void **state)
{
    const cellgate_session_options named = { .struct_size = sizeof named,
                                             .device = "card" };
    const char *config = config_of("open", "", "");
    cellgate_session *other;
    set_up with;

    (void)state;
    learn(config, &slow_to_open);
    begin(&with, config, 1);
    assert_int_equal(
        cellgate_session_create(with.runtime, with.model, &named, &other, NULL),
        CELLGATE_OK);
    expect(&with, "card", "measured");
    cellgate_session_destroy(other);
    end(&with);
}

/* Where nothing that is open is measured, there is nothing to compare with. */
static void nothing_open_is_measured(void **state)
{
    const cg_cost_point point = { { 1, 5, 1 },
                                  { .median = 1e-3,
                                    .low = 1e-3,
                                    .high = 1e-3,
                                    .error = 0.01,
                                    .count = 31 },
                                  0 };
    const char *config = config_of("alone", "", "");
    cg_cost_candidate candidate;
    const cg_segment *segment;
    set_up with;

    (void)state;
    begin(&with, config, 0);
    segment = cost_rig_segment(with.session, "card", "any", 0, 2);
    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_cost_book_put(with.session->book, &candidate,
                                      segment->structure, CG_BACK_TO_BACK,
                                      &point, NULL),
                     CELLGATE_OK);
    assert_int_equal(
        cg_once_candidate(card_of(&with)->device, &candidate, NULL),
        CELLGATE_OK);
    put_once(&with, &candidate, CG_OPENING, 1000);
    end(&with);
    begin(&with, config, 1);
    expect(&with, "card", "measured: 1000 us predicted");
    end(&with);
}

/* ---- Laying out weights -------------------------------------------------- */

/* Nothing to open, and 20 ms to lay out the weights. */
static const known slow_to_prepare = { 1e-2, 1e-3, 1e-9, 2e-2 };

static void laying_out_is_spread(void **state)
{
    const char *config = config_of("prepare", "", "");
    set_up with;

    (void)state;
    learn(config, &slow_to_prepare);
    begin(&with, config, 1);
    expect(&with, "cpu", "measured");
    end(&with);
    /* 10 against 1 + 20 / 2 ms. */
    begin(&with, config, 2);
    expect(&with, "cpu", "measured");
    end(&with);
    /* 10 against 1 + 20 / 4 ms. */
    begin(&with, config, 4);
    expect(&with, "card",
           "measured: 1000 us predicted (exact, 31 samples), and 20000 us once "
           "for 4 requests, 1.7 times ahead of cpu t1");
    end(&with);
    begin(&with, config, 0);
    expect(&with, "card",
           "measured: 1000 us predicted (exact, 31 samples), 10.0 times ahead");
    end(&with);
}

/* For later shapes the weights lie there. */
static void what_is_laid_out_does_not_count(void **state)
{
    cellgate_report report = { .struct_size = sizeof report };
    const char *config = config_of("laid", "", "");
    uint64_t random = 1;
    rig_request request;
    set_up with;

    (void)state;
    learn(config, &slow_to_prepare);
    begin(&with, config, 4);
    expect(&with, "card", "20000 us once for 4 requests");
    rig_request_init(&request, with.session, with.model, 7, 5, 0, &random);
    rig_run(with.session, &request, &report);
    assert_string_equal(report.device, "card");
    assert_null(strstr(report.reason, "once"));
    rig_request_finish(&request);
    end(&with);
}

/* ---- Explaining ---------------------------------------------------------- */

/* An explanation says where a request of a session without one would go. */
static void it_is_explained(void **state)
{
    const known both = { 1e-2, 1e-3, 1, 2e-2 };
    const char *config = config_of("explained", "", "");
    cellgate_explanation *explanation;
    cellgate_candidate_info card;
    cellgate_decision decision;
    set_up with;

    (void)state;
    learn(config, &both);
    begin(&with, config, 10);
    for (int again = 0; again < 2; again++) {
        explanation = ask(&with, 1, &decision);
        card = line_of_card(explanation);
        assert_string_equal(decision.choice, "cpu t1");
        assert_true(decision.expected_requests == 10);
        assert_true(decision.once == 0);
        assert_true(card.opening == 1);
        assert_true(card.preparing == 2e-2);
        assert_string_equal(card.excluded,
                            "opening its device takes 1000000 us, and what is "
                            "open answers 10 requests in 100000 us");
        cellgate_explanation_destroy(explanation);
    }
    end(&with);
    begin(&with, config, 1000);
    explanation = ask(&with, 1, &decision);
    assert_string_equal(decision.choice, "card any");
    assert_true(fabs(decision.once - 1.02) < 1e-12);
    assert_non_null(
        strstr(decision.reason, "and 20000 us once for 1000 requests"));
    assert_string_equal(line_of_card(explanation).excluded, "");
    cellgate_explanation_destroy(explanation);
    expect(&with, "card", "measured");
    explanation = ask(&with, 1, &decision); /* it is done */
    assert_true(decision.once == 0);
    assert_true(line_of_card(explanation).opening == 0);
    cellgate_explanation_destroy(explanation);
    end(&with);
    begin(&with, config, 0);
    explanation = ask(&with, 1, &decision);
    assert_string_equal(decision.choice, "card any");
    assert_true(decision.expected_requests == 0);
    assert_true(line_of_card(explanation).opening == 1);
    assert_null(strstr(decision.reason, "once"));
    cellgate_explanation_destroy(explanation);
    end(&with);
}

/* Of requests any number above 0 may be expected. */
static void any_number_is_told(void **state)
{
    static const struct {
        double requests;
        const char *reason;
    } cases[] = { { 1e300, "20000 us once for 1e+300 requests" },
                  { 1e9, "20000 us once for 1000000000 requests" },
                  { 1, "20000 us once for 1 request," } };
    static const known cheap = { 1, 1e-3, 1e-9, 2e-2 };
    const known both = { 1e-2, 1e-3, 1, 2e-2 };
    const char *config = config_of("numbers", "", "");
    cellgate_decision decision;
    cellgate_explanation *explanation;
    set_up with;

    (void)state;
    learn(config, &cheap);
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        begin(&with, config, cases[at].requests);
        expect(&with, "card", cases[at].reason);
        end(&with);
    }
    config = config_of("half", "", "");
    learn(config, &both);
    begin(&with, config, 0.5);
    explanation = ask(&with, 1, &decision);
    assert_string_equal(line_of_card(explanation).excluded,
                        "opening its device takes 1000000 us, and what is "
                        "open answers 0.5 requests in 5000 us");
    cellgate_explanation_destroy(explanation);
    end(&with);
}

static cellgate_status explain_once(void *argument)
{
    const cellgate_question question = { sizeof question, 1, 5, 0 };
    const set_up *with = argument;
    cellgate_explanation *made = NULL;
    const cellgate_status status =
        cellgate_explain(with->session, &question, &made, NULL);

    cellgate_explanation_destroy(made);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    const char *config = config_of("fails", "", "");
    cellgate_decision decision;
    set_up with;

    (void)state;
    learn(config, &slow_to_open);
    begin(&with, config, 10);
    /* What is kept for good is made now. */
    cellgate_explanation_destroy(ask(&with, 1, &decision));
    assert_true(fail_each_allocation(explain_once, &with) > 20);
    end(&with);
}

static void numbers_that_are_none(void **state)
{
    static const double wrong[] = { -1, (double)NAN };
    const char *config = config_of("none", "", "");
    cellgate_runtime *runtime = rig_runtime(config);
    cellgate_model *model = cost_rig_model();

    (void)state;
    for (size_t at = 0; at < 2; at++) {
        const cellgate_session_options options = {
            .struct_size = sizeof options, .expected_requests = wrong[at]
        };
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_session *session = NULL;

        assert_int_equal(
            cellgate_session_create(runtime, model, &options, &session, &error),
            CELLGATE_INVALID);
        assert_non_null(strstr(error.text, "expects"));
        assert_null(session);
    }
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
}

/* ---- Calibrating --------------------------------------------------------- */

static void calibrate(set_up *with)
{
    const cellgate_calibration options = { .struct_size = sizeof options,
                                           .seconds = 5,
                                           .batch_most = 2,
                                           .steps_most = 2,
                                           .cells_most = 1 };
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_calibrate(with->session, &options, NULL, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
}

/* For a process that has opened nothing. */
static void calibrating_measures_it(void **state)
{
    const char *config = config_of("measures", "", "");
    cellgate_explanation *explanation;
    cellgate_candidate_info card;
    cellgate_decision decision;
    set_up with;

    (void)state;
    begin(&with, config, 0);
    calibrate(&with);
    end(&with);
    begin(&with, config, 0);
    explanation = ask(&with, 1, &decision);
    card = line_of_card(explanation);
    assert_true(card.opening > 0 && card.opening < 60);
    assert_true(card.preparing > 0 && card.preparing < 60);
    cellgate_explanation_destroy(explanation);
    end(&with);
}

/* What a device takes that compiles for the first time does not count for
   good. */
static void calibrating_again_measures_it_anew(void **state)
{
    const char *config = config_of("anew", "", "");
    cellgate_explanation *explanation;
    cg_cost_candidate candidate;
    cellgate_decision decision;
    const cg_segment *segment;
    set_up with;

    (void)state;
    begin(&with, config, 0);
    calibrate(&with);
    segment = cost_rig_segment(with.session, "card", "any", 0, 2);
    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    put_once(&with, &candidate, segment->structure, 500);
    end(&with);
    begin(&with, config, 0);
    calibrate(&with);
    end(&with);
    begin(&with, config, 0);
    explanation = ask(&with, 1, &decision);
    assert_true(line_of_card(explanation).preparing > 0);
    assert_true(line_of_card(explanation).preparing < 60);
    cellgate_explanation_destroy(explanation);
    end(&with);
}

/* ---- Where memory ends --------------------------------------------------- */

static void put_limit(set_up *with, int64_t batch)
{
    const cg_cost_limit limit = { batch, 1, 0 };
    const cg_segment *segment =
        cost_rig_segment(with->session, "card", "any", 0, 2);
    cg_cost_candidate candidate;

    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_cost_book_put_limit(with->session->book, &candidate,
                                            segment->structure, &limit, NULL),
                     CELLGATE_OK);
}

static void goes_to(set_up *with, int64_t batch, const char *choice,
                    const char *why_not)
{
    cellgate_decision decision;
    cellgate_explanation *explanation = ask(with, batch, &decision);

    assert_string_equal(decision.choice, choice);
    assert_string_equal(line_of_card(explanation).excluded, why_not);
    cellgate_explanation_destroy(explanation);
}

static void limits_outlive_the_process(void **state)
{
    const known what = { 1e-2, 1e-3, 0, 0 };
    const char *config = config_of("limit", "", "");
    set_up with;

    (void)state;
    learn(config, &what);
    begin(&with, config, 0);
    put_limit(&with, 16);
    end(&with);
    begin(&with, config, 0);
    goes_to(&with, 15, "card any", "");
    goes_to(&with, 16, "cpu t1",
            "it had no memory for batch 16, steps 1 when it was calibrated");
    goes_to(&with, 64, "cpu t1",
            "it had no memory for batch 16, steps 1 when it was calibrated");
    /* A measurement since then shows that there is. */
    cost_rig_put(with.session,
                 cost_rig_segment(with.session, "card", "any", 0, 2), 32, 1e-3);
    goes_to(&with, 64, "card any", "");
    end(&with);
}

/* Of a class of shapes one may fit and another not. */
static void limits_divide_a_class(void **state)
{
    const known what = { 1e-2, 1e-3, 0, 0 };
    const char *config = config_of("class", "", "");
    cellgate_report report = { .struct_size = sizeof report };
    set_up with;

    (void)state;
    learn(config, &what);
    begin(&with, config, 0);
    put_limit(&with, 34);
    for (int64_t batch = 36; batch >= 32; batch--) {
        uint64_t random = 1;
        rig_request request;

        rig_request_init(&request, with.session, with.model, batch, 5, 0,
                         &random);
        rig_run(with.session, &request, &report);
        assert_string_equal(report.device, batch < 34 ? "card" : "cpu");
        rig_request_finish(&request);
    }
    end(&with);
}

/* What voids a cost voids a limit: the card has more memory now. */
static void limits_are_of_a_fingerprint(void **state)
{
    const known what = { 1e-2, 1e-3, 0, 0 };
    const char *less = "memory = 1000000\n", *more = "memory = 2000000\n";
    set_up with;

    (void)state;
    learn(config_of("void", "", less), &what);
    learn(config_of("void", "", more), &what);
    begin(&with, config_of("void", "", less), 0);
    put_limit(&with, 16);
    goes_to(&with, 16, "cpu t1",
            "it had no memory for batch 16, steps 1 when it was calibrated");
    end(&with);
    begin(&with, config_of("void", "", more), 0);
    goes_to(&with, 16, "card any", "");
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_requests_open_nothing_slow),
        cmocka_unit_test(many_requests_do_not_count_it),
        cmocka_unit_test(the_configuration_may_say_how_many),
        cmocka_unit_test(an_unknown_opening_does_not_count),
        cmocka_unit_test(what_is_open_is_taken),
        cmocka_unit_test(nothing_open_is_measured),
        cmocka_unit_test(laying_out_is_spread),
        cmocka_unit_test(what_is_laid_out_does_not_count),
        cmocka_unit_test(it_is_explained),
        cmocka_unit_test(any_number_is_told),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(numbers_that_are_none),
        cmocka_unit_test(calibrating_measures_it),
        cmocka_unit_test(calibrating_again_measures_it_anew),
        cmocka_unit_test(limits_outlive_the_process),
        cmocka_unit_test(limits_divide_a_class),
        cmocka_unit_test(limits_are_of_a_fingerprint),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
