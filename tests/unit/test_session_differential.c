/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs with random masks: whatever a session sends to a device must
 * come out as the host ops say, which handle masks natively, node by node. So
 * this tests partitioning, compaction, scattering, states and streams, on a
 * device that runs on its caller and on one that does not.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/session/session.h"
#include "tests/unit/session_rig.h"

#define VOCABULARY 11
#define GRAPHS 600

/*
 * Both compute in float32 or better. Differences grow along the stack of up
 * to four layers, and from step to step; 2e-5 of the largest magnitude is
 * some 200 roundings of float32, and far below what a wrong step would do.
 */
#define TOLERANCE 2e-5

static const char config[] = "[device cpu]\nplugin = openmp\n"
                             "[device card]\nplugin = remote\n"
                             "variants = exact\nrequire_pinned = yes\n";
static cellgate_runtime *runtime;

static int open_runtime(void **state)
{
    (void)state;
    runtime = rig_runtime(config);
    return 0;
}

static int close_runtime(void **state)
{
    (void)state;
    cellgate_runtime_destroy(runtime);
    return 0;
}

/* ---- Graphs ------------------------------------------------------------ */

/* The end of a graph that grows. */
typedef struct growth {
    rig_model rig;
    uint64_t random;
    int32_t value;
    int64_t features;
    bool rows;    /* `value` is [batch][features] */
    int32_t mask; /* of the steps of `value`, or CG_NO_VALUE */
    int outputs;
} growth;

static bool often(growth *graph)
{
    return rig_between(&graph->random, 0, 2) > 0;
}

static bool rarely(growth *graph)
{
    return rig_between(&graph->random, 0, 4) == 0;
}

static void note_output(growth *graph, int32_t value)
{
    if (graph->outputs < RIG_MOST - 1) {
        rig_output(&graph->rig, value);
        graph->outputs++;
    }
}

static int32_t gate_activation(growth *graph)
{
    return often(graph) ? CELLGATE_SIGMOID : CELLGATE_TANH;
}

static void grow_lstm_states(growth *graph, const rig_lstm *lstm)
{
    for (int32_t at = 0; at < 2 * lstm->shape.directions; at++)
        if (rarely(graph))
            note_output(graph, lstm->final[at]);
}

static void grow_lstm(growth *graph, const rig_lstm *states_from)
{
    int64_t hidden = rig_between(&graph->random, 1, 9);
    rig_lstm lstm;

    rig_lstm_init(&lstm, graph->features,
                  states_from != NULL ? states_from->shape.hidden_size
                                      : hidden);
    lstm.shape.directions = often(graph) ? 1 : 2;
    if (states_from != NULL) {
        lstm.shape.directions = states_from->shape.directions;
        memcpy(lstm.initial, states_from->final, sizeof lstm.initial);
    }
    lstm.shape.reverse = lstm.shape.directions == 1 && rarely(graph);
    for (int d = 0; d < 2; d++)
        lstm.shape.activations[d][0].kind = gate_activation(graph);
    lstm.zero_masked = rarely(graph);
    lstm.mask = often(graph) ? graph->mask : CG_NO_VALUE;
    rig_add_lstm(&graph->rig, graph->value, &lstm);
    grow_lstm_states(graph, &lstm);
    graph->features = lstm.shape.hidden_size * lstm.shape.directions;
    graph->rows = rarely(graph);
    if (graph->rows && rarely(graph))
        note_output(graph, lstm.sequence);
    graph->value = graph->rows ? lstm.last : lstm.sequence;
    if (states_from == NULL && !graph->rows && rarely(graph))
        grow_lstm(graph, &lstm);
}

static void grow_dense(growth *graph)
{
    int64_t units = rig_between(&graph->random, 1, 7);

    graph->value = rig_dense(&graph->rig, graph->value, graph->features, units,
                             often(graph) ? CELLGATE_TANH : CELLGATE_RELU);
    graph->features = units;
}

static void grow(growth *graph)
{
    int kind = rig_between(&graph->random, 0, 9);

    if (kind < 5 && !graph->rows)
        grow_lstm(graph, NULL);
    else if (kind < 7)
        grow_dense(graph);
    else if (kind == 7 && !graph->rows)
        graph->value = rig_simple(&graph->rig, CG_REVERSE, graph->value);
    else if (kind == 8)
        graph->value = rig_simple(&graph->rig, CG_SOFTMAX, graph->value);
    else
        graph->value =
            rig_activation(&graph->rig, graph->value, CELLGATE_SIGMOID);
    if (rarely(graph))
        note_output(graph, graph->value);
}

