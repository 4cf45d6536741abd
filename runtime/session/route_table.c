/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/route_table.h"

#define SLOTS 1024u /* a power of two */
#define TRIES 8u    /* places where a class may lie */

/*
 * A pinned class. Read without a lock: `version` is odd while the rest is
 * written, and what was read counts only if it did not change meanwhile.
 */
typedef struct slot {
    _Atomic uint32_t version;
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t generation;
    _Atomic(cg_placement *) placement;
    _Atomic(const cg_segment *) rival;
    _Atomic uint64_t numbers[2]; /* seconds and error, ahead and kind, packed */
    _Atomic uint32_t samples;
} slot;

struct cg_route_table {
    slot slots[SLOTS];
};

cg_route_table *cg_route_table_create(void)
{
    return calloc(1, sizeof(cg_route_table));
}

void cg_route_table_destroy(cg_route_table *table)
{
    free(table);
}

static uint64_t pack(float first, float second)
{
    uint32_t words[2];
    uint64_t packed;

    memcpy(&words[0], &first, sizeof first);
    memcpy(&words[1], &second, sizeof second);
    memcpy(&packed, words, sizeof packed);
    return packed;
}

static void unpack(uint64_t packed, float *first, float *second)
{
    uint32_t words[2];

    memcpy(words, &packed, sizeof words);
    memcpy(first, &words[0], sizeof *first);
    memcpy(second, &words[1], sizeof *second);
}

static slot *slot_at(cg_route_table *table, uint64_t key, uint32_t try)
{
    return &table->slots[(key + try) & (SLOTS - 1)];
}

static void read_route(slot *from, cg_route *route)
{
    float seconds, error, ahead, kind;

    route->placement =
        atomic_load_explicit(&from->placement, memory_order_relaxed);
    unpack(atomic_load_explicit(&from->numbers[0], memory_order_relaxed),
           &seconds, &error);
    unpack(atomic_load_explicit(&from->numbers[1], memory_order_relaxed),
           &ahead, &kind);
    route->cost.seconds = seconds;
    route->cost.error = error;
    route->cost.kind = (cg_cost_kind)kind;
    route->cost.samples =
        atomic_load_explicit(&from->samples, memory_order_relaxed);
    route->measured = route->cost.kind != CG_COST_NONE;
    route->ahead = ahead;
    route->rival = atomic_load_explicit(&from->rival, memory_order_relaxed);
}

bool cg_route_table_find(cg_route_table *table, uint64_t key,
                         uint64_t generation, cg_route *route)
{
    for (uint32_t try = 0; try < TRIES; try++) {
        slot *at = slot_at(table, key, try);
        const uint32_t version =
            atomic_load_explicit(&at->version, memory_order_acquire);
        uint64_t found, made_in;

        if (version % 2 != 0)
            continue;
        found = atomic_load_explicit(&at->key, memory_order_relaxed);
        if (found == 0)
            return false;
        if (found != key)
            continue;
        made_in = atomic_load_explicit(&at->generation, memory_order_relaxed);
        read_route(at, route);
        atomic_thread_fence(memory_order_acquire);
        return atomic_load_explicit(&at->version, memory_order_relaxed) ==
                   version &&
               made_in == generation;
    }
    return false;
}

/* The class's place, a free one, or, where all are taken, the first: the class
   there is decided again when it comes. */
static slot *place_for(cg_route_table *table, uint64_t key)
{
    for (uint32_t try = 0; try < TRIES; try++) {
        slot *at = slot_at(table, key, try);
        const uint64_t found =
            atomic_load_explicit(&at->key, memory_order_relaxed);

        if (found == 0 || found == key)
            return at;
    }
    return slot_at(table, key, 0);
}

/* One writer at a time: under the session's mutex. */
void cg_route_table_put(cg_route_table *table, uint64_t key,
                        uint64_t generation, const cg_route *route)
{
    slot *at = place_for(table, key);
    const uint32_t version =
        atomic_load_explicit(&at->version, memory_order_relaxed);

    atomic_store_explicit(&at->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&at->key, key, memory_order_relaxed);
    atomic_store_explicit(&at->generation, generation, memory_order_relaxed);
    atomic_store_explicit(&at->placement, route->placement,
                          memory_order_relaxed);
    atomic_store_explicit(
        &at->numbers[0],
        pack((float)route->cost.seconds, (float)route->cost.error),
        memory_order_relaxed);
    atomic_store_explicit(
        &at->numbers[1],
        pack((float)route->ahead,
             route->measured ? (float)route->cost.kind : 0.0f),
        memory_order_relaxed);
    atomic_store_explicit(&at->rival, route->rival, memory_order_relaxed);
    atomic_store_explicit(&at->samples, route->cost.samples,
                          memory_order_relaxed);
    atomic_store_explicit(&at->version, version + 2, memory_order_release);
}
