/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is inside a table of devices; for the files that build and use it:
 * devices.c (the table), sections.c (which devices the configuration asks
 * for), device.c (one device).
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_TABLE_H
#define CELLGATE_RUNTIME_PLUGIN_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/plugin/devices.h"
#include "runtime/plugin/loaded.h"
#include "runtime/plugin/search.h"
#include "runtime/plugin/thread_budget.h"
#include "runtime/plugin/verdict.h"

/* A plugin file and its verdict. */
typedef struct cg_found {
    const char *path;
    cg_verdict *verdict;
    bool cached;
    cg_loaded_user user;
} cg_found;

struct cg_device {
    cg_device_table *table;
    char *name;
    const char *plugin;               /* name of the plugin */
    const cg_device_section *section; /* NULL: no section names it */
    cg_found *found;                  /* NULL: the plugin is not there */
    uint32_t index;                   /* among the plugin's devices */
    /* All zero when the plugin is not there. */
    cellgate_device_description description;

    cg_thread_budget *budget; /* NULL without a resource */
    uint32_t thread_limit;

    /*
     * In service or not: from OK to a failure once, never back. `reason` is
     * written before `status` leaves OK and does not change after.
     */
    atomic_int status;
    pthread_mutex_t reason_mutex;
    char *reason;

    /* Set by the first cg_device_open(). */
    pthread_mutex_t open_mutex;
    const cellgate_plugin *ops;
    cellgate_device *handle;
    cellgate_settings *settings;
    char *identity[4]; /* identity.c: plugin, build, identity, settings */
};

struct cg_device_table {
    atomic_size_t references;
    cg_config *config;
    cg_log log;
    uint32_t threads; /* of the host's cores */
    _Atomic uint64_t changes; /* of which devices are in service */
    cg_search search;
    cg_found *found; /* one for each of search.files */
    cg_device *devices;
    size_t device_count;
};

/*
 * sections.c: fills table->devices from the configuration and the verdicts.
 * Errors as cg_device_table_create() says.
 */
cellgate_status cg_table_match(cg_device_table *table, cellgate_error *error);

/* device.c: makes *device ready; false without memory. */
bool cg_device_init(cg_device *device, cg_device_table *table, const char *name,
                    const char *plugin);
/* identity.c */
void cg_device_forget_identity(cg_device *device);
/* Closes it and frees what it holds; only memory when `forked`. */
void cg_device_finish(cg_device *device, bool forked);

#endif
