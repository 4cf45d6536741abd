/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The remote stand-in: an accelerator that is no hardware. It has memory of its
 * own, a bus, queues and faults, so that the ABI and the core are tried from
 * the far side. It is never installed.
 */
#include "config.h"

#include <stdlib.h>

#include "tests/plugins/remote/resident.h"
#include "tests/plugins/remote/run.h"

static cellgate_status init(const cellgate_host *host,
                            cellgate_instance **instance, cellgate_error *error)
{
    cellgate_instance *made = calloc(1, sizeof *made);

    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for an instance");
    made->host.struct_size = sizeof made->host;
    cellgate_struct_copy(&made->host, host);
    *instance = made;
    return CELLGATE_OK;
}

static void finish(cellgate_instance *instance)
{
    free(instance);
}

static const cellgate_plugin table = {
    .magic = CELLGATE_PLUGIN_MAGIC,
    .abi_version = CELLGATE_ABI_VERSION,
    .struct_size = sizeof table,
    .name = "remote",
    .version = PACKAGE_VERSION,
    .build = "stand-in " PACKAGE_VERSION,
    .keys = remote_keys,
    .key_count = REMOTE_KEY_COUNT,
    .init = init,
    .finish = finish,
    .device_count = remote_device_count,
    .device_describe = remote_device_describe,
    .device_open = remote_device_open,
    .device_close = remote_device_close,
    .support = remote_support,
    .prepare = remote_prepare,
    .weights_free = remote_weights_free,
    .plan_create = remote_plan_create,
    .plan_destroy = remote_plan_destroy,
    .run = remote_run,
    .breakdown = remote_breakdown,
    .resident_create = remote_resident_create,
    .resident_destroy = remote_resident_destroy,
    .resident_export = remote_resident_export,
    .resident_import = remote_resident_import,
    .host_allocate = remote_host_allocate,
    .host_release = remote_host_release,
    .memory_used = remote_device_memory_used,
};

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    if (lowest > table.abi_version || highest < table.abi_version)
        return NULL;
    return &table;
}
