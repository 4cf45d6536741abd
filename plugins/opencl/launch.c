/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/opencl/plan.h"

/* Kernels that a driver may gather into one piece of work: a watchdog looks at
   pieces, and an idle device waits for the first. */
#define LAUNCHES_A_FLUSH 64

cellgate_status ocl_check_launched(struct cellgate_plan *plan,
                                   cellgate_error *error)
{
    cl_int state = CL_COMPLETE;

    if (plan->launched &&
        plan->device->cl->GetEventInfo(
            plan->launched, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
            &state, NULL) == CL_SUCCESS &&
        state < 0)
        return ocl_device_fail(plan->device, error, state, "a kernel's event",
                               "running a segment");
    return CELLGATE_OK;
}

cellgate_status ocl_flush(struct cellgate_plan *plan, cellgate_error *error)
{
    cl_int code = plan->device->cl->Flush(plan->queue);

    plan->unflushed = 0;
    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code, "clFlush",
                               "running a segment");
    return ocl_check_launched(plan, error);
}

cellgate_status ocl_launched(struct cellgate_plan *plan, cl_event event,
                             cellgate_error *error)
{
    if (!plan->began)
        plan->began = plan->launched;
    else if (plan->launched)
        (void)plan->device->cl->ReleaseEvent(plan->launched);
    plan->launched = event;
    plan->unflushed++;
    return plan->unflushed < LAUNCHES_A_FLUSH ? CELLGATE_OK
                                              : ocl_flush(plan, error);
}

cellgate_status ocl_launch(struct cellgate_plan *plan, cl_kernel kernel,
                           const struct ocl_argument *arguments,
                           uint32_t argument_count, const size_t *global,
                           const size_t *local, cellgate_error *error)
{
    const struct ocl_api *cl = plan->device->cl;
    cl_event event = NULL;
    cl_int code = CL_SUCCESS;
    uint32_t i;

    for (i = 0; code == CL_SUCCESS && i < argument_count; i++)
        code =
            cl->SetKernelArg(kernel, i, arguments[i].size, arguments[i].value);
    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code, "clSetKernelArg",
                               "running a segment");
    code = cl->EnqueueNDRangeKernel(plan->queue, kernel, 3, NULL, global, local,
                                    0, NULL, &event);
    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code,
                               "clEnqueueNDRangeKernel", "running a segment");
    return ocl_launched(plan, event, error);
}

/* ---- An LSTM ----------------------------------------------------------- */

static void fill_arguments(const struct cellgate_plan *plan,
                           const struct ocl_lstm *lstm,
                           const struct ocl_rows *x, const struct ocl_rows *y,
                           const struct ocl_rows *last,
                           struct ocl_lstm_arguments *a)
{
    *a = (struct ocl_lstm_arguments){
        .x = x->strides,
        .y = y->strides,
        .last = last->strides.batch,
        .last_at = last->strides.at,
        .batch = (int)plan->run->batch,
        .steps = (int)plan->run->steps,
        .input = (int)lstm->input,
        .hidden = (int)lstm->hidden,
        .output = (int)lstm->output,
        .blocks = lstm->blocks,
        .output_blocks = lstm->output_blocks,
        .directions = lstm->directions,
        .reverse = { ocl_reversed(lstm, 0), 1 },
        .peepholes = lstm->peepholes,
        .coupled = lstm->coupled,
        .clip = lstm->clip,
    };
    memcpy(a->activations, lstm->activations, sizeof a->activations);
}

static int given_state(const struct cellgate_plan *plan, uint32_t op)
{
    const cellgate_segment_run *run = plan->run;

    if (run->resident)
        return 3;
    return run->states
               ? (run->states[op].h0 ? 1 : 0) | (run->states[op].c0 ? 2 : 0)
               : 0;
}

/* Items of a group where each works alone. */
static size_t lone_items(const struct cellgate_plan *plan)
{
    return plan->device->group < 32 ? plan->device->group : 32;
}

