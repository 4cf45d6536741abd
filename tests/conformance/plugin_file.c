/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "tests/conformance/plugin_file.h"

static int find_entry(plugin_file *plugin, const char *path, char *why,
                      size_t size)
{
    /* A bare name must not be searched for in the library path. */
    char *absolute = realpath(path, NULL);
    void *library, *symbol;

    if (absolute == NULL) {
        (void)snprintf(why, size, "No such file or directory");
        return -1;
    }
    library = dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
    free(absolute);
    if (library == NULL) {
        (void)snprintf(why, size, "cannot load it: %s", dlerror());
        return -1;
    }
    symbol = dlsym(library, CELLGATE_PLUGIN_SYMBOL);
    if (symbol == NULL) {
        (void)snprintf(why, size, "it does not export %s",
                       CELLGATE_PLUGIN_SYMBOL);
        return -1;
    }
    memcpy(&plugin->entry, &symbol, sizeof symbol);
    return 0;
}

/* Reads as much of the plugin's table as both sides know. */
static int read_table(plugin_file *plugin, char *why, size_t size)
{
    const cellgate_plugin *declared = plugin->declared;
    size_t known = sizeof plugin->table;

    if (declared == NULL) {
        (void)snprintf(why, size, "it has no table for ABI version %u",
                       CELLGATE_ABI_VERSION);
        return -1;
    }
    if (declared->magic != CELLGATE_PLUGIN_MAGIC ||
        declared->abi_version != CELLGATE_ABI_VERSION) {
        (void)snprintf(why, size, "wrong magic or ABI version in its table");
        return -1;
    }
    if (declared->struct_size < known)
        known = declared->struct_size;
    memset(&plugin->table, 0, sizeof plugin->table);
    memcpy(&plugin->table, declared, known);
    return 0;
}

static int check_required(const cellgate_plugin *t, char *why, size_t size)
{
    const struct {
        const char *name;
        int is_there;
    } required[] = { { "name", t->name != NULL && t->name[0] != '\0' },
                     { "version", t->version != NULL },
                     { "build", t->build != NULL },
                     { "init", t->init != NULL },
                     { "finish", t->finish != NULL },
                     { "device_count", t->device_count != NULL },
                     { "device_describe", t->device_describe != NULL },
                     { "device_open", t->device_open != NULL },
                     { "device_close", t->device_close != NULL },
                     { "support", t->support != NULL },
                     { "prepare", t->prepare != NULL },
                     { "weights_free", t->weights_free != NULL },
                     { "plan_create", t->plan_create != NULL },
                     { "plan_destroy", t->plan_destroy != NULL },
                     { "run", t->run != NULL } };

    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (!required[i].is_there) {
            (void)snprintf(why, size, "its table lacks %s", required[i].name);
            return -1;
        }
    }
    return 0;
}

int plugin_file_open(plugin_file *plugin, const char *path, uint32_t threads,
                     int verbose, char *why, size_t size)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    memset(plugin, 0, sizeof *plugin);
    if (find_entry(plugin, path, why, size) != 0)
        return -1;
    plugin->declared =
        plugin->entry(CELLGATE_ABI_VERSION, CELLGATE_ABI_VERSION);
    if (read_table(plugin, why, size) != 0 ||
        check_required(&plugin->table, why, size) != 0)
        return -1;
    host_table_init(&plugin->host, threads, verbose);
    plugin->host.keys = plugin->table.keys;
    plugin->host.key_count =
        plugin->table.keys != NULL ? plugin->table.key_count : 0;
    if (plugin->table.init(&plugin->host.table, &plugin->instance, &error) !=
        CELLGATE_OK) {
        (void)snprintf(why, size, "init() failed: %s", error.text);
        return -1;
    }
    return 0;
}

void plugin_file_close(plugin_file *plugin)
{
    if (plugin->table.finish != NULL)
        plugin->table.finish(plugin->instance);
    plugin->instance = NULL;
}
