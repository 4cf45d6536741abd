/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices the configuration asks for: those of its sections, in the
 * file's order, and then those that no section names.
 */
#include "config.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/config/exclude.h"
#include "runtime/plugin/table.h"

#ifndef FNM_CASEFOLD
#define FNM_CASEFOLD 0
#endif

/* The admitted plugin of that name, or NULL. */
static cg_found *find_plugin(const cg_device_table *table, const char *name)
{
    size_t i;

    for (i = 0; i < table->search.file_count; i++)
        if (table->found[i].verdict->status == CELLGATE_OK &&
            strcmp(table->found[i].verdict->name, name) == 0)
            return &table->found[i];
    return NULL;
}

/* A file that is not admitted and by its table's or its own name is `name`. */
static const cg_found *find_broken(const cg_device_table *table,
                                   const char *name)
{
    size_t length = strlen(name);
    size_t i;

    for (i = 0; i < table->search.file_count; i++) {
        const cg_found *found = &table->found[i];
        const char *base = strrchr(found->path, '/');
        base = base != NULL ? base + 1 : found->path;
        if (found->verdict->status != CELLGATE_OK &&
            (strcmp(found->verdict->name, name) == 0 ||
             (strncmp(base, name, length) == 0 &&
              strcmp(base + length, ".so") == 0)))
            return found;
    }
    return NULL;
}

static bool matches(const cellgate_device_description *device,
                    const char *pattern)
{
    const char *const texts[] = { device->name, device->vendor, device->driver,
                                  device->resource, device->identity };
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (fnmatch(pattern, texts[i], FNM_CASEFOLD) == 0)
            return true;
    return false;
}

