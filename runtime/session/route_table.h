/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pinned classes of requests: found without a lock, by any thread, put by
 * one at a time.
 */
#ifndef CELLGATE_RUNTIME_SESSION_ROUTE_TABLE_H
#define CELLGATE_RUNTIME_SESSION_ROUTE_TABLE_H

#include "runtime/session/route.h"

typedef struct cg_route_table cg_route_table;

cg_route_table *cg_route_table_create(void);        /* NULL: no memory */
void cg_route_table_destroy(cg_route_table *table); /* NULL is allowed */

/* Whether the class `key`, which is not 0, has a pin, and of which
   generation. */
bool cg_route_table_find(cg_route_table *table, uint64_t key,
                         uint64_t *generation, cg_pin *pin);
/* May take the place of another class, which is decided anew when it comes. */
void cg_route_table_put(cg_route_table *table, uint64_t key,
                        uint64_t generation, const cg_pin *pin);

#endif
