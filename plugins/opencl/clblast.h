/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clblast.h: CLBlast, where the build knows it and the machine has it. It is
 * opened when a device is that wants it.
 */
#ifndef CELLGATE_OPENCL_CLBLAST_H
#define CELLGATE_OPENCL_CLBLAST_H

#include "plugins/opencl/device.h"

/* y = x * matrix, row-major; strides and places in elements, x dense. */
struct ocl_gemm {
    size_t rows, columns, depth;
    cl_mem x, matrix, y;
    size_t matrix_at, matrix_stride, y_at, y_stride;
};

/*
 * Opens the library for a device, once; close it with ocl_clblast_close().
 * UNSUPPORTED: it is not there, with what to install.
 */
cellgate_status ocl_clblast_open(cellgate_device *device,
                                 cellgate_error *error);
/* Before the context goes. A device that has not opened it is allowed. */
void ocl_clblast_close(cellgate_device *device);

/* Lets it compile all that products of any size need, once a device. */
cellgate_status ocl_clblast_wake(cellgate_device *device,
                                 cellgate_error *error);

/* *event is the last kernel's, or NULL. */
cellgate_status ocl_clblast_enqueue(cellgate_device *device,
                                    cl_command_queue queue,
                                    const struct ocl_gemm *gemm,
                                    cl_event *event, cellgate_error *error);

#endif /* CELLGATE_OPENCL_CLBLAST_H */
