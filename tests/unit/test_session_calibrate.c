/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration of a model on the CPU and on cards that take modelled time: what
 * each card costs at a shape is known from its settings, so where requests
 * should go between them is known too. Runs may take longer than modelled when
 * the machine is busy: only clear differences are asked for.
 */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/cost/clock.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/session_rig.h"

#define MOST 64 /* rows and steps */

/* The thread sanitizer makes the stand-in's own work, looking at its input,
   longer than the time that is modelled. */
#if defined(__SANITIZE_THREAD__)
#define TIMES_ARE_MODELLED false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TIMES_ARE_MODELLED false
#endif
#endif

/* And a CPU that is slower than the far card, whichever this machine has, but
   not so slow that a cell takes seconds. */
#ifdef TIMES_ARE_MODELLED
#define CPU "[device cpu]\nplugin = openmp\nthreads = 1\n"
#else
#define TIMES_ARE_MODELLED true
#define CPU "[device cpu]\nplugin = openmp\nthreads = 1\nlevel = scalar\n"
#endif

/* Launch, time a step, operations a second, as in the settings below. */
typedef struct card {
    const char *name;
    double launch, step, rate;
} card;

static const card near_card = { "near", 30e-6, 2e-6, 50e9 };
static const card far_card = { "far", 300e-6, 2e-6, 5e12 };

#define CARD(name, launch, rate)                                               \
    "[device " name "]\nplugin = remote\nsimulate = yes\nlaunch = " launch     \
    "\nstep = 0.000002\nbus = 0\nrate = " rate "\ncompute_most = 2000000\n"

static const char devices[] = CPU CARD("near", "0.00003", "50000000000")
    CARD("far", "0.0003", "5000000000000");

/* LSTM 8 -> 32: 8 * 32 * (8 + 32) operations a row and step; Dense 32 -> 1. */
static double modelled(const card *of, int64_t batch, int64_t steps)
{
    const double lstm = 8.0 * 32 * (8 + 32), dense = 2.0 * 32;

    return of->launch + (double)steps * of->step +
           (double)batch * ((double)steps * lstm + dense) / of->rate;
}

static cellgate_model *make_model(void)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    rig_model_begin(&rig, 11);
    x = rig_input(&rig, CG_UNKNOWN, 8);
    rig_lstm_init(&lstm, 8, 32);
    lstm.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, rig_dense(&rig, lstm.last, 32, 1, CELLGATE_LINEAR));
    return rig_model_end(&rig);
}

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    cellgate_calibration options;
    cellgate_calibration_result result;
} set_up;

static void begin_with(set_up *with, const char *config)
{
    with->runtime = rig_runtime(config);
    with->model = make_model();
    with->session = rig_session(with->runtime, with->model, NULL, NULL);
    with->options = (cellgate_calibration){ .struct_size = sizeof with->options,
                                            .seconds = 3,
                                            .batch_most = MOST,
                                            .steps_most = MOST };
    with->result.struct_size = sizeof with->result;
}

/* Measurements go to a file of that name. */
static void begin(set_up *with, const char *store, const char *more)
{
    char config[8192];

    snprintf(config, sizeof config,
             "[cellgate]\nunlisted = no\n[calibration]\nstore = %s\n%s%s",
             scratch_absolute(store), devices, more);
    begin_with(with, config);
}

/* Beside the CPU alone, so that it ends when it is sure, and soon. */
static void begin_few(set_up *with, const char *store, const char *more)
{
    char config[8192];

    snprintf(config, sizeof config,
             "[cellgate]\nunlisted = no\n[calibration]\nstore = %s\n"
             "[device cpu]\nplugin = openmp\nthreads = 1\n%s",
             scratch_absolute(store), more);
    begin_with(with, config);
}

