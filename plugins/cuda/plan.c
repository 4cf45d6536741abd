/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/cuda/plan.h"

/* ---- Memory ------------------------------------------------------------ */

/* Floats of a stage's result: of each step, or of each sample only. */
static int64_t result_size(const struct cellgate_plan *plan,
                           const struct cud_stage *stage)
{
    const int64_t steps = stage->sequence && plan->steps > 0 ? plan->steps : 1;

    return plan->batch * steps * stage->width;
}

/* The largest result of a stage that is not the last. */
static int64_t between_size(const struct cellgate_plan *plan)
{
    int64_t most = 0;
    uint32_t i;

    for (i = 0; i + 1 < plan->weights->stage_count; i++) {
        const int64_t size = result_size(plan, &plan->weights->stages[i]);

        if (most < size)
            most = size;
    }
    return most;
}

/* The largest sequence that cuDNN makes beside the last output. */
static int64_t unwanted_size(const struct cellgate_plan *plan)
{
    int64_t most = 0;
    uint32_t i;

    for (i = 0; i < plan->weights->stage_count; i++) {
        const struct cud_stage *stage = &plan->weights->stages[i];
        const int64_t size = plan->batch * plan->steps * stage->width;

        if (stage->kind == CUD_STAGE_FUSED && !stage->sequence && most < size)
            most = size;
    }
    return most;
}

static cellgate_status state_memory(struct cellgate_plan *plan, uint32_t index,
                                    cellgate_error *error)
{
    cellgate_device *device = plan->device;
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_lstm *lstm = &stage->lstms[0];
    struct cud_stage_plan *of = &plan->stages[index];
    const bool fused = stage->kind == CUD_STAGE_FUSED;
    const int64_t rows = stage->layers * lstm->directions * plan->batch;
    cellgate_status status =
        cud_buffer_create(device, (fused ? 1 : 2) * rows * lstm->output,
                          sizeof(float), &of->h, error);

    if (status == CELLGATE_OK)
        status = cud_buffer_create(device, rows * lstm->hidden, sizeof(float),
                                   &of->c, error);
    if (status == CELLGATE_OK && fused)
        status = cud_buffer_create(device, rows * lstm->output, sizeof(float),
                                   &of->h0, error);
    if (status == CELLGATE_OK && fused)
        status = cud_buffer_create(device, rows * lstm->hidden, sizeof(float),
                                   &of->c0, error);
    return status;
}

static cellgate_status sequence_memory(struct cellgate_plan *plan,
                                       cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    const int64_t batch = plan->batch;
    const int64_t rows = batch * (plan->steps > 0 ? plan->steps : 1);
    const struct cud_stage *last = &weights->stages[weights->stage_count - 1];
    const int64_t between = between_size(plan);
    struct {
        struct cud_buffer *buffer;
        int64_t count; /* rows are below 2^28, widths below 2^30 */
    } needs[] = {
        { &plan->x, rows * weights->input_width },
        { &plan->lengths, batch },
        { &plan->order, batch },
        { &plan->y, last->sequence ? result_size(plan, last) : 0 },
        { &plan->last, batch * last->width },
        { &plan->between[0], between },
        { &plan->between[1], between },
        { &plan->unwanted, unwanted_size(plan) },
        { &plan->blas, plan->variant->blas ? CUD_BLAS_FLOATS : 0 },
    };
    cellgate_status status = CELLGATE_OK;
    size_t i;

    for (i = 0; status == CELLGATE_OK && i < sizeof needs / sizeof needs[0];
         i++)
        if (needs[i].count > 0)
            status = cud_buffer_create(plan->device, needs[i].count,
                                       sizeof(float), needs[i].buffer, error);
    return status;
}

static cellgate_status pinned(struct cellgate_plan *plan, int32_t **memory,
                              cellgate_error *error)
{
    void *made = NULL;
    cellgate_status status = cud_device_check(
        plan->device, error,
        cudaHostAlloc(&made, (size_t)plan->batch * sizeof(int32_t),
                      cudaHostAllocDefault),
        "cudaHostAlloc", "creating a plan");

    if (status == CELLGATE_OK)
        *memory = made;
    return status;
}

static cellgate_status plan_memory(struct cellgate_plan *plan,
                                   cellgate_error *error)
{
    cellgate_status status = pinned(plan, &plan->host_lengths, error);
    uint32_t i;

    if (status == CELLGATE_OK)
        status = pinned(plan, &plan->host_order, error);
    if (status == CELLGATE_OK)
        status = sequence_memory(plan, error);
    for (i = 0; status == CELLGATE_OK && i < plan->weights->stage_count; i++) {
        const enum cud_stage_kind kind = plan->weights->stages[i].kind;

        if (kind == CUD_STAGE_FUSED || kind == CUD_STAGE_LSTM)
            status = state_memory(plan, i, error);
        if (status == CELLGATE_OK && kind == CUD_STAGE_FUSED)
            status = cud_fused_create(plan, i, error);
        else if (status == CELLGATE_OK && kind == CUD_STAGE_LSTM)
            status = cud_own_create(plan, i, error);
    }
    return status == CELLGATE_OK ? cud_own_products(plan, error) : status;
}

