/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/generate/parts.h"

void cg_parts_finish(cg_parts *parts)
{
    cellgate_model_destroy(parts->encoder);
    cellgate_model_destroy(parts->step);
    free(parts->wires);
    memset(parts, 0, sizeof *parts);
}

/* The smallest vocabulary of those that look the ids up. */
static int64_t known_ids(const cellgate_model *step, int32_t token)
{
    int64_t known = INT32_MAX;

    for (size_t n = 0; n < step->node_count; n++) {
        const cg_node *node = &step->nodes[n];

        if (node->kind == CG_EMBEDDING && node->inputs[0] == token &&
            node->as.embedding.vocabulary < known)
            known = node->as.embedding.vocabulary;
    }
    return known;
}

cellgate_status cg_parts_describe(cg_parts *parts, cellgate_error *error)
{
    const cellgate_model *step = parts->step;
    const cg_value *scores = &step->values[step->outputs[parts->scores]];
    const int64_t words =
        scores->rank > 0 ? scores->shape[scores->rank - 1] : CG_UNKNOWN;

    if (scores->dtype != CELLGATE_F32 || scores->rank < 2 || scores->rank > 3 ||
        words < 1 ||
        (scores->rank == 3 && scores->shape[1] != 1 &&
         scores->shape[1] != CG_UNKNOWN))
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "output '%s' does not score words: that takes "
                             "(batch, steps, words) or (batch, words), and a "
                             "known number of words",
                             scores->name);
    parts->words = words;
    parts->known = known_ids(step, step->inputs[parts->token].value);
    parts->probabilities = scores->producer >= 0 &&
                           step->nodes[scores->producer].kind == CG_SOFTMAX;
    return CELLGATE_OK;
}
