/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that repeats the one before it is not checked and not looked up
 * again: what must be looked at all the same. Everything that was remembered
 * and holds no longer is changed here between two requests of the same tensors.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/session/call.h"
#include "runtime/session/session.h"
#include "tests/unit/cost_rig.h"

#define CONFIG(scheduler)                                                      \
    "[cellgate]\nunlisted = no\n[calibration]\nstore = /dev/null/none\n"       \
    "[scheduler]\nsplit = no\n" scheduler                                      \
    "[device cpu]\nplugin = openmp\nthreads = 1\n"                             \
    "[device card]\nplugin = remote\n"

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    rig_request request; /* one row, 5 steps */
    cellgate_report report;
    cellgate_error error;
} set_up;

static void begin_with(set_up *with, const char *config, cellgate_model *model)
{
    uint64_t random = 1;

    with->runtime = rig_runtime(config);
    with->model = model;
    with->session = rig_session(with->runtime, model, NULL, NULL);
    with->report = (cellgate_report){ .struct_size = sizeof with->report };
    with->error = (cellgate_error)CELLGATE_ERROR_INIT;
    rig_request_init(&with->request, with->session, model, 1, 5, 11, &random);
}

/* The CPU is measured to be the best, and the card comes next. */
static void begin(set_up *with, const char *config)
{
    begin_with(with, config, cost_rig_model());
    cost_rig_set(with->session, "cpu", "t1", 1e-5, 1e-4);
    cost_rig_set(with->session, "card", "any", 1e-3, 1e-2);
}

static void end(set_up *with)
{
    rig_request_finish(&with->request);
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

static cellgate_status run(set_up *with)
{
    return cellgate_run(with->session, &with->request.request, &with->report,
                        &with->error);
}

/* Often enough to be remembered in every place. */
static void run_often(set_up *with)
{
    for (int at = 0; at < 4; at++)
        if (run(with) != CELLGATE_OK)
            fail_msg("%s", with->error.text);
}

static void expect_device(set_up *with, const char *device)
{
    run_often(with);
    assert_string_equal(with->report.device, device);
}

static cg_device *device_named(const set_up *with, const char *name)
{
    for (size_t at = 0; at < with->session->candidate_count; at++)
        if (strcmp(cg_candidate_name(&with->session->candidates[at]), name) ==
            0)
            return with->session->candidates[at].device;
    fail_msg("there is no device %s", name);
    return NULL;
}

/* ---- The pin ------------------------------------------------------------ */

static void what_is_measured_overturns_it(void **state)
{
    set_up with;

    (void)state;
    begin(&with, CONFIG(""));
    expect_device(&with, "cpu");
    cost_rig_set(with.session, "card", "any", 1e-7, 1e-6);
    expect_device(&with, "card");
    cost_rig_set(with.session, "cpu", "t1", 1e-9, 1e-8);
    expect_device(&with, "cpu");
    end(&with);
}

static void a_device_that_leaves_is_left(void **state)
{
    set_up with;

    (void)state;
    begin(&with, CONFIG("readmit = 3600\n"));
    expect_device(&with, "cpu");
    cg_device_quarantine(device_named(&with, "cpu"),
                         cg_device_epoch(device_named(&with, "cpu")),
                         CELLGATE_DEVICE_FAILED, "a test says so");
    expect_device(&with, "card");
    end(&with);
}

/* The class of a shape is taken apart because of another shape in it. */
static void a_class_that_is_taken_apart(void **state)
{
    const cg_recall *recall = NULL;
    set_up with;

    (void)state;
    begin(&with, CONFIG(""));
    run_often(&with);
    for (size_t at = 0; at < CG_RECALLS; at++)
        if (with.session->recalls.of[at].known)
            recall = &with.session->recalls.of[at];
    assert_non_null(recall);
    assert_false(recall->pin.narrow);
    assert_true(cg_router_narrow(
        with.session->router, with.session,
        &(cg_call){ .request = &with.request.request, .batch = 1 }));
    run_often(&with);
    assert_true(recall->pin.narrow);
    end(&with);
}

/* Rules are for shapes: of requests that take turns each finds its own. */
static void rules_are_looked_at_each_time(void **state)
{
    uint64_t random = 2;
    rig_request many;
    set_up with;

    (void)state;
    begin(&with, CONFIG("[pin many]\ndevice = card\nbatch = 2-\n"));
    rig_request_init(&many, with.session, with.model, 2, 5, 0, &random);
    for (int turn = 0; turn < 3; turn++) {
        expect_device(&with, "cpu");
        rig_run(with.session, &many, &with.report);
        rig_run(with.session, &many, &with.report);
        assert_string_equal(with.report.device, "card");
    }
    rig_request_finish(&many);
    end(&with);
}

/* ---- What it is given --------------------------------------------------- */

static cellgate_model *embedding_model(void)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t ids;

    rig_model_begin(&rig, 4);
    ids = rig_input(&rig, CG_UNKNOWN, 0);
    rig_lstm_init(&lstm, 3, 6);
    lstm.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, rig_embedding(&rig, ids, 11, 3), &lstm);
    rig_output(&rig, lstm.last);
    return rig_model_end(&rig);
}

