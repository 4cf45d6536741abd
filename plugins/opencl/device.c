/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/opencl/clblast.h"
#include "plugins/opencl/program.h"

/* ---- Errors ------------------------------------------------------------ */

cellgate_status ocl_device_check(cellgate_device *device, cellgate_error *error)
{
    if (!atomic_load(&device->lost))
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_DEVICE_LOST,
                         "%s was lost; it needs a new process, and perhaps a "
                         "reset of the device",
                         device->found->description.name);
}

cellgate_status ocl_device_fail(cellgate_device *device, cellgate_error *error,
                                cl_int code, const char *function,
                                const char *doing)
{
    cellgate_status status = ocl_fail(error, code, function, doing);

    if (status == CELLGATE_DEVICE_LOST)
        atomic_store(&device->lost, true);
    return status;
}

/* ---- Memory ------------------------------------------------------------ */

static cellgate_status does_not_fit(const cellgate_device *device,
                                    uint64_t bytes, cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_DEVICE_MEMORY,
                         "%llu bytes do not fit into %s: it has %llu, at most "
                         "%llu in one piece, and %llu are in use; a smaller "
                         "batch or fewer steps need less",
                         (unsigned long long)bytes,
                         device->found->description.name,
                         (unsigned long long)device->found->memory,
                         (unsigned long long)device->found->largest_buffer,
                         (unsigned long long)device->memory_used);
}

cellgate_status ocl_buffer_create(cellgate_device *device, int64_t count,
                                  size_t size, struct ocl_buffer *buffer,
                                  cellgate_error *error)
{
    const struct ocl_found *found = device->found;
    uint64_t bytes;
    cl_int code;
    cl_mem memory;

    if (count < 1)
        count = 1;
    if (__builtin_mul_overflow((uint64_t)count, size, &bytes) ||
        bytes > found->largest_buffer ||
        atomic_load(&device->memory_used) + bytes > found->memory)
        return does_not_fit(device, bytes, error);
    memory = device->cl->CreateBuffer(device->context, CL_MEM_READ_WRITE,
                                      (size_t)bytes, NULL, &code);
    if (code != CL_SUCCESS)
        return ocl_device_fail(device, error, code, "clCreateBuffer",
                               "allocating device memory");
    atomic_fetch_add(&device->memory_used, bytes);
    *buffer = (struct ocl_buffer){ memory, (size_t)bytes };
    return CELLGATE_OK;
}

void ocl_buffer_destroy(cellgate_device *device, struct ocl_buffer *buffer)
{
    if (!buffer->memory)
        return;
    (void)device->cl->ReleaseMemObject(buffer->memory);
    atomic_fetch_sub(&device->memory_used, buffer->size);
    *buffer = (struct ocl_buffer){ NULL, 0 };
}

uint64_t ocl_memory_used(cellgate_device *device)
{
    return atomic_load(&device->memory_used);
}

/* ---- Opening ----------------------------------------------------------- */

static const char *setting(const cellgate_device *device,
                           const cellgate_settings *settings, const char *key)
{
    return device->host->setting(device->host->context, settings, key);
}

static uint32_t at_most(uint64_t value, uint32_t most)
{
    return value < most ? (uint32_t)value : most;
}

/* Vectors of 16 floats at most; a power of two. */
static uint32_t vector_width(uint32_t native)
{
    uint32_t width = 2;

    while (width < 16 && width * 2 <= native)
        width *= 2;
    return width;
}

/* How kernels are written for the device; see device.h. */
static void choose_kernels(cellgate_device *device, const char *kernels,
                           uint32_t most_items)
{
    const struct ocl_found *found = device->found;
    bool vectors =
        strcmp(kernels, "vectors") == 0 ||
        (strcmp(kernels, "auto") == 0 && (found->type & CL_DEVICE_TYPE_CPU));
    uint32_t group = at_most(found->group, 1024);

    if (most_items > 0)
        group = at_most(most_items, group);
    device->vector = vectors ? vector_width(found->vector) : 1;
    device->group = vectors ? 1 : group;
    device->side = vectors        ? 1
                   : group >= 256 ? 16
                   : group >= 64  ? 8
                   : group >= 16  ? 4
                   : group >= 4   ? 2
                                  : 1;
    device->slices = vectors || group < 64 || found->second < 8 ? 1 : 8;
    while (device->side > found->second)
        device->side /= 2;
}

static cellgate_status no_part(cellgate_device *device, uint32_t wanted,
                               cl_int code, cellgate_error *error)
{
    (void)cellgate_refuse(
        error, CELLGATE_REASON_SETTING,
        "%s computes on %u cores, %u are granted ([scheduler] threads, and the "
        "device's own), and its driver cannot give a part of it: "
        "clCreateSubDevices answers %s (%d)",
        device->found->description.name, (unsigned)device->found->units,
        (unsigned)wanted, ocl_code_name(code), (int)code);
    error->vendor_code = code;
    return CELLGATE_UNSUPPORTED;
}

