/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the numbers of a request lie: in the application's memory wherever
 * that's possible, else in the context's.
 */
#include "config.h"

#include "runtime/formats/convert.h"
#include "runtime/session/call.h"
#include "runtime/session/mask.h"

static int64_t value_elements(const cg_call *call, int32_t value)
{
    return cg_shape_elements(&call->context->shapes[value]);
}

static size_t value_size(const cg_call *call, int32_t value)
{
    return cellgate_dtype_size(call->graph->model->values[value].dtype);
}

/* ---- The application's memory ------------------------------------------ */

/* A request whose output lies over one of its inputs is computed in memory of
   the context, and copied at the end. */
static bool over_an_input(const cg_call *call, const void *data, size_t bytes)
{
    const char *begin = data;

    for (size_t at = 0; at < call->request->input_count; at++) {
        const cg_input *as = &call->graph->model->inputs[at];
        cellgate_input input;
        const char *other;
        size_t other_bytes;

        cg_request_input(call->request, at, &input);
        other = input.tensor.data;
        other_bytes = (size_t)value_elements(call, as->value) *
                      cellgate_dtype_size(input.tensor.dtype);
        if (other != NULL && begin < other + other_bytes &&
            other < begin + bytes)
            return true;
    }
    return false;
}

/* The application's memory for a value, or NULL. */
static void *direct_output(const cg_call *call, int32_t value)
{
    const cellgate_model *model = call->graph->model;

    if (call->placement->staged)
        return NULL;
    for (size_t at = 0; at < model->output_count; at++) {
        cellgate_tensor output;

        if (model->outputs[at] != value)
            continue;
        cg_request_output(call->request, at, &output);
        if (output.data != NULL &&
            !over_an_input(call, output.data,
                           (size_t)value_elements(call, value) *
                               value_size(call, value)))
            return output.data;
    }
    return NULL;
}

static bool direct_input(const cg_call *call, const cellgate_input *input,
                         int32_t value)
{
    return !call->placement->staged && input->tensor.data != NULL &&
           input->tensor.dtype == call->graph->model->values[value].dtype;
}

/* ---- Placing ----------------------------------------------------------- */

static void place_input(cg_call *call, size_t index)
{
    cg_context *context = call->context;
    const cg_input *as = &call->graph->model->inputs[index];
    cellgate_input input;

    cg_request_input(call->request, index, &input);
    context->buffers[as->value] =
        direct_input(call, &input, as->value)
            ? input.tensor.data
            : cg_arena_take(&context->arena, value_elements(call, as->value),
                            value_size(call, as->value));
    if (as->mask == CG_NO_VALUE)
        return;
    context->absent[as->mask] = input.lengths == NULL && input.mask == NULL;
    if (input.lengths != NULL)
        context->buffers[as->mask] =
            cg_arena_take(&context->arena, value_elements(call, as->mask), 1);
    else
        context->buffers[as->mask] = (void *)(uintptr_t)input.mask;
}

static void place_value(cg_call *call, int32_t value)
{
    cg_context *context = call->context;
    void *direct;

    if (value == CG_NO_VALUE)
        return;
    direct = direct_output(call, value);
    context->buffers[value] =
        direct != NULL
            ? direct
            : cg_arena_take(&context->arena, value_elements(call, value),
                            value_size(call, value));
}

/* One state of the graph in this call. */
typedef struct state_place {
    const cg_node *node;
    int32_t kind, kinds; /* h (0) or c (1); how many of them the node has */
    int32_t directions;
    int64_t row, size; /* numbers of one direction, of all */
} state_place;

static state_place find_state(const cg_call *call, size_t state)
{
    const cg_node *node = cg_graph_state_node(call->graph, state);
    state_place place = { .node = node,
                          .kind = call->graph->states[state].kind,
                          .kinds = cg_node_state_kinds(node),
                          .directions = cg_node_directions(node) };

    place.row = call->batch * cg_node_state_width(node, place.kind);
    place.size = place.directions * place.row;
    return place;
}

static int32_t initial_value(const state_place *place, int32_t direction)
{
    return cg_graph_initial(place->node,
                            place->kinds * direction + place->kind);
}

static int32_t final_value(const state_place *place, int32_t direction)
{
    return cg_graph_final(place->node, place->kinds * direction + place->kind);
}

/* Whether a stream or another node takes it at the end. */
static bool final_wanted(const cg_call *call, const state_place *place)
{
    bool wanted = call->stream != NULL;

    for (int32_t d = 0; d < place->directions; d++)
        wanted = wanted || call->graph->uses[final_value(place, d)] > 0;
    return wanted;
}

