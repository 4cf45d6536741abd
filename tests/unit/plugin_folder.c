/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/plugin_folder.h"

char plugin_folder[64];

int plugin_folder_enter(void **state)
{
    (void)state;
    (void)snprintf(plugin_folder, sizeof plugin_folder,
                   "/tmp/cellgate-plugins-XXXXXX");
    if (mkdtemp(plugin_folder) == NULL)
        return -1;
    (void)setenv("XDG_CACHE_HOME", plugin_path("cache"), 1);
    (void)setenv("CELLGATE_PROBE", TEST_PROBE, 1);
    (void)unsetenv("CELLGATE_PLUGIN_PATH");
    (void)unsetenv("CELLGATE_CONFIG");
    (void)unsetenv("CELLGATE_FAKE_DEVICES");
    return 0;
}

int plugin_folder_leave(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", plugin_folder);
    return system(command) != 0 ? -1 : 0;
}

const char *plugin_path(const char *name)
{
    static char buffers[8][256];
    static unsigned int turn;
    char *buffer = buffers[turn++ % 8];

    (void)snprintf(buffer, sizeof buffers[0], "%s/%s", plugin_folder, name);
    return buffer;
}

const char *plugin_write(const char *name, const char *text, size_t size)
{
    const char *path = plugin_path(name);
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

const char *plugin_add(const char *module, const char *name)
{
    static char content[1 << 20];
    char path[512], file_name[128];
    FILE *file;
    size_t size;

    (void)snprintf(path, sizeof path, "%s/%s.so", TEST_PLUGINS, module);
    file = fopen(path, "rb");
    assert_non_null(file);
    size = fread(content, 1, sizeof content, file);
    assert_true(size > 0 && size < sizeof content);
    (void)fclose(file);
    (void)snprintf(file_name, sizeof file_name, "%s.so", name);
    return plugin_write(file_name, content, size);
}

cellgate_status plugin_open_device(cg_device *device,
                                   const cellgate_plugin **ops,
                                   cellgate_device **handle,
                                   cellgate_error *error)
{
    cg_opening *opening;
    cellgate_status status = cg_device_open(device, &opening, error);

    if (status != CELLGATE_OK)
        return status;
    *ops = opening->ops;
    *handle = opening->handle;
    cg_opening_release(opening);
    return CELLGATE_OK;
}