/* One launch of the whole-sequence kernel. */
static cellgate_status enqueue_whole(struct cellgate_plan *plan, uint32_t index,
                                     const struct ocl_lstm_arguments *a,
                                     const struct ocl_rows *x,
                                     const struct ocl_rows *y,
                                     const struct ocl_rows *last,
                                     cellgate_error *error)
{
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    const struct ocl_stage_plan *stage = &plan->stages[index];
    const struct ocl_buffer none = { NULL, 0 };
    const struct ocl_buffer products =
        plan->variant->way == OCL_FUSED ? none : plan->products;
    const size_t local_bytes =
        ocl_whole_memory(lstm, plan->device->vector, plan->variant);
    const struct ocl_argument arguments[] = {
        OCL_VALUE(*a),
        OCL_MEMORY(x->buffer),
        OCL_MEMORY(x->ids),
        OCL_MEMORY(lstm->kernel),
        OCL_MEMORY(lstm->recurrent),
        OCL_MEMORY(lstm->projection),
        OCL_MEMORY(lstm->bias),
        OCL_MEMORY(lstm->peephole),
        OCL_MEMORY(products),
        OCL_MEMORY(stage->h),
        OCL_MEMORY(stage->c),
        OCL_MEMORY(y->buffer),
        OCL_MEMORY(last->buffer),
        OCL_MEMORY(plan->lengths),
        OCL_MEMORY(plan->order),
        { local_bytes, NULL },
    };
    const size_t groups = ocl_divide_up(a->batch, plan->variant->rows);
    const size_t global[3] = { groups * stage->items, (size_t)a->directions,
                               1 };
    const size_t local[3] = { stage->items, 1, 1 };

    return OCL_LAUNCH(plan, stage->main, arguments, global, local, error);
}

static cellgate_status enqueue_step(struct cellgate_plan *plan, uint32_t index,
                                    const struct ocl_lstm_arguments *a,
                                    const struct ocl_rows *y,
                                    cellgate_error *error)
{
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    const struct ocl_stage_plan *stage = &plan->stages[index];
    const cellgate_device *device = plan->device;
    const size_t slices = device->slices;
    const struct ocl_argument arguments[] = {
        OCL_VALUE(*a),
        OCL_MEMORY(lstm->recurrent),
        OCL_MEMORY(lstm->peephole),
        OCL_MEMORY(plan->products),
        OCL_MEMORY(stage->h),
        OCL_MEMORY(stage->c),
        OCL_MEMORY(stage->hidden),
        OCL_MEMORY(y->buffer),
        OCL_MEMORY(plan->lengths),
        OCL_MEMORY(plan->order),
        { slices > 1 ? sizeof(float) * 4 * plan->variant->rows * slices *
                           stage->items * device->vector
                     : sizeof(float),
          NULL },
    };
    const struct ocl_argument projecting[] = {
        OCL_VALUE(*a),
        OCL_MEMORY(lstm->projection),
        OCL_MEMORY(stage->hidden),
        OCL_MEMORY(stage->h),
        OCL_MEMORY(y->buffer),
        OCL_MEMORY(plan->lengths),
    };
    const size_t groups = ocl_divide_up(a->batch, plan->variant->rows);
    const size_t global[3] = { ocl_divide_up(a->blocks, (int64_t)stage->items) *
                                   stage->items,
                               slices, groups * (size_t)a->directions };
    const size_t local[3] = { stage->items, slices, 1 };
    const size_t lone[3] = { lone_items(plan), 1, 1 };
    const size_t outputs[3] = {
        ocl_divide_up(a->output_blocks, (int64_t)lone[0]) * lone[0],
        (size_t)a->batch, (size_t)a->directions
    };
    cellgate_status status =
        OCL_LAUNCH(plan, stage->main, arguments, global, local, error);

    if (status == CELLGATE_OK && lstm->projects)
        status =
            OCL_LAUNCH(plan, stage->project, projecting, outputs, lone, error);
    return status;
}

