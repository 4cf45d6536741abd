/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/cuda/plan.h"

static const cellgate_key keys[] = {
    { sizeof(cellgate_key), "cudnn", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
      "file of cuDNN 9; empty takes the one that the system finds, none goes "
      "without" },
    { sizeof(cellgate_key), "cublaslt", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
      "file of cuBLASLt 13; empty takes the one that the system finds, none "
      "goes without" },
};

/* What changes when a driver or a library comes, goes or is hidden. */
static const char *const watched[] = {
    "/dev/nvidiactl",
    "/dev/nvidia0",
    "/proc/driver/nvidia/version",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcudnn.so.9",
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libcudnn.so.9",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib64/libcudnn.so.9",
    "/usr/local/cuda/lib64/libcudnn.so.9",
    "/etc/ld.so.cache",
    "$CUDA_VISIBLE_DEVICES",
    "$NVIDIA_VISIBLE_DEVICES",
    "$LD_LIBRARY_PATH",
    "$LD_LIBRARY_PATH/libcuda.so.1",
    "$LD_LIBRARY_PATH/libcudnn.so.9",
    "$LD_LIBRARY_PATH/libcublasLt.so.13",
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
    status = cud_find_devices(&made->found, error);
    if (status == CELLGATE_OK) {
        cud_cudnn_load(&made->cudnn, "");
        cud_blaslt_load(&made->blaslt, "");
        cud_describe_devices(&made->found, &made->cudnn, &made->blaslt);
        cud_turns_init(made);
        *instance = made;
    } else {
        host->release(host->context, made);
    }
    return status;
}

static void finish(cellgate_instance *instance)
{
    cud_turns_finish(instance);
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
    .name = "cuda",
    .version = PACKAGE_VERSION,
    .build = "cuda " PACKAGE_VERSION ", " __VERSION__,
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .watched = watched,
    .init = init,
    .finish = finish,
    .device_count = device_count,
    .device_describe = device_describe,
    .device_open = cud_device_open,
    .device_close = cud_device_close,
    .support = cud_support,
    .prepare = cud_prepare,
    .weights_free = cud_weights_free,
    .plan_create = cud_plan_create,
    .plan_destroy = cud_plan_destroy,
    .run = cud_run,
    .breakdown = cud_breakdown,
    .resident_create = cud_resident_create,
    .resident_destroy = cud_resident_destroy,
    .resident_export = cud_resident_export,
    .resident_import = cud_resident_import,
    .host_allocate = cud_host_allocate,
    .host_release = cud_host_release,
    .memory_used = cud_memory_used,
    .variants = cud_variant_names,
};

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    const bool talks =
        lowest <= table.abi_version && table.abi_version <= highest;

    return talks ? &table : NULL;
}
