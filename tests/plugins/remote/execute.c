/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/resident.h"
#include "tests/plugins/remote/run.h"
#include "tests/plugins/remote/transfer.h"

static struct remote_memory *memory_of(const cellgate_plan *plan)
{
    return &plan->device->memory;
}

/* Full lengths are written into the device's array where the host has none. */
static cellgate_status upload_lengths(cellgate_plan *plan,
                                      cellgate_error *error)
{
    const cellgate_segment_run *run = plan->run;
    struct remote_view view;
    cellgate_status status;
    int64_t b;

    if (run->lengths != NULL)
        return remote_upload(memory_of(plan), plan->lengths, run->lengths,
                             (size_t)run->batch * sizeof *run->lengths, error);
    status = remote_map(memory_of(plan), plan->lengths, &view, error);
    if (status != CELLGATE_OK)
        return status;
    for (b = 0; b < run->batch; b++) {
        int32_t length = (int32_t)run->steps;
        void *to = remote_at(&view, (size_t)b * sizeof length, sizeof length);
        if (to != NULL)
            memcpy(to, &length, sizeof length);
    }
    remote_unmap(memory_of(plan), &view);
    return CELLGATE_OK;
}

/* Initial h or c: from resident state, from the host, or zeros. */
static cellgate_status upload_state(cellgate_plan *plan, remote_handle to,
                                    remote_handle resident, const float *host,
                                    size_t bytes, cellgate_error *error)
{
    if (resident != 0)
        return remote_copy(memory_of(plan), to, resident, bytes, error);
    if (host != NULL)
        return remote_upload(memory_of(plan), to, host, bytes, error);
    return remote_zero(memory_of(plan), to, bytes, error);
}

static cellgate_status upload_states(cellgate_plan *plan, uint32_t index,
                                     cellgate_error *error)
{
    const cellgate_segment_run *run = plan->run;
    const struct remote_op *op = &plan->weights->ops[index];
    struct remote_resident_state resident = { 0, 0 };
    cellgate_lstm_state host = { NULL, NULL, NULL, NULL };
    cellgate_status status;

    if (op->kind != CELLGATE_OP_LSTM)
        return CELLGATE_OK;
    if (run->resident != NULL)
        resident = run->resident->states[index];
    else if (run->states != NULL)
        host = run->states[index];
    status = upload_state(plan, plan->buffers[index].h, resident.h, host.h0,
                          remote_h_bytes(op, run->batch), error);
    if (status == CELLGATE_OK)
        status = upload_state(plan, plan->buffers[index].c, resident.c, host.c0,
                              remote_c_bytes(op, run->batch), error);
    return status;
}

static cellgate_status upload(cellgate_plan *plan, cellgate_error *error)
{
    const cellgate_segment_run *run = plan->run;
    cellgate_status status;
    uint32_t at;

    status =
        remote_upload_sequence(memory_of(plan), plan->x, &run->x, run->batch,
                               run->steps, plan->weights->ops[0].input, error);
    if (status == CELLGATE_OK)
        status = upload_lengths(plan, error);
    for (at = 0; status == CELLGATE_OK && at < plan->weights->op_count; at++)
        status = upload_states(plan, at, error);
    return status;
}

static cellgate_status download_state(cellgate_plan *plan, remote_handle from,
                                      float *host, size_t bytes,
                                      cellgate_error *error)
{
    if (host == NULL)
        return CELLGATE_OK;
    return remote_download(memory_of(plan), from, host, bytes, error);
}

static cellgate_status download_states(cellgate_plan *plan,
                                       cellgate_error *error)
{
    const cellgate_segment_run *run = plan->run;
    cellgate_status status = CELLGATE_OK;
    uint32_t at;

    if (run->states == NULL)
        return CELLGATE_OK;
    for (at = 0; status == CELLGATE_OK && at < plan->weights->op_count; at++) {
        const struct remote_op *op = &plan->weights->ops[at];
        if (op->kind != CELLGATE_OP_LSTM)
            continue;
        status = download_state(plan, plan->buffers[at].h, run->states[at].h,
                                remote_h_bytes(op, run->batch), error);
        if (status == CELLGATE_OK)
            status =
                download_state(plan, plan->buffers[at].c, run->states[at].c,
                               remote_c_bytes(op, run->batch), error);
    }
    return status;
}

