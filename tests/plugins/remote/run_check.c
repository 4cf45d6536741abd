/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/resident.h"
#include "tests/plugins/remote/run.h"

static cellgate_status check_shape(const cellgate_plan *plan,
                                   const cellgate_segment_run *run,
                                   cellgate_error *error)
{
    const cellgate_variant *variant = plan->variant;
    const bool fits = run->batch >= 1 && run->steps >= 0 &&
                      run->batch <= plan->batch && run->steps <= plan->steps &&
                      (!variant->exact_batch || run->batch == plan->batch) &&
                      (!variant->exact_steps || run->steps == plan->steps);

    if (fits)
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_INVALID,
                         "batch %lld, steps %lld do not fit a plan of %lld, "
                         "%lld of variant %s",
                         (long long)run->batch, (long long)run->steps,
                         (long long)plan->batch, (long long)plan->steps,
                         variant->name);
}

static cellgate_status check_lengths(const cellgate_segment_run *run,
                                     cellgate_error *error)
{
    int64_t b;

    for (b = 0; run->lengths != NULL && b < run->batch; b++)
        if (run->lengths[b] < 0 || run->lengths[b] > run->steps)
            return cellgate_fail(
                error, CELLGATE_INVALID, "row %lld has length %d in %lld steps",
                (long long)b, (int)run->lengths[b], (long long)run->steps);
    return CELLGATE_OK;
}

/* First and last element of a sequence, whatever the signs of its strides. */
static void extent(const cellgate_sequence *sequence, int64_t batch,
                   int64_t steps, int64_t features, const float **low,
                   int64_t *count)
{
    const int64_t b = (batch - 1) * sequence->batch_stride;
    const int64_t t = (steps - 1) * sequence->time_stride;
    const int64_t first = (b < 0 ? b : 0) + (t < 0 ? t : 0);
    const int64_t last = (b > 0 ? b : 0) + (t > 0 ? t : 0);

    *low = (const float *)sequence->data + first;
    *count = last - first + features;
}

/* Where require_pinned is set, that memory came from host_allocate(). */
static cellgate_status check_pinned(const cellgate_plan *plan,
                                    const void *memory, size_t bytes,
                                    const char *what, cellgate_error *error)
{
    if (!plan->device->require_pinned || memory == NULL ||
        remote_device_pinned(plan->device, memory, bytes))
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_DEVICE_FAILED,
                         "%s is not in memory of host_allocate(), which "
                         "require_pinned = yes asks for",
                         what);
}

static cellgate_status check_sequence(const cellgate_plan *plan,
                                      const cellgate_sequence *sequence,
                                      int64_t batch, int64_t steps,
                                      int64_t features, const char *what,
                                      cellgate_error *error)
{
    const float *low;
    int64_t count;

    if (steps == 0)
        return CELLGATE_OK;
    if (sequence->data == NULL)
        return cellgate_fail(error, CELLGATE_INVALID, "%s is missing", what);
    if (sequence->dtype != CELLGATE_F32)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s has dtype %d, it must be float32", what,
                             (int)sequence->dtype);
    extent(sequence, batch, steps, features, &low, &count);
    return check_pinned(plan, low, (size_t)count * sizeof(float), what, error);
}

static cellgate_status check_results(const cellgate_plan *plan,
                                     const cellgate_segment_run *run,
                                     cellgate_error *error)
{
    const uint32_t at = plan->weights->op_count - 1;
    const struct remote_op *op = &plan->weights->ops[at];
    cellgate_status status = CELLGATE_OK;

    if (plan->buffers[at].sequence != 0)
        status = check_sequence(plan, &run->y, run->batch, run->steps,
                                op->features, "y", error);
    if (status == CELLGATE_OK && plan->buffers[at].last != 0)
        status = check_sequence(plan, &run->y_last, run->batch, 1, op->features,
                                "y_last", error);
    return status;
}

static cellgate_status check_state(const cellgate_plan *plan,
                                   const cellgate_segment_run *run,
                                   uint32_t index, cellgate_error *error)
{
    static const cellgate_lstm_state none;
    const struct remote_op *op = &plan->weights->ops[index];
    const cellgate_lstm_state *state =
        run->states != NULL ? &run->states[index] : &none;
    const size_t h_bytes = remote_h_bytes(op, run->batch);
    const size_t c_bytes = remote_c_bytes(op, run->batch);
    cellgate_status status;

    if ((state->h != NULL && !(op->outputs & CELLGATE_LSTM_H)) ||
        (state->c != NULL && !(op->outputs & CELLGATE_LSTM_C)))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "op %u: h or c is asked for, which the op does "
                             "not give",
                             (unsigned)index);
    if (run->resident != NULL && (state->h0 != NULL || state->c0 != NULL))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "op %u: an initial state beside resident state",
                             (unsigned)index);
    status = check_pinned(plan, state->h0, h_bytes, "h0", error);
    if (status == CELLGATE_OK)
        status = check_pinned(plan, state->c0, c_bytes, "c0", error);
    if (status == CELLGATE_OK)
        status = check_pinned(plan, state->h, h_bytes, "h", error);
    if (status == CELLGATE_OK)
        status = check_pinned(plan, state->c, c_bytes, "c", error);
    return status;
}

static cellgate_status check_resident(const cellgate_plan *plan,
                                      const cellgate_segment_run *run,
                                      cellgate_error *error)
{
    const cellgate_resident *resident = run->resident;

    if (resident == NULL)
        return CELLGATE_OK;
    if (resident->weights != plan->weights)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the resident state is of other weights");
    if (resident->batch != run->batch)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "resident state of %lld rows in a run of %lld",
                             (long long)resident->batch, (long long)run->batch);
    return CELLGATE_OK;
}

cellgate_status remote_check_run(const cellgate_plan *plan,
                                 const cellgate_segment_run *run,
                                 cellgate_error *error)
{
    cellgate_status status = check_shape(plan, run, error);
    uint32_t at;

    if (status == CELLGATE_OK)
        status = check_lengths(run, error);
    if (status == CELLGATE_OK)
        status = check_pinned(plan, run->lengths,
                              (size_t)run->batch * sizeof *run->lengths,
                              "lengths", error);
    if (status == CELLGATE_OK)
        status = check_sequence(plan, &run->x, run->batch, run->steps,
                                plan->weights->ops[0].input, "x", error);
    if (status == CELLGATE_OK)
        status = check_results(plan, run, error);
    if (status == CELLGATE_OK)
        status = check_resident(plan, run, error);
    for (at = 0; status == CELLGATE_OK && at < plan->weights->op_count; at++)
        if (plan->weights->ops[at].kind == CELLGATE_OP_LSTM)
            status = check_state(plan, run, at, error);
    return status;
}
