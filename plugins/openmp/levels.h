/* SPDX-License-Identifier: Apache-2.0 */
/*
 * levels.h: the table of kernels, and the instruction sets that fill it.
 *
 * A level is one instruction set. Each has a small header that names its
 * vector (vec_<level>.h) and one source file (kernels_<level>.c) that compiles
 * kernels.h, the mathematics common to all levels, with that vector and with
 * flags of its own. Nothing else in the plugin depends on an instruction set:
 * the rest sees struct cpu_kernels.
 *
 * A level's kernels are compiled once for each type of weights (narrow.h):
 * kernels_<level>.c for float32, kernels_<level>_f16.c, kernels_<level>_int8.c.
 *
 * A new level is a vec_ header, these files, a CELLGATE_LEVEL line in
 * configure.ac and a row in levels.c.
 */
#ifndef CELLGATE_OPENMP_LEVELS_H
#define CELLGATE_OPENMP_LEVELS_H

#include <stdbool.h>

#include "cellgate/types.h"
#include "plugins/openmp/narrow.h"

/*
 * A matrix of weights, [depth][columns] before packing. With v the level's
 * vector width, it lies in panels of 4v columns, each panel contiguous:
 * [panel_count][depth][4][v], columns beyond the last one zero.
 *
 * In an LSTM's matrix, the four vectors of a panel are the gates i, f, c, o of
 * the same v units, and panel_count covers the hidden size. In any other, they
 * are 4v neighbouring columns.
 *
 * An int8 weight stands for itself times its column's scale.
 */
struct cpu_matrix {
    const void *panels;  /* of the kernels' type of weights */
    const float *bias;   /* [panel_count][4][v]; zeros when there is none */
    const float *scales; /* [panel_count][2][4][v]: the columns' scales, and
                            what they are the reciprocals of; NULL but for
                            int8 */
    int64_t depth;
    int64_t columns; /* of an LSTM's matrix: the hidden size */
    int64_t panel_count;
};

/* out[r] = bias + in[r] * matrix, over a range of panels. */
struct cpu_product {
    const struct cpu_matrix *matrix;
    const float *const *in; /* [rows], each of `depth` */
    float *const *out;      /* [rows], each of `columns` */
    int64_t columns;        /* stored; an LSTM's gates are stored padded */
    int64_t rows;
    int64_t first_panel;
    int64_t end_panel;
    float *largest; /* [rows][v], begun by the caller: the larger of these and
                       a row's results, in some lane; NULL: not wanted */
};

/* What the cell computes beside the products; see cellgate_lstm. */
struct cpu_cell {
    cellgate_activation activations[3]; /* gate, cell, hidden */
    const float *peepholes;             /* [panel][3][v], or NULL */
    float clip;                         /* 0: none */
    bool coupled;
    bool standard; /* sigmoid, tanh, tanh and none of the above */
};

/*
 * One step of one direction over a range of panels (units) and `rows` rows:
 * products, activations and the update of c, fused. h is read whole and out is
 * written in the range, so the two must be different memory.
 */
struct cpu_step {
    const struct cpu_cell *cell;
    const struct cpu_matrix *kernel;    /* carries the bias */
    const struct cpu_matrix *recurrent; /* its bias is not read */
    const float *const *x; /* [rows]; NULL: the input product is in gates */
    float *gates; /* [rows][gates_stride], like rows of panels; overwritten */
    int64_t gates_stride;
    const float *const *h; /* [rows], each of recurrent->depth */
    float *c;              /* [rows][c_stride], padded to whole vectors */
    int64_t c_stride;
    float *const *out; /* [rows], each of the hidden size */
    int64_t rows;
    int64_t first_panel;
    int64_t end_panel;
    bool descending; /* panels from the last one down */
};

/* The most floats of a vector of any level. */
#define CPU_VECTOR 16

struct cpu_kernels {
    const char *name; /* as the key `level` spells it */
    enum cpu_pack pack;
    int64_t vector; /* v: floats a vector */
    int64_t tile;   /* rows computed together */
    void (*product)(const struct cpu_product *product);
    void (*step)(const struct cpu_step *step);
    /* y[i] = activation(x[i]); x and y may be the same memory. */
    void (*activate)(const cellgate_activation *activation, const float *x,
                     float *y, int64_t count);
    /*
     * row[i] = e^(row[i] - the largest), in place; returns the reciprocal of
     * their sum. `largest` has the row's among its v lanes (cpu_product's);
     * NULL: it is looked for.
     */
    float (*exponentials)(float *row, int64_t count, const float *largest);
    /*
     * to[i] = from[i] * factor; both may be the same memory. Past the caches,
     * it is ordered before all that the caller writes later.
     */
    void (*scale)(float *to, const float *from, float factor, int64_t count,
                  bool past_caches);
};

/* Every built level's table; kernels_<level>.c. */
#define CPU_LEVEL_TABLES(level)                                                \
    extern const struct cpu_kernels cpu_kernels_##level,                       \
        cpu_kernels_##level##_f16, cpu_kernels_##level##_int8

CPU_LEVEL_TABLES(scalar);
#ifdef LEVEL_AVX2
CPU_LEVEL_TABLES(avx2);
#endif
#ifdef LEVEL_AVX512
CPU_LEVEL_TABLES(avx512);
#endif
#ifdef LEVEL_NEON
CPU_LEVEL_TABLES(neon);
#endif

/* The values of the key `level`: "auto|scalar|..." with every known level. */
#define CPU_LEVEL_CHOICES "auto|scalar|avx2|avx512|neon"

/*
 * The kernels for a value of the key `level`; "auto" is the best level that
 * this machine and its operating system can run, among those that have passed
 * the tests on a real processor. NULL: not built, or not usable here.
 */
const struct cpu_kernels *cpu_level(const char *name, enum cpu_pack pack);

/* Number `index` of the levels that are usable here, best first; NULL beyond
   the last. */
const struct cpu_kernels *cpu_level_at(size_t index, enum cpu_pack pack);

/* A level (its float32 kernels) that is usable here and that "auto" does not
   take, since it has only run under emulation so far; NULL: there is none. */
const struct cpu_kernels *cpu_level_unproved(void);

#endif /* CELLGATE_OPENMP_LEVELS_H */
