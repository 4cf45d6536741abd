/* SPDX-License-Identifier: Apache-2.0 */
/* platform.h: the devices of every platform, without a context. */
#ifndef CELLGATE_OPENCL_PLATFORM_H
#define CELLGATE_OPENCL_PLATFORM_H

#include <stdbool.h>

#include "plugins/opencl/api.h"

#define OCL_DEVICES_MAX 64
#define OCL_CPU_RESOURCE "cpu"

/* A device, and what the kernels depend on. */
struct ocl_found {
    cl_platform_id platform;
    cl_device_id id;
    cl_device_type type;
    cellgate_device_description description;
    char lacks[200]; /* "", or why it cannot be used and what to do */

    bool unified;   /* shares the host's memory */
    cl_uint units;  /* compute units */
    cl_uint vector; /* native width for floats, at least 1 */
    size_t group;   /* most work-items of a group, in a row */
    size_t second;  /* most in its second dimension, at least 1 */
    cl_ulong local_memory, memory, largest_buffer;
};

struct ocl_found_list {
    uint32_t count;
    struct ocl_found devices[OCL_DEVICES_MAX];
};

/*
 * Fills *list. NO_DEVICE: no driver, no platform, no device, or none that can
 * be used; the text says which and what to install.
 */
cellgate_status ocl_find_devices(const struct ocl_api *cl,
                                 struct ocl_found_list *list,
                                 cellgate_error *error);

#endif /* CELLGATE_OPENCL_PLATFORM_H */
