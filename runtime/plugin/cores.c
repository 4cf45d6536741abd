/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/cores.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP_ROOT "/sys/fs/cgroup"

/* A machine with more processors than a cpu_set_t holds gets a larger set. */
static uint32_t affinity(void)
{
    int processors;

    for (processors = 1024; processors <= 1 << 20; processors *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)processors);
        size_t size = CPU_ALLOC_SIZE((size_t)processors);
        int count = 0;

        if (set == NULL)
            break;
        if (sched_getaffinity(0, size, set) == 0)
            count = CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (count > 0)
            return (uint32_t)count;
    }
    {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        return online > 0 ? (uint32_t)online : 1;
    }
}

uint32_t cg_cores_of_quota(const char *line)
{
    unsigned long long quota, period;

    if (sscanf(line, "%llu %llu", &quota, &period) != 2 || period == 0 ||
        quota == 0)
        return 0;
    quota = quota / period + (quota % period != 0);
    return quota > UINT32_MAX ? 0 : (uint32_t)quota;
}

static uint32_t quota_of_group(const char *group)
{
    char path[4200];
    char line[64] = "";
    FILE *file;

    (void)snprintf(path, sizeof path, GROUP_ROOT "%s/cpu.max", group);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    (void)fclose(file);
    return cg_cores_of_quota(line);
}

/* The process's group in the version 2 hierarchy: the line "0::/path". */
static void group_of_process(char *group, size_t size)
{
    char line[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");

    group[0] = '\0';
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(group, size, "%s", line + 3);
    }
    (void)fclose(file);
}

uint32_t cg_cores_available(void)
{
    uint32_t cores = affinity();
    char group[4096];
    char *slash;

    group_of_process(group, sizeof group);
    for (;;) {
        uint32_t quota = quota_of_group(group);
        if (quota > 0 && quota < cores)
            cores = quota;
        slash = strrchr(group, '/');
        if (slash == NULL)
            return cores;
        *slash = '\0';
    }
}
