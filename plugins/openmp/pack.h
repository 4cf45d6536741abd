/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h: a matrix of weights into panels (levels.h describes them). */
#ifndef CELLGATE_OPENMP_PACK_H
#define CELLGATE_OPENMP_PACK_H

#include "plugins/openmp/arena.h"
#include "plugins/openmp/levels.h"

struct cpu_matrix_source {
    bool gates; /* [depth][4 * columns], the gates side by side */
    int64_t depth;
    int64_t columns;
    const float *weights;
    const float *bias; /* of one row, or NULL */
};

/* How panels are laid out. */
struct cpu_layout {
    int64_t vector; /* floats a vector */
    enum cpu_pack pack;
};

/* Takes memory for the panels from `arena`; fills them if there is any. */
void cpu_matrix_pack(struct cpu_matrix *matrix, struct cpu_arena *arena,
                     const struct cpu_layout *layout,
                     const struct cpu_matrix_source *source);

#endif /* CELLGATE_OPENMP_PACK_H */
