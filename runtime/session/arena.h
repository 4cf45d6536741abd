/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one request at a time: one block, handed out front to back,
 * that only grows. A first pass without memory measures, a second one places.
 */
#ifndef CELLGATE_RUNTIME_SESSION_ARENA_H
#define CELLGATE_RUNTIME_SESSION_ARENA_H

#include "runtime/session/segment.h"

#define CG_ARENA_ALIGNMENT 64

typedef struct cg_arena {
    const cg_engine *pinned; /* memory comes from its host_allocate(), as long
                                as it has some; or NULL */
    bool base_pinned;        /* it came from there */
    char *base;
    size_t capacity;
    size_t used; /* SIZE_MAX: the sizes do not fit in memory */
    bool measuring;
} cg_arena;

/* Starts a pass. */
void cg_arena_start(cg_arena *arena, bool measuring);
/* `count` elements of `size` bytes; NULL while measuring. */
void *cg_arena_take(cg_arena *arena, int64_t count, size_t size);
/* After measuring: makes room for it. Contents are lost. */
cellgate_status cg_arena_reserve(cg_arena *arena, cellgate_error *error);
void cg_arena_finish(cg_arena *arena);

#endif
