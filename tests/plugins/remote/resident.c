/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "tests/plugins/remote/resident.h"
#include "tests/plugins/remote/transfer.h"

/* Rows beyond it could overflow the sizes below. */
#define LARGEST_BATCH (INT64_C(1) << 32)

size_t remote_h_bytes(const struct remote_op *op, int64_t batch)
{
    return (size_t)(op->directions * batch * op->recurrent) * sizeof(float);
}

size_t remote_c_bytes(const struct remote_op *op, int64_t batch)
{
    return (size_t)(op->directions * batch * op->hidden) * sizeof(float);
}

/* Allocated and zero. */
static cellgate_status start_state(struct remote_memory *memory, size_t bytes,
                                   remote_handle *handle, cellgate_error *error)
{
    cellgate_status status = remote_allocate(memory, bytes, handle, error);

    if (status == CELLGATE_OK)
        status = remote_zero(memory, *handle, bytes, error);
    return status;
}

static cellgate_status start_states(cellgate_resident *resident,
                                    cellgate_error *error)
{
    struct remote_memory *memory = &resident->device->memory;
    cellgate_status status = CELLGATE_OK;
    uint32_t at;

    for (at = 0; status == CELLGATE_OK && at < resident->weights->op_count;
         at++) {
        const struct remote_op *op = &resident->weights->ops[at];
        if (op->kind != CELLGATE_OP_LSTM)
            continue;
        status = start_state(memory, remote_h_bytes(op, resident->batch),
                             &resident->states[at].h, error);
        if (status == CELLGATE_OK)
            status = start_state(memory, remote_c_bytes(op, resident->batch),
                                 &resident->states[at].c, error);
    }
    return status;
}

cellgate_status remote_resident_create(cellgate_weights *weights, int64_t batch,
                                       cellgate_resident **resident,
                                       cellgate_error *error)
{
    cellgate_resident *made;
    cellgate_status status = remote_device_check(weights->device, error);

    if (status != CELLGATE_OK)
        return status;
    if (batch < 1)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "resident state for %lld rows", (long long)batch);
    if (batch > LARGEST_BATCH)
        return cellgate_fail(error, CELLGATE_DEVICE_MEMORY,
                             "resident state for %lld rows does not fit",
                             (long long)batch);
    made = calloc(1, sizeof *made + weights->op_count * sizeof made->states[0]);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a record of resident state");
    made->device = weights->device;
    made->weights = weights;
    made->batch = batch;
    atomic_init(&made->busy, false);
    remote_weights_hold(weights);
    status = start_states(made, error);
    if (status != CELLGATE_OK) {
        remote_resident_destroy(made);
        return status;
    }
    *resident = made;
    return CELLGATE_OK;
}

void remote_resident_destroy(cellgate_resident *resident)
{
    uint32_t at;

    if (resident == NULL)
        return;
    for (at = 0; at < resident->weights->op_count; at++) {
        remote_free(&resident->device->memory, &resident->states[at].h);
        remote_free(&resident->device->memory, &resident->states[at].c);
    }
    remote_weights_drop(resident->weights);
    free(resident);
}

static cellgate_status export_op(struct remote_memory *memory,
                                 const struct remote_op *op, int64_t batch,
                                 const struct remote_resident_state *from,
                                 const cellgate_lstm_state *to,
                                 cellgate_error *error)
{
    cellgate_status status;

    if (to->h == NULL || to->c == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "export needs h and c of every LSTM op");
    status = remote_download(memory, from->h, to->h, remote_h_bytes(op, batch),
                             error);
    if (status == CELLGATE_OK)
        status = remote_download(memory, from->c, to->c,
                                 remote_c_bytes(op, batch), error);
    return status;
}

/* NULL is zeros, as it is for a run. */
static cellgate_status import_one(struct remote_memory *memory,
                                  remote_handle handle, const float *host,
                                  size_t bytes, cellgate_error *error)
{
    if (host == NULL)
        return remote_zero(memory, handle, bytes, error);
    return remote_upload(memory, handle, host, bytes, error);
}

static cellgate_status import_op(struct remote_memory *memory,
                                 const struct remote_op *op, int64_t batch,
                                 const struct remote_resident_state *to,
                                 const cellgate_lstm_state *from,
                                 cellgate_error *error)
{
    cellgate_status status =
        import_one(memory, to->h, from->h0, remote_h_bytes(op, batch), error);

    if (status == CELLGATE_OK)
        status = import_one(memory, to->c, from->c0, remote_c_bytes(op, batch),
                            error);
    return status;
}

typedef cellgate_status move_fn(struct remote_memory *,
                                const struct remote_op *, int64_t,
                                const struct remote_resident_state *,
                                const cellgate_lstm_state *, cellgate_error *);

static cellgate_status move_all(cellgate_resident *resident, move_fn *move,
                                const cellgate_lstm_state *states,
                                cellgate_error *error)
{
    cellgate_status status = remote_device_check(resident->device, error);
    uint32_t at;

    if (status != CELLGATE_OK)
        return status;
    if (atomic_exchange(&resident->busy, true))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the resident state is in use by a run");
    for (at = 0; status == CELLGATE_OK && at < resident->weights->op_count;
         at++)
        if (resident->weights->ops[at].kind == CELLGATE_OP_LSTM)
            status = move(&resident->device->memory,
                          &resident->weights->ops[at], resident->batch,
                          &resident->states[at], &states[at], error);
    atomic_store(&resident->busy, false);
    return status;
}

cellgate_status remote_resident_export(cellgate_resident *resident,
                                       const cellgate_lstm_state *states,
                                       cellgate_error *error)
{
    return move_all(resident, export_op, states, error);
}

cellgate_status remote_resident_import(cellgate_resident *resident,
                                       const cellgate_lstm_state *states,
                                       cellgate_error *error)
{
    return move_all(resident, import_op, states, error);
}
