/* SPDX-License-Identifier: Apache-2.0 */
/* cellgate_run(): one request, from its check to its report. */
#include "config.h"

#include <stdlib.h>

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
    if (request->struct_size < sizeof *read ||
        !cellgate_struct_known(request, sizeof *read))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "struct_size of the request is %zu, not %zu, or "
                             "it has members that this libcellgate does not "
                             "know",
                             request->struct_size, sizeof *read);
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
    if (output == NULL || output->struct_size < sizeof *output)
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

/* ---- One candidate ----------------------------------------------------- */

static cellgate_status run_in_context(cg_call *call, cellgate_error *error)
{
    const cellgate_model *model = call->graph->model;
    double start = cg_seconds();
    cellgate_status status = cg_request_shapes(call->request, call->graph,
                                               call->context->shapes, error);

    if (status == CELLGATE_OK)
        status = cg_request_check_outputs(call->request, model,
                                          call->context->shapes, error);
    if (status == CELLGATE_OK)
        status = cg_call_bind(call, error);
    if (status == CELLGATE_OK)
        status = cg_call_execute(call, error);
    if (status == CELLGATE_OK)
        cg_call_deliver(call);
    call->times.host =
        cg_seconds() - start - call->times.device - call->times.wait;
    return status;
}

static cellgate_status run_placed(cg_call *call, cellgate_error *error)
{
    cg_placement *placement = call->placement;
    double start = cg_seconds();
    double waited;
    cellgate_status status;

    status = cg_placement_usable(placement, error);
    if (status == CELLGATE_OK)
        status =
            cg_placement_partition(placement, cg_request_masked(call->request),
                                   &call->partition, error);
    if (status == CELLGATE_OK)
        status = cg_placement_acquire(placement, &call->context, error);
    if (status != CELLGATE_OK)
        return status;
    waited = cg_seconds() - start;
    /* The run before may have been the device's last. */
    status = cg_placement_usable(placement, error);
    if (status == CELLGATE_OK)
        status = run_in_context(call, error);
    call->times.wait += waited;
    if (call->context != NULL)
        cg_placement_release(placement, call->context);
    return status;
}

/* ---- Fallback ---------------------------------------------------------- */

/* Failures that another device may not have; the request itself is sound. */
static bool device_failed(cellgate_status status)
{
    return status == CELLGATE_DEVICE_FAILED || status == CELLGATE_DEVICE_LOST ||
           status == CELLGATE_DEVICE_MEMORY || status == CELLGATE_TIMEOUT ||
           status == CELLGATE_NO_DEVICE || status == CELLGATE_UNSUPPORTED;
}

static cellgate_status run_on(cg_call *call, cg_placement *placement,
                              cellgate_error *error)
{
    call->placement = placement;
    call->context = NULL;
    memset(&call->times, 0, sizeof call->times);
    return run_placed(call, error);
}

static cellgate_status run_candidate(cellgate_session *session, size_t index,
                                     cg_call *call, cellgate_error *error)
{
    cg_placement *placement;
    cellgate_status status =
        cg_session_placement(session, index, &placement, error);

    if (status != CELLGATE_OK)
        return status;
    memset(&call->route, 0, sizeof call->route);
    return run_on(call, placement, error);
}

/* Where the shape was measured to be best; else on the first device. */
static cellgate_status run_routed(cellgate_session *session, cg_call *call,
                                  cellgate_error *error)
{
    cellgate_status status;

    if (session->router == NULL)
        return run_candidate(session, session->primary, call, error);
    status =
        cg_router_route(session->router, session, call, &call->route, error);
    if (status == CELLGATE_OK)
        status = run_on(call, call->route.placement, error);
    if (device_failed(status))
        cg_router_forget(session->router);
    return status;
}

/* The device of a placement on one; NULL for others. */
static const cg_device *only_device(const cg_placement *placement)
{
    return placement != NULL && placement->engine_count == 1
               ? placement->engines[0]->device
               : NULL;
}

