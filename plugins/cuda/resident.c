/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/cuda/plan.h"

static int64_t state_size(const cellgate_resident *resident, uint32_t number,
                          enum cud_state which)
{
    const struct cud_lstm *lstm = &resident->weights->lstms[number];

    return lstm->directions * resident->batch * cud_state_width(lstm, which);
}

static cellgate_status check(cellgate_resident *resident, cudaError_t code,
                             const char *function, cellgate_error *error)
{
    return cud_device_check(resident->device, error, code, function,
                            "resident state");
}

static cudaError_t zero(const cellgate_resident *resident,
                        const struct cud_buffer *buffer)
{
    return cudaMemsetAsync(buffer->memory, 0, buffer->size, resident->stream);
}

static cellgate_status create_state(cellgate_resident *resident,
                                    uint32_t number, cellgate_error *error)
{
    const int64_t h = state_size(resident, number, CUD_H);
    const int64_t c = state_size(resident, number, CUD_C);
    const struct {
        struct cud_buffer *buffer;
        int64_t size;
    } needs[] = {
        { &resident->h[number], h },
        { &resident->c[number], c },
        { &resident->next_h[number], h },
        { &resident->next_c[number], c },
    };
    cellgate_status status = CELLGATE_OK;
    size_t i;

    for (i = 0; status == CELLGATE_OK && i < sizeof needs / sizeof needs[0];
         i++) {
        status = cud_buffer_create(resident->device, needs[i].size,
                                   sizeof(float), needs[i].buffer, error);
        if (status == CELLGATE_OK)
            status = check(resident, zero(resident, needs[i].buffer),
                           "cudaMemsetAsync", error);
    }
    return status;
}

static cellgate_status fill(cellgate_resident *resident, cellgate_error *error)
{
    cellgate_status status = check(
        resident,
        cudaStreamCreateWithFlags(&resident->stream, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags", error);
    uint32_t i;

    for (i = 0; status == CELLGATE_OK && i < resident->weights->lstm_count; i++)
        status = create_state(resident, i, error);
    return status == CELLGATE_OK
               ? check(resident, cudaStreamSynchronize(resident->stream),
                       "cudaStreamSynchronize", error)
               : status;
}

cellgate_status cud_resident_create(cellgate_weights *weights, int64_t batch,
                                    cellgate_resident **resident,
                                    cellgate_error *error)
{
    const size_t count = weights->lstm_count;
    cellgate_status status = cud_device_enter(weights->device, error);
    cellgate_resident *made;

    if (status != CELLGATE_OK)
        return status;
    if (batch < 1 || batch >= (int64_t)1 << 28)
        return cellgate_fail(error, CELLGATE_INVALID, "a batch of %lld",
                             (long long)batch);
    made = calloc(1, sizeof *made + 4 * count * sizeof(struct cud_buffer));
    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    made->device = weights->device;
    made->weights = weights;
    made->batch = batch;
    made->h = (struct cud_buffer *)(made + 1);
    made->c = made->h + count;
    made->next_h = made->c + count;
    made->next_c = made->next_h + count;
    status = fill(made, error);
    if (status == CELLGATE_OK)
        *resident = made;
    else
        cud_resident_destroy(made);
    return status;
}

void cud_resident_destroy(cellgate_resident *resident)
{
    uint32_t i;

    if (!resident)
        return;
    if (resident->stream && cud_device_enter_to_free(resident->device)) {
        (void)cudaStreamSynchronize(resident->stream);
        (void)cudaStreamDestroy(resident->stream);
    }
    for (i = 0; i < resident->weights->lstm_count; i++) {
        cud_buffer_destroy(resident->device, &resident->h[i]);
        cud_buffer_destroy(resident->device, &resident->c[i]);
        cud_buffer_destroy(resident->device, &resident->next_h[i]);
        cud_buffer_destroy(resident->device, &resident->next_c[i]);
    }
    free(resident);
}

void cud_resident_turn(cellgate_resident *resident)
{
    struct cud_buffer *h = resident->h, *c = resident->c;

    resident->h = resident->next_h;
    resident->c = resident->next_c;
    resident->next_h = h;
    resident->next_c = c;
}

/* ---- Export and import ------------------------------------------------- */

static cudaError_t export_one(const cellgate_resident *resident,
                              const struct cud_buffer *buffer, float *to)
{
    return to ? cudaMemcpyAsync(to, buffer->memory, buffer->size,
                                cudaMemcpyDeviceToHost, resident->stream)
              : cudaSuccess;
}

/* No h0 or c0 is zeros. */
static cudaError_t import_one(const cellgate_resident *resident,
                              const struct cud_buffer *buffer,
                              const float *from)
{
    return from ? cudaMemcpyAsync(buffer->memory, from, buffer->size,
                                  cudaMemcpyHostToDevice, resident->stream)
                : zero(resident, buffer);
}

static cellgate_status move_all(cellgate_resident *resident,
                                const cellgate_lstm_state *states, bool import,
                                cellgate_error *error)
{
    const cellgate_weights *weights = resident->weights;
    cellgate_status status = cud_device_enter(resident->device, error);
    cudaError_t code = cudaSuccess, finished;
    uint32_t i;

    if (status != CELLGATE_OK)
        return status;
    for (i = 0; i < weights->lstm_count && code == cudaSuccess; i++) {
        const cellgate_lstm_state *state = &states[weights->lstms[i].op];

        code = import ? import_one(resident, &resident->h[i], state->h0)
                      : export_one(resident, &resident->h[i], state->h);
        if (code == cudaSuccess)
            code = import ? import_one(resident, &resident->c[i], state->c0)
                          : export_one(resident, &resident->c[i], state->c);
    }
    /* Also after a failure: the host's memory is its own again. */
    finished = cudaStreamSynchronize(resident->stream);
    return check(resident, code == cudaSuccess ? finished : code,
                 "cudaMemcpyAsync", error);
}

cellgate_status cud_resident_export(cellgate_resident *resident,
                                    const cellgate_lstm_state *states,
                                    cellgate_error *error)
{
    return move_all(resident, states, false, error);
}

cellgate_status cud_resident_import(cellgate_resident *resident,
                                    const cellgate_lstm_state *states,
                                    cellgate_error *error)
{
    return move_all(resident, states, true, error);
}
