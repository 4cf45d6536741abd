/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/plugin/table.h"
#include "runtime/plugin/verdict_cache.h"

bool cg_device_init(cg_device *device, cg_device_table *table, const char *name,
                    const char *plugin)
{
    memset(device, 0, sizeof *device);
    device->table = table;
    device->plugin = plugin;
    device->description.struct_size = sizeof device->description;
    device->thread_limit = table->threads;
    atomic_init(&device->status, CELLGATE_OK);
    device->name = strdup(name);
    if (device->name == NULL)
        return false;
    if (pthread_mutex_init(&device->reason_mutex, NULL) != 0) {
        free(device->name);
        return false;
    }
    if (pthread_mutex_init(&device->open_mutex, NULL) != 0) {
        pthread_mutex_destroy(&device->reason_mutex);
        free(device->name);
        return false;
    }
    return true;
}

void cg_device_finish(cg_device *device, bool forked)
{
    /* A child's locks may be held by threads that it doesn't have, and its
       devices belong to the parent. */
    if (!forked) {
        if (device->handle != NULL)
            device->ops->device_close(device->handle);
        cg_thread_budget_put(device->budget);
        pthread_mutex_destroy(&device->open_mutex);
        pthread_mutex_destroy(&device->reason_mutex);
    }
    cg_device_forget_identity(device);
    cg_settings_destroy(device->settings);
    free(device->reason);
    free(device->name);
}

const char *cg_device_name(const cg_device *device)
{
    return device->name;
}

const cellgate_device_description *
cg_device_description_get(const cg_device *device)
{
    return &device->description;
}

static cellgate_status status_of(const cg_device *device)
{
    return (cellgate_status)atomic_load_explicit(&device->status,
                                                 memory_order_acquire);
}

static const char *reason_of(const cg_device *device, cellgate_status status)
{
    if (status == CELLGATE_OK)
        return "";
    return device->reason != NULL ? device->reason
                                  : cellgate_status_text(status);
}

void cg_device_info_get(const cg_device *device, cellgate_device_info *info)
{
    const cellgate_device_description *about = &device->description;
    cellgate_status status = status_of(device);
    cellgate_device_info full = { .struct_size = sizeof full };

    full.name = device->name;
    full.plugin = device->plugin;
    full.status = (int32_t)status;
    full.reason = reason_of(device, status);
    full.description = about->name;
    full.vendor = about->vendor;
    full.driver = about->driver;
    full.resource = about->resource;
    full.identity = about->identity;
    full.kind = about->kind;
    full.memory = about->memory;
    full.queue_depth = about->queue_depth;
    cellgate_struct_copy(info, &full);
}

cellgate_status cg_device_usable(const cg_device *device, cellgate_error *error)
{
    cellgate_status status = cg_process_check(error);

    if (status != CELLGATE_OK)
        return status;
    status = status_of(device);
    if (status == CELLGATE_OK)
        return status;
    return cellgate_fail(error, status, "device %s: %s", device->name,
                         reason_of(device, status));
}

void cg_device_quarantine(cg_device *device, cellgate_status status,
                          const char *reason)
{
    if (cg_process_forked())
        return;
    if (status == CELLGATE_OK)
        status = CELLGATE_INTERNAL;
    pthread_mutex_lock(&device->reason_mutex);
    if (status_of(device) == CELLGATE_OK) {
        device->reason = strdup(reason);
        atomic_store_explicit(&device->status, (int)status,
                              memory_order_release);
        atomic_fetch_add(&device->table->changes, 1);
        cg_log_line(&device->table->log, CELLGATE_LOG_DEBUG,
                    "device %s is out of service: %s", device->name, reason);
    }
    pthread_mutex_unlock(&device->reason_mutex);
}

/* ---- Opening ----------------------------------------------------------- */

