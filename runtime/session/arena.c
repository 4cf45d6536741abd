/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/arena.h"

void cg_arena_start(cg_arena *arena)
{
    arena->used = 0;
}

bool cg_arena_fits(const cg_arena *arena)
{
    return arena->used <= arena->capacity;
}

void *cg_arena_take(cg_arena *arena, int64_t count, size_t size)
{
    const size_t mask = CG_ARENA_ALIGNMENT - 1;
    size_t at = arena->used, bytes;

    if (at == SIZE_MAX || count < 0 ||
        __builtin_mul_overflow((size_t)count, size, &bytes) ||
        bytes > SIZE_MAX / 2 - mask || at > SIZE_MAX / 2 - bytes) {
        arena->used = SIZE_MAX;
        return NULL;
    }
    /* Even nothing gets an address of its own: NULL means absent. */
    bytes = ((bytes > 0 ? bytes : 1) + mask) & ~mask;
    arena->used = at + bytes;
    return cg_arena_fits(arena) ? arena->base + at : NULL;
}

static void arena_release(cg_arena *arena)
{
    if (arena->base_pinned)
        arena->pinned->ops->host_release(arena->pinned->handle, arena->base);
    else
        free(arena->base);
    arena->base = NULL;
    arena->base_pinned = false;
    arena->capacity = 0;
}

/* Pinned memory is scarce (RLIMIT_MEMLOCK, drivers): slower does as well. */
static void arena_allocate(cg_arena *arena, size_t size)
{
    const cg_engine *engine = arena->pinned;
    void *memory = NULL;

    if (engine != NULL)
        memory = engine->ops->host_allocate(engine->handle, size);
    arena->base_pinned = memory != NULL;
    if (memory == NULL &&
        posix_memalign(&memory, CG_ARENA_ALIGNMENT, size) != 0)
        memory = NULL;
    arena->base = memory;
}

cellgate_status cg_arena_reserve(cg_arena *arena, cellgate_error *error)
{
    size_t size = arena->used;

    if (size == SIZE_MAX)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "the request's intermediate results do not fit "
                             "in memory; use a smaller batch or fewer steps");
    if (cg_arena_fits(arena))
        return CELLGATE_OK;
    arena_release(arena);
    arena_allocate(arena, size);
    if (arena->base == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for %zu bytes of intermediate results; "
                             "use a smaller batch or fewer steps",
                             size);
    arena->capacity = size;
    return CELLGATE_OK;
}

void cg_arena_finish(cg_arena *arena)
{
    arena_release(arena);
}
