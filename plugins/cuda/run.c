/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cellgate/chain.h"
#include "plugins/cuda/plan.h"

/* ---- Stages ------------------------------------------------------------ */

static bool stage_is_rows(const struct cellgate_plan *plan,
                          const struct cud_stage *stage)
{
    return plan->rows_only || !stage->sequence;
}

/* Where a stage's result goes: on to the next stage, or to the caller. */
static struct cud_rows result_of(const struct cellgate_plan *plan,
                                 uint32_t index)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const bool rows = stage_is_rows(plan, stage);
    struct cud_rows result = { .strides = { stage->width, stage->width } };

    if (!rows)
        result.strides = cud_strides_of(plan, stage->width);
    if (index + 1 < plan->weights->stage_count)
        result.memory = plan->between[index & 1].memory;
    else
        result.memory = rows ? plan->last.memory : plan->y.memory;
    return result;
}

/* An LSTM's result: its sequence, and its last output, as far as it has them.
 */
static struct cud_rows sequence_of(const struct cellgate_plan *plan,
                                   uint32_t index,
                                   const struct cud_rows *result)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    struct cud_rows y = *result;

    if (!stage->sequence) {
        y.memory =
            stage->kind == CUD_STAGE_FUSED ? plan->unwanted.memory : NULL;
        y.strides = cud_strides_of(plan, stage->width);
    }
    return y;
}

static float *last_of(const struct cellgate_plan *plan, uint32_t index,
                      const struct cud_rows *result)
{
    const struct cud_stage *stage = &plan->weights->stages[index];

    if (!(stage->lstms[stage->layers - 1].outputs & CELLGATE_LSTM_LAST))
        return NULL;
    return stage->sequence ? plan->last.memory : result->memory;
}

static cellgate_status enqueue_lstm(struct cellgate_plan *plan, uint32_t index,
                                    const struct cud_rows *x,
                                    const struct cud_rows *result,
                                    cellgate_error *error)
{
    const struct cud_rows y = sequence_of(plan, index, result);
    float *last = last_of(plan, index, result);

    return plan->weights->stages[index].kind == CUD_STAGE_FUSED
               ? cud_enqueue_fused(plan, index, x, &y, last, error)
               : cud_enqueue_own(plan, index, x, &y, last, error);
}

static cellgate_status enqueue_stage(struct cellgate_plan *plan, uint32_t index,
                                     const struct cud_rows *x,
                                     const struct cud_rows *y,
                                     cellgate_error *error)
{
    switch (plan->weights->stages[index].kind) {
    case CUD_STAGE_DENSE:
        return cud_enqueue_dense(plan, index, x, y, error);
    case CUD_STAGE_COPY:
        return cud_enqueue_copy(plan, index, x, y, error);
    default:
        return enqueue_lstm(plan, index, x, y, error);
    }
}

static struct cud_rows input_of(const struct cellgate_plan *plan)
{
    const cellgate_weights *weights = plan->weights;
    struct cud_rows x = {
        .memory = plan->x.memory,
        .strides = cud_strides_of(plan, weights->input_width),
    };

    if (weights->table_width) {
        x.ids = plan->x.memory;
        x.memory = weights->table.memory;
    }
    return x;
}

static cellgate_status enqueue_stages(struct cellgate_plan *plan,
                                      cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    struct cud_rows x = input_of(plan);
    cellgate_status status = CELLGATE_OK;
    uint32_t i;

    for (i = 0; status == CELLGATE_OK && i < weights->stage_count; i++) {
        const struct cud_rows y = result_of(plan, i);

        status = enqueue_stage(plan, i, &x, &y, error);
        if (status == CELLGATE_OK)
            status = cud_enqueue_finishes(plan, i, &y, error);
        x = y;
    }
    return status;
}

static cellgate_status enqueue_in_turn(struct cellgate_plan *plan,
                                       cellgate_error *error)
{
    cellgate_error later = CELLGATE_ERROR_INIT;
    cellgate_status status = cud_turn_begin(plan, error), ended;

    if (status != CELLGATE_OK)
        return status;
    status = enqueue_stages(plan, error);
    ended = cud_turn_end(plan, status == CELLGATE_OK ? error : &later);
    return status == CELLGATE_OK ? ended : status;
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
    const struct cud_stage *last = &weights->stages[weights->stage_count - 1];

    if (last->lstms)
        return (last->lstms[last->layers - 1].outputs & CELLGATE_LSTM_LAST) !=
               0;
    return !last->sequence || (weights->lstm_count == 0 && !sequence);
}

/* Results that the segment does not have would be what was in the memory. */
static cellgate_status check_results(const cellgate_plan *plan,
                                     const cellgate_segment_run *run,
                                     cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    const struct cud_stage *last = &weights->stages[weights->stage_count - 1];

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

    if (status == CELLGATE_OK && cud_exact_batch(plan->variant) &&
        run->batch != plan->batch)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "batch %lld: the plan is for %lld exactly",
                             (long long)run->batch, (long long)plan->batch);
    if (status == CELLGATE_OK)
        status = check_results(plan, run, error);
    return status == CELLGATE_OK ? check_resident(plan, run, error) : status;
}