static void grow_root(growth *graph)
{
    graph->rows = false;
    if (often(graph)) {
        graph->features = rig_between(&graph->random, 1, 6);
        graph->value = rig_input(&graph->rig, CG_UNKNOWN, graph->features);
        graph->mask = rig_mask(&graph->rig, 0);
    } else {
        int32_t ids = rig_input(&graph->rig, CG_UNKNOWN, 0);

        graph->features = rig_between(&graph->random, 1, 6);
        graph->value =
            rig_embedding(&graph->rig, ids, VOCABULARY, graph->features);
        graph->mask = often(graph) ? rig_simple(&graph->rig, CG_NONZERO, ids)
                                   : rig_mask(&graph->rig, 0);
    }
}

static cellgate_model *random_model(uint64_t seed)
{
    growth graph = { .random = seed * 77 + 5 };

    rig_model_begin(&graph.rig, seed);
    grow_root(&graph);
    grow_lstm(&graph, NULL);
    for (int more = rig_between(&graph.random, 0, 4); more > 0; more--)
        grow(&graph);
    rig_output(&graph.rig, graph.value);
    return rig_model_end(&graph.rig);
}

/* ---- The tests --------------------------------------------------------- */

static void add_mask(rig_request *request, const cellgate_model *model,
                     int kind, uint64_t *random)
{
    if (model->inputs[0].mask == CG_NO_VALUE)
        return;
    if (kind == 1)
        rig_request_lengths(request, 0, random);
    else if (kind == 2)
        rig_request_mask(request, 0, random);
}

static void compare_request(cellgate_session *session,
                            cellgate_session *reference, rig_request *request)
{
    float *wanted;
    size_t count;

    rig_run(reference, request, NULL);
    wanted = rig_outputs(request, &count);
    for (size_t at = 0; at < request->request.output_count; at++)
        memset(request->outputs[at].data, 0x7f, 4); /* not what it was */
    rig_run(session, request, NULL);
    rig_expect(request, wanted, TOLERANCE);
    free(wanted);
}

/* Whoever has seen these tensors, or such as these, is compared with one on the
   host that has not. */
static void compare_fresh(cellgate_session *session, rig_request *request)
{
    cellgate_session *fresh =
        rig_session(runtime, session->model, "host", NULL);

    compare_request(session, fresh, request);
    cellgate_session_destroy(fresh);
}

/* Other numbers in the same tensors are other numbers. */
static void compare_refilled(cellgate_session *session, rig_request *request,
                             uint64_t *random)
{
    rig_request_refill(request, VOCABULARY, random);
    compare_fresh(session, request);
}

static size_t bytes_of(const cellgate_tensor *tensor)
{
    size_t bytes = cellgate_dtype_size(tensor->dtype);

    for (int32_t axis = 0; axis < tensor->rank; axis++)
        bytes *= (size_t)tensor->shape[axis];
    return bytes;
}

/* The first output is written over the first input. */
static void compare_in_place(cellgate_session *session, rig_request *request)
{
    cellgate_session *fresh =
        rig_session(runtime, session->model, "host", NULL);
    void *apart = request->outputs[0].data;
    float *wanted;
    size_t count;

    if (bytes_of(&request->outputs[0]) > bytes_of(&request->inputs[0].tensor))
        apart = NULL;
    rig_run(fresh, request, NULL);
    wanted = rig_outputs(request, &count);
    if (apart != NULL) {
        request->outputs[0].data = request->inputs[0].tensor.data;
        rig_run(session, request, NULL);
        rig_expect(request, wanted, TOLERANCE);
        request->outputs[0].data = apart;
    }
    free(wanted);
    cellgate_session_destroy(fresh);
}

/* Such tensors again, in memory that differs from one request to the next. */
static void compare_elsewhere(cellgate_session *session, rig_request *request,
                              int kind, uint64_t *random)
{
    const cellgate_tensor *x = &request->inputs[0].tensor;
    rig_request other;
    float *unwanted;

    rig_request_init(&other, session, session->model, x->shape[0], x->shape[1],
                     VOCABULARY, random);
    add_mask(&other, session->model, kind, random);
    compare_fresh(session, &other);
    compare_fresh(session, request);
    unwanted = other.outputs[0].data;
    other.outputs[0].data = NULL;
    rig_run(session, &other, NULL);
    other.outputs[0].data = unwanted;
    compare_fresh(session, &other);
    compare_in_place(session, request);
    rig_request_refill(request, VOCABULARY, random);
    compare_fresh(session, request);
    rig_request_finish(&other);
}

static void compare(cellgate_session *session, cellgate_session *reference,
                    const cellgate_model *model, int kind, uint64_t *random)
{
    int64_t batch = rig_between(random, 1, 6);
    int64_t steps = rig_between(random, 0, 9);
    rig_request request;

    rig_request_init(&request, session, model, batch, steps, VOCABULARY,
                     random);
    add_mask(&request, model, kind, random);
    compare_request(session, reference, &request);
    compare_refilled(session, &request, random);
    compare_elsewhere(session, &request, kind, random);
    rig_request_finish(&request);
}

