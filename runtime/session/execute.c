/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/host/host.h"
#include "runtime/session/call.h"
#include "runtime/session/mask.h"

/* The mask of a segment in this request, or NULL. */
static const uint8_t *mask_of(const cg_call *call, const cg_part *part)
{
    if (part->mask == CG_NO_VALUE || call->context->absent[part->mask])
        return NULL;
    return call->context->buffers[part->mask];
}

/* ---- Memory ------------------------------------------------------------ */

void cg_part_take(const cg_call *call, const cg_part *part, cg_arena *arena,
                  cg_part_memory *memory)
{
    const cg_context *context = call->context;
    const cg_segment *segment = part->segment;

    memset(memory, 0, sizeof *memory);
    if (segment == NULL) {
        const cg_node *node = &call->graph->nodes[part->node];
        size_t size = cg_host_scratch(node, context->shapes);

        if (size > 0)
            memory->host = cg_arena_take(arena, (int64_t)size, 1);
        return;
    }
    if (part->mask == CG_NO_VALUE || context->absent[part->mask])
        return;
    memory->lengths = cg_arena_take(arena, call->batch, sizeof(int32_t));
    memory->x =
        cg_arena_take(arena, cg_shape_elements(&context->shapes[segment->x]),
                      sizeof(float)); /* and of int32 */
    if (segment->sequence != CG_NO_VALUE)
        memory->y = cg_arena_take(
            arena, cg_shape_elements(&context->shapes[segment->sequence]),
            sizeof(float));
}

/* ---- Before a run ------------------------------------------------------ */

static cellgate_status check_ids(const cg_call *call, const cg_node *node,
                                 cellgate_error *error)
{
    const cg_shape *shape = &call->context->shapes[node->inputs[0]];
    const int32_t *ids = call->context->buffers[node->inputs[0]];
    int64_t vocabulary = node->as.embedding.vocabulary;
    int64_t steps = shape->extent[1], count = shape->extent[0] * steps;

    for (int64_t at = 0; at < count; at++)
        if (ids[at] < 0 || ids[at] >= vocabulary)
            return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                                 "embedding '%s': id %d in row %lld, step %lld "
                                 "is not in the vocabulary of %lld (0 to %lld)",
                                 node->name, (int)ids[at],
                                 (long long)(at / steps),
                                 (long long)(at % steps), (long long)vocabulary,
                                 (long long)vocabulary - 1);
    return CELLGATE_OK;
}

/* One kind of initial state, h0 or c0, of both directions together. */
static const float *initial_state(const cg_call *call, const cg_node *node,
                                  const cg_state_memory *memory, int32_t kind)
{
    void *const *buffers = call->context->buffers;
    size_t row = (size_t)(call->batch * cg_node_state_width(node, kind));
    const float *first = buffers[cg_graph_initial(node, kind)], *second;

    if (node->as.lstm.shape.directions == 1)
        return first;
    second = buffers[cg_graph_initial(node, 2 + kind)];
    if (first == NULL && second == NULL)
        return NULL;
    if (first != NULL && second == first + row)
        return first;
    for (int32_t d = 0; d < 2; d++) {
        const float *from = d == 0 ? first : second;
        float *to = memory->initial + (size_t)d * row;

        if (from != NULL)
            memcpy(to, from, row * sizeof *to);
        else
            memset(to, 0, row * sizeof *to);
    }
    return memory->initial;
}

/* Number of the first state of a recurrent node. */
static size_t first_state(const cg_graph *graph, size_t node)
{
    size_t at = 0;

    while (graph->recurrent[at] != node)
        at++;
    return graph->first_state[at];
}

static void set_states(const cg_call *call, const cg_segment *segment)
{
    cg_context *context = call->context;

    context->states_set = true;
    context->states_given = false;
    for (size_t at = 0; at < segment->node_count; at++) {
        const cg_node *node = &call->graph->nodes[segment->nodes[at]];
        cellgate_lstm_state *state = &context->states[at];
        const cg_state_memory *memory;

        memset(state, 0, sizeof *state);
        if (node->kind != CG_LSTM)
            continue;
        memory = &context->memory[first_state(call->graph, segment->nodes[at])];
        state->h0 = initial_state(call, node, &memory[0], 0);
        state->c0 = initial_state(call, node, &memory[1], 1);
        state->h = memory[0].final;
        state->c = memory[1].final;
        if (state->h0 == NULL && state->c0 == NULL)
            continue;
        context->states_given = true;
        /* What was put together for this request is of this one alone. */
        if (state->h0 == memory[0].initial || state->c0 == memory[1].initial)
            context->states_set = false;
    }
}

