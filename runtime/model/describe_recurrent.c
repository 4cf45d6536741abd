/* SPDX-License-Identifier: Apache-2.0 */
/* GRU, SimpleRNN and attention, as people are told. */
#include "config.h"

#include "runtime/model/describe.h"

void cg_describe_recurrent(const cg_node *node, char *text, size_t size)
{
    const cg_recurrent *recurrent = &node->as.recurrent;

    cg_detail_append(text, size, "%lld units",
                     (long long)recurrent->hidden_size);
    cg_detail_activation(text, size, &recurrent->activation);
    if (node->kind == CG_GRU)
        cg_detail_activation(text, size, &recurrent->gate);
    if (recurrent->reverse)
        cg_detail_append(text, size, "reversed");
    if (!recurrent->has_bias)
        cg_detail_append(text, size, "no bias");
    if (node->kind == CG_GRU && !recurrent->reset_after)
        cg_detail_append(text, size, "reset before the product");
    if (recurrent->stateful)
        cg_detail_append(text, size, "stateful");
    if (node->inputs[CG_RECURRENT_INPUT_STATE] != CG_NO_VALUE)
        cg_detail_append(text, size, "initial state");
    if (node->outputs[CG_RECURRENT_OUTPUT_SEQUENCE] != CG_NO_VALUE)
        cg_detail_append(text, size, "returns sequences");
    if (node->outputs[CG_RECURRENT_OUTPUT_STATE] != CG_NO_VALUE)
        cg_detail_append(text, size, "returns states");
    if (node->inputs[CG_RECURRENT_INPUT_MASK] != CG_NO_VALUE &&
        recurrent->zero_masked)
        cg_detail_append(text, size, "zero where masked");
}

void cg_describe_attention(const cg_node *node, char *text, size_t size)
{
    static const char *const modes[] = { "dot product", "concat", "additive" };

    cg_detail_append(text, size, "%s", modes[node->as.attention.mode]);
    if (node->as.attention.scaled)
        cg_detail_append(text, size, "scaled");
    if (node->as.attention.causal)
        cg_detail_append(text, size, "causal");
    if (node->outputs[1] != CG_NO_VALUE)
        cg_detail_append(text, size, "returns scores");
}

int64_t cg_operations_recurrent(const cg_node *node, const cg_shape *output)
{
    const cg_recurrent *recurrent = &node->as.recurrent;
    const int64_t hidden = recurrent->hidden_size;
    const int64_t gates = node->kind == CG_GRU ? 3 : 1;
    int64_t count = 2 * gates * hidden * (recurrent->input_size + hidden);

    (void)output;
    /* r * h, and z * h + (1 - z) * n */
    if (node->kind == CG_GRU)
        count += 5 * hidden;
    if (recurrent->has_bias)
        count += (recurrent->reset_after ? 2 : 1) * gates * hidden;
    return count;
}
