/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is inside a table of devices; for the files that build and use it:
 * devices.c (the table), sections.c (which devices the configuration asks
 * for), device.c (one device), service.c (whether it is in service).
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_TABLE_H
#define CELLGATE_RUNTIME_PLUGIN_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/cost/clock.h"
#include "runtime/plugin/breaker.h"
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

/* A text that was once a reason for not being used. */
typedef struct cg_reason {
    struct cg_reason *next;
    char text[];
} cg_reason;

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
     * service.c: in service (OK) or not, and since when. The reasons are never
     * freed before the device is: applications may look at them.
     */
    atomic_int status;
    pthread_mutex_t service_mutex; /* of all here; `status` changes under it */
    cg_reason *reasons;            /* all there ever were */
    const char *reason;            /* the current one, among them, or NULL */
    bool out;                      /* it was in service before */
    double since, retry;           /* on the table's clock */
    unsigned hangs;
    cg_breaker breaker;

    /* device.c */
    pthread_mutex_t open_mutex;
    const cellgate_plugin *ops;    /* set by the first opening, */
    cellgate_settings *settings;   /* and so are these */
    _Atomic(cg_opening *) opening; /* the current one; changes under both
                                      mutexes */
    _Atomic uint64_t epoch;
    char *identity[4]; /* identity.c: plugin, build, identity, settings */
    char *probed; /* the plugin, as its verdict says; NULL: not asked yet */
};

struct cg_device_table {
    atomic_size_t references;
    cg_config *config;
    cg_log log;
    uint32_t threads; /* of the host's cores */
    const cg_clock *clock;
    _Atomic uint64_t changes;    /* of which devices are in service */
    pthread_mutex_t watch_mutex; /* of the watcher; held while it is called */
    void (*notify)(void *context);
    void *notify_context;
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
/* service.c: the same for its being in service. */
bool cg_service_init(cg_device *device);
void cg_service_finish(cg_device *device, bool forked);
/* It cannot be used, and will not be: of one that was never open. */
void cg_device_exclude(cg_device *device, cellgate_status status,
                       const char *reason);
/* identity.c */
void cg_device_forget_identity(cg_device *device);
/* Closes it and frees what it holds; only memory when `forked`. */
void cg_device_finish(cg_device *device, bool forked);

#endif
