/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of batch and steps that an application asks about. */
#ifndef CELLGATE_RUNTIME_SESSION_EXTENTS_H
#define CELLGATE_RUNTIME_SESSION_EXTENTS_H

#include <stddef.h>
#include <stdint.h>

#include "cellgate/plugin.h"

/* Values of an axis: powers of two of an int32, and an end. */
#define CG_AXIS_MOST 40

/* Fills in what is not given: batch 1 to 64, steps 1 to 128. INVALID: a range
   is empty, or beyond an int32; `doing`: "measure". */
cellgate_status cg_extents_settle(const char *doing, int64_t *batch_least,
                                  int64_t *batch_most, int64_t *steps_least,
                                  int64_t *steps_most, cellgate_error *error);

/* Both ends, and the powers of two between; how many. */
size_t cg_extents_axis(int64_t least, int64_t most,
                       int64_t values[CG_AXIS_MOST]);

#endif
