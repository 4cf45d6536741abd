/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "tests/plugins/remote/transfer.h"
#include "tests/plugins/remote/weights.h"

static cellgate_status missing(const char *what, uint32_t index,
                               cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_INVALID, "op %u: its %s is missing",
                         (unsigned)index, what);
}

/* A vector: float32 in every pack. */
static cellgate_status place_vector(cellgate_weights *weights,
                                    const float *host, int64_t count,
                                    remote_handle *handle,
                                    cellgate_error *error)
{
    struct remote_memory *memory = &weights->device->memory;
    const size_t bytes = (size_t)count * sizeof(float);
    cellgate_status status = remote_allocate(memory, bytes, handle, error);

    if (status == CELLGATE_OK)
        status = remote_upload(memory, *handle, host, bytes, error);
    return status;
}

/* A matrix: in the pack's type. */
static cellgate_status place_matrix(cellgate_weights *weights,
                                    const float *host, int64_t rows,
                                    int64_t columns, remote_handle *handle,
                                    cellgate_error *error)
{
    struct remote_memory *memory = &weights->device->memory;
    const size_t count = (size_t)rows * (size_t)columns;
    cellgate_status status;

    if (weights->pack == REMOTE_PACK_F32)
        return place_vector(weights, host, rows * columns, handle, error);
    status = remote_allocate(memory, count * sizeof(uint16_t), handle, error);
    if (status == CELLGATE_OK)
        status = remote_upload_bf16(memory, *handle, host, count, error);
    return status;
}

static cellgate_status
place_direction(cellgate_weights *weights, const struct remote_op *op,
                uint32_t index, const cellgate_lstm_weights *from,
                struct remote_lstm_handles *to, cellgate_error *error)
{
    const int64_t gates = 4 * op->hidden;
    cellgate_status status;

    if (from->kernel == NULL)
        return missing("kernel", index, error);
    if (from->recurrent_kernel == NULL)
        return missing("recurrent kernel", index, error);
    if (op->has_bias && from->bias == NULL)
        return missing("bias", index, error);
    if (op->projects && from->projection == NULL)
        return missing("projection", index, error);

    status = place_matrix(weights, from->kernel, op->input, gates, &to->kernel,
                          error);
    if (status == CELLGATE_OK)
        status = place_matrix(weights, from->recurrent_kernel, op->recurrent,
                              gates, &to->recurrent_kernel, error);
    if (status == CELLGATE_OK && op->has_bias)
        status = place_vector(weights, from->bias, gates, &to->bias, error);
    if (status == CELLGATE_OK && op->projects)
        status = place_matrix(weights, from->projection, op->hidden,
                              op->recurrent, &to->projection, error);
    return status;
}

static cellgate_status place_lstm(cellgate_weights *weights,
                                  const cellgate_op *source, uint32_t index,
                                  cellgate_error *error)
{
    cellgate_lstm lstm = { .op.struct_size = sizeof lstm };
    struct remote_op *op = &weights->ops[index];
    cellgate_status status = CELLGATE_OK;
    int32_t direction;

    cellgate_struct_copy(&lstm, source);
    for (direction = 0; status == CELLGATE_OK && direction < op->directions;
         direction++)
        status = place_direction(weights, op, index, &lstm.weights[direction],
                                 &op->lstm[direction], error);
    return status;
}

static cellgate_status place_dense(cellgate_weights *weights,
                                   const cellgate_op *source, uint32_t index,
                                   cellgate_error *error)
{
    cellgate_dense dense = { .op.struct_size = sizeof dense };
    struct remote_op *op = &weights->ops[index];
    cellgate_status status;

    cellgate_struct_copy(&dense, source);
    if (dense.kernel == NULL)
        return missing("kernel", index, error);
    if (op->has_bias && dense.bias == NULL)
        return missing("bias", index, error);
    status = place_matrix(weights, dense.kernel, op->input, op->features,
                          &op->kernel, error);
    if (status == CELLGATE_OK && op->has_bias)
        status =
            place_vector(weights, dense.bias, op->features, &op->bias, error);
    return status;
}

static cellgate_status place(cellgate_weights *weights,
                             const cellgate_segment *segment,
                             cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    uint32_t at;

    for (at = 0; status == CELLGATE_OK && at < weights->op_count; at++) {
        status =
            remote_read_op(segment, at, at > 0 ? &weights->ops[at - 1] : NULL,
                           &weights->ops[at], error);
        if (status == CELLGATE_OK)
            status = weights->ops[at].kind == CELLGATE_OP_LSTM
                         ? place_lstm(weights, segment->ops[at], at, error)
                         : place_dense(weights, segment->ops[at], at, error);
    }
    return status;
}

cellgate_status remote_prepare(cellgate_device *device,
                               const cellgate_segment *segment, uint32_t pack,
                               cellgate_weights **weights,
                               cellgate_error *error)
{
    cellgate_weights *made;
    cellgate_status status = remote_device_check(device, error);

    if (status != CELLGATE_OK)
        return status;
    if (pack >= REMOTE_PACK_COUNT)
        return cellgate_fail(error, CELLGATE_INVALID, "there is no pack %u",
                             (unsigned)pack);
    status = remote_check_segment(segment, error);
    if (status != CELLGATE_OK)
        return status;
    made = calloc(1, sizeof *made + segment->op_count * sizeof made->ops[0]);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a record of weights");
    remote_faults_prepare(&device->faults);
    made->device = device;
    made->pack = (enum remote_pack)pack;
    made->op_count = segment->op_count;
    atomic_init(&made->users, 1);
    status = place(made, segment, error);
    if (status != CELLGATE_OK) {
        remote_weights_free(made);
        return status;
    }
    atomic_store(&device->prepared, true);
    *weights = made;
    return CELLGATE_OK;
}

void remote_weights_free(cellgate_weights *weights)
{
    struct remote_memory *memory;
    uint32_t at;
    int direction;

    if (weights == NULL)
        return;
    memory = &weights->device->memory;
    for (at = 0; at < weights->op_count; at++) {
        /* Copies: a plan that is still there must meet the stale handles. */
        struct remote_op op = weights->ops[at];
        for (direction = 0; direction < 2; direction++) {
            remote_free(memory, &op.lstm[direction].kernel);
            remote_free(memory, &op.lstm[direction].recurrent_kernel);
            remote_free(memory, &op.lstm[direction].bias);
            remote_free(memory, &op.lstm[direction].projection);
        }
        remote_free(memory, &op.kernel);
        remote_free(memory, &op.bias);
    }
    if (atomic_load(&weights->users) > 1)
        weights->device->host->log(weights->device->host->context,
                                   CELLGATE_LOG_ERROR,
                                   "remote: weights freed before what was "
                                   "made from them");
    remote_weights_drop(weights);
}

void remote_weights_hold(cellgate_weights *weights)
{
    atomic_fetch_add(&weights->users, 1);
}

void remote_weights_drop(cellgate_weights *weights)
{
    if (atomic_fetch_sub(&weights->users, 1) == 1)
        free(weights);
}
