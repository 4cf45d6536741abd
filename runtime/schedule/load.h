/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What resources have been given to do, by predicted times: how long the next
 * request would wait for one.
 *
 * A resource has places: the threads of a processor, the queue depth of a
 * card. A request holds one or more of them from the moment it is sent there
 * until it ends, so what waits for a device counts as well as what runs. Where
 * a request ends sooner or later than predicted, those behind it move.
 *
 * Any thread. Nothing here waits, and nothing is allocated after a load was
 * made.
 */
#ifndef CELLGATE_RUNTIME_SCHEDULE_LOAD_H
#define CELLGATE_RUNTIME_SCHEDULE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "cellgate/types.h"
#include "runtime/cost/clock.h"

typedef struct cg_load cg_load;

/* Places of a resource beyond these are not told apart. */
#define CG_LOAD_MOST 64u

/* The loads of all resources of a runtime, shared by its sessions. */
typedef struct cg_loads cg_loads;

/* NULL: no memory. */
cg_loads *cg_loads_create(const cg_clock *clock);
cg_loads *cg_loads_reference(cg_loads *loads);
void cg_loads_release(cg_loads *loads); /* NULL is allowed */

/* The load of a resource, made with `places` when it is first asked for; valid
   as long as `loads`. NULL: no memory. */
cg_load *cg_loads_of(cg_loads *loads, const char *resource, unsigned places);

/* A request's places. */
typedef struct cg_hold {
    uint64_t places; /* a bit each */
    double end;      /* predicted */
    uint64_t begun;  /* count of the requests begun before */
    bool alone;
} cg_hold;

unsigned cg_load_places(const cg_load *load);

/* Seconds until `places` are predicted to be free; 0: they are. */
double cg_load_wait(cg_load *load, unsigned places);

/* Sends a request of so many predicted seconds there. */
void cg_load_begin(cg_load *load, unsigned places, double seconds,
                   cg_hold *hold);
/* It has ended. Returns whether nothing else was there meanwhile: whether the
   time it took is what it costs. */
bool cg_load_end(cg_load *load, const cg_hold *hold);

#endif
