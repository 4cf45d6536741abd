/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How every error about a configuration begins:
 *
 *   file:line: [section] key: what is wrong and what to do
 */
#ifndef CELLGATE_RUNTIME_CONFIG_COMPLAINT_H
#define CELLGATE_RUNTIME_CONFIG_COMPLAINT_H

#include "cellgate/plugin.h"

/* What a complaint is about. */
typedef struct cg_place {
    const char *file;
    int line;            /* 0: the file as a whole */
    const char *section; /* NULL: outside sections, or not about one */
    const char *key;     /* NULL: not about a key */
} cg_place;

/* Fills *error (NULL is allowed) and returns CELLGATE_BAD_CONFIG. */
CELLGATE_PRINTF_LIKE(3, 4)
cellgate_status cg_complain(cellgate_error *error, const cg_place *place,
                            const char *format, ...);

#endif
