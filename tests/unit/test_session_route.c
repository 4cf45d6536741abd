/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where requests go: costs are put into the book, and requests of several
 * shapes are watched. Devices are the CPU and
 * the stand-in for an accelerator.
 */
#include "config.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/session/session.h"
#include "tests/unit/cost_rig.h"
#include "tests/unit/scratch_folder.h"

#define DEVICES                                                                \
    "[cellgate]\nunlisted = no\n[calibration]\nstore = /dev/null/none\n"       \
    "[device cpu]\nplugin = openmp\nthreads = 1\n"                             \
    "[device card]\nplugin = remote\n"

static const char two_devices[] = DEVICES;
/* A thread for the CPU and one that drives the card, whatever machine it is. */
static const char two_threads[] = "[scheduler]\nthreads = 2\n" DEVICES;
/* Whether a split pays depends on what a hand-over to a thread takes here and
   now, which is measured: not a matter for the tests of anything else. */
static const char unsplit[] = "[scheduler]\nsplit = no\n" DEVICES;

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
} set_up;

static void begin(set_up *with, const char *config, const char *device)
{
    with->runtime = rig_runtime(config);
    with->model = cost_rig_model();
    with->session = rig_session(with->runtime, with->model, device, NULL);
}

static void end(set_up *with)
{
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

/* ---- Requests ----------------------------------------------------------- */

static void expect(set_up *with, int64_t batch, const char *device,
                   const char *reason)
{
    cellgate_session *host =
        rig_session(with->runtime, with->model, "host", NULL);
    cellgate_report report = { .struct_size = sizeof report };
    uint64_t random = (uint64_t)batch;
    rig_request request;
    float *wanted;
    size_t count;

    rig_request_init(&request, host, with->model, batch, 5, 0, &random);
    rig_run(host, &request, NULL);
    wanted = rig_outputs(&request, &count);
    rig_run(with->session, &request, &report);
    rig_expect(&request, wanted, 1e-5);
    if ((device[0] != '\0' && strcmp(report.device, device) != 0) ||
        strstr(report.reason, reason) == NULL)
        fail_msg("batch %d went to %s %s: %s", (int)batch, report.device,
                 report.variant, report.reason);
    free(wanted);
    rig_request_finish(&request);
    cellgate_session_destroy(host);
}

static void nothing_is_measured(void **state)
{
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    expect(&with, 1, "cpu", "first usable device");
    expect(&with, 64, "cpu", "first usable device");
    end(&with);
}

static void the_shape_decides(void **state)
{
    set_up with;

    (void)state;
    begin(&with, unsplit, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-5, 9e-4);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    expect(&with, 1, "cpu",
           "measured: 10 us predicted (exact, 31 samples), 10.0 times ahead "
           "of card any");
    expect(&with, 64, "card", "3.0 times ahead of cpu t1");
    expect(&with, 4, "cpu", "interpolated");
    end(&with);
}

/* What is measured later overturns what was pinned. */
static void new_measurements_count(void **state)
{
    set_up with;

    (void)state;
    begin(&with, unsplit, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-5, 9e-4);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    expect(&with, 64, "card", "measured");
    cost_rig_set(with.session, "cpu", "t1", 1e-5, 1e-4);
    expect(&with, 64, "cpu", "3.0 times ahead of card any");
    end(&with);
}

static void the_unmeasured_is_not_taken(void **state)
{
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "card", "any", 10, 10);
    expect(&with, 1, "card", "measured: 10000000 us predicted");
    end(&with);
}

static void wrong_results_exclude(void **state)
{
    const cg_cost_verdict wrong = { .checked = true, .worst = 0.3 };
    cg_cost_candidate candidate;
    const cg_segment *segment;
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-2);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    expect(&with, 1, "card", "measured");
    segment = cost_rig_segment(with.session, "card", "any", 0, 2);
    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    (void)cg_cost_book_put_verdict(with.session->book, &candidate,
                                   segment->structure, &wrong, NULL);
    expect(&with, 1, "cpu", "measured: 1000 us predicted");
    end(&with);
}

/* Where all that is known is that the only device is wrong, it is not taken for
   want of another. */
