/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The levels that the tests of the kernels go through: those that this machine
 * can run, and, where SIMDe is installed, the NEON one in its instructions.
 */
#ifndef CELLGATE_TESTS_UNIT_OPENMP_LEVELS_H
#define CELLGATE_TESTS_UNIT_OPENMP_LEVELS_H

#include "plugins/openmp/levels.h"

#ifdef NEON_THROUGH_SIMDE
extern const struct cpu_kernels cpu_kernels_neon;
#endif

/* NULL beyond the last. */
static inline const struct cpu_kernels *level_to_test(size_t index)
{
#ifdef NEON_THROUGH_SIMDE
    if (index == 0)
        return &cpu_kernels_neon;
    index--;
#endif
    return cpu_level_at(index);
}

#define EACH_LEVEL(kernels)                                                    \
    for (size_t level_at = 0; ((kernels) = level_to_test(level_at)) != NULL;   \
         level_at++)

#endif
