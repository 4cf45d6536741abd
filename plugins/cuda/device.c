/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/cuda/fused.h"

/* ---- Errors ------------------------------------------------------------ */

static cellgate_status fail_lost(const cellgate_device *device,
                                 cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_DEVICE_LOST,
                         "%s was lost; it needs a new process, and perhaps a "
                         "reset (nvidia-smi --gpu-reset)",
                         device->found->description.name);
}

cellgate_status cud_device_enter(cellgate_device *device, cellgate_error *error)
{
    if (atomic_load(&device->lost))
        return fail_lost(device, error);
    return cud_device_check(device, error,
                            cudaSetDevice(device->found->ordinal),
                            "cudaSetDevice", device->found->description.name);
}

bool cud_device_enter_to_free(cellgate_device *device)
{
    return !atomic_load(&device->lost) &&
           cudaSetDevice(device->found->ordinal) == cudaSuccess;
}

cellgate_status cud_device_fail(cellgate_device *device, cellgate_error *error,
                                cudaError_t code, const char *function,
                                const char *doing)
{
    cellgate_status status = cud_fail(error, code, function, doing);

    if (status == CELLGATE_DEVICE_LOST)
        atomic_store(&device->lost, true);
    return status;
}

cellgate_status cud_device_check(cellgate_device *device, cellgate_error *error,
                                 cudaError_t code, const char *function,
                                 const char *doing)
{
    return code == cudaSuccess
               ? CELLGATE_OK
               : cud_device_fail(device, error, code, function, doing);
}

/* cuDNN's last words; empty where it has none. */
static void last_words(const struct cud_cudnn *cudnn, char *text, size_t size)
{
    char words[200] = "";

    cudnn->GetLastErrorString(words, sizeof words);
    words[sizeof words - 1] = '\0';
    (void)snprintf(text, size, "%s%s", words[0] ? ": " : "", words);
}

cellgate_status cud_cudnn_check(cellgate_device *device, cellgate_error *error,
                                int code, const char *function,
                                const char *doing)
{
    const struct cud_cudnn *cudnn = &device->cudnn;
    const int kind = code / 1000 * 1000;
    cellgate_status status = CELLGATE_DEVICE_FAILED;
    cudaError_t behind;
    char words[240];

    if (code == CUD_CUDNN_SUCCESS)
        return CELLGATE_OK;
    last_words(cudnn, words, sizeof words);
    behind = cud_behind();
    if (behind != cudaSuccess && cud_status_of(behind) == CELLGATE_DEVICE_LOST)
        return cud_device_fail(device, error, behind, function, doing);
    if (kind == CUD_CUDNN_NOT_SUPPORTED)
        status = CELLGATE_UNSUPPORTED;
    else if (kind == CUD_CUDNN_BAD_PARAM)
        status = CELLGATE_INTERNAL;
    else if (code == CUD_CUDNN_DEVICE_ALLOCATION_FAILED)
        status = CELLGATE_DEVICE_MEMORY;
    else if (code == CUD_CUDNN_HOST_ALLOCATION_FAILED)
        status = CELLGATE_NO_MEMORY;
    (void)cellgate_fail(error, status, "%s: cudnn%s answers %s (%d)%s", doing,
                        function, cudnn->GetErrorString(code), code, words);
    if (status == CELLGATE_UNSUPPORTED)
        error->reason = CELLGATE_REASON_OTHER;
    error->vendor_code = code;
    return status;
}

cellgate_status cud_blaslt_check(cellgate_device *device, cellgate_error *error,
                                 cublasStatus_t code, const char *doing)
{
    cudaError_t behind;

    if (code == CUBLAS_STATUS_SUCCESS)
        return CELLGATE_OK;
    behind = cud_behind();
    if (behind != cudaSuccess && cud_status_of(behind) == CELLGATE_DEVICE_LOST)
        return cud_device_fail(device, error, behind, "cublasLtMatmul", doing);
    if (code == CUBLAS_STATUS_NOT_SUPPORTED)
        (void)cellgate_refuse(error, CELLGATE_REASON_OTHER,
                              "%s: cuBLASLt has no algorithm for it", doing);
    else
        (void)cellgate_fail(error,
                            code == CUBLAS_STATUS_ALLOC_FAILED
                                ? CELLGATE_DEVICE_MEMORY
                                : CELLGATE_DEVICE_FAILED,
                            "%s: cuBLASLt answers %d", doing, (int)code);
    error->vendor_code = code;
    return (cellgate_status)error->status;
}

/* ---- Handles ----------------------------------------------------------- */