static void the_wrong_is_not_taken_for_want_of_another(void **state)
{
    const cg_cost_verdict wrong = { .checked = true, .worst = 0.3 };
    static const char *const settings[] = { "never", "run" };
    uint64_t random = 1;

    (void)state;
    for (int at = 0; at < 2; at++) {
        cellgate_report report = { .struct_size = sizeof report };
        cellgate_error error = CELLGATE_ERROR_INIT;
        cg_cost_candidate candidate;
        const cg_segment *segment;
        rig_request request;
        char config[512];
        set_up with;

        snprintf(config, sizeof config,
                 "[cellgate]\nunlisted = no\n[scheduler]\nfallback = %s\n"
                 "[calibration]\nstore = /dev/null/none\n"
                 "[device card]\nplugin = remote\nvariants = any\n",
                 settings[at]);
        begin(&with, config, NULL);
        segment = cost_rig_segment(with.session, "card", "any", 0, 2);
        assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                         CELLGATE_OK);
        (void)cg_cost_book_put_verdict(with.session->book, &candidate,
                                       segment->structure, &wrong, NULL);
        rig_request_init(&request, with.session, with.model, 2, 5, 0, &random);
        assert_int_equal(
            cellgate_run(with.session, &request.request, &report, &error),
            at == 0 ? CELLGATE_UNSUPPORTED : CELLGATE_OK);
        if (at == 0)
            assert_non_null(strstr(error.text, "'card' gave wrong results"));
        else
            assert_string_equal(report.device, "host");
        rig_request_finish(&request);
        end(&with);
    }
}

/* The LSTM on the card and the Dense on the CPU, when that is cheapest. */
static void a_model_may_be_cut(void **state)
{
    cellgate_report report = { .struct_size = sizeof report };
    uint64_t random = 1;
    rig_request request;
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-3);
    cost_rig_set(with.session, "card", "any", 1e-3, 1e-3);
    cost_rig_put(with.session,
                 cost_rig_segment(with.session, "card", "any", 0, 1), 1, 2e-4);
    cost_rig_put(with.session,
                 cost_rig_segment(with.session, "cpu", "t1", 1, 1), 1, 1e-4);
    expect(&with, 1, "card", "measured: 300 us predicted");
    rig_request_init(&request, with.session, with.model, 1, 5, 0, &random);
    rig_run(with.session, &request, &report);
    assert_int_equal(report.segments, 2);
    assert_int_equal(report.host_segments, 0);
    rig_request_finish(&request);
    end(&with);
}

static void a_named_device_is_kept_to(void **state)
{
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-2);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    cellgate_session_destroy(with.session);
    with.session = rig_session(with.runtime, with.model, "cpu", NULL);
    expect(&with, 64, "cpu", "measured: 10000 us predicted");
    end(&with);
}

static void measured_no_means_no(void **state)
{
    char config[512];
    set_up with;

    (void)state;
    snprintf(config, sizeof config, "[scheduler]\nmeasured = no\n%s",
             two_devices);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-2);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    expect(&with, 64, "cpu", "first usable device");
    end(&with);
}

/* The device that was best is lost: where falling back is allowed, the request
   is answered all the same, and later ones do not go there. */
static void a_lost_device_is_not_chosen_again(void **state)
{
    char config[512];
    set_up with;

    (void)state;
    snprintf(config, sizeof config,
             "[scheduler]\nfallback = run\nsplit = no\n%slose_after = 2\n",
             two_devices);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-2);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    expect(&with, 64, "card", "measured");
    expect(&with, 64, "cpu", "after a failure: ");
    expect(&with, 64, "cpu", "measured: 10000 us predicted");
    end(&with);
}

/* ---- What is pinned stays ----------------------------------------------- */

static void a_little_better_is_not_enough(void **state)
{
    set_up with;

    (void)state;
    begin(&with, unsplit, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-4, 1e-4);
    cost_rig_set(with.session, "card", "any", 2e-4, 2e-4);
    expect(&with, 64, "cpu", "2.0 times ahead of card any");
    cost_rig_set(with.session, "card", "any", 0.96e-4, 0.96e-4);
    expect(&with, 64, "cpu",
           "kept: card any is predicted 4% faster; more than 5% (the margin) "
           "would overturn that");
    cost_rig_set(with.session, "card", "any", 0.9e-4, 0.9e-4);
    expect(&with, 64, "card", "1.1 times ahead of cpu t1");
    end(&with);
}

