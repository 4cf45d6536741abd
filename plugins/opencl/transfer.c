/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/opencl/plan.h"

/* ---- The clock --------------------------------------------------------- */

cl_event *ocl_mark(struct cellgate_plan *plan, enum ocl_phase phase)
{
    cl_event *marks = plan->marks[phase];

    if (!marks[0])
        return &marks[0];
    if (marks[1])
        (void)plan->device->cl->ReleaseEvent(marks[1]);
    marks[1] = NULL;
    return &marks[1];
}

static bool event_time(const struct cellgate_plan *plan, cl_event event,
                       cl_profiling_info which, double *seconds)
{
    cl_ulong time;

    if (!event || plan->device->cl->GetEventProfilingInfo(
                      event, which, sizeof time, &time, NULL) != CL_SUCCESS)
        return false;
    *seconds = 1e-9 * (double)time;
    return true;
}

/* When a phase began and ended on the device; false where it had no command. */
static bool phase_times(const struct cellgate_plan *plan, enum ocl_phase phase,
                        double *begin, double *end)
{
    const cl_event *marks = plan->marks[phase];

    return event_time(plan, marks[0], CL_PROFILING_COMMAND_START, begin) &&
           event_time(plan, marks[1] ? marks[1] : marks[0],
                      CL_PROFILING_COMMAND_END, end);
}

/* The queue is in order: what is between uploads and downloads is compute. */
static void read_clock(struct cellgate_plan *plan)
{
    double times[OCL_PHASES][2] = { { 0, 0 }, { 0, 0 } };
    bool up = phase_times(plan, OCL_UPLOAD, &times[OCL_UPLOAD][0],
                          &times[OCL_UPLOAD][1]);
    bool down = phase_times(plan, OCL_DOWNLOAD, &times[OCL_DOWNLOAD][0],
                            &times[OCL_DOWNLOAD][1]);
    double begin = 0, end = 0;

    if (up)
        begin = times[OCL_UPLOAD][1];
    else
        up = event_time(plan, plan->began ? plan->began : plan->launched,
                        CL_PROFILING_COMMAND_START, &begin);
    if (down)
        end = times[OCL_DOWNLOAD][0];
    else
        down = event_time(plan, plan->launched, CL_PROFILING_COMMAND_END, &end);

    plan->breakdown = (cellgate_breakdown){
        .struct_size = sizeof plan->breakdown,
        .upload = times[OCL_UPLOAD][1] - times[OCL_UPLOAD][0] +
                  plan->copying[OCL_UPLOAD],
        .compute = up && down && end > begin ? end - begin : 0,
        .download = times[OCL_DOWNLOAD][1] - times[OCL_DOWNLOAD][0] +
                    plan->copying[OCL_DOWNLOAD],
    };
    plan->measured = true;
}

static cellgate_status check_events(struct cellgate_plan *plan,
                                    cellgate_error *error)
{
    int i;

    for (i = 0; i < 2 * OCL_PHASES; i++) {
        cl_event event = plan->marks[i / 2][i % 2];
        cl_int state = CL_COMPLETE;

        if (event &&
            plan->device->cl->GetEventInfo(
                event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                NULL) == CL_SUCCESS &&
            state < 0)
            return ocl_device_fail(plan->device, error, state,
                                   "a command's event", "running a segment");
    }
    return ocl_check_launched(plan, error);
}

static void release(const struct cellgate_plan *plan, cl_event *event)
{
    if (*event)
        (void)plan->device->cl->ReleaseEvent(*event);
    *event = NULL;
}

cellgate_status ocl_finish_run(struct cellgate_plan *plan,
                               cellgate_error *error)
{
    const struct ocl_api *cl = plan->device->cl;
    cellgate_error ignored = CELLGATE_ERROR_INIT;
    cellgate_status status;
    cl_int code;
    int i;

    (void)ocl_take_back_shared(plan, &ignored); /* after a failure */
    code = cl->Finish(plan->queue);
    ocl_pinned_let_go(plan->device, plan);
    status = code == CL_SUCCESS
                 ? check_events(plan, error)
                 : ocl_device_fail(plan->device, error, code, "clFinish",
                                   "running a segment");
    if (status == CELLGATE_OK)
        read_clock(plan);
    for (i = 0; i < 2 * OCL_PHASES; i++)
        release(plan, &plan->marks[i / 2][i % 2]);
    release(plan, &plan->began);
    release(plan, &plan->launched);
    plan->unflushed = 0;
    return status;
}

/* ---- Blocks of memory -------------------------------------------------- */

static cellgate_status write_block(struct cellgate_plan *plan,
                                   const struct ocl_buffer *to,
                                   const void *from, int64_t count,
                                   cellgate_error *error)
{
    cl_int code;

    if (count == 0)
        return CELLGATE_OK;
    code = plan->device->cl->EnqueueWriteBuffer(
        plan->queue, to->memory, CL_FALSE, 0, (size_t)count * sizeof(float),
        from, 0, NULL, ocl_mark(plan, OCL_UPLOAD));
    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code,
                               "clEnqueueWriteBuffer", "uploading");
    return CELLGATE_OK;
}

