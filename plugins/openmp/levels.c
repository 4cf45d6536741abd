/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>
#ifdef LEVEL_AVX2
#include <cpuid.h>
#endif

#include "plugins/openmp/levels.h"

static bool always(void)
{
    return true;
}

#ifdef LEVEL_AVX2
/* Of which not every compiler's check knows the name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* The compiler's check includes that the system saves the wide registers. */
static bool has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           has_f16c();
}
#endif

#ifdef LEVEL_AVX512
static bool has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq");
}
#endif

#define TABLES(level)                                                          \
    {                                                                          \
        &cpu_kernels_##level, &cpu_kernels_##level##_f16,                      \
            &cpu_kernels_##level##_int8                                        \
    }

/* Best first. */
static const struct level {
    const struct cpu_kernels *kernels[CPU_PACKS];
    bool (*usable)(void);
    bool proved; /* its tests have passed on a real processor */
} levels[] = {
#ifdef LEVEL_AVX512
    { TABLES(avx512), has_avx512, true },
#endif
#ifdef LEVEL_AVX2
    { TABLES(avx2), has_avx2, true },
#endif
#ifdef LEVEL_NEON /* part of every aarch64 */
    { TABLES(neon), always, false },
#endif
    { TABLES(scalar), always, true },
};
#define LEVELS (sizeof levels / sizeof levels[0])

static bool is_meant(const struct level *level, const char *name)
{
    return strcmp(name, "auto") == 0
               ? level->proved
               : strcmp(name, level->kernels[0]->name) == 0;
}

const struct cpu_kernels *cpu_level(const char *name, enum cpu_pack pack)
{
    size_t i;

    for (i = 0; i < LEVELS; i++)
        if (is_meant(&levels[i], name) && levels[i].usable())
            return levels[i].kernels[pack];
    return NULL;
}

const struct cpu_kernels *cpu_level_at(size_t index, enum cpu_pack pack)
{
    size_t i;

    for (i = 0; i < LEVELS; i++)
        if (levels[i].usable() && index-- == 0)
            return levels[i].kernels[pack];
    return NULL;
}

const struct cpu_kernels *cpu_level_unproved(void)
{
    size_t i;

    for (i = 0; i < LEVELS; i++)
        if (!levels[i].proved && levels[i].usable())
            return levels[i].kernels[CPU_PACK_F32];
    return NULL;
}
