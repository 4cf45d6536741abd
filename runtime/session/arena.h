/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one request at a time: one block, handed out front to back,
 * that only grows. A pass that did not fit has measured what is needed.
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
    size_t used; /* above `capacity`: what would be; SIZE_MAX: more than can be
                    addressed */
} cg_arena;

/* Starts a pass. */
void cg_arena_start(cg_arena *arena);
/* `count` elements of `size` bytes; NULL once the block is used up. */
void *cg_arena_take(cg_arena *arena, int64_t count, size_t size);
/* Whether the pass has got all that it took. */
bool cg_arena_fits(const cg_arena *arena);
/* After one that has not: makes room for it. Contents are lost. */
cellgate_status cg_arena_reserve(cg_arena *arena, cellgate_error *error);
void cg_arena_finish(cg_arena *arena);

#endif
