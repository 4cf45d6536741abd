/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/opencl/plan.h"

static const cellgate_key keys[] = {
    { sizeof(cellgate_key), "kernels", CELLGATE_KEY_CHOICE, "auto",
      "auto|vectors|lanes", 0, 0,
      "how kernels are written: vectors for CPUs, lanes for GPUs; auto looks "
      "at "
      "the device" },
    { sizeof(cellgate_key), "work_group", CELLGATE_KEY_INTEGER, "0", NULL, 0,
      1024,
      "most work-items of a group in kernels of lanes; 0: what the device "
      "allows" },
    { sizeof(cellgate_key), "threads", CELLGATE_KEY_INTEGER, "0", NULL, 0, 4096,
      "most of the host's cores that a CPU computes on; 0: all that are "
      "granted" },
    { sizeof(cellgate_key), "clblast", CELLGATE_KEY_CHOICE, "auto",
      "auto|yes|no", 0, 0,
      "whether variants multiply by CLBlast; auto: where it is there, but not "
      "on CPUs" },
    { sizeof(cellgate_key), "cache", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
      "folder of compiled programs; none keeps none; empty is cellgate/opencl "
      "in the user's cache folder" },
    { sizeof(cellgate_key), "cache_size", CELLGATE_KEY_SIZE, "67108864", NULL,
      0, INT64_MAX, "most that the folder of compiled programs may hold" },
};

/* What changes when a driver comes, goes or is hidden. */
static const char *const watched[] = {
    "/etc/OpenCL/vendors",
    "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1",
    "/usr/lib/aarch64-linux-gnu/libOpenCL.so.1",
    "/usr/lib64/libOpenCL.so.1",
    "/dev/dri",
    "/dev/nvidiactl",
    "/dev/kfd",
    "$OCL_ICD_VENDORS",
    "$OCL_ICD_FILENAMES",
    "$POCL_DEVICES",
    "$CUDA_VISIBLE_DEVICES",
    "$ROCR_VISIBLE_DEVICES",
    "$LD_LIBRARY_PATH",
    NULL,
};

static cellgate_status init(const cellgate_host *host,
                            cellgate_instance **instance, cellgate_error *error)
{
    cellgate_instance *made = host->allocate(
        host->context, _Alignof(cellgate_instance), sizeof *made);
    cellgate_status status;

    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    memset(made, 0, sizeof *made);
    made->host = host;
    status = ocl_api_load(&made->api, error);
    if (status == CELLGATE_OK)
        status = ocl_find_devices(&made->api, &made->found, error);
    if (status == CELLGATE_OK)
        *instance = made;
    else
        host->release(host->context, made);
    return status;
}

static void finish(cellgate_instance *instance)
{
    instance->host->release(instance->host->context, instance);
}

static uint32_t device_count(cellgate_instance *instance)
{
    return instance->found.count;
}

static cellgate_status device_describe(cellgate_instance *instance,
                                       uint32_t index,
                                       cellgate_device_description *out,
                                       cellgate_error *error)
{
    if (index >= instance->found.count)
        return cellgate_fail(error, CELLGATE_INVALID, "no device %u", index);
    cellgate_struct_copy(out, &instance->found.devices[index].description);
    return CELLGATE_OK;
}

static const cellgate_plugin table = {
    .magic = CELLGATE_PLUGIN_MAGIC,
    .abi_version = CELLGATE_ABI_VERSION,
    .struct_size = sizeof table,
    .name = "opencl",
    .version = PACKAGE_VERSION,
    .build = "opencl " PACKAGE_VERSION ", " __VERSION__,
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .watched = watched,
    .init = init,
    .finish = finish,
    .device_count = device_count,
    .device_describe = device_describe,
    .device_open = ocl_device_open,
    .device_close = ocl_device_close,
    .support = ocl_support,
    .prepare = ocl_prepare,
    .weights_free = ocl_weights_free,
    .plan_create = ocl_plan_create,
    .plan_destroy = ocl_plan_destroy,
    .run = ocl_run,
    .breakdown = ocl_breakdown,
    .resident_create = ocl_resident_create,
    .resident_destroy = ocl_resident_destroy,
    .resident_export = ocl_resident_export,
    .resident_import = ocl_resident_import,
    .host_allocate = ocl_host_allocate,
    .host_release = ocl_host_release,
    .memory_used = ocl_memory_used,
    .variants = ocl_variant_names,
};

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    const bool talks =
        lowest <= table.abi_version && table.abi_version <= highest;

    return talks ? &table : NULL;
}
