/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/session/session.h"
#include "runtime/session/split.h"

/* Parts of a batch that are tried, and inputs and outputs that a request may
   have to be split. */
#define PARTS 8
#define TENSORS 8

/* ---- Deciding ----------------------------------------------------------- */

static bool share_a_resource(const cg_cut *a, const cg_cut *b)
{
    for (size_t at = 0; at < a->engine_count; at++)
        for (size_t other = 0; other < b->engine_count; other++)
            if (a->engines[at]->load == b->engines[other]->load)
                return true;
    return a->engine_count == 0 || b->engine_count == 0;
}

/* Threads of the host that drive a cut's devices, those that compute on their
   callers apart. */
static uint32_t driving_threads(const cg_cut *cut)
{
    uint32_t count = 0;

    for (size_t at = 0; at < cut->engine_count; at++)
        count += cut->engines[at]->staged;
    return count;
}

/* Whether a cut that computes on its callers leaves the other's devices the
   threads that drive them: a team of as many threads as there are cores stands
   still whenever one of them has to make room. */
static bool leaves_threads(const cg_cut *cut, const cg_cut *other)
{
    const uint32_t more = driving_threads(other);

    for (size_t at = 0; at < cut->partition.count; at++) {
        const cg_segment *segment = cut->partition.parts[at].segment;

        if (segment != NULL && !segment->engine->staged &&
            segment->variant.threads + more >
                cg_device_thread_budget(segment->engine->device))
            return false;
    }
    return true;
}

static bool may_run_at_once(const cg_cut *a, const cg_cut *b)
{
    return !share_a_resource(a, b) && leaves_threads(a, b) &&
           leaves_threads(b, a);
}

/* What a cut costs at the shapes of `costing`; infinite where that is not
   known, or borrowed: a guess is no reason to take a request apart. */
static cellgate_status cost_of(const cg_costing *costing, const cg_cut *cut,
                               double *seconds, cellgate_error *error)
{
    const cg_policy latency = { CG_LATENCY, costing->policy.expected_requests,
                                0 };
    cellgate_status status = CELLGATE_OK;

    *seconds = 0;
    for (size_t at = 0; status == CELLGATE_OK && at < cut->partition.count;
         at++) {
        const cg_segment *segment = cut->partition.parts[at].segment;
        cg_option option;

        if (segment == NULL)
            continue;
        status = cg_segment_option_once(costing, segment, &option, error);
        if (status == CELLGATE_OK)
            *seconds += option.cost.kind > CG_COST_BORROWED
                            ? cg_option_score(&option, &latency)
                            : HUGE_VAL;
    }
    return status;
}

/* The same for `rows` of the batch. */
static cellgate_status cost_of_rows(const cg_costing *costing,
                                    const cg_cut *cut, int64_t rows,
                                    int64_t batch, cg_shape *shapes,
                                    double *seconds, cellgate_error *error)
{
    const size_t count = costing->session->graph.value_count;
    cg_costing of = *costing;

    memcpy(shapes, costing->shapes, count * sizeof *shapes);
    for (size_t at = 0; at < count; at++)
        if (shapes[at].rank > 0 && shapes[at].extent[0] == batch)
            shapes[at].extent[0] = rows;
    of.shapes = shapes;
    of.memo = NULL;
    return cost_of(&of, cut, seconds, error);
}

/* The best of the splits between the pin's first way and another. */
static cellgate_status try_way(const cg_costing *costing, const cg_pin *pin,
                               uint32_t other, int64_t batch, cg_shape *shapes,
                               cg_split *best, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (int part = 1; status == CELLGATE_OK && part < PARTS; part++) {
        const int64_t rows = batch * part / PARTS;
        double first = HUGE_VAL, second = HUGE_VAL;

        status = cost_of_rows(costing, pin->ways[0].cut, rows, batch, shapes,
                              &first, error);
        if (status == CELLGATE_OK && first < (double)best->seconds)
            status = cost_of_rows(costing, pin->ways[other].cut, batch - rows,
                                  batch, shapes, &second, error);
        if (fmax(first, second) < (double)best->seconds)
            *best = (cg_split){ .other = other,
                                .share = (float)part / PARTS,
                                .seconds = (float)fmax(first, second) };
    }
    return status;
}

