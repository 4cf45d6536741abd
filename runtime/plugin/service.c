/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a device is in service, why not, and when it is tried again. Who
 * tries it is another room's business.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/plugin/table.h"

/* Failures count for a minute; pauses grow to an hour; a device that hangs the
   third time is not tried again: each hang costs a thread and what it uses. */
#define WINDOW 60
#define LONGEST_PAUSE 3600
#define HANGS_MOST 3

bool cg_service_init(cg_device *device)
{
    const cg_config *config = device->table->config;

    atomic_init(&device->status, CELLGATE_OK);
    device->retry = HUGE_VAL;
    device->breaker = (cg_breaker){ .failures = config->failures,
                                    .window = WINDOW,
                                    .pause = config->readmit,
                                    .longest = LONGEST_PAUSE };
    return pthread_mutex_init(&device->service_mutex, NULL) == 0;
}

void cg_service_finish(cg_device *device, bool forked)
{
    if (!forked)
        pthread_mutex_destroy(&device->service_mutex);
    while (device->reasons != NULL) {
        cg_reason *next = device->reasons->next;

        free(device->reasons);
        device->reasons = next;
    }
}

static cellgate_status status_of(const cg_device *device)
{
    return (cellgate_status)atomic_load_explicit(&device->status,
                                                 memory_order_acquire);
}

static double now(const cg_device *device)
{
    return cg_now(device->table->clock);
}

/* ---- Texts; the mutex is held -------------------------------------------- */

/* The same text kept, now or before; NULL without memory. */
static const char *keep_reason(cg_device *device, const char *text)
{
    const size_t size = strlen(text) + 1;
    cg_reason *kept = device->reasons;

    while (kept != NULL && strcmp(kept->text, text) != 0)
        kept = kept->next;
    if (kept != NULL)
        return kept->text;
    kept = malloc(sizeof *kept + size);
    if (kept == NULL)
        return NULL;
    memcpy(kept->text, text, size);
    kept->next = device->reasons;
    device->reasons = kept;
    return kept->text;
}

static const char *reason_of(const cg_device *device, cellgate_status status)
{
    if (status == CELLGATE_OK)
        return "";
    return device->reason != NULL ? device->reason
                                  : cellgate_status_text(status);
}

/* "; it is tried again in 30 s"; nothing for what was never in service. */
static void retry_text(const cg_device *device, char *text, size_t size)
{
    text[0] = '\0';
    if (isfinite(device->retry))
        (void)snprintf(text, size, "; it is tried again in %.3g s",
                       fmax(device->retry - now(device), 0));
    else if (device->out)
        (void)snprintf(text, size, "; it is not tried again");
}

/* ---- In service? --------------------------------------------------------- */

static pthread_mutex_t *mutex_of(const cg_device *device)
{
    return (pthread_mutex_t *)(uintptr_t)&device->service_mutex;
}

void cg_device_info_get(const cg_device *device, cellgate_device_info *info)
{
    const cellgate_device_description *about = &device->description;
    cellgate_device_info full = { .struct_size = sizeof full };
    cellgate_status status;

    /* A child's mutex may be held for good. */
    if (!cg_process_forked())
        pthread_mutex_lock(mutex_of(device));
    status = status_of(device);
    full.status = (int32_t)status;
    full.reason = reason_of(device, status);
    full.retry_seconds = -1;
    if (status != CELLGATE_OK && device->out)
        full.out_seconds = now(device) - device->since;
    if (status != CELLGATE_OK && isfinite(device->retry))
        full.retry_seconds = fmax(device->retry - now(device), 0);
    if (!cg_process_forked())
        pthread_mutex_unlock(mutex_of(device));
    full.name = device->name;
    full.plugin = device->plugin;
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
    char retry[64];

    if (status != CELLGATE_OK)
        return status;
    status = status_of(device);
    if (status == CELLGATE_OK || error == NULL)
        return status;
    pthread_mutex_lock(mutex_of(device));
    status = status_of(device);
    retry_text(device, retry, sizeof retry);
    if (status != CELLGATE_OK)
        (void)cellgate_fail(error, status, "device %s: %s%s", device->name,
                            reason_of(device, status), retry);
    pthread_mutex_unlock(mutex_of(device));
    return status;
}

double cg_device_retry_in(const cg_device *device)
{
    double left = HUGE_VAL;

    pthread_mutex_lock(mutex_of(device));
    if (status_of(device) != CELLGATE_OK && isfinite(device->retry))
        left = device->retry - now(device);
    pthread_mutex_unlock(mutex_of(device));
    return left;
}

/* ---- Out of service ------------------------------------------------------ */

/* What may be otherwise the next time. */
static bool may_come_back(cellgate_status status)
{
    return status == CELLGATE_DEVICE_LOST || status == CELLGATE_DEVICE_FAILED ||
           status == CELLGATE_TIMEOUT || status == CELLGATE_NO_DEVICE;
}

