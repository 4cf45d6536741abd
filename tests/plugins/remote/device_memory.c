/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tests/plugins/remote/device_blocks.h"

/* float32 and bfloat16 read it as NaN, int32 as -1. */
#define POISON 0xFF

cellgate_status remote_memory_init(struct remote_memory *memory, size_t size,
                                   const cellgate_host *host,
                                   cellgate_error *error)
{
    memset(memory, 0, sizeof *memory);
    memory->host = host;
    memory->size = size - size % REMOTE_GRANULE;
    memory->pool = host->allocate(host->context, REMOTE_GRANULE, memory->size);
    if (memory->pool == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "the host has no %zu bytes for device memory; "
                             "set memory to less",
                             memory->size);
    pthread_mutex_init(&memory->lock, NULL);
    return CELLGATE_OK;
}

static void log_error(struct remote_memory *memory, const char *text)
{
    memory->host->log(memory->host->context, CELLGATE_LOG_ERROR, text);
}

void remote_memory_finish(struct remote_memory *memory)
{
    char line[128];

    if (memory->used > 0) {
        (void)snprintf(line, sizeof line,
                       "remote: %zu bytes of device memory were never freed",
                       memory->used);
        log_error(memory, line);
    }
    memory->host->release(memory->host->context, memory->pool);
    free(memory->blocks);
    pthread_mutex_destroy(&memory->lock);
}

static remote_handle handle_of(const struct remote_memory *memory,
                               uint32_t index)
{
    return (uint64_t)memory->blocks[index].generation << 32 |
           ((uint64_t)index + 1);
}

struct remote_block *remote_find_block(const struct remote_memory *memory,
                                       remote_handle handle)
{
    uint32_t index = (uint32_t)handle - 1;
    struct remote_block *block;

    if ((uint32_t)handle == 0 || index >= memory->block_count)
        return NULL;
    block = &memory->blocks[index];
    if (block->state != BLOCK_LIVE ||
        block->generation != (uint32_t)(handle >> 32))
        return NULL;
    return block;
}

/* Index of an unused record; UINT32_MAX when the host has no memory for one. */
static uint32_t take_record(struct remote_memory *memory)
{
    struct remote_block *grown;
    uint32_t at, capacity;

    for (at = 0; at < memory->block_count; at++)
        if (memory->blocks[at].state == BLOCK_UNUSED)
            return at;
    if (memory->block_count == memory->block_capacity) {
        capacity = memory->block_capacity ? memory->block_capacity * 2 : 64;
        grown = realloc(memory->blocks, capacity * sizeof *grown);
        if (grown == NULL)
            return UINT32_MAX;
        memory->blocks = grown;
        memory->block_capacity = capacity;
    }
    memset(&memory->blocks[at], 0, sizeof *memory->blocks);
    memory->block_count++;
    return at;
}

/*
 * The first gap of `extent` bytes: its offset, and the chain link that leads
 * there. NULL: there is none.
 */
static uint32_t *find_gap(struct remote_memory *memory, size_t extent,
                          size_t *offset)
{
    uint32_t *link = &memory->first;
    size_t end = 0;

    while (*link != 0) {
        struct remote_block *block = &memory->blocks[*link - 1];
        if (block->offset - end >= extent)
            break;
        end = block->offset + block->extent;
        link = &block->next;
    }
    if (*link == 0 && memory->size - end < extent)
        return NULL;
    *offset = end;
    return link;
}

static cellgate_status no_room(const struct remote_memory *memory, size_t bytes,
                               cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_DEVICE_MEMORY,
                         "%zu bytes do not fit: %zu of the device's %zu bytes "
                         "are in use",
                         bytes, memory->used, memory->size);
}

static cellgate_status allocate_locked(struct remote_memory *memory,
                                       size_t bytes, remote_handle *handle,
                                       cellgate_error *error)
{
    size_t extent, offset;
    struct remote_block *block;
    uint32_t *link, index;

    if (bytes > memory->size)
        return no_room(memory, bytes, error);
    extent = (bytes / REMOTE_GRANULE + (bytes % REMOTE_GRANULE || !bytes)) *
             REMOTE_GRANULE;
    /* Taking a record may move the records: do it before links are held. */
    index = take_record(memory);
    if (index == UINT32_MAX)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a record of device memory");
    link = find_gap(memory, extent, &offset);
    if (link == NULL)
        return no_room(memory, bytes, error);

    block = &memory->blocks[index];
    block->offset = offset;
    block->bytes = bytes;
    block->extent = extent;
    block->generation++;
    block->mapped = 0;
    block->state = BLOCK_LIVE;
    block->next = *link;
    *link = index + 1;
    memory->used += extent;
    memset(memory->pool + offset, POISON, extent);
    *handle = handle_of(memory, index);
    return CELLGATE_OK;
}

cellgate_status remote_allocate(struct remote_memory *memory, size_t bytes,
                                remote_handle *handle, cellgate_error *error)
{
    cellgate_status status;

    pthread_mutex_lock(&memory->lock);
    status = allocate_locked(memory, bytes, handle, error);
    pthread_mutex_unlock(&memory->lock);
    return status;
}

void remote_give_back(struct remote_memory *memory, struct remote_block *block)
{
    uint32_t *link = &memory->first;

    while (&memory->blocks[*link - 1] != block)
        link = &memory->blocks[*link - 1].next;
    *link = block->next;
    memory->used -= block->extent;
    memset(memory->pool + block->offset, POISON, block->extent);
    block->state = BLOCK_UNUSED;
}

void remote_free(struct remote_memory *memory, remote_handle *handle)
{
    struct remote_block *block;
    const char *wrong = NULL;
    char line[128];

    if (*handle == 0)
        return;
    pthread_mutex_lock(&memory->lock);
    block = remote_find_block(memory, *handle);
    if (block == NULL) {
        wrong = "freed twice or never allocated";
    } else if (block->mapped > 0) {
        wrong = "freed while the device uses it";
        block->state = BLOCK_DOOMED;
    } else {
        remote_give_back(memory, block);
    }
    pthread_mutex_unlock(&memory->lock);
    if (wrong != NULL) {
        (void)snprintf(line, sizeof line,
                       "remote: device memory 0x%" PRIx64 " %s", *handle,
                       wrong);
        log_error(memory, line);
    }
    *handle = 0;
}

uint64_t remote_memory_used(struct remote_memory *memory)
{
    uint64_t used;

    pthread_mutex_lock(&memory->lock);
    used = memory->used;
    pthread_mutex_unlock(&memory->lock);
    return used;
}
