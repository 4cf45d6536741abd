/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request like the one that a context is laid out for, in other memory: what
 * lies in the application's memory moves, all else stays where it is.
 */
#include "config.h"

#include "runtime/session/call.h"

/* ---- Of which layout? --------------------------------------------------- */

static bool is_input(const cellgate_model *model, int32_t value)
{
    for (size_t at = 0; at < model->input_count; at++)
        if (model->inputs[at].value == value)
            return true;
    return false;
}

static size_t bytes_of(const cg_call *call, int32_t value, int32_t dtype)
{
    return (size_t)cg_shape_elements(&call->context->shapes[value]) *
           cellgate_dtype_size(dtype);
}

/* An output that the device doesn't write itself, though it could, lies over
   something: where it lies elsewhere it can. */
static bool output_follows(const cg_call *call, size_t index)
{
    const cellgate_model *model = call->graph->model;
    const int32_t value = model->outputs[index];
    const void *data = call->context->binding.outputs[index].data;

    return data == NULL || call->placement->staged ||
           (data == call->context->buffers[value] && !is_input(model, value));
}

void cg_call_note_memory(const cg_call *call)
{
    const cellgate_model *model = call->graph->model;
    cg_binding *binding = &call->context->binding;
    size_t *bytes = binding->bytes;

    binding->follows = true;
    for (size_t at = 0; at < model->input_count; at++)
        *bytes++ = bytes_of(call, model->inputs[at].value,
                            binding->inputs[at].tensor.dtype);
    for (size_t at = 0; at < model->output_count; at++) {
        *bytes++ =
            bytes_of(call, model->outputs[at], binding->outputs[at].dtype);
        binding->follows = binding->follows && output_follows(call, at);
    }
}

/* ---- Moving ------------------------------------------------------------- */

static void move(void **buffer, void **kept, void *given)
{
    if (*buffer == *kept)
        *buffer = given;
    *kept = given;
}

static bool move_input(cg_call *call, size_t index)
{
    const cg_input *as = &call->graph->model->inputs[index];
    const cellgate_input *given = &call->request->inputs[index];
    cellgate_input *kept = &call->context->binding.inputs[index];
    void **buffers = call->context->buffers;

    if (given->tensor.data == kept->tensor.data && given->mask == kept->mask)
        return false;
    move(&buffers[as->value], &kept->tensor.data, given->tensor.data);
    if (as->mask != CG_NO_VALUE)
        buffers[as->mask] = (void *)(uintptr_t)given->mask;
    kept->mask = given->mask;
    return true;
}

static bool move_output(cg_call *call, size_t index)
{
    const int32_t value = call->graph->model->outputs[index];
    const cellgate_tensor *given = &call->request->outputs[index];
    cellgate_tensor *kept = &call->context->binding.outputs[index];

    if (given->data == kept->data)
        return false;
    move(&call->context->buffers[value], &kept->data, given->data);
    return true;
}

static bool is_over(const char *a, size_t bytes_of_a, const char *b,
                    size_t bytes_of_b)
{
    return a != NULL && b != NULL && a < b + bytes_of_b && b < a + bytes_of_a;
}

static bool any_over_an_input(const cg_call *call)
{
    const cellgate_model *model = call->graph->model;
    const cg_binding *binding = &call->context->binding;
    const size_t *bytes = &binding->bytes[model->input_count];

    for (size_t at = 0; at < model->output_count; at++)
        for (size_t of = 0; of < model->input_count; of++)
            if (is_over(binding->outputs[at].data, bytes[at],
                        binding->inputs[of].tensor.data, binding->bytes[of]))
                return true;
    return false;
}

bool cg_call_follow(cg_call *call)
{
    const cellgate_model *model = call->graph->model;
    cg_context *context = call->context;
    bool moved = false;

    for (size_t at = 0; at < model->input_count; at++)
        moved |= move_input(call, at);
    for (size_t at = 0; at < model->output_count; at++)
        moved |= move_output(call, at);
    if (!moved)
        return true;
    if (context->states_given)
        context->states_set = false;
    return call->placement->staged ||
           (context->binding.follows && !any_over_an_input(call));
}
