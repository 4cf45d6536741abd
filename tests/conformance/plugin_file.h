/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the plugin under test, without the core. */
#ifndef TESTS_CONFORMANCE_PLUGIN_FILE_H
#define TESTS_CONFORMANCE_PLUGIN_FILE_H

#include "tests/conformance/host_table.h"

typedef struct plugin_file {
    cellgate_plugin_entry_fn entry;
    const cellgate_plugin *declared; /* the plugin's own table */
    cellgate_plugin table; /* as much of it as the suite knows, rest zero */
    cellgate_instance *instance;
    host_table host;
} plugin_file;

/*
 * Loads (RTLD_NOW | RTLD_LOCAL), negotiates and initializes. -1 with a sentence
 * in `why` on failure. The file stays loaded for the life of the process, as
 * in the core.
 */
int plugin_file_open(plugin_file *plugin, const char *path, uint32_t threads,
                     int verbose, char *why, size_t size);

/* finish() of the plugin. */
void plugin_file_close(plugin_file *plugin);

#endif
