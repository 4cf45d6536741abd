/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins loaded into this process. A file is loaded and initialised once,
 * whichever runtime needs it first; the others share the plugin and its
 * instance. None is ever unloaded: a vendor's library may have left threads
 * and handlers behind.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_LOADED_H
#define CELLGATE_RUNTIME_PLUGIN_LOADED_H

#include "cellgate/plugin.h"
#include "runtime/plugin/log.h"

typedef struct cg_loaded cg_loaded;

/*
 * A runtime's use of a plugin. Its owner sets `log` and `thread_budget`, and
 * keeps it in place until cg_loaded_leave(). The plugin's log lines go to
 * every user; the plugin is granted the widest user's thread budget.
 */
typedef struct cg_loaded_user {
    cg_log log;
    uint32_t thread_budget;
    /* Of this module: */
    cg_loaded *loaded;
    struct cg_loaded_user *next;
} cg_loaded_user;

/*
 * Loads and initialises the file, or finds it done, and enters the user, who
 * may be in it already. A failure is kept: later calls give the same answer.
 * `ops` (the host's copy of the table) and `instance` stay valid.
 */
cellgate_status cg_loaded_use(const char *path, cg_loaded_user *user,
                              const cellgate_plugin **ops,
                              cellgate_instance **instance,
                              cellgate_error *error);
/* After it no log line reaches the user. Nothing for one never entered. */
void cg_loaded_leave(cg_loaded_user *user);

#endif
