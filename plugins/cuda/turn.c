/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c: kernels that fill a GPU, one after the other; see plan.h. */
#include "config.h"

#include "plugins/cuda/plan.h"

/* ---- A GPU's turns ----------------------------------------------------- */

void cud_turns_init(cellgate_instance *instance)
{
    uint32_t i;

    for (i = 0; i < instance->found.count; i++)
        (void)pthread_mutex_init(&instance->turns[i].lock, NULL);
}

void cud_turns_finish(cellgate_instance *instance)
{
    uint32_t i;

    for (i = 0; i < instance->found.count; i++)
        (void)pthread_mutex_destroy(&instance->turns[i].lock);
}

cellgate_status cud_turn_open(cellgate_device *device, struct cud_turn *turn,
                              cellgate_error *error)
{
    cudaError_t code = cudaSuccess;

    (void)pthread_mutex_lock(&turn->lock);
    if (turn->openings == 0)
        code = cudaEventCreateWithFlags(&turn->done, cudaEventDisableTiming);
    if (code == cudaSuccess) {
        turn->openings++;
        device->turn = turn;
    }
    (void)pthread_mutex_unlock(&turn->lock);
    return cud_device_check(device, error, code, "cudaEventCreateWithFlags",
                            device->found->description.name);
}

void cud_turn_close(cellgate_device *device)
{
    struct cud_turn *turn = device->turn;

    if (!turn)
        return;
    (void)pthread_mutex_lock(&turn->lock);
    if (--turn->openings == 0 && cud_device_enter_to_free(device))
        (void)cudaEventDestroy(turn->done);
    (void)pthread_mutex_unlock(&turn->lock);
}

/* ---- A plan's turn ----------------------------------------------------- */

/* Whether kernels of the variant have blocks that wait for each other. */
static bool fills_device(const struct cud_variant *variant)
{
    return variant->way == CUD_PERSISTENT ||
           (variant->way == CUD_FUSED &&
            variant->algorithm != CUD_RNN_ALGO_STANDARD);
}

/* An event that was never recorded is not waited for. */
cellgate_status cud_turn_begin(struct cellgate_plan *plan,
                               cellgate_error *error)
{
    struct cud_turn *turn = plan->device->turn;
    cudaError_t code;

    if (!fills_device(plan->variant))
        return CELLGATE_OK;
    (void)pthread_mutex_lock(&turn->lock);
    code = cudaStreamWaitEvent(plan->stream, turn->done, 0);
    if (code != cudaSuccess)
        (void)pthread_mutex_unlock(&turn->lock);
    return cud_device_check(plan->device, error, code, "cudaStreamWaitEvent",
                            "running a segment");
}

cellgate_status cud_turn_end(struct cellgate_plan *plan, cellgate_error *error)
{
    struct cud_turn *turn = plan->device->turn;
    cudaError_t code;

    if (!fills_device(plan->variant))
        return CELLGATE_OK;
    code = cudaEventRecord(turn->done, plan->stream);
    (void)pthread_mutex_unlock(&turn->lock);
    return cud_device_check(plan->device, error, code, "cudaEventRecord",
                            "running a segment");
}
