/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the stand-in card: a pool of its own, reached by handles.
 *
 * A handle is no host pointer: it names a block and the block's generation, so
 * that a handle kept after its block was freed is recognised even when the
 * bytes belong to somebody else by then. Kernels and copies map a handle to a
 * view, and reach into a view only through remote_at(), which knows the block's
 * exact length. An access that is wrong fails the operation that made it, and
 * is logged as an error; it never ends the process.
 *
 * Fresh and freed blocks are filled with bytes that read as NaN in float32 and
 * bfloat16, so a kernel that reads what nobody wrote cannot look right.
 *
 * All functions may be called from any thread.
 */
#ifndef REMOTE_DEVICE_MEMORY_H
#define REMOTE_DEVICE_MEMORY_H

#include <pthread.h>

#include "cellgate/plugin.h"

/* 0 is no block. */
typedef uint64_t remote_handle;

/* Blocks begin at multiples of this and are accounted in multiples of it. */
#define REMOTE_GRANULE 256u

/* The vendor code of an access outside live device memory. */
#define REMOTE_CODE_ADDRESS 700

struct remote_block;

struct remote_memory {
    const cellgate_host *host;
    pthread_mutex_t lock;
    unsigned char *pool;
    size_t size;
    size_t used; /* bytes in live blocks, in whole granules */
    struct remote_block *blocks;
    uint32_t block_count, block_capacity;
    uint32_t first; /* live block with the lowest address, plus 1; 0 none */
};

/* A mapped block: what a copy or a kernel works on. */
struct remote_view {
    unsigned char *base;
    size_t bytes; /* as asked for, not rounded */
    remote_handle handle;
};

/* NO_MEMORY: the host cannot supply the pool. */
cellgate_status remote_memory_init(struct remote_memory *memory, size_t size,
                                   const cellgate_host *host,
                                   cellgate_error *error);
/* Logs an error for blocks that are still there. */
void remote_memory_finish(struct remote_memory *memory);

/* DEVICE_MEMORY: no gap is large enough. `bytes` may be 0. */
cellgate_status remote_allocate(struct remote_memory *memory, size_t bytes,
                                remote_handle *handle, cellgate_error *error);
/*
 * Frees and zeroes *handle. Handle 0 is allowed. A stale handle is logged. A
 * block that is mapped is logged too, and goes when it is unmapped.
 */
void remote_free(struct remote_memory *memory, remote_handle *handle);

/* DEVICE_FAILED: the handle is stale or was never given. */
cellgate_status remote_map(struct remote_memory *memory, remote_handle handle,
                           struct remote_view *view, cellgate_error *error);
void remote_unmap(struct remote_memory *memory, struct remote_view *view);

/*
 * Maps handles[0..count), all or none; handle 0 gives an empty view, in which
 * every access is outside.
 */
cellgate_status remote_map_all(struct remote_memory *memory,
                               const remote_handle *handles, uint32_t count,
                               struct remote_view *views,
                               cellgate_error *error);
void remote_unmap_all(struct remote_memory *memory, uint32_t count,
                      struct remote_view *views);

/*
 * Address of the `bytes` at `offset` in a view, NULL if any of them lies
 * outside; the caller then fails with remote_outside().
 */
void *remote_at(const struct remote_view *view, size_t offset, size_t bytes);
/* Logs the access and returns DEVICE_FAILED. `who` names what made it. */
cellgate_status remote_outside(struct remote_memory *memory,
                               const struct remote_view *view, const char *who,
                               cellgate_error *error);

/* Bytes in live blocks. */
uint64_t remote_memory_used(struct remote_memory *memory);

#endif