static cellgate_status read_block(struct cellgate_plan *plan,
                                  const struct ocl_buffer *from, int64_t at,
                                  void *to, int64_t count,
                                  cellgate_error *error)
{
    cl_int code;

    if (count == 0)
        return CELLGATE_OK;
    code = plan->device->cl->EnqueueReadBuffer(
        plan->queue, from->memory, CL_FALSE, (size_t)at * sizeof(float),
        (size_t)count * sizeof(float), to, 0, NULL,
        ocl_mark(plan, OCL_DOWNLOAD));
    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code, "clEnqueueReadBuffer",
                               "downloading");
    return CELLGATE_OK;
}

/* ---- Sequences --------------------------------------------------------- */

/* A sequence of the host: its memory, and its extent. */
struct extent {
    const cellgate_sequence *of;
    int64_t batch, steps, width;
};

/* Rows between the host's places and a dense block, which is on the device. */
static void move_rows(const struct extent *extent, float *block, bool to_block)
{
    const size_t row = (size_t)extent->width * sizeof(float);
    int64_t b, t;

    for (b = 0; b < extent->batch; b++)
        for (t = 0; t < extent->steps; t++, block += extent->width) {
            float *at = (float *)extent->of->data +
                        b * extent->of->batch_stride +
                        t * extent->of->time_stride;

            if (to_block)
                memcpy(block, at, row);
            else
                memcpy(at, block, row);
        }
}

/* A sequence with gaps: its rows one by one, in the buffer as the driver maps
   it. */
static cellgate_status move_mapped(struct cellgate_plan *plan,
                                   const struct extent *extent,
                                   const struct ocl_buffer *buffer,
                                   bool to_device, cellgate_error *error)
{
    const struct ocl_api *cl = plan->device->cl;
    const cellgate_host *host = plan->device->host;
    const enum ocl_phase phase = to_device ? OCL_UPLOAD : OCL_DOWNLOAD;
    const size_t size =
        (size_t)(extent->batch * extent->steps * extent->width) * sizeof(float);
    uint64_t since;
    cl_int code;
    void *block = cl->EnqueueMapBuffer(
        plan->queue, buffer->memory, CL_TRUE,
        to_device ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ, 0, size, 0,
        NULL, ocl_mark(plan, phase), &code);

    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code, "clEnqueueMapBuffer",
                               "moving a sequence");
    since = host->clock(host->context);
    move_rows(extent, block, to_device);
    plan->copying[phase] += 1e-9 * (double)(host->clock(host->context) - since);
    code = cl->EnqueueUnmapMemObject(plan->queue, buffer->memory, block, 0,
                                     NULL, ocl_mark(plan, phase));
    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code,
                               "clEnqueueUnmapMemObject", "moving a sequence");
    return CELLGATE_OK;
}

/* ---- Uploads ----------------------------------------------------------- */

static cellgate_status upload_x(struct cellgate_plan *plan,
                                cellgate_error *error)
{
    const struct extent extent = { &plan->run->x, plan->run->batch,
                                   plan->rows_only ? 1 : plan->run->steps,
                                   plan->weights->input_width };
    const int64_t count = extent.batch * extent.steps * extent.width;
    struct ocl_strides strides;

    if (count == 0 || plan->shared[OCL_X])
        return CELLGATE_OK;
    if (ocl_dense_strides(extent.of, extent.batch, extent.steps, extent.width,
                          &strides))
        return write_block(plan, &plan->x, extent.of->data, count, error);
    return move_mapped(plan, &extent, &plan->x, true, error);
}

/* Sorts places in the batch by length, the longest first (a shell sort). */
static void sort_samples(int32_t *order, int64_t count, const int32_t *lengths)
{
    int64_t gap, i, j;

    for (gap = count / 2; gap > 0; gap /= 2)
        for (i = gap; i < count; i++) {
            int32_t moved = order[i];

            for (j = i; j >= gap && lengths[order[j - gap]] < lengths[moved];
                 j -= gap)
                order[j] = order[j - gap];
            order[j] = moved;
        }
}

static cellgate_status upload_lengths(struct cellgate_plan *plan,
                                      cellgate_error *error)
{
    const cellgate_segment_run *run = plan->run;
    cellgate_status status;
    int64_t b;

    plan->ragged = false;
    for (b = 0; b < run->batch; b++) {
        plan->host_lengths[b] =
            run->lengths ? run->lengths[b] : (int32_t)run->steps;
        plan->host_order[b] = (int32_t)b;
        if (plan->host_lengths[b] < run->steps)
            plan->ragged = true;
    }
    /* A run like the one before: two uploads less. */
    if (!plan->ragged && plan->full_batch == run->batch &&
        plan->full_steps == run->steps)
        return CELLGATE_OK;
    plan->full_batch = 0;
    if (plan->ragged)
        sort_samples(plan->host_order, run->batch, plan->host_lengths);
    status = write_block(plan, &plan->lengths, plan->host_lengths, run->batch,
                         error);
    if (status == CELLGATE_OK)
        status = write_block(plan, &plan->order, plan->host_order, run->batch,
                             error);
    return status;
}

