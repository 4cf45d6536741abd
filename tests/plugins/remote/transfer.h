/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus: copies between host memory and device memory, the only code of the
 * stand-in that touches both. Device arrays are dense. DEVICE_FAILED: the
 * device side of a copy is not live memory of that length.
 */
#ifndef REMOTE_TRANSFER_H
#define REMOTE_TRANSFER_H

#include "tests/plugins/remote/device_memory.h"

cellgate_status remote_upload(struct remote_memory *memory,
                              remote_handle handle, const void *host,
                              size_t bytes, cellgate_error *error);
cellgate_status remote_download(struct remote_memory *memory,
                                remote_handle handle, void *host, size_t bytes,
                                cellgate_error *error);

/* float32 from the host, rounded to bfloat16 on the way. */
cellgate_status remote_upload_bf16(struct remote_memory *memory,
                                   remote_handle handle, const float *host,
                                   size_t count, cellgate_error *error);

/* [batch][steps][features] on the device, any strides on the host. */
cellgate_status remote_upload_sequence(struct remote_memory *memory,
                                       remote_handle handle,
                                       const cellgate_sequence *host,
                                       int64_t batch, int64_t steps,
                                       int64_t features, cellgate_error *error);
cellgate_status remote_download_sequence(struct remote_memory *memory,
                                         remote_handle handle,
                                         const cellgate_sequence *host,
                                         int64_t batch, int64_t steps,
                                         int64_t features,
                                         cellgate_error *error);

/* Inside the device. */
cellgate_status remote_copy(struct remote_memory *memory, remote_handle to,
                            remote_handle from, size_t bytes,
                            cellgate_error *error);
cellgate_status remote_zero(struct remote_memory *memory, remote_handle handle,
                            size_t bytes, cellgate_error *error);

#endif
