/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/openmp/levels.h"

static bool always(void)
{
    return true;
}

#ifdef LEVEL_AVX2
/* The compiler's check includes that the system saves the wide registers. */
static bool has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

#ifdef LEVEL_AVX512
static bool has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f");
}
#endif

/* Best first. */
static const struct level {
    const struct cpu_kernels *kernels;
    bool (*usable)(void);
    bool proved; /* its tests have passed on a real processor */
} levels[] = {
#ifdef LEVEL_AVX512
    { &cpu_kernels_avx512, has_avx512, true },
#endif
#ifdef LEVEL_AVX2
    { &cpu_kernels_avx2, has_avx2, true },
#endif
#ifdef LEVEL_NEON /* part of every aarch64 */
    { &cpu_kernels_neon, always, false },
#endif
    { &cpu_kernels_scalar, always, true },
};
#define LEVELS (sizeof levels / sizeof levels[0])

static bool is_meant(const struct level *level, const char *name)
{
    return strcmp(name, "auto") == 0 ? level->proved
                                     : strcmp(name, level->kernels->name) == 0;
}

const struct cpu_kernels *cpu_level(const char *name)
{
    size_t i;

    for (i = 0; i < LEVELS; i++)
        if (is_meant(&levels[i], name) && levels[i].usable())
            return levels[i].kernels;
    return NULL;
}

const struct cpu_kernels *cpu_level_at(size_t index)
{
    size_t i;

    for (i = 0; i < LEVELS; i++)
        if (levels[i].usable() && index-- == 0)
            return levels[i].kernels;
    return NULL;
}

const struct cpu_kernels *cpu_level_unproved(void)
{
    size_t i;

    for (i = 0; i < LEVELS; i++)
        if (!levels[i].proved && levels[i].usable())
            return levels[i].kernels;
    return NULL;
}