static cellgate_status copy_block(struct cellgate_plan *plan,
                                  const struct ocl_buffer *from,
                                  const struct ocl_buffer *to, int64_t count,
                                  cellgate_error *error)
{
    cl_int code = plan->device->cl->EnqueueCopyBuffer(
        plan->queue, from->memory, to->memory, 0, 0,
        (size_t)count * sizeof(float), 0, NULL, ocl_mark(plan, OCL_UPLOAD));

    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code, "clEnqueueCopyBuffer",
                               "moving a state");
    return CELLGATE_OK;
}

static cellgate_status upload_state(struct cellgate_plan *plan, uint32_t index,
                                    cellgate_error *error)
{
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    const struct ocl_stage_plan *stage = &plan->stages[index];
    const cellgate_resident *resident = plan->run->resident;
    const int64_t rows = lstm->directions * plan->run->batch;
    const cellgate_lstm_state *state;
    cellgate_status status = CELLGATE_OK;

    if (resident) {
        status = copy_block(plan, &resident->h[index], &stage->h,
                            rows * lstm->output, error);
        if (status == CELLGATE_OK)
            status = copy_block(plan, &resident->c[index], &stage->c,
                                rows * lstm->hidden, error);
        return status;
    }
    if (!plan->run->states)
        return CELLGATE_OK;
    state = &plan->run->states[lstm->op];
    if (state->h0)
        status =
            write_block(plan, &stage->h, state->h0, rows * lstm->output, error);
    if (status == CELLGATE_OK && state->c0)
        status =
            write_block(plan, &stage->c, state->c0, rows * lstm->hidden, error);
    return status;
}

cellgate_status ocl_enqueue_uploads(struct cellgate_plan *plan,
                                    cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    uint32_t i;

    if (plan->weights->outline.has_lstm)
        status = upload_lengths(plan, error);
    for (i = 0; status == CELLGATE_OK && i < plan->weights->stage_count; i++)
        if (plan->weights->stages[i].kind == OCL_STAGE_LSTM)
            status = upload_state(plan, i, error);
    if (status == CELLGATE_OK)
        status = upload_x(plan, error);
    return status == CELLGATE_OK ? ocl_give_shared(plan, error) : status;
}

/* ---- Downloads --------------------------------------------------------- */

static cellgate_status download(struct cellgate_plan *plan,
                                const cellgate_sequence *to, int64_t steps,
                                const struct ocl_buffer *from,
                                cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    const struct extent extent = {
        to, plan->run->batch, steps,
        weights->stages[weights->stage_count - 1].width
    };
    const int64_t count = extent.batch * extent.steps * extent.width;
    struct ocl_strides strides;

    if (!to->data || count == 0)
        return CELLGATE_OK;
    if (ocl_dense_strides(to, extent.batch, extent.steps, extent.width,
                          &strides))
        return read_block(plan, from, 0, to->data, count, error);
    return move_mapped(plan, &extent, from, false, error);
}

static cellgate_status download_state(struct cellgate_plan *plan,
                                      uint32_t index, cellgate_error *error)
{
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    const int64_t rows = lstm->directions * plan->run->batch;
    const cellgate_lstm_state *state;
    cellgate_status status = CELLGATE_OK;

    if (!plan->run->states)
        return CELLGATE_OK;
    state = &plan->run->states[lstm->op];
    if (state->h)
        status = read_block(plan, &plan->stages[index].h,
                            ocl_final_h_at(plan, index), state->h,
                            rows * lstm->output, error);
    if (status == CELLGATE_OK && state->c)
        status = read_block(plan, &plan->stages[index].c, 0, state->c,
                            rows * lstm->hidden, error);
    return status;
}

cellgate_status ocl_enqueue_downloads(struct cellgate_plan *plan,
                                      cellgate_error *error)
{
    cellgate_status status = ocl_take_back_shared(plan, error);
    uint32_t i;

    for (i = 0; status == CELLGATE_OK && i < plan->weights->stage_count; i++)
        if (plan->weights->stages[i].kind == OCL_STAGE_LSTM)
            status = download_state(plan, i, error);
    if (status == CELLGATE_OK && !plan->rows_only && !plan->shared[OCL_Y])
        status =
            download(plan, &plan->run->y, plan->run->steps, &plan->y, error);
    if (status == CELLGATE_OK && !plan->shared[OCL_LAST])
        status = download(plan, &plan->run->y_last, 1, &plan->last, error);
    return status;
}
