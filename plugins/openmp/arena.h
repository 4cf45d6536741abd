/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h: many arrays in one allocation. A layout function takes its arrays
 * from an arena, twice: first from one without memory, which only adds up the
 * size, then from one with memory of that size.
 */
#ifndef CELLGATE_OPENMP_ARENA_H
#define CELLGATE_OPENMP_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_ALIGNMENT 64u

struct cpu_arena {
    char *base; /* aligned to CPU_ALIGNMENT; NULL while measuring */
    size_t used;
    bool overflow; /* the sizes do not fit in size_t */
};

/* `count` elements of `size` bytes, aligned; NULL while measuring. */
static inline void *cpu_arena_take(struct cpu_arena *arena, int64_t count,
                                   size_t size)
{
    size_t at = arena->used, bytes, end;

    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) ||
        __builtin_add_overflow(bytes, CPU_ALIGNMENT - 1, &bytes) ||
        __builtin_add_overflow(at, bytes & ~(size_t)(CPU_ALIGNMENT - 1),
                               &end)) {
        arena->overflow = true;
        return NULL;
    }
    arena->used = end;
    return arena->base ? arena->base + at : NULL;
}

#endif /* CELLGATE_OPENMP_ARENA_H */
