/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include "tests/plugins/remote/device_blocks.h"

cellgate_status remote_map(struct remote_memory *memory, remote_handle handle,
                           struct remote_view *view, cellgate_error *error)
{
    struct remote_block *block;
    char line[128];

    pthread_mutex_lock(&memory->lock);
    block = remote_find_block(memory, handle);
    if (block != NULL) {
        block->mapped++;
        view->base = memory->pool + block->offset;
        view->bytes = block->bytes;
        view->handle = handle;
    }
    pthread_mutex_unlock(&memory->lock);
    if (block != NULL)
        return CELLGATE_OK;

    (void)snprintf(line, sizeof line,
                   "remote: access to device memory 0x%" PRIx64
                   ", which is freed or was never allocated",
                   handle);
    memory->host->log(memory->host->context, CELLGATE_LOG_ERROR, line);
    (void)cellgate_fail(error, CELLGATE_DEVICE_FAILED, "%s", line);
    error->vendor_code = REMOTE_CODE_ADDRESS;
    return CELLGATE_DEVICE_FAILED;
}

void remote_unmap(struct remote_memory *memory, struct remote_view *view)
{
    struct remote_block *block;

    if (view->handle == 0)
        return;
    pthread_mutex_lock(&memory->lock);
    /* A mapped block keeps its record, doomed or not. */
    block = &memory->blocks[(uint32_t)view->handle - 1];
    block->mapped--;
    if (block->state == BLOCK_DOOMED && block->mapped == 0)
        remote_give_back(memory, block);
    pthread_mutex_unlock(&memory->lock);
    memset(view, 0, sizeof *view);
}

cellgate_status remote_map_all(struct remote_memory *memory,
                               const remote_handle *handles, uint32_t count,
                               struct remote_view *views, cellgate_error *error)
{
    uint32_t at;

    memset(views, 0, count * sizeof *views);
    for (at = 0; at < count; at++) {
        cellgate_status status;
        if (handles[at] == 0)
            continue;
        status = remote_map(memory, handles[at], &views[at], error);
        if (status != CELLGATE_OK) {
            remote_unmap_all(memory, at, views);
            return status;
        }
    }
    return CELLGATE_OK;
}

void remote_unmap_all(struct remote_memory *memory, uint32_t count,
                      struct remote_view *views)
{
    uint32_t at;

    for (at = 0; at < count; at++)
        remote_unmap(memory, &views[at]);
}

void *remote_at(const struct remote_view *view, size_t offset, size_t bytes)
{
    if (view->base == NULL || offset > view->bytes ||
        bytes > view->bytes - offset)
        return NULL;
    return view->base + offset;
}

cellgate_status remote_outside(struct remote_memory *memory,
                               const struct remote_view *view, const char *who,
                               cellgate_error *error)
{
    char line[160];

    (void)snprintf(line, sizeof line,
                   "remote: %s reached outside device memory 0x%" PRIx64
                   " of %zu bytes",
                   who, view->handle, view->bytes);
    memory->host->log(memory->host->context, CELLGATE_LOG_ERROR, line);
    (void)cellgate_fail(error, CELLGATE_DEVICE_FAILED, "%s", line);
    error->vendor_code = REMOTE_CODE_ADDRESS;
    return CELLGATE_DEVICE_FAILED;
}
