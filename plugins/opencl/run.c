/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cellgate/chain.h"
#include "plugins/opencl/plan.h"

/* ---- Stages ------------------------------------------------------------ */

static bool stage_is_rows(const struct cellgate_plan *plan,
                          const struct ocl_stage *stage)
{
    return plan->rows_only || !stage->sequence;
}

/* Where a stage's result goes: on to the next stage, or to the caller. */
static struct ocl_rows result_of(const struct cellgate_plan *plan,
                                 uint32_t index)
{
    const struct ocl_stage *stage = &plan->weights->stages[index];
    const bool rows = stage_is_rows(plan, stage);

    if (index + 1 == plan->weights->stage_count)
        return plan->ends[rows ? OCL_LAST : OCL_Y];
    return (struct ocl_rows){
        .buffer = plan->between[index & 1],
        .strides = { rows ? stage->width : plan->run->steps * stage->width,
                     stage->width, 0 },
    };
}

/* An LSTM's result: its sequence and its last output, as far as it has them. */
static cellgate_status enqueue_lstm(struct cellgate_plan *plan, uint32_t index,
                                    const struct ocl_rows *x,
                                    const struct ocl_rows *result,
                                    cellgate_error *error)
{
    const struct ocl_stage *stage = &plan->weights->stages[index];
    struct ocl_rows y = { .strides = { 0, 0, 0 } }, last = y;

    if (stage->sequence)
        y = *result;
    if (stage->lstm.outputs & CELLGATE_LSTM_LAST)
        last = stage->sequence ? plan->ends[OCL_LAST] : *result;
    return ocl_enqueue_lstm(plan, index, x, &y, &last, error);
}

static cellgate_status enqueue_stages(struct cellgate_plan *plan,
                                      cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    struct ocl_rows x = plan->ends[OCL_X];
    cellgate_status status = CELLGATE_OK;
    uint32_t i;

    for (i = 0; status == CELLGATE_OK && i < weights->stage_count; i++) {
        const struct ocl_rows y = result_of(plan, i);

        if (weights->stages[i].kind == OCL_STAGE_LSTM)
            status = enqueue_lstm(plan, i, &x, &y, error);
        else if (weights->stages[i].kind == OCL_STAGE_DENSE)
            status = ocl_enqueue_dense(plan, i, &x, &y, error);
        else
            status = ocl_enqueue_copy(plan, i, &x, &y, error);
        if (status == CELLGATE_OK)
            status = ocl_enqueue_finishes(plan, i, &y, error);
        x = y;
    }
    return status;
}

/* ---- Running ----------------------------------------------------------- */

static cellgate_status check_resident(const cellgate_plan *plan,
                                      const cellgate_segment_run *run,
                                      cellgate_error *error)
{
    if (!run->resident)
        return CELLGATE_OK;
    if (run->resident->weights != plan->weights)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the resident state is of other weights");
    if (run->resident->batch != run->batch)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "resident state of %lld rows in a run of %lld",
                             (long long)run->resident->batch,
                             (long long)run->batch);
    return CELLGATE_OK;
}

/* Whether the segment makes a row a sample. Without an LSTM it makes either
   that or a sequence. */
static bool makes_rows(const cellgate_weights *weights, bool sequence)
{
    const struct ocl_stage *last = &weights->stages[weights->stage_count - 1];

    if (last->kind == OCL_STAGE_LSTM)
        return (last->lstm.outputs & CELLGATE_LSTM_LAST) != 0;
    return !last->sequence || (!weights->outline.has_lstm && !sequence);
}

/* Results that the segment does not have would be what was in the memory. */
static cellgate_status check_results(const cellgate_plan *plan,
                                     const cellgate_segment_run *run,
                                     cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    const struct ocl_stage *last = &weights->stages[weights->stage_count - 1];

    if (run->y.data && !last->sequence)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the segment makes no sequence, which is asked "
                             "for");
    if (run->y_last.data && !makes_rows(weights, run->y.data != NULL))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the segment makes no row a sample, which is "
                             "asked for");
    return CELLGATE_OK;
}

static cellgate_status check_run(const cellgate_plan *plan,
                                 const cellgate_segment_run *run,
                                 cellgate_error *error)
{
    const int32_t dtype =
        plan->weights->table_width ? CELLGATE_I32 : CELLGATE_F32;
    const cellgate_shape capacity = { sizeof capacity, plan->batch,
                                      plan->steps };
    cellgate_status status = cellgate_run_check(run, &capacity, dtype, error);

    if (status == CELLGATE_OK)
        status = check_results(plan, run, error);
    return status == CELLGATE_OK ? check_resident(plan, run, error) : status;
}

/* The new state, after everything else has succeeded: beside the old one, which
   a failure leaves as it was. */
static cellgate_status keep_state(struct cellgate_plan *plan,
                                  cellgate_error *error)
{
    const struct ocl_api *cl = plan->device->cl;
    cellgate_resident *resident = plan->run->resident;
    cl_int code = CL_SUCCESS;
    uint32_t i;

    for (i = 0; i < plan->weights->stage_count && code == CL_SUCCESS; i++) {
        if (plan->weights->stages[i].kind != OCL_STAGE_LSTM)
            continue;
        code = cl->EnqueueCopyBuffer(
            plan->queue, plan->stages[i].h.memory, resident->next_h[i].memory,
            (size_t)ocl_final_h_at(plan, i) * sizeof(float), 0,
            resident->h[i].size, 0, NULL, NULL);
        if (code == CL_SUCCESS)
            code = cl->EnqueueCopyBuffer(plan->queue, plan->stages[i].c.memory,
                                         resident->next_c[i].memory, 0, 0,
                                         resident->c[i].size, 0, NULL, NULL);
    }
    if (code == CL_SUCCESS)
        code = cl->Finish(plan->queue);
    if (code != CL_SUCCESS)
        return ocl_device_fail(plan->device, error, code, "clEnqueueCopyBuffer",
                               "keeping the state");
    ocl_resident_turn(resident);
    return CELLGATE_OK;
}

