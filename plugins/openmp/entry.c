/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "plugins/openmp/device.h"
#include "plugins/openmp/plan.h"
#include "plugins/openmp/segment.h"

static const cellgate_key keys[] = {
    { sizeof(cellgate_key), "level", CELLGATE_KEY_CHOICE, "auto",
      CPU_LEVEL_CHOICES, 0, 0,
      "instruction set of the kernels; auto takes the best" },
    { sizeof(cellgate_key), "threads", CELLGATE_KEY_INTEGER, "0", NULL, 0, 4096,
      "most threads that a run uses; 0: all that the host grants" },
};

/* By their threads, and the type of the weights. */
static const char *const variant_names[] = { "t*", NULL };

static cellgate_status init(const cellgate_host *host,
                            cellgate_instance **instance, cellgate_error *error)
{
    cellgate_instance *made = host->allocate(
        host->context, _Alignof(cellgate_instance), sizeof *made);

    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    made->host = host;
    *instance = made;
    return CELLGATE_OK;
}

static void finish(cellgate_instance *instance)
{
    instance->host->release(instance->host->context, instance);
}

static uint32_t device_count(cellgate_instance *instance)
{
    (void)instance;
    return 1;
}

/* ---- Description ------------------------------------------------------- */

/* The text after "model name :" in /proc/cpuinfo. */
static bool read_model_name(char *name, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');

        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        colon += strspn(colon, ": \t");
        colon[strcspn(colon, "\n")] = '\0';
        (void)snprintf(name, size, "%s", colon);
        found = true;
    }
    if (file)
        (void)fclose(file);
    return found;
}

static void describe_name(cellgate_device_description *description)
{
    struct utsname system;

    if (read_model_name(description->name, sizeof description->name))
        return;
    (void)snprintf(description->name, sizeof description->name, "%s CPU",
                   uname(&system) == 0 ? system.machine : "unknown");
}

static void describe_level(cellgate_device_description *description,
                           const char *level)
{
    const struct cpu_kernels *unproved = cpu_level_unproved();

    if (unproved)
        (void)snprintf(description->driver, sizeof description->driver,
                       "%s (level = %s has only run in emulation)", level,
                       unproved->name);
    else
        (void)snprintf(description->driver, sizeof description->driver, "%s",
                       level);
}

static uint64_t memory_size(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

static cellgate_status device_describe(cellgate_instance *instance,
                                       uint32_t index,
                                       cellgate_device_description *out,
                                       cellgate_error *error)
{
    const cellgate_host *host = instance->host;
    const char *level = cpu_level("auto", CPU_PACK_F32)->name;
    cellgate_device_description known = { .struct_size = sizeof known };

    if (index != 0)
        return cellgate_fail(error, CELLGATE_INVALID, "no device %u", index);
    describe_name(&known);
    describe_level(&known, level);
    (void)snprintf(known.resource, sizeof known.resource, "%s", CPU_RESOURCE);
    (void)snprintf(known.identity, sizeof known.identity, "%s/%s/%s", level,
                   known.name, PACKAGE_VERSION);
    known.kind = CELLGATE_DEVICE_CPU;
    known.flags = CELLGATE_DEVICE_ON_CALLER;
    known.memory = memory_size();
    known.queue_depth = host->thread_budget(host->context, CPU_RESOURCE);
    cellgate_struct_copy(out, &known);
    return CELLGATE_OK;
}

/* ---- Opening ----------------------------------------------------------- */

static cellgate_status choose_level(cellgate_device *device, const char *level,
                                    cellgate_error *error)
{
    int pack;

    for (pack = 0; pack < CPU_PACKS; pack++)
        device->kernels[pack] = cpu_level(level, (enum cpu_pack)pack);
    if (!device->kernels[CPU_PACK_F32])
        return cellgate_fail(error, CELLGATE_BAD_CONFIG,
                             "level = %s: this machine or this build does not "
                             "have it; level = auto takes the best it has",
                             level);
    return CELLGATE_OK;
}

/* Never more than the host grants. */
static uint32_t choose_threads(const cellgate_host *host, const char *wanted)
{
    uint32_t granted = host->thread_budget(host->context, CPU_RESOURCE);
    long most = strtol(wanted, NULL, 10);

    return most > 0 && most < (long)granted ? (uint32_t)most : granted;
}

static void device_close(cellgate_device *device)
{
    if (!device)
        return;
    cpu_team_destroy(device->team);
    device->host->release(device->host->context, device);
}

static cellgate_status device_open(cellgate_instance *instance, uint32_t index,
                                   const cellgate_settings *settings,
                                   cellgate_device **device,
                                   cellgate_error *error)
{
    const cellgate_host *host = instance->host;
    cellgate_device *made;
    cellgate_status status;

    if (index != 0)
        return cellgate_fail(error, CELLGATE_INVALID, "no device %u", index);
    made =
        host->allocate(host->context, _Alignof(cellgate_device), sizeof *made);
    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    memset(made, 0, sizeof *made);
    made->host = host;
    made->threads =
        choose_threads(host, host->setting(host->context, settings, "threads"));
    status = choose_level(made, host->setting(host->context, settings, "level"),
                          error);
    if (status == CELLGATE_OK && made->threads > 1)
        status = cpu_team_create(host, made->threads, &made->team, error);
    if (status == CELLGATE_OK)
        *device = made;
    else
        device_close(made);
    return status;
}

/* ---- The table --------------------------------------------------------- */

static const cellgate_plugin table = {
    .magic = CELLGATE_PLUGIN_MAGIC,
    .abi_version = CELLGATE_ABI_VERSION,
    .struct_size = sizeof table,
    .name = "openmp",
    .version = PACKAGE_VERSION,
    .build = "openmp " PACKAGE_VERSION ", " __VERSION__,
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .init = init,
    .finish = finish,
    .device_count = device_count,
    .device_describe = device_describe,
    .device_open = device_open,
    .device_close = device_close,
    .support = cpu_support,
    .prepare = cpu_prepare,
    .weights_free = cpu_weights_free,
    .plan_create = cpu_plan_create,
    .plan_destroy = cpu_plan_destroy,
    .run = cpu_run,
    .variants = variant_names,
};

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    const bool talks =
        lowest <= table.abi_version && table.abi_version <= highest;

    return talks ? &table : NULL;
}
