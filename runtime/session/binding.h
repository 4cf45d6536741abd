/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the buffers of a context are laid out for. A request that gives the same
 * tensors as the one before it finds everything where that one had it: shapes,
 * absent masks and addresses need not be worked out again. The numbers in them
 * are another matter: they are read anew for each request.
 */
#ifndef CELLGATE_RUNTIME_SESSION_BINDING_H
#define CELLGATE_RUNTIME_SESSION_BINDING_H

#include "runtime/session/graph.h"

struct cg_call;
struct cg_partition;

typedef struct cg_binding {
    const struct cg_partition *partition; /* NULL: for nothing yet */
    const float *stream; /* its state's memory; NULL: no stream */
    uint64_t number;     /* of requests like it (cg_recall); 0: unknown */
    bool fills;    /* what a request gives has to be copied or converted */
    bool delivers; /* what it is given lies elsewhere at first */
    bool follows;  /* a request in other memory needs no other layout */
    cellgate_input *inputs;   /* [model->input_count], as they were given */
    cellgate_tensor *outputs; /* [model->output_count], likewise */
    size_t *bytes;            /* of all inputs, and of all outputs */
} cg_binding;

/* Whether there was memory for it; finish it in any case. */
bool cg_binding_init(cg_binding *binding, const cellgate_model *model);
void cg_binding_finish(cg_binding *binding);

/* Whether the call's context is laid out for a request that differs at most in
   where its numbers lie. */
bool cg_binding_is_like(const struct cg_call *call);
/* Whether it is laid out for its request. */
bool cg_binding_holds(const struct cg_call *call);
/* From now on it is. */
void cg_binding_keep(const struct cg_call *call);
/* It is laid out for nothing. */
void cg_binding_drop(cg_binding *binding);

#endif
