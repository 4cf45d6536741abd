/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/devices.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/plugin/cores.h"
#include "runtime/plugin/probe.h"
#include "runtime/plugin/table.h"
#include "runtime/plugin/verdict_cache.h"

/* Helpers at work at once: drivers wait for hardware more than they compute. */
#define PROBES_AT_ONCE 4

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
}

/* Of two admitted plugins with one name, the first in search order counts. */
static void refuse_duplicates(cg_device_table *table)
{
    size_t i, j;

    for (i = 0; i < table->search.file_count; i++) {
        cg_verdict *verdict = table->found[i].verdict;
        for (j = 0; j < i && verdict->status == CELLGATE_OK; j++) {
            const cg_found *first = &table->found[j];
            if (first->verdict->status == CELLGATE_OK &&
                strcmp(first->verdict->name, verdict->name) == 0)
                cg_verdict_set(verdict, CELLGATE_BAD_PLUGIN,
                               "another plugin named %s comes first in the "
                               "plugin folders: %s",
                               verdict->name, first->path);
        }
    }
}

static void log_verdicts(const cg_device_table *table)
{
    size_t i;

    for (i = 0; i < table->search.file_count; i++) {
        const cg_verdict *verdict = table->found[i].verdict;
        if (verdict->reason[0] != '\0')
            cg_log_line(&table->log, CELLGATE_LOG_INFO, "%s: %s",
                        table->found[i].path, verdict->reason);
    }
}

/* A folder that the application names is meant to be there. */
static void log_folders(const cg_device_table *table)
{
    size_t i;

    for (i = 0; i < table->search.path_count; i++) {
        const cg_search_path *path = &table->search.paths[i];
        if (path->problem != NULL && strcmp(path->origin, "option") == 0)
            cg_log_line(&table->log, CELLGATE_LOG_WARNING,
                        "plugin folder %s: %s", path->path, path->problem);
    }
}

/* The files that no kept verdict answers for, probed. */
typedef struct to_probe {
    const char **paths;
    cg_verdict **verdicts;
    cg_file_identity *identities;
    size_t *found; /* index in table->found */
    size_t count;
} to_probe;

static void to_probe_finish(to_probe *files)
{
    size_t i;

    for (i = 0; files->verdicts != NULL && i < files->count; i++)
        cg_verdict_destroy(files->verdicts[i]);
    free(files->paths);
    free(files->verdicts);
    free(files->identities);
    free(files->found);
}

static bool to_probe_init(to_probe *files, size_t most)
{
    memset(files, 0, sizeof *files);
    if (most == 0)
        most = 1;
    files->paths = calloc(most, sizeof *files->paths);
    files->verdicts = calloc(most, sizeof *files->verdicts);
    files->identities = calloc(most, sizeof *files->identities);
    files->found = calloc(most, sizeof *files->found);
    return files->paths != NULL && files->verdicts != NULL &&
           files->identities != NULL && files->found != NULL;
}

static void look_up(cg_device_table *table, cg_verdict_cache *cache,
                    to_probe *files)
{
    size_t i;

    for (i = 0; i < table->search.file_count; i++) {
        cg_found *found = &table->found[i];
        cg_file_identity *identity = &files->identities[files->count];

        found->verdict = cg_verdict_cache_get(cache, found->path, identity);
        found->cached = found->verdict != NULL;
        if (found->cached)
            continue;
        files->paths[files->count] = found->path;
        files->found[files->count] = i;
        files->count++;
    }
}

static bool probe_all(cg_device_table *table, cg_verdict_cache *cache,
                      to_probe *files)
{
    const cg_prober prober = { .helper = cg_probe_helper(),
                               .timeout = table->config->probe_timeout,
                               .thread_budget = table->threads,
                               .at_once = PROBES_AT_ONCE };
    size_t i;

    cg_probe(&prober, files->paths, files->verdicts, files->count);
    for (i = 0; i < files->count; i++) {
        cg_found *found = &table->found[files->found[i]];
        if (files->verdicts[i] == NULL)
            return false;
        cg_verdict_cache_put(cache, found->path, &files->identities[i],
                             files->verdicts[i]);
        found->verdict = files->verdicts[i];
        files->verdicts[i] = NULL;
    }
    return true;
}

/* A verdict for every file, from the cache or a probe. */
static cellgate_status form_verdicts(cg_device_table *table,
                                     cellgate_error *error)
{
    cg_verdict_cache *cache = NULL;
    to_probe files;
    bool done = to_probe_init(&files, table->search.file_count);

    if (done) {
        if (table->config->probe_cache)
            cache = cg_verdict_cache_open(&table->log);
        look_up(table, cache, &files);
        done = probe_all(table, cache, &files);
        cg_verdict_cache_close(cache);
    }
    to_probe_finish(&files);
    return done ? CELLGATE_OK : no_memory(error);
}

