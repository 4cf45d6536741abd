/* SPDX-License-Identifier: Apache-2.0 */
/* own_weights.c: weights as our own kernels want them. */
#include "config.h"

#include <stdlib.h>

#include "plugins/cuda/segment.h"

/* A matrix of each direction on its way: a host copy that is packed, then
   uploaded. */
struct packing {
    cellgate_device *device;
    int32_t directions;
    size_t size; /* bytes of a direction */
    char *host;
};

static cellgate_status begin(struct packing *packing, size_t size,
                             struct cud_buffer *buffer, cellgate_error *error)
{
    const size_t all = size * (size_t)packing->directions;
    cellgate_status status =
        cud_buffer_create(packing->device, (int64_t)all, 1, buffer, error);

    if (status != CELLGATE_OK)
        return status;
    packing->size = size;
    packing->host = calloc(1, all > 0 ? all : 1);
    if (!packing->host)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to pack %zu bytes of weights", all);
    return CELLGATE_OK;
}

static void *part(const struct packing *packing, int direction)
{
    return packing->host + (size_t)direction * packing->size;
}

static cellgate_status end(struct packing *packing,
                           const struct cud_buffer *buffer,
                           cellgate_error *error)
{
    cellgate_status status =
        cud_upload(packing->device, buffer, packing->host,
                   packing->size * (size_t)packing->directions, error);

    free(packing->host);
    packing->host = NULL;
    return status;
}

/* ---- An LSTM ----------------------------------------------------------- */

/* [depth][4H] with a unit's gates side by side, in a type. */
static cellgate_status
pack_kernel(struct packing *packing, const struct cud_lstm *lstm,
            const cellgate_lstm *from, enum cuk_type type,
            struct cud_buffer *buffer, cellgate_error *error)
{
    const int64_t count = lstm->input * 4 * lstm->hidden;
    cellgate_status status =
        begin(packing, (size_t)count * cuk_type_size(type), buffer, error);
    float *gates = malloc((size_t)count * sizeof *gates);
    int d;

    if (status == CELLGATE_OK && !gates)
        status =
            cellgate_fail(error, CELLGATE_NO_MEMORY,
                          "no memory to pack %lld weights", (long long)count);
    for (d = 0; status == CELLGATE_OK && d < lstm->directions; d++) {
        cuk_pack_gates(from->weights[d].kernel, lstm->input, lstm->hidden,
                       gates);
        cuk_pack_plain(gates, count, type, part(packing, d));
    }
    free(gates);
    return status == CELLGATE_OK ? end(packing, buffer, error) : status;
}

static cellgate_status
pack_recurrent(struct packing *packing, const struct cud_lstm *lstm,
               const cellgate_lstm *from, enum cuk_type type,
               struct cud_matrices *own, cellgate_error *error)
{
    const size_t size = cuk_recurrent_size(lstm->output, lstm->hidden, type);
    cellgate_status status = begin(packing, size, &own->recurrent, error);
    int d;

    if (status != CELLGATE_OK)
        return status;
    own->recurrent_direction = (int64_t)(size / cuk_type_size(type));
    for (d = 0; d < lstm->directions; d++)
        cuk_pack_recurrent(from->weights[d].recurrent_kernel, lstm->output,
                           lstm->hidden, type, part(packing, d));
    return end(packing, &own->recurrent, error);
}

/* Zeros where the layer has no bias. */
static cellgate_status pack_bias(struct packing *packing,
                                 const struct cud_lstm *lstm,
                                 const cellgate_lstm *from,
                                 struct cud_buffer *buffer,
                                 cellgate_error *error)
{
    cellgate_status status =
        begin(packing, 4 * (size_t)lstm->hidden * sizeof(float), buffer, error);
    int d;

    if (status != CELLGATE_OK)
        return status;
    for (d = 0; lstm->has_bias && d < lstm->directions; d++)
        cuk_pack_gates(from->weights[d].bias, 1, lstm->hidden,
                       part(packing, d));
    return end(packing, buffer, error);
}

static cellgate_status
pack_projection(struct packing *packing, const struct cud_lstm *lstm,
                const cellgate_lstm *from, enum cuk_type type,
                struct cud_buffer *buffer, cellgate_error *error)
{
    const int64_t count = lstm->hidden * lstm->output;
    cellgate_status status =
        begin(packing, (size_t)count * cuk_type_size(type), buffer, error);
    int d;

    if (status != CELLGATE_OK)
        return status;
    for (d = 0; d < lstm->directions; d++)
        cuk_pack_plain(from->weights[d].projection, count, type,
                       part(packing, d));
    return end(packing, buffer, error);
}

static cellgate_status pack_peepholes(struct packing *packing,
                                      const struct cud_lstm *lstm,
                                      const cellgate_lstm *from,
                                      struct cud_buffer *buffer,
                                      cellgate_error *error)
{
    const size_t size = 3 * (size_t)lstm->hidden * sizeof(float);
    cellgate_status status = begin(packing, size, buffer, error);
    int d;

    if (status != CELLGATE_OK)
        return status;
    for (d = 0; d < lstm->directions; d++)
        memcpy(part(packing, d), from->weights[d].peephole, size);
    return end(packing, buffer, error);
}

cellgate_status cud_own_prepare(cellgate_device *device,
                                struct cud_stage *stage,
                                const cellgate_segment *segment,
                                enum cuk_type type, cellgate_error *error)
{
    const struct cud_lstm *lstm = &stage->lstms[0];
    struct packing packing = { .device = device,
                               .directions = lstm->directions };
    struct cud_matrices *own = &stage->own;
    cellgate_lstm from = { .op = { sizeof from, 0, 0 } };
    cellgate_status status;

    cellgate_struct_copy(&from, segment->ops[lstm->op]);
    status = pack_kernel(&packing, lstm, &from, type, &own->kernel, error);
    if (status == CELLGATE_OK)
        status = pack_recurrent(&packing, lstm, &from, type, own, error);
    if (status == CELLGATE_OK)
        status = pack_bias(&packing, lstm, &from, &own->bias, error);
    if (status == CELLGATE_OK && lstm->projects)
        status = pack_projection(&packing, lstm, &from, type, &own->projection,
                                 error);
    if (status == CELLGATE_OK && lstm->peepholes)
        status = pack_peepholes(&packing, lstm, &from, &own->peephole, error);
    free(packing.host);
    return status;
}

/* ---- A dense layer ----------------------------------------------------- */

cellgate_status cud_dense_prepare(cellgate_device *device,
                                  struct cud_stage *stage,
                                  const cellgate_dense *dense,
                                  enum cuk_type type, cellgate_error *error)
{
    struct packing packing = { .device = device, .directions = 1 };
    const int64_t count = dense->input_size * dense->units;
    cellgate_status status;

    status = begin(&packing, (size_t)count * cuk_type_size(type),
                   &stage->own.kernel, error);
    if (status == CELLGATE_OK) {
        cuk_pack_plain(dense->kernel, count, type, packing.host);
        status = end(&packing, &stage->own.kernel, error);
    }
    if (status == CELLGATE_OK && dense->has_bias)
        status = begin(&packing, (size_t)dense->units * sizeof(float),
                       &stage->own.bias, error);
    if (status == CELLGATE_OK && dense->has_bias) {
        memcpy(packing.host, dense->bias, packing.size);
        status = end(&packing, &stage->own.bias, error);
    }
    free(packing.host);
    return status;
}
