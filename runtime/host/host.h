/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain host versions of every kind of node: what runs when no device takes a
 * node, and the reference that devices are checked against. Simple and right;
 * speed is the plugins' business.
 */
#ifndef CELLGATE_RUNTIME_HOST_HOST_H
#define CELLGATE_RUNTIME_HOST_HOST_H

#include "runtime/model/model.h"

/*
 * Bytes of scratch memory that cg_host_run() needs for a node at these shapes
 * (all known); 0 for most kinds.
 */
size_t cg_host_scratch(const cg_node *node, const cg_shape *shapes);

/*
 * Computes one node. `shapes` and `buffers` are indexed by value number; every
 * shape is known; the buffers of the node's inputs are read and those of its
 * outputs written, dense and row-major, and none overlaps another. The buffer
 * of an input that is CG_NO_VALUE, or NULL for an optional one (a mask that
 * the request did not give, an initial state), counts as absent; a NULL output
 * is not computed. `scratch` has cg_host_scratch() bytes. Allocates nothing;
 * any thread. An id outside the vocabulary is OUT_OF_RANGE with row and step.
 */
cellgate_status cg_host_run(const cellgate_model *model, const cg_node *node,
                            const cg_shape *shapes, void *const *buffers,
                            void *scratch, cellgate_error *error);

/* One activation, in double; NaN stays NaN. The formulas are in types.h. */
double cg_host_activation(cellgate_activation activation, double x);

#endif