/* The plugin's device that the section means; false if there is none. */
static bool choose(const cg_found *found, const cg_device_section *section,
                   uint32_t *index)
{
    const cg_verdict *verdict = found->verdict;
    int64_t left = section->index;
    uint32_t i;

    for (i = 0; i < verdict->device_count; i++) {
        if (section->match != NULL &&
            !matches(&verdict->devices[i], section->match))
            continue;
        if (left-- == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

CELLGATE_PRINTF_LIKE(3, 4)
static void out_of_service(cg_device *device, cellgate_status status,
                           const char *format, ...)
{
    char reason[CG_VERDICT_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    cg_device_exclude(device, status, reason);
}

static void plugin_not_there(cg_device *device)
{
    const cg_device_table *table = device->table;
    const cg_device_section *section = device->section;
    const cg_found *broken = find_broken(table, device->plugin);

    if (broken != NULL)
        out_of_service(device, broken->verdict->status, "plugin %s (%s): %s",
                       device->plugin, broken->path, broken->verdict->reason);
    else
        out_of_service(device, CELLGATE_NOT_FOUND,
                       "no plugin named %s was found in the plugin folders",
                       device->plugin);
    if (section->entry_count > 0)
        cg_log_line(&table->log, CELLGATE_LOG_WARNING,
                    "%s:%d: the keys of [device %s] cannot be checked: %s",
                    table->config->path, section->line, section->name,
                    device->reason != NULL ? device->reason : "out of memory");
}

static void device_not_there(cg_device *device)
{
    const cg_verdict *verdict = device->found->verdict;
    const cg_device_section *section = device->section;

    if (verdict->device_count == 0)
        out_of_service(device, CELLGATE_NO_DEVICE, "plugin %s %s",
                       device->plugin, verdict->reason);
    else if (section->match != NULL && section->index == 0)
        out_of_service(device, CELLGATE_NO_DEVICE,
                       "no device of plugin %s matches \"%s\" (it has %u)",
                       device->plugin, section->match, verdict->device_count);
    else if (section->match != NULL)
        out_of_service(device, CELLGATE_NO_DEVICE,
                       "plugin %s has no device number %lld (the first is 0) "
                       "among those that match \"%s\" (it has %u)",
                       device->plugin, (long long)section->index,
                       section->match, verdict->device_count);
    else
        out_of_service(device, CELLGATE_NO_DEVICE,
                       "plugin %s has %u devices; index = %lld names none of "
                       "them (the first is 0)",
                       device->plugin, verdict->device_count,
                       (long long)section->index);
}

/* Binds an entry to device `index` of a plugin. */
static void bind(cg_device *device, cg_found *found, uint32_t index)
{
    device->found = found;
    device->index = index;
    device->description = found->verdict->devices[index];
    if (device->description.queue_depth == 0)
        device->description.queue_depth = 1;
}

/* Checks the section's keys against those that the plugin declares. */
static cellgate_status check_keys(const cg_device *device,
                                  cellgate_error *error)
{
    const cg_verdict *verdict = device->found->verdict;
    cellgate_settings *settings = NULL;
    cellgate_status status =
        cg_settings_create(device->table->config, device->section,
                           verdict->keys, verdict->key_count, &settings, error);

    if (status != CELLGATE_OK)
        return status;
    cg_settings_destroy(settings);
    return cg_exclude_check(device->table->config, device->section,
                            verdict->variants, verdict->variant_count, error);
}

static cellgate_status must_be_there(const cg_device *device,
                                     cellgate_error *error)
{
    const cg_device_section *section = device->section;

    if (section->enabled != CG_ENABLED_YES ||
        atomic_load(&device->status) == CELLGATE_OK)
        return CELLGATE_OK;
    return cellgate_fail(
        error, device->found == NULL ? CELLGATE_BAD_PLUGIN : CELLGATE_NO_DEVICE,
        "%s:%d: [device %s] says enabled = yes, but %s",
        device->table->config->path, section->line, section->name,
        device->reason != NULL ? device->reason : "it cannot be used");
}

static cellgate_status match_section(cg_device *device, cellgate_error *error)
{
    const cg_device_section *section = device->section;
    cellgate_status status = CELLGATE_OK;
    uint32_t index;

    device->found = find_plugin(device->table, device->plugin);
    if (device->found == NULL) {
        if (section->enabled != CG_ENABLED_NO)
            plugin_not_there(device);
    } else {
        status = check_keys(device, error);
        if (choose(device->found, section, &index))
            bind(device, device->found, index);
        else if (section->enabled != CG_ENABLED_NO)
            device_not_there(device);
    }
    if (status != CELLGATE_OK)
        return status;
    if (section->enabled == CG_ENABLED_NO)
        cg_device_exclude(device, CELLGATE_NO_DEVICE,
                          "switched off: its section says enabled = no");
    return must_be_there(device, error);
}

static cg_device *next_device(cg_device_table *table, const char *name,
                              const char *plugin)
{
    cg_device *device = &table->devices[table->device_count];

    if (!cg_device_init(device, table, name, plugin))
        return NULL;
    table->device_count++;
    return device;
}

static cellgate_status match_sections(cg_device_table *table,
                                      cellgate_error *error)
{
    cg_config *config = table->config;
    size_t i;

    for (i = 0; i < config->device_count; i++) {
        const cg_device_section *section = &config->devices[i];
        cg_device *device = next_device(table, section->name, section->plugin);
        cellgate_status status;

        if (device == NULL)
            return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
        device->section = section;
        status = match_section(device, error);
        if (status != CELLGATE_OK)
            return status;
    }
    return CELLGATE_OK;
}

/* Whether a section's entry is bound to this device. */
static bool is_listed(const cg_device_table *table, const cg_found *found,
                      uint32_t index)
{
    size_t i;

    for (i = 0; i < table->config->device_count; i++) {
        const cg_device *device = &table->devices[i];
        if (device->found == found && device->index == index &&
            device->description.name[0] != '\0')
            return true;
    }
    return false;
}

static bool add_unlisted(cg_device_table *table, cg_found *found,
                         uint32_t index)
{
    char name[96];
    cg_device *device;

    /* No section's name: those have no colon. */
    (void)snprintf(name, sizeof name, "%s:%u", found->verdict->name, index);
    device = next_device(table, name, found->verdict->name);
    if (device == NULL)
        return false;
    bind(device, found, index);
    return true;
}

static cellgate_status add_all_unlisted(cg_device_table *table,
                                        cellgate_error *error)
{
    size_t i;
    uint32_t index;

    for (i = 0; i < table->search.file_count; i++) {
        cg_found *found = &table->found[i];
        if (found->verdict->status != CELLGATE_OK)
            continue;
        for (index = 0; index < found->verdict->device_count; index++)
            if (!is_listed(table, found, index) &&
                !add_unlisted(table, found, index))
                return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                     "out of memory");
    }
    return CELLGATE_OK;
}

/* Plans of a card keep the host's threads waiting more than working. */
static uint32_t thread_limit(const cg_device_table *table, const char *resource)
{
    uint64_t depth = 0;
    size_t i;

    if (strcmp(resource, "cpu") == 0)
        return table->threads;
    for (i = 0; i < table->device_count; i++)
        if (strcmp(table->devices[i].description.resource, resource) == 0)
            depth += table->devices[i].description.queue_depth;
    if (depth > UINT32_MAX)
        depth = UINT32_MAX;
    return depth > table->threads ? (uint32_t)depth : table->threads;
}

static cellgate_status set_budgets(cg_device_table *table,
                                   cellgate_error *error)
{
    size_t i;

    for (i = 0; i < table->device_count; i++) {
        cg_device *device = &table->devices[i];
        const char *resource = device->description.resource;
        if (resource[0] == '\0')
            continue;
        device->thread_limit = thread_limit(table, resource);
        device->budget = cg_thread_budget_get(resource);
        if (device->budget == NULL)
            return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    }
    return CELLGATE_OK;
}

cellgate_status cg_table_match(cg_device_table *table, cellgate_error *error)
{
    size_t most = table->config->device_count;
    cellgate_status status;
    size_t i;

    for (i = 0; i < table->search.file_count; i++)
        most += table->found[i].verdict->device_count;
    table->devices = calloc(most > 0 ? most : 1, sizeof *table->devices);
    if (table->devices == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    status = match_sections(table, error);
    if (status == CELLGATE_OK && table->config->unlisted)
        status = add_all_unlisted(table, error);
    if (status == CELLGATE_OK)
        status = set_budgets(table, error);
    return status;
}
