/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: the memory of a run, and how its work is dealt out.
 *
 * The variant for one thread computes on the caller. The wide variant gives
 * each member of the team its own samples, which it takes through all stages
 * without waiting for anyone, if there are enough samples; else the members
 * share each stage: the two directions of an LSTM, then its units, with one
 * barrier a step, or the rows of a dense layer.
 */
#ifndef CELLGATE_OPENMP_PLAN_H
#define CELLGATE_OPENMP_PLAN_H

#include "plugins/openmp/lstm.h"

/*
 * Reads a shape of the host's version. Refuses shapes that are too large or
 * newer than this plugin.
 */
cellgate_status cpu_shape_read(const cellgate_shape *given,
                               cellgate_shape *shape, cellgate_error *error);

/* These are the table's operations of the same name. */
cellgate_status cpu_support(cellgate_device *device,
                            const cellgate_segment *segment,
                            const cellgate_shape *shape, uint32_t index,
                            cellgate_variant *variant, cellgate_error *error);
cellgate_status cpu_plan_create(cellgate_device *device,
                                cellgate_weights *weights, uint64_t variant,
                                const cellgate_shape *shape,
                                cellgate_plan **plan, cellgate_error *error);
void cpu_plan_destroy(cellgate_plan *plan);
cellgate_status cpu_run(cellgate_plan *plan, const cellgate_segment_run *run,
                        cellgate_error *error);

#endif /* CELLGATE_OPENMP_PLAN_H */
