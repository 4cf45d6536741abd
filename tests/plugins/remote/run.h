/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run: checked on the caller's thread, then executed on a device thread:
 * upload, compute, download, and at the very end the new resident state.
 */
#ifndef REMOTE_RUN_H
#define REMOTE_RUN_H

#include "tests/plugins/remote/plan.h"

/* The operation; see plugin.h. */
cellgate_status remote_run(cellgate_plan *plan, const cellgate_segment_run *run,
                           cellgate_error *error);

/*
 * That a run is one of this plan, with every buffer it needs: OK, INVALID,
 * UNSUPPORTED for a field that is newer than the plugin, or DEVICE_FAILED
 * where require_pinned finds ordinary memory. `run` is of the plugin's size.
 */
cellgate_status remote_check_run(const cellgate_plan *plan,
                                 const cellgate_segment_run *run,
                                 cellgate_error *error);

/* Launches the kernels of every op, and lets faults strike. */
cellgate_status remote_compute(cellgate_plan *plan, cellgate_error *error);

/* Executes the run that a plan holds; its argument is the plan. */
void remote_execute(void *plan);

#endif
