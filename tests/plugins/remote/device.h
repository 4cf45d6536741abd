/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card: two of them on the bus, each opened any number of times. Every
 * opening has memory, threads, settings and faults of its own.
 */
#ifndef REMOTE_DEVICE_H
#define REMOTE_DEVICE_H

#include <sys/types.h>

#include "tests/plugins/remote/device_memory.h"
#include "tests/plugins/remote/faults.h"
#include "tests/plugins/remote/queue.h"
#include "tests/plugins/remote/simulation.h"

#define REMOTE_DEVICE_COUNT 3
#define REMOTE_DEFAULT_MEMORY "268435456"

struct cellgate_instance {
    cellgate_host host;
};

/* Memory given by host_allocate(). */
struct remote_pinned {
    struct remote_pinned *next;
    unsigned char *base;
    size_t size;
};

struct cellgate_device {
    const cellgate_host *host;
    struct remote_memory memory;
    struct remote_queue queue;
    struct remote_faults faults;
    struct remote_simulation simulation;
    const char *variants; /* "all", or the name of the only one offered */
    const char *refused;  /* the name of one that does not run, or "" */
    atomic_bool prepared; /* any weights were */
    int64_t max_batch;    /* 0: any */
    bool require_pinned;
    pthread_mutex_t pinned_lock;
    struct remote_pinned *pinned;
    pid_t process; /* that opened it */
};

#define REMOTE_KEY_COUNT 28

extern const cellgate_key remote_keys[REMOTE_KEY_COUNT];

/* Operations of the table; see plugin.h. */
uint32_t remote_device_count(cellgate_instance *instance);
cellgate_status remote_device_describe(cellgate_instance *instance,
                                       uint32_t index,
                                       cellgate_device_description *out,
                                       cellgate_error *error);
cellgate_status remote_device_open(cellgate_instance *instance, uint32_t index,
                                   const cellgate_settings *settings,
                                   cellgate_device **device,
                                   cellgate_error *error);
/* UNSUPPORTED for a batch that is larger than the device's settings allow. */
cellgate_status remote_check_batch(const cellgate_device *device, int64_t batch,
                                   cellgate_error *error);
void remote_device_close(cellgate_device *device);
void *remote_host_allocate(cellgate_device *device, size_t size);
void remote_host_release(cellgate_device *device, void *memory);
uint64_t remote_device_memory_used(cellgate_device *device);

/* OK, DEVICE_LOST, or FORKED in a child: what every operation asks first. */
cellgate_status remote_device_check(cellgate_device *device,
                                    cellgate_error *error);

/* Whether the bytes lie in one block of host_allocate(). */
bool remote_device_pinned(cellgate_device *device, const void *memory,
                          size_t bytes);

#endif
