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

/*
 * What a library's failure may have left on the current device, which is asked
 * for it: the library has a runtime of its own, and cudaGetLastError() knows
 * the calls of one. An error that stays is the answer to every call. It waits
 * for nothing, so what the device has not said yet is for
 * cudaStreamSynchronize().
 */
cudaError_t cud_behind(void);

#endif /* CELLGATE_CUDA_STATUS_H */