/* Steps [first, end) of the step kernel, whose products are there. */
static cellgate_status enqueue_steps(struct cellgate_plan *plan, uint32_t index,
                                     struct ocl_lstm_arguments *a,
                                     const struct ocl_rows *y, int64_t first,
                                     int64_t end, cellgate_error *error)
{
    const int64_t step_size =
        a->batch * (int64_t)a->blocks * 4 * (int64_t)plan->device->vector;
    cellgate_status status = CELLGATE_OK;
    int64_t step;

    for (step = first; status == CELLGATE_OK && step < end; step++) {
        a->first = (int)step;
        a->end = (int)step + 1;
        a->parity = (int)(step & 1);
        a->products_at = (step - first) * step_size;
        status = enqueue_step(plan, index, a, y, error);
    }
    return status;
}

static cellgate_status enqueue_last(struct cellgate_plan *plan, uint32_t index,
                                    struct ocl_lstm_arguments *a,
                                    const struct ocl_rows *last,
                                    cellgate_error *error)
{
    const struct ocl_argument arguments[] = {
        OCL_VALUE(*a),
        OCL_MEMORY(plan->stages[index].h),
        OCL_MEMORY(last->buffer),
        OCL_MEMORY(plan->lengths),
    };
    const size_t local[3] = { lone_items(plan), 1, 1 };
    const size_t global[3] = { ocl_divide_up(a->output, (int64_t)local[0]) *
                                   local[0],
                               (size_t)a->batch, (size_t)a->directions };

    a->parity = (int)(plan->run->steps & 1);
    return OCL_LAUNCH(plan, plan->stages[index].last, arguments, global, local,
                      error);
}

int64_t ocl_final_h_at(const struct cellgate_plan *plan, uint32_t index)
{
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;

    if (plan->variant->way != OCL_STEP || (plan->run->steps & 1) == 0)
        return 0;
    return lstm->directions * plan->run->batch * lstm->output;
}

static cellgate_status enqueue_zeros(struct cellgate_plan *plan,
                                     const struct ocl_buffer *buffer,
                                     int64_t at, int64_t count,
                                     cellgate_error *error)
{
    const float zero = 0;
    cl_int code;

    if (count == 0)
        return CELLGATE_OK;
    code = plan->device->cl->EnqueueFillBuffer(
        plan->queue, buffer->memory, &zero, sizeof zero,
        (size_t)at * sizeof zero, (size_t)count * sizeof zero, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code, "clEnqueueFillBuffer",
                               "running a segment");
    return CELLGATE_OK;
}

/* What the kernels take for granted: padding of the sequence, first states. */
static cellgate_status enqueue_beginning(struct cellgate_plan *plan,
                                         uint32_t index,
                                         const struct ocl_rows *y, int given,
                                         cellgate_error *error)
{
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    const int64_t rows = lstm->directions * plan->run->batch;
    cellgate_status status = CELLGATE_OK;

    if (y->buffer.memory && plan->ragged)
        status = enqueue_zeros(plan, &y->buffer, y->strides.at,
                               plan->run->batch * plan->run->steps *
                                   plan->weights->stages[index].width,
                               error);
    if (plan->variant->way != OCL_STEP)
        return status;
    if (status == CELLGATE_OK && !(given & 1))
        status = enqueue_zeros(plan, &plan->stages[index].h, 0,
                               rows * lstm->output, error);
    if (status == CELLGATE_OK && !(given & 2))
        status = enqueue_zeros(plan, &plan->stages[index].c, 0,
                               rows * lstm->hidden, error);
    return status;
}

cellgate_status ocl_enqueue_lstm(struct cellgate_plan *plan, uint32_t index,
                                 const struct ocl_rows *x,
                                 const struct ocl_rows *y,
                                 const struct ocl_rows *last,
                                 cellgate_error *error)
{
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    const enum ocl_way way = plan->variant->way;
    const int64_t steps = plan->run->steps;
    const int given = given_state(plan, lstm->op);
    const struct ocl_rows nowhere = { .strides = { 0, 0, 0 } };
    struct ocl_lstm_arguments a;
    cellgate_status status = enqueue_beginning(plan, index, y, given, error);
    int64_t first = 0, end;

    fill_arguments(plan, lstm, x, y, last, &a);
    do {
        end = first + plan->stages[index].chunk;
        if (end > steps)
            end = steps;
        if (status == CELLGATE_OK && way != OCL_FUSED)
            status = ocl_enqueue_products(plan, lstm, x, first, end, error);
        a.first = (int)first;
        a.end = (int)end;
        a.initial = first > 0 ? 3 : given;
        a.products = a.batch * (int64_t)a.blocks * 4 * plan->device->vector *
                     (end - first);
        if (status == CELLGATE_OK && way == OCL_STEP)
            status = enqueue_steps(plan, index, &a, y, first, end, error);
        else if (status == CELLGATE_OK)
            status = enqueue_whole(plan, index, &a, x, y,
                                   end == steps ? last : &nowhere, error);
        first = end;
        if (status == CELLGATE_OK && first < steps)
            status = ocl_flush(plan, error);
    } while (status == CELLGATE_OK && first < steps);
    if (status == CELLGATE_OK && way == OCL_STEP && last->buffer.memory)
        status = enqueue_last(plan, index, &a, last, error);
    return status;
}

