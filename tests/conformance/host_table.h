/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host services that the suite offers to the plugin under test: an
 * allocator that counts, settings from the command line, a thread budget.
 */
#ifndef TESTS_CONFORMANCE_HOST_TABLE_H
#define TESTS_CONFORMANCE_HOST_TABLE_H

#include "cellgate/plugin.h"

/* One --set key=value. */
typedef struct host_setting {
    char *key;
    char *value;
} host_setting;

/*
 * The host. `keys` is the plugin's declaration, whose defaults hold for keys
 * that no setting names. Counters change from any thread.
 */
typedef struct host_table {
    cellgate_host table; /* table.context is this struct */
    const cellgate_key *keys;
    size_t key_count;
    uint32_t threads;
    int verbose;          /* log lines at INFO and DEBUG are shown too */
    int64_t outstanding;  /* allocations not yet released */
    uint64_t allocations; /* ever made */
    uint64_t misuses;     /* releases of what was never allocated */
} host_table;

/* What the plugin sees as its settings; owned by the caller. */
struct cellgate_settings {
    const host_setting *list;
    size_t count;
};

/* `threads` 0: as many as the machine has online. */
void host_table_init(host_table *host, uint32_t threads, int verbose);

/* Consistent snapshots of the counters. */
int64_t host_outstanding(host_table *host);
uint64_t host_allocations(host_table *host);
uint64_t host_misuses(host_table *host);

/*
 * A key's value in canonical form, as the core would give it: 1 when `text` is
 * valid for the key, with the canonical form in `canonical`; else 0.
 */
int host_canonical(const cellgate_key *key, const char *text, char *canonical,
                   size_t size);

#endif
