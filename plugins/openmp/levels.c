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
static const struct {
    const struct cpu_kernels *kernels;
    bool (*usable)(void);
} levels[] = {
#ifdef LEVEL_AVX512
    { &cpu_kernels_avx512, has_avx512 },
#endif
#ifdef LEVEL_AVX2
    { &cpu_kernels_avx2, has_avx2 },
#endif
    { &cpu_kernels_scalar, always },
};

const struct cpu_kernels *cpu_level(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if ((strcmp(name, "auto") == 0 ||
             strcmp(name, levels[i].kernels->name) == 0) &&
            levels[i].usable())
            return levels[i].kernels;
    return NULL;
}