static void without_a_margin_the_best_is_taken(void **state)
{
    char config[512];
    set_up with;

    (void)state;
    snprintf(config, sizeof config, "[scheduler]\nmargin = 0\nsplit = no\n%s",
             two_devices);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-4, 1e-4);
    cost_rig_set(with.session, "card", "any", 2e-4, 2e-4);
    expect(&with, 64, "cpu", "2.0 times ahead of card any");
    cost_rig_set(with.session, "card", "any", 0.96e-4, 0.96e-4);
    expect(&with, 64, "card", "1.0 times ahead of cpu t1");
    end(&with);
}

/* ---- Shapes that a device refuses --------------------------------------- */

/* 32 and 33 are of one class. */
static void a_class_is_not_all_of_one_kind(void **state)
{
    char config[512];
    set_up with;

    (void)state;
    snprintf(config, sizeof config, "%smax_batch = 32\n", two_devices);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-2);
    cost_rig_put(with.session,
                 cost_rig_segment(with.session, "card", "any", 0, 2), 32, 1e-4);
    expect(&with, 32, "card", "measured");
    expect(&with, 33, "cpu", "measured");
    expect(&with, 32, "card", "measured");
    expect(&with, 33, "cpu", "measured");
    end(&with);
}

/* ---- More than one way -------------------------------------------------- */

static const char three_devices[] =
    "[cellgate]\nunlisted = no\n"
    "[scheduler]\nfallback = run\nsplit = no\n"
    "[calibration]\nstore = /dev/null/none\n"
    "[device cpu]\nplugin = openmp\nthreads = 1\n"
    "[device slow]\nplugin = remote\nindex = 1\nmemory = 100000000\n"
    "[device card]\nplugin = remote\nindex = 0\n";

static cg_load *load_of(const set_up *with, const char *device)
{
    return cost_rig_segment(with->session, device, NULL, 0, 2)->engine->load;
}

/* What another session has sent to the card fills it. */
static void a_busy_device_is_passed_over(void **state)
{
    cg_hold holds[2];
    cg_load *card;
    set_up with;

    (void)state;
    begin(&with, three_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-2);
    cost_rig_set(with.session, "slow", "any", 2e-4, 2e-3);
    cost_rig_set(with.session, "card", "any", 1e-4, 1e-3);
    card = load_of(&with, "card");
    assert_int_equal(cg_load_places(card), 2);
    cg_load_begin(card, 1, 10, &holds[0]);
    expect(&with, 64, "card", "2.0 times ahead of slow any");
    cg_load_begin(card, 1, 10, &holds[1]);
    expect(&with, 64, "slow", "card would take 1000 us and is busy");
    (void)cg_load_end(card, &holds[0]);
    expect(&with, 64, "card", "2.0 times ahead of slow any");
    (void)cg_load_end(card, &holds[1]);
    end(&with);
}

/* The next is the next best, not the next in the configuration. */
static void a_failing_device_is_followed_by_the_next_best(void **state)
{
    char config[600];
    set_up with;

    (void)state;
    snprintf(config, sizeof config, "%sfail_at = 2\n", three_devices);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 1e-2);
    cost_rig_set(with.session, "slow", "any", 2e-4, 2e-3);
    cost_rig_set(with.session, "card", "any", 1e-4, 1e-3);
    expect(&with, 64, "card", "2.0 times ahead of slow any");
    expect(&with, 64, "slow",
           "launch failed, as fail_at = 2 asks; measured: 2000 us predicted");
    expect(&with, 64, "card", "2.0 times ahead of slow any");
    end(&with);
}

/* ---- A batch over two devices ------------------------------------------- */

static void a_batch_is_split_where_that_ends_sooner(void **state)
{
    cg_hold holds[2];
    cg_load *card;
    set_up with;

    (void)state;
    begin(&with, two_threads, NULL);
    cost_rig_set(with.session, "cpu", "t1", 0.03, 1.92);
    cost_rig_set(with.session, "card", "any", 0.01, 0.64);
    expect(&with, 64, "", "75% of the rows on card and the rest on cpu, 48");
    expect(&with, 60, "", "of the rows on card and the rest on cpu");
    expect(&with, 1, "card", "measured: 10000 us predicted");
    /* Not while one of them has something else to do. */
    card = load_of(&with, "card");
    cg_load_begin(card, 1, 0.01, &holds[0]);
    cg_load_begin(card, 1, 0.01, &holds[1]);
    expect(&with, 64, "card", "measured: 640000 us predicted");
    (void)cg_load_end(card, &holds[0]);
    (void)cg_load_end(card, &holds[1]);
    end(&with);
}

