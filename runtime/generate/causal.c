/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/generate/causal_rules.h"

/* ---- What follows from the ids ------------------------------------------- */

void cg_causal_follow(const cellgate_model *model, size_t token, bool *follows)
{
    const cg_input *input = &model->inputs[token];

    memset(follows, 0, model->value_count * sizeof *follows);
    follows[input->value] = true;
    if (input->mask != CG_NO_VALUE)
        follows[input->mask] = true;
    for (size_t n = 0; n < model->node_count; n++) {
        const cg_node *node = &model->nodes[n];
        bool any = false;

        for (size_t i = 0; i < node->input_count; i++)
            any = any ||
                  (node->inputs[i] != CG_NO_VALUE && follows[node->inputs[i]]);
        for (size_t i = 0; any && i < node->output_count; i++)
            if (node->outputs[i] != CG_NO_VALUE)
                follows[node->outputs[i]] = true;
    }
}

/* Marks what the scores do not need; everything else is CG_APART at first. */
static void mark_needed(const cellgate_model *model, int32_t scores,
                        cg_reach *reach)
{
    for (size_t v = 0; v < model->value_count; v++)
        reach[v] = CG_UNNEEDED;
    reach[scores] = CG_APART;
    for (size_t n = model->node_count; n-- > 0;) {
        const cg_node *node = &model->nodes[n];
        bool needed = false;

        for (size_t i = 0; i < node->output_count; i++)
            needed = needed || (node->outputs[i] != CG_NO_VALUE &&
                                reach[node->outputs[i]] != CG_UNNEEDED);
        for (size_t i = 0; needed && i < node->input_count; i++)
            if (node->inputs[i] != CG_NO_VALUE)
                reach[node->inputs[i]] = CG_APART;
    }
}

/* ---- Step by step ------------------------------------------------------- */

static bool touched(const cg_trace *trace, const cg_node *node)
{
    bool needed = false, follows = false;

    for (size_t i = 0; i < node->output_count; i++)
        needed = needed || (node->outputs[i] != CG_NO_VALUE &&
                            trace->reach[node->outputs[i]] != CG_UNNEEDED);
    for (size_t i = 0; i < node->input_count; i++)
        follows = follows || cg_causal_reach(trace, node, i) == CG_STEPS ||
                  cg_causal_reach(trace, node, i) == CG_NEWEST;
    return needed && follows;
}

cellgate_status cg_causal_trace(const cellgate_model *model, size_t token,
                                int32_t scores, cg_reach *reach,
                                cellgate_error *error)
{
    const cg_trace trace = { model, reach };
    const cg_input *input = &model->inputs[token];
    cellgate_status status = CELLGATE_OK;

    mark_needed(model, scores, reach);
    if (reach[input->value] == CG_UNNEEDED)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "the scores '%s' do not depend on the ids of "
                             "input '%s'",
                             model->values[scores].name,
                             model->values[input->value].name);
    reach[input->value] = CG_STEPS;
    if (input->mask != CG_NO_VALUE)
        reach[input->mask] = CG_STEPS;
    for (size_t n = 0; status == CELLGATE_OK && n < model->node_count; n++)
        if (touched(&trace, &model->nodes[n]))
            status = cg_causal_rule(&trace, &model->nodes[n], error);
    if (status == CELLGATE_OK && reach[scores] == CG_NEWEST &&
        model->values[scores].rank != 2)
        status = cellgate_fail(
            error, CELLGATE_UNSUPPORTED,
            "the scores '%s' have steps that are not those "
            "of input '%s', so they cannot be computed a step at a time",
            model->values[scores].name, model->values[input->value].name);
    return status;
}
