/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: the instance, the open device, its memory and its handles. */
#ifndef CELLGATE_CUDA_OPEN_DEVICE_H
#define CELLGATE_CUDA_OPEN_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "plugins/cuda/blaslt.h"
#include "plugins/cuda/found.h"

/*
 * The turns that kernels take which fill a GPU: each waits for the one before.
 * One a GPU, however often it is opened.
 */
struct cud_turn {
    pthread_mutex_t lock; /* held while one is enqueued */
    cudaEvent_t done;     /* the last one; from the first opening on */
    uint32_t openings;
};

/* A handle of cuDNN that no plan has now. */
struct cud_handle {
    struct cud_handle *next;
    cud_cudnn_handle cudnn;
};

struct cellgate_instance {
    const cellgate_host *host;
    struct cud_cudnn cudnn; /* as the system finds them */
    struct cud_blaslt blaslt;
    struct cud_found_list found;
    struct cud_turn turns[CUD_DEVICES_MAX]; /* as `found` counts */
};

struct cellgate_device {
    const cellgate_host *host;
    const struct cud_found *found;
    const cellgate_settings *settings;
    struct cud_turn *turn;
    struct cud_cudnn cudnn;
    cud_cudnn_dropout no_dropout; /* what layers of a stack have between them */
    struct cud_blaslt blaslt;

    pthread_mutex_t lock; /* of the following; never held for long */
    struct cud_handle *handles;
    struct cud_refusal *refusals; /* variants that turned out not to run */

    _Atomic uint64_t memory_used;
    atomic_bool lost;
};

/* Those of an instance, before its first device and after its last. */
void cud_turns_init(cellgate_instance *instance);
void cud_turns_finish(cellgate_instance *instance);
/* With the device current. */
cellgate_status cud_turn_open(cellgate_device *device, struct cud_turn *turn,
                              cellgate_error *error);
void cud_turn_close(cellgate_device *device);

/* The table's operations of the same name. */
cellgate_status cud_device_open(cellgate_instance *instance, uint32_t index,
                                const cellgate_settings *settings,
                                cellgate_device **device,
                                cellgate_error *error);
void cud_device_close(cellgate_device *device);
void *cud_host_allocate(cellgate_device *device, size_t size);
void cud_host_release(cellgate_device *device, void *memory);
uint64_t cud_memory_used(cellgate_device *device);

/* OK, the device being the current one of this thread; or DEVICE_LOST after
   that was once the answer to anything. */
cellgate_status cud_device_enter(cellgate_device *device,
                                 cellgate_error *error);

/* Makes the device current to free what is on it; false: it is lost, and there
   is nothing left to free. */
bool cud_device_enter_to_free(cellgate_device *device);

/* cud_fail(), which also remembers that a device is lost. */
cellgate_status cud_device_fail(cellgate_device *device, cellgate_error *error,
                                cudaError_t code, const char *function,
                                const char *doing);

/* OK where `code` is cudaSuccess, else cud_device_fail(). */
cellgate_status cud_device_check(cellgate_device *device, cellgate_error *error,
                                 cudaError_t code, const char *function,
                                 const char *doing);

/* The same for codes of cuDNN. A refusal is UNSUPPORTED, in its own words; what
   the runtime knows of a lost device counts. */
cellgate_status cud_cudnn_check(cellgate_device *device, cellgate_error *error,
                                int code, const char *function,
                                const char *doing);

void cud_refusals_free(cellgate_device *device);

/* And for those of cuBLASLt. */
cellgate_status cud_blaslt_check(cellgate_device *device, cellgate_error *error,
                                 cublasStatus_t code, const char *doing);

/* A handle of cuDNN on the device, for one plan at a time. */
cellgate_status cud_handle_take(cellgate_device *device,
                                struct cud_handle **handle,
                                cellgate_error *error);
void cud_handle_give(cellgate_device *device, struct cud_handle *handle);

/* Device memory; `memory` is NULL without. */
struct cud_buffer {
    void *memory;
    size_t size;
};

/*
 * `count` elements of `size` bytes (not none: at least one is allocated).
 * DEVICE_MEMORY: it does not fit beside what is there.
 */
cellgate_status cud_buffer_create(cellgate_device *device, int64_t count,
                                  size_t size, struct cud_buffer *buffer,
                                  cellgate_error *error);
void cud_buffer_destroy(cellgate_device *device, struct cud_buffer *buffer);

/* Copies `size` bytes of the host to a buffer, and waits until they are there.
 */
cellgate_status cud_upload(cellgate_device *device,
                           const struct cud_buffer *buffer, const void *from,
                           size_t size, cellgate_error *error);

#endif /* CELLGATE_CUDA_OPEN_DEVICE_H */
