/* SPDX-License-Identifier: Apache-2.0 */
/* What the inference of shapes of all kinds shares. Private to infer*.c. */
#ifndef CELLGATE_RUNTIME_MODEL_INFER_H
#define CELLGATE_RUNTIME_MODEL_INFER_H

#include "runtime/model/kinds.h"

/* Of input number `index`; NULL for one left out. */
static inline const cg_shape *
cg_infer_input(const cg_node *node, const cg_shape *shapes, size_t index)
{
    const int32_t value = node->inputs[index];
    return value != CG_NO_VALUE ? &shapes[value] : NULL;
}

static inline void cg_infer_output(const cg_node *node, cg_shape *shapes,
                                   size_t index, const cg_shape *shape)
{
    if (node->outputs[index] != CG_NO_VALUE)
        shapes[node->outputs[index]] = *shape;
}

/* Equal as far as is known. */
bool cg_extents_agree(int64_t a, int64_t b);

/* BAD_SHAPE unless `shape`, which messages call `what`, has `least` to `most`
   axes; unless an extent is what it has to be. */
cellgate_status cg_need_rank(const cg_node *node, const char *what,
                             const cg_shape *shape, int32_t least, int32_t most,
                             cellgate_error *error);
cellgate_status cg_need_extent(const cg_node *node, const char *what,
                               int64_t extent, int64_t expected,
                               cellgate_error *error);
/* The first `axes` of two inputs: they must agree; *into learns from `from`. */
cellgate_status cg_meet_leading(const cg_node *node, cg_shape *into,
                                const cg_shape *from, int32_t axes,
                                cellgate_error *error);

#endif
