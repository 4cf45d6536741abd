/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/plugin/verdict.h"

static cellgate_status check_file(const char *path, cellgate_error *error)
{
    struct stat about;
    int file;

    if (stat(path, &about) != 0)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN, "cannot be read: %s",
                             strerror(errno));
    if (S_ISDIR(about.st_mode))
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "is a folder, not a shared object");
    if (!S_ISREG(about.st_mode))
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "is not a regular file");
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN, "cannot be read: %s",
                             strerror(errno));
    (void)close(file);
    return CELLGATE_OK;
}

/* Turns the dynamic linker's message into one that says what to do. */
static cellgate_status explain(const char *path, const char *message,
                               cellgate_error *error)
{
    size_t length = strlen(path);
    const char *symbol;

    if (strncmp(message, path, length) == 0 && message[length] == ':') {
        message += length + 1;
        message += strspn(message, " ");
    } else if (strstr(message, "cannot open shared object file") != NULL) {
        return cellgate_fail(
            error, CELLGATE_BAD_PLUGIN,
            "needs %.*s, which the dynamic linker does not find: install the "
            "package that has it, or name its folder in LD_LIBRARY_PATH",
            (int)strcspn(message, ":"), message);
    }
    symbol = strstr(message, "undefined symbol: ");
    if (symbol != NULL)
        return cellgate_fail(
            error, CELLGATE_BAD_PLUGIN,
            "%s: a library that it needs is of another version, or it was not "
            "linked with all it needs (link it with -Wl,-z,defs to see)",
            symbol);
    return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                         "cannot be loaded: %s (is it a shared object for "
                         "this kind of machine?)",
                         message);
}

/* Whether `address` lies in the file that `handle` is, not in one it needs. */
static int is_from(void *handle, void *address)
{
    struct link_map *map = NULL;
    Dl_info where;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == NULL ||
        dladdr(address, &where) == 0 || where.dli_fname == NULL)
        return 0;
    return strcmp(where.dli_fname, map->l_name) == 0;
}

static cellgate_status find_entry(void *handle, cellgate_plugin_entry_fn *entry,
                                  cellgate_error *error)
{
    void *symbol = dlsym(handle, CELLGATE_PLUGIN_SYMBOL);

    if (symbol == NULL)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "is not a Cellgate plugin: it does not export "
                             "%s()",
                             CELLGATE_PLUGIN_SYMBOL);
    if (!is_from(handle, symbol))
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "is not a Cellgate plugin: %s() comes from a "
                             "library that it needs, not from the file itself",
                             CELLGATE_PLUGIN_SYMBOL);
    memcpy(entry, &symbol, sizeof symbol); /* C has no cast between the two */
    return CELLGATE_OK;
}

/* The required operations, by name for the message. */
static const char *missing_operation(const cellgate_plugin *table)
{
#define REQUIRED(op)                                                           \
    if (table->op == NULL)                                                     \
    return #op
    REQUIRED(init);
    REQUIRED(finish);
    REQUIRED(device_count);
    REQUIRED(device_describe);
    REQUIRED(device_open);
    REQUIRED(device_close);
    REQUIRED(support);
    REQUIRED(prepare);
    REQUIRED(weights_free);
    REQUIRED(plan_create);
    REQUIRED(plan_destroy);
    REQUIRED(run);
#undef REQUIRED
    return NULL;
}

static cellgate_status check_operations(const cellgate_plugin *table,
                                        cellgate_error *error)
{
    const char *missing = missing_operation(table);
    int resident =
        (table->resident_create != NULL) + (table->resident_destroy != NULL) +
        (table->resident_export != NULL) + (table->resident_import != NULL);

    if (missing != NULL)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its table lacks the required operation %s",
                             missing);
    if (resident != 0 && resident != 4)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its table has %d of the four resident_ "
                             "operations: all or none",
                             resident);
    if ((table->host_allocate == NULL) != (table->host_release == NULL))
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its table has only one of host_allocate and "
                             "host_release: both or none");
    return CELLGATE_OK;
}

static cellgate_status check_texts(const cellgate_plugin *table,
                                   cellgate_error *error)
{
    if (table->name == NULL || table->name[0] == '\0' ||
        table->name[strspn(table->name, "abcdefghijklmnopqrstuvwxyz"
                                        "0123456789_-")] != '\0' ||
        strlen(table->name) > 63)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its table's name is not 1 to 63 lower case "
                             "letters, digits, '_' and '-'");
    if (table->version == NULL || table->build == NULL)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its table lacks a version or build text");
    return CELLGATE_OK;
}

