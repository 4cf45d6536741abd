/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/kernels.h"
#include "tests/plugins/remote/run.h"

/* What wrong_at makes of the results. */
#define DISTORTION 1.01f

static struct remote_memory *memory_of(const cellgate_plan *plan)
{
    return &plan->device->memory;
}

static cellgate_status compute_lstm(cellgate_plan *plan, uint32_t index,
                                    remote_handle input, cellgate_error *error)
{
    const struct remote_op *op = &plan->weights->ops[index];
    const struct remote_op_buffers *buffers = &plan->buffers[index];
    cellgate_status status = CELLGATE_OK;
    int32_t direction;

    for (direction = 0; status == CELLGATE_OK && direction < op->directions;
         direction++) {
        const struct remote_lstm_handles *weights = &op->lstm[direction];
        struct remote_lstm_launch launch = {
            .op = op,
            .pack = plan->weights->pack,
            .direction = direction,
            .batch = plan->run->batch,
            .steps = plan->run->steps,
            .buffers = {
                [REMOTE_LSTM_INPUT] = input,
                [REMOTE_LSTM_LENGTHS] = plan->lengths,
                [REMOTE_LSTM_KERNEL] = weights->kernel,
                [REMOTE_LSTM_RECURRENT_KERNEL] = weights->recurrent_kernel,
                [REMOTE_LSTM_BIAS] = weights->bias,
                [REMOTE_LSTM_PROJECTION] = weights->projection,
                [REMOTE_LSTM_H] = buffers->h,
                [REMOTE_LSTM_C] = buffers->c,
                [REMOTE_LSTM_SEQUENCE_OUT] = buffers->sequence,
                [REMOTE_LSTM_LAST_OUT] = buffers->last,
                [REMOTE_LSTM_WORKSPACE] = plan->workspace,
            },
        };
        status = remote_lstm_kernel(memory_of(plan), &launch, error);
    }
    return status;
}

static cellgate_status compute_dense(cellgate_plan *plan, uint32_t index,
                                     remote_handle input, cellgate_error *error)
{
    const struct remote_op *op = &plan->weights->ops[index];
    const struct remote_op_buffers *buffers = &plan->buffers[index];
    struct remote_dense_launch launch = {
        .op = op,
        .pack = plan->weights->pack,
        .rows = plan->run->batch,
        .buffers = {
            [REMOTE_DENSE_INPUT] = input,
            [REMOTE_DENSE_KERNEL] = op->kernel,
            [REMOTE_DENSE_BIAS] = op->bias,
            [REMOTE_DENSE_OUTPUT] = buffers->last,
            [REMOTE_DENSE_WORKSPACE] = plan->workspace,
        },
    };

    if (op->passes_sequence) {
        launch.rows *= plan->run->steps;
        launch.buffers[REMOTE_DENSE_OUTPUT] = buffers->sequence;
    }
    return remote_dense_kernel(memory_of(plan), &launch, error);
}

static cellgate_status scale(cellgate_plan *plan, remote_handle handle,
                             int64_t count, cellgate_error *error)
{
    if (handle == 0)
        return CELLGATE_OK;
    return remote_scale_kernel(memory_of(plan), handle, count, DISTORTION,
                               error);
}

/* What an op gives, off by a little. */
static cellgate_status distort(cellgate_plan *plan, uint32_t index,
                               cellgate_error *error)
{
    const struct remote_op *op = &plan->weights->ops[index];
    const struct remote_op_buffers *buffers = &plan->buffers[index];
    const int64_t batch = plan->run->batch;
    cellgate_status status =
        scale(plan, buffers->sequence, batch * plan->run->steps * op->features,
              error);

    if (status == CELLGATE_OK)
        status = scale(plan, buffers->last, batch * op->features, error);
    if (status == CELLGATE_OK)
        status = scale(plan, buffers->h, op->directions * batch * op->recurrent,
                       error);
    if (status == CELLGATE_OK)
        status =
            scale(plan, buffers->c, op->directions * batch * op->hidden, error);
    return status;
}

cellgate_status remote_compute(cellgate_plan *plan, cellgate_error *error)
{
    struct remote_faults *faults = &plan->device->faults;
    remote_handle input = plan->x;
    cellgate_status status = CELLGATE_OK;
    uint32_t at;

    for (at = 0; status == CELLGATE_OK && at < plan->weights->op_count; at++) {
        const struct remote_op *op = &plan->weights->ops[at];
        status = op->kind == CELLGATE_OP_LSTM
                     ? compute_lstm(plan, at, input, error)
                     : compute_dense(plan, at, input, error);
        if (status == CELLGATE_OK &&
            remote_faults_distort(faults, plan->number))
            status = distort(plan, at, error);
        input = op->passes_sequence ? plan->buffers[at].sequence
                                    : plan->buffers[at].last;
    }
    if (status == CELLGATE_OK)
        status = remote_faults_strike(faults, plan->number, error);
    return status;
}
