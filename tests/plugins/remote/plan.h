/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: the device memory of a run up to a shape, and the command that a run
 * submits. All of it is allocated when the plan is made.
 */
#ifndef REMOTE_PLAN_H
#define REMOTE_PLAN_H

#include "tests/plugins/remote/weights.h"

/* What one op writes; 0 for what it lacks. Shapes as in kernels.h. */
struct remote_op_buffers {
    remote_handle sequence, last; /* of a Dense: whichever it gives */
    remote_handle h, c;
};

struct cellgate_plan {
    cellgate_device *device;
    cellgate_weights *weights;
    const cellgate_variant *variant;
    int64_t batch, steps;
    remote_handle x, lengths, workspace;
    struct remote_op_buffers *buffers; /* one an op */

    /* The run in progress. */
    atomic_bool busy;
    struct remote_command command;
    const cellgate_segment_run *run;
    uint64_t number; /* of the run, on this device */
    cellgate_status status;
    cellgate_error error;

    struct remote_memory_of_run last; /* with modelled time only */

    bool measured; /* breakdown is that of a run */
    cellgate_breakdown breakdown;
};

/* The operations; see plugin.h. */
cellgate_status remote_plan_create(cellgate_device *device,
                                   cellgate_weights *weights, uint64_t variant,
                                   const cellgate_shape *shape,
                                   cellgate_plan **plan, cellgate_error *error);
void remote_plan_destroy(cellgate_plan *plan);
cellgate_status remote_breakdown(cellgate_plan *plan, cellgate_breakdown *out,
                                 cellgate_error *error);

#endif
