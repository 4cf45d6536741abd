/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams over devices of which one fails at random moments: before a run, in
 * it, and after its results were written.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/three_devices.h"

#define ROWS 3
#define STEPS 600
#define FEATURES 4
#define HIDDEN 5 /* of the last layer */
#define STATES (2 * ROWS * (6 + 5))

static const char random_faults[] = "fail_percent = 40\nfault_seed = 11\n";

/* A sequence, its answer in one piece, and its final state, from the host. */
typedef struct passage {
    rig_request whole;
    float *wanted;
    float final[STATES];
} passage;

static void export_state(cellgate_stream *stream, float *to)
{
    for (size_t at = 0; at < cellgate_stream_state_count(stream); at++) {
        cellgate_tensor state = { .struct_size = sizeof state, .data = to };

        assert_int_equal(cellgate_stream_state_shape(stream, at, &state),
                         CELLGATE_OK);
        assert_int_equal(cellgate_stream_export(stream, at, &state, NULL),
                         CELLGATE_OK);
        to += state.shape[0] * state.shape[1] * state.shape[2];
    }
}

static cellgate_stream *new_stream(cellgate_session *session)
{
    cellgate_stream *stream = NULL;

    assert_int_equal(cellgate_stream_create(session, ROWS, &stream, NULL),
                     CELLGATE_OK);
    return stream;
}

static void passage_make(passage *of, const three_devices *with)
{
    cellgate_stream *stream = new_stream(with->host);
    uint64_t random = 5;
    size_t count;

    rig_request_init(&of->whole, with->host, with->model, ROWS, STEPS, 0,
                     &random);
    of->whole.request.stream = stream;
    rig_run(with->host, &of->whole, NULL);
    of->wanted = rig_outputs(&of->whole, &count);
    export_state(stream, of->final);
    cellgate_stream_destroy(stream);
}

static void passage_free(passage *of)
{
    free(of->wanted);
    rig_request_finish(&of->whole);
}

/* Steps [from, from + steps) of every row. */
static void cut(const float *whole, int64_t features, int64_t from,
                int64_t steps, float *piece)
{
    for (int64_t row = 0; row < ROWS; row++)
        memcpy(piece + row * steps * features,
               whole + (row * STEPS + from) * features,
               (size_t)(steps * features) * sizeof *piece);
}

static void piece_make(const passage *of, const three_devices *with,
                       int64_t from, int64_t steps, cellgate_stream *stream,
                       rig_request *piece, float *wanted)
{
    uint64_t random = 1;

    rig_request_init(piece, with->host, with->model, ROWS, steps, 0, &random);
    cut(of->whole.inputs[0].tensor.data, FEATURES, from, steps,
        piece->inputs[0].tensor.data);
    cut(of->wanted, HIDDEN, from, steps, wanted);
    piece->request.stream = stream;
}

/* Any of the lengths, while they fit. */
static int64_t next_steps(uint64_t *random, int64_t left)
{
    int64_t steps = three_steps[rig_between(random, 0, THREE_STEPS - 1)];

    return steps <= left ? steps : left;
}

static bool same_state(cellgate_stream *stream, const float *wanted)
{
    float state[STATES];

    export_state(stream, state);
    for (int at = 0; at < STATES; at++)
        if (!(state[at] - wanted[at] <= 1e-5f &&
              wanted[at] - state[at] <= 1e-5f))
            return false;
    return true;
}

static int device_number(const char *name)
{
    return strcmp(name, "cpu") == 0 ? 0 : strcmp(name, "card") == 0 ? 1 : 2;
}

/* In pieces, over all three devices, as if nothing had happened. */
static void a_stream_goes_on_elsewhere(void **state)
{
    float wanted[ROWS * 40 * HIDDEN];
    int answered[3] = { 0, 0, 0 };
    cellgate_stream *stream;
    uint64_t random = 3;
    three_devices with;
    passage of;

    (void)state;
    three_devices_begin(&with, "fallback = run\nfailures = 0", random_faults);
    passage_make(&of, &with);
    stream = new_stream(with.session);
    rig_log_watch("random fault");
    for (int64_t from = 0, steps; from < STEPS; from += steps) {
        cellgate_report report = { .struct_size = sizeof report };
        rig_request piece;

        steps = next_steps(&random, STEPS - from);
        piece_make(&of, &with, from, steps, stream, &piece, wanted);
        rig_run(with.session, &piece, &report);
        assert_true(three_devices_agree(&piece, wanted));
        answered[device_number(report.device)]++;
        rig_request_finish(&piece);
    }
    assert_true(same_state(stream, of.final));
    assert_true(rig_log_watched() > 0);
    assert_true(answered[0] > 0 && answered[1] > 0 && answered[2] > 0);
    cellgate_stream_destroy(stream);
    passage_free(&of);
    three_devices_end(&with);
}

/* Without falling back: every fault is an error, and changes nothing. */
static void a_failed_piece_is_repeated(void **state)
{
    float wanted[ROWS * 40 * HIDDEN];
    cellgate_stream *stream;
    uint64_t random = 3;
    three_devices with;
    int failures = 0;
    passage of;

    (void)state;
    three_devices_begin(&with, "fallback = never\nfailures = 0", random_faults);
    passage_make(&of, &with);
    stream = new_stream(with.session);
    rig_log_watch("random fault");
    for (int64_t from = 0, steps; from < STEPS;) {
        float before[STATES], after[STATES];
        cellgate_error error = CELLGATE_ERROR_INIT;
        rig_request piece;
        cellgate_status status;

        steps = next_steps(&random, STEPS - from);
        piece_make(&of, &with, from, steps, stream, &piece, wanted);
        export_state(stream, before);
        status = cellgate_run(with.session, &piece.request, NULL, &error);
        export_state(stream, after);
        if (status == CELLGATE_OK) {
            assert_true(three_devices_agree(&piece, wanted));
            from += steps;
        } else {
            assert_int_equal(status, CELLGATE_DEVICE_FAILED);
            assert_non_null(strstr(error.text, "card"));
            assert_memory_equal(before, after, sizeof before);
            failures++;
        }
        rig_request_finish(&piece);
    }
    assert_true(same_state(stream, of.final));
    assert_true(failures > 0);
    assert_int_equal(failures, rig_log_watched());
    cellgate_stream_destroy(stream);
    passage_free(&of);
    three_devices_end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_goes_on_elsewhere),
        cmocka_unit_test(a_failed_piece_is_repeated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
