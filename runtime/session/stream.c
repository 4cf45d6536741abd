/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/plugin/process.h"
#include "runtime/session/session.h"
#include "runtime/session/stream.h"

static int64_t directions(const cg_graph *graph, size_t index)
{
    return cg_node_directions(cg_graph_state_node(graph, index));
}

static int64_t width(const cg_graph *graph, size_t index)
{
    return cg_node_state_width(cg_graph_state_node(graph, index),
                               graph->states[index].kind);
}

int64_t cg_stream_state_size(const cg_graph *graph, size_t index, int64_t batch)
{
    int64_t size;

    if (__builtin_mul_overflow(directions(graph, index) * width(graph, index),
                               batch, &size) ||
        size > INT64_MAX / 16)
        return -1;
    return size;
}

static cellgate_status stream_init(cellgate_stream *stream,
                                   cellgate_error *error)
{
    const cg_graph *graph = stream->graph;
    size_t count = graph->state_count, total = 0;

    for (size_t at = 0; at < count; at++) {
        int64_t size = cg_stream_state_size(graph, at, stream->batch);

        if (size < 0 || __builtin_add_overflow(total, (size_t)size, &total) ||
            total > SIZE_MAX / 2 / sizeof(float))
            return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "the state of %lld rows does not fit in "
                                 "memory",
                                 (long long)stream->batch);
    }
    stream->size = total;
    stream->states = calloc(count + 1, sizeof *stream->states);
    stream->memory = calloc(total + 1, sizeof *stream->memory);
    if (stream->states == NULL || stream->memory == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for the state of %lld rows",
                             (long long)stream->batch);
    total = 0;
    for (size_t at = 0; at < count; at++) {
        stream->states[at] = stream->memory + total;
        total += (size_t)cg_stream_state_size(graph, at, stream->batch);
    }
    return CELLGATE_OK;
}

cellgate_status cellgate_stream_create(cellgate_session *session, int64_t batch,
                                       cellgate_stream **stream,
                                       cellgate_error *error)
{
    cellgate_stream *made;
    cellgate_status status = cg_process_check(error);

    if (status != CELLGATE_OK)
        return status;
    if (session == NULL || stream == NULL || batch < 1)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a stream needs a session, a place for the result "
                             "and a batch of at least 1, not %lld",
                             (long long)batch);
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a "
                             "stream");
    made->graph = &session->graph;
    made->batch = batch;
    status = stream_init(made, error);
    if (status != CELLGATE_OK) {
        cellgate_stream_destroy(made);
        return status;
    }
    *stream = made;
    return CELLGATE_OK;
}

void cellgate_stream_destroy(cellgate_stream *stream)
{
    if (stream == NULL)
        return;
    free(stream->states);
    free(stream->memory);
    free(stream);
}

cellgate_status cellgate_stream_reset(cellgate_stream *stream,
                                      cellgate_error *error)
{
    if (stream == NULL)
        return cellgate_fail(error, CELLGATE_INVALID, "the stream is NULL");
    memset(stream->memory, 0, stream->size * sizeof *stream->memory);
    return CELLGATE_OK;
}

size_t cellgate_stream_state_count(const cellgate_stream *stream)
{
    return stream->graph->state_count;
}

cellgate_status cellgate_stream_state_shape(const cellgate_stream *stream,
                                            size_t index,
                                            cellgate_tensor *state)
{
    if (state == NULL || state->struct_size < CG_FIRST_TENSOR)
        return CELLGATE_INVALID;
    if (index >= cellgate_stream_state_count(stream))
        return CELLGATE_END;
    state->dtype = CELLGATE_F32;
    state->rank = 3;
    memset(state->shape, 0, sizeof state->shape);
    state->shape[0] = directions(stream->graph, index);
    state->shape[1] = stream->batch;
    state->shape[2] = width(stream->graph, index);
    return CELLGATE_OK;
}

cellgate_status cellgate_stream_state_get(const cellgate_stream *stream,
                                          size_t index,
                                          cellgate_state_info *info)
{
    static const char *const states[] = { "h", "c" };
    const cg_graph *graph = stream->graph;
    const cg_graph_state *state;
    cellgate_state_info full = { .struct_size = sizeof full };

    if (!cg_given_fillable(info))
        return CELLGATE_INVALID;
    if (index >= graph->state_count)
        return CELLGATE_END;
    state = &graph->states[index];
    full.node = graph->recurrent[state->recurrent];
    full.name = graph->nodes[full.node].name;
    full.state = states[state->kind];
    cellgate_struct_copy(info, &full);
    return CELLGATE_OK;
}

/* `bytes`: of the whole state. */
static cellgate_status check_state(const cellgate_stream *stream, size_t index,
                                   const cellgate_tensor *state, size_t *bytes,
                                   cellgate_error *error)
{
    cellgate_tensor wanted = { .struct_size = sizeof wanted };

    if (stream == NULL || state == NULL ||
        !cg_given_known(state, CG_FIRST_TENSOR, sizeof *state) ||
        state->data == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a state is copied between a stream and a tensor "
                             "with data, and its struct_size set");
    if (cellgate_stream_state_shape(stream, index, &wanted) != CELLGATE_OK)
        return cellgate_fail(error, CELLGATE_END,
                             "the stream has %zu states; there is no number "
                             "%zu",
                             cellgate_stream_state_count(stream), index);
    if (state->dtype != wanted.dtype || state->rank != wanted.rank ||
        memcmp(state->shape, wanted.shape, 3 * sizeof wanted.shape[0]) != 0)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "state %zu is float32 (%lld, %lld, %lld); the "
                             "tensor is not",
                             index, (long long)wanted.shape[0],
                             (long long)wanted.shape[1],
                             (long long)wanted.shape[2]);
    *bytes = (size_t)cg_stream_state_size(stream->graph, index, stream->batch) *
             sizeof(float);
    return CELLGATE_OK;
}

cellgate_status cellgate_stream_export(cellgate_stream *stream, size_t index,
                                       const cellgate_tensor *state,
                                       cellgate_error *error)
{
    size_t bytes;
    cellgate_status status = check_state(stream, index, state, &bytes, error);

    if (status == CELLGATE_OK)
        memcpy(state->data, stream->states[index], bytes);
    return status;
}

cellgate_status cellgate_stream_import(cellgate_stream *stream, size_t index,
                                       const cellgate_tensor *state,
                                       cellgate_error *error)
{
    size_t bytes;
    cellgate_status status = check_state(stream, index, state, &bytes, error);

    if (status == CELLGATE_OK)
        memcpy(stream->states[index], state->data, bytes);
    return status;
}