static void expect_refused(set_up *with, cellgate_status status,
                           const char *text)
{
    assert_int_equal(run(with), status);
    if (strstr(with->error.text, text) == NULL)
        fail_msg("it says: %s", with->error.text);
}

/* The numbers are the application's, which writes others into the same memory.
 */
static void ids_are_checked_each_time(void **state)
{
    int32_t *ids;
    set_up with;

    (void)state;
    begin_with(&with, CONFIG(""), embedding_model());
    ids = with.request.inputs[0].tensor.data;
    run_often(&with);
    ids[3] = 11;
    expect_refused(&with, CELLGATE_OUT_OF_RANGE, "step 3");
    ids[3] = 10;
    run_often(&with);
    ids[4] = -1;
    expect_refused(&with, CELLGATE_OUT_OF_RANGE, "step 4");
    end(&with);
}

static void converted_ids_are_checked_each_time(void **state)
{
    float ids[5] = { 1, 2, 3, 4, 5 };
    void *given;
    set_up with;

    (void)state;
    begin_with(&with, CONFIG(""), embedding_model());
    given = with.request.inputs[0].tensor.data;
    with.request.inputs[0].tensor.data = ids;
    with.request.inputs[0].tensor.dtype = CELLGATE_F32;
    run_often(&with);
    ids[2] = 3.5f;
    expect_refused(&with, CELLGATE_OUT_OF_RANGE, "number 2");
    ids[2] = 3;
    run_often(&with);
    with.request.inputs[0].tensor.data = given;
    with.request.inputs[0].tensor.dtype = CELLGATE_I32;
    run_often(&with);
    end(&with);
}

static void lengths_are_checked_each_time(void **state)
{
    int32_t lengths[1] = { 3 };
    set_up with;

    (void)state;
    begin(&with, CONFIG(""));
    run_often(&with);
    for (int turn = 0; turn < 2; turn++) {
        with.request.inputs[0].lengths = lengths;
        lengths[0] = 6;
        expect_refused(&with, CELLGATE_OUT_OF_RANGE, "length 6 of row 0");
        lengths[0] = 5;
        run_often(&with);
    }
    with.request.inputs[0].lengths = NULL;
    end(&with);
}

/* Of the same structs, too, everything may change. */
static void other_shapes_are_checked(void **state)
{
    cellgate_tensor *x;
    set_up with;

    (void)state;
    begin(&with, CONFIG(""));
    x = &with.request.inputs[0].tensor;
    run_often(&with);
    x->shape[2] = 3;
    expect_refused(&with, CELLGATE_BAD_SHAPE, "(1, 5, 3)");
    x->shape[2] = 4;
    x->rank = 2;
    expect_refused(&with, CELLGATE_BAD_SHAPE, "(1, 5)");
    x->rank = 3;
    x->dtype = 99;
    expect_refused(&with, CELLGATE_INVALID, "dtype number 99");
    x->dtype = CELLGATE_F32;
    run_often(&with);
    x->shape[0] = -1;
    expect_refused(&with, CELLGATE_BAD_SHAPE, "batch is -1");
    x->shape[0] = 1;
    with.request.outputs[0].shape[1] = 2;
    expect_refused(&with, CELLGATE_BAD_SHAPE, "(1, 2)");
    with.request.outputs[0].shape[1] = 3;
    with.request.request.output_count = 2;
    expect_refused(&with, CELLGATE_INVALID, "2 outputs");
    with.request.request.output_count = 1;
    run_often(&with);
    end(&with);
}

