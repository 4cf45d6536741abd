/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin's shared object: loading it, and taking its table after checking
 * that it is one that this host can talk to.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_LIBRARY_H
#define CELLGATE_RUNTIME_PLUGIN_LIBRARY_H

#include "cellgate/plugin.h"

/* ABI versions that this host can talk. */
#define CG_ABI_LOWEST CELLGATE_ABI_VERSION
#define CG_ABI_HIGHEST CELLGATE_ABI_VERSION

/*
 * The host's own copy of a plugin's table: as many bytes as the plugin has,
 * zero beyond. `keys` too is a copy, an array with the host's stride. Texts
 * and functions are the plugin's, which is never unloaded.
 */
typedef struct cg_library {
    cellgate_plugin table;
    cellgate_key *keys;
} cg_library;

/*
 * Loads the file (RTLD_NOW, RTLD_LOCAL) and finds its entry. BAD_PLUGIN: the
 * text says what is wrong with the file and what to do, without its path. The
 * file stays loaded, also after an error.
 */
cellgate_status cg_library_open(const char *path,
                                cellgate_plugin_entry_fn *entry,
                                cellgate_error *error);
/* Asks the entry for a table, checks it and takes it. BAD_PLUGIN as above. */
cellgate_status cg_library_negotiate(cellgate_plugin_entry_fn entry,
                                     cg_library *library,
                                     cellgate_error *error);
/* Frees the copies; the file stays loaded. */
void cg_library_finish(cg_library *library);

#endif