/* A launch that costs as much as the rows: half of them take as long as all. */
static void a_batch_is_not_split_for_nothing(void **state)
{
    set_up with;

    (void)state;
    begin(&with, two_threads, NULL);
    cost_rig_set(with.session, "cpu", "t1", 0.5, 0.5);
    cost_rig_set(with.session, "card", "any", 0.5, 0.5);
    expect(&with, 64, "cpu", "measured: 500000 us predicted");
    end(&with);
}

/* The CPU's variant takes the only thread that there is: nothing would drive
   the card meanwhile. */
static void a_batch_is_not_split_without_a_thread_for_each(void **state)
{
    set_up with;

    (void)state;
    begin(&with, "[scheduler]\nthreads = 1\n" DEVICES, NULL);
    cost_rig_set(with.session, "cpu", "t1", 0.03, 1.92);
    cost_rig_set(with.session, "card", "any", 0.01, 0.64);
    expect(&with, 64, "card", "measured: 640000 us predicted");
    end(&with);
}

static void lengths_go_with_their_rows(void **state)
{
    cellgate_report report = { .struct_size = sizeof report };
    cellgate_session *host;
    uint64_t random = 9;
    rig_request request;
    float *wanted;
    size_t count;
    set_up with;

    (void)state;
    begin(&with, two_threads, NULL);
    cost_rig_set(with.session, "cpu", "t1", 0.01, 0.64);
    cost_rig_set(with.session, "card", "any", 0.01, 0.64);
    host = rig_session(with.runtime, with.model, "host", NULL);
    for (int masks = 0; masks < 2; masks++) {
        rig_request_init(&request, host, with.model, 40, 5, 0, &random);
        if (masks)
            rig_request_mask(&request, 0, &random);
        else
            rig_request_lengths(&request, 0, &random);
        rig_run(host, &request, NULL);
        wanted = rig_outputs(&request, &count);
        rig_run(with.session, &request, &report);
        if (strstr(report.reason, "of the rows on") == NULL)
            fail_msg("%s", report.reason);
        rig_expect(&request, wanted, 1e-5);
        free(wanted);
        rig_request_finish(&request);
    }
    cellgate_session_destroy(host);
    end(&with);
}

static void a_part_that_fails_is_not_lost(void **state)
{
    char config[600];
    set_up with;

    (void)state;
    snprintf(config, sizeof config,
             "[scheduler]\nthreads = 2\nfallback = run\n%sfail_at = 1\n",
             two_devices);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 0.01, 0.64);
    cost_rig_set(with.session, "card", "any", 0.01, 0.64);
    expect(&with, 64, "cpu", "launch failed, as fail_at = 1 asks");
    expect(&with, 64, "", "50% of the rows on");
    end(&with);
}

/* ---- Rules -------------------------------------------------------------- */

static void a_rule_goes_before_costs(void **state)
{
    char config[700];
    set_up with;

    (void)state;
    snprintf(config, sizeof config,
             "%s[pin some]\ndevice = card\nbatch = 2-4\nvariant = any\n"
             "[pin steps]\ndevice = card\nsteps = 6\n"
             "[pin other]\ndevice = card\nmodel = another*\n",
             two_devices);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-5, 1e-5);
    cost_rig_set(with.session, "card", "any", 1, 1);
    expect(&with, 1, "cpu", "measured");
    expect(&with, 2, "card", "[pin some] of the configuration");
    expect(&with, 4, "card", "[pin some] of the configuration");
    expect(&with, 5, "cpu", "measured");
    /* What the application asks for goes before rules. */
    cellgate_session_destroy(with.session);
    with.session = rig_session(with.runtime, with.model, "cpu", NULL);
    expect(&with, 3, "cpu", "measured");
    end(&with);
}

static void refuse_rule(const char *rule, cellgate_status wanted,
                        const char *text)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_runtime *runtime;
    cellgate_model *model = cost_rig_model();
    cellgate_session *session = NULL;
    char config[700];

    snprintf(config, sizeof config, "%s%s", two_devices, rule);
    runtime = rig_runtime(config);
    assert_int_equal(
        cellgate_session_create(runtime, model, NULL, &session, &error),
        wanted);
    assert_null(session);
    if (strstr(error.text, text) == NULL)
        fail_msg("%s: %s", rule, error.text);
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
}

