/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: the instance, the open device, and its memory. */
#ifndef CELLGATE_OPENCL_DEVICE_H
#define CELLGATE_OPENCL_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "plugins/opencl/cache.h"
#include "plugins/opencl/platform.h"

struct cellgate_instance {
    const cellgate_host *host;
    struct ocl_api api;
    struct ocl_found_list found;
};

struct ocl_program; /* program.h */

/* A variant that turned out not to run such segments. */
struct ocl_refusal {
    struct ocl_refusal *next;
    uint64_t digest; /* of the segment's structure */
    uint64_t variant;
    char text[160];
};

struct cellgate_device {
    const cellgate_host *host;
    const struct ocl_api *cl;
    const struct ocl_found *found;
    const cellgate_settings *settings;
    cl_device_id id; /* found->id, or a part of it */
    bool is_part;
    cl_context context;

    /*
     * How kernels are written for it. A width of 1: work-items run in lockstep,
     * and a group of them shares a unit of work. More: a work-item is a thread
     * that computes on vectors, and is a group by itself.
     */
    uint32_t vector;
    uint32_t group; /* work-items of a group, at most */
    uint32_t side;  /* of the group that multiplies matrices, squared */
    uint32_t slices;
    uint32_t threads; /* of the host that a run keeps busy */
    uint32_t units;   /* that compute at the same time */

    pthread_mutex_t compiling; /* one at a time; taken before the other */
    pthread_mutex_t lock;      /* of what follows but the cache; never held for
                                  long */
    struct ocl_program *programs;
    struct ocl_refusal *refusals;
    struct ocl_cache cache;
    _Atomic uint64_t built;  /* programs compiled from source */
    _Atomic uint64_t loaded; /* programs that the cache had */

    struct ocl_pinned *pinned; /* host memory that the host holds */
    cl_command_queue pinned_queue;

    bool has_clblast;
    _Atomic uint32_t clblast_woken; /* how often it has compiled its kernels */

    _Atomic uint64_t memory_used;
    atomic_bool lost;
};

/* The table's operations of the same name. */
cellgate_status ocl_device_open(cellgate_instance *instance, uint32_t index,
                                const cellgate_settings *settings,
                                cellgate_device **device,
                                cellgate_error *error);
void ocl_device_close(cellgate_device *device);
void *ocl_host_allocate(cellgate_device *device, size_t size);
void ocl_host_release(cellgate_device *device, void *memory);
uint64_t ocl_memory_used(cellgate_device *device);

/* Before the context goes. */
void ocl_pinned_finish(cellgate_device *device);
void ocl_refusals_free(cellgate_device *device);

/* OK, or DEVICE_LOST after that was once the answer to anything. */
cellgate_status ocl_device_check(cellgate_device *device,
                                 cellgate_error *error);

/* ocl_fail(), which also remembers that a device is lost. */
cellgate_status ocl_device_fail(cellgate_device *device, cellgate_error *error,
                                cl_int code, const char *function,
                                const char *doing);

/* Device memory; `memory` is NULL without. */
struct ocl_buffer {
    cl_mem memory;
    size_t size;
};

/*
 * `count` elements of `size` bytes (not none: at least one is allocated).
 * DEVICE_MEMORY: it does not fit beside what is there.
 */
cellgate_status ocl_buffer_create(cellgate_device *device, int64_t count,
                                  size_t size, struct ocl_buffer *buffer,
                                  cellgate_error *error);
void ocl_buffer_destroy(cellgate_device *device, struct ocl_buffer *buffer);

#endif /* CELLGATE_OPENCL_DEVICE_H */
