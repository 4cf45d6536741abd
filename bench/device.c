/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "bench/device.h"

int bench_device_open(struct bench_device *of, const char *path, int threads,
                      const char *level, char *why, size_t size)
{
    static char key[] = "level";
    cellgate_error error = CELLGATE_ERROR_INIT;

    memset(of, 0, sizeof *of);
    if (plugin_file_open(&of->plugin, path, (uint32_t)threads, 0, why, size) !=
        0)
        return -1;
    of->setting[0] = (host_setting){ key, (char *)(uintptr_t)level };
    of->settings = (struct cellgate_settings){ of->setting, 1 };
    if (of->plugin.table.device_open(of->plugin.instance, 0, &of->settings,
                                     &of->device, &error) == CELLGATE_OK)
        return 0;
    (void)snprintf(why, size, "%s", error.text);
    plugin_file_close(&of->plugin);
    return -1;
}

void bench_device_close(struct bench_device *of)
{
    of->plugin.table.device_close(of->device);
    plugin_file_close(&of->plugin);
}