static void set_sequence(const cg_call *call, cellgate_sequence *sequence,
                         int32_t value, int64_t steps)
{
    const cg_value *of = &call->graph->model->values[value];
    int64_t features =
        of->dtype == CELLGATE_I32 ? 1 : cg_call_features(call, value);

    sequence->dtype = of->dtype;
    sequence->time_stride = features;
    sequence->batch_stride = steps * features;
}

/* All of a run but where its numbers lie. */
static void set_shape(const cg_call *call, const cg_segment *segment)
{
    cellgate_segment_run *run = &call->context->flight.run;

    memset(run, 0, sizeof *run);
    run->struct_size = sizeof *run;
    run->batch = call->batch;
    run->steps = cg_call_steps(call, segment);
    set_sequence(call, &run->x, segment->x, run->steps);
    if (segment->sequence != CG_NO_VALUE)
        set_sequence(call, &run->y, segment->sequence, run->steps);
    if (segment->last != CG_NO_VALUE)
        set_sequence(call, &run->y_last, segment->last, 1);
    run->states = call->context->states;
}

/* `y` NULL: nothing of each step is wanted. */
static void set_run(const cg_call *call, const cg_segment *segment, void *x,
                    float *y)
{
    cg_context *context = call->context;
    cellgate_segment_run *run = &context->flight.run;

    if (context->set_for != segment)
        set_shape(call, segment);
    run->x.data = x;
    run->y.data = y;
    if (segment->last != CG_NO_VALUE)
        run->y_last.data = context->buffers[segment->last];
    if (context->set_for != segment || !context->states_set)
        set_states(call, segment);
    context->set_for = segment;
}

/* ---- Parts ------------------------------------------------------------- */

static size_t step_bytes(const cg_call *call, int32_t value)
{
    const cg_value *of = &call->graph->model->values[value];

    return of->dtype == CELLGATE_I32
               ? sizeof(int32_t)
               : (size_t)cg_call_features(call, value) * sizeof(float);
}

static cellgate_status run_masked(cg_call *call, const cg_segment *segment,
                                  const cg_mask *mask,
                                  const cg_part_memory *memory,
                                  cellgate_error *error)
{
    void *const *buffers = call->context->buffers;
    bool packed = !cg_mask_lengths(mask, memory->lengths);
    float *y =
        segment->sequence == CG_NO_VALUE ? NULL : buffers[segment->sequence];
    cellgate_status status;

    if (packed)
        cg_mask_pack(mask, buffers[segment->x], memory->x,
                     step_bytes(call, segment->x));
    call->context->set_for = NULL;
    set_run(call, segment, packed ? memory->x : buffers[segment->x],
            packed ? memory->y : y);
    call->context->set_for = NULL;
    call->context->flight.run.lengths = memory->lengths;
    status = cg_call_launch(call, segment, error);
    if (status == CELLGATE_OK)
        cg_call_apply_mask(call, segment, mask, memory, packed);
    return status;
}

static cellgate_status run_segment(cg_call *call, const cg_part *part,
                                   const cg_part_memory *memory,
                                   cellgate_error *error)
{
    const cg_segment *segment = part->segment;
    const cg_node *first = &call->graph->nodes[segment->nodes[0]];
    void *const *buffers = call->context->buffers;
    const uint8_t *valid = mask_of(call, part);
    cellgate_status status = CELLGATE_OK;

    if (first->kind == CG_EMBEDDING)
        status = check_ids(call, first, error);
    if (status != CELLGATE_OK)
        return status;
    if (valid != NULL) {
        cg_mask mask = { valid, call->batch, cg_call_steps(call, segment) };

        return run_masked(call, segment, &mask, memory, error);
    }
    set_run(call, segment, buffers[segment->x],
            segment->sequence == CG_NO_VALUE ? NULL
                                             : buffers[segment->sequence]);
    return cg_call_launch(call, segment, error);
}

static cellgate_status run_host(cg_call *call, const cg_part *part,
                                const cg_part_memory *memory,
                                cellgate_error *error)
{
    const cg_node *node = &call->graph->nodes[part->node];
    cg_context *context = call->context;
    cellgate_status status;

    status = cg_host_run(call->graph->model, node, context->shapes,
                         context->buffers, memory->host, error);
    call->times.host_segments++;
    return status;
}

cellgate_status cg_call_execute(cg_call *call, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < call->partition->count;
         at++) {
        const cg_part *part = &call->partition->parts[at];
        cg_arena scratch = call->context->arena;
        cg_part_memory memory;

        scratch.used = call->context->scratch_at;
        cg_part_take(call, part, &scratch, &memory);
        status = part->segment != NULL ? run_segment(call, part, &memory, error)
                                       : run_host(call, part, &memory, error);
    }
    return status;
}
