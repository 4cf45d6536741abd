/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>

#include "plugins/opencl/clblast.h"

#ifdef HAVE_CLBLAST
#include <clblast_c.h>

#define LIBRARY "libclblast.so.1"

/* One for the process: it keeps what it has compiled for all contexts. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *library; /* never closed */
    uint32_t users;
    __typeof__(&CLBlastSgemm) sgemm;
    __typeof__(&CLBlastClearCache) clear_cache;
} clblast;

static bool find(const char *name, void *to)
{
    void *found = dlsym(clblast.library, name);

    memcpy(to, &found, sizeof found);
    return found != NULL;
}

static cellgate_status load(cellgate_error *error)
{
    if (clblast.sgemm)
        return CELLGATE_OK;
    if (!clblast.library)
        clblast.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!clblast.library)
        return cellgate_refuse(error, CELLGATE_REASON_SETTING,
                               "CLBlast cannot be opened (%s); install it (on "
                               "Debian: apt-get install libclblast1), or set "
                               "clblast = no",
                               dlerror());
    if (!find("CLBlastClearCache", &clblast.clear_cache) ||
        !find("CLBlastSgemm", &clblast.sgemm)) {
        clblast.sgemm = NULL;
        return cellgate_refuse(error, CELLGATE_REASON_SETTING,
                               LIBRARY " lacks a function; set clblast = no");
    }
    return CELLGATE_OK;
}

cellgate_status ocl_clblast_open(cellgate_device *device, cellgate_error *error)
{
    cellgate_status status;

    (void)pthread_mutex_lock(&lock);
    status = load(error);
    if (status == CELLGATE_OK)
        clblast.users++;
    (void)pthread_mutex_unlock(&lock);
    device->has_clblast = status == CELLGATE_OK;
    return status;
}

/* What it has compiled holds the contexts that it was compiled for. */
void ocl_clblast_close(cellgate_device *device)
{
    if (!device->has_clblast)
        return;
    (void)pthread_mutex_lock(&lock);
    if (--clblast.users == 0)
        (void)clblast.clear_cache();
    (void)pthread_mutex_unlock(&lock);
    device->has_clblast = false;
}

cellgate_status ocl_clblast_enqueue(cellgate_device *device,
                                    cl_command_queue queue,
                                    const struct ocl_gemm *gemm,
                                    cl_event *event, cellgate_error *error)
{
    const CLBlastStatusCode code = clblast.sgemm(
        CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo,
        gemm->rows, gemm->columns, gemm->depth, 1.0f, gemm->x, 0, gemm->depth,
        gemm->matrix, gemm->matrix_at, gemm->matrix_stride, 0.0f, gemm->y,
        gemm->y_at, gemm->y_stride, &queue, event);

    if (code == CLBlastSuccess)
        return CELLGATE_OK;
    return ocl_device_fail(device, error, (cl_int)code, "CLBlastSgemm",
                           "multiplying by CLBlast");
}

/* ---- Waking ------------------------------------------------------------ */

static cellgate_status multiply(cellgate_device *device, cl_command_queue queue,
                                size_t size, cl_mem memory,
                                cellgate_error *error)
{
    const struct ocl_gemm gemm = {
        .rows = size,
        .columns = size,
        .depth = size,
        .x = memory,
        .matrix = memory,
        .matrix_at = size * size,
        .matrix_stride = size,
        .y = memory,
        .y_at = 2 * size * size,
        .y_stride = size,
    };
    cl_event event = NULL;
    cellgate_status status =
        ocl_clblast_enqueue(device, queue, &gemm, &event, error);
    cl_int code;

    if (event)
        (void)device->cl->ReleaseEvent(event);
    code = device->cl->Finish(queue);
    if (status == CELLGATE_OK && code != CL_SUCCESS)
        status = ocl_device_fail(device, error, code, "clFinish",
                                 "multiplying by CLBlast");
    return status;
}

/*
 * Small products, and large ones of good and bad sizes, are different kernels
 * there; drivers compile them at their first launch. From which size on a product
 * is large depends on the device, and the library does not say: below 900 for
 * PoCL; a card does 2048 in no time.
 */
#define SMALL 40u
#define LARGE_ON_CPU 1024u
#define LARGE 2048u

static cellgate_status multiply_all(cellgate_device *device,
                                    cl_command_queue queue,
                                    cellgate_error *error)
{
    const size_t large =
        device->found->type & CL_DEVICE_TYPE_CPU ? LARGE_ON_CPU : LARGE;
    const size_t sizes[] = { SMALL, large, large - 7 };
    const float zero = 0;
    struct ocl_buffer memory = { NULL, 0 };
    cellgate_status status = ocl_buffer_create(
        device, (int64_t)(3 * large * large), sizeof(float), &memory, error);
    size_t i;

    if (status == CELLGATE_OK) {
        const cl_int code = device->cl->EnqueueFillBuffer(
            queue, memory.memory, &zero, sizeof zero, 0, memory.size, 0, NULL,
            NULL);

        if (code != CL_SUCCESS)
            status = ocl_device_fail(device, error, code, "clEnqueueFillBuffer",
                                     "multiplying by CLBlast");
    }
    for (i = 0; status == CELLGATE_OK && i < sizeof sizes / sizeof sizes[0];
         i++)
        status = multiply(device, queue, sizes[i], memory.memory, error);
    ocl_buffer_destroy(device, &memory);
    return status;
}

static cellgate_status wake(cellgate_device *device, cellgate_error *error)
{
    const cellgate_host *host = device->host;
    const uint64_t since = host->clock(host->context);
    char text[80];
    cl_int code;
    cl_command_queue queue =
        device->cl->CreateCommandQueue(device->context, device->id, 0, &code);
    cellgate_status status;

    if (code != CL_SUCCESS)
        return ocl_device_fail(device, error, code, "clCreateCommandQueue",
                               "multiplying by CLBlast");
    status = multiply_all(device, queue, error);
    (void)device->cl->ReleaseCommandQueue(queue);
    if (status != CELLGATE_OK)
        return status;
    (void)snprintf(text, sizeof text,
                   "CLBlast has compiled its kernels in "
                   "%.3f s",
                   1e-9 * (double)(host->clock(host->context) - since));
    host->log(host->context, CELLGATE_LOG_DEBUG, text);
    atomic_fetch_add(&device->clblast_woken, 1);
    return CELLGATE_OK;
}

cellgate_status ocl_clblast_wake(cellgate_device *device, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    (void)pthread_mutex_lock(&device->compiling);
    if (atomic_load(&device->clblast_woken) == 0)
        status = wake(device, error);
    (void)pthread_mutex_unlock(&device->compiling);
    return status;
}

#else /* without CLBlast's headers */

cellgate_status ocl_clblast_open(cellgate_device *device, cellgate_error *error)
{
    (void)device;
    return cellgate_refuse(error, CELLGATE_REASON_SETTING,
                           "this build knows no CLBlast (--with-clblast); set "
                           "clblast = no");
}

void ocl_clblast_close(cellgate_device *device)
{
    (void)device;
}

static cellgate_status none(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_INTERNAL, "there is no CLBlast");
}

cellgate_status ocl_clblast_wake(cellgate_device *device, cellgate_error *error)
{
    (void)device;
    return none(error);
}

cellgate_status ocl_clblast_enqueue(cellgate_device *device,
                                    cl_command_queue queue,
                                    const struct ocl_gemm *gemm,
                                    cl_event *event, cellgate_error *error)
{
    (void)device, (void)queue, (void)gemm, (void)event;
    return none(error);
}
#endif