/* The first failure is told, unless another candidate succeeds. */
static cellgate_status run_any(cellgate_session *session, cg_call *call,
                               cellgate_error *failure)
{
    cellgate_status first = run_routed(session, call, failure);
    cellgate_status status = first;
    const cg_device *failed = only_device(call->placement);

    for (size_t at = 0; session->fallback == CG_FALLBACK_RUN &&
                        device_failed(status) && at < session->candidate_count;
         at++) {
        cellgate_error cause = CELLGATE_ERROR_INIT;

        if (failed != NULL && session->candidates[at].device == failed)
            continue;
        status = run_candidate(session, at, call, &cause);
        if (!device_failed(status) && status != CELLGATE_OK)
            return cellgate_fail(failure, status, "%s", cause.text);
    }
    return status == CELLGATE_OK ? status : first;
}

/* ---- The report -------------------------------------------------------- */

static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s", more);
}

static void report_reason(const cg_call *call, const cellgate_error *failure,
                          cellgate_report *report)
{
    char *text = report->reason;
    size_t size = sizeof report->reason;

    text[0] = '\0';
    if (failure->status != CELLGATE_OK) {
        append(text, size, "after a failure: ");
        append(text, size, failure->text);
        append(text, size, "; ");
    }
    if (call->route.measured)
        cg_route_text(&call->route, text + strlen(text), size - strlen(text));
    else
        append(text, size, call->placement->reason);
    for (size_t at = 0; at < call->partition->count; at++) {
        const cg_part *part = &call->partition->parts[at];

        if (part->segment != NULL || cg_placement_on_host(call->placement) ||
            !cg_segment_takes(call->graph->nodes[part->node].kind))
            continue;
        append(text, size, "; host: ");
        append(text, size, call->graph->nodes[part->node].name);
        append(text, size, ": ");
        append(text, size, part->reason);
    }
}

static void fill_report(const cg_call *call, const cellgate_error *failure,
                        double seconds, cellgate_report *report)
{
    const cg_times *times = &call->times;
    const cg_segment *longest = times->longest_in;

    snprintf(report->device, sizeof report->device, "%s",
             longest != NULL ? cg_device_name(longest->engine->device)
                             : "host");
    snprintf(report->variant, sizeof report->variant, "%s",
             longest != NULL ? longest->variant.name : "");
    report_reason(call, failure, report);
    report->seconds = seconds;
    report->device_seconds = times->device;
    report->host_seconds = times->host;
    report->wait_seconds = times->wait;
    report->upload_seconds = times->upload;
    report->compute_seconds = times->compute;
    report->download_seconds = times->download;
    report->segments = times->segments;
    report->host_segments = times->host_segments;
}

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

cellgate_status cellgate_run(cellgate_session *session,
                             const cellgate_request *request,
                             cellgate_report *report, cellgate_error *error)
{
    cellgate_error failure = CELLGATE_ERROR_INIT;
    cellgate_report filled = { .struct_size = sizeof filled };
    double start = cg_seconds();
    cellgate_request read;
    cellgate_input first;
    cg_call call;
    cellgate_status status = cg_process_check(error);

    if (status == CELLGATE_OK)
        status = read_request(session, request, &read, error);
    if (status != CELLGATE_OK)
        return status;
    if (report != NULL && report->struct_size < sizeof(size_t))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the report's struct_size is not set");
    memset(&call, 0, sizeof call);
    cg_request_input(&read, 0, &first);
    call.request = &read;
    call.graph = &session->graph;
    call.stream = read.stream;
    call.batch = first.tensor.shape[0];
    status = check_stream(session, &read, call.batch, error);
    if (status != CELLGATE_OK)
        return status;
    status = run_any(session, &call, &failure);
    if (status != CELLGATE_OK)
        return tell(error, &failure, status);
    if (report != NULL) {
        fill_report(&call, &failure, cg_seconds() - start, &filled);
        cellgate_struct_copy(report, &filled);
    }
    return CELLGATE_OK;
}
