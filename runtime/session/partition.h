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

#include "runtime/session/segment.h"

typedef struct cg_part {
    cg_segment *segment; /* NULL: a host op */
    size_t node;         /* of the host op, or first of the segment */
    int32_t mask;        /* of a segment's LSTMs, or CG_NO_VALUE */
    char *reason;        /* of a host op: why not on the device */
} cg_part;

typedef struct cg_partition {
    cg_part *parts;
    size_t count;
    bool *present; /* [the graph's values]: false for masks that these
                      requests do not give */
} cg_partition;

/* The segments made so far, so that partitions share those they agree on. */
typedef struct cg_segment_list {
    cg_segment **segments;
    size_t count, capacity;
} cg_segment_list;

void cg_segment_list_finish(cg_segment_list *list);

/*
 * `engine` NULL: every part is a host op, because of `host_reason`. `masked`:
 * for requests that give masks. New segments are added to *list, which owns
 * them; they aren't prepared yet. What the device refuses becomes a host op
 * with the reason; another failure of the device is returned.
 */
cellgate_status cg_partition_init(cg_partition *partition,
                                  const cg_graph *graph,
                                  const cg_engine *engine,
                                  const char *host_reason, bool masked,
                                  cg_segment_list *list, cellgate_error *error);
void cg_partition_finish(cg_partition *partition);

#endif
