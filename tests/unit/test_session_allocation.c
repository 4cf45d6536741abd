/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of creating a session and of its first run fails once: the
 * status says so, and nothing stays behind.
 */
#include "config.h"

#include <stdlib.h>

#include "tests/unit/fail_allocation.h"
#include "tests/unit/session_rig.h"

static const char config[] = "[device cpu]\nplugin = openmp\n"
                             "[device card]\nplugin = remote\n";
static cellgate_runtime *runtime;
static cellgate_model *model;
static rig_request request;

static int set_up(void **state)
{
    cellgate_session *session;
    uint64_t random = 5;
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    (void)state;
    runtime = rig_runtime(config);
    rig_model_begin(&rig, 9);
    x = rig_input(&rig, CG_UNKNOWN, 6);
    rig_lstm_init(&lstm, 6, 8);
    lstm.shape.directions = 2;
    lstm.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, x, &lstm);
    x = rig_simple(&rig, CG_REVERSE, lstm.sequence);
    rig_output(&rig, rig_dense(&rig, x, 16, 3, CELLGATE_LINEAR));
    rig_output(&rig, lstm.final[2]);
    model = rig_model_end(&rig);
    session = rig_session(runtime, model, "host", NULL);
    rig_request_init(&request, session, model, 2, 3, 0, &random);
    rig_request_mask(&request, 0, &random);
    cellgate_session_destroy(session);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_request_finish(&request);
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
    return 0;
}

static cellgate_status create_and_run(void *context)
{
    cellgate_session_options options = { .struct_size = sizeof options };
    cellgate_stream *stream = NULL;
    cellgate_session *session;
    cellgate_status status;

    options.device = context;
    status = cellgate_session_create(runtime, model, &options, &session, NULL);
    if (status != CELLGATE_OK)
        return status;
    status = cellgate_stream_create(session, 2, &stream, NULL);
    request.request.stream = stream;
    if (status == CELLGATE_OK)
        status = cellgate_run(session, &request.request, NULL, NULL);
    cellgate_stream_destroy(stream);
    cellgate_session_destroy(session);
    return status;
}

/*
 * A plan that finds no memory is tried once more with less, and ordinary memory
 * does for pinned, so an attempt may succeed all the same; then nothing more is
 * asked of it.
 */
static void each_allocation_may_fail(const char *device)
{
    char name[8];
    bool failed = true;
    size_t nth, recovered = 0;

    /* Once without failures: devices are opened for the process' lifetime. */
    snprintf(name, sizeof name, "%s", device);
    assert_int_equal(create_and_run(name), CELLGATE_OK);
    for (nth = 1; failed; nth++) {
        cellgate_status status;

        fail_allocation_begin(nth);
        status = create_and_run(name);
        failed = fail_allocation_end();
        assert_int_equal(fail_allocation_live(), 0);
        if (failed && status == CELLGATE_OK)
            recovered++;
        else
            assert_int_equal(status, failed ? CELLGATE_NO_MEMORY : CELLGATE_OK);
    }
    assert_true(nth > 20);
    assert_true(recovered <= 4); /* of plans and pinned memory */
}

static void on_the_host(void **state)
{
    (void)state;
    each_allocation_may_fail("host");
}

static void on_a_device_on_its_caller(void **state)
{
    (void)state;
    each_allocation_may_fail("cpu");
}

static void on_a_device_behind_a_worker(void **state)
{
    (void)state;
    each_allocation_may_fail("card");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_host),
        cmocka_unit_test(on_a_device_on_its_caller),
        cmocka_unit_test(on_a_device_behind_a_worker),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