/* ---- plan_create() and plan_destroy() ---------------------------------- */

static cellgate_status create_stream(struct cellgate_plan *plan,
                                     cellgate_error *error)
{
    cudaError_t code =
        cudaStreamCreateWithFlags(&plan->stream, cudaStreamNonBlocking);
    int i;

    for (i = 0; code == cudaSuccess && i < CUD_MARKS; i++)
        code = cudaEventCreate(&plan->marks[i]);
    return cud_device_check(plan->device, error, code,
                            "cudaStreamCreateWithFlags", "creating a plan");
}

static cellgate_status create_handle(struct cellgate_plan *plan,
                                     cellgate_error *error)
{
    cellgate_status status =
        cud_handle_take(plan->device, &plan->handle, error);

    if (status != CELLGATE_OK)
        return status;
    return cud_cudnn_check(
        plan->device, error,
        plan->device->cudnn.SetStream(plan->handle->cudnn, plan->stream),
        "SetStream", "creating a plan");
}

static cellgate_status fill(struct cellgate_plan *plan, cellgate_error *error)
{
    cellgate_status status = create_stream(plan, error);

    if (status == CELLGATE_OK && plan->variant->way == CUD_FUSED)
        status = create_handle(plan, error);
    if (status == CELLGATE_OK)
        status = plan_memory(plan, error);
    if (status == CELLGATE_OK)
        status = cud_plan_graphs(plan, error);
    if (status == CELLGATE_OK) /* zeros and graphs were enqueued */
        status = cud_device_check(plan->device, error,
                                  cudaStreamSynchronize(plan->stream),
                                  "cudaStreamSynchronize", "creating a plan");
    return status;
}

cellgate_status cud_plan_create(cellgate_device *device,
                                cellgate_weights *weights, uint64_t variant,
                                const cellgate_shape *given,
                                cellgate_plan **plan, cellgate_error *error)
{
    const struct cud_variant *of = cud_variant_at(variant);
    cellgate_shape shape;
    struct cellgate_plan *made;
    cellgate_status status = cud_device_enter(device, error);

    if (status == CELLGATE_OK)
        status = cud_shape_read(given, &shape, error);
    if (status != CELLGATE_OK)
        return status;
    if (!of || of->pack != weights->pack)
        return cellgate_fail(error, CELLGATE_INVALID, "no variant %llu",
                             (unsigned long long)variant);
    made = calloc(1, sizeof *made);
    if (made)
        made->stages = calloc(weights->stage_count, sizeof *made->stages);
    if (!made || !made->stages) {
        free(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for a plan");
    }
    made->device = device;
    made->weights = weights;
    made->variant = of;
    made->batch = shape.batch;
    made->steps = shape.steps;
    status = fill(made, error);
    if (status == CELLGATE_OK) {
        *plan = made;
        return CELLGATE_OK;
    }
    status = cud_plan_failed(made, &shape, status, error);
    cud_plan_destroy(made);
    return status;
}

static void free_stage(struct cellgate_plan *plan, uint32_t index)
{
    struct cud_stage_plan *stage = &plan->stages[index];

    if (plan->weights->stages[index].kind == CUD_STAGE_FUSED)
        cud_fused_destroy(plan, index);
    cud_own_destroy(plan, index);
    cud_buffer_destroy(plan->device, &stage->h0);
    cud_buffer_destroy(plan->device, &stage->c0);
    cud_buffer_destroy(plan->device, &stage->h);
    cud_buffer_destroy(plan->device, &stage->c);
}

static void free_runtime(struct cellgate_plan *plan)
{
    int i;

    for (i = 0; i < CUD_MARKS; i++)
        if (plan->marks[i])
            (void)cudaEventDestroy(plan->marks[i]);
    if (plan->stream)
        (void)cudaStreamDestroy(plan->stream);
    if (plan->host_lengths)
        (void)cudaFreeHost(plan->host_lengths);
    if (plan->host_order)
        (void)cudaFreeHost(plan->host_order);
}

void cud_plan_destroy(cellgate_plan *plan)
{
    uint32_t i;
    bool usable;

    if (!plan)
        return;
    /* cuDNN's things go with their device as the current one. */
    usable = cud_device_enter_to_free(plan->device);
    for (i = 0; i < plan->weights->stage_count; i++)
        free_stage(plan, i);
    cud_handle_give(plan->device, plan->handle);
    cud_buffer_destroy(plan->device, &plan->x);
    cud_buffer_destroy(plan->device, &plan->lengths);
    cud_buffer_destroy(plan->device, &plan->order);
    cud_buffer_destroy(plan->device, &plan->y);
    cud_buffer_destroy(plan->device, &plan->last);
    cud_buffer_destroy(plan->device, &plan->products);
    cud_buffer_destroy(plan->device, &plan->between[0]);
    cud_buffer_destroy(plan->device, &plan->between[1]);
    cud_buffer_destroy(plan->device, &plan->unwanted);
    cud_buffer_destroy(plan->device, &plan->blas);
    if (usable)
        free_runtime(plan);
    free(plan->stages);
    free(plan);
}