static void a_rule_that_cannot_be_followed_is_an_error(void **state)
{
    (void)state;
    refuse_rule("[pin a]\ndevice = gpu\n", CELLGATE_NOT_FOUND,
                "[pin a] device: ");
    refuse_rule("[pin a]\ndevice = card\nvariant = t9\n", CELLGATE_NOT_FOUND,
                "[pin a] variant: device 'card' runs no part of the model with "
                "a variant 't9'");
    refuse_rule("[device b]\nplugin = nothing\n[pin a]\ndevice = b\n",
                CELLGATE_NOT_FOUND, "[pin a] device: ");
}

/* ---- Learning in service ------------------------------------------------ */

static void serve(set_up *with, int64_t batch, int count)
{
    uint64_t random = 5;
    rig_request request;

    rig_request_init(&request, with->session, with->model, batch, 5, 0,
                     &random);
    for (int at = 0; at < count; at++)
        rig_run(with->session, &request, NULL);
    rig_request_finish(&request);
}

/* The card is said to take a nanosecond and takes a thousand times that: one
   window of requests is enough to see it. */
static void a_false_promise_is_found_out(void **state)
{
    cellgate_service service = { .struct_size = sizeof service };
    set_up with;

    (void)state;
    begin(&with, unsplit, NULL);
    cost_rig_set(with.session, "cpu", "t1", 2e-9, 2e-9);
    cost_rig_set(with.session, "card", "any", 1e-9, 1e-9);
    serve(&with, 64, CG_LEARN_WINDOW - 1);
    assert_int_equal(cellgate_session_service(with.session, &service),
                     CELLGATE_OK);
    assert_int_equal(service.learned, 0);
    expect(&with, 64, "card", "2.0 times ahead of cpu t1");
    expect(&with, 64, "cpu", "measured: 0 us predicted (exact");
    assert_int_equal(cellgate_session_service(with.session, &service),
                     CELLGATE_OK);
    assert_int_equal(service.learned, 1);
    assert_int_equal(service.requests, CG_LEARN_WINDOW + 1);
    assert_int_equal(service.judged, service.requests);
    assert_true(service.regret > 0 && service.regret < service.seconds);
    end(&with);
}

static void nothing_is_learned_where_that_is_not_wanted(void **state)
{
    cellgate_service service = { .struct_size = sizeof service };
    char config[512];
    set_up with;

    (void)state;
    snprintf(config, sizeof config, "[scheduler]\nlearn = no\nsplit = no\n%s",
             two_devices);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 2e-9, 2e-9);
    cost_rig_set(with.session, "card", "any", 1e-9, 1e-9);
    serve(&with, 64, 2 * CG_LEARN_WINDOW);
    expect(&with, 64, "card", "2.0 times ahead of cpu t1");
    assert_int_equal(cellgate_session_service(with.session, &service),
                     CELLGATE_OK);
    assert_int_equal(service.learned, 0);
    end(&with);
}

/* What was learned is there for the next process. */
static void what_was_learned_stays(void **state)
{
    char config[PATH_MAX + 512], folder[PATH_MAX];
    set_up with;

    (void)state;
    assert_non_null(realpath(scratch_folder(), folder));
    snprintf(config, sizeof config,
             "[cellgate]\nunlisted = no\n[calibration]\nstore = %s/costs\n"
             "[device cpu]\nplugin = openmp\nthreads = 1\n"
             "[device card]\nplugin = remote\n",
             folder);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 2e-9, 2e-9);
    cost_rig_set(with.session, "card", "any", 1e-9, 1e-9);
    serve(&with, 64, CG_LEARN_WINDOW);
    expect(&with, 64, "cpu", "measured");
    end(&with);
    begin(&with, config, NULL);
    expect(&with, 64, "cpu", "measured");
    end(&with);
}

/* The CPU is said to take a second, and nobody would ever see that it does not,
   but for runs in the shadow. */
static void a_better_rival_is_found_out(void **state)
{
    cellgate_service service = { .struct_size = sizeof service };
    cg_cost cost = { .seconds = 1 };
    cg_cost_candidate candidate;
    const cg_segment *segment;
    char config[512];
    set_up with;

    (void)state;
    snprintf(config, sizeof config, "[scheduler]\nshadow = 50\nsplit = no\n%s",
             two_devices);
    begin(&with, config, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1, 1);
    cost_rig_set(with.session, "card", "any", 0.5, 0.5);
    segment = cost_rig_segment(with.session, "cpu", "t1", 0, 2);
    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    for (int round = 0; round < 5000 && !(cost.seconds < 0.5); round++) {
        serve(&with, 1, 10);
        assert_int_equal(
            cg_cost_book_predict(with.session->book, &candidate,
                                 segment->structure, CG_BACK_TO_BACK,
                                 &(cg_cost_shape){ 1, 5, 1 }, &cost, NULL),
            CELLGATE_OK);
    }
    assert_true(cost.seconds < 0.5);
    assert_int_equal(cellgate_session_service(with.session, &service),
                     CELLGATE_OK);
    assert_true(service.shadow_runs >= CG_LEARN_WINDOW);
    end(&with);
}

