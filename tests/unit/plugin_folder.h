/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A temporary folder of plugins, made of the modules in tests/plugins.
 *
 * Programs that use it are compiled with TEST_PLUGINS and TEST_PROBE, the
 * folder of the modules and the probe in the build tree.
 */
#ifndef CELLGATE_TESTS_UNIT_PLUGIN_FOLDER_H
#define CELLGATE_TESTS_UNIT_PLUGIN_FOLDER_H

#include <stddef.h>

#include "runtime/plugin/devices.h"

/* The folder that is in use; made by plugin_folder_enter(). */
extern char plugin_folder[64];

/*
 * cmocka setup and teardown: makes the folder, points XDG_CACHE_HOME into it
 * and CELLGATE_PROBE to the probe of the build tree, unsets the variables that
 * would find other plugins; removes it.
 */
int plugin_folder_enter(void **state);
int plugin_folder_leave(void **state);

/* "FOLDER/NAME", in one of a few buffers used in turn. */
const char *plugin_path(const char *name);
/* Copies module "bad" and the like to FOLDER/NAME.so. */
const char *plugin_add(const char *module, const char *name);
/* Writes a file of that name and content. */
const char *plugin_write(const char *name, const char *text, size_t size);
/* What cg_device_open() gives, without holding it: valid as long as the table,
   unless the device is opened anew. */
cellgate_status plugin_open_device(cg_device *device,
                                   const cellgate_plugin **ops,
                                   cellgate_device **handle,
                                   cellgate_error *error);

#endif
