/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: the first device of a plugin, opened without the core. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include "tests/conformance/plugin_file.h"

struct bench_device {
    plugin_file plugin;
    struct cellgate_settings settings;
    host_setting setting[1];
    cellgate_device *device;
};

/*
 * Opens it with this many threads and its `level` set; -1 with a sentence in
 * `why`. It must not move afterwards: the device points into it.
 */
int bench_device_open(struct bench_device *of, const char *path, int threads,
                      const char *level, char *why, size_t size);
void bench_device_close(struct bench_device *of);

#endif /* BENCH_DEVICE_H */
