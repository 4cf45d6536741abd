/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinned.c: host memory that the device reaches by itself: a buffer that is
 * mapped, and stays so. Where the device shares the host's memory the buffer is
 * made of memory of ours, and a run gives it to the device while it computes:
 * nothing is copied then.
 */
#include "config.h"

#include <stdlib.h>

#include "plugins/opencl/pinned.h"

#define ALIGNMENT 64u
/* What drivers ask of memory that is to be a buffer as it is. */
#define PAGE 4096u

static cl_command_queue queue_of(cellgate_device *device)
{
    cl_int code;

    if (!device->pinned_queue) {
        device->pinned_queue = device->cl->CreateCommandQueue(
            device->context, device->id, 0, &code);
        if (code != CL_SUCCESS)
            device->pinned_queue = NULL;
    }
    return device->pinned_queue;
}

static void *map(cellgate_device *device, cl_mem buffer, size_t size)
{
    const cl_command_queue queue = queue_of(device);
    void *memory = NULL;
    cl_int code = CL_SUCCESS;

    if (queue)
        memory = device->cl->EnqueueMapBuffer(queue, buffer, CL_TRUE,
                                              CL_MAP_READ | CL_MAP_WRITE, 0,
                                              size, 0, NULL, NULL, &code);
    return memory && code == CL_SUCCESS ? memory : NULL;
}

/* Maps a buffer, of our own memory if `own` is not NULL; false: it cannot be
   had, or a driver does not keep to its place. */
static bool make(cellgate_device *device, struct ocl_pinned *made, void *own)
{
    const cl_mem_flags flags =
        CL_MEM_READ_WRITE | (own ? CL_MEM_USE_HOST_PTR : CL_MEM_ALLOC_HOST_PTR);
    cl_int code;

    made->own = own;
    made->buffer = device->cl->CreateBuffer(device->context, flags, made->size,
                                            own, &code);
    if (code != CL_SUCCESS)
        return false;
    made->mapped = map(device, made->buffer, made->size);
    if (made->mapped && (!own || made->mapped == own)) {
        made->memory =
            (char *)made->mapped +
            (ALIGNMENT - (uintptr_t)made->mapped % ALIGNMENT) % ALIGNMENT;
        return true;
    }
    if (made->mapped) {
        (void)device->cl->EnqueueUnmapMemObject(
            device->pinned_queue, made->buffer, made->mapped, 0, NULL, NULL);
        (void)device->cl->Finish(device->pinned_queue);
    }
    (void)device->cl->ReleaseMemObject(made->buffer);
    return false;
}

static struct ocl_pinned *allocate(cellgate_device *device, size_t size)
{
    struct ocl_pinned *made = calloc(1, sizeof *made);
    void *own = NULL;

    if (!made)
        return NULL;
    made->size = ((size + ALIGNMENT) / PAGE + 1) * PAGE;
    if (device->found->unified)
        own = aligned_alloc(PAGE, made->size);
    if (own && make(device, made, own))
        return made;
    free(own);
    if (make(device, made, NULL))
        return made;
    free(made);
    return NULL;
}

void *ocl_host_allocate(cellgate_device *device, size_t size)
{
    struct ocl_pinned *made = NULL;

    if (atomic_load(&device->lost) || size > SIZE_MAX - 2 * (size_t)PAGE)
        return NULL;
    (void)pthread_mutex_lock(&device->lock);
    made = allocate(device, size);
    if (made) {
        made->next = device->pinned;
        device->pinned = made;
    }
    (void)pthread_mutex_unlock(&device->lock);
    return made ? made->memory : NULL;
}

void ocl_host_release(cellgate_device *device, void *memory)
{
    const struct ocl_api *cl = device->cl;
    struct ocl_pinned **at, *found;

    (void)pthread_mutex_lock(&device->lock);
    for (at = &device->pinned; *at && (*at)->memory != memory;)
        at = &(*at)->next;
    found = *at;
    if (found) {
        *at = found->next;
        (void)cl->EnqueueUnmapMemObject(device->pinned_queue, found->buffer,
                                        found->mapped, 0, NULL, NULL);
        /* A device that is lost never finishes. */
        if (!atomic_load(&device->lost))
            (void)cl->Finish(device->pinned_queue);
        (void)cl->ReleaseMemObject(found->buffer);
        free(found->own);
        free(found);
    }
    (void)pthread_mutex_unlock(&device->lock);
}

void ocl_pinned_finish(cellgate_device *device)
{
    if (device->pinned_queue)
        (void)device->cl->ReleaseCommandQueue(device->pinned_queue);
    device->pinned_queue = NULL;
}

/* ---- Given to a run ---------------------------------------------------- */

struct ocl_pinned *ocl_pinned_claim(cellgate_device *device, const void *owner,
                                    const void *memory, size_t size)
{
    const uintptr_t from = (uintptr_t)memory;
    struct ocl_pinned *at;

    (void)pthread_mutex_lock(&device->lock);
    for (at = device->pinned; at; at = at->next)
        if (at->own && from >= (uintptr_t)at->memory && size <= at->size &&
            from - (uintptr_t)at->memory <= at->size - size)
            break;
    if (at && at->owner && at->owner != owner)
        at = NULL; /* another run's */
    if (at)
        at->owner = owner;
    (void)pthread_mutex_unlock(&device->lock);
    return at;
}

void ocl_pinned_let_go(cellgate_device *device, const void *owner)
{
    struct ocl_pinned *at;

    (void)pthread_mutex_lock(&device->lock);
    for (at = device->pinned; at; at = at->next)
        if (at->owner == owner)
            at->owner = NULL;
    (void)pthread_mutex_unlock(&device->lock);
}