static void missing_memory_is_noticed(void **state)
{
    void *data;
    set_up with;

    (void)state;
    begin(&with, CONFIG(""));
    data = with.request.inputs[0].tensor.data;
    run_often(&with);
    with.request.inputs[0].tensor.data = NULL;
    expect_refused(&with, CELLGATE_INVALID, "has no data");
    with.request.inputs[0].tensor.data = data;
    with.request.request.inputs = NULL;
    expect_refused(&with, CELLGATE_INVALID, "are NULL");
    with.request.request.inputs = with.request.inputs;
    run_often(&with);
    end(&with);
}

/* x [.][.][4]; h0 and c0 [.][6], which the LSTM begins with. h0 may be an
   output as well. */
static cellgate_model *stateful_model(bool gives_back)
{
    int32_t states[2], x;
    rig_model rig;
    rig_lstm lstm;

    rig_model_begin(&rig, 4);
    x = rig_input(&rig, CG_UNKNOWN, 4);
    for (int at = 0; at < 2; at++)
        states[at] = rig_row_input(&rig, 6);
    rig_lstm_init(&lstm, 4, 6);
    lstm.initial[0] = states[0];
    lstm.initial[1] = states[1];
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, rig_dense(&rig, lstm.last, 6, 6, CELLGATE_LINEAR));
    if (gives_back)
        rig_output(&rig, states[0]);
    return rig_model_end(&rig);
}

/* What a session on the host makes of it that has seen nothing. */
static float *wanted_of(const set_up *with, rig_request *request)
{
    cellgate_session *fresh =
        rig_session(with->runtime, with->model, "host", NULL);
    float *wanted;
    size_t count;

    rig_run(fresh, request, NULL);
    wanted = rig_outputs(request, &count);
    cellgate_session_destroy(fresh);
    return wanted;
}

typedef struct expected_run {
    rig_request request;
    float *wanted;
} expected_run;

static void expected_run_init(expected_run *of, const set_up *with,
                              uint64_t *random)
{
    rig_request_init(&of->request, with->session, with->model, 1, 5, 0, random);
    of->wanted = wanted_of(with, &of->request);
}

static void expected_run_finish(expected_run *of)
{
    free(of->wanted);
    rig_request_finish(&of->request);
}

static void expect_run(cellgate_session *session, expected_run *of)
{
    memset(of->request.outputs[0].data, 0x7f, 6 * sizeof(float));
    rig_run(session, &of->request, NULL);
    rig_expect(&of->request, of->wanted, 1e-5);
}

/* h0 is given back where it lies already. */
static void expect_in_place(cellgate_session *session, expected_run *of)
{
    void *apart = of->request.outputs[1].data;

    of->request.outputs[1].data = of->request.inputs[1].tensor.data;
    expect_run(session, of);
    of->request.outputs[1].data = apart;
    memset(apart, 0x7f, 6 * sizeof(float));
}

/* Also initial states, and an input that is given back. */
static void follow_all(bool gives_back)
{
    static const char *const devices[] = { "cpu", "card", "host" };
    expected_run runs[2];
    uint64_t random = 7;
    set_up with;

    begin_with(&with, CONFIG(""), stateful_model(gives_back));
    expected_run_init(&runs[0], &with, &random);
    expected_run_init(&runs[1], &with, &random);
    for (size_t on = 0; on < 3; on++) {
        cellgate_session *session =
            rig_session(with.runtime, with.model, devices[on], NULL);

        for (int turn = 0; turn < 4; turn++)
            expect_run(session, &runs[turn % 2]);
        for (int turn = 0; turn < 4 && gives_back; turn++)
            expect_in_place(session, &runs[turn % 2]);
        for (int turn = 0; turn < 4; turn++)
            expect_run(session, &runs[turn % 2]);
        cellgate_session_destroy(session);
    }
    expected_run_finish(&runs[0]);
    expected_run_finish(&runs[1]);
    end(&with);
}

static void all_that_moves_is_followed(void **state)
{
    (void)state;
    follow_all(false);
    follow_all(true);
}

/* Structs that grow in a later version, with zeros in what is not known here.
 */