static void end(set_up *with)
{
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

static void calibrate(set_up *with)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_calibrate(with->session, &with->options, &with->result,
                           &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
}

/* The choice at a shape; the caller destroys *explanation. */
static const char *choice_at(const set_up *with, int64_t batch, int64_t steps,
                             cellgate_explanation **explanation)
{
    const cellgate_question question = { sizeof question, batch, steps, 0 };
    cellgate_decision decision = { .struct_size = sizeof decision };
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_explain(with->session, &question, explanation, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    cellgate_explanation_decision(*explanation, &decision);
    return decision.choice;
}

static bool chosen_at(const set_up *with, int64_t batch, int64_t steps,
                      const char *device)
{
    cellgate_explanation *explanation;
    const char *choice = choice_at(with, batch, steps, &explanation);
    const bool is = strncmp(choice, device, strlen(device)) == 0;

    cellgate_explanation_destroy(explanation);
    return is;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- Where requests go --------------------------------------------------- */

/* Between the two cards the choice is never the one that is clearly worse. */
static void expect_right_choices(const set_up *with)
{
    int clear = 0, wrong = 0;

    for (int64_t batch = 1; batch <= MOST; batch *= 2)
        for (int64_t steps = 1; steps <= MOST; steps *= 2) {
            const double near = modelled(&near_card, batch, steps);
            const double far = modelled(&far_card, batch, steps);
            const card *worse = near < far ? &far_card : &near_card;

            if (near < 1.3 * far && far < 1.3 * near)
                continue;
            clear++;
            if (chosen_at(with, batch, steps, worse->name)) {
                print_message("batch %d, steps %d: %s, which takes %.0f us; "
                              "the other %.0f us\n",
                              (int)batch, (int)steps, worse->name,
                              1e6 * (near < far ? far : near),
                              1e6 * (near < far ? near : far));
                wrong++;
            }
        }
    assert_true(clear > 30);
    /* A busy machine may hide a cell near the crossover, and no more. */
    assert_true(wrong <= clear / 20);
}

static void the_best_is_found_and_kept(void **state)
{
    uint32_t before;
    double start = now();
    set_up with;

    (void)state;
    begin(&with, "best", "");
    with.options.seconds = 4;
    calibrate(&with);
    /* A measurement that has begun is ended, and a busy machine is slow. */
    assert_true(now() - start < 3 * with.options.seconds);
    /* t1, and the three variants of each card. */
    assert_int_equal(with.result.candidates, 7);
    assert_int_equal(with.result.cells, 49);
    assert_int_equal(with.result.wrong, 0);
    assert_true(with.result.cells_measured >= 4);
    assert_true(with.result.samples >= 4 * 7);
    assert_false(chosen_at(&with, 1, 1, "far"));
    if (TIMES_ARE_MODELLED) {
        assert_true(chosen_at(&with, MOST, MOST, "far"));
        expect_right_choices(&with);
    }
    before = with.result.cells_measured;
    end(&with);

    /* Another process, later: it is all there, and no cell is measured twice.
     */
    begin(&with, "best", "");
    if (TIMES_ARE_MODELLED)
        assert_true(chosen_at(&with, MOST, MOST, "far"));
    with.options.seconds = 1;
    calibrate(&with);
    assert_true(before + with.result.cells_measured <= with.result.cells);
    end(&with);
}

/* ---- What is wrong ------------------------------------------------------- */

static void wrong_results_are_never_chosen(void **state)
{
    cellgate_candidate_info line = { .struct_size = sizeof line };
    cellgate_explanation *explanation;
    bool told = false;
    uint32_t before;
    set_up with;

    (void)state;
    begin(&with, "wrong",
          "[device liar]\nplugin = remote\nsimulate = yes\nlaunch = 0\n"
          "step = 0\nbus = 0\nrate = 0\nwrong = yes\n");
    calibrate(&with);
    assert_int_equal(with.result.wrong, 3);
    assert_true(rig_logged(CELLGATE_LOG_WARNING, "liar any is not measured"));
    for (int64_t extent = 1; extent <= MOST; extent *= 4)
        assert_false(chosen_at(&with, extent, extent, "liar"));
    (void)choice_at(&with, 8, 8, &explanation);
    for (size_t at = 0;
         cellgate_explanation_get(explanation, at, &line) == CELLGATE_OK; at++)
        if (strcmp(line.device, "liar") == 0) {
            assert_string_not_equal(line.excluded, "");
            told =
                told || strstr(line.excluded, "its results are wrong") != NULL;
        }
    assert_true(told);
    cellgate_explanation_destroy(explanation);
    /* Nor is it what keeps cells from being known. */
    before = with.result.cells_measured;
    calibrate(&with);
    assert_true(before + with.result.cells_measured <= with.result.cells);
    end(&with);
}

/* ---- Beside requests ------------------------------------------------------
 */

typedef struct client {
    const set_up *with;
    rig_request request;
    float *wanted;
    int right, wrong;
    atomic_bool *stop;
} client;

static void *ask_on(void *argument)
{
    client *of = argument;

    while (!atomic_load(of->stop)) {
        bool good = cellgate_run(of->with->session, &of->request.request, NULL,
                                 NULL) == CELLGATE_OK;

        for (size_t at = 0; good && at < 3; at++)
            good = fabsf(((float *)of->request.outputs[0].data)[at] -
                         of->wanted[at]) <= 1e-5f;
        *(good ? &of->right : &of->wrong) += 1;
    }
    return NULL;
}

static void client_init(client *of, const set_up *with, uint64_t seed,
                        atomic_bool *stop)
{
    cellgate_session *host =
        rig_session(with->runtime, with->model, "host", NULL);
    size_t count;

    *of = (client){ .with = with, .stop = stop };
    rig_request_init(&of->request, host, with->model, 3, 5, 0, &seed);
    rig_run(host, &of->request, NULL);
    of->wanted = rig_outputs(&of->request, &count);
    assert_int_equal(count, 3);
    cellgate_session_destroy(host);
}

/* Requests go on while their own session is calibrated, are routed anew with
   each measurement, and are all answered, and rightly. */
static void requests_go_on_meanwhile(void **state)
{
    atomic_bool stop = false;
    pthread_t threads[2];
    client clients[2];
    set_up with;

    (void)state;
    begin(&with, "meanwhile", "");
    with.options.seconds = 2;
    with.options.cells_most = 3;
    for (int at = 0; at < 2; at++)
        client_init(&clients[at], &with, (uint64_t)at + 1, &stop);
    for (int at = 0; at < 2; at++)
        assert_int_equal(
            pthread_create(&threads[at], NULL, ask_on, &clients[at]), 0);
    calibrate(&with);
    atomic_store(&stop, true);
    for (int at = 0; at < 2; at++) {
        pthread_join(threads[at], NULL);
        assert_true(clients[at].right > 0);
        assert_int_equal(clients[at].wrong, 0);
        free(clients[at].wanted);
        rig_request_finish(&clients[at].request);
    }
    assert_true(with.result.cells_measured > 0);
    assert_int_equal(with.result.wrong, 0);
    assert_int_equal(with.result.failed, 0);
    end(&with);
}

static cellgate_estimate estimate_at(const set_up *with, int64_t batch,
                                     int64_t steps, const char *device)
{
    cellgate_candidate_info line = { .struct_size = sizeof line };
    int32_t estimate = CELLGATE_ESTIMATE_NONE;
    cellgate_explanation *explanation;

    (void)choice_at(with, batch, steps, &explanation);
    for (size_t at = 0;
         cellgate_explanation_get(explanation, at, &line) == CELLGATE_OK; at++)
        if (strcmp(line.device, device) == 0 && line.estimate > estimate)
            estimate = line.estimate;
    cellgate_explanation_destroy(explanation);
    return (cellgate_estimate)estimate;
}

/* Whether a line of that device, at the largest shape, begins so. */
static bool is_excluded(const set_up *with, const char *device, const char *why)
{
    cellgate_candidate_info line = { .struct_size = sizeof line };
    cellgate_explanation *explanation;
    bool found = false;

    (void)choice_at(with, MOST, MOST, &explanation);
    for (size_t at = 0;
         cellgate_explanation_get(explanation, at, &line) == CELLGATE_OK; at++)
        found |= strcmp(line.device, device) == 0 &&
                 strncmp(line.excluded, why, strlen(why)) == 0;
    cellgate_explanation_destroy(explanation);
    return found;
}

/* What a device lacks the memory for is not measured there, and is elsewhere.
 */
static void memory_limits_are_of_shapes(void **state)
{
    set_up with;

    (void)state;
    begin_with(&with, "[cellgate]\nunlisted = no\n"
                      "[calibration]\nstore = /dev/null/none\n"
                      "[device large]\nplugin = remote\nsimulate = yes\n"
                      "variants = any\nindex = 1\ncompute_most = 2000000\n"
                      "[device small]\nplugin = remote\nsimulate = yes\n"
                      "variants = any\nmemory = 100000\n"
                      "compute_most = 2000000\n");
    with.options.steps_least = MOST;
    /* There is no store; all else is well. */
    assert_int_equal(
        cellgate_calibrate(with.session, &with.options, &with.result, NULL),
        CELLGATE_IO);
    assert_true(rig_logged(CELLGATE_LOG_WARNING, "from batch 64, steps 64 on"));
    assert_int_equal(estimate_at(&with, 1, MOST, "small"),
                     CELLGATE_ESTIMATE_EXACT);
    assert_int_equal(estimate_at(&with, MOST, MOST, "small"),
                     CELLGATE_ESTIMATE_EXTRAPOLATED);
    assert_int_equal(estimate_at(&with, MOST, MOST, "large"),
                     CELLGATE_ESTIMATE_EXACT);
    assert_true(is_excluded(&with, "small", "it had no memory for batch "));
    end(&with);
}

/* Checked and measured where it is offered at all: at batch 1 and 2. */
static void small_batches_alone_are_no_fault(void **state)
{
    set_up with;

    (void)state;
    begin_few(&with, "narrow",
              "[device narrow]\nplugin = remote\nindex = 1\nsimulate = yes\n"
              "variants = any\nmax_batch = 2\n"
              "[device liar]\nplugin = remote\nindex = 1\nsimulate = yes\n"
              "variants = any\nmax_batch = 2\nwrong = yes\n");
    with.options.batch_most = 4;
    with.options.steps_most = 2;
    calibrate(&with);
    assert_int_equal(with.result.failed, 0);
    assert_int_equal(with.result.wrong, 1);
    assert_int_equal(estimate_at(&with, 1, 1, "narrow"),
                     CELLGATE_ESTIMATE_EXACT);
    assert_int_equal(estimate_at(&with, 4, 2, "cpu"), CELLGATE_ESTIMATE_EXACT);
    end(&with);
}

/* Nothing that is right is left: there is nothing to measure, and no error. */
static void everything_may_be_wrong(void **state)
{
    set_up with;

    (void)state;
    begin_with(&with, "[cellgate]\nunlisted = no\n"
                      "[calibration]\nstore = /dev/null/none\n"
                      "[device liar]\nplugin = remote\nsimulate = yes\n"
                      "wrong = yes\n");
    assert_int_equal(
        cellgate_calibrate(with.session, &with.options, &with.result, NULL),
        CELLGATE_IO); /* of the store */
    assert_int_equal(estimate_at(&with, 1, 1, "liar"), CELLGATE_ESTIMATE_NONE);
    end(&with);
}

/* A failure that has nothing to do with the shape ends a candidate's part. */
static void a_failing_candidate_is_left_out(void **state)
{
    set_up with;

    (void)state;
    begin_few(&with, "failing",
              "[device broken]\nplugin = remote\nindex = 1\nfail_at = 5\n"
              "variants = any\n");
    with.options.batch_most = with.options.steps_most = 2;
    calibrate(&with);
    assert_int_equal(with.result.failed, 1);
    assert_int_equal(with.result.wrong, 0);
    assert_true(
        rig_logged(CELLGATE_LOG_WARNING, "broken any is not measured for"));
    assert_int_equal(estimate_at(&with, 1, 1, "cpu"), CELLGATE_ESTIMATE_EXACT);
    end(&with);
}

/* Without a file all of it holds for the process, and is an error all the
   same. */
/* Cards that take 1.1 seconds each to lay out weights, and 2 seconds for all: a
   second calibration begins with the card that the first one did not reach. */
static void laying_out_is_bounded(void **state)
{
    static const char cards[] =
        "[device one]\nplugin = remote\nvariants = any\nprepare = 1.1\n"
        "[device two]\nplugin = remote\nvariants = any\nprepare = 1.1\n"
        "latency = 0.00001\n"; /* another card: it shares no costs */
    static const char *const left[] = { "two any is not measured",
                                        "one any is not measured" };

    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        set_up with;

        begin_few(&with, "bounded", cards);
        with.options.seconds = 2;
        with.options.cells_most = 1;
        rig_log_watch(left[turn]);
        calibrate(&with);
        assert_int_equal(with.result.unreached, 1);
        assert_int_equal(with.result.failed, 0);
        assert_int_equal(with.result.cells_measured, 1);
        assert_int_equal(rig_log_watched(), 1);
        end(&with);
    }
}

static void what_cannot_be_kept_is_told(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_candidate_info line = { .struct_size = sizeof line };
    cellgate_decision decision = { .struct_size = sizeof decision };
    cellgate_explanation *explanation;
    bool excluded = false;
    set_up with;

    (void)state;
    begin_with(&with,
               "[cellgate]\nunlisted = no\n"
               "[calibration]\nstore = /dev/null/costs\n"
               "[device cpu]\nplugin = openmp\nthreads = 1\n"
               "[device liar]\nplugin = remote\nindex = 1\nsimulate = yes\n"
               "variants = any\nwrong = yes\n");
    with.options.seconds = 1;
    with.options.batch_most = with.options.steps_most = 2;
    assert_int_equal(
        cellgate_calibrate(with.session, &with.options, &with.result, &error),
        CELLGATE_IO);
    assert_non_null(strstr(error.text, "nothing is kept"));
    assert_true(rig_logged(CELLGATE_LOG_WARNING, "nothing is kept"));
    (void)choice_at(&with, 1, 1, &explanation);
    cellgate_explanation_decision(explanation, &decision);
    assert_int_equal(decision.estimate, CELLGATE_ESTIMATE_EXACT);
    for (size_t at = 0;
         cellgate_explanation_get(explanation, at, &line) == CELLGATE_OK; at++)
        if (strcmp(line.device, "liar") == 0)
            excluded |= strstr(line.excluded, "its results are wrong") != NULL;
    assert_true(excluded);
    cellgate_explanation_destroy(explanation);
    end(&with);
}

/* ---- Regimes ------------------------------------------------------------- */

/* A team that spins, and then sleeps: nothing is quicker when it is kept busy,
   and nothing slower after a pause. */
static const char spinner_and_steady[] =
    "[device spinner]\nplugin = remote\nindex = 1\nsimulate = yes\n"
    "variants = any\nlaunch = 0.0002\nstep = 0\nidle_after = 0.01\n"
    "idle_penalty = 0.06\n"
    "[device steady]\nplugin = remote\nindex = 1\nsimulate = yes\n"
    "variants = any\nlaunch = 0.0015\nstep = 0\n";

static const char *chosen_in(const char *regime, char *choice, size_t size)
{
    cellgate_explanation *explanation;
    char config[1024];
    set_up with;

    snprintf(config, sizeof config,
             "[cellgate]\nunlisted = no\n[calibration]\nstore = %s\n"
             "[scheduler]\nregime = %s\n%s",
             scratch_absolute("regimes"), regime, spinner_and_steady);
    begin_with(&with, config);
    with.options.seconds = 3; /* it ends when it is sure */
    with.options.batch_most = with.options.steps_most = 1;
    calibrate(&with);
    snprintf(choice, size, "%s", choice_at(&with, 1, 1, &explanation));
    cellgate_explanation_destroy(explanation);
    end(&with);
    return choice;
}

static void the_regime_decides(void **state)
{
    char choice[64];

    (void)state;
    assert_string_equal(chosen_in("back-to-back", choice, sizeof choice),
                        "spinner any");
    assert_string_equal(chosen_in("spaced", choice, sizeof choice),
                        "steady any");
    /* One store has both. */
    assert_string_equal(chosen_in("back-to-back", choice, sizeof choice),
                        "spinner any");
}

/* A run that hangs goes on using the model, the weights and the device when the
   calibration, the session and the runtime are long gone. */
static void a_hung_run_is_left_behind(void **state)
{
    set_up with;

    (void)state;
    begin_few(&with, "hung",
              "[device stuck]\nplugin = remote\nindex = 1\nhang_at = 5\n"
              "hang_for = 1\n[scheduler]\nwatchdog = 300ms\n");
    with.options.batch_most = with.options.steps_most = 1;
    calibrate(&with);
    assert_true(rig_logged(CELLGATE_LOG_WARNING, "a run did not end within"));
    assert_true(with.result.samples > 0);
    assert_false(chosen_at(&with, 1, 1, "stuck"));
    end(&with);
    /* The hung run ends, and finds all that it uses in its place. */
    cg_real_clock.sleep(cg_real_clock.context, 1.2);
}

/* ---- Stopping ------------------------------------------------------------ */

typedef struct stopping {
    double at, last;
    int calls;
} stopping;

static int32_t stop_at(void *context, double done)
{
    stopping *of = context;

    assert_true(done >= of->last && done <= 1);
    of->last = done;
    of->calls++;
    return done >= of->at;
}

static void a_stop_keeps_what_was_measured(void **state)
{
    stopping when = { .at = 0.02 };
    cellgate_explanation *explanation;
    cellgate_decision decision = { .struct_size = sizeof decision };
    set_up with;

    (void)state;
    begin(&with, "stopped", "");
    with.options.seconds = 60;
    with.options.progress = stop_at;
    with.options.progress_context = &when;
    calibrate(&with);
    assert_true(when.calls > 1);
    assert_true(when.last < 0.5);
    assert_true(with.result.cells_measured >= 1);
    end(&with);

    begin(&with, "stopped", "");
    (void)choice_at(&with, 1, 1, &explanation);
    cellgate_explanation_decision(explanation, &decision);
    assert_int_equal(decision.estimate, CELLGATE_ESTIMATE_EXACT);
    cellgate_explanation_destroy(explanation);
    end(&with);
}

static void what_cannot_be_asked_for(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    set_up with;

    (void)state;
    begin(&with, "none", "");
    with.options.batch_least = 9;
    with.options.batch_most = 8;
    assert_int_equal(
        cellgate_calibrate(with.session, &with.options, &with.result, &error),
        CELLGATE_INVALID);
    assert_non_null(strstr(error.text, "no shapes"));
    assert_int_equal(cellgate_calibrate(NULL, NULL, NULL, &error),
                     CELLGATE_INVALID);
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_is_found_and_kept),
        cmocka_unit_test(wrong_results_are_never_chosen),
        cmocka_unit_test(requests_go_on_meanwhile),
        cmocka_unit_test(memory_limits_are_of_shapes),
        cmocka_unit_test(small_batches_alone_are_no_fault),
        cmocka_unit_test(everything_may_be_wrong),
        cmocka_unit_test(a_failing_candidate_is_left_out),
        cmocka_unit_test(laying_out_is_bounded),
        cmocka_unit_test(what_cannot_be_kept_is_told),
        cmocka_unit_test(the_regime_decides),
        cmocka_unit_test(a_hung_run_is_left_behind),
        cmocka_unit_test(a_stop_keeps_what_was_measured),
        cmocka_unit_test(what_cannot_be_asked_for),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
