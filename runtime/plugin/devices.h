/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of devices: which plugins were found, what became of each, and the
 * devices of the configuration, opened on first need.
 *
 * A table is shared: the runtime and every session hold a reference. Plugins
 * are loaded once a process and never unloaded.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_DEVICES_H
#define CELLGATE_RUNTIME_PLUGIN_DEVICES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cellgate/cellgate.h"
#include "cellgate/plugin.h"
#include "runtime/config/settings.h"
#include "runtime/plugin/log.h"
#include "runtime/plugin/process.h"

typedef struct cg_device_table cg_device_table;
typedef struct cg_device cg_device;

/*
 * Searches the plugin paths, probes what it finds (or takes the cached
 * verdict) and builds the table. Takes over `config`, also on failure.
 * `extra_paths`: colon-separated, searched first, or NULL for what
 * $CELLGATE_PLUGIN_PATH says; both are ignored in a setuid program. A plugin
 * that does not work is an entry with its reason; it is an error (BAD_PLUGIN,
 * or NO_DEVICE) only where a section says enabled = yes. BAD_CONFIG: a section
 * has a key that its plugin does not take.
 */
cellgate_status cg_device_table_create(cg_config *config,
                                       const char *extra_paths,
                                       const cg_log *log,
                                       cg_device_table **table,
                                       cellgate_error *error);
cg_device_table *cg_device_table_reference(cg_device_table *table);
/*
 * The last one closes every device. In a child after fork() it frees memory
 * only.
 */
void cg_device_table_release(cg_device_table *table);
const cg_config *cg_device_table_config(const cg_device_table *table);
/* Where the core's log lines about these devices go; as long as the table. */
const cg_log *cg_device_table_log(const cg_device_table *table);

/* Counts up whenever a device leaves service: what was decided before may not
   hold. */
uint64_t cg_device_table_changes(const cg_device_table *table);

size_t cg_device_table_path_count(const cg_device_table *table);
cellgate_status cg_device_table_path_get(const cg_device_table *table,
                                         size_t index,
                                         cellgate_path_info *info);
size_t cg_device_table_plugin_count(const cg_device_table *table);
cellgate_status cg_device_table_plugin_get(const cg_device_table *table,
                                           size_t index,
                                           cellgate_plugin_info *info);
size_t cg_device_table_count(const cg_device_table *table);
cg_device *cg_device_table_at(cg_device_table *table, size_t index);
/* NULL if there is none of that name. */
cg_device *cg_device_table_find(cg_device_table *table, const char *name);

/* ---- One device -------------------------------------------------------- */

const char *cg_device_name(const cg_device *device);
void cg_device_info_get(const cg_device *device, cellgate_device_info *info);
/* Known from the probe, without opening. */
const cellgate_device_description *
cg_device_description_get(const cg_device *device);

/*
 * One opening of a device, which closes it when nobody holds it any more. A
 * device that was out of service is opened anew: what was made from an earlier
 * opening can't go on with the later one.
 */
typedef struct cg_opening {
    const cellgate_plugin *ops;
    cellgate_device *handle;
    uint64_t epoch; /* which opening of the device, from 1 */
    double seconds; /* that the first one took, its plugin's loading included;
                       0 of later ones */
    atomic_size_t references;
    atomic_bool hung; /* a run of it did not come back */
} cg_opening;

/*
 * Loads the plugin and opens the device, once; later calls return the same
 * opening until the device is opened anew. The caller releases it.
 * NO_MEMORY, DEVICE_MEMORY, BUSY: the next call tries again; after any other
 * failure the device is out of service. FORKED in a child process.
 */
cellgate_status cg_device_open(cg_device *device, cg_opening **opening,
                               cellgate_error *error);
cg_opening *cg_opening_reference(cg_opening *opening);
/* NULL is allowed. In a child after fork() the device stays open. */
void cg_opening_release(cg_opening *opening);
/* Which opening is the current one; 0 before the first. Cheap. */
uint64_t cg_device_epoch(const cg_device *device);

