/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lstm.h: one LSTM layer over time.
 *
 * A direction walks through its steps with the samples that still have one:
 * they are sorted by length, so these are always the first so many, and a
 * sample that ends is never touched again. For each step the cell reads the
 * previous output where it was stored, in the result if the sequence is
 * wanted, and writes the next one to its place.
 */
#ifndef CELLGATE_OPENMP_LSTM_H
#define CELLGATE_OPENMP_LSTM_H

#include "plugins/openmp/rows.h"
#include "plugins/openmp/segment.h"
#include "plugins/openmp/team.h"

/* Arrays of row pointers, one set a worker; each of `capacity`. */
struct cpu_pointers {
    int64_t capacity;
    const float **in;
    const float **before;
    float **out;
    float **hidden;
    float *staging; /* of results, see dense.h */
};

/* Memory for one direction at a time, for `rows` samples. */
struct cpu_scratch {
    float *c;          /* [rows][c_stride] */
    float *h[2];       /* [rows][output]: outputs of even and odd steps */
    float *hidden;     /* [rows][hidden], before a projection */
    const float *zero; /* [output] */
    float *gates;      /* [gate_rows][gate stride]: input products */
    int64_t gate_rows;
};

/* One layer of one run, for the samples of one lane. */
struct cpu_lstm_run {
    const struct cpu_kernels *kernels;
    const struct cpu_lstm *lstm;
    const struct cpu_lane *lane;
    int64_t batch; /* of the run, for the layout of states */
    struct cpu_source x;
    struct cpu_target y;              /* the sequence */
    struct cpu_target last;           /* a row a sample */
    const cellgate_lstm_state *state; /* of this op */
};

/*
 * Whether the input product of so many samples is computed ahead; then the
 * scratch must hold at least one step of it.
 */
bool cpu_lstm_hoists(const struct cpu_lstm *lstm,
                     const struct cpu_direction *direction, int64_t samples);

/* Runs one direction with all members of `crew`, which share `scratch`. */
void cpu_lstm_direction(const struct cpu_lstm_run *run, int32_t direction,
                        const struct cpu_crew *crew,
                        const struct cpu_scratch *scratch,
                        const struct cpu_pointers *pointers);

#endif /* CELLGATE_OPENMP_LSTM_H */
