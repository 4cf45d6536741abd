/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/resident.h"
#include "tests/plugins/remote/run.h"

static cellgate_status submit(cellgate_plan *plan,
                              const cellgate_segment_run *run,
                              cellgate_error *error)
{
    plan->run = run;
    plan->number = atomic_fetch_add(&plan->device->faults.runs, 1) + 1;
    plan->command.execute = remote_execute;
    plan->command.argument = plan;
    remote_queue_execute(&plan->device->queue, &plan->command);
    plan->run = NULL;
    if (plan->status == CELLGATE_OK) {
        plan->measured = true;
        return CELLGATE_OK;
    }
    cellgate_struct_copy(error, &plan->error);
    return plan->status;
}

/* With the plan the caller's own. */
static cellgate_status run_alone(cellgate_plan *plan,
                                 const cellgate_segment_run *run,
                                 cellgate_error *error)
{
    cellgate_status status;

    if (run->resident == NULL)
        return submit(plan, run, error);
    if (atomic_exchange(&run->resident->busy, true))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the resident state is in use by another run");
    status = submit(plan, run, error);
    atomic_store(&run->resident->busy, false);
    return status;
}

cellgate_status remote_run(cellgate_plan *plan, const cellgate_segment_run *run,
                           cellgate_error *error)
{
    cellgate_segment_run copy = { .struct_size = sizeof copy };
    cellgate_status status = remote_device_check(plan->device, error);

    if (status != CELLGATE_OK)
        return status;
    if (!cellgate_struct_known(run, sizeof copy))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the run has a field that is newer than this "
                               "plugin");
    cellgate_struct_copy(&copy, run);
    status = remote_check_batch(plan->device, copy.batch, error);
    if (status == CELLGATE_OK)
        status = remote_check_run(plan, &copy, error);
    if (status != CELLGATE_OK)
        return status;
    if (atomic_exchange(&plan->busy, true))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the plan is running on another thread");
    status = run_alone(plan, &copy, error);
    atomic_store(&plan->busy, false);
    return status;
}
