/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a stream, in the canonical layout: for each recurrent node of
 * the model h [directions][batch][R] and then, for an LSTM, c
 * [directions][batch][H], float32.
 */
#ifndef CELLGATE_RUNTIME_SESSION_STREAM_H
#define CELLGATE_RUNTIME_SESSION_STREAM_H

#include "runtime/session/graph.h"

struct cellgate_stream {
    const cg_graph *graph;
    int64_t batch;
    float **states; /* [graph->state_count], into `memory` */
    float *memory;
    size_t size; /* floats in it */
};

/* Numbers in state `index` of the graph for a batch; -1 if that doesn't fit in
   memory. */
int64_t cg_stream_state_size(const cg_graph *graph, size_t index,
                             int64_t batch);

#endif
