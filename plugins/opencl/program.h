/* SPDX-License-Identifier: Apache-2.0 */
/* program.h: the kernels' programs, compiled once a device and options. */
#ifndef CELLGATE_OPENCL_PROGRAM_H
#define CELLGATE_OPENCL_PROGRAM_H

#include "plugins/opencl/device.h"

/* The kernel source, one text a program; made of the .cl files by the build. */
extern const char ocl_source_rows[];
extern const char ocl_source_lstm[];

/* What a program is compiled for. */
struct ocl_build {
    bool half; /* the matrices */
    bool lstm; /* it is lstm.cl, and what follows counts; else rows.cl */
    bool fused, project, usual;
    uint32_t rows;
};

/*
 * The program, which the device owns; compiled, or taken from the cache, when
 * it is asked for the first time.
 */
cellgate_status ocl_program_get(cellgate_device *device,
                                const struct ocl_build *build,
                                cl_program *program, cellgate_error *error);

/* A kernel of a plan's own: arguments are kept in it. */
cellgate_status ocl_kernel_create(cellgate_device *device, cl_program program,
                                  const char *name, cl_kernel *kernel,
                                  cellgate_error *error);

/* Releases every program of the device. */
void ocl_programs_free(cellgate_device *device);

#endif /* CELLGATE_OPENCL_PROGRAM_H */
