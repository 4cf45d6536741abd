/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition: the graph cut into parts, each a segment for the device or one
 * node for the host, in an order in which they can run. Immutable once made.
 *
 * How chains may run depends on which masks there are, so a placement has two
 * partitions: one for requests that give no mask, one for those that do.
 */
#ifndef CELLGATE_RUNTIME_SESSION_PARTITION_H
#define CELLGATE_RUNTIME_SESSION_PARTITION_H

#include "runtime/session/chain.h"
#include "runtime/session/pool.h"

typedef struct cg_part {
    cg_segment *segment; /* NULL: a host op */
    size_t node;         /* of the host op, or first of the segment */
    int32_t mask;        /* of a segment's LSTMs, or CG_NO_VALUE */
    char *reason;        /* of a host op: why not on a device; of a segment:
                            why it ends where it does, "" if nothing is odd */
} cg_part;

typedef struct cg_partition {
    cg_part *parts;
    size_t count;
    bool *present; /* [the graph's values]: false for masks that these
                      requests do not give */
} cg_partition;

/* What is done with the beginning of a chain. */
typedef struct cg_choice {
    cg_segment *segment; /* NULL: its first node runs on the host */
    char reason[640];    /* as a part's */
} cg_choice;

/*
 * Decides for nodes[0 .. longest), a chain as long as the rules of the graph
 * allow: how much of it becomes one segment, and on which device. A failure of
 * a device ends the making of the partition.
 */
typedef struct cg_chooser {
    cellgate_status (*choose)(void *context, const size_t *nodes,
                              size_t longest, cg_choice *choice,
                              cellgate_error *error);
    void *context;
} cg_chooser;

/*
 * `chooser` NULL: every part is a host op, because of `host_reason`. `masked`:
 * for requests that give masks. The segments are their pool's, and aren't
 * prepared yet.
 */
cellgate_status cg_partition_init(cg_partition *partition,
                                  const cg_graph *graph,
                                  const cg_chooser *chooser,
                                  const char *host_reason, bool masked,
                                  cellgate_error *error);
void cg_partition_finish(cg_partition *partition);

/*
 * The chooser that asks one device for as much of the chain as it takes, in the
 * variant of that name, or in its first float32 one.
 */
typedef struct cg_greedy {
    cg_segment_pool *pool;
    const cg_engine *engine;
    const char *variant; /* or NULL */
} cg_greedy;

cellgate_status cg_choose_greedily(void *greedy, const size_t *nodes,
                                   size_t longest, cg_choice *choice,
                                   cellgate_error *error);

#endif
