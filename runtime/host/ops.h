/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host versions of the ops share: how a call reaches them and how
 * they read it. Private to runtime/host.
 */
#ifndef CELLGATE_RUNTIME_HOST_OPS_H
#define CELLGATE_RUNTIME_HOST_OPS_H

#include "runtime/host/host.h"

/* One call of cg_host_run(), passed on as it came. */
typedef struct cg_host_call {
    const cellgate_model *model;
    const cg_node *node;
    const cg_shape *shapes; /* by value number */
    void *const *buffers;   /* by value number */
    void *scratch;
} cg_host_call;

/* Input or output number `index` of the node; NULL when it is absent. */
static inline void *cg_host_input(const cg_host_call *call, size_t index)
{
    const cg_node *node = call->node;

    if (index >= node->input_count || node->inputs[index] == CG_NO_VALUE)
        return NULL;
    return call->buffers[node->inputs[index]];
}

static inline void *cg_host_output(const cg_host_call *call, size_t index)
{
    const cg_node *node = call->node;

    if (index >= node->output_count || node->outputs[index] == CG_NO_VALUE)
        return NULL;
    return call->buffers[node->outputs[index]];
}

static inline const cg_shape *cg_host_input_shape(const cg_host_call *call,
                                                  size_t index)
{
    return &call->shapes[call->node->inputs[index]];
}

static inline const cg_shape *cg_host_output_shape(const cg_host_call *call,
                                                   size_t index)
{
    return &call->shapes[call->node->outputs[index]];
}

/* Weight number `index` of the node; NULL when it is absent. */
static inline const float *cg_host_weight(const cg_host_call *call,
                                          size_t index)
{
    const cg_node *node = call->node;

    return index < node->weight_count ? node->weights[index].data : NULL;
}

/* Product of the extents [begin, end). */
static inline int64_t cg_host_extent(const cg_shape *shape, int32_t begin,
                                     int32_t end)
{
    int64_t product = 1;

    for (int32_t axis = begin; axis < end; axis++)
        product *= shape->extent[axis];
    return product;
}

/* One function a kind; see cg_kind for what each computes. */
cellgate_status cg_host_embedding(const cg_host_call *call,
                                  cellgate_error *error);
cellgate_status cg_host_lstm(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_dense(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_activate(const cg_host_call *call,
                                 cellgate_error *error);
cellgate_status cg_host_softmax(const cg_host_call *call,
                                cellgate_error *error);
cellgate_status cg_host_reverse(const cg_host_call *call,
                                cellgate_error *error);
cellgate_status cg_host_merge(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_slice(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_concat(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_nonzero(const cg_host_call *call,
                                cellgate_error *error);
cellgate_status cg_host_not_equal(const cg_host_call *call,
                                  cellgate_error *error);
cellgate_status cg_host_masked(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_pad(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_repeat(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_reshape(const cg_host_call *call,
                                cellgate_error *error);
cellgate_status cg_host_permute(const cg_host_call *call,
                                cellgate_error *error);
cellgate_status cg_host_cast(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_combine(const cg_host_call *call,
                                cellgate_error *error);
cellgate_status cg_host_select(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_dot(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_valid(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_logic(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_log_softmax(const cg_host_call *call,
                                    cellgate_error *error);
cellgate_status cg_host_sparsemax(const cg_host_call *call,
                                  cellgate_error *error);
cellgate_status cg_host_relu(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_prelu(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_normalize(const cg_host_call *call,
                                  cellgate_error *error);
cellgate_status cg_host_affine(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_window(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_pool(const cg_host_call *call, cellgate_error *error);
cellgate_status cg_host_reduce(const cg_host_call *call, cellgate_error *error);

cellgate_status cg_host_attention(const cg_host_call *call,
                                  cellgate_error *error);
/* GRU and SIMPLE_RNN. */
cellgate_status cg_host_recurrent(const cg_host_call *call,
                                  cellgate_error *error);

/* Bytes of scratch that an op needs. */
size_t cg_host_lstm_scratch(const cg_node *node);
size_t cg_host_recurrent_scratch(const cg_node *node);
size_t cg_host_attention_scratch(const cg_node *node, const cg_shape *shapes);

#endif