cellgate_status cud_handle_take(cellgate_device *device,
                                struct cud_handle **handle,
                                cellgate_error *error)
{
    struct cud_handle *taken;
    cellgate_status status;

    (void)pthread_mutex_lock(&device->lock);
    taken = device->handles;
    if (taken)
        device->handles = taken->next;
    (void)pthread_mutex_unlock(&device->lock);
    if (!taken) {
        taken = calloc(1, sizeof *taken);
        if (!taken)
            return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
        status =
            cud_cudnn_check(device, error, device->cudnn.Create(&taken->cudnn),
                            "Create", "starting cuDNN");
        if (status != CELLGATE_OK) {
            free(taken);
            return status;
        }
    }
    *handle = taken;
    return CELLGATE_OK;
}

void cud_handle_give(cellgate_device *device, struct cud_handle *handle)
{
    if (!handle)
        return;
    if (cud_device_enter_to_free(device))
        (void)device->cudnn.SetStream(handle->cudnn, NULL);
    (void)pthread_mutex_lock(&device->lock);
    handle->next = device->handles;
    device->handles = handle;
    (void)pthread_mutex_unlock(&device->lock);
}

static void destroy_handles(cellgate_device *device)
{
    const bool usable = cud_device_enter_to_free(device);
    struct cud_handle *handle;

    while ((handle = device->handles) != NULL) {
        device->handles = handle->next;
        if (usable)
            (void)device->cudnn.Destroy(handle->cudnn);
        free(handle);
    }
}

/* ---- Memory ------------------------------------------------------------ */

static cellgate_status does_not_fit(const cellgate_device *device,
                                    uint64_t bytes, cellgate_error *error)
{
    size_t left = 0, all = 0;

    (void)cudaGetLastError();
    if (cudaMemGetInfo(&left, &all) != cudaSuccess)
        (void)cudaGetLastError();
    return cellgate_fail(
        error, CELLGATE_DEVICE_MEMORY,
        "%llu bytes do not fit into %s: of its %llu, %llu are "
        "free, and %llu are in use here; a smaller batch or "
        "fewer steps need less",
        (unsigned long long)bytes, device->found->description.name,
        (unsigned long long)device->found->memory, (unsigned long long)left,
        (unsigned long long)device->memory_used);
}

cellgate_status cud_buffer_create(cellgate_device *device, int64_t count,
                                  size_t size, struct cud_buffer *buffer,
                                  cellgate_error *error)
{
    uint64_t bytes;
    cudaError_t code;
    void *memory = NULL;

    if (count < 1)
        count = 1;
    if (__builtin_mul_overflow((uint64_t)count, size, &bytes) ||
        bytes > device->found->memory)
        return does_not_fit(device, bytes, error);
    code = cudaMalloc(&memory, (size_t)bytes);
    if (code == cudaErrorMemoryAllocation)
        return does_not_fit(device, bytes, error);
    if (code != cudaSuccess)
        return cud_device_fail(device, error, code, "cudaMalloc",
                               "allocating device memory");
    atomic_fetch_add(&device->memory_used, bytes);
    *buffer = (struct cud_buffer){ memory, (size_t)bytes };
    return CELLGATE_OK;
}

void cud_buffer_destroy(cellgate_device *device, struct cud_buffer *buffer)
{
    if (!buffer->memory)
        return;
    if (cud_device_enter_to_free(device))
        (void)cudaFree(buffer->memory);
    atomic_fetch_sub(&device->memory_used, buffer->size);
    *buffer = (struct cud_buffer){ NULL, 0 };
}

cellgate_status cud_upload(cellgate_device *device,
                           const struct cud_buffer *buffer, const void *from,
                           size_t size, cellgate_error *error)
{
    cudaError_t code =
        cudaMemcpy(buffer->memory, from, size, cudaMemcpyHostToDevice);

    /* A copy of ordinary memory returns when that may be changed, which is
       before the device has it; plans' streams do not wait for this one. */
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(NULL);
    return cud_device_check(device, error, code, "cudaMemcpy",
                            "uploading weights");
}

uint64_t cud_memory_used(cellgate_device *device)
{
    return atomic_load(&device->memory_used);
}

