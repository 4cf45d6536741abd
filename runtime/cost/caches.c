/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cost/caches.h"

#define LINE 64u
#define MOST ((size_t)256 << 20)
#define UNKNOWN ((size_t)32 << 20)
#define INDICES 10 /* of cache descriptions that are looked for */

/* Of "32768K" or "1M". */
static size_t read_size(FILE *file)
{
    unsigned long number = 0;
    char unit = '\0';

    if (fscanf(file, "%lu%c", &number, &unit) < 1)
        return 0;
    return (size_t)number << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}

static size_t size_of_index(int index)
{
    char path[80];
    size_t size = 0;
    FILE *file;

    snprintf(path, sizeof path,
             "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    file = fopen(path, "re");
    if (file != NULL) {
        size = read_size(file);
        fclose(file);
    }
    return size;
}

/* Where a processor has several caches of a level, sysconf() may add them up:
   sysfs goes first. */
size_t cg_cache_size(void)
{
    size_t largest = 0;
    long size;

    for (int index = 0; index < INDICES; index++) {
        const size_t found = size_of_index(index);

        largest = found > largest ? found : largest;
    }
    if (largest > 0)
        return largest;
#ifdef _SC_LEVEL3_CACHE_SIZE
    size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (size <= 0)
        size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (size > 0)
        return (size_t)size;
#else
    (void)size;
#endif
    return UNKNOWN;
}

cellgate_status cg_displacer_init(cg_displacer *displacer,
                                  cellgate_error *error)
{
    const size_t size = cg_cache_size();
    const size_t bytes = size < MOST / 2 ? 2 * size : MOST;
    unsigned char *memory = malloc(bytes);

    if (memory == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to displace caches of %zu bytes with",
                             size);
    memset(memory, 0, bytes);
    displacer->memory = memory;
    displacer->bytes = bytes;
    return CELLGATE_OK;
}

void cg_displacer_finish(cg_displacer *displacer)
{
    free(displacer->memory);
    *displacer = (cg_displacer){ NULL, 0 };
}

void cg_displace(void *context)
{
    const cg_displacer *displacer = context;

    for (size_t at = 0; at < displacer->bytes; at += LINE)
        displacer->memory[at]++;
}
