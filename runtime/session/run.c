/* SPDX-License-Identifier: Apache-2.0 */
/* cellgate_run(): one request, from its check to its report. */
#include "config.h"

#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/session/call.h"
#include "runtime/session/session.h"

/* ---- The request ------------------------------------------------------- */

/* Its tensors are not looked at. */
static cellgate_status read_request(const cellgate_session *session,
                                    const cellgate_request *request,
                                    cellgate_request *read,
                                    cellgate_error *error)
{
    if (session == NULL || request == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a run needs a session and a request");
    if (!cg_given_known(request, CG_FIRST_REQUEST, sizeof *read))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "struct_size of the request is %zu, or it has "
                             "members that this libcellgate does not know",
                             request->struct_size);
    cg_struct_read(request, read, sizeof *read);
    return CELLGATE_OK;
}

static cellgate_status check_stream(const cellgate_session *session,
                                    const cellgate_stream *stream,
                                    int64_t batch, cellgate_error *error)
{
    if (stream->graph != &session->graph)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the stream belongs to another session");
    if (stream->batch != batch)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "the stream holds the state of %lld rows; the "
                             "request has %lld",
                             (long long)stream->batch, (long long)batch);
    return CELLGATE_OK;
}

cellgate_status cellgate_output_shape(const cellgate_session *session,
                                      const cellgate_request *request,
                                      size_t index, cellgate_tensor *output,
                                      cellgate_error *error)
{
    cellgate_request read;
    cg_shape *shapes;
    cellgate_status status = read_request(session, request, &read, error);

    if (status == CELLGATE_OK)
        status = cg_request_check_inputs(&read, session->model, error);
    if (status != CELLGATE_OK)
        return status;
    if (output == NULL || output->struct_size < CG_FIRST_TENSOR)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the output's struct_size is not set");
    if (index >= session->model->output_count)
        return cellgate_fail(error, CELLGATE_END, "the model has %zu outputs",
                             session->model->output_count);
    shapes = calloc(session->graph.value_count + 1, sizeof *shapes);
    if (shapes == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to infer shapes");
    status = cg_request_shapes(&read, &session->graph, shapes, error);
    if (status == CELLGATE_OK) {
        int32_t value = session->model->outputs[index];

        output->dtype = session->model->values[value].dtype;
        output->rank = shapes[value].rank;
        memcpy(output->shape, shapes[value].extent, sizeof output->shape);
    }
    free(shapes);
    return status;
}

/* ---- The run ------------------------------------------------------------ */

static cellgate_status tell(cellgate_error *error,
                            const cellgate_error *failure,
                            cellgate_status status)
{
    cellgate_fail(error, status, "%s", failure->text);
    if (error != NULL) {
        error->reason = failure->reason;
        error->vendor_code = failure->vendor_code;
    }
    return status;
}

/* What it is to begin with; the pin is cleared by who has it. */
static void call_init(cg_call *call, const cellgate_session *session,
                      const cellgate_request *request, size_t behind)
{
    call->request = request;
    call->recall = NULL;
    call->number = 0;
    call->fill = 1;
    call->graph = &session->graph;
    call->stream = request->stream;
    call->behind = behind;
    call->placement = NULL;
    call->way = NULL;
    call->culprit = NULL;
    call->is_part = call->was_split = false;
    call->lesson_count = 0;
    call->partition = NULL;
    call->context = NULL;
}

/* Checks its inputs, and works out from them what is needed everywhere. */
static cellgate_status look_at_inputs(cg_call *call,
                                      const cellgate_session *session,
                                      cellgate_error *error)
{
    cellgate_input first;
    cellgate_status status =
        cg_request_check_inputs(call->request, session->model, error);

    if (status != CELLGATE_OK)
        return status;
    cg_request_input(call->request, 0, &first);
    call->batch = first.tensor.shape[0];
    call->masked = cg_request_masked(call->request);
    return CELLGATE_OK;
}

/* A request that repeats one that was answered needs no check. */
static cellgate_status check_request(cg_call *call, cellgate_session *session,
                                     cellgate_error *error)
{
    cg_recall *recall = call->recall;
    cellgate_status status = CELLGATE_OK;

    if (recall != NULL &&
        cg_recall_is(&session->recalls, recall, call->request)) {
        call->batch = recall->batch;
        call->masked = recall->masked;
    } else {
        if (recall != NULL)
            cg_recall_begin(&session->recalls, recall);
        status = look_at_inputs(call, session, error);
    }
    call->number = recall != NULL ? recall->number : 0;
    if (status == CELLGATE_OK && call->stream != NULL)
        status = check_stream(session, call->stream, call->batch, error);
    return status;
}

static void fill_report(const cg_call *call, const cellgate_error *failure,
                        double start, cellgate_report *report)
{
    cellgate_report filled = { .struct_size = sizeof filled };

    cg_call_report(call, failure, cg_now(&cg_real_clock) - start, &filled);
    cellgate_struct_copy(report, &filled);
}

static cellgate_status attempt(cg_call *call, cellgate_session *session,
                               cellgate_error *failure)
{
    cellgate_status status;

    if (!session->watches_pace)
        return cg_call_attempt(call, session, failure);
    if (cg_pace_begin(&session->pace))
        cg_route_arrivals_changed(session);
    status = cg_call_attempt(call, session, failure);
    cg_pace_end(&session->pace);
    return status;
}

/* `start`: when it came, where a report is asked for. */
static cellgate_status answer(cg_call *call, cellgate_session *session,
                              double start, cellgate_report *report,
                              cellgate_error *error)
{
    cellgate_error failure;
    cellgate_status status = check_request(call, session, error);

    if (status != CELLGATE_OK)
        return status;
    cg_error_clear(&failure);
    status = attempt(call, session, &failure);
    if (status != CELLGATE_OK)
        return tell(error, &failure, status);
    if (call->recall != NULL && !call->recall->known)
        cg_recall_keep(call->recall, call);
    if (report != NULL)
        fill_report(call, &failure, start, report);
    return CELLGATE_OK;
}

cellgate_status cg_session_run(cellgate_session *session,
                               const cellgate_request *request, size_t behind,
                               cellgate_report *report, cellgate_error *error)
{
    const double start = report != NULL ? cg_now(&cg_real_clock) : 0;
    cellgate_request read;
    cg_call call;
    cg_pin pin;
    cellgate_status status = cg_process_check(error);

    if (status == CELLGATE_OK)
        status = read_request(session, request, &read, error);
    if (status != CELLGATE_OK)
        return status;
    if (report != NULL && !cg_given_fillable(report))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the report's struct_size is not set");
    call_init(&call, session, &read, behind);
    call.timed = report != NULL;
    call.recall = cg_recalls_take(&session->recalls);
    call.pin = call.recall != NULL ? &call.recall->pin : &pin;
    pin.way_count = 0;
    pin.wrong = NULL;
    status = answer(&call, session, start, report, error);
    cg_recall_give_back(call.recall);
    return status;
}

cellgate_status cellgate_run(cellgate_session *session,
                             const cellgate_request *request,
                             cellgate_report *report, cellgate_error *error)
{
    return cg_session_run(session, request, 0, report, error);
}