/* Whether the plugin still offers what its verdict says. */
static cellgate_status check_still_there(const cg_device *device,
                                         const cellgate_plugin *ops,
                                         cellgate_instance *instance,
                                         cellgate_error *error)
{
    cellgate_device_description now = { .struct_size = sizeof now };
    uint32_t count = ops->device_count(instance);
    cellgate_status status;

    if (device->index >= count)
        return cellgate_fail(error, CELLGATE_NO_DEVICE,
                             "the plugin has %u devices now, and had %u when "
                             "it was probed",
                             count, device->found->verdict->device_count);
    status = ops->device_describe(instance, device->index, &now, error);
    if (status != CELLGATE_OK)
        return status;
    now.resource[sizeof now.resource - 1] = '\0';
    if (strcmp(now.resource, device->description.resource) != 0)
        return cellgate_fail(error, CELLGATE_NO_DEVICE,
                             "the plugin's device %u is on %s now, and was on "
                             "%s when it was probed",
                             device->index, now.resource,
                             device->description.resource);
    return CELLGATE_OK;
}

/*
 * What the plugin says now is not what the verdict says: a driver changed in a
 * way that the cache couldn't see. The next runtime probes again.
 */
static void distrust(const cg_device *device)
{
    cg_verdict_cache *cache;

    if (!device->found->cached)
        return;
    cache = cg_verdict_cache_open(&device->table->log);
    cg_verdict_cache_drop(cache, device->found->path);
    cg_verdict_cache_close(cache);
}

static cellgate_status open_device(cg_device *device, cellgate_error *error)
{
    const cg_config *config = device->table->config;
    const cellgate_plugin *ops = NULL;
    cellgate_instance *instance = NULL;
    cellgate_settings *settings = NULL;
    cellgate_device *handle = NULL;
    cellgate_status status = cg_loaded_use(
        device->found->path, &device->found->user, &ops, &instance, error);

    if (status == CELLGATE_OK)
        status = check_still_there(device, ops, instance, error);
    if (status != CELLGATE_OK)
        distrust(device);
    if (status == CELLGATE_OK)
        status = cg_settings_create(config, device->section, ops->keys,
                                    ops->key_count, &settings, error);
    if (status == CELLGATE_OK)
        status =
            ops->device_open(instance, device->index, settings, &handle, error);
    if (status != CELLGATE_OK) {
        cg_settings_destroy(settings);
        return status;
    }
    device->ops = ops;
    device->settings = settings;
    device->handle = handle;
    return CELLGATE_OK;
}

/* What may be otherwise a moment later says nothing of the device. */
static bool may_pass(cellgate_status status)
{
    return status == CELLGATE_NO_MEMORY || status == CELLGATE_DEVICE_MEMORY ||
           status == CELLGATE_BUSY;
}

cellgate_status cg_device_open(cg_device *device, const cellgate_plugin **ops,
                               cellgate_device **handle, cellgate_error *error)
{
    cellgate_error failure = CELLGATE_ERROR_INIT;
    cellgate_status status = cg_device_usable(device, error);

    if (status != CELLGATE_OK)
        return status;
    pthread_mutex_lock(&device->open_mutex);
    status = cg_device_usable(device, error);
    if (status == CELLGATE_OK && device->handle == NULL) {
        status = open_device(device, &failure);
        failure.text[sizeof failure.text - 1] = '\0';
        if (may_pass(status)) {
            (void)cellgate_fail(error, status, "device %s: %s", device->name,
                                failure.text[0] != '\0'
                                    ? failure.text
                                    : cellgate_status_text(status));
        } else if (status != CELLGATE_OK) {
            cg_device_quarantine(device, status,
                                 failure.text[0] != '\0'
                                     ? failure.text
                                     : "it cannot be opened, and its plugin "
                                       "says no reason");
            (void)cg_device_usable(device, error);
        }
    }
    if (status == CELLGATE_OK) {
        *ops = device->ops;
        *handle = device->handle;
    }
    pthread_mutex_unlock(&device->open_mutex);
    return status;
}

/* ---- Threads ----------------------------------------------------------- */

uint32_t cg_device_thread_budget(const cg_device *device)
{
    return device->thread_limit;
}

void cg_device_threads_acquire(cg_device *device, uint32_t threads)
{
    if (device->budget != NULL && !cg_process_forked())
        cg_thread_budget_acquire(device->budget, device->thread_limit, threads);
}

bool cg_device_threads_try(cg_device *device, uint32_t threads)
{
    return device->budget == NULL || cg_process_forked() ||
           cg_thread_budget_try(device->budget, device->thread_limit, threads);
}

void cg_device_threads_release(cg_device *device, uint32_t threads)
{
    if (device->budget != NULL && !cg_process_forked())
        cg_thread_budget_release(device->budget, device->thread_limit, threads);
}
