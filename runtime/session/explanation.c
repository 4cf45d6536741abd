/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/session/explanation.h"

_Static_assert((int)CELLGATE_ESTIMATE_EXACT == (int)CG_COST_EXACT &&
                   (int)CELLGATE_ESTIMATE_NONE == (int)CG_COST_NONE,
               "the kinds of estimates are the same list");

static void line_finish(cg_explanation_line *of)
{
    free(of->nodes);
    free(of->device);
    free(of->variant);
    free(of->excluded);
}

static bool line_init(cg_explanation_line *of, uint32_t piece,
                      const char *nodes, const char *device,
                      const char *variant, const char *excluded)
{
    memset(of, 0, sizeof *of);
    of->nodes = strdup(nodes);
    of->device = strdup(device);
    of->variant = strdup(variant);
    of->excluded = strdup(excluded);
    of->info = (cellgate_candidate_info){ .struct_size = sizeof of->info,
                                          .piece = piece,
                                          .nodes = of->nodes,
                                          .device = of->device,
                                          .variant = of->variant,
                                          .excluded = of->excluded };
    return of->nodes != NULL && of->device != NULL && of->variant != NULL &&
           of->excluded != NULL;
}

cellgate_status cg_explanation_add(cellgate_explanation *explanation,
                                   uint32_t piece, const char *nodes,
                                   const char *device, const char *variant,
                                   const char *excluded,
                                   cg_explanation_line **added,
                                   cellgate_error *error)
{
    cg_explanation_line *grown =
        realloc(explanation->lines,
                (explanation->count + 1) * sizeof *explanation->lines);

    if (grown != NULL) {
        explanation->lines = grown;
        *added = &grown[explanation->count];
        if (line_init(*added, piece, nodes, device, variant, excluded)) {
            explanation->count++;
            return CELLGATE_OK;
        }
        line_finish(*added);
    }
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to explain a decision");
}

void cg_explanation_runners_first(cellgate_explanation *explanation,
                                  size_t first)
{
    cg_explanation_line *lines = explanation->lines;

    for (size_t at = first; at < explanation->count; at++) {
        const cg_explanation_line line = lines[at];
        size_t to = at;

        while (line.segment != NULL && to > first &&
               lines[to - 1].segment == NULL) {
            lines[to] = lines[to - 1];
            to--;
        }
        lines[to] = line;
    }
}

cellgate_status cg_explanation_exclude(cg_explanation_line *line,
                                       const char *why, cellgate_error *error)
{
    char *text = strdup(why);

    if (text == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to explain a decision");
    free(line->excluded);
    line->info.excluded = line->excluded = text;
    return CELLGATE_OK;
}

void cellgate_explanation_destroy(cellgate_explanation *explanation)
{
    if (explanation == NULL)
        return;
    for (size_t at = 0; at < explanation->count; at++)
        line_finish(&explanation->lines[at]);
    free(explanation->lines);
    free(explanation);
}

cellgate_status
cellgate_explanation_decision(const cellgate_explanation *explanation,
                              cellgate_decision *decision)
{
    cellgate_decision filled = explanation->decision;

    if (!cg_given_fillable(decision))
        return CELLGATE_INVALID;
    filled.struct_size = sizeof filled;
    filled.choice = explanation->choice;
    filled.rival = explanation->rival;
    filled.reason = explanation->reason;
    cellgate_struct_copy(decision, &filled);
    return CELLGATE_OK;
}

cellgate_status
cellgate_explanation_get(const cellgate_explanation *explanation, size_t index,
                         cellgate_candidate_info *info)
{
    if (!cg_given_fillable(info))
        return CELLGATE_INVALID;
    if (index >= explanation->count)
        return CELLGATE_END;
    cellgate_struct_copy(info, &explanation->lines[index].info);
    return CELLGATE_OK;
}

const char *cellgate_estimate_name(int32_t estimate)
{
    if (estimate < CELLGATE_ESTIMATE_NONE || estimate > CELLGATE_ESTIMATE_EXACT)
        estimate = CELLGATE_ESTIMATE_NONE;
    return cg_cost_kind_name((cg_cost_kind)estimate);
}
