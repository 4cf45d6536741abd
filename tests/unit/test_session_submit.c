/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are submitted, waited for and cancelled. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/session/session.h"
#include "tests/unit/session_rig.h"

static const char config[] = "[cellgate]\nunlisted = no\n"
                             "[calibration]\nstore = /dev/null/none\n"
                             "[scheduler]\nqueue = 4\n"
                             "[device card]\nplugin = remote\nsimulate = yes\n"
                             "launch = 20ms\nstep = 0\n";

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session, *host;
} set_up;

static void begin(set_up *with)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    rig_model_begin(&rig, 4);
    x = rig_input(&rig, CG_UNKNOWN, 4);
    rig_lstm_init(&lstm, 4, 6);
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, lstm.sequence);
    with->model = rig_model_end(&rig);
    with->runtime = rig_runtime(config);
    with->session = rig_session(with->runtime, with->model, NULL, NULL);
    with->host = rig_session(with->runtime, with->model, "host", NULL);
}

static void end(set_up *with)
{
    cellgate_session_destroy(with->host);
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

/* A request with what the host ops give for it. */
typedef struct asked {
    rig_request request;
    float *wanted;
    cellgate_ticket *ticket;
} asked;

static void ask(set_up *with, asked *of, uint64_t seed)
{
    size_t count;

    rig_request_init(&of->request, with->host, with->model, 2, 5, 0, &seed);
    rig_run(with->host, &of->request, NULL);
    of->wanted = rig_outputs(&of->request, &count);
    of->ticket = NULL;
}

static void forget(asked *of)
{
    cellgate_ticket_destroy(of->ticket);
    free(of->wanted);
    rig_request_finish(&of->request);
}

static cellgate_status submit(set_up *with, asked *of, double deadline,
                              cellgate_error *error)
{
    const cellgate_submission options = { sizeof options, deadline };

    return cellgate_submit(with->session, &of->request.request, &options,
                           &of->ticket, error);
}

static void answers_are_right(void **state)
{
    set_up with;
    asked all[4];

    (void)state;
    begin(&with);
    for (int at = 0; at < 4; at++) {
        ask(&with, &all[at], (uint64_t)at + 1);
        assert_int_equal(submit(&with, &all[at], 0, NULL), CELLGATE_OK);
    }
    for (int at = 3; at >= 0; at--) {
        cellgate_report report = { .struct_size = sizeof report };

        assert_int_equal(cellgate_wait(all[at].ticket, -1, &report, NULL),
                         CELLGATE_OK);
        rig_expect(&all[at].request, all[at].wanted, 1e-5);
        assert_string_equal(report.device, "card");
        assert_int_equal(cellgate_cancel(all[at].ticket), CELLGATE_END);
    }
    for (int at = 0; at < 4; at++)
        forget(&all[at]);
    end(&with);
}

/* Two run at once on the card and four may wait; the seventh is refused. Those
   that wait are late, cancelled, or run in the end. */
static void too_many_late_and_cancelled(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_status refused = CELLGATE_OK;
    set_up with;
    asked all[12];
    int count = 0;

    (void)state;
    begin(&with);
    while (refused == CELLGATE_OK && count < 12) {
        ask(&with, &all[count], 3);
        refused = submit(&with, &all[count], count == 4 ? 1e-9 : 0, &error);
        count++;
    }
    assert_int_equal(refused, CELLGATE_BUSY);
    assert_non_null(strstr(error.text, "4 requests wait already"));
    assert_int_equal(cellgate_wait(all[count - 2].ticket, 0, NULL, NULL),
                     CELLGATE_PENDING);
    assert_int_equal(cellgate_cancel(all[count - 2].ticket), CELLGATE_OK);
    assert_int_equal(cellgate_wait(all[count - 2].ticket, -1, NULL, &error),
                     CELLGATE_CANCELLED);
    for (int at = 0; at < count - 2; at++)
        assert_int_equal(cellgate_wait(all[at].ticket, -1, NULL, &error),
                         at == 4 ? CELLGATE_EXPIRED : CELLGATE_OK);
    for (int at = 0; at < count; at++)
        forget(&all[at]);
    end(&with);
}

/* Of one stream: in order, whatever is free. */
static void a_stream_keeps_its_order(void **state)
{
    cellgate_stream *stream, *straight;
    set_up with;
    asked all[4];

    (void)state;
    begin(&with);
    assert_int_equal(cellgate_stream_create(with.session, 2, &stream, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_stream_create(with.host, 2, &straight, NULL),
                     CELLGATE_OK);
    for (int at = 0; at < 4; at++) {
        size_t count;

        ask(&with, &all[at], (uint64_t)at + 9);
        free(all[at].wanted);
        all[at].request.request.stream = straight;
        rig_run(with.host, &all[at].request, NULL);
        all[at].wanted = rig_outputs(&all[at].request, &count);
        all[at].request.request.stream = stream;
    }
    for (int at = 0; at < 4; at++)
        assert_int_equal(submit(&with, &all[at], 0, NULL), CELLGATE_OK);
    for (int at = 0; at < 4; at++) {
        assert_int_equal(cellgate_wait(all[at].ticket, -1, NULL, NULL),
                         CELLGATE_OK);
        rig_expect(&all[at].request, all[at].wanted, 1e-5);
        forget(&all[at]);
    }
    cellgate_stream_destroy(stream);
    cellgate_stream_destroy(straight);
    end(&with);
}

static void failures_are_told(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    set_up with;
    asked one;

    (void)state;
    begin(&with);
    ask(&with, &one, 1);
    one.request.inputs[0].tensor.rank = 1;
    assert_int_equal(submit(&with, &one, 0, NULL), CELLGATE_OK);
    assert_int_equal(cellgate_wait(one.ticket, -1, NULL, &error),
                     CELLGATE_BAD_SHAPE);
    assert_true(error.text[0] != '\0');
    one.request.inputs[0].tensor.rank = 3;
    forget(&one);
    ask(&with, &one, 1);
    assert_int_equal(submit(&with, &one, -1, NULL), CELLGATE_INVALID);
    assert_int_equal(submit(&with, &one, 0, NULL), CELLGATE_OK);
    assert_int_equal(cellgate_wait(one.ticket, 1e300, NULL, NULL), CELLGATE_OK);
    forget(&one);
    assert_int_equal(cellgate_submit(NULL, NULL, NULL, NULL, NULL),
                     CELLGATE_INVALID);
    assert_int_equal(cellgate_wait(NULL, 0, NULL, NULL), CELLGATE_INVALID);
    assert_int_equal(cellgate_cancel(NULL), CELLGATE_INVALID);
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_right),
        cmocka_unit_test(too_many_late_and_cancelled),
        cmocka_unit_test(a_stream_keeps_its_order),
        cmocka_unit_test(failures_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
