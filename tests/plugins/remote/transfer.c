/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/bf16.h"
#include "tests/plugins/remote/transfer.h"

/* Maps a block of at least `bytes`. */
static cellgate_status map_bytes(struct remote_memory *memory,
                                 remote_handle handle, size_t bytes,
                                 struct remote_view *view,
                                 cellgate_error *error)
{
    cellgate_status status = remote_map(memory, handle, view, error);

    if (status != CELLGATE_OK || remote_at(view, 0, bytes) != NULL)
        return status;
    status = remote_outside(memory, view, "a copy", error);
    remote_unmap(memory, view);
    return status;
}

cellgate_status remote_upload(struct remote_memory *memory,
                              remote_handle handle, const void *host,
                              size_t bytes, cellgate_error *error)
{
    struct remote_view view;
    cellgate_status status = map_bytes(memory, handle, bytes, &view, error);

    if (status != CELLGATE_OK)
        return status;
    if (bytes > 0)
        memcpy(view.base, host, bytes);
    remote_unmap(memory, &view);
    return CELLGATE_OK;
}

cellgate_status remote_download(struct remote_memory *memory,
                                remote_handle handle, void *host, size_t bytes,
                                cellgate_error *error)
{
    struct remote_view view;
    cellgate_status status = map_bytes(memory, handle, bytes, &view, error);

    if (status != CELLGATE_OK)
        return status;
    if (bytes > 0)
        memcpy(host, view.base, bytes);
    remote_unmap(memory, &view);
    return CELLGATE_OK;
}

cellgate_status remote_upload_bf16(struct remote_memory *memory,
                                   remote_handle handle, const float *host,
                                   size_t count, cellgate_error *error)
{
    struct remote_view view;
    cellgate_status status =
        map_bytes(memory, handle, count * sizeof(uint16_t), &view, error);
    size_t at;

    if (status != CELLGATE_OK)
        return status;
    for (at = 0; at < count; at++) {
        uint16_t rounded = remote_to_bf16(host[at]);
        memcpy(view.base + at * sizeof rounded, &rounded, sizeof rounded);
    }
    remote_unmap(memory, &view);
    return CELLGATE_OK;
}

enum direction { TO_DEVICE, TO_HOST };

static cellgate_status
transfer_sequence(struct remote_memory *memory, enum direction direction,
                  remote_handle handle, const cellgate_sequence *host,
                  int64_t batch, int64_t steps, int64_t features,
                  cellgate_error *error)
{
    const size_t row = (size_t)features * sizeof(float);
    struct remote_view view;
    cellgate_status status = map_bytes(
        memory, handle, (size_t)batch * (size_t)steps * row, &view, error);
    unsigned char *device;
    int64_t b, t;

    if (status != CELLGATE_OK)
        return status;
    device = view.base;
    for (b = 0; b < batch; b++)
        for (t = 0; t < steps; t++, device += row) {
            float *at = (float *)host->data + b * host->batch_stride +
                        t * host->time_stride;
            if (direction == TO_DEVICE)
                memcpy(device, at, row);
            else
                memcpy(at, device, row);
        }
    remote_unmap(memory, &view);
    return CELLGATE_OK;
}

cellgate_status remote_upload_sequence(struct remote_memory *memory,
                                       remote_handle handle,
                                       const cellgate_sequence *host,
                                       int64_t batch, int64_t steps,
                                       int64_t features, cellgate_error *error)
{
    return transfer_sequence(memory, TO_DEVICE, handle, host, batch, steps,
                             features, error);
}

cellgate_status
remote_download_sequence(struct remote_memory *memory, remote_handle handle,
                         const cellgate_sequence *host, int64_t batch,
                         int64_t steps, int64_t features, cellgate_error *error)
{
    return transfer_sequence(memory, TO_HOST, handle, host, batch, steps,
                             features, error);
}

cellgate_status remote_copy(struct remote_memory *memory, remote_handle to,
                            remote_handle from, size_t bytes,
                            cellgate_error *error)
{
    struct remote_view view;
    cellgate_status status = map_bytes(memory, from, bytes, &view, error);

    if (status != CELLGATE_OK)
        return status;
    status = remote_upload(memory, to, view.base, bytes, error);
    remote_unmap(memory, &view);
    return status;
}

cellgate_status remote_zero(struct remote_memory *memory, remote_handle handle,
                            size_t bytes, cellgate_error *error)
{
    struct remote_view view;
    cellgate_status status = map_bytes(memory, handle, bytes, &view, error);

    if (status != CELLGATE_OK)
        return status;
    memset(view.base, 0, bytes);
    remote_unmap(memory, &view);
    return CELLGATE_OK;
}
