/* SPDX-License-Identifier: Apache-2.0 */
/* cellgate_run(): one request, from its check to its report. */
#include "config.h"

#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/session/call.h"
#include "runtime/session/session.h"

/* ---- The request ------------------------------------------------------- */

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
    read->struct_size = sizeof *read;
    cellgate_struct_copy(read, request);
    return cg_request_check_inputs(read, session->model, error);
}

static cellgate_status check_stream(const cellgate_session *session,
                                    const cellgate_request *request,
                                    int64_t batch, cellgate_error *error)
{
    if (request->stream == NULL)
        return CELLGATE_OK;
    if (request->stream->graph != &session->graph)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the stream belongs to another session");
    if (request->stream->batch != batch)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "the stream holds the state of %lld rows; the "
                             "request has %lld",
                             (long long)request->stream->batch,
                             (long long)batch);
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

/* Not all of it is cleared: its pin is large, and what is read of it was
   decided before. */
static void call_init(cg_call *call, const cellgate_session *session,
                      const cellgate_request *request, size_t behind)
{
    cellgate_input first;

    cg_request_input(request, 0, &first);
    call->request = request;
    call->graph = &session->graph;
    call->stream = request->stream;
    call->batch = first.tensor.shape[0];
    call->behind = behind;
    call->placement = NULL;
    call->way = NULL;
    call->culprit = NULL;
    call->is_part = call->was_split = false;
    call->lesson_count = 0;
    call->partition = NULL;
    call->context = NULL;
    call->pin.way_count = 0;
    call->pin.wrong = NULL;
    call->pin.fill = 1;
}

static void fill_report(const cg_call *call, const cellgate_error *failure,
                        double start, cellgate_report *report)
{
    cellgate_report filled = { .struct_size = sizeof filled };

    cg_call_report(call, failure, cg_now(&cg_real_clock) - start, &filled);
    cellgate_struct_copy(report, &filled);
}

cellgate_status cg_session_run(cellgate_session *session,
                               const cellgate_request *request, size_t behind,
                               cellgate_report *report, cellgate_error *error)
{
    cellgate_error failure;
    double start = report != NULL ? cg_now(&cg_real_clock) : 0;
    cellgate_request read;
    cg_call call;
    cellgate_status status = cg_process_check(error);

    if (status == CELLGATE_OK)
        status = read_request(session, request, &read, error);
    if (status != CELLGATE_OK)
        return status;
    if (report != NULL && !cg_given_fillable(report))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the report's struct_size is not set");
    call_init(&call, session, &read, behind);
    status = check_stream(session, &read, call.batch, error);
    if (status != CELLGATE_OK)
        return status;
    cg_error_clear(&failure);
    if (session->watches_pace && cg_pace_begin(&session->pace))
        cg_cost_book_decide_anew(session->book);
    status = cg_call_attempt(&call, session, &failure);
    if (session->watches_pace)
        cg_pace_end(&session->pace);
    if (status != CELLGATE_OK)
        return tell(error, &failure, status);
    if (report != NULL)
        fill_report(&call, &failure, start, report);
    return CELLGATE_OK;
}

cellgate_status cellgate_run(cellgate_session *session,
                             const cellgate_request *request,
                             cellgate_report *report, cellgate_error *error)
{
    return cg_session_run(session, request, 0, report, error);
}