static cellgate_status find_plugins(cg_device_table *table,
                                    cellgate_error *error)
{
    size_t count = table->search.file_count;
    cellgate_status status;
    size_t i;

    table->found = calloc(count > 0 ? count : 1, sizeof *table->found);
    if (table->found == NULL)
        return no_memory(error);
    for (i = 0; i < count; i++) {
        table->found[i].path = table->search.files[i];
        table->found[i].user.log = table->log;
        table->found[i].user.thread_budget = table->threads;
    }
    status = form_verdicts(table, error);
    if (status != CELLGATE_OK)
        return status;
    refuse_duplicates(table);
    log_verdicts(table);
    return CELLGATE_OK;
}

static void destroy(cg_device_table *table, bool forked)
{
    size_t i;

    for (i = 0; i < table->device_count; i++)
        cg_device_finish(&table->devices[i], forked);
    free(table->devices);
    if (!forked)
        pthread_mutex_destroy(&table->watch_mutex);
    for (i = 0; table->found != NULL && i < table->search.file_count; i++) {
        if (!forked)
            cg_loaded_leave(&table->found[i].user);
        cg_verdict_destroy(table->found[i].verdict);
    }
    free(table->found);
    cg_search_finish(&table->search);
    cg_config_destroy(table->config);
    free(table);
}

cellgate_status cg_device_table_create(cg_config *config,
                                       const char *extra_paths,
                                       const cg_log *log,
                                       cg_device_table **table,
                                       cellgate_error *error)
{
    cg_device_table *made = NULL;
    cellgate_status status = cg_process_check(error);

    if (status == CELLGATE_OK) {
        made = calloc(1, sizeof *made);
        if (made == NULL)
            status = no_memory(error);
    }
    if (status != CELLGATE_OK) {
        cg_config_destroy(config);
        return status;
    }
    cg_process_watch();
    atomic_init(&made->references, 1);
    made->clock = &cg_real_clock;
    pthread_mutex_init(&made->watch_mutex, NULL);
    made->config = config;
    if (log != NULL)
        made->log = *log;
    made->threads =
        config->threads > 0 ? config->threads : cg_cores_available();
    if (!cg_search_run(&made->search, config, extra_paths))
        status = no_memory(error);
    if (status == CELLGATE_OK) {
        log_folders(made);
        status = find_plugins(made, error);
    }
    if (status == CELLGATE_OK)
        status = cg_table_match(made, error);
    if (status != CELLGATE_OK) {
        destroy(made, false);
        return status;
    }
    *table = made;
    return CELLGATE_OK;
}

cg_device_table *cg_device_table_reference(cg_device_table *table)
{
    (void)atomic_fetch_add_explicit(&table->references, 1,
                                    memory_order_relaxed);
    return table;
}

void cg_device_table_release(cg_device_table *table)
{
    if (table != NULL && atomic_fetch_sub_explicit(&table->references, 1,
                                                   memory_order_acq_rel) == 1)
        destroy(table, cg_process_forked());
}

const cg_config *cg_device_table_config(const cg_device_table *table)
{
    return table->config;
}

uint64_t cg_device_table_changes(const cg_device_table *table)
{
    return atomic_load_explicit(&table->changes, memory_order_acquire);
}

const cg_log *cg_device_table_log(const cg_device_table *table)
{
    return &table->log;
}

size_t cg_device_table_path_count(const cg_device_table *table)
{
    return table->search.path_count;
}

cellgate_status cg_device_table_path_get(const cg_device_table *table,
                                         size_t index, cellgate_path_info *info)
{
    cellgate_path_info full = { .struct_size = sizeof full };
    const cg_search_path *path;

    if (index >= table->search.path_count)
        return CELLGATE_END;
    path = &table->search.paths[index];
    full.path = path->path;
    full.origin = path->origin;
    full.problem = path->problem;
    full.plugin_count = path->file_count;
    cellgate_struct_copy(info, &full);
    return CELLGATE_OK;
}

size_t cg_device_table_plugin_count(const cg_device_table *table)
{
    return table->search.file_count;
}

cellgate_status cg_device_table_plugin_get(const cg_device_table *table,
                                           size_t index,
                                           cellgate_plugin_info *info)
{
    cellgate_plugin_info full = { .struct_size = sizeof full };
    const cg_verdict *verdict;

    if (index >= table->search.file_count)
        return CELLGATE_END;
    verdict = table->found[index].verdict;
    full.path = table->found[index].path;
    full.name = verdict->name;
    full.version = verdict->version;
    full.status = (int32_t)verdict->status;
    full.cached = table->found[index].cached;
    full.reason = verdict->reason;
    full.device_count = verdict->device_count;
    cellgate_struct_copy(info, &full);
    return CELLGATE_OK;
}

size_t cg_device_table_count(const cg_device_table *table)
{
    return table->device_count;
}

cg_device *cg_device_table_at(cg_device_table *table, size_t index)
{
    return index < table->device_count ? &table->devices[index] : NULL;
}

cg_device *cg_device_table_find(cg_device_table *table, const char *name)
{
    size_t i;

    for (i = 0; i < table->device_count; i++)
        if (strcmp(table->devices[i].name, name) == 0)
            return &table->devices[i];
    return NULL;
}