cellgate_status cg_split_decide(const cg_costing *costing, cg_pin *pin,
                                cellgate_error *error)
{
    const cellgate_model *model = costing->session->model;
    const int64_t batch = costing->shapes[model->inputs[0].value].extent[0];
    const double alone = (double)pin->ways[0].seconds;
    cg_split best = { .seconds =
                          (float)(alone / (1 + costing->policy.margin)) };
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status = CELLGATE_OK;
    double handoff = 0;
    cg_shape *shapes;

    pin->split = (cg_split){ .other = 0 };
    if (!cg_device_table_config(costing->session->table)->split ||
        batch < PARTS || pin->way_count < 2 ||
        costing->policy.objective != CG_LATENCY)
        return CELLGATE_OK;
    shapes = calloc(costing->session->graph.value_count + 1, sizeof *shapes);
    if (shapes == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to choose devices");
    for (uint32_t at = 1; status == CELLGATE_OK && at < pin->way_count; at++)
        if (may_run_at_once(pin->ways[0].cut, pin->ways[at].cut))
            status = try_way(costing, pin, at, batch, shapes, &best, error);
    free(shapes);
    if (status != CELLGATE_OK || best.other == 0)
        return status;
    status = cg_session_handoff(costing->session, &handoff, &why);
    if (status == CELLGATE_NO_MEMORY)
        return cellgate_fail(error, status, "%s", why.text);
    best.seconds += (float)handoff;
    if (status == CELLGATE_OK &&
        (double)best.seconds * (1 + costing->policy.margin) < alone)
        pin->split = best;
    return CELLGATE_OK;
}

void cg_split_text(const cg_pin *pin, char *text, size_t size)
{
    const cg_cut *first = pin->ways[0].cut;
    const cg_cut *other = pin->ways[pin->split.other].cut;

    snprintf(text, size,
             "measured: %d%% of the rows on %s and the rest on %s, %lld us "
             "predicted; %lld us on the first alone",
             (int)(pin->split.share * 100 + 0.5f),
             cg_device_name(first->engines[0]->device),
             cg_device_name(other->engines[0]->device),
             (long long)((double)pin->split.seconds * 1e6 + 0.5),
             (long long)((double)pin->ways[0].seconds * 1e6 + 0.5));
}

/* ---- Whether, now ------------------------------------------------------- */

static int64_t bytes_of(const cellgate_tensor *tensor)
{
    int64_t bytes = (int64_t)cellgate_dtype_size(tensor->dtype);

    for (int32_t axis = 0; axis < tensor->rank; axis++)
        bytes *= tensor->shape[axis];
    return bytes;
}

static bool overlap(const cellgate_tensor *a, const cellgate_tensor *b)
{
    const char *of_a = a->data, *of_b = b->data;

    return of_a != NULL && of_b != NULL && of_a < of_b + bytes_of(b) &&
           of_b < of_a + bytes_of(a);
}

/* Rows can be told apart where each tensor has the batch as its first axis, and
   no part's outputs lie over another's inputs. */
static bool can_be_split(const cg_call *call)
{
    const cellgate_request *request = call->request;

    if (call->stream != NULL || request->input_count > TENSORS ||
        request->output_count > TENSORS)
        return false;
    for (size_t at = 0; at < request->output_count; at++) {
        cellgate_tensor output;

        cg_request_output(request, at, &output);
        if (output.data == NULL)
            continue;
        if (output.rank < 1 || output.shape[0] != call->batch)
            return false;
        for (size_t other = 0; other < request->input_count; other++) {
            cellgate_input input;

            cg_request_input(request, other, &input);
            if (overlap(&output, &input.tensor))
                return false;
        }
    }
    for (size_t at = 0; at < request->input_count; at++) {
        cellgate_input input;

        cg_request_input(request, at, &input);
        if (input.tensor.rank < 1 || input.tensor.shape[0] != call->batch)
            return false;
    }
    return true;
}

bool cg_split_wanted(const cg_call *call)
{
    const cg_pin *pin = call->pin;

    return pin->split.other > 0 && call->behind == 0 && call->batch >= PARTS &&
           cg_way_is_free(&pin->ways[0]) &&
           cg_way_is_free(&pin->ways[pin->split.other]) && can_be_split(call);
}

/* ---- Running ------------------------------------------------------------ */

/* Some rows of a request, on their way. */
typedef struct part {
    cg_queue_job job; /* first: the queue hands it back as itself */
    cellgate_session *session;
    cellgate_input inputs[TENSORS];
    cellgate_tensor outputs[TENSORS];
    cellgate_request request;
    cg_call call;
    cg_pin pin;
    cellgate_error error;
    cellgate_status status;
} part;

static void *rows_from(void *data, int64_t row, int64_t bytes, int64_t batch)
{
    return data == NULL ? NULL : (char *)data + row * (bytes / batch);
}

static void take_rows(part *of, const cg_call *whole, int64_t first,
                      int64_t rows)
{
    const cellgate_request *request = whole->request;

    for (size_t at = 0; at < request->input_count; at++) {
        cellgate_input *input = &of->inputs[at];
        cellgate_tensor *tensor = &input->tensor;

        cg_request_input(request, at, input);
        if (input->lengths != NULL)
            input->lengths += first;
        if (input->mask != NULL)
            input->mask += first * tensor->shape[1];
        tensor->data =
            rows_from(tensor->data, first, bytes_of(tensor), whole->batch);
        tensor->shape[0] = rows;
    }
    for (size_t at = 0; at < request->output_count; at++) {
        cellgate_tensor *tensor = &of->outputs[at];

        cg_request_output(request, at, tensor);
        if (tensor->data == NULL)
            continue;
        tensor->data =
            rows_from(tensor->data, first, bytes_of(tensor), whole->batch);
        tensor->shape[0] = rows;
    }
    of->request = *request;
    of->request.inputs = of->inputs;
    of->request.outputs = of->outputs;
}

/* The way of a part, predicted to take its share. */
static void set_way(part *of, const cg_call *whole, uint32_t way, int64_t rows)
{
    const float share = (float)rows / (float)whole->batch;
    cg_way *only = &of->pin.ways[0];

    of->call = *whole;
    of->call.pin = &of->pin;
    of->call.recall = NULL;
    of->call.number = 0;
    *only = whole->pin->ways[way];
    only->seconds *= share;
    for (size_t at = 0; at < CG_CUT_DEVICES; at++)
        only->on[at] *= share;
    of->pin.way_count = 1;
    of->call.request = &of->request;
    of->call.batch = rows;
    of->call.is_part = true;
}

static void part_init(part *of, cellgate_session *session, const cg_call *whole,
                      uint32_t way, int64_t first, int64_t rows)
{
    memset(of, 0, sizeof *of);
    of->session = session;
    of->error.struct_size = sizeof of->error;
    take_rows(of, whole, first, rows);
    set_way(of, whole, way, rows);
}

static void run_part(cg_queue_job *job)
{
    part *of = (part *)job;

    of->status = cg_call_run_way(&of->call, of->session, 0, false, &of->error);
}

/* The second part on another thread; on this one, after the first, where no
   thread has begun it by then. */
static void run_both(part *parts, cg_queue *queue)
{
    bool queued;

    parts[1].job.work = run_part;
    queued = cg_queue_put(queue, &parts[1].job, NULL) == CELLGATE_OK;
    run_part(&parts[0].job);
    if (!queued || cg_queue_cancel(queue, &parts[1].job) == CG_JOB_CANCELLED)
        run_part(&parts[1].job);
    else
        (void)cg_queue_wait(queue, &parts[1].job, -1);
}

/* For reports: the longer one's times, and both ones' segments. */
static void join_calls(cg_call *call, const part *parts)
{
    const cg_call *a = &parts[0].call, *b = &parts[1].call;
    const cg_call *longer = a->times.device >= b->times.device ? a : b;
    const cg_call *failed = parts[0].status != CELLGATE_OK ? a : b;
    const bool good =
        parts[0].status == CELLGATE_OK && parts[1].status == CELLGATE_OK;

    call->times = longer->times;
    call->times.segments = a->times.segments + b->times.segments;
    call->times.host_segments = a->times.host_segments + b->times.host_segments;
    call->times.numeric = a->times.numeric > b->times.numeric
                              ? a->times.numeric
                              : b->times.numeric;
    call->partition = longer->partition;
    call->placement = good ? longer->placement : failed->placement;
    call->culprit = good ? NULL : failed->culprit;
    call->was_split = good;
    call->way = &call->pin->ways[0];
}

cellgate_status cg_split_run(cg_call *call, cellgate_session *session,
                             cellgate_error *error)
{
    const cg_split *split = &call->pin->split;
    const int64_t rows =
        (int64_t)((double)split->share * (double)call->batch + 0.5);
    cg_queue *queue;
    part parts[2];
    const part *bad;
    cellgate_status status = cg_session_queue(session, &queue, error);

    if (status != CELLGATE_OK)
        return status;
    part_init(&parts[0], session, call, 0, 0, rows);
    part_init(&parts[1], session, call, split->other, rows, call->batch - rows);
    run_both(parts, queue);
    join_calls(call, parts);
    if (parts[0].status == CELLGATE_OK && parts[1].status == CELLGATE_OK)
        return CELLGATE_OK;
    bad = parts[0].status != CELLGATE_OK ? &parts[0] : &parts[1];
    cellgate_fail(error, bad->status, "%s", bad->error.text);
    if (error != NULL)
        error->vendor_code = bad->error.vendor_code;
    return bad->status;
}