static void compare_graphs(const char *device)
{
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        cellgate_model *model = random_model(seed);
        cellgate_session *session = rig_session(runtime, model, device, NULL);
        cellgate_session *reference = rig_session(runtime, model, "host", NULL);
        uint64_t random = seed * 1009 + 1;

        for (int round = 0; round < 9; round++)
            compare(session, reference, model, round % 3, &random);
        cellgate_session_destroy(session);
        cellgate_session_destroy(reference);
        cellgate_model_destroy(model);
    }
}

static void caller_device_agrees_with_host(void **state)
{
    (void)state;
    compare_graphs("cpu");
}

static void worker_device_agrees_with_host(void **state)
{
    (void)state;
    compare_graphs("card");
}

/* A sequence in pieces, with a stream, is the sequence as a whole. */
static void pieces_are_the_whole(const char *device, uint64_t seed)
{
    cellgate_model *model;
    cellgate_session *session, *reference;
    cellgate_stream *stream;
    rig_request whole, piece;
    uint64_t random = seed;
    int64_t done = 0, features;
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    rig_model_begin(&rig, seed);
    x = rig_input(&rig, CG_UNKNOWN, 3);
    rig_lstm_init(&lstm, 3, 5);
    rig_add_lstm(&rig, x, &lstm);
    x = rig_activation(&rig, lstm.sequence, CELLGATE_SOFTSIGN);
    rig_lstm_init(&lstm, 5, 4);
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, lstm.sequence);
    model = rig_model_end(&rig);
    session = rig_session(runtime, model, device, NULL);
    reference = rig_session(runtime, model, "host", NULL);
    rig_request_init(&whole, reference, model, 3, 10, 0, &random);
    rig_run(reference, &whole, NULL);
    features = whole.outputs[0].shape[2];
    assert_int_equal(cellgate_stream_create(session, 3, &stream, NULL),
                     CELLGATE_OK);
    for (int64_t steps = 1; done < 10; done += steps, steps++) {
        float *to, *from = whole.inputs[0].tensor.data;

        rig_request_init(&piece, session, model, 3, steps, 0, &random);
        to = piece.inputs[0].tensor.data;
        for (int64_t b = 0; b < 3; b++)
            memcpy(to + b * steps * 3, from + (b * 10 + done) * 3,
                   (size_t)steps * 3 * sizeof *to);
        piece.request.stream = stream;
        rig_run(session, &piece, NULL);
        for (int64_t b = 0; b < 3; b++)
            for (int64_t k = 0; k < steps * features; k++)
                assert_true(fabsf(((float *)piece.outputs[0]
                                       .data)[b * steps * features + k] -
                                  ((float *)whole.outputs[0]
                                       .data)[(b * 10 + done) * features + k]) <
                            1e-6f);
        rig_request_finish(&piece);
    }
    cellgate_stream_destroy(stream);
    rig_request_finish(&whole);
    cellgate_session_destroy(session);
    cellgate_session_destroy(reference);
    cellgate_model_destroy(model);
}

static void streams_carry_state(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        pieces_are_the_whole("cpu", seed);
        pieces_are_the_whole("card", seed);
        pieces_are_the_whole("host", seed);
    }
}

/* Through the same tensors, and perhaps in the memory of the one before it. */
static void a_new_stream_begins_at_zeros(void **state)
{
    static const char *const devices[] = { "cpu", "card", "host" };
    cellgate_model *model = random_model(3);

    (void)state;
    for (size_t at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(runtime, model, devices[at], NULL);
        uint64_t random = 5;
        rig_request request;
        float *wanted;
        size_t count;

        rig_request_init(&request, session, model, 2, 4, VOCABULARY, &random);
        rig_run(session, &request, NULL);
        wanted = rig_outputs(&request, &count);
        for (int round = 0; round < 4; round++) {
            assert_int_equal(cellgate_stream_create(
                                 session, 2, &request.request.stream, NULL),
                             CELLGATE_OK);
            rig_run(session, &request, NULL);
            rig_expect(&request, wanted, TOLERANCE);
            rig_run(session, &request, NULL);
            cellgate_stream_destroy(request.request.stream);
        }
        free(wanted);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
    cellgate_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caller_device_agrees_with_host),
        cmocka_unit_test(worker_device_agrees_with_host),
        cmocka_unit_test(streams_carry_state),
        cmocka_unit_test(a_new_stream_begins_at_zeros),
    };

    return cmocka_run_group_tests(tests, open_runtime, close_runtime);
}
