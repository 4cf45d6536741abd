/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thousand requests from eight threads over three devices, one of which fails
 * at random moments. Half of the threads call cellgate_run(), half submit and
 * wait; half of the requests are of streams, whose answers show what was
 * computed twice or not at all.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/unit/three_devices.h"

#define CALLERS 8
#define REQUESTS 125 /* of each */
#define AT_ONCE 5    /* of one caller, where it submits */
#define ROWS 2       /* of a stream */

/* A request, and what the host ops give for it. */
typedef struct asked {
    rig_request request;
    float *wanted;
    cellgate_ticket *ticket;
} asked;

typedef struct caller {
    pthread_t thread;
    cellgate_session *session;
    cellgate_stream *stream;
    bool submits;
    asked all[REQUESTS];
    int right, wrong;
    int failed;  /* as one that falls back never is told */
    int refused; /* anything else */
} caller;

static three_devices devices;
static caller callers[CALLERS];

static void ask(caller *self, asked *of, bool streams,
                cellgate_stream *straight, uint64_t *random)
{
    const int64_t steps = three_steps[rig_between(random, 0, THREE_STEPS - 1)];
    size_t count;

    rig_request_init(&of->request, devices.host, devices.model,
                     streams ? ROWS : rig_between(random, 1, 4), steps, 0,
                     random);
    of->request.request.stream = streams ? straight : NULL;
    rig_run(devices.host, &of->request, NULL);
    of->wanted = rig_outputs(&of->request, &count);
    of->request.request.stream = streams ? self->stream : NULL;
    for (size_t at = 0; at < count; at++)
        ((float *)of->request.outputs[0].data)[at] = -9;
}

static void caller_init(caller *self, int number)
{
    uint64_t random = (uint64_t)number * 97 + 13;
    cellgate_stream *straight;

    *self = (caller){ .session = devices.session, .submits = number % 2 != 0 };
    assert_int_equal(
        cellgate_stream_create(devices.session, ROWS, &self->stream, NULL),
        CELLGATE_OK);
    assert_int_equal(
        cellgate_stream_create(devices.host, ROWS, &straight, NULL),
        CELLGATE_OK);
    for (int at = 0; at < REQUESTS; at++)
        ask(self, &self->all[at], at % 2 != 0, straight, &random);
    cellgate_stream_destroy(straight);
}

static void caller_finish(caller *self)
{
    for (int at = 0; at < REQUESTS; at++) {
        free(self->all[at].wanted);
        rig_request_finish(&self->all[at].request);
    }
    cellgate_stream_destroy(self->stream);
}

static void judge(caller *self, const asked *of, cellgate_status status)
{
    if (status == CELLGATE_DEVICE_FAILED)
        self->failed++;
    else if (status != CELLGATE_OK)
        self->refused++;
    else if (three_devices_agree(&of->request, of->wanted))
        self->right++;
    else
        self->wrong++;
}

/* Until it succeeds, as an application would. */
static void run_one(caller *self, asked *of)
{
    cellgate_status status;

    do {
        status = cellgate_run(self->session, &of->request.request, NULL, NULL);
        judge(self, of, status);
    } while (status == CELLGATE_DEVICE_FAILED);
}

/* One that fails is submitted again if it is alone: what comes later in a
   stream stands on it. */
static void submit_some(caller *self, asked *first, int count)
{
    int repeat = 0;

    for (int at = 0; at < count; at++)
        if (cellgate_submit(self->session, &first[at].request.request, NULL,
                            &first[at].ticket, NULL) != CELLGATE_OK)
            self->refused++;
    for (int at = 0; at < count; at++) {
        cellgate_status status =
            cellgate_wait(first[at].ticket, -1, NULL, NULL);

        judge(self, &first[at], status);
        cellgate_ticket_destroy(first[at].ticket);
        repeat += status == CELLGATE_DEVICE_FAILED;
    }
    if (repeat > 0 && count == 1)
        submit_some(self, first, 1);
}

static int at_once = AT_ONCE;

static void *call(void *argument)
{
    caller *self = argument;

    for (int at = 0; at < REQUESTS; at += self->submits ? at_once : 1)
        if (self->submits)
            submit_some(self, &self->all[at],
                        at + at_once <= REQUESTS ? at_once : REQUESTS - at);
        else
            run_one(self, &self->all[at]);
    return NULL;
}

/* The failures that callers were told. */
static int stress(const char *scheduler, const char *faults)
{
    int failed = 0;

    three_devices_begin(&devices, scheduler, faults);
    for (int at = 0; at < CALLERS; at++)
        caller_init(&callers[at], at);
    rig_log_watch("random fault");
    for (int at = 0; at < CALLERS; at++)
        assert_int_equal(
            pthread_create(&callers[at].thread, NULL, call, &callers[at]), 0);
    for (int at = 0; at < CALLERS; at++)
        pthread_join(callers[at].thread, NULL);
    for (int at = 0; at < CALLERS; at++) {
        assert_int_equal(callers[at].wrong, 0);
        assert_int_equal(callers[at].refused, 0);
        assert_int_equal(callers[at].right, REQUESTS);
        failed += callers[at].failed;
        caller_finish(&callers[at]);
    }
    three_devices_end(&devices);
    assert_true(rig_log_watched() > 0);
    return failed;
}

static const char random_faults[] = "fail_percent = 30\nfault_seed = 7\n";

static void every_answer_is_right(void **state)
{
    (void)state;
    at_once = AT_ONCE;
    assert_int_equal(stress("fallback = run\nfailures = 0", random_faults), 0);
}

/* Lost now and then as well, and brought back. */
static void devices_come_and_go(void **state)
{
    (void)state;
    at_once = AT_ONCE;
    assert_int_equal(stress("fallback = run\nfailures = 4\nreadmit = 2ms",
                            "fail_percent = 10\nlose_percent = "
                            "2\nfault_seed = 7\n"),
                     0);
}

static void every_fault_is_told(void **state)
{
    int failed;

    (void)state;
    at_once = 1;
    failed = stress("fallback = never\nfailures = 0", random_faults);
    assert_int_equal(failed, rig_log_watched());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_is_right),
        cmocka_unit_test(devices_come_and_go),
        cmocka_unit_test(every_fault_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
