/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/services.h"

#include <stdlib.h>
#include <time.h>

void *cg_service_allocate(void *context, size_t alignment, size_t size)
{
    void *memory;

    (void)context;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return NULL;
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if (posix_memalign(&memory, alignment, size > 0 ? size : 1) != 0)
        return NULL;
    return memory;
}

void cg_service_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

uint64_t cg_service_clock(void *context)
{
    struct timespec now;

    (void)context;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *cg_service_default(const cellgate_key *keys, size_t key_count,
                               const char *key)
{
    size_t i;

    for (i = 0; i < key_count; i++)
        if (strcmp(keys[i].name, key) == 0)
            return keys[i].default_text;
    return NULL;
}
