/* SPDX-License-Identifier: Apache-2.0 */
/* What a trial is made of. Private to trial*.c. */
#ifndef CELLGATE_RUNTIME_SESSION_TRIAL_STATE_H
#define CELLGATE_RUNTIME_SESSION_TRIAL_STATE_H

#include "runtime/session/arena.h"
#include "runtime/session/trial.h"
#include "runtime/session/worker.h"

struct cg_trial {
    cg_remnant remnant; /* in the pool's list, once it is left behind */
    cg_segment_pool *pool;
    cg_segment *segment;
    int64_t batch, steps;
    double watchdog;
    cg_shape *shapes; /* by value */
    cg_arena memory;  /* what follows is in it: as a request's would be */
    void *x;
    float *y;         /* of sequence or last, whichever the segment gives */
    float *last;      /* of an LSTM that gives both */
    int32_t *lengths; /* NULL: all full */
    cellgate_plan *plan;
    cg_worker *worker; /* NULL: runs are made on the caller */
    bool holds;        /* the segment's engine */
    bool abandoned;    /* a run hangs */
    cellgate_segment_run run;
    cellgate_status status;
    cellgate_error error;
};

cellgate_status cg_trial_no_memory(cellgate_error *error);
/* Of a value's shape; 0 for CG_NO_VALUE. */
int64_t cg_trial_elements(const cg_shape *shapes, int32_t value);
/* Zeros, `count` numbers of four bytes; NULL: no memory, or count < 0. */
void *cg_trial_take(int64_t count);

#endif
