/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "tests/plugins/remote/kernels.h"
#include "tests/plugins/remote/plan.h"

/* a * b * c elements of four bytes. DEVICE_MEMORY: no memory is that large. */
static cellgate_status reserve(cellgate_plan *plan, int64_t a, int64_t b,
                               int64_t c, remote_handle *handle,
                               cellgate_error *error)
{
    size_t bytes;

    if (__builtin_mul_overflow((size_t)a, (size_t)b, &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)c, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(float), &bytes))
        return cellgate_fail(error, CELLGATE_DEVICE_MEMORY,
                             "a shape of %lld x %lld x %lld does not fit",
                             (long long)a, (long long)b, (long long)c);
    return remote_allocate(&plan->device->memory, bytes, handle, error);
}

static cellgate_status reserve_op(cellgate_plan *plan,
                                  const struct remote_op *op,
                                  struct remote_op_buffers *buffers,
                                  cellgate_error *error)
{
    const bool lstm = op->kind == CELLGATE_OP_LSTM;
    const bool last =
        lstm ? (op->outputs & CELLGATE_LSTM_LAST) != 0 : !op->passes_sequence;
    cellgate_status status = CELLGATE_OK;

    if (op->passes_sequence)
        status = reserve(plan, plan->batch, plan->steps, op->features,
                         &buffers->sequence, error);
    if (status == CELLGATE_OK && last)
        status =
            reserve(plan, plan->batch, 1, op->features, &buffers->last, error);
    if (status == CELLGATE_OK && lstm)
        status = reserve(plan, op->directions, plan->batch, op->recurrent,
                         &buffers->h, error);
    if (status == CELLGATE_OK && lstm)
        status = reserve(plan, op->directions, plan->batch, op->hidden,
                         &buffers->c, error);
    return status;
}

static cellgate_status reserve_all(cellgate_plan *plan, cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    int64_t workspace = 0;
    cellgate_status status;
    uint32_t at;

    status = reserve(plan, plan->batch, plan->steps, weights->ops[0].input,
                     &plan->x, error);
    if (status == CELLGATE_OK)
        status = reserve(plan, plan->batch, 1, 1, &plan->lengths, error);
    for (at = 0; status == CELLGATE_OK && at < weights->op_count; at++) {
        int64_t size = remote_workspace_size(&weights->ops[at]);
        workspace = size > workspace ? size : workspace;
        status = reserve_op(plan, &weights->ops[at], &plan->buffers[at], error);
    }
    if (status == CELLGATE_OK)
        status = reserve(plan, workspace, 1, 1, &plan->workspace, error);
    return status;
}

static cellgate_status check(cellgate_device *device,
                             const cellgate_weights *weights, uint64_t id,
                             const cellgate_shape *given, cellgate_shape *shape,
                             cellgate_error *error)
{
    const cellgate_variant *variant = remote_variant(id);
    cellgate_status status = remote_device_check(device, error);

    if (status != CELLGATE_OK)
        return status;
    if (variant == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "there is no variant with id %llu",
                             (unsigned long long)id);
    if (variant->pack != (uint32_t)weights->pack)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "variant %s runs weights of pack %u, not %d",
                             variant->name, (unsigned)variant->pack,
                             (int)weights->pack);
    if (weights->device != device)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the weights are another device's");
    status = remote_read_shape(given, shape, error);
    return status == CELLGATE_OK
               ? remote_check_batch(device, shape->batch, error)
               : status;
}

cellgate_status remote_plan_create(cellgate_device *device,
                                   cellgate_weights *weights, uint64_t variant,
                                   const cellgate_shape *given,
                                   cellgate_plan **plan, cellgate_error *error)
{
    cellgate_shape shape;
    cellgate_status status =
        check(device, weights, variant, given, &shape, error);
    cellgate_plan *made;

    if (status != CELLGATE_OK)
        return status;
    made = calloc(1, sizeof *made);
    if (made != NULL)
        made->buffers = calloc(weights->op_count, sizeof *made->buffers);
    if (made == NULL || made->buffers == NULL) {
        free(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a record of a plan");
    }
    made->device = device;
    made->weights = weights;
    made->variant = remote_variant(variant);
    made->batch = shape.batch;
    made->steps = shape.steps;
    atomic_init(&made->busy, false);
    remote_weights_hold(weights);
    status = reserve_all(made, error);
    if (status != CELLGATE_OK) {
        remote_plan_destroy(made);
        return status;
    }
    *plan = made;
    return CELLGATE_OK;
}

void remote_plan_destroy(cellgate_plan *plan)
{
    struct remote_memory *memory;
    uint32_t at;

    if (plan == NULL)
        return;
    memory = &plan->device->memory;
    remote_free(memory, &plan->x);
    remote_free(memory, &plan->lengths);
    remote_free(memory, &plan->workspace);
    for (at = 0; at < plan->weights->op_count; at++) {
        remote_free(memory, &plan->buffers[at].sequence);
        remote_free(memory, &plan->buffers[at].last);
        remote_free(memory, &plan->buffers[at].h);
        remote_free(memory, &plan->buffers[at].c);
    }
    remote_weights_drop(plan->weights);
    free(plan->buffers);
    free(plan);
}

cellgate_status remote_breakdown(cellgate_plan *plan, cellgate_breakdown *out,
                                 cellgate_error *error)
{
    cellgate_status status = remote_device_check(plan->device, error);

    if (status != CELLGATE_OK)
        return status;
    if (!plan->measured)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the plan has not run yet");
    cellgate_struct_copy(out, &plan->breakdown);
    return CELLGATE_OK;
}
