/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where requests go: costs are written into the book, as if they had been
 * measured, and requests of several shapes are watched. Devices are the CPU and
 * the stand-in for an accelerator.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/session/session.h"
#include "tests/unit/session_rig.h"

static const char two_devices[] = "[cellgate]\nunlisted = no\n"
                                  "[calibration]\nstore = /dev/null/none\n"
                                  "[device cpu]\nplugin = openmp\nthreads = 1\n"
                                  "[device card]\nplugin = remote\n";

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
} set_up;

/* LSTM and Dense: the card and the CPU both take the two as one chain. */
static cellgate_model *lstm_dense(void)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    rig_model_begin(&rig, 4);
    x = rig_input(&rig, CG_UNKNOWN, 4);
    rig_lstm_init(&lstm, 4, 6);
    lstm.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, rig_dense(&rig, lstm.last, 6, 3, CELLGATE_LINEAR));
    return rig_model_end(&rig);
}

static void begin(set_up *with, const char *config, const char *device)
{
    with->runtime = rig_runtime(config);
    with->model = lstm_dense();
    with->session = rig_session(with->runtime, with->model, device, NULL);
}

static void end(set_up *with)
{
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

/* ---- Costs ------------------------------------------------------------------
 */

/* An engine of the session for a device, open. */
static const cg_engine *engine_of(cellgate_session *session, const char *name)
{
    for (size_t at = 0; at < session->candidate_count; at++) {
        cg_placement *placement;

        if (strcmp(cg_candidate_name(&session->candidates[at]), name) != 0)
            continue;
        assert_int_equal(cg_session_placement(session, at, &placement, NULL),
                         CELLGATE_OK);
        return &session->candidates[at].engine;
    }
    fail_msg("the session has no device %s", name);
    return NULL;
}

/* The session's segment of nodes [first, first + count). */
static cg_segment *segment_of(cellgate_session *session, const char *device,
                              const char *variant, size_t first, size_t count)
{
    const size_t nodes[2] = { first, first + 1 };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_segment *segment = NULL;

    if (cg_segment_pool_get(&session->pool, engine_of(session, device), nodes,
                            count, NULL, variant, &segment,
                            &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return segment;
}

static void put(cellgate_session *session, const cg_segment *segment,
                int64_t batch, double seconds)
{
    const cg_cost_point point = { { batch, segment->rows ? 1 : 5, 1 },
                                  { .median = seconds,
                                    .low = seconds,
                                    .high = seconds,
                                    .error = 0.01,
                                    .count = 31 } };
    cg_cost_candidate candidate;

    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    (void)cg_cost_book_put(session->book, &candidate, segment->structure,
                           CG_BACK_TO_BACK, &point, NULL);
}

/* The whole chain costs so much for 1 row and for 64. */
static void set_costs(cellgate_session *session, const char *device,
                      const char *variant, double one, double many)
{
    const cg_segment *segment = segment_of(session, device, variant, 0, 2);

    put(session, segment, 1, one);
    put(session, segment, 64, many);
}

/* ---- Requests
 * ---------------------------------------------------------------- */

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
    if (strcmp(report.device, device) != 0 ||
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
    begin(&with, two_devices, NULL);
    set_costs(with.session, "cpu", "t1", 1e-5, 9e-4);
    set_costs(with.session, "card", "any", 1e-4, 3e-4);
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
    begin(&with, two_devices, NULL);
    set_costs(with.session, "cpu", "t1", 1e-5, 9e-4);
    set_costs(with.session, "card", "any", 1e-4, 3e-4);
    expect(&with, 64, "card", "measured");
    set_costs(with.session, "cpu", "t1", 1e-5, 1e-4);
    expect(&with, 64, "cpu", "3.0 times ahead of card any");
    end(&with);
}

static void the_unmeasured_is_not_taken(void **state)
{
    set_up with;

    (void)state;
    begin(&with, two_devices, NULL);
    set_costs(with.session, "card", "any", 10, 10);
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
    set_costs(with.session, "cpu", "t1", 1e-3, 1e-2);
    set_costs(with.session, "card", "any", 1e-4, 3e-4);
    expect(&with, 1, "card", "measured");
    segment = segment_of(with.session, "card", "any", 0, 2);
    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    (void)cg_cost_book_put_verdict(with.session->book, &candidate,
                                   segment->structure, &wrong, NULL);
    expect(&with, 1, "cpu", "measured: 1000 us predicted");
    end(&with);
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
    set_costs(with.session, "cpu", "t1", 1e-3, 1e-3);
    set_costs(with.session, "card", "any", 1e-3, 1e-3);
    put(with.session, segment_of(with.session, "card", "any", 0, 1), 1, 2e-4);
    put(with.session, segment_of(with.session, "cpu", "t1", 1, 1), 1, 1e-4);
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
    set_costs(with.session, "cpu", "t1", 1e-3, 1e-2);
    set_costs(with.session, "card", "any", 1e-4, 3e-4);
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
    set_costs(with.session, "cpu", "t1", 1e-3, 1e-2);
    set_costs(with.session, "card", "any", 1e-4, 3e-4);
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
             "[scheduler]\nfallback = run\n%slose_after = 2\n", two_devices);
    begin(&with, config, NULL);
    set_costs(with.session, "cpu", "t1", 1e-3, 1e-2);
    set_costs(with.session, "card", "any", 1e-4, 3e-4);
    expect(&with, 64, "card", "measured");
    expect(&with, 64, "cpu", "after a failure: ");
    expect(&with, 64, "cpu", "measured: 10000 us predicted");
    end(&with);
}

/* ---- Threads
 * ------------------------------------------------------------------ */

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
    set_costs(with.session, "cpu", "t1", 1e-5, 9e-4);
    set_costs(with.session, "card", "any", 1e-4, 3e-4);
    for (int at = 0; at < 4; at++)
        assert_int_equal(
            pthread_create(&threads[at], NULL, ask_for_many_shapes, &with), 0);
    for (int round = 0; round < 20; round++)
        set_costs(with.session, "cpu", "t1", 1e-5, round % 2 ? 1e-4 : 9e-4);
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
        cmocka_unit_test(a_model_may_be_cut),
        cmocka_unit_test(a_named_device_is_kept_to),
        cmocka_unit_test(measured_no_means_no),
        cmocka_unit_test(a_lost_device_is_not_chosen_again),
        cmocka_unit_test(threads_ask_while_others_measure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
