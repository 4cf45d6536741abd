/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/call.h"

bool cg_binding_init(cg_binding *binding, const cellgate_model *model)
{
    binding->inputs = calloc(model->input_count + 1, sizeof *binding->inputs);
    binding->outputs =
        calloc(model->output_count + 1, sizeof *binding->outputs);
    binding->bytes = calloc(model->input_count + model->output_count + 1,
                            sizeof *binding->bytes);
    return binding->inputs != NULL && binding->outputs != NULL &&
           binding->bytes != NULL;
}

void cg_binding_finish(cg_binding *binding)
{
    free(binding->inputs);
    free(binding->outputs);
    free(binding->bytes);
}

/* The states of a stream lie in its memory in the order of the graph. */
static const float *memory_of(const cg_call *call)
{
    return call->stream != NULL ? call->stream->memory : NULL;
}

/* Structs of an application that was built with another version of them are
   never the same: they are laid out each time. */
static bool same(const void *given, const void *kept, size_t count, size_t size)
{
    size_t each;

    if (count == 0 || given == NULL)
        return count == 0;
    memcpy(&each, given, sizeof each);
    return each == size && memcmp(given, kept, count * size) == 0;
}

static bool same_tensors(const cg_binding *binding,
                         const cellgate_request *request,
                         const cellgate_model *model)
{
    return request->output_count == model->output_count &&
           same(request->inputs, binding->inputs, request->input_count,
                sizeof *binding->inputs) &&
           same(request->outputs, binding->outputs, request->output_count,
                sizeof *binding->outputs);
}

static bool same_parts(const cg_call *call)
{
    const cg_binding *binding = &call->context->binding;

    return binding->partition == call->partition &&
           binding->stream == memory_of(call);
}

bool cg_binding_is_like(const cg_call *call)
{
    return call->number != 0 && call->context->binding.number == call->number &&
           same_parts(call);
}

bool cg_binding_holds(const cg_call *call)
{
    cg_binding *binding = &call->context->binding;

    if (!same_parts(call) ||
        !same_tensors(binding, call->request, call->graph->model))
        return false;
    binding->number = call->number;
    return true;
}

void cg_binding_keep(const cg_call *call)
{
    cg_binding *binding = &call->context->binding;

    binding->partition = call->partition;
    binding->stream = memory_of(call);
    binding->number = call->number;
    for (size_t at = 0; at < call->request->input_count; at++)
        cg_request_input(call->request, at, &binding->inputs[at]);
    for (size_t at = 0; at < call->request->output_count; at++)
        cg_request_output(call->request, at, &binding->outputs[at]);
}

void cg_binding_drop(cg_binding *binding)
{
    binding->partition = NULL;
}
