/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment: a chain of the graph's nodes that one device runs as a unit, with
 * the variant chosen for it and its prepared weights. Immutable once prepared;
 * shared by partitions and by any number of plans.
 */
#ifndef CELLGATE_RUNTIME_SESSION_SEGMENT_H
#define CELLGATE_RUNTIME_SESSION_SEGMENT_H

#include "runtime/session/engine.h"
#include "runtime/session/graph.h"

typedef union cg_any_op {
    cellgate_op head;
    cellgate_lstm lstm;
    cellgate_dense dense;
    cellgate_embedding embedding;
    cellgate_activation_op activation;
    cellgate_softmax softmax;
} cg_any_op;

typedef struct cg_segment {
    size_t index; /* in its pool */
    size_t *nodes;
    size_t node_count;
    char *structure;  /* canonical text of what is computed: costs are of it */
    char *names;      /* of the nodes, separated by ", " */
    int32_t x;        /* value that goes in */
    int32_t sequence; /* values that come out, or CG_NO_VALUE */
    int32_t last;
    bool rows; /* x is a row a sample: given as a sequence of one step */
    /* The LSTM that the sequence result owes its masked steps to; -1: none. */
    int64_t shaping_lstm;
    bool zero_last; /* LAST of masked rows is set to zero */
    cg_any_op *ops;
    const cellgate_op **op_list;
    cellgate_segment chain;
    cellgate_variant variant;
    cellgate_weights *weights;
    bool owns_weights; /* else they are another segment's of the pool */
    /* That laying them out took, here or for that segment; 0: not measured. */
    double prepared_in;
    const cg_engine *engine;
} cg_segment;

/*
 * Describes nodes[0 .. count) of the graph, in chain order, for a variant of
 * the device: `wanted`, unless NULL; else the one called `name`, where the
 * segment has it; else the first float32 one. UNSUPPORTED: the device's reason.
 * Nothing slow.
 */
cellgate_status cg_segment_create(const cg_graph *graph,
                                  const cg_engine *engine, const size_t *nodes,
                                  size_t count, const cellgate_variant *wanted,
                                  const char *name, cg_segment **segment,
                                  cellgate_error *error);
/* Variant number `index` of the segment on its device, at this shape (NULL: at
   any); END after the last. DEVICE_LOST: its engine is retired. */
cellgate_status cg_segment_variant(const cg_segment *segment,
                                   const cellgate_shape *shape, uint32_t index,
                                   cellgate_variant *variant,
                                   cellgate_error *error);
/* Whether the device takes the segment's variant at this shape (NULL: at any),
   or UNSUPPORTED with its reason. */
cellgate_status cg_segment_fits(const cg_segment *segment,
                                const cellgate_shape *shape,
                                cellgate_error *error);
void cg_segment_destroy(cg_segment *segment);

/* structure.c: malloc'ed; NULL: no memory. */
char *cg_segment_structure(const cg_segment *segment);

/* Whether a plugin may be asked to run a node of this kind. */
bool cg_segment_takes(cg_kind kind);

#endif
