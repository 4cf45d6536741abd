/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: every op of cellgate/plugin.h in double precision, as plain loops
 * written from the formulas in plugin.h and types.h. It shares no code with
 * the runtime or with any plugin; those are tested against it.
 *
 * It takes the same structs for a segment as a plugin, and dense arrays for
 * data. It can also disturb its own arithmetic (oracle_noise), which tells how
 * far a correct computation of a given precision may be from the exact result.
 */
#ifndef TESTS_ORACLE_ORACLE_H
#define TESTS_ORACLE_ORACLE_H

#include <stdint.h>

#include "cellgate/plugin.h"

/*
 * Disturbances, each drawn uniformly in [-size, size]:
 *
 *   operand  relative, of each weight (once a run) and of each factor that
 *            meets it (at each step). This is the backward error of a product:
 *            a rounded inner product of n terms is the exact one of factors
 *            disturbed by at most n u, typically sqrt(n) u (Higham, Accuracy
 *            and Stability, 3.1; Higham & Mary 2019).
 *   result   of each activation and each elementwise step of the cell, as a
 *            share of the values that entered it.
 */
typedef struct oracle_noise {
    uint64_t seed;
    double operand;
    double result;
    /* Non-zero: `operand` is a share of the largest magnitude of the whole
     * matrix or vector, as in linear quantization. */
    int32_t of_largest;
} oracle_noise;

/* State of one LSTM op, in the layout of cellgate_lstm_state. */
typedef struct oracle_state {
    const float *h0; /* NULL: zeros */
    const float *c0; /* NULL: zeros */
    double *h;       /* [directions][batch][R], or NULL: not wanted */
    double *c;       /* [directions][batch][H], or NULL: not wanted */
} oracle_state;

/* What happened while one row of the batch was computed. */
typedef struct oracle_row {
    /* The largest magnitude of any intermediate value; NaN doesn't count. */
    double largest;
    /* The smallest distance of an activation's argument from a point where
     * that activation jumps; INFINITY when it has none. */
    double nearest_jump;
} oracle_row;

/* One run. All memory is the caller's. */
typedef struct oracle_run {
    int64_t batch;
    int64_t steps;
    /* Non-zero: the first op takes one row a sample, x is [batch][features]. */
    int32_t takes_rows;
    const float *x;         /* [batch][steps][features]; or NULL and ... */
    const int32_t *ids;     /* [batch][steps], for an embedding */
    const int32_t *lengths; /* [batch], or NULL: all are `steps` */
    double *y;              /* [batch][steps][features], or NULL: not wanted */
    double *y_last;         /* [batch][features], or NULL: not wanted */
    const oracle_state *states; /* [op_count], or NULL: all zero */
    oracle_row *rows;           /* [batch], written; or NULL */
    const oracle_noise *noise;  /* NULL: exact */
} oracle_run;

/*
 * Runs a segment. Returns 0, or -1 when the chain makes no sense (the sizes of
 * neighbours differ, an embedding isn't first, an LSTM follows rows) or memory
 * runs out.
 */
int oracle_segment_run(const cellgate_segment *segment, const oracle_run *run);

/*
 * What a segment's last op gives: features a step or a row. Either may be NULL.
 */
void oracle_output_size(const cellgate_segment *segment, int64_t *features,
                        int32_t *has_sequence, int32_t *has_row);

/* An activation; NaN gives NaN. An unknown kind gives NaN too. */
double oracle_activate(const cellgate_activation *activation, double x);

/* The distance of x from the nearest point where the activation jumps. */
double oracle_jump_distance(const cellgate_activation *activation, double x);

/*
 * The magnitudes that enter the activation's value in float32, to which its
 * rounding errors are proportional: at least |f(x)|.
 */
double oracle_activation_scale(const cellgate_activation *activation, double x,
                               double value);

#endif
