/* SPDX-License-Identifier: Apache-2.0 */
/* pinned.h: memory of host_allocate(), and what a run does with it. */
#ifndef CELLGATE_OPENCL_PINNED_H
#define CELLGATE_OPENCL_PINNED_H

#include "plugins/opencl/device.h"

struct ocl_pinned {
    struct ocl_pinned *next;
    cl_mem buffer;
    void *mapped; /* where it is mapped */
    void *memory; /* what is handed out: the same, or a little further */
    size_t size;  /* of the buffer */
    void *own; /* the same, where the device works on it as it is; else NULL */
    const void *owner; /* the run that the device has it for, or NULL */
};

/*
 * What holds `size` bytes from `memory` on, for one owner until it lets go; it
 * may claim it again. NULL: they are of other memory, which the device does not
 * share, or another owner has it.
 */
struct ocl_pinned *ocl_pinned_claim(cellgate_device *device, const void *owner,
                                    const void *memory, size_t size);
void ocl_pinned_let_go(cellgate_device *device, const void *owner);

#endif /* CELLGATE_OPENCL_PINNED_H */
