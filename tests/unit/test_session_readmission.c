/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that come back into service, and those that do not: the stand-in for
 * an accelerator counts its runs anew each time that it is opened, so that it
 * works for as many requests as the test says and fails again.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/runtime.h"
#include "tests/unit/three_devices.h"

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    rig_request request;
    float *wanted; /* what the host ops give */
} set_up;

static void begin(set_up *with, const char *faults)
{
    uint64_t random = 1;
    cellgate_session *host;
    char config[500];
    size_t count;

    snprintf(config, sizeof config,
             "[cellgate]\nunlisted = no\n[calibration]\nstore = "
             "/dev/null/none\n[scheduler]\nreadmit = 10ms\nfailures = "
             "3\nwatchdog = 200ms\n[device card]\nplugin = remote\n%s",
             faults);
    with->runtime = rig_runtime(config);
    with->model = cost_rig_model();
    with->session = rig_session(with->runtime, with->model, "card", NULL);
    host = rig_session(with->runtime, with->model, "host", NULL);
    rig_request_init(&with->request, host, with->model, 3, 5, 0, &random);
    rig_run(host, &with->request, NULL);
    with->wanted = rig_outputs(&with->request, &count);
    cellgate_session_destroy(host);
}

static void end(set_up *with)
{
    free(with->wanted);
    rig_request_finish(&with->request);
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

static cellgate_status run(set_up *with, cellgate_error *error)
{
    cellgate_status status =
        cellgate_run(with->session, &with->request.request, NULL, error);

    if (status == CELLGATE_OK)
        rig_expect(&with->request, with->wanted, 1e-5);
    return status;
}

static cellgate_device_info card(const cellgate_runtime *runtime)
{
    cellgate_device_info info = { .struct_size = sizeof info };

    assert_int_equal(cellgate_device_get(runtime, 0, &info), CELLGATE_OK);
    assert_string_equal(info.name, "card");
    return info;
}

static void wait_a_little(void)
{
    const struct timespec time = { 0, 2000000 };

    (void)nanosleep(&time, NULL);
}

static bool in_service(const cellgate_device_info *info)
{
    return info->status == CELLGATE_OK;
}

static bool tried_in_vain(const cellgate_device_info *info)
{
    return strstr(info->reason, "in vain") != NULL;
}

static bool out_for_good(const cellgate_device_info *info)
{
    return info->status != CELLGATE_OK && info->retry_seconds < 0;
}

/* Until the card is so; a minute is for machines that are busy. */
static void wait_until(const cellgate_runtime *runtime,
                       bool (*so)(const cellgate_device_info *info))
{
    cellgate_device_info info = card(runtime);

    for (int tries = 0; tries < 30000 && !so(&info); tries++) {
        wait_a_little();
        info = card(runtime);
    }
    if (!so(&info))
        fail_msg("the card: %s", info.reason);
}

/* ---- Back in service ---------------------------------------------------- */

/* Lost at the fourth run of each opening: three requests, then, after the
   check, two at a time. */
static void a_lost_device_comes_back(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    set_up with;

    (void)state;
    begin(&with, "lose_after = 4\n");
    assert_int_equal(run(&with, NULL), CELLGATE_OK);
    for (int round = 0; round < 4; round++) {
        assert_int_equal(run(&with, NULL), CELLGATE_OK);
        assert_int_equal(run(&with, NULL), CELLGATE_OK);
        assert_int_equal(run(&with, &error), CELLGATE_DEVICE_LOST);
        assert_non_null(strstr(error.text, "fallen off the bus"));
        wait_until(with.runtime, in_service);
    }
    assert_true(rig_logged(CELLGATE_LOG_WARNING, "is in service again"));
    end(&with);
}

/* Nothing of the opening before is kept but what the test keeps. */
static void what_was_opened_before_is_closed(void **state)
{
    cg_opening *first = NULL;
    cg_device *device;
    set_up with;

    (void)state;
    begin(&with, "lose_after = 3\n");
    device = cg_device_table_find(with.runtime->table, "card");
    assert_int_equal(cg_device_open(device, &first, NULL), CELLGATE_OK);
    assert_int_equal(run(&with, NULL), CELLGATE_OK);
    assert_int_equal(run(&with, NULL), CELLGATE_OK);
    assert_int_equal(run(&with, NULL), CELLGATE_DEVICE_LOST);
    wait_until(with.runtime, in_service);
    assert_int_equal(atomic_load(&first->references), 2); /* the session's */
    assert_int_equal(run(&with, NULL), CELLGATE_OK);
    assert_int_equal(atomic_load(&first->references), 1);
    cg_opening_release(first);
    end(&with);
}

/* A session that is made while the device is out has it when it is back. */
static void a_session_waits_for_its_device(void **state)
{
    cellgate_session_options options = { .struct_size = sizeof options,
                                         .device = "card" };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *late;
    set_up with;

    (void)state;
    begin(&with, "lose_after = 2\n");
    assert_int_equal(run(&with, NULL), CELLGATE_OK);
    assert_int_equal(run(&with, NULL), CELLGATE_DEVICE_LOST);
    if (cellgate_session_create(with.runtime, with.model, &options, &late,
                                &error) == CELLGATE_OK)
        cellgate_session_destroy(late); /* it was back already */
    else
        assert_non_null(strstr(error.text, "fallen off the bus"));
    wait_until(with.runtime, in_service);
    late = rig_session(with.runtime, with.model, "card", NULL);
    cellgate_session_destroy(late);
    end(&with);
}

static void requests_go_there_again(void **state)
{
    three_devices with;
    rig_request request;
    uint64_t random = 1;
    int on_card = 0;

    (void)state;
    three_devices_begin(&with, "fallback = run\nreadmit = 5ms",
                        "lose_after = 4\n");
    rig_request_init(&request, with.host, with.model, 1, three_steps[1], 0,
                     &random);
    for (int round = 0; round < 3; round++) {
        cellgate_report report = { .struct_size = sizeof report };

        for (bool there = true; there;) {
            rig_run(with.session, &request, &report);
            there = strcmp(report.device, "card") == 0;
            on_card += there;
        }
        wait_until(with.runtime, in_service);
    }
    assert_int_equal(on_card, 3 + 2 + 2);
    rig_request_finish(&request);
    three_devices_end(&with);
}

/* With lengths the model is cut anew, in the opening that there is now. */
static void expect_explained(cellgate_session *session)
{
    const cellgate_question question = { sizeof question, 1, 3, 0.5 };
    cellgate_decision decision = { .struct_size = sizeof decision };
    cellgate_explanation *explanation = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_explain(session, &question, &explanation, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    cellgate_explanation_decision(explanation, &decision);
    assert_non_null(strstr(decision.choice, "card"));
    assert_non_null(strstr(decision.reason, "[pin all]"));
    cellgate_explanation_destroy(explanation);
}

/* A [pin NAME] section goes on sending requests there. */
static void a_pin_holds_for_the_device_that_is_back(void **state)
{
    static const char config[] =
        "[cellgate]\nunlisted = no\n[calibration]\nstore = /dev/null/none\n"
        "[scheduler]\nreadmit = 5ms\n[device cpu]\nplugin = openmp\n"
        "[device card]\nplugin = remote\nlose_after = 3\n"
        "[pin all]\ndevice = card\n";
    cellgate_runtime *runtime = rig_runtime(config);
    cellgate_model *model = cost_rig_model();
    cellgate_session *session = rig_session(runtime, model, NULL, NULL);
    cg_device *device = cg_device_table_find(runtime->table, "card");
    rig_request request;
    uint64_t random = 1;
    int right = 0;

    (void)state;
    rig_request_init(&request, session, model, 1, 3, 0, &random);
    for (int round = 0; round < 3; round++) {
        cellgate_report report = { .struct_size = sizeof report };

        while (cellgate_run(session, &request.request, &report, NULL) ==
               CELLGATE_OK) {
            assert_string_equal(report.device, "card");
            right++;
        }
        while (cg_device_usable(device, NULL) != CELLGATE_OK)
            wait_a_little();
        expect_explained(session);
    }
    assert_int_equal(right, 2 + 1 + 1);
    rig_request_finish(&request);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
}

/* ---- Not back ----------------------------------------------------------- */

static void one_that_computes_wrongly_stays_out(void **state)
{
    set_up with;

    (void)state;
    begin(&with, "wrong_at = 1\nlose_after = 2\n");
    assert_int_equal(
        cellgate_run(with.session, &with.request.request, NULL, NULL),
        CELLGATE_OK);
    assert_int_equal(run(&with, NULL), CELLGATE_DEVICE_LOST);
    wait_until(with.runtime, tried_in_vain);
    assert_non_null(strstr(card(with.runtime).reason, "results are wrong"));
    assert_int_equal(run(&with, NULL), CELLGATE_DEVICE_LOST);
    assert_true(card(with.runtime).out_seconds > 0);
    end(&with);
}

static void one_that_fails_too_often_is_taken_out(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    set_up with;

    (void)state;
    begin(&with, "fail_percent = 100\n");
    for (int at = 0; at < 3; at++) {
        assert_int_equal(card(with.runtime).status, CELLGATE_OK);
        assert_int_equal(run(&with, &error), CELLGATE_DEVICE_FAILED);
        assert_non_null(strstr(error.text, "fail_percent"));
    }
    assert_int_not_equal(card(with.runtime).status, CELLGATE_OK);
    wait_until(with.runtime, tried_in_vain);
    end(&with);
}

/* Hung runs stay as they are; the device is opened beside them, twice. */
static void one_that_hangs_comes_back_twice(void **state)
{
    set_up with;

    (void)state;
    begin(&with, "hang_at = 2\nhang_for = 3600\n");
    assert_int_equal(run(&with, NULL), CELLGATE_OK);
    assert_int_equal(run(&with, NULL), CELLGATE_TIMEOUT);
    wait_until(with.runtime, in_service);
    assert_int_equal(run(&with, NULL), CELLGATE_TIMEOUT);
    wait_until(with.runtime, in_service);
    assert_int_equal(run(&with, NULL), CELLGATE_TIMEOUT);
    assert_true(card(with.runtime).retry_seconds < 0);
    end(&with);
}

static void one_whose_check_hangs_is_left_alone(void **state)
{
    set_up with;

    (void)state;
    begin(&with, "hang_at = 1\nhang_for = 3600\n");
    assert_int_equal(run(&with, NULL), CELLGATE_TIMEOUT);
    wait_until(with.runtime, out_for_good);
    assert_non_null(strstr(card(with.runtime).reason, "did not come back"));
    end(&with);
}

/* ---- Its end ------------------------------------------------------------ */

/* The runtime ends while the device waits, or is checked, or has just come
   back. */
static void everything_ends_at_any_moment(void **state)
{
    (void)state;
    for (int moment = 0; moment < 12; moment++) {
        set_up with;

        begin(&with, "lose_after = 2\n");
        assert_int_equal(run(&with, NULL), CELLGATE_OK);
        assert_int_equal(run(&with, NULL), CELLGATE_DEVICE_LOST);
        for (int at = 0; at < moment; at++)
            wait_a_little();
        end(&with);
    }
}

static int in_child(set_up *with)
{
    cellgate_device_info info = { .struct_size = sizeof info };

    if (cellgate_run(with->session, &with->request.request, NULL, NULL) !=
        CELLGATE_FORKED)
        return 1;
    if (cellgate_device_get(with->runtime, 0, &info) != CELLGATE_OK)
        return 2;
    cellgate_session_destroy(with->session);
    cellgate_runtime_destroy(with->runtime);
    return 0;
}

static void a_child_has_no_part_in_it(void **state)
{
    set_up with;
    pid_t child;
    int result;

    (void)state;
    begin(&with, "lose_after = 2\n");
    assert_int_equal(run(&with, NULL), CELLGATE_OK);
    assert_int_equal(run(&with, NULL), CELLGATE_DEVICE_LOST);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        _exit(in_child(&with));
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    wait_until(with.runtime, in_service);
    assert_int_equal(run(&with, NULL), CELLGATE_DEVICE_LOST);
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_device_comes_back),
        cmocka_unit_test(what_was_opened_before_is_closed),
        cmocka_unit_test(a_session_waits_for_its_device),
        cmocka_unit_test(requests_go_there_again),
        cmocka_unit_test(a_pin_holds_for_the_device_that_is_back),
        cmocka_unit_test(one_that_computes_wrongly_stays_out),
        cmocka_unit_test(one_that_fails_too_often_is_taken_out),
        cmocka_unit_test(one_that_hangs_comes_back_twice),
        cmocka_unit_test(one_whose_check_hangs_is_left_alone),
        cmocka_unit_test(everything_ends_at_any_moment),
        cmocka_unit_test(a_child_has_no_part_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
