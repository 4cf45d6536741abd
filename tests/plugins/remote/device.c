/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/plugins/remote/device.h"

#define PINNED_ALIGNMENT 4096

#define KEY(key, kind, initial, low, high, text)                               \
    {                                                                          \
        .struct_size = sizeof(cellgate_key), .name = key, .type = kind,        \
        .default_text = initial, .minimum = low, .maximum = high, .help = text \
    }

const cellgate_key remote_keys[REMOTE_KEY_COUNT] = {
    KEY("memory", CELLGATE_KEY_SIZE, REMOTE_DEFAULT_MEMORY, REMOTE_GRANULE,
        INT64_C(1) << 40, "bytes of device memory"),
    KEY("latency", CELLGATE_KEY_SECONDS, "0", 0, 0, "time added to each run"),
    KEY("prepare", CELLGATE_KEY_SECONDS, "0", 0, 0,
        "time added to laying out weights"),
    KEY("require_pinned", CELLGATE_KEY_BOOLEAN, "no", 0, 0,
        "fail a run over memory that host_allocate() did not give"),
    { .struct_size = sizeof(cellgate_key),
      .name = "variants",
      .type = CELLGATE_KEY_CHOICE,
      .default_text = "all",
      .choices = "all|batch|exact|any|bf16",
      .help = "offer only this variant" },
    KEY("refused", CELLGATE_KEY_TEXT, "", 0, 0,
        "this variant turns out not to run when weights are prepared"),
    KEY("lose_after", CELLGATE_KEY_INTEGER, "0", 0, INT64_MAX,
        "the device is lost at this run and stays lost; 0 is never"),
    KEY("hang_at", CELLGATE_KEY_INTEGER, "0", 0, INT64_MAX,
        "this run hangs, and loses the device in the end; 0 is never"),
    KEY("hang_for", CELLGATE_KEY_SECONDS, "60", 0, 0,
        "how long a hung run hangs"),
    KEY("fail_at", CELLGATE_KEY_INTEGER, "0", 0, INT64_MAX,
        "this run fails, the others do not; 0 is never"),
    KEY("fail_percent", CELLGATE_KEY_INTEGER, "0", 0, 100,
        "so many runs in a hundred fail, at random: before, during or after"),
    KEY("lose_percent", CELLGATE_KEY_INTEGER, "0", 0, 100,
        "so many beside those lose the device, likewise"),
    KEY("fault_seed", CELLGATE_KEY_INTEGER, "1", 0, INT64_MAX,
        "where the random numbers begin"),
    KEY("max_batch", CELLGATE_KEY_INTEGER, "0", 0, INT64_MAX,
        "a larger batch is refused; 0: none is"),
    KEY("wrong_at", CELLGATE_KEY_INTEGER, "0", 0, INT64_MAX,
        "the results of this run are off by 1%; 0 is never"),
    KEY("wrong", CELLGATE_KEY_BOOLEAN, "no", 0, 0,
        "the results of every run are off by 1%"),
    KEY("simulate", CELLGATE_KEY_BOOLEAN, "no", 0, 0,
        "runs take the time that the keys below say"),
    KEY("launch", CELLGATE_KEY_SECONDS, "0.00003", 0, 0, "time a run"),
    KEY("step", CELLGATE_KEY_SECONDS, "0.000003", 0, 0, "time a step"),
    KEY("large_batch", CELLGATE_KEY_INTEGER, "0", 0, INT64_MAX,
        "from this batch on a step takes large_step; 0 is never"),
    KEY("large_step", CELLGATE_KEY_SECONDS, "0", 0, 0, "see large_batch"),
    KEY("tile", CELLGATE_KEY_INTEGER, "1", 1, 65536,
        "the batch counts as a multiple of this"),
    KEY("bus", CELLGATE_KEY_SIZE, "6000000000", 0, INT64_MAX,
        "bytes a second between host and device; 0 takes no time"),
    KEY("rate", CELLGATE_KEY_SIZE, "2000000000000", 0, INT64_MAX,
        "operations a second; 0 takes no time"),
    KEY("noise", CELLGATE_KEY_INTEGER, "0", 0, 100,
        "deviation of a run's time, in percent"),
    KEY("compute_most", CELLGATE_KEY_SIZE, "0", 0, INT64_MAX,
        "simulated runs with more operations are not computed; 0: all are"),
    KEY("idle_after", CELLGATE_KEY_SECONDS, "0", 0, 0, "see idle_penalty"),
    KEY("idle_penalty", CELLGATE_KEY_SECONDS, "0", 0, 0,
        "time added to a run that finds the device idle for idle_after"),
};

uint32_t remote_device_count(cellgate_instance *instance)
{
    (void)instance;
    return REMOTE_DEVICE_COUNT;
}

cellgate_status remote_device_describe(cellgate_instance *instance,
                                       uint32_t index,
                                       cellgate_device_description *out,
                                       cellgate_error *error)
{
    static const char *const resources[REMOTE_DEVICE_COUNT] = {
        "pci:0000:7f:00.0", "pci:0000:80:00.0", "pci:0000:81:00.0"
    };
    cellgate_device_description card = { .struct_size = sizeof card };

    (void)instance;
    if (index >= REMOTE_DEVICE_COUNT)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "there is no device %u, only 0 to 2",
                             (unsigned)index);
    (void)snprintf(card.name, sizeof card.name, "Remote stand-in %u",
                   (unsigned)index);
    (void)snprintf(card.vendor, sizeof card.vendor, "Cellgate");
    (void)snprintf(card.driver, sizeof card.driver, "%s", PACKAGE_VERSION);
    (void)snprintf(card.resource, sizeof card.resource, "%s", resources[index]);
    (void)snprintf(card.identity, sizeof card.identity,
                   "remote stand-in, driver %s, 2 queues", PACKAGE_VERSION);
    card.kind = CELLGATE_DEVICE_ACCELERATOR;
    card.memory = strtoull(REMOTE_DEFAULT_MEMORY, NULL, 10);
    card.queue_depth = REMOTE_QUEUE_DEPTH;
    cellgate_struct_copy(out, &card);
    return CELLGATE_OK;
}

