/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recurrent ops share: the way of each row through its steps, with a
 * mask of any pattern, from initial states to final ones. Private to
 * runtime/host.
 */
#ifndef CELLGATE_RUNTIME_HOST_SCAN_H
#define CELLGATE_RUNTIME_HOST_SCAN_H

#include "runtime/host/ops.h"

/* One direction of a recurrent node. */
typedef struct cg_host_scan {
    /* Takes one row from one step to the next: from x and `states` to new
       `states`. */
    void (*step)(const void *row, const float *x);
    const void *row;
    double *states[2]; /* h, and c of an LSTM */
    int64_t input_size;
    int32_t direction, directions;
    bool reverse;
    bool zero_masked;
} cg_host_scan;

/* All rows of the call, from the buffers of its inputs to those of its
   outputs. */
void cg_host_scan_rows(const cg_host_call *call, const cg_host_scan *scan);

/* sums += x * weights, `columns` of them. */
static inline void cg_host_add_product(double *sums, const float *weights,
                                       int64_t columns, double x)
{
    for (int64_t k = 0; k < columns; k++)
        sums[k] += x * weights[k];
}

#endif