static cellgate_status download(cellgate_plan *plan, cellgate_error *error)
{
    const cellgate_segment_run *run = plan->run;
    const uint32_t final = plan->weights->op_count - 1;
    const struct remote_op_buffers *buffers = &plan->buffers[final];
    const int64_t features = plan->weights->ops[final].features;
    cellgate_status status = CELLGATE_OK;

    if (buffers->sequence != 0)
        status = remote_download_sequence(memory_of(plan), buffers->sequence,
                                          &run->y, run->batch, run->steps,
                                          features, error);
    if (status == CELLGATE_OK && buffers->last != 0)
        status = remote_download_sequence(memory_of(plan), buffers->last,
                                          &run->y_last, run->batch, 1, features,
                                          error);
    if (status == CELLGATE_OK)
        status = download_states(plan, error);
    return status;
}

/*
 * The new state becomes the resident one. Last of all, and between blocks that
 * this run has used already: it does not fail halfway.
 */
static cellgate_status commit(cellgate_plan *plan, cellgate_error *error)
{
    const cellgate_segment_run *run = plan->run;
    cellgate_status status = CELLGATE_OK;
    uint32_t at;

    if (run->resident == NULL)
        return CELLGATE_OK;
    for (at = 0; status == CELLGATE_OK && at < plan->weights->op_count; at++) {
        const struct remote_op *op = &plan->weights->ops[at];
        if (op->kind != CELLGATE_OP_LSTM)
            continue;
        status = remote_copy(memory_of(plan), run->resident->states[at].h,
                             plan->buffers[at].h,
                             remote_h_bytes(op, run->batch), error);
        if (status == CELLGATE_OK)
            status = remote_copy(memory_of(plan), run->resident->states[at].c,
                                 plan->buffers[at].c,
                                 remote_c_bytes(op, run->batch), error);
    }
    return status;
}

/*
 * Upload and compute; nothing of it where the plan's buffers hold the results
 * of the same input already. Resident state is an input that is not looked at.
 */
static cellgate_status prepare_results(cellgate_plan *plan, uint64_t *uploaded,
                                       cellgate_error *error)
{
    const bool simulated = plan->device->simulation.active;
    const bool keeps = simulated && plan->run->resident == NULL;
    const uint64_t input = keeps ? remote_simulation_input(plan) : 0;
    const cellgate_host *host = plan->device->host;
    cellgate_status status;

    if (keeps && plan->last.valid && plan->last.input == input) {
        *uploaded = host->clock(host->context);
        return remote_faults_strike(&plan->device->faults, plan->number, error);
    }
    plan->last.valid = false;
    status = remote_faults_random(&plan->device->faults, plan->number,
                                  REMOTE_BEFORE, error);
    if (status == CELLGATE_OK)
        status = upload(plan, error);
    *uploaded = host->clock(host->context);
    if (status == CELLGATE_OK && simulated && remote_simulation_skips(plan))
        return remote_faults_strike(&plan->device->faults, plan->number, error);
    if (status == CELLGATE_OK)
        status = remote_compute(plan, error);
    plan->last.valid =
        keeps && status == CELLGATE_OK &&
        !remote_faults_distort(&plan->device->faults, plan->number);
    plan->last.input = input;
    return status;
}

static double seconds(uint64_t from, uint64_t to)
{
    return (double)(to - from) * 1e-9;
}

void remote_execute(void *argument)
{
    cellgate_plan *plan = argument;
    const cellgate_host *host = plan->device->host;
    cellgate_error error = CELLGATE_ERROR_INIT;
    uint64_t times[4] = { 0, 0, 0, 0 };
    cellgate_status status;

    times[0] = host->clock(host->context);
    status = prepare_results(plan, &times[1], &error);
    times[2] = host->clock(host->context);
    if (status == CELLGATE_OK)
        status = download(plan, &error);
    if (status == CELLGATE_OK)
        status = remote_faults_random(&plan->device->faults, plan->number,
                                      REMOTE_AFTER, &error);
    if (status == CELLGATE_OK)
        status = commit(plan, &error);
    if (plan->device->simulation.active)
        remote_simulation_wait(plan, times[0]);
    times[3] = host->clock(host->context);

    plan->status = status;
    plan->error = error;
    if (status != CELLGATE_OK)
        return;
    plan->breakdown.struct_size = sizeof plan->breakdown;
    plan->breakdown.upload = seconds(times[0], times[1]);
    plan->breakdown.compute = seconds(times[1], times[2]);
    plan->breakdown.download = seconds(times[2], times[3]);
}