/* ---- Other stages ------------------------------------------------------ */

static cellgate_status
enqueue_activation(struct cellgate_plan *plan, const struct ocl_stage *stage,
                   const struct ocl_activation *how, const struct ocl_rows *x,
                   const struct ocl_rows *y, cellgate_error *error)
{
    const int64_t steps = stage->sequence ? ocl_run_steps(plan) : 1;
    const struct ocl_rows_arguments a = { .x = x->strides,
                                          .y = y->strides,
                                          .batch = (int)plan->run->batch,
                                          .steps = (int)steps,
                                          .width = (int)stage->width,
                                          .activation = *how };
    const struct ocl_argument arguments[] = {
        OCL_VALUE(a),
        OCL_MEMORY(x->buffer),
        OCL_MEMORY(x->ids),
        OCL_MEMORY(y->buffer),
    };
    const size_t items = plan->device->group < 64 ? plan->device->group : 64;
    const size_t global[3] = {
        ocl_divide_up(stage->width, (int64_t)(plan->device->vector * items)) *
            items,
        (size_t)steps, (size_t)a.batch
    };
    const size_t local[3] = { items, 1, 1 };

    if (steps == 0)
        return CELLGATE_OK;
    return OCL_LAUNCH(plan, plan->activate, arguments, global, local, error);
}

static cellgate_status enqueue_softmax(struct cellgate_plan *plan,
                                       const struct ocl_stage *stage,
                                       const struct ocl_rows *y,
                                       cellgate_error *error)
{
    const int64_t steps = stage->sequence ? ocl_run_steps(plan) : 1;
    const struct ocl_rows_arguments a = { .y = y->strides,
                                          .batch = (int)plan->run->batch,
                                          .steps = (int)steps,
                                          .width = (int)stage->width };
    const size_t items = plan->device->group < 64 ? plan->device->group : 64;
    const struct ocl_argument arguments[] = {
        OCL_VALUE(a),
        OCL_MEMORY(y->buffer),
        { items * sizeof(float), NULL },
    };
    const size_t global[3] = { items, (size_t)steps, (size_t)a.batch };
    const size_t local[3] = { items, 1, 1 };

    if (steps == 0)
        return CELLGATE_OK;
    return OCL_LAUNCH(plan, plan->softmax, arguments, global, local, error);
}

cellgate_status ocl_enqueue_copy(struct cellgate_plan *plan, uint32_t index,
                                 const struct ocl_rows *x,
                                 const struct ocl_rows *y,
                                 cellgate_error *error)
{
    const struct ocl_activation none = { CELLGATE_LINEAR, 0, 0, 0 };

    return enqueue_activation(plan, &plan->weights->stages[index], &none, x, y,
                              error);
}

cellgate_status ocl_enqueue_finishes(struct cellgate_plan *plan, uint32_t index,
                                     const struct ocl_rows *y,
                                     cellgate_error *error)
{
    const struct ocl_stage *stage = &plan->weights->stages[index];
    cellgate_status status = CELLGATE_OK;
    uint32_t i;

    for (i = 0; status == CELLGATE_OK && i < stage->finish_count; i++)
        status = stage->finishes[i].softmax
                     ? enqueue_softmax(plan, stage, y, error)
                     : enqueue_activation(plan, stage,
                                          &stage->finishes[i].activation, y, y,
                                          error);
    return status;
}
