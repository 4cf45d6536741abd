/* SPDX-License-Identifier: Apache-2.0 */
/* The state of streams: layout, export and import, reset, what wins. */
#include "config.h"

#include <math.h>

#include <stdlib.h>
#include <string.h>

#include "tests/unit/session_rig.h"

static const char config[] = "[device cpu]\nplugin = openmp\n"
                             "[device card]\nplugin = remote\n";
static const char *const devices[] = { "cpu", "card", "host" };
static cellgate_runtime *runtime;

/* An LSTM of 4, then one of two directions of 3. */
static cellgate_model *model;

static int set_up(void **state)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    (void)state;
    runtime = rig_runtime(config);
    rig_model_begin(&rig, 6);
    x = rig_input(&rig, CG_UNKNOWN, 2);
    rig_lstm_init(&lstm, 2, 4);
    rig_add_lstm(&rig, x, &lstm);
    x = lstm.sequence;
    rig_lstm_init(&lstm, 4, 3);
    lstm.shape.directions = 2;
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, lstm.sequence);
    rig_output(&rig, lstm.final[3]);
    model = rig_model_end(&rig);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
    return 0;
}

static void states_have_the_canonical_layout(void **state)
{
    const int64_t wanted[4][3] = {
        { 1, 5, 4 }, { 1, 5, 4 }, { 2, 5, 3 }, { 2, 5, 3 }
    };
    cellgate_session *session = rig_session(runtime, model, "host", NULL);
    cellgate_tensor shape = { .struct_size = sizeof shape };
    cellgate_stream *stream;

    (void)state;
    assert_int_equal(cellgate_stream_create(session, 5, &stream, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_stream_state_count(stream), 4);
    for (size_t at = 0; at < 4; at++) {
        assert_int_equal(cellgate_stream_state_shape(stream, at, &shape),
                         CELLGATE_OK);
        assert_int_equal(shape.rank, 3);
        assert_int_equal(shape.dtype, CELLGATE_F32);
        assert_memory_equal(shape.shape, wanted[at], sizeof wanted[at]);
    }
    assert_int_equal(cellgate_stream_state_shape(stream, 4, &shape),
                     CELLGATE_END);
    cellgate_stream_destroy(stream);
    assert_int_equal(cellgate_stream_create(session, 0, &stream, NULL),
                     CELLGATE_INVALID);
    assert_int_equal(
        cellgate_stream_create(session, INT64_MAX / 8, &stream, NULL),
        CELLGATE_NO_MEMORY);
    cellgate_session_destroy(session);
}

/* What comes out as a model's output is what the stream holds. */
static void the_final_state_is_exported(void **state)
{
    (void)state;
    for (int at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(runtime, model, devices[at], NULL);
        cellgate_tensor c = { .struct_size = sizeof c };
        float exported[2 * 3 * 3];
        cellgate_stream *stream;
        rig_request request;
        uint64_t random = 4;

        rig_request_init(&request, session, model, 3, 4, 0, &random);
        assert_int_equal(cellgate_stream_create(session, 3, &stream, NULL),
                         CELLGATE_OK);
        request.request.stream = stream;
        rig_run(session, &request, NULL);
        assert_int_equal(cellgate_stream_state_shape(stream, 3, &c),
                         CELLGATE_OK);
        c.data = exported;
        assert_int_equal(cellgate_stream_export(stream, 3, &c, NULL),
                         CELLGATE_OK);
        assert_memory_equal(exported + 9, request.outputs[1].data,
                            9 * sizeof *exported);
        cellgate_stream_destroy(stream);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
}

static void copy_state(cellgate_stream *from, cellgate_stream *to)
{
    float memory[128];

    for (size_t at = 0; at < cellgate_stream_state_count(from); at++) {
        cellgate_tensor tensor = { .struct_size = sizeof tensor };

        assert_int_equal(cellgate_stream_state_shape(from, at, &tensor),
                         CELLGATE_OK);
        tensor.data = memory;
        assert_int_equal(cellgate_stream_export(from, at, &tensor, NULL),
                         CELLGATE_OK);
        assert_int_equal(cellgate_stream_import(to, at, &tensor, NULL),
                         CELLGATE_OK);
    }
}

/* A stream that takes over another one's state goes on as that one does; one
   that is reset begins again. */
static void state_is_imported_and_reset(void **state)
{
    (void)state;
    for (int at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(runtime, model, devices[at], NULL);
        cellgate_stream *stream, *other;
        float *first, *second, *got;
        rig_request request;
        uint64_t random = 4;
        size_t count;

        rig_request_init(&request, session, model, 3, 4, 0, &random);
        assert_int_equal(cellgate_stream_create(session, 3, &stream, NULL),
                         CELLGATE_OK);
        assert_int_equal(cellgate_stream_create(session, 3, &other, NULL),
                         CELLGATE_OK);
        request.request.stream = stream;
        rig_run(session, &request, NULL);
        first = rig_outputs(&request, &count);
        copy_state(stream, other);
        rig_run(session, &request, NULL);
        second = rig_outputs(&request, &count);
        assert_memory_not_equal(first, second, count * sizeof *first);
        request.request.stream = other;
        rig_run(session, &request, NULL);
        got = rig_outputs(&request, &count);
        assert_memory_equal(got, second, count * sizeof *got);
        free(got);
        assert_int_equal(cellgate_stream_reset(other, NULL), CELLGATE_OK);
        rig_run(session, &request, NULL);
        got = rig_outputs(&request, &count);
        assert_memory_equal(got, first, count * sizeof *got);
        free(got);
        request.request.stream = NULL;
        rig_run(session, &request, NULL);
        got = rig_outputs(&request, &count);
        assert_memory_equal(got, first, count * sizeof *got);
        free(got);
        free(first);
        free(second);
        cellgate_stream_destroy(stream);
        cellgate_stream_destroy(other);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
}

/* In a stream a NaN stays in its row, and as long as the state does. */
static void nan_ends_with_a_reset(void **state)
{
    (void)state;
    for (int at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(runtime, model, devices[at], NULL);
        cellgate_stream *stream;
        rig_request request;
        uint64_t random = 4;
        float *clean, *spoiled, first;
        size_t count, row;

        rig_request_init(&request, session, model, 3, 4, 0, &random);
        rig_run(session, &request, NULL);
        clean = rig_outputs(&request, &count);
        assert_int_equal(cellgate_stream_create(session, 3, &stream, NULL),
                         CELLGATE_OK);
        request.request.stream = stream;
        first = ((float *)request.inputs[0].tensor.data)[0];
        ((float *)request.inputs[0].tensor.data)[0] = NAN;
        rig_run(session, &request, NULL);
        spoiled = request.outputs[0].data;
        row = 1;
        for (int32_t axis = 1; axis < request.outputs[0].rank; axis++)
            row *= (size_t)request.outputs[0].shape[axis];
        assert_true(isnan(spoiled[row - 1]));
        assert_memory_equal(spoiled + row, clean + row,
                            2 * row * sizeof *clean);
        ((float *)request.inputs[0].tensor.data)[0] = first;
        rig_run(session, &request, NULL);
        for (size_t k = 0; k < 3 * row; k++)
            assert_int_equal(isnan(spoiled[k]) != 0, k < row);
        assert_int_equal(cellgate_stream_reset(stream, NULL), CELLGATE_OK);
        rig_run(session, &request, NULL);
        rig_expect(&request, clean, 0);
        free(clean);
        rig_request_finish(&request);
        cellgate_stream_destroy(stream);
        cellgate_session_destroy(session);
    }
}

static void wrong_streams_are_refused(void **state)
{
    cellgate_session *session = rig_session(runtime, model, "cpu", NULL);
    cellgate_session *other = rig_session(runtime, model, "cpu", NULL);
    cellgate_tensor tensor = { .struct_size = sizeof tensor };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_stream *stream;
    rig_request request;
    uint64_t random = 4;
    float memory[64];

    (void)state;
    rig_request_init(&request, session, model, 3, 4, 0, &random);
    assert_int_equal(cellgate_stream_create(session, 2, &stream, NULL),
                     CELLGATE_OK);
    request.request.stream = stream;
    assert_int_equal(cellgate_run(session, &request.request, NULL, &error),
                     CELLGATE_BAD_SHAPE);
    assert_non_null(strstr(error.text, "2 rows; the request has 3"));
    assert_int_equal(cellgate_run(other, &request.request, NULL, &error),
                     CELLGATE_INVALID);
    assert_non_null(strstr(error.text, "another session"));
    assert_int_equal(cellgate_stream_state_shape(stream, 0, &tensor),
                     CELLGATE_OK);
    tensor.data = memory;
    tensor.shape[1] = 3;
    assert_int_equal(cellgate_stream_import(stream, 0, &tensor, &error),
                     CELLGATE_BAD_SHAPE);
    tensor.shape[1] = 2;
    tensor.dtype = CELLGATE_F64;
    assert_int_equal(cellgate_stream_export(stream, 0, &tensor, &error),
                     CELLGATE_BAD_SHAPE);
    tensor.dtype = CELLGATE_F32;
    tensor.data = NULL;
    assert_int_equal(cellgate_stream_export(stream, 0, &tensor, &error),
                     CELLGATE_INVALID);
    cellgate_stream_destroy(stream);
    cellgate_stream_destroy(NULL);
    rig_request_finish(&request);
    cellgate_session_destroy(session);
    cellgate_session_destroy(other);
}

/*
 * Where the graph gives initial states they win; the other direction, and the
 * other LSTMs, still start from the stream.
 */
static void the_graph_wins_over_the_stream(void **state)
{
    rig_model rig;
    rig_lstm first, second;
    cellgate_model *mixed;
    int32_t x;

    (void)state;
    rig_model_begin(&rig, 6);
    x = rig_input(&rig, CG_UNKNOWN, 2);
    rig_lstm_init(&first, 2, 3);
    rig_add_lstm(&rig, x, &first);
    rig_lstm_init(&second, 3, 3);
    second.shape.directions = 2;
    second.initial[0] = first.final[0];
    second.initial[1] = first.final[1];
    second.initial[2] = first.final[1]; /* h of direction 1; c has none */
    rig_add_lstm(&rig, first.sequence, &second);
    rig_output(&rig, second.sequence);
    mixed = rig_model_end(&rig);
    for (int at = 0; at < 2; at++) {
        cellgate_session *session =
            rig_session(runtime, mixed, devices[at], NULL);
        cellgate_session *host = rig_session(runtime, mixed, "host", NULL);
        cellgate_stream *stream, *reference;
        rig_request request;
        uint64_t random = 4;

        rig_request_init(&request, session, mixed, 3, 4, 0, &random);
        assert_int_equal(cellgate_stream_create(session, 3, &stream, NULL),
                         CELLGATE_OK);
        assert_int_equal(cellgate_stream_create(host, 3, &reference, NULL),
                         CELLGATE_OK);
        for (int round = 0; round < 5; round++) {
            bool streamed = round < 3; /* and then zeros where nothing is */
            float *wanted;
            size_t count;

            request.request.stream = streamed ? reference : NULL;
            rig_run(host, &request, NULL);
            wanted = rig_outputs(&request, &count);
            request.request.stream = streamed ? stream : NULL;
            rig_run(session, &request, NULL);
            rig_expect(&request, wanted, 1e-5);
            free(wanted);
        }
        cellgate_stream_destroy(stream);
        cellgate_stream_destroy(reference);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
        cellgate_session_destroy(host);
    }
    cellgate_model_destroy(mixed);
}

/* An encoder of open steps; its last output four times, to a decoder; and one
   more LSTM on the encoder's steps. */
static cellgate_model *autoencoder(void)
{
    const cg_node row = { .kind = CG_RESHAPE,
                          .as.reshape = { { 2, { 1, CG_UNKNOWN } }, 1 } };
    const cg_node repeat = { .kind = CG_REPEAT, .as.repeat = { 4, 1 } };
    rig_model rig;
    rig_lstm encoder, decoder, after;
    int32_t x;

    rig_model_begin(&rig, 8);
    x = rig_input(&rig, CG_UNKNOWN, 3);
    rig_lstm_init(&encoder, 3, 5);
    encoder.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, x, &encoder);
    rig_lstm_init(&decoder, 5, 4);
    x = rig_node(&rig, &row, encoder.last);
    rig_add_lstm(&rig, rig_node(&rig, &repeat, x), &decoder);
    rig_output(&rig, rig_dense(&rig, decoder.sequence, 4, 2, CELLGATE_LINEAR));
    rig_lstm_init(&after, 5, 3);
    after.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, encoder.sequence, &after);
    rig_output(&rig, after.last);
    return rig_model_end(&rig);
}

/* Each LSTM takes its steps from its own input, whatever the request brings. */
static void steps_change_within_a_model(void **state)
{
    static const int64_t steps[] = { 6, 2, 9, 4 };
    cellgate_model *changing = autoencoder();

    (void)state;
    for (int at = 0; at < 2; at++) {
        cellgate_session *session =
            rig_session(runtime, changing, devices[at], NULL);
        cellgate_session *host = rig_session(runtime, changing, "host", NULL);
        cellgate_stream *stream, *reference;
        uint64_t random = 4;

        assert_int_equal(cellgate_stream_create(session, 3, &stream, NULL),
                         CELLGATE_OK);
        assert_int_equal(cellgate_stream_create(host, 3, &reference, NULL),
                         CELLGATE_OK);
        for (int round = 0; round < 4; round++) {
            rig_request request;
            float *wanted;
            size_t count;

            rig_request_init(&request, session, changing, 3, steps[round], 0,
                             &random);
            if (round % 2 == 1)
                rig_request_mask(&request, 0, &random);
            request.request.stream = reference;
            rig_run(host, &request, NULL);
            wanted = rig_outputs(&request, &count);
            request.request.stream = stream;
            rig_run(session, &request, NULL);
            rig_expect(&request, wanted, 1e-5);
            free(wanted);
            rig_request_finish(&request);
        }
        cellgate_stream_destroy(stream);
        cellgate_stream_destroy(reference);
        cellgate_session_destroy(session);
        cellgate_session_destroy(host);
    }
    cellgate_model_destroy(changing);
}

/* ---- Every kind of recurrent node -------------------------------------- */

/* GRU of 4 and of 3 that starts from its state, SimpleRNN of 3, LSTM of 2 in
   both directions; the mask of the input is everybody's. */
static cellgate_model *mixed_model(void)
{
    rig_recurrent gru = { CG_GRU, 2, 4, true, 0, CG_NO_VALUE, 0, 0, 0 };
    rig_recurrent simple = {
        CG_SIMPLE_RNN, 4, 3, false, 0, CG_NO_VALUE, 0, 0, 0
    };
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    rig_model_begin(&rig, 8);
    x = rig_input(&rig, CG_UNKNOWN, 2);
    gru.mask = simple.mask = rig_mask(&rig, 0);
    rig_add_recurrent(&rig, x, &gru);
    rig_output(&rig, gru.final);
    rig_add_recurrent(&rig, gru.sequence, &simple);
    gru.input_size = gru.hidden_size = 3;
    gru.initial = simple.final;
    rig_add_recurrent(&rig, simple.sequence, &gru);
    rig_lstm_init(&lstm, 3, 2);
    lstm.shape.directions = 2;
    lstm.mask = gru.mask;
    rig_add_lstm(&rig, gru.sequence, &lstm);
    rig_output(&rig, lstm.sequence);
    rig_output(&rig, simple.last);
    return rig_model_end(&rig);
}

static void states_say_whose_they_are(void **state)
{
    static const struct {
        size_t node;
        const char *state;
        int64_t directions, width;
    } wanted[] = { { 0, "h", 1, 4 },
                   { 1, "h", 1, 3 },
                   { 2, "h", 1, 3 },
                   { 3, "h", 2, 2 },
                   { 3, "c", 2, 2 } };
    cellgate_model *mixed = mixed_model();
    cellgate_session *session = rig_session(runtime, mixed, "host", NULL);
    cellgate_state_info info = { .struct_size = sizeof info };
    cellgate_tensor shape = { .struct_size = sizeof shape };
    cellgate_stream *stream;

    (void)state;
    assert_int_equal(cellgate_stream_create(session, 7, &stream, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_stream_state_count(stream), 5);
    for (size_t at = 0; at < 5; at++) {
        assert_int_equal(cellgate_stream_state_get(stream, at, &info),
                         CELLGATE_OK);
        assert_int_equal(info.node, wanted[at].node);
        assert_string_equal(info.name, mixed->nodes[info.node].name);
        assert_string_equal(info.state, wanted[at].state);
        assert_int_equal(cellgate_stream_state_shape(stream, at, &shape),
                         CELLGATE_OK);
        assert_int_equal(shape.shape[0], wanted[at].directions);
        assert_int_equal(shape.shape[1], 7);
        assert_int_equal(shape.shape[2], wanted[at].width);
    }
    assert_int_equal(cellgate_stream_state_get(stream, 5, &info), CELLGATE_END);
    assert_int_equal(cellgate_stream_state_get(stream, 0, NULL),
                     CELLGATE_INVALID);
    cellgate_stream_destroy(stream);
    cellgate_session_destroy(session);
    cellgate_model_destroy(mixed);
}

/* The first `steps` steps of a request after `from`, with their mask. */
static void take_steps(rig_request *part, const rig_request *whole,
                       int64_t from, int64_t rows, int64_t steps, int64_t all)
{
    float *to = part->inputs[0].tensor.data;
    const float *x = whole->inputs[0].tensor.data;
    uint8_t *mask = (uint8_t *)(uintptr_t)part->inputs[0].mask;

    for (int64_t row = 0; row < rows; row++) {
        memcpy(to + row * steps * 2, x + (row * all + from) * 2,
               (size_t)steps * 2 * sizeof *to);
        memcpy(mask + row * steps, whole->inputs[0].mask + row * all + from,
               (size_t)steps);
    }
}

/*
 * The states of GRU and SimpleRNN after two requests on a stream are those of
 * one request with all steps, masked steps and rows without a valid one too.
 */
static void steps_in_pieces_are_steps_in_one(void **state)
{
    cellgate_model *mixed = mixed_model();

    (void)state;
    for (int at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(runtime, mixed, devices[at], NULL);
        rig_request whole, part;
        cellgate_stream *stream;
        uint64_t random = 9;

        assert_int_equal(cellgate_stream_create(session, 4, &stream, NULL),
                         CELLGATE_OK);
        rig_request_init(&whole, session, mixed, 4, 6, 0, &random);
        rig_request_mask(&whole, 0, &random);
        memset((uint8_t *)(uintptr_t)whole.inputs[0].mask, 0, 6);
        rig_request_init(&part, session, mixed, 4, 3, 0, &random);
        rig_request_mask(&part, 0, &random);
        part.request.stream = stream;
        for (int again = 0; again < 2; again++) {
            take_steps(&part, &whole, 0, 4, 3, 6);
            rig_run(session, &part, NULL);
            take_steps(&part, &whole, 3, 4, 3, 6);
            rig_run(session, &part, NULL);
            rig_run(session, &whole, NULL);
            for (int k = 0; k < 16; k++)
                assert_float_equal(((float *)part.outputs[0].data)[k],
                                   ((float *)whole.outputs[0].data)[k], 1e-6);
            assert_int_equal(cellgate_stream_reset(stream, NULL), CELLGATE_OK);
        }
        rig_request_finish(&whole);
        rig_request_finish(&part);
        cellgate_stream_destroy(stream);
        cellgate_session_destroy(session);
    }
    cellgate_model_destroy(mixed);
}

/* A device beside the host: the LSTM there, the rest here, one stream. */
static void devices_and_host_share_a_stream(void **state)
{
    cellgate_model *mixed = mixed_model();

    (void)state;
    for (int at = 0; at < 2; at++) {
        cellgate_session *session =
            rig_session(runtime, mixed, devices[at], NULL);
        cellgate_session *host = rig_session(runtime, mixed, "host", NULL);
        cellgate_stream *stream, *reference;
        rig_request request;
        uint64_t random = 4;

        rig_request_init(&request, session, mixed, 5, 4, 0, &random);
        rig_request_mask(&request, 0, &random);
        assert_int_equal(cellgate_stream_create(session, 5, &stream, NULL),
                         CELLGATE_OK);
        assert_int_equal(cellgate_stream_create(host, 5, &reference, NULL),
                         CELLGATE_OK);
        for (int round = 0; round < 3; round++) {
            float *wanted;
            size_t count;

            request.request.stream = reference;
            rig_run(host, &request, NULL);
            wanted = rig_outputs(&request, &count);
            request.request.stream = stream;
            rig_run(session, &request, NULL);
            rig_expect(&request, wanted, 1e-5);
            free(wanted);
        }
        cellgate_stream_destroy(stream);
        cellgate_stream_destroy(reference);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
        cellgate_session_destroy(host);
    }
    cellgate_model_destroy(mixed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_have_the_canonical_layout),
        cmocka_unit_test(the_final_state_is_exported),
        cmocka_unit_test(state_is_imported_and_reset),
        cmocka_unit_test(nan_ends_with_a_reset),
        cmocka_unit_test(wrong_streams_are_refused),
        cmocka_unit_test(the_graph_wins_over_the_stream),
        cmocka_unit_test(steps_change_within_a_model),
        cmocka_unit_test(states_say_whose_they_are),
        cmocka_unit_test(steps_in_pieces_are_steps_in_one),
        cmocka_unit_test(devices_and_host_share_a_stream),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
