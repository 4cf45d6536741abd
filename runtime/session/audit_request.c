/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/audit_request.h"
#include "runtime/session/explain_shapes.h"

#define MOST_BYTES 1e9

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "a request of this shape takes too much memory");
}

static double bytes_of(const cellgate_tensor *tensor)
{
    double bytes = (double)cellgate_dtype_size(tensor->dtype);

    for (int32_t axis = 0; axis < tensor->rank; axis++)
        bytes *= (double)tensor->shape[axis];
    return bytes;
}

static cellgate_status allocate(cg_audit_request *made, cellgate_tensor *tensor,
                                cellgate_error *error)
{
    const double bytes = bytes_of(tensor);

    made->bytes += bytes;
    if (made->bytes > MOST_BYTES)
        return no_memory(error);
    tensor->data = calloc((size_t)bytes + 1, 1);
    return tensor->data != NULL ? CELLGATE_OK : no_memory(error);
}

/* Ids below this are in every table that the value is looked up in. */
static int64_t vocabulary_of(const cg_graph *graph, int32_t value)
{
    int64_t least = INT32_MAX;

    for (size_t at = 0; at < graph->node_count; at++) {
        const cg_node *node = &graph->nodes[at];

        if (node->kind == CG_EMBEDDING && node->inputs[0] == value &&
            node->as.embedding.vocabulary < least)
            least = node->as.embedding.vocabulary;
    }
    return least < INT32_MAX ? least : 1;
}

/* Park and Miller's generator (1988). */
static void fill(const cellgate_tensor *tensor, int64_t vocabulary)
{
    const size_t count = (size_t)bytes_of(tensor) / 4;
    uint32_t seed = 20261109;

    for (size_t at = 0; at < count; at++) {
        seed = (uint32_t)((uint64_t)seed * 48271 % 2147483647);
        if (tensor->dtype == CELLGATE_I32)
            ((int32_t *)tensor->data)[at] =
                (int32_t)(seed % (uint64_t)vocabulary);
        else
            ((float *)tensor->data)[at] = (float)seed / 1073741824.0f - 1.0f;
    }
}

static cellgate_status make_input(cg_audit_request *made,
                                  const cellgate_session *session, size_t index,
                                  const cellgate_question *question,
                                  cellgate_error *error)
{
    const cellgate_model *model = session->model;
    const int32_t value = model->inputs[index].value;
    cellgate_input *input = &made->inputs[index];
    cellgate_status status;

    cg_explain_input(&model->values[value], question, input);
    status = allocate(made, &input->tensor, error);
    if (status == CELLGATE_OK)
        fill(&input->tensor, vocabulary_of(&session->graph, value));
    return status;
}

static cellgate_status make_output(cg_audit_request *made,
                                   const cellgate_session *session,
                                   size_t index, cellgate_error *error)
{
    cellgate_tensor *output = &made->outputs[index];
    cellgate_status status =
        cellgate_output_shape(session, &made->request, index, output, error);

    return status == CELLGATE_OK ? allocate(made, output, error) : status;
}

cellgate_status cg_audit_request_init(cg_audit_request *made,
                                      const cellgate_session *session,
                                      const cellgate_question *question,
                                      cellgate_error *error)
{
    const size_t inputs = session->model->input_count;
    const size_t outputs = session->model->output_count;
    cellgate_status status = CELLGATE_OK;

    memset(made, 0, sizeof *made);
    made->inputs = calloc(inputs + 1, sizeof *made->inputs);
    made->outputs = calloc(outputs + 1, sizeof *made->outputs);
    if (made->inputs == NULL || made->outputs == NULL)
        return no_memory(error);
    made->request = (cellgate_request){ .struct_size = sizeof made->request,
                                        .inputs = made->inputs,
                                        .input_count = inputs,
                                        .outputs = made->outputs,
                                        .output_count = outputs };
    for (size_t at = 0; at < outputs; at++)
        made->outputs[at].struct_size = sizeof made->outputs[at];
    for (size_t at = 0; status == CELLGATE_OK && at < inputs; at++)
        status = make_input(made, session, at, question, error);
    for (size_t at = 0; status == CELLGATE_OK && at < outputs; at++)
        status = make_output(made, session, at, error);
    return status;
}

void cg_audit_request_finish(cg_audit_request *made)
{
    for (size_t at = 0; made->inputs != NULL && at < made->request.input_count;
         at++)
        free(made->inputs[at].tensor.data);
    for (size_t at = 0;
         made->outputs != NULL && at < made->request.output_count; at++)
        free(made->outputs[at].data);
    free(made->inputs);
    free(made->outputs);
}