/* A device of so many of the CPU's units. */
static cellgate_status take_part(cellgate_device *device, uint32_t wanted,
                                 cellgate_error *error)
{
    const cl_device_partition_property by[] = {
        CL_DEVICE_PARTITION_BY_COUNTS, (cl_device_partition_property)wanted,
        CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0
    };
    cl_device_id part = NULL;
    cl_int code =
        device->cl->CreateSubDevices(device->found->id, by, 1, &part, NULL);

    if (code != CL_SUCCESS || !part)
        return no_part(device, wanted, code, error);
    device->id = part;
    device->is_part = true;
    return CELLGATE_OK;
}

/*
 * A CPU's driver takes the host's cores, as many as the device has units,
 * whatever else is at work there: what is not granted must not be its.
 */
static cellgate_status choose_threads(cellgate_device *device, uint32_t most,
                                      cellgate_error *error)
{
    const cellgate_host *host = device->host;
    const uint32_t units = device->found->units > 0 ? device->found->units : 1;
    uint32_t wanted;

    device->id = device->found->id;
    device->threads = 1;
    device->units = units;
    if (!(device->found->type & CL_DEVICE_TYPE_CPU)) {
        if (most == 0)
            return CELLGATE_OK;
        return cellgate_refuse(error, CELLGATE_REASON_SETTING,
                               "threads = %u: %s is no CPU, and computes on "
                               "none of the host's cores; leave the key out",
                               (unsigned)most, device->found->description.name);
    }
    wanted =
        at_most(units, host->thread_budget(host->context, OCL_CPU_RESOURCE));
    if (most > 0)
        wanted = at_most(most, wanted);
    if (wanted < 1)
        wanted = 1;
    device->threads = device->units = wanted;
    return wanted < units ? take_part(device, wanted, error) : CELLGATE_OK;
}

static void open_cache(cellgate_device *device,
                       const cellgate_settings *settings)
{
    char why[400], text[460];

    ocl_cache_init(&device->cache, setting(device, settings, "cache"),
                   strtoull(setting(device, settings, "cache_size"), NULL, 10),
                   why, sizeof why);
    if (why[0] == '\0')
        return;
    (void)snprintf(text, sizeof text, "compiled programs are not kept: %s",
                   why);
    device->host->log(device->host->context, CELLGATE_LOG_INFO, text);
}

/* On a CPU its products were slower than ours at every shape: there it is for
   those who ask for it. */
static cellgate_status open_clblast(cellgate_device *device, const char *wanted,
                                    cellgate_error *error)
{
    const bool is_cpu = (device->found->type & CL_DEVICE_TYPE_CPU) != 0;
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status;

    if (strcmp(wanted, "no") == 0 || (strcmp(wanted, "auto") == 0 && is_cpu))
        return CELLGATE_OK;
    status = ocl_clblast_open(device, &why);
    if (status == CELLGATE_OK)
        return status;
    if (strcmp(wanted, "yes") == 0) {
        *error = why;
        return status;
    }
    device->host->log(device->host->context, CELLGATE_LOG_INFO, why.text);
    return CELLGATE_OK;
}

static cellgate_status create_context(cellgate_device *device,
                                      cellgate_error *error)
{
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, (cl_context_properties)device->found->platform, 0
    };
    cl_int code;

    device->context = device->cl->CreateContext(properties, 1, &device->id,
                                                NULL, NULL, &code);
    if (code != CL_SUCCESS) {
        device->context = NULL;
        return ocl_device_fail(device, error, code, "clCreateContext",
                               device->found->description.name);
    }
    return CELLGATE_OK;
}

cellgate_status ocl_device_open(cellgate_instance *instance, uint32_t index,
                                const cellgate_settings *settings,
                                cellgate_device **device, cellgate_error *error)
{
    const cellgate_host *host = instance->host;
    const struct ocl_found *found;
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
    made->cl = &instance->api;
    made->found = found;
    made->settings = settings;
    made->cache.folder = -1;
    (void)pthread_mutex_init(&made->lock, NULL);
    (void)pthread_mutex_init(&made->compiling, NULL);
    choose_kernels(
        made, setting(made, settings, "kernels"),
        (uint32_t)strtoul(setting(made, settings, "work_group"), NULL, 10));
    status = choose_threads(
        made, (uint32_t)strtoul(setting(made, settings, "threads"), NULL, 10),
        error);
    if (status == CELLGATE_OK)
        status = create_context(made, error);
    if (status == CELLGATE_OK)
        status = open_clblast(made, setting(made, settings, "clblast"), error);
    if (status != CELLGATE_OK) {
        ocl_device_close(made);
        return status;
    }
    open_cache(made, settings);
    *device = made;
    return CELLGATE_OK;
}

void ocl_device_close(cellgate_device *device)
{
    if (!device)
        return;
    ocl_clblast_close(device);
    ocl_programs_free(device);
    ocl_refusals_free(device);
    ocl_pinned_finish(device);
    ocl_cache_finish(&device->cache);
    if (device->context)
        (void)device->cl->ReleaseContext(device->context);
    if (device->is_part)
        (void)device->cl->ReleaseDevice(device->id);
    (void)pthread_mutex_destroy(&device->lock);
    (void)pthread_mutex_destroy(&device->compiling);
    device->host->release(device->host->context, device);
}
