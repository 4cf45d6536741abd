/* SPDX-License-Identifier: Apache-2.0 */
/* dense.h: stages that work on each row by itself. */
#ifndef CELLGATE_OPENMP_DENSE_H
#define CELLGATE_OPENMP_DENSE_H

#include "plugins/openmp/lstm.h"

/*
 * Rows that go through the product together, at most, so that each weight read
 * serves them all while their results are still in the cache when they are
 * finished.
 */
#define CPU_DENSE_BLOCK 48

/*
 * A result of STREAM_BYTES or more ends in memory and not in a cache. Its rows
 * are finished in memory of the worker's own that stays in the level-2 cache,
 * and go from there past the caches, which saves reading what they overwrite.
 * Returns how many rows at a time; 0: they are made where they belong. That is
 * also where so few would fit that the weights were read again and again.
 */
int64_t cpu_dense_staging(const struct cpu_kernels *kernels,
                          const struct cpu_stage *stage, int64_t batch,
                          int64_t steps);

/* One stage of one run, for the samples of one lane. */
struct cpu_dense_run {
    const struct cpu_kernels *kernels;
    const struct cpu_stage *stage;
    const struct cpu_lane *lane;
    int64_t steps; /* of this stage: 1 for a row a sample */
    struct cpu_source x;
    struct cpu_target y;
    int64_t staging_rows; /* of cpu_dense_staging(), for this run */
};

/* Makes the stage's rows (not for an LSTM) and finishes them. */
void cpu_dense_rows(const struct cpu_dense_run *run,
                    const struct cpu_crew *crew,
                    const struct cpu_pointers *pointers);

/* Only finishes the rows that y holds. */
void cpu_finish_rows(const struct cpu_dense_run *run,
                     const struct cpu_crew *crew);

#endif /* CELLGATE_OPENMP_DENSE_H */
