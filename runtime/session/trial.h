/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial: one segment at one shape over made-up inputs, to be timed and to be
 * checked against the host ops. It goes the way of a request's segment: the
 * same plan, threads and worker, from host memory to host memory.
 */
#ifndef CELLGATE_RUNTIME_SESSION_TRIAL_H
#define CELLGATE_RUNTIME_SESSION_TRIAL_H

#include "runtime/session/pool.h"

typedef struct cg_trial cg_trial;

/*
 * Prepares the weights and plans the run. `ragged`: rows of several lengths,
 * none among them, where the model has masks. UNSUPPORTED: the device does not
 * take this shape. NO_MEMORY, DEVICE_MEMORY: it is too large. `watchdog`:
 * seconds a run may take on a device beside the CPU, 0 for no limit. The pool
 * must outlive it.
 */
cellgate_status cg_trial_create(cg_segment_pool *pool, cg_segment *segment,
                                int64_t batch, int64_t steps, bool ragged,
                                double watchdog, cg_trial **trial,
                                cellgate_error *error);
/* Whether its rows have several lengths. */
bool cg_trial_is_ragged(const cg_trial *trial);
/* NULL is allowed. What is of a device on which a run hangs is left behind in
   the pool: freeing it may hang as well. */
void cg_trial_destroy(cg_trial *trial);

/* One run; a cg_subject's function, its context is the trial. TIMEOUT: it
   hangs, and the device is out of service now. Nothing runs on a device that
   is. */
cellgate_status cg_trial_run(void *trial, cellgate_error *error);

/*
 * Runs once and compares with the host ops: *worst is the largest difference
 * relative to the largest magnitude, and *right whether that is within the
 * tolerance of the variant's numeric class.
 */
cellgate_status cg_trial_check(cg_trial *trial, bool *right, double *worst,
                               cellgate_error *error);

/* Bytes that the inputs and outputs of a trial take; -1: too many to count. */
int64_t cg_trial_bytes(const cg_segment_pool *pool, const cg_segment *segment,
                       int64_t batch, int64_t steps);

#endif