/* Another's work on the card is no reason to think it slow. */
static void what_shares_its_device_says_nothing(void **state)
{
    cellgate_service service = { .struct_size = sizeof service };
    cg_hold hold;
    cg_load *card;
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 2e-9, 2e-9);
    cost_rig_set(with.session, "card", "any", 1e-9, 1e-9);
    card = load_of(&with, "card");
    cg_load_begin(card, 1, 10, &hold);
    serve(&with, 64, 2 * CG_LEARN_WINDOW);
    (void)cg_load_end(card, &hold);
    assert_int_equal(cellgate_session_service(with.session, &service),
                     CELLGATE_OK);
    assert_int_equal(service.requests, 2 * CG_LEARN_WINDOW);
    assert_int_equal(service.learned, 0);
    assert_int_equal(service.judged, 0);
    end(&with);
}

/* ---- Threads ------------------------------------------------------------ */

static void *ask_for_many_shapes(void *argument)
{
    set_up *with = argument;
    uint64_t random = 3;

    for (int64_t round = 0; round < 30; round++) {
        rig_request request;

        rig_request_init(&request, with->session, with->model,
                         1 + round * 7 % 40, 5, 0, &random);
        rig_run(with->session, &request, NULL);
        rig_request_finish(&request);
    }
    return NULL;
}

/* Decisions and measurements side by side; ThreadSanitizer watches. */
static void threads_ask_while_others_measure(void **state)
{
    pthread_t threads[4];
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    cost_rig_set(with.session, "cpu", "t1", 1e-5, 9e-4);
    cost_rig_set(with.session, "card", "any", 1e-4, 3e-4);
    for (int at = 0; at < 4; at++)
        assert_int_equal(
            pthread_create(&threads[at], NULL, ask_for_many_shapes, &with), 0);
    for (int round = 0; round < 20; round++)
        cost_rig_set(with.session, "cpu", "t1", 1e-5, round % 2 ? 1e-4 : 9e-4);
    for (int at = 0; at < 4; at++)
        pthread_join(threads[at], NULL);
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_measured),
        cmocka_unit_test(the_shape_decides),
        cmocka_unit_test(new_measurements_count),
        cmocka_unit_test(the_unmeasured_is_not_taken),
        cmocka_unit_test(wrong_results_exclude),
        cmocka_unit_test(the_wrong_is_not_taken_for_want_of_another),
        cmocka_unit_test(a_model_may_be_cut),
        cmocka_unit_test(a_named_device_is_kept_to),
        cmocka_unit_test(measured_no_means_no),
        cmocka_unit_test(a_lost_device_is_not_chosen_again),
        cmocka_unit_test(a_little_better_is_not_enough),
        cmocka_unit_test(without_a_margin_the_best_is_taken),
        cmocka_unit_test(a_class_is_not_all_of_one_kind),
        cmocka_unit_test(a_busy_device_is_passed_over),
        cmocka_unit_test(a_failing_device_is_followed_by_the_next_best),
        cmocka_unit_test(a_batch_is_split_where_that_ends_sooner),
        cmocka_unit_test(a_batch_is_not_split_for_nothing),
        cmocka_unit_test(a_batch_is_not_split_without_a_thread_for_each),
        cmocka_unit_test(lengths_go_with_their_rows),
        cmocka_unit_test(a_part_that_fails_is_not_lost),
        cmocka_unit_test(a_rule_goes_before_costs),
        cmocka_unit_test(a_rule_that_cannot_be_followed_is_an_error),
        cmocka_unit_test(a_false_promise_is_found_out),
        cmocka_unit_test(nothing_is_learned_where_that_is_not_wanted),
        cmocka_unit_test(a_better_rival_is_found_out),
        cmocka_unit_test(what_was_learned_stays),
        cmocka_unit_test(what_shares_its_device_says_nothing),
        cmocka_unit_test(threads_ask_while_others_measure),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