/* Pinned memory is at a multiple of the page size. */
void *cud_host_allocate(cellgate_device *device, size_t size)
{
    void *memory = NULL;

    if (!cud_device_enter_to_free(device))
        return NULL;
    if (cudaHostAlloc(&memory, size > 0 ? size : 1, cudaHostAllocDefault) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return memory;
}

void cud_host_release(cellgate_device *device, void *memory)
{
    if (memory && cud_device_enter_to_free(device))
        (void)cudaFreeHost(memory);
}

/* ---- Opening ----------------------------------------------------------- */

/* Those that the section names, or the system's. */
static void load_libraries(cellgate_device *device,
                           const cellgate_instance *instance,
                           const cellgate_settings *settings)
{
    const cellgate_host *host = device->host;
    const char *cudnn = host->setting(host->context, settings, "cudnn");
    const char *blaslt = host->setting(host->context, settings, "cublaslt");

    if (cudnn[0] == '\0')
        device->cudnn = instance->cudnn;
    else
        cud_cudnn_load(&device->cudnn, cudnn);
    if (blaslt[0] == '\0')
        device->blaslt = instance->blaslt;
    else
        cud_blaslt_load(&device->blaslt, blaslt);
}

/* The first handle, which takes longest. A cuDNN that does not start is none.
 */
static cellgate_status start_cudnn(cellgate_device *device,
                                   cellgate_error *error)
{
    const cellgate_host *host = device->host;
    cellgate_error why = CELLGATE_ERROR_INIT;
    struct cud_handle *handle = NULL;
    cellgate_status status;
    char text[480];

    if (device->cudnn.version) {
        status = cud_handle_take(device, &handle, &why);
        if (status == CELLGATE_OK)
            status = cud_dropout_create(device, handle, &why);
        cud_handle_give(device, handle);
        if (status == CELLGATE_OK)
            return CELLGATE_OK;
        if (atomic_load(&device->lost))
            return fail_lost(device, error);
        device->cudnn.version = 0;
        (void)snprintf(device->cudnn.lacks, sizeof device->cudnn.lacks,
                       "%.280s; is all of cuDNN installed?", why.text);
    }
    (void)snprintf(text, sizeof text, "%s: no LSTM is fused: %s",
                   device->found->description.name, device->cudnn.lacks);
    host->log(host->context, CELLGATE_LOG_WARNING, text);
    return CELLGATE_OK;
}

/* The kernels are there for the device, and may have the memory they want. */
static cellgate_status start_kernels(cellgate_device *device,
                                     cellgate_error *error)
{
    const struct cuk_device of = cud_kernel_device(device);

    return cud_device_check(device, error, (cudaError_t)cuk_setup(&of),
                            "cuk_setup", device->found->description.name);
}

/* Without cuBLASLt the variants with it are not there. */
static void start_blaslt(cellgate_device *device)
{
    const cellgate_host *host = device->host;
    char text[480];

    if (device->blaslt.version &&
        device->blaslt.Create(&device->blaslt.handle) !=
            CUBLAS_STATUS_SUCCESS) {
        (void)cudaGetLastError();
        device->blaslt.version = 0;
        (void)snprintf(device->blaslt.lacks, sizeof device->blaslt.lacks,
                       "cuBLASLt does not start");
    }
    if (device->blaslt.version)
        return;
    (void)snprintf(text, sizeof text, "%s: no product is cuBLASLt's: %s",
                   device->found->description.name, device->blaslt.lacks);
    host->log(host->context, CELLGATE_LOG_INFO, text);
}

/* The context is made here. */
static cellgate_status start(cellgate_device *device, cellgate_error *error)
{
    cellgate_status status = cud_device_enter(device, error);

    if (status == CELLGATE_OK)
        status = cud_device_check(device, error, cudaFree(NULL), "cudaFree",
                                  device->found->description.name);
    if (status == CELLGATE_OK)
        status = start_kernels(device, error);
    if (status == CELLGATE_OK)
        start_blaslt(device);
    return status == CELLGATE_OK ? start_cudnn(device, error) : status;
}

cellgate_status cud_device_open(cellgate_instance *instance, uint32_t index,
                                const cellgate_settings *settings,
                                cellgate_device **device, cellgate_error *error)
{
    const cellgate_host *host = instance->host;
    const struct cud_found *found;
    cellgate_device *made;
    cellgate_status status;

    if (index >= instance->found.count)
        return cellgate_fail(error, CELLGATE_INVALID, "no device %u", index);
    found = &instance->found.devices[index];
    if (found->lacks[0])
        return cellgate_refuse(error, CELLGATE_REASON_DEVICE, "%s: %s",
                               found->description.name, found->lacks);
    made =
        host->allocate(host->context, _Alignof(cellgate_device), sizeof *made);
    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    memset(made, 0, sizeof *made);
    made->host = host;
    made->found = found;
    made->settings = settings;
    (void)pthread_mutex_init(&made->lock, NULL);
    load_libraries(made, instance, settings);
    status = start(made, error);
    if (status == CELLGATE_OK)
        status = cud_turn_open(made, &instance->turns[index], error);
    if (status == CELLGATE_OK)
        *device = made;
    else
        cud_device_close(made);
    return status;
}

void cud_device_close(cellgate_device *device)
{
    if (!device)
        return;
    if (device->blaslt.handle && cud_device_enter_to_free(device))
        (void)device->blaslt.Destroy(device->blaslt.handle);
    cud_dropout_destroy(device);
    destroy_handles(device);
    cud_turn_close(device);
    cud_refusals_free(device);
    (void)pthread_mutex_destroy(&device->lock);
    device->host->release(device->host->context, device);
}
