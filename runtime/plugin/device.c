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
    atomic_init(&device->epoch, 0);
    atomic_init(&device->opening, NULL);
    device->name = strdup(name);
    if (device->name == NULL)
        return false;
    if (!cg_service_init(device)) {
        free(device->name);
        return false;
    }
    if (pthread_mutex_init(&device->open_mutex, NULL) != 0) {
        cg_service_finish(device, false);
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
        cg_opening_release(atomic_load(&device->opening));
        cg_thread_budget_put(device->budget);
        pthread_mutex_destroy(&device->open_mutex);
    }
    cg_service_finish(device, forked);
    cg_device_forget_identity(device);
    cg_settings_destroy(device->settings);
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

/* Once: two openings of a device are set alike. */
static cellgate_status make_settings(cg_device *device,
                                     const cellgate_plugin *ops,
                                     cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (device->settings == NULL)
        status = cg_settings_create(device->table->config, device->section,
                                    ops->keys, ops->key_count,
                                    &device->settings, error);
    return status;
}

static cellgate_status opening_create(const cellgate_plugin *ops,
                                      cellgate_device *handle,
                                      cg_opening **opening,
                                      cellgate_error *error)
{
    cg_opening *made = calloc(1, sizeof *made);

    if (made == NULL) {
        ops->device_close(handle);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for an open device");
    }
    made->ops = ops;
    made->handle = handle;
    atomic_init(&made->references, 1);
    atomic_init(&made->hung, false);
    *opening = made;
    return CELLGATE_OK;
}

cg_opening *cg_opening_reference(cg_opening *opening)
{
    (void)atomic_fetch_add_explicit(&opening->references, 1,
                                    memory_order_relaxed);
    return opening;
}

void cg_opening_release(cg_opening *opening)
{
    if (opening == NULL || cg_process_forked() ||
        atomic_fetch_sub_explicit(&opening->references, 1,
                                  memory_order_acq_rel) != 1)
        return;
    opening->ops->device_close(opening->handle);
    free(opening);
}

/* With the open mutex held. */
static cellgate_status open_device(cg_device *device, cg_opening **opening,
                                   cellgate_error *error)
{
    const cellgate_plugin *ops = NULL;
    cellgate_instance *instance = NULL;
    cellgate_device *handle = NULL;
    cellgate_status status;

    if (device->found == NULL)
        return cellgate_fail(error, CELLGATE_NO_DEVICE, "it has no plugin");
    status = cg_loaded_use(device->found->path, &device->found->user, &ops,
                           &instance, error);
    if (status == CELLGATE_OK)
        status = check_still_there(device, ops, instance, error);
    if (status != CELLGATE_OK)
        distrust(device);
    if (status == CELLGATE_OK)
        status = make_settings(device, ops, error);
    if (status == CELLGATE_OK)
        status = ops->device_open(instance, device->index, device->settings,
                                  &handle, error);
    if (status == CELLGATE_OK)
        status = opening_create(ops, handle, opening, error);
    if (status == CELLGATE_OK)
        device->ops = ops;
    return status;
}

/* What may be otherwise a moment later says nothing of the device. */
static bool may_pass(cellgate_status status)
{
    return status == CELLGATE_NO_MEMORY || status == CELLGATE_DEVICE_MEMORY ||
           status == CELLGATE_BUSY;
}

/* Says what the plugin said, or that it said nothing. */
static const char *cause(cellgate_error *failure, const char *otherwise)
{
    failure->text[sizeof failure->text - 1] = '\0';
    return failure->text[0] != '\0' ? failure->text : otherwise;
}

static cellgate_status open_first(cg_device *device, cg_opening **opening,
                                  cellgate_error *error)
{
    cellgate_error failure = CELLGATE_ERROR_INIT;
    const double start = cg_now(device->table->clock);
    cellgate_status status = open_device(device, opening, &failure);

    if (status == CELLGATE_OK) {
        (*opening)->seconds = cg_now(device->table->clock) - start;
        (*opening)->epoch = 1;
        atomic_store(&device->opening, *opening);
        atomic_store_explicit(&device->epoch, 1, memory_order_release);
    } else if (may_pass(status)) {
        (void)cellgate_fail(error, status, "device %s: %s", device->name,
                            cause(&failure, cellgate_status_text(status)));
    } else {
        cg_device_quarantine(device, 0, status,
                             cause(&failure, "it cannot be opened, and its "
                                             "plugin says no reason"));
        (void)cg_device_usable(device, error);
    }
    return status;
}

cellgate_status cg_device_open(cg_device *device, cg_opening **opening,
                               cellgate_error *error)
{
    cellgate_status status = cg_device_usable(device, error);
    cg_opening *current;

    if (status != CELLGATE_OK)
        return status;
    pthread_mutex_lock(&device->open_mutex);
    status = cg_device_usable(device, error);
    current = atomic_load(&device->opening);
    if (status == CELLGATE_OK && current == NULL)
        status = open_first(device, &current, error);
    if (status == CELLGATE_OK)
        *opening = cg_opening_reference(current);
    pthread_mutex_unlock(&device->open_mutex);
    return status;
}

cellgate_status cg_device_reopen(cg_device *device, cg_opening **opening,
                                 cellgate_error *error)
{
    cellgate_error failure = CELLGATE_ERROR_INIT;
    cellgate_status status = cg_process_check(error);

    if (status != CELLGATE_OK)
        return status;
    pthread_mutex_lock(&device->open_mutex);
    status = open_device(device, opening, &failure);
    if (status == CELLGATE_OK)
        (*opening)->epoch = atomic_load(&device->epoch) + 1;
    pthread_mutex_unlock(&device->open_mutex);
    if (status != CELLGATE_OK)
        return cellgate_fail(error, status, "it cannot be opened: %s",
                             cause(&failure, "its plugin says no reason"));
    return CELLGATE_OK;
}

uint64_t cg_device_epoch(const cg_device *device)
{
    return atomic_load_explicit(&device->epoch, memory_order_acquire);
}

/* ---- Threads ----------------------------------------------------------- */

uint32_t cg_device_thread_budget(const cg_device *device)
{
    return device->thread_limit;
}

bool cg_device_excludes(const cg_device *device, const char *variant,
                        char *text, size_t size)
{
    if (!cg_settings_excludes(device->settings, variant))
        return false;
    (void)snprintf(text, size, "exclude in [device %s] leaves it out",
                   device->name);
    return true;
}

const char *cg_device_needs_precision(const cg_device *device, int32_t numeric)
{
    const cg_precision precision = device->table->config->precision;

    if (numeric == CELLGATE_NUMERIC_F32)
        return NULL;
    if (numeric == CELLGATE_NUMERIC_INT8)
        return precision == CG_PRECISION_INT8 ? NULL : "int8";
    return precision == CG_PRECISION_FLOAT32 ? "mixed" : NULL;
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
