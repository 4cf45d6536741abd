/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor's caches, and putting out of them what the last run left there,
 * as another program's work would between two requests.
 */
#ifndef CELLGATE_RUNTIME_COST_CACHES_H
#define CELLGATE_RUNTIME_COST_CACHES_H

#include "cellgate/plugin.h"

/* Bytes of the largest cache that the first processor uses, as Linux's sysfs
   has it, else as sysconf() does; 32 MiB where neither knows one. */
size_t cg_cache_size(void);

typedef struct cg_displacer {
    unsigned char *memory;
    size_t bytes; /* twice the largest cache, at most 256 MiB */
} cg_displacer;

/* NO_MEMORY. */
cellgate_status cg_displacer_init(cg_displacer *displacer,
                                  cellgate_error *error);
void cg_displacer_finish(cg_displacer *displacer); /* of zeros is allowed */

/*
 * Writes to each cache line of its memory, on the calling thread; the `idle`
 * function of a cg_measuring, whose context is the displacer. What another
 * core's own caches hold stays where the shared cache does not include it.
 */
void cg_displace(void *displacer);

#endif
