/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a run's x and results are on the device. What lies in memory of
 * host_allocate() on a device that shares the host's is not copied: the buffer
 * that it is part of is unmapped for the time of the kernels.
 */
#include "config.h"

#include "plugins/opencl/plan.h"

static bool strides_are(const cellgate_sequence *of, int64_t batch,
                        int64_t steps, const struct ocl_strides *strides)
{
    return (batch == 1 || of->batch_stride == strides->batch) &&
           (steps == 1 || of->time_stride == strides->time);
}

bool ocl_dense_strides(const cellgate_sequence *of, int64_t batch,
                       int64_t steps, int64_t width,
                       struct ocl_strides *strides)
{
    const struct ocl_strides by_time = { width, batch * width, 0 };

    *strides = (struct ocl_strides){ steps * width, width, 0 };
    if (strides_are(of, batch, steps, strides))
        return true;
    if (!strides_are(of, batch, steps, &by_time))
        return false;
    *strides = by_time;
    return true;
}

/* Claims the memory of an end where it is shared, and says where in it. */
static void share(struct cellgate_plan *plan, enum ocl_end end,
                  const cellgate_sequence *of, int64_t steps, int64_t width)
{
    const int64_t batch = plan->run->batch;
    const int64_t span =
        (batch - 1) * of->batch_stride + (steps - 1) * of->time_stride + width;
    struct ocl_pinned *found;

    if (!of->data || steps == 0 || (uintptr_t)of->data % sizeof(float) != 0)
        return;
    found = ocl_pinned_claim(plan->device, plan, of->data,
                             (size_t)span * sizeof(float));
    if (!found)
        return;
    plan->shared[end] = found;
    plan->ends[end].buffer =
        (struct ocl_buffer){ found->buffer, (size_t)span * sizeof(float) };
    plan->ends[end].strides = (struct ocl_strides){
        of->batch_stride, of->time_stride,
        ((const float *)of->data - (const float *)found->memory)
    };
}

void ocl_find_ends(struct cellgate_plan *plan)
{
    const cellgate_weights *weights = plan->weights;
    const cellgate_segment_run *run = plan->run;
    const int64_t steps = plan->rows_only ? 1 : run->steps;
    const int64_t width = weights->stages[weights->stage_count - 1].width;
    const struct ocl_buffer *buffers[OCL_ENDS] = { &plan->x, &plan->y,
                                                   &plan->last };
    bool dense;
    int i;

    for (i = 0; i < OCL_ENDS; i++) {
        plan->ends[i] = (struct ocl_rows){ .buffer = *buffers[i] };
        plan->shared[i] = NULL;
        plan->given[i] = false;
    }
    (void)ocl_dense_strides(&run->x, run->batch, steps, weights->input_width,
                            &plan->ends[OCL_X].strides);
    dense = ocl_dense_strides(&run->y, run->batch, run->steps, width,
                              &plan->ends[OCL_Y].strides);
    plan->ends[OCL_LAST].strides = (struct ocl_strides){ width, width, 0 };
    share(plan, OCL_X, &run->x, steps, weights->input_width);
    if (dense) /* padding is zeros in one block */
        share(plan, OCL_Y, &run->y, run->steps, width);
    share(plan, OCL_LAST, &run->y_last, 1, width);
    if (weights->table_width) {
        plan->ends[OCL_X].ids = plan->ends[OCL_X].buffer;
        plan->ends[OCL_X].buffer = weights->table;
    }
}

/* Whether an end before it is in the same memory. */
static bool was_before(const struct cellgate_plan *plan, int end)
{
    int i;

    for (i = 0; i < end; i++)
        if (plan->shared[i] == plan->shared[end])
            return true;
    return false;
}

cellgate_status ocl_give_shared(struct cellgate_plan *plan,
                                cellgate_error *error)
{
    cl_int code;
    int i;

    for (i = 0; i < OCL_ENDS; i++) {
        const struct ocl_pinned *of = plan->shared[i];

        if (!of || was_before(plan, i))
            continue;
        code = plan->device->cl->EnqueueUnmapMemObject(
            plan->queue, of->buffer, of->memory, 0, NULL,
            ocl_mark(plan, OCL_UPLOAD));
        if (code != CL_SUCCESS)
            return ocl_device_fail(plan->device, error, code,
                                   "clEnqueueUnmapMemObject",
                                   "giving memory to the device");
        plan->given[i] = true;
    }
    return CELLGATE_OK;
}

cellgate_status ocl_take_back_shared(struct cellgate_plan *plan,
                                     cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    int i;

    for (i = 0; i < OCL_ENDS; i++) {
        const struct ocl_pinned *of = plan->shared[i];
        cl_int code = CL_SUCCESS;

        if (!plan->given[i])
            continue;
        plan->given[i] = false;
        /* Of memory of ours it is always at the same place. */
        (void)plan->device->cl->EnqueueMapBuffer(
            plan->queue, of->buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
            of->size, 0, NULL, ocl_mark(plan, OCL_DOWNLOAD), &code);
        if (code != CL_SUCCESS && status == CELLGATE_OK)
            status =
                ocl_device_fail(plan->device, error, code, "clEnqueueMapBuffer",
                                "taking memory back from the device");
    }
    return status;
}