static cellgate_status compute(struct cellgate_plan *plan,
                               cellgate_error *error)
{
    cellgate_status status, finished;
    cellgate_error later = CELLGATE_ERROR_INIT;

    plan->copying[OCL_UPLOAD] = plan->copying[OCL_DOWNLOAD] = 0;
    ocl_find_ends(plan);
    status = ocl_enqueue_uploads(plan, error);
    if (status == CELLGATE_OK)
        status = enqueue_stages(plan, error);
    if (status == CELLGATE_OK)
        status = ocl_enqueue_downloads(plan, error);
    /* Also after a failure: the host's memory is its own again. */
    finished = ocl_finish_run(plan, status == CELLGATE_OK ? error : &later);
    if (status == CELLGATE_OK)
        status = finished;
    if (status == CELLGATE_OK && plan->weights->outline.has_lstm &&
        !plan->ragged) {
        plan->full_batch = plan->run->batch;
        plan->full_steps = plan->run->steps;
    }
    if (status == CELLGATE_OK && plan->run->resident)
        status = keep_state(plan, error);
    return status;
}

/* Reads what is on the device for certain, a number of the weights. */
static bool answers(const struct cellgate_plan *plan)
{
    const struct ocl_stage *first = &plan->weights->stages[0];
    const struct ocl_buffer *buffer =
        first->kind == OCL_STAGE_LSTM    ? &first->lstm.kernel
        : first->kind == OCL_STAGE_DENSE ? &first->dense.kernel
                                         : &plan->weights->table;
    float number;

    return !buffer->memory ||
           plan->device->cl->EnqueueReadBuffer(
               plan->queue, buffer->memory, CL_TRUE, 0, sizeof number, &number,
               0, NULL, NULL) == CL_SUCCESS;
}

/*
 * Drivers say CL_OUT_OF_RESOURCES of too little memory, and NVIDIA's of a
 * kernel that was ended too: from then on its context answers nothing else.
 */
static cellgate_status find_lost(struct cellgate_plan *plan,
                                 cellgate_status status, cellgate_error *error)
{
    if (status != CELLGATE_DEVICE_MEMORY ||
        error->vendor_code != CL_OUT_OF_RESOURCES || answers(plan))
        return status;
    atomic_store(&plan->device->lost, true);
    status = cellgate_fail(error, CELLGATE_DEVICE_LOST,
                           "%s answers CL_OUT_OF_RESOURCES (%d) to a run, and "
                           "nothing since: it is lost, and needs a new process",
                           plan->device->found->description.name,
                           CL_OUT_OF_RESOURCES);
    error->vendor_code = CL_OUT_OF_RESOURCES;
    return status;
}

cellgate_status ocl_run(cellgate_plan *plan, const cellgate_segment_run *run,
                        cellgate_error *error)
{
    cellgate_segment_run known = { .struct_size = sizeof known };
    cellgate_status status = ocl_device_check(plan->device, error);

    if (status != CELLGATE_OK)
        return status;
    if (!cellgate_struct_known(run, sizeof known))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the run sets a field newer than this plugin");
    cellgate_struct_copy(&known, run);
    status = check_run(plan, &known, error);
    if (status != CELLGATE_OK || known.batch == 0)
        return status;
    plan->run = &known;
    plan->rows_only = !plan->weights->outline.has_lstm && !known.y.data;
    status = compute(plan, error);
    plan->run = NULL;
    return find_lost(plan, status, error);
}

cellgate_status ocl_breakdown(cellgate_plan *plan, cellgate_breakdown *out,
                              cellgate_error *error)
{
    if (!plan->measured)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the plan has not run yet");
    cellgate_struct_copy(out, &plan->breakdown);
    return CELLGATE_OK;
}

/* ---- Warming up -------------------------------------------------------- */

cellgate_status ocl_plan_warm(cellgate_device *device,
                              cellgate_weights *weights, uint64_t variant,
                              cellgate_error *error)
{
    const cellgate_shape shape = { sizeof shape, 4, 1 };
    const int64_t in = weights->input_width;
    const int64_t out = weights->stages[weights->stage_count - 1].width;
    const bool sequence = weights->stages[weights->stage_count - 1].sequence;
    float *memory = calloc((size_t)(4 * (in + out)), sizeof *memory);
    const cellgate_sequence y = { memory + 4 * in, out, out, CELLGATE_F32, 0 };
    cellgate_segment_run run = {
        .struct_size = sizeof run,
        .batch = 4,
        .steps = 1,
        .x = { memory, in, in,
               weights->table_width ? CELLGATE_I32 : CELLGATE_F32, 0 },
    };
    cellgate_plan *plan = NULL;
    cellgate_status status;

    if (!memory)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    if (sequence)
        run.y = y;
    else if (makes_rows(weights, false))
        run.y_last = y;
    status = ocl_plan_create(device, weights, variant, &shape, &plan, error);
    if (status == CELLGATE_OK)
        status = ocl_run(plan, &run, error);
    ocl_plan_destroy(plan);
    free(memory);
    return status;
}
