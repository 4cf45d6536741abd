/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session, eight threads, shapes and masks that change from request to
 * request: bit for bit what one thread computes. And fork().
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/session_rig.h"

#define CALLERS 8
#define KINDS 6
#define ROUNDS 24

/* Four threads whatever the machine has, so that the team is there. */
static const char config[] = "[scheduler]\nthreads = 4\n"
                             "[device cpu]\nplugin = openmp\n"
                             "[device card]\nplugin = remote\n";
static cellgate_runtime *runtime;
static cellgate_model *model;

static cellgate_model *two_layers(void)
{
    rig_model rig;
    rig_lstm first, second;
    int32_t x;

    rig_model_begin(&rig, 3);
    x = rig_input(&rig, CG_UNKNOWN, 12);
    rig_lstm_init(&first, 12, 24);
    first.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, x, &first);
    rig_lstm_init(&second, 24, 16);
    second.shape.directions = 2;
    second.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, first.sequence, &second);
    rig_output(&rig, rig_dense(&rig, second.sequence, 32, 5, CELLGATE_TANH));
    rig_output(&rig, second.final[1]);
    return rig_model_end(&rig);
}

static int set_up(void **state)
{
    (void)state;
    runtime = rig_runtime(config);
    model = two_layers();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
    return 0;
}

/* Request number `kind`, always the same. */
static void make_request(rig_request *request, cellgate_session *session,
                         int kind)
{
    uint64_t random = (uint64_t)kind * 31 + 7;

    rig_request_init(request, session, model, 1 + kind * 5, 3 + kind * 4, 0,
                     &random);
    if (kind % 3 == 1)
        rig_request_lengths(request, 0, &random);
    else if (kind % 3 == 2)
        rig_request_mask(request, 0, &random);
}

typedef struct caller {
    pthread_t thread;
    cellgate_session *session;
    rig_request requests[KINDS];
    float *wanted[KINDS];
    size_t count[KINDS];
    int number;
    int wrong;
    int failed;
} caller;

static void *call_often(void *argument)
{
    caller *self = argument;

    for (int round = 0; round < ROUNDS; round++) {
        int kind = (round + self->number) % KINDS;
        rig_request *request = &self->requests[kind];
        float *got = self->wanted[kind];

        if (cellgate_run(self->session, &request->request, NULL, NULL) !=
            CELLGATE_OK) {
            self->failed++;
            continue;
        }
        for (size_t at = 0; at < request->request.output_count; at++) {
            const cellgate_tensor *output = &request->outputs[at];
            size_t size = 1;

            for (int32_t axis = 0; axis < output->rank; axis++)
                size *= (size_t)output->shape[axis];
            self->wrong += memcmp(output->data, got, size * sizeof *got) != 0;
            got += size;
        }
    }
    return NULL;
}

/* What one thread computes, in a session of its own. */
static void prepare(caller *callers, const char *device, const char *variant)
{
    cellgate_session *alone = rig_session(runtime, model, device, variant);

    for (int kind = 0; kind < KINDS; kind++)
        for (int at = 0; at < CALLERS; at++) {
            make_request(&callers[at].requests[kind], alone, kind);
            rig_run(alone, &callers[at].requests[kind], NULL);
            callers[at].wanted[kind] = rig_outputs(&callers[at].requests[kind],
                                                   &callers[at].count[kind]);
        }
    cellgate_session_destroy(alone);
}

static void run_together(const char *device, const char *variant)
{
    static caller callers[CALLERS];
    cellgate_session *session = rig_session(runtime, model, device, variant);

    memset(callers, 0, sizeof callers);
    prepare(callers, device, variant);
    for (int at = 0; at < CALLERS; at++) {
        callers[at].session = session;
        callers[at].number = at;
        assert_int_equal(
            pthread_create(&callers[at].thread, NULL, call_often, &callers[at]),
            0);
    }
    for (int at = 0; at < CALLERS; at++)
        pthread_join(callers[at].thread, NULL);
    for (int at = 0; at < CALLERS; at++) {
        assert_int_equal(callers[at].failed, 0);
        assert_int_equal(callers[at].wrong, 0);
        for (int kind = 0; kind < KINDS; kind++) {
            free(callers[at].wanted[kind]);
            rig_request_finish(&callers[at].requests[kind]);
        }
    }
    cellgate_session_destroy(session);
}

static void one_thread_variant_is_bit_identical(void **state)
{
    (void)state;
    run_together("cpu", "t1");
}

static void team_variant_is_bit_identical(void **state)
{
    (void)state;
    run_together("cpu", "t4");
}

static void worker_device_is_bit_identical(void **state)
{
    (void)state;
    run_together("card", NULL);
}

static void host_ops_are_bit_identical(void **state)
{
    (void)state;
    run_together("host", NULL);
}

/* Sessions are made and freed beside each other, too. */
static void *make_sessions(void *argument)
{
    int *failed = argument;

    for (int round = 0; round < 20; round++) {
        cellgate_session_options options = { .struct_size = sizeof options };
        cellgate_session *session;

        options.device = round % 2 ? "cpu" : "card";
        if (cellgate_session_create(runtime, model, &options, &session, NULL) ==
            CELLGATE_OK)
            cellgate_session_destroy(session);
        else
            ++*failed;
    }
    return NULL;
}

static void sessions_are_made_side_by_side(void **state)
{
    pthread_t threads[CALLERS];
    int failed[CALLERS] = { 0 };

    (void)state;
    for (int at = 0; at < CALLERS; at++)
        assert_int_equal(
            pthread_create(&threads[at], NULL, make_sessions, &failed[at]), 0);
    for (int at = 0; at < CALLERS; at++) {
        pthread_join(threads[at], NULL);
        assert_int_equal(failed[at], 0);
    }
}

/* The number of what went wrong; 0: every call said FORKED. */
static int in_child(cellgate_session *session, rig_request *request)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *another;
    cellgate_stream *stream;

    if (cellgate_run(session, &request->request, NULL, &error) !=
        CELLGATE_FORKED)
        return 1;
    if (strstr(error.text, "fork") == NULL)
        return 2;
    if (cellgate_session_create(runtime, model, NULL, &another, NULL) !=
        CELLGATE_FORKED)
        return 3;
    if (cellgate_stream_create(session, 2, &stream, NULL) != CELLGATE_FORKED)
        return 4;
    cellgate_session_destroy(session);
    return 0;
}

static void a_child_is_told(void **state)
{
    const char *const devices[] = { "cpu", "card", "host" };

    (void)state;
    for (int at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(runtime, model, devices[at], NULL);
        rig_request request;
        pid_t child;
        int result;

        make_request(&request, session, 1);
        rig_run(session, &request, NULL);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(20);
            _exit(in_child(session, &request));
        }
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        assert_int_equal(WEXITSTATUS(result), 0);
        rig_run(session, &request, NULL);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_variant_is_bit_identical),
        cmocka_unit_test(team_variant_is_bit_identical),
        cmocka_unit_test(worker_device_is_bit_identical),
        cmocka_unit_test(host_ops_are_bit_identical),
        cmocka_unit_test(sessions_are_made_side_by_side),
        cmocka_unit_test(a_child_is_told),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