static const char *setting(const cellgate_device *device,
                           const cellgate_settings *settings, const char *key)
{
    return device->host->setting(device->host->context, settings, key);
}

cellgate_status remote_check_batch(const cellgate_device *device, int64_t batch,
                                   cellgate_error *error)
{
    if (device->max_batch == 0 || batch <= device->max_batch)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                           "batch %lld is above max_batch = %lld",
                           (long long)batch, (long long)device->max_batch);
}

static cellgate_status start(cellgate_device *device,
                             const cellgate_settings *settings,
                             cellgate_error *error)
{
    size_t memory = strtoull(setting(device, settings, "memory"), NULL, 10);
    cellgate_status status;

    remote_faults_init(&device->faults, device->host, settings);
    remote_simulation_init(&device->simulation, device->host, settings);
    device->variants = setting(device, settings, "variants");
    device->refused = setting(device, settings, "refused");
    atomic_init(&device->prepared, false);
    device->max_batch =
        strtoll(setting(device, settings, "max_batch"), NULL, 10);
    device->require_pinned =
        strcmp(setting(device, settings, "require_pinned"), "yes") == 0;
    device->process = getpid();

    status = remote_memory_init(&device->memory, memory, device->host, error);
    if (status != CELLGATE_OK)
        return status;
    status = remote_queue_init(&device->queue, error);
    if (status != CELLGATE_OK) {
        remote_memory_finish(&device->memory);
        return status;
    }
    pthread_mutex_init(&device->pinned_lock, NULL);
    return CELLGATE_OK;
}

cellgate_status remote_device_open(cellgate_instance *instance, uint32_t index,
                                   const cellgate_settings *settings,
                                   cellgate_device **device,
                                   cellgate_error *error)
{
    cellgate_device *opened;
    cellgate_status status;

    if (index >= REMOTE_DEVICE_COUNT)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "there is no device %u, only 0 and 1",
                             (unsigned)index);
    opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a device");
    opened->host = &instance->host;
    status = start(opened, settings, error);
    if (status != CELLGATE_OK) {
        free(opened);
        return status;
    }
    *device = opened;
    return CELLGATE_OK;
}

void remote_device_close(cellgate_device *device)
{
    if (device == NULL)
        return;
    remote_queue_finish(&device->queue);
    remote_memory_finish(&device->memory);
    if (device->pinned != NULL)
        device->host->log(device->host->context, CELLGATE_LOG_ERROR,
                          "remote: pinned host memory was never released");
    while (device->pinned != NULL)
        remote_host_release(device, device->pinned->base);
    pthread_mutex_destroy(&device->pinned_lock);
    free(device);
}

cellgate_status remote_device_check(cellgate_device *device,
                                    cellgate_error *error)
{
    if (device->process != getpid())
        return cellgate_fail(error, CELLGATE_FORKED,
                             "the device was opened before fork(); open it "
                             "again in the child");
    return remote_faults_check(&device->faults, error);
}

void *remote_host_allocate(cellgate_device *device, size_t size)
{
    struct remote_pinned *pinned = malloc(sizeof *pinned);

    if (pinned == NULL)
        return NULL;
    pinned->base =
        device->host->allocate(device->host->context, PINNED_ALIGNMENT, size);
    pinned->size = size;
    if (pinned->base == NULL) {
        free(pinned);
        return NULL;
    }
    pthread_mutex_lock(&device->pinned_lock);
    pinned->next = device->pinned;
    device->pinned = pinned;
    pthread_mutex_unlock(&device->pinned_lock);
    return pinned->base;
}

void remote_host_release(cellgate_device *device, void *memory)
{
    struct remote_pinned **link = &device->pinned, *found;

    if (memory == NULL)
        return;
    pthread_mutex_lock(&device->pinned_lock);
    while (*link != NULL && (*link)->base != memory)
        link = &(*link)->next;
    found = *link;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&device->pinned_lock);
    if (found == NULL) {
        device->host->log(device->host->context, CELLGATE_LOG_ERROR,
                          "remote: release of host memory that "
                          "host_allocate() did not give");
        return;
    }
    device->host->release(device->host->context, found->base);
    free(found);
}

bool remote_device_pinned(cellgate_device *device, const void *memory,
                          size_t bytes)
{
    const struct remote_pinned *pinned;
    uintptr_t begin = (uintptr_t)memory;
    bool inside = false;

    pthread_mutex_lock(&device->pinned_lock);
    for (pinned = device->pinned; pinned != NULL; pinned = pinned->next) {
        uintptr_t base = (uintptr_t)pinned->base;
        inside = inside || (begin >= base && bytes <= pinned->size &&
                            begin - base <= pinned->size - bytes);
    }
    pthread_mutex_unlock(&device->pinned_lock);
    return inside;
}

uint64_t remote_device_memory_used(cellgate_device *device)
{
    return remote_memory_used(&device->memory);
}