/* Final states of the directions lie behind each other, as devices and streams
   have them. */
static void place_final(cg_call *call, const state_place *place,
                        cg_state_memory *memory)
{
    cg_context *context = call->context;

    memory->final = NULL;
    if (final_wanted(call, place))
        memory->final =
            cg_arena_take(&context->arena, place->size, sizeof(float));
    for (int32_t d = 0; d < place->directions; d++)
        context->buffers[final_value(place, d)] =
            memory->final == NULL ? NULL : memory->final + d * place->row;
}

/*
 * Initial states that the graph gives win; a stream's come next. Memory is
 * needed where a device takes both directions at once and they lie apart, and
 * for a stream where the device takes its own memory only.
 */
static void place_initial(cg_call *call, const state_place *place,
                          float *of_stream, cg_state_memory *memory)
{
    cg_context *context = call->context;
    bool given = false;
    float *state = of_stream;

    for (int32_t d = 0; d < place->directions; d++)
        given = given || cg_graph_own(call->graph, initial_value(place, d));
    memory->initial = NULL;
    if ((given && place->directions > 1) ||
        (of_stream != NULL && call->placement->staged))
        memory->initial =
            cg_arena_take(&context->arena, place->size, sizeof(float));
    if (of_stream != NULL && call->placement->staged && !given)
        state = memory->initial;
    for (int32_t d = 0; d < place->directions; d++) {
        int32_t value = initial_value(place, d);

        if (!cg_graph_own(call->graph, value))
            context->buffers[value] =
                state == NULL ? NULL : state + d * place->row;
    }
}

static void place_states(cg_call *call)
{
    for (size_t at = 0; at < call->graph->state_count; at++) {
        const state_place place = find_state(call, at);
        cg_state_memory *memory = &call->context->memory[at];

        place_initial(call, &place,
                      call->stream != NULL ? call->stream->states[at] : NULL,
                      memory);
        place_final(call, &place, memory);
    }
}

static void place_host_part(cg_call *call, const cg_part *part)
{
    const cg_node *node = &call->graph->nodes[part->node];
    const size_t count = cg_node_state_kinds(node) > 0
                             ? (size_t)CG_RECURRENT_OUTPUT_STATE
                             : node->output_count;

    if (cg_graph_lacks(node, call->context->absent, true)) {
        call->context->absent[node->outputs[0]] = true;
        call->context->buffers[node->outputs[0]] = NULL;
        return;
    }
    for (size_t at = 0; at < count; at++)
        place_value(call, node->outputs[at]);
}

static void place(cg_call *call)
{
    const cg_partition *partition = call->partition;
    cg_context *context = call->context;
    size_t most;

    cg_arena_start(&context->arena);
    memset(context->absent, 0,
           call->graph->value_count * sizeof *context->absent);
    for (size_t at = 0; at < call->graph->model->input_count; at++)
        place_input(call, at);
    place_states(call);
    for (size_t at = 0; at < partition->count; at++) {
        const cg_part *part = &partition->parts[at];

        if (part->segment == NULL) {
            place_host_part(call, part);
        } else {
            place_value(call, part->segment->sequence);
            place_value(call, part->segment->last);
        }
    }
    /* Scratch is for one part at a time: the parts share it. */
    context->scratch_at = most = context->arena.used;
    for (size_t at = 0; at < partition->count; at++) {
        cg_arena after = context->arena;
        cg_part_memory memory;

        cg_part_take(call, &partition->parts[at], &after, &memory);
        most = after.used > most ? after.used : most;
    }
    context->arena.used = most;
}

/* ---- Filling ----------------------------------------------------------- */

/* Says where a number lies that does not fit. */
static cellgate_status element_refused(const cg_call *call, int32_t value,
                                       int64_t where,
                                       const cellgate_error *cause,
                                       cellgate_error *error)
{
    const cg_shape *shape = &call->context->shapes[value];
    const char *name = call->graph->model->values[value].name;
    int64_t row_size = 1, step_size = 1;

    if (where < 0)
        return cellgate_fail(error, (cellgate_status)cause->status,
                             "input '%s': %s", name, cause->text);
    for (int32_t axis = 1; axis < shape->rank; axis++)
        row_size *= shape->extent[axis];
    for (int32_t axis = 2; axis < shape->rank; axis++)
        step_size *= shape->extent[axis];
    return cellgate_fail(error, (cellgate_status)cause->status,
                         "input '%s', row %lld, %s %lld: %s", name,
                         (long long)(where / row_size),
                         shape->rank == 2 && step_size == 1 ? "number" : "step",
                         (long long)(where % row_size / step_size),
                         cause->text);
}

