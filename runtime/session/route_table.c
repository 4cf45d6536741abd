/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/route_table.h"

#define SLOTS 1024u /* a power of two */
#define TRIES 8u    /* places where a class may lie */
#define WORDS (sizeof(cg_pin) / sizeof(uint64_t))
_Static_assert(sizeof(cg_pin) % sizeof(uint64_t) == 0, "a pin is whole words");

/*
 * A pinned class. Read without a lock: `version` is odd while the rest is
 * written, and what was read counts only if it did not change meanwhile. A slot
 * that was never written has no pin: most programs have few classes.
 */
typedef struct slot {
    _Atomic uint32_t version;
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t generation;
    _Atomic uint64_t pin[WORDS];
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

static slot *slot_at(cg_route_table *table, uint64_t key, uint32_t try)
{
    return &table->slots[(key + try) & (SLOTS - 1)];
}

static void read_pin(slot *from, cg_pin *pin)
{
    for (size_t at = 0; at < WORDS; at++) {
        const uint64_t word =
            atomic_load_explicit(&from->pin[at], memory_order_relaxed);

        memcpy((char *)pin + at * sizeof word, &word, sizeof word);
    }
}

static void write_pin(slot *to, const cg_pin *pin)
{
    for (size_t at = 0; at < WORDS; at++) {
        uint64_t word;

        memcpy(&word, (const char *)pin + at * sizeof word, sizeof word);
        atomic_store_explicit(&to->pin[at], word, memory_order_relaxed);
    }
}

bool cg_route_table_find(cg_route_table *table, uint64_t key,
                         uint64_t *generation, cg_pin *pin)
{
    for (uint32_t try = 0; try < TRIES; try++) {
        slot *at = slot_at(table, key, try);
        const uint32_t version =
            atomic_load_explicit(&at->version, memory_order_acquire);
        uint64_t found;

        if (version % 2 != 0)
            continue;
        found = atomic_load_explicit(&at->key, memory_order_relaxed);
        if (found == 0)
            return false;
        if (found != key)
            continue;
        *generation =
            atomic_load_explicit(&at->generation, memory_order_relaxed);
        read_pin(at, pin);
        atomic_thread_fence(memory_order_acquire);
        return atomic_load_explicit(&at->version, memory_order_relaxed) ==
               version;
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
                        uint64_t generation, const cg_pin *pin)
{
    slot *at = place_for(table, key);
    const uint32_t version =
        atomic_load_explicit(&at->version, memory_order_relaxed);

    atomic_store_explicit(&at->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&at->key, key, memory_order_relaxed);
    atomic_store_explicit(&at->generation, generation, memory_order_relaxed);
    write_pin(at, pin);
    atomic_store_explicit(&at->version, version + 2, memory_order_release);
}
