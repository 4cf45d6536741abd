/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The levels that the tests of the kernels go through: those that this machine
 * can run, and, where SIMDe is installed, the NEON one in its instructions.
 */
#ifndef CELLGATE_TESTS_UNIT_OPENMP_LEVELS_H
#define CELLGATE_TESTS_UNIT_OPENMP_LEVELS_H

#include "plugins/openmp/levels.h"

#ifdef NEON_THROUGH_SIMDE
CPU_LEVEL_TABLES(neon);
#endif

/* NULL beyond the last. */
static inline const struct cpu_kernels *level_to_test(size_t index,
                                                      enum cpu_pack pack)
{
#ifdef NEON_THROUGH_SIMDE
    static const struct cpu_kernels *const neon[CPU_PACKS] = {
        &cpu_kernels_neon, &cpu_kernels_neon_f16, &cpu_kernels_neon_int8
    };

    if (index == 0)
        return neon[pack];
    index--;
#endif
    return cpu_level_at(index, pack);
}

static inline void softmax_in_place(const struct cpu_kernels *kernels,
                                    float *row, int64_t count)
{
    float factor = kernels->exponentials(row, count, NULL);

    kernels->scale(row, row, factor, count, false);
}

#define EACH_LEVEL_OF(kernels, pack)                                           \
    for (size_t level_at = 0;                                                  \
         ((kernels) = level_to_test(level_at, (pack))) != NULL; level_at++)

#define EACH_LEVEL(kernels) EACH_LEVEL_OF(kernels, CPU_PACK_F32)

#endif