static void structs_of_another_size(void **state)
{
    struct {
        cellgate_input known;
        uint64_t later;
    } input = { .later = 0 };
    set_up with;

    (void)state;
    begin(&with, CONFIG(""));
    run_often(&with);
    input.known = with.request.inputs[0];
    input.known.struct_size = sizeof input;
    with.request.request.inputs = &input.known;
    run_often(&with);
    input.later = 1;
    expect_refused(&with, CELLGATE_INVALID, "members that this libcellgate");
    with.request.request.inputs = with.request.inputs;
    run_often(&with);
    end(&with);
}

/* Streams carry their own state, whoever has used the tensors before. */
static void streams_are_kept_apart(void **state)
{
    cellgate_stream *streams[2];
    float got[4][3] = { { 0 } };
    set_up with;

    (void)state;
    begin(&with, CONFIG(""));
    for (int at = 0; at < 2; at++)
        assert_int_equal(
            cellgate_stream_create(with.session, 1, &streams[at], NULL),
            CELLGATE_OK);
    for (int at = 0; at < 4; at++) {
        with.request.request.stream = streams[at % 2];
        assert_int_equal(run(&with), CELLGATE_OK);
        memcpy(got[at], with.request.outputs[0].data, sizeof got[at]);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    assert_memory_equal(got[2], got[3], sizeof got[2]);
    assert_memory_not_equal(got[0], got[2], sizeof got[0]);
    for (int at = 0; at < 2; at++)
        cellgate_stream_destroy(streams[at]);
    end(&with);
}

/* ---- Several threads ---------------------------------------------------- */

#define THREADS 12 /* more than have places of their own */

typedef struct thread {
    pthread_t thread;
    cellgate_session *session;
    rig_request requests[2];
    float *wanted[2];
    cellgate_status status;
    size_t wrong;
} thread;

static void *run_in_turns(void *argument)
{
    thread *of = argument;

    for (int at = 0; at < 200 && of->status == CELLGATE_OK; at++) {
        rig_request *request = &of->requests[at % 3 == 2];
        float *y = request->outputs[0].data;
        const size_t bytes = 3 * sizeof *y;

        memset(y, 0x7f, bytes);
        of->status = cellgate_run(of->session, &request->request, NULL, NULL);
        of->wrong += memcmp(y, of->wanted[at % 3 == 2], bytes) != 0;
    }
    return NULL;
}

/* Bit for bit what one thread gets in a session that has seen nothing else. */
static void threads_have_their_own(void **state)
{
    static thread threads[THREADS];
    uint64_t random = 3;
    set_up with;

    (void)state;
    begin(&with, CONFIG("learn = no\n"));
    for (int at = 0; at < THREADS; at++) {
        thread *of = &threads[at];

        *of = (thread){ .session = with.session };
        for (int which = 0; which < 2; which++) {
            cellgate_session *fresh =
                rig_session(with.runtime, with.model, "cpu", "t1");
            size_t count;

            rig_request_init(&of->requests[which], fresh, with.model, 1 + which,
                             5, 0, &random);
            rig_run(fresh, &of->requests[which], NULL);
            of->wanted[which] = rig_outputs(&of->requests[which], &count);
            cellgate_session_destroy(fresh);
        }
    }
    cost_rig_set(with.session, "card", "any", 1e3, 1e4); /* none goes there */
    for (int at = 0; at < THREADS; at++)
        assert_int_equal(pthread_create(&threads[at].thread, NULL, run_in_turns,
                                        &threads[at]),
                         0);
    for (int at = 0; at < THREADS; at++) {
        thread *of = &threads[at];

        pthread_join(of->thread, NULL);
        assert_int_equal(of->status, CELLGATE_OK);
        assert_int_equal(of->wrong, 0);
        for (int which = 0; which < 2; which++) {
            free(of->wanted[which]);
            rig_request_finish(&of->requests[which]);
        }
    }
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_measured_overturns_it),
        cmocka_unit_test(a_device_that_leaves_is_left),
        cmocka_unit_test(a_class_that_is_taken_apart),
        cmocka_unit_test(rules_are_looked_at_each_time),
        cmocka_unit_test(ids_are_checked_each_time),
        cmocka_unit_test(converted_ids_are_checked_each_time),
        cmocka_unit_test(lengths_are_checked_each_time),
        cmocka_unit_test(other_shapes_are_checked),
        cmocka_unit_test(missing_memory_is_noticed),
        cmocka_unit_test(all_that_moves_is_followed),
        cmocka_unit_test(structs_of_another_size),
        cmocka_unit_test(streams_are_kept_apart),
        cmocka_unit_test(threads_have_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