static cellgate_status fill_value(cg_call *call, const cellgate_input *input,
                                  int32_t value, cellgate_error *error)
{
    void *to = call->context->buffers[value];
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cellgate_status status;
    int64_t where = -1;

    if (direct_input(call, input, value) || value_elements(call, value) == 0)
        return CELLGATE_OK;
    if (call->graph->model->values[value].dtype == CELLGATE_I32)
        status = cg_narrow_ids(&input->tensor, INT32_MIN, INT32_MAX, to, &where,
                               &cause);
    else
        status = cg_narrow_f32(&input->tensor, to, &where, &cause);
    return status == CELLGATE_OK
               ? CELLGATE_OK
               : element_refused(call, value, where, &cause, error);
}

static cellgate_status fill_inputs(cg_call *call, cellgate_error *error)
{
    const cellgate_model *model = call->graph->model;
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < model->input_count;
         at++) {
        const cg_input *as = &model->inputs[at];
        cellgate_input input;

        cg_request_input(call->request, at, &input);
        status = fill_value(call, &input, as->value, error);
        if (input.lengths != NULL)
            cg_mask_from_lengths(call->context->buffers[as->mask],
                                 input.lengths, input.tensor.shape[0],
                                 input.tensor.shape[1]);
    }
    return status;
}

/* A stream's state goes to memory of the context where the device needs it. */
static void fill_states(cg_call *call)
{
    const cg_graph *graph = call->graph;

    if (call->stream == NULL || !call->placement->staged)
        return;
    for (size_t at = 0; at < graph->state_count; at++) {
        float *to = call->context->memory[at].initial;

        memcpy(to, call->stream->states[at],
               (size_t)find_state(call, at).size * sizeof *to);
    }
}

/* ---- Copies -------------------------------------------------------------- */

/* Whether anything is copied before the run, or after it. */
static void note_copies(const cg_call *call)
{
    const cellgate_model *model = call->graph->model;
    cg_binding *binding = &call->context->binding;

    binding->fills = binding->delivers = call->stream != NULL;
    for (size_t at = 0; at < model->input_count; at++) {
        cellgate_input input;

        cg_request_input(call->request, at, &input);
        if (input.lengths != NULL ||
            !direct_input(call, &input, model->inputs[at].value))
            binding->fills = true;
    }
    for (size_t at = 0; at < model->output_count; at++) {
        cellgate_tensor output;

        cg_request_output(call->request, at, &output);
        if (output.data != NULL &&
            output.data != call->context->buffers[model->outputs[at]])
            binding->delivers = true;
    }
}

static cellgate_status lay_out(cg_call *call, cellgate_error *error)
{
    cg_context *context = call->context;
    cellgate_status status;

    cg_binding_drop(&context->binding);
    context->set_for = NULL;
    status =
        cg_request_shapes(call->request, call->graph, context->shapes, error);
    if (status == CELLGATE_OK)
        status = cg_request_check_outputs(call->request, call->graph->model,
                                          context->shapes, error);
    if (status != CELLGATE_OK)
        return status;
    place(call);
    if (!cg_arena_fits(&context->arena)) {
        status = cg_arena_reserve(&context->arena, error);
        if (status != CELLGATE_OK)
            return status;
        place(call);
    }
    cg_binding_keep(call);
    note_copies(call);
    cg_call_note_memory(call);
    return CELLGATE_OK;
}

cellgate_status cg_call_bind(cg_call *call, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (cg_binding_is_like(call) ? !cg_call_follow(call)
                                 : !cg_binding_holds(call))
        status = lay_out(call, error);
    if (status != CELLGATE_OK || !call->context->binding.fills)
        return status;
    fill_states(call);
    return fill_inputs(call, error);
}

void cg_call_deliver(const cg_call *call)
{
    const cg_graph *graph = call->graph;

    if (!call->context->binding.delivers)
        return;
    for (size_t at = 0; at < graph->model->output_count; at++) {
        int32_t value = graph->model->outputs[at];
        size_t bytes =
            (size_t)value_elements(call, value) * value_size(call, value);
        cellgate_tensor output;

        cg_request_output(call->request, at, &output);
        if (output.data != NULL && output.data != call->context->buffers[value])
            memmove(output.data, call->context->buffers[value], bytes);
    }
    for (size_t at = 0; call->stream != NULL && at < graph->state_count; at++)
        memcpy(call->stream->states[at], call->context->memory[at].final,
               (size_t)find_state(call, at).size * sizeof(float));
}
