/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/host/ops.h"

typedef cellgate_status (*host_op)(const cg_host_call *call,
                                   cellgate_error *error);

static const host_op host_ops[CG_KIND_COUNT] = {
    [CG_EMBEDDING] = cg_host_embedding,
    [CG_LSTM] = cg_host_lstm,
    [CG_DENSE] = cg_host_dense,
    [CG_ACTIVATION] = cg_host_activate,
    [CG_SOFTMAX] = cg_host_softmax,
    [CG_REVERSE] = cg_host_reverse,
    [CG_MERGE] = cg_host_merge,
    [CG_SLICE] = cg_host_slice,
    [CG_CONCAT] = cg_host_concat,
    [CG_NONZERO] = cg_host_nonzero,
    [CG_NOT_EQUAL] = cg_host_not_equal,
    [CG_MASKED] = cg_host_masked,
    [CG_PAD] = cg_host_pad,
    [CG_REPEAT] = cg_host_repeat,
    [CG_RESHAPE] = cg_host_reshape,
    [CG_PERMUTE] = cg_host_permute,
    [CG_CAST] = cg_host_cast,
    [CG_COMBINE] = cg_host_combine,
    [CG_DOT] = cg_host_dot,
    [CG_SELECT] = cg_host_select,
    [CG_VALID] = cg_host_valid,
    [CG_LOGIC] = cg_host_logic,
    [CG_GRU] = cg_host_recurrent,
    [CG_SIMPLE_RNN] = cg_host_recurrent,
    [CG_ATTENTION] = cg_host_attention,
    [CG_LOG_SOFTMAX] = cg_host_log_softmax,
    [CG_SPARSEMAX] = cg_host_sparsemax,
    [CG_RELU] = cg_host_relu,
    [CG_PRELU] = cg_host_prelu,
    [CG_NORMALIZE] = cg_host_normalize,
    [CG_AFFINE] = cg_host_affine,
    [CG_WINDOW] = cg_host_window,
    [CG_POOL] = cg_host_pool,
    [CG_REDUCE] = cg_host_reduce,
};

size_t cg_host_scratch(const cg_node *node, const cg_shape *shapes)
{
    switch (node->kind) {
    case CG_LSTM:
        return cg_host_lstm_scratch(node);
    case CG_GRU:
    case CG_SIMPLE_RNN:
        return cg_host_recurrent_scratch(node);
    case CG_ATTENTION:
        return cg_host_attention_scratch(node, shapes);
    default:
        return 0;
    }
}

cellgate_status cg_host_run(const cellgate_model *model, const cg_node *node,
                            const cg_shape *shapes, void *const *buffers,
                            void *scratch, cellgate_error *error)
{
    const cg_host_call call = { model, node, shapes, buffers, scratch };

    if ((size_t)node->kind >= CG_KIND_COUNT || host_ops[node->kind] == NULL)
        return cellgate_fail(error, CELLGATE_INTERNAL,
                             "node '%s' is of kind %d, which has no host "
                             "version",
                             node->name, (int)node->kind);
    return host_ops[node->kind](&call, error);
}
