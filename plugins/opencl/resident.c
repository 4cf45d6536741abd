/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/opencl/plan.h"

static cellgate_status create_state(cellgate_resident *resident, uint32_t stage,
                                    cellgate_error *error)
{
    const struct ocl_lstm *lstm = &resident->weights->stages[stage].lstm;
    const int64_t rows = lstm->directions * resident->batch;
    const struct {
        struct ocl_buffer *buffer;
        int64_t size;
    } needs[] = {
        { &resident->h[stage], lstm->output },
        { &resident->c[stage], lstm->hidden },
        { &resident->next_h[stage], lstm->output },
        { &resident->next_c[stage], lstm->hidden },
    };
    cellgate_status status = CELLGATE_OK;
    size_t i;

    for (i = 0; status == CELLGATE_OK && i < sizeof needs / sizeof needs[0];
         i++)
        status = ocl_buffer_create(resident->device, rows * needs[i].size,
                                   sizeof(float), needs[i].buffer, error);
    return status;
}

static cl_int zero(const cellgate_resident *resident,
                   const struct ocl_buffer *buffer)
{
    const float nothing = 0;

    return resident->device->cl->EnqueueFillBuffer(
        resident->queue, buffer->memory, &nothing, sizeof nothing, 0,
        buffer->size, 0, NULL, NULL);
}

static cellgate_status fill(cellgate_resident *resident, cellgate_error *error)
{
    const struct ocl_api *cl = resident->device->cl;
    cellgate_status status = CELLGATE_OK;
    cl_int code;
    uint32_t i;

    resident->queue = cl->CreateCommandQueue(resident->device->context,
                                             resident->device->id, 0, &code);
    if (code != CL_SUCCESS) {
        resident->queue = NULL;
        return ocl_device_fail(resident->device, error, code,
                               "clCreateCommandQueue", "resident state");
    }
    for (i = 0; status == CELLGATE_OK && i < resident->weights->stage_count;
         i++) {
        if (resident->weights->stages[i].kind != OCL_STAGE_LSTM)
            continue;
        status = create_state(resident, i, error);
        if (status == CELLGATE_OK &&
            (code = zero(resident, &resident->h[i])) == CL_SUCCESS)
            code = zero(resident, &resident->c[i]);
        if (status == CELLGATE_OK && code != CL_SUCCESS)
            status = ocl_device_fail(resident->device, error, code,
                                     "clEnqueueFillBuffer", "resident state");
    }
    if (status == CELLGATE_OK &&
        (code = cl->Finish(resident->queue)) != CL_SUCCESS)
        status = ocl_device_fail(resident->device, error, code, "clFinish",
                                 "resident state");
    return status;
}

cellgate_status ocl_resident_create(cellgate_weights *weights, int64_t batch,
                                    cellgate_resident **resident,
                                    cellgate_error *error)
{
    cellgate_status status = ocl_device_check(weights->device, error);
    cellgate_resident *made;

    if (status != CELLGATE_OK)
        return status;
    if (batch < 1 || batch >= (int64_t)1 << 28)
        return cellgate_fail(error, CELLGATE_INVALID, "a batch of %lld",
                             (long long)batch);
    made = calloc(1, sizeof *made + (size_t)4 * weights->stage_count *
                                        sizeof(struct ocl_buffer));
    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    made->device = weights->device;
    made->weights = weights;
    made->batch = batch;
    made->h = (struct ocl_buffer *)(made + 1);
    made->c = made->h + weights->stage_count;
    made->next_h = made->c + weights->stage_count;
    made->next_c = made->next_h + weights->stage_count;
    status = fill(made, error);
    if (status == CELLGATE_OK)
        *resident = made;
    else
        ocl_resident_destroy(made);
    return status;
}

void ocl_resident_destroy(cellgate_resident *resident)
{
    uint32_t i;

    if (!resident)
        return;
    for (i = 0; i < resident->weights->stage_count; i++) {
        ocl_buffer_destroy(resident->device, &resident->h[i]);
        ocl_buffer_destroy(resident->device, &resident->c[i]);
        ocl_buffer_destroy(resident->device, &resident->next_h[i]);
        ocl_buffer_destroy(resident->device, &resident->next_c[i]);
    }
    if (resident->queue)
        (void)resident->device->cl->ReleaseCommandQueue(resident->queue);
    free(resident);
}

void ocl_resident_turn(cellgate_resident *resident)
{
    struct ocl_buffer *h = resident->h, *c = resident->c;

    resident->h = resident->next_h;
    resident->c = resident->next_c;
    resident->next_h = h;
    resident->next_c = c;
}

/* One of the two buffers of an op, in the direction that `from` says. */
static cl_int move(cellgate_resident *resident, const struct ocl_buffer *buffer,
                   const float *from, float *to)
{
    const struct ocl_api *cl = resident->device->cl;

    if (from)
        return cl->EnqueueWriteBuffer(resident->queue, buffer->memory, CL_FALSE,
                                      0, buffer->size, from, 0, NULL, NULL);
    if (to)
        return cl->EnqueueReadBuffer(resident->queue, buffer->memory, CL_FALSE,
                                     0, buffer->size, to, 0, NULL, NULL);
    return CL_SUCCESS;
}

static cellgate_status move_all(cellgate_resident *resident,
                                const cellgate_lstm_state *states, bool import,
                                cellgate_error *error)
{
    const cellgate_weights *weights = resident->weights;
    cellgate_status status = ocl_device_check(resident->device, error);
    cl_int code = CL_SUCCESS, finished;
    uint32_t i;

    if (status != CELLGATE_OK)
        return status;
    for (i = 0; i < weights->stage_count && code == CL_SUCCESS; i++) {
        const cellgate_lstm_state *state = &states[weights->stages[i].lstm.op];

        if (weights->stages[i].kind != OCL_STAGE_LSTM)
            continue;
        code = move(resident, &resident->h[i], import ? state->h0 : NULL,
                    import ? NULL : state->h);
        if (code == CL_SUCCESS)
            code = move(resident, &resident->c[i], import ? state->c0 : NULL,
                        import ? NULL : state->c);
        /* No h0 or c0 is zeros. */
        if (code == CL_SUCCESS && import && !state->h0)
            code = zero(resident, &resident->h[i]);
        if (code == CL_SUCCESS && import && !state->c0)
            code = zero(resident, &resident->c[i]);
    }
    /* Also after a failure: the host's memory is its own again. */
    finished = resident->device->cl->Finish(resident->queue);
    if (code == CL_SUCCESS)
        code = finished;
    if (code != CL_SUCCESS)
        return ocl_device_fail(resident->device, error, code,
                               "the device's queue", "moving resident state");
    return CELLGATE_OK;
}

cellgate_status ocl_resident_export(cellgate_resident *resident,
                                    const cellgate_lstm_state *states,
                                    cellgate_error *error)
{
    return move_all(resident, states, false, error);
}

cellgate_status ocl_resident_import(cellgate_resident *resident,
                                    const cellgate_lstm_state *states,
                                    cellgate_error *error)
{
    return move_all(resident, states, true, error);
}