/*
 * All that a device's speed depends on, as texts without control characters,
 * valid as long as the table. The device is open. NO_MEMORY.
 */
typedef struct cg_device_identity {
    const char *plugin; /* name and version */
    const char *build;
    const char *identity;
    const char *settings; /* in effect */
    const char *host;     /* the processor, its features, the cores to use, and
                             this library */
} cg_device_identity;
cellgate_status cg_device_identify(cg_device *device,
                                   cg_device_identity *identity,
                                   cellgate_error *error);
/* The same of one that may not be open, by its probe: without the settings,
   which are "". NO_DEVICE: its plugin is not there. */
cellgate_status cg_device_identify_probed(cg_device *device,
                                          cg_device_identity *identity,
                                          cellgate_error *error);

/* ---- In service, and out of it ------------------------------------------ */

/*
 * Takes a device out of service because of what happened in opening `epoch`; of
 * one that is not the current one it means nothing. cg_device_usable() fails
 * from now on with this reason, and cellgate_device_get() shows it.
 */
void cg_device_quarantine(cg_device *device, uint64_t epoch,
                          cellgate_status status, const char *reason);
/*
 * A run failed in opening `epoch`. DEVICE_LOST takes the device out of service,
 * and so does DEVICE_FAILED when it comes too often ([scheduler] failures);
 * other statuses do not.
 */
void cg_device_run_failed(cg_device *device, uint64_t epoch,
                          cellgate_status status, const char *reason);
/* OK, or why the device must not be used. Cheap: called for each run. */
cellgate_status cg_device_usable(const cg_device *device,
                                 cellgate_error *error);

/* Seconds until a device out of service is to be tried again, not above 0 when
   that is due; infinite: never, or it is in service. */
double cg_device_retry_in(const cg_device *device);
/* Opens a device out of service beside what is open of it; it stays out. */
cellgate_status cg_device_reopen(cg_device *device, cg_opening **opening,
                                 cellgate_error *error);
/* That opening was found right: it is the device's now, which is in service
   again. Takes over the reference. */
void cg_device_readmit(cg_device *device, cg_opening *opening);
/* It was tried in vain; `for_good`: and will not be again. */
void cg_device_stay_out(cg_device *device, cellgate_status status,
                        const char *reason, bool for_good);
/*
 * Has notify(context) called, on any thread, whenever a device of the table has
 * been taken out of service; NULL ends it. When this returns, no call of the
 * one before is under way.
 */
void cg_device_table_watch(cg_device_table *table,
                           void (*notify)(void *context), void *context);

/*
 * Threads of the device's resource. Admission waits, first come, first served,
 * until `threads` of the resource's budget are free; devices that share a
 * resource share the budget, also across the runtimes of a process. A request
 * wider than the whole budget counts as the whole budget. Release takes the
 * number that was acquired. In a child after fork() nothing waits.
 */
void cg_device_threads_acquire(cg_device *device, uint32_t threads);
/* Without waiting: whether they were free and are now taken. */
bool cg_device_threads_try(cg_device *device, uint32_t threads);
void cg_device_threads_release(cg_device *device, uint32_t threads);
/*
 * The whole budget of the device's resource. For "cpu" it is [scheduler]
 * threads, or the cores that the process may use; another resource admits at
 * least the queue depths of its devices beside. A plugin shared by two runtimes
 * may offer variants wider than this one's budget: pass them over.
 */
uint32_t cg_device_thread_budget(const cg_device *device);

/* Whether its section leaves out variants of that name; then *text says so. The
   device is open. */
bool cg_device_excludes(const cg_device *device, const char *variant,
                        char *text, size_t size);

/* The value of [scheduler] precision that a variant of this numeric class needs
   and does not have; NULL: it may run. */
const char *cg_device_needs_precision(const cg_device *device, int32_t numeric);

#endif