/* With the mutex held. */
static void set_retry(cg_device *device, cellgate_status status, bool for_good)
{
    const double pause = cg_breaker_out(&device->breaker, now(device));

    if (status == CELLGATE_TIMEOUT)
        device->hangs++;
    device->retry =
        for_good || !may_come_back(status) || device->hangs >= HANGS_MOST
            ? HUGE_VAL
            : now(device) + pause;
}

static void tell_out(const cg_device *device, const char *reason)
{
    char retry[64];

    retry_text(device, retry, sizeof retry);
    cg_log_line(&device->table->log,
                device->out ? CELLGATE_LOG_WARNING : CELLGATE_LOG_DEBUG,
                "device %s is out of service: %s%s", device->name, reason,
                retry);
}

/* With the mutex held; whether it was in service. */
static bool take_out(cg_device *device, uint64_t epoch, cellgate_status status,
                     const char *reason, bool for_good)
{
    cg_opening *opening = atomic_load(&device->opening);

    if (status_of(device) != CELLGATE_OK || epoch != cg_device_epoch(device))
        return false;
    device->out = epoch > 0;
    device->since = now(device);
    device->reason = keep_reason(device, reason);
    set_retry(device, status, for_good);
    if (status == CELLGATE_TIMEOUT && opening != NULL)
        atomic_store(&opening->hung, true);
    atomic_store_explicit(&device->status, (int)status, memory_order_release);
    atomic_fetch_add(&device->table->changes, 1);
    tell_out(device, reason);
    return true;
}

static void notify(cg_device_table *table)
{
    pthread_mutex_lock(&table->watch_mutex);
    if (table->notify != NULL)
        table->notify(table->notify_context);
    pthread_mutex_unlock(&table->watch_mutex);
}

void cg_device_quarantine(cg_device *device, uint64_t epoch,
                          cellgate_status status, const char *reason)
{
    bool taken;

    if (cg_process_forked())
        return;
    if (status == CELLGATE_OK)
        status = CELLGATE_INTERNAL;
    pthread_mutex_lock(&device->service_mutex);
    taken = take_out(device, epoch, status, reason, false);
    pthread_mutex_unlock(&device->service_mutex);
    if (taken)
        notify(device->table);
}

void cg_device_exclude(cg_device *device, cellgate_status status,
                       const char *reason)
{
    pthread_mutex_lock(&device->service_mutex);
    (void)take_out(device, 0, status, reason, true);
    pthread_mutex_unlock(&device->service_mutex);
}

void cg_device_run_failed(cg_device *device, uint64_t epoch,
                          cellgate_status status, const char *reason)
{
    bool too_many;
    char text[400];

    if (status == CELLGATE_DEVICE_LOST)
        cg_device_quarantine(device, epoch, status, reason);
    if (status != CELLGATE_DEVICE_FAILED || cg_process_forked())
        return;
    pthread_mutex_lock(&device->service_mutex);
    too_many = epoch == cg_device_epoch(device) &&
               cg_breaker_failed(&device->breaker, now(device));
    pthread_mutex_unlock(&device->service_mutex);
    if (!too_many)
        return;
    (void)snprintf(text, sizeof text,
                   "%u of its runs failed within %d s ([scheduler] failures), "
                   "the last one: %.200s",
                   device->breaker.failures, WINDOW, reason);
    cg_device_quarantine(device, epoch, status, text);
}

/* ---- And back ------------------------------------------------------------ */

void cg_device_readmit(cg_device *device, cg_opening *opening)
{
    cg_opening *before;

    pthread_mutex_lock(&device->open_mutex);
    pthread_mutex_lock(&device->service_mutex);
    before = atomic_exchange(&device->opening, opening);
    cg_breaker_back(&device->breaker, now(device));
    atomic_store_explicit(&device->epoch, opening->epoch, memory_order_release);
    atomic_store_explicit(&device->status, CELLGATE_OK, memory_order_release);
    atomic_fetch_add(&device->table->changes, 1);
    cg_log_line(&device->table->log, CELLGATE_LOG_WARNING,
                "device %s is in service again, after %.3g s: what it computes "
                "was checked",
                device->name, now(device) - device->since);
    pthread_mutex_unlock(&device->service_mutex);
    pthread_mutex_unlock(&device->open_mutex);
    cg_opening_release(before);
}

void cg_device_stay_out(cg_device *device, cellgate_status status,
                        const char *reason, bool for_good)
{
    char text[400];

    pthread_mutex_lock(&device->service_mutex);
    (void)snprintf(text, sizeof text, "it was tried again in vain: %.300s",
                   reason);
    device->reason = keep_reason(device, text);
    set_retry(device, status, for_good);
    tell_out(device, text);
    pthread_mutex_unlock(&device->service_mutex);
}

void cg_device_table_watch(cg_device_table *table,
                           void (*notifier)(void *context), void *context)
{
    pthread_mutex_lock(&table->watch_mutex);
    table->notify = notifier;
    table->notify_context = context;
    pthread_mutex_unlock(&table->watch_mutex);
}
