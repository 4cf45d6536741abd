/* SPDX-License-Identifier: Apache-2.0 */
/* status.h: what the CUDA runtime's codes come to. */
#ifndef CELLGATE_CUDA_STATUS_H
#define CELLGATE_CUDA_STATUS_H

#include <stdbool.h>

#include <cuda_runtime_api.h>

#include "cellgate/plugin.h"

/* The status of a code other than cudaSuccess. DEVICE_LOST: the error stays, so
   every later call on the device answers with it. */
cellgate_status cud_status_of(cudaError_t code);

/*
 * Fills *error from a code other than cudaSuccess that `function` returned
 * while `doing` (for people), makes the runtime forget it if it can, and
 * returns the status that it comes to.
 */
cellgate_status cud_fail(cellgate_error *error, cudaError_t code,
                         const char *function, const char *doing);

#endif /* CELLGATE_CUDA_STATUS_H */