static cellgate_status check_key(const cellgate_key *key, size_t number,
                                 cellgate_error *error)
{
    if (key->name == NULL || key->name[0] == '\0' ||
        key->name[strspn(key->name, "abcdefghijklmnopqrstuvwxyz"
                                    "0123456789_")] != '\0')
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its key number %zu has no name of lower case "
                             "letters, digits and '_'",
                             number);
    if (strcmp(key->name, "plugin") == 0 || strcmp(key->name, "enabled") == 0 ||
        strcmp(key->name, "match") == 0 || strcmp(key->name, "index") == 0 ||
        strcmp(key->name, "exclude") == 0)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its key %s has a name that belongs to the host",
                             key->name);
    if (key->default_text == NULL || key->help == NULL)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its key %s lacks a default or a help text",
                             key->name);
    if (key->type < CELLGATE_KEY_TEXT || key->type > CELLGATE_KEY_CHOICE)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its key %s has the unknown type %d", key->name,
                             (int)key->type);
    if (key->type == CELLGATE_KEY_CHOICE && key->choices == NULL)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its key %s is a choice without choices",
                             key->name);
    return CELLGATE_OK;
}

/* A plugin's keys lie at the stride of its own, perhaps larger, struct. */
static cellgate_status take_keys(cg_library *library, cellgate_error *error)
{
    const char *from = (const char *)library->table.keys;
    size_t count = from != NULL ? library->table.key_count : 0;
    size_t stride, i;

    library->table.key_count = count;
    library->table.keys = NULL;
    if (count == 0)
        return CELLGATE_OK;
    memcpy(&stride, from, sizeof stride);
    if (count > CG_VERDICT_KEYS_MAX || stride > 4096 ||
        stride < offsetof(cellgate_key, help) + sizeof(const char *))
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its table has %zu keys of %zu bytes, which "
                             "cannot be right",
                             count, stride);
    library->keys = calloc(count, sizeof *library->keys);
    if (library->keys == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    library->table.keys = library->keys;
    for (i = 0; i < count; i++) {
        cellgate_status status;
        library->keys[i].struct_size = sizeof library->keys[i];
        cellgate_struct_copy(&library->keys[i], from + i * stride);
        status = check_key(&library->keys[i], i, error);
        if (status != CELLGATE_OK)
            return status;
    }
    return CELLGATE_OK;
}

static cellgate_status check_head(const cellgate_plugin *table,
                                  cellgate_error *error)
{
    if (table->magic != CELLGATE_PLUGIN_MAGIC)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its table does not begin with the magic number "
                             "of Cellgate plugins (0x%08X, not 0x%08X)",
                             table->magic, CELLGATE_PLUGIN_MAGIC);
    /* Unsigned: a version below the lowest becomes a large number. */
    if (table->abi_version - CG_ABI_LOWEST > CG_ABI_HIGHEST - CG_ABI_LOWEST)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "talks version %u of the plugin ABI, this "
                             "Cellgate %s versions %u to %u",
                             table->abi_version, PACKAGE_VERSION, CG_ABI_LOWEST,
                             CG_ABI_HIGHEST);
    if (table->struct_size < offsetof(cellgate_plugin, breakdown))
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "its table has %zu bytes, too few for the "
                             "required operations (%zu)",
                             table->struct_size,
                             offsetof(cellgate_plugin, breakdown));
    return CELLGATE_OK;
}

static cellgate_status take(const cellgate_plugin *table, cg_library *library,
                            cellgate_error *error)
{
    cg_library taken = { .keys = NULL };
    cellgate_status status = check_head(table, error);
    size_t size;

    if (status != CELLGATE_OK)
        return status;
    size = table->struct_size < sizeof taken.table ? table->struct_size
                                                   : sizeof taken.table;
    memcpy(&taken.table, table, size);
    status = check_operations(&taken.table, error);
    if (status == CELLGATE_OK)
        status = check_texts(&taken.table, error);
    if (status == CELLGATE_OK)
        status = take_keys(&taken, error);
    if (status != CELLGATE_OK) {
        cg_library_finish(&taken);
        return status;
    }
    *library = taken;
    return CELLGATE_OK;
}

cellgate_status cg_library_open(const char *path,
                                cellgate_plugin_entry_fn *entry,
                                cellgate_error *error)
{
    cellgate_status status = check_file(path, error);
    void *handle;

    if (status != CELLGATE_OK)
        return status;
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *message = dlerror();
        return explain(path, message != NULL ? message : "unknown error",
                       error);
    }
    return find_entry(handle, entry, error);
}

cellgate_status cg_library_negotiate(cellgate_plugin_entry_fn entry,
                                     cg_library *library, cellgate_error *error)
{
    const cellgate_plugin *table = entry(CG_ABI_LOWEST, CG_ABI_HIGHEST);

    if (table == NULL)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "talks no version of the plugin ABI that this "
                             "Cellgate %s does (%u to %u): install the "
                             "plugin's release for it",
                             PACKAGE_VERSION, CG_ABI_LOWEST, CG_ABI_HIGHEST);
    return take(table, library, error);
}

void cg_library_finish(cg_library *library)
{
    free(library->keys);
    library->keys = NULL;
}
