/* SPDX-License-Identifier: Apache-2.0 */
/* The records behind device memory; for device_memory.c and device_view.c. */
#ifndef REMOTE_DEVICE_BLOCKS_H
#define REMOTE_DEVICE_BLOCKS_H

#include "tests/plugins/remote/device_memory.h"

/* Blocks are named by their index; live ones are chained by address. */
struct remote_block {
    size_t offset;
    size_t bytes;  /* asked for */
    size_t extent; /* taken, in whole granules */
    uint32_t generation;
    uint32_t mapped; /* views in use */
    uint32_t next;   /* index plus 1 of the next live block, 0 none */
    int state;       /* an enum block_state */
};

enum block_state {
    BLOCK_UNUSED = 0,
    BLOCK_LIVE,
    BLOCK_DOOMED /* freed while mapped; still takes its place */
};

/* The live block that a handle names, or NULL. The lock is held. */
struct remote_block *remote_find_block(const struct remote_memory *memory,
                                       remote_handle handle);

/* Takes an unmapped block out of the pool. The lock is held. */
void remote_give_back(struct remote_memory *memory, struct remote_block *block);

#endif
