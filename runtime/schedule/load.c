/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/schedule/load.h"

struct cg_load {
    cg_load *next; /* of the same runtime */
    char *resource;
    const cg_clock *clock;
    unsigned places;
    pthread_mutex_t mutex;        /* of all below */
    uint64_t begun;               /* requests ever sent here */
    atomic_uint active;           /* written under it, read without */
    double free_at[CG_LOAD_MOST]; /* when each place is predicted to be free */
    uint16_t held[CG_LOAD_MOST];  /* requests that hold it */
    /* One request is here, with the first places until `end`, and the two above
       do not say so yet: most go before anybody looks. */
    bool single;
    uint64_t places_of;
    double end;
};

struct cg_loads {
    atomic_size_t references;
    const cg_clock *clock;
    pthread_mutex_t mutex;
    cg_load *first;
};

/* ---- All of them -------------------------------------------------------- */

cg_loads *cg_loads_create(const cg_clock *clock)
{
    cg_loads *made = calloc(1, sizeof *made);

    if (made == NULL)
        return NULL;
    atomic_init(&made->references, 1);
    made->clock = clock;
    pthread_mutex_init(&made->mutex, NULL);
    return made;
}

cg_loads *cg_loads_reference(cg_loads *loads)
{
    atomic_fetch_add(&loads->references, 1);
    return loads;
}

void cg_loads_release(cg_loads *loads)
{
    if (loads == NULL || atomic_fetch_sub(&loads->references, 1) > 1)
        return;
    while (loads->first != NULL) {
        cg_load *load = loads->first;

        loads->first = load->next;
        pthread_mutex_destroy(&load->mutex);
        free(load->resource);
        free(load);
    }
    pthread_mutex_destroy(&loads->mutex);
    free(loads);
}

static cg_load *load_new(const cg_loads *loads, const char *resource,
                         unsigned places)
{
    cg_load *made = calloc(1, sizeof *made);

    if (made != NULL)
        made->resource = strdup(resource);
    if (made == NULL || made->resource == NULL) {
        free(made);
        return NULL;
    }
    made->clock = loads->clock;
    made->places = places > 1 ? places : 1;
    if (made->places > CG_LOAD_MOST)
        made->places = CG_LOAD_MOST;
    pthread_mutex_init(&made->mutex, NULL);
    made->next = loads->first;
    return made;
}

cg_load *cg_loads_of(cg_loads *loads, const char *resource, unsigned places)
{
    cg_load *found;

    pthread_mutex_lock(&loads->mutex);
    for (found = loads->first; found != NULL; found = found->next)
        if (strcmp(found->resource, resource) == 0)
            break;
    if (found == NULL) {
        found = load_new(loads, resource, places);
        if (found != NULL)
            loads->first = found;
    }
    pthread_mutex_unlock(&loads->mutex);
    return found;
}

/* ---- One ---------------------------------------------------------------- */

unsigned cg_load_places(const cg_load *load)
{
    return load->places;
}

/* A request that is late may end at any moment, and has not yet. */
#define AT_LEAST 1e-6

static double free_at(const cg_load *load, unsigned place, double now)
{
    if (load->held[place] == 0)
        return now;
    return load->free_at[place] > now + AT_LEAST ? load->free_at[place]
                                                 : now + AT_LEAST;
}

/* So many of the first places. */
static uint64_t first_places(const cg_load *load, unsigned wanted)
{
    return wanted >= load->places ? UINT64_MAX >> (64 - load->places)
                                  : (UINT64_C(1) << wanted) - 1;
}

/* The lowest of `places`, which has any. */
static unsigned lowest(uint64_t places)
{
    return (unsigned)__builtin_ctzll(places);
}

static void hold_places(cg_load *load, uint64_t places, double end)
{
    for (; places != 0; places &= places - 1) {
        load->free_at[lowest(places)] = end;
        load->held[lowest(places)]++;
    }
}

/* The places that are free first, `wanted` of them; *last: when all are. */
static uint64_t first_free(const cg_load *load, unsigned wanted, double now,
                           double *last)
{
    const uint64_t all = first_places(load, load->places);
    double at[CG_LOAD_MOST] = { 0 };
    uint64_t taken = 0;

    *last = now;
    for (unsigned place = 0; place < load->places; place++)
        at[place] = free_at(load, place, now);
    for (unsigned got = 0; got < wanted && taken != all; got++) {
        unsigned best = lowest(all & ~taken);

        for (uint64_t left = all & ~taken; left != 0; left &= left - 1)
            if (at[lowest(left)] < at[best])
                best = lowest(left);
        taken |= UINT64_C(1) << best;
        *last = at[best];
    }
    return taken;
}

/* With the mutex held, before places are looked at. */
static void spread_single(cg_load *load)
{
    if (load->single)
        hold_places(load, load->places_of, load->end);
    load->single = false;
}

double cg_load_wait(cg_load *load, unsigned places)
{
    double wait, now;

    if (atomic_load_explicit(&load->active, memory_order_relaxed) == 0)
        return 0;
    now = cg_now(load->clock);
    pthread_mutex_lock(&load->mutex);
    spread_single(load);
    (void)first_free(load, places, now, &wait);
    pthread_mutex_unlock(&load->mutex);
    return wait - now;
}

/* With the mutex held: one more or one less; how many there were. */
static unsigned count(cg_load *load, int by)
{
    const unsigned active =
        atomic_load_explicit(&load->active, memory_order_relaxed);

    atomic_store_explicit(&load->active, active + (unsigned)by,
                          memory_order_relaxed);
    return active;
}

void cg_load_begin(cg_load *load, unsigned places, double seconds,
                   cg_hold *hold)
{
    const double now = cg_now(load->clock);
    double start = now;

    pthread_mutex_lock(&load->mutex);
    hold->alone = count(load, 1) == 0;
    hold->begun = ++load->begun;
    if (hold->alone) {
        hold->places = load->places_of = first_places(load, places);
        hold->end = load->end = now + seconds;
        load->single = true;
    } else {
        spread_single(load);
        hold->places = first_free(load, places, now, &start);
        hold->end = start + seconds;
        hold_places(load, hold->places, hold->end);
    }
    pthread_mutex_unlock(&load->mutex);
}

/* With the mutex held: those behind it move. */
static void give_back(cg_load *load, const cg_hold *hold)
{
    const double late = cg_now(load->clock) - hold->end;

    for (uint64_t left = hold->places; left != 0; left &= left - 1) {
        load->free_at[lowest(left)] += late;
        load->held[lowest(left)]--;
    }
}

bool cg_load_end(cg_load *load, const cg_hold *hold)
{
    bool alone;

    pthread_mutex_lock(&load->mutex);
    if (load->single)
        load->single = false;
    else
        give_back(load, hold);
    (void)count(load, -1);
    alone = hold->alone && load->begun == hold->begun;
    pthread_mutex_unlock(&load->mutex);
    return alone;
}
