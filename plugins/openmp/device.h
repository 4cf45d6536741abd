/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: the instance and the open device. */
#ifndef CELLGATE_OPENMP_DEVICE_H
#define CELLGATE_OPENMP_DEVICE_H

#include "cellgate/plugin.h"
#include "plugins/openmp/levels.h"
#include "plugins/openmp/team.h"

/* What the host calls the resource that this plugin computes on. */
#define CPU_RESOURCE "cpu"

struct cellgate_instance {
    const cellgate_host *host;
};

struct cellgate_device {
    const cellgate_host *host;
    const struct cpu_kernels *kernels[CPU_PACKS];
    uint32_t threads; /* at most what the host grants; at least 1 */
    struct cpu_team *team;
};

#endif /* CELLGATE_OPENMP_DEVICE_H */
