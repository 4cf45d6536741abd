/* SPDX-License-Identifier: Apache-2.0 */
/* dense.h: stages that work on each row by itself. */
#ifndef CELLGATE_OPENMP_DENSE_H
#define CELLGATE_OPENMP_DENSE_H

#include "plugins/openmp/lstm.h"

/* One stage of one run, for the samples of one lane. */
struct cpu_dense_run {
    const struct cpu_kernels *kernels;
    const struct cpu_stage *stage;
    const struct cpu_lane *lane;
    int64_t steps; /* of this stage: 1 for a row a sample */
    struct cpu_source x;
    struct cpu_target y;
};

/* Makes the stage's rows (not for an LSTM) and finishes them. */
void cpu_dense_rows(const struct cpu_dense_run *run,
                    const struct cpu_crew *crew,
                    const struct cpu_pointers *pointers);

/* Only finishes the rows that y holds. */
void cpu_finish_rows(const struct cpu_dense_run *run,
                     const struct cpu_crew *crew);

#endif /* CELLGATE_OPENMP_DENSE_H */