static cellgate_status compute(struct cellgate_plan *plan,
                               cellgate_error *error)
{
    cellgate_error later = CELLGATE_ERROR_INIT;
    cellgate_status status, finished;

    status = cud_choose_layout(plan, error);
    if (status == CELLGATE_OK)
        status = cud_mark(plan, CUD_BEGIN, error);
    if (status == CELLGATE_OK)
        status = cud_enqueue_uploads(plan, error);
    if (status == CELLGATE_OK)
        status = cud_mark(plan, CUD_UPLOADED, error);
    if (status == CELLGATE_OK)
        status = enqueue_in_turn(plan, error);
    if (status == CELLGATE_OK)
        status = cud_mark(plan, CUD_COMPUTED, error);
    if (status == CELLGATE_OK)
        status = cud_enqueue_downloads(plan, error);
    if (status == CELLGATE_OK)
        status = cud_mark(plan, CUD_DOWNLOADED, error);
    /* Also after a failure: the host's memory is its own again, and a device
       that is lost says so here, whatever else failed because of it. */
    finished = cud_finish_run(plan, status == CELLGATE_OK ? error : &later);
    if (status != CELLGATE_OK && finished == CELLGATE_DEVICE_LOST)
        *error = later;
    if (status == CELLGATE_OK || finished == CELLGATE_DEVICE_LOST)
        status = finished;
    if (status != CELLGATE_OK)
        return status;
    cud_read_marks(plan);
    if (plan->run->resident)
        cud_resident_turn(plan->run->resident);
    return CELLGATE_OK;
}

cellgate_status cud_run(cellgate_plan *plan, const cellgate_segment_run *run,
                        cellgate_error *error)
{
    cellgate_segment_run known = { .struct_size = sizeof known };
    cellgate_status status = cud_device_enter(plan->device, error);

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
    plan->rows_only = plan->weights->lstm_count == 0 && !known.y.data;
    status = compute(plan, error);
    if (status == CELLGATE_OK) {
        cud_plan_ran(plan);
    } else {
        const cellgate_shape shape = { sizeof shape, known.batch, known.steps };

        plan->sent.valid = false;
        status = cud_plan_failed(plan, &shape, status, error);
    }
    plan->run = NULL;
    return status;
}

cellgate_status cud_breakdown(cellgate_plan *plan, cellgate_breakdown *out,
                              cellgate_error *error)
{
    if (!plan->measured)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the plan has not run yet");
    cellgate_struct_copy(out, &plan->breakdown);
    return CELLGATE_OK;
}

/* ---- Graphs ------------------------------------------------------------ */

cellgate_status cud_plan_graphs(struct cellgate_plan *plan,
                                cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    const cellgate_segment_run run = { .batch = plan->batch,
                                       .steps = plan->steps };
    cellgate_status status = CELLGATE_OK;
    struct cud_rows x;
    uint32_t i;

    if (plan->variant->way != CUD_STEP || plan->batch == 0)
        return CELLGATE_OK;
    plan->run = &run;
    plan->rows = plan->batch;
    plan->span = plan->steps;
    x = input_of(plan);
    for (i = 0; status == CELLGATE_OK && i < weights->stage_count; i++) {
        const struct cud_rows result = result_of(plan, i);

        if (weights->stages[i].kind == CUD_STAGE_LSTM) {
            const struct cud_rows y = sequence_of(plan, i, &result);

            status = cud_own_graph(plan, i, &x, &y, last_of(plan, i, &result),
                                   error);
        }
        x = result;
    }
    plan->run = NULL;
    return status;
}

/* ---- Warming up -------------------------------------------------------- */

cellgate_status cud_plan_warm(cellgate_device *device,
                              cellgate_weights *weights, uint64_t variant,
                              cellgate_error *error)
{
    enum { ROWS = 4, STEPS = 2 };
    const cellgate_shape shape = { sizeof shape, ROWS, STEPS };
    const struct cud_stage *last = &weights->stages[weights->stage_count - 1];
    const int64_t in = weights->input_width, out = last->width;
    float *memory = calloc((size_t)(ROWS * STEPS * (in + out)), sizeof *memory);
    cellgate_sequence y = { NULL, STEPS * out, out, CELLGATE_F32, 0 };
    cellgate_segment_run run = {
        .struct_size = sizeof run,
        .batch = ROWS,
        .steps = STEPS,
        .x = { memory, STEPS * in, in,
               weights->table_width ? CELLGATE_I32 : CELLGATE_F32, 0 },
    };
    cellgate_plan *plan = NULL;
    cellgate_status status;

    if (!memory)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    y.data = memory + ROWS * STEPS * in;
    if (last->sequence)
        run.y = y;
    else if (makes_rows(weights, false))
        run.y_last = y;
    status = cud_plan_create(device, weights, variant, &shape, &plan, error);
    if (status == CELLGATE_OK)
        status = cud_run(plan, &run, error);
    cud_plan_destroy(plan);
    free(memory);
    return status;
}
