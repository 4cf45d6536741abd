/* SPDX-License-Identifier: Apache-2.0 */
/* A model on one device, without asking what it costs. */
#include "config.h"

#include "runtime/session/partition.h"

/* Why a chain stops before a node that the rules would have let in. */
static void note_cut(const cg_graph *graph, size_t refused,
                     const cellgate_error *reason, cg_choice *choice)
{
    snprintf(choice->reason, sizeof choice->reason, "not together with %s: %s",
             graph->nodes[refused].name, reason->text);
}

/* The longest chain that the device takes; the node alone on the host if it
   does not even take that. */
cellgate_status cg_choose_greedily(void *context, const size_t *nodes,
                                   size_t longest, cg_choice *choice,
                                   cellgate_error *error)
{
    const cg_greedy *greedy = context;
    cellgate_error refusal = CELLGATE_ERROR_INIT, cut = CELLGATE_ERROR_INIT;
    cellgate_status status = CELLGATE_UNSUPPORTED;
    size_t count;

    for (count = longest; count > 0; count--) {
        status = cg_segment_pool_get(greedy->pool, greedy->engine, nodes, count,
                                     NULL, greedy->variant, &choice->segment,
                                     &refusal);
        if (status != CELLGATE_UNSUPPORTED)
            break;
        cut = count > 1 ? refusal : cut;
    }
    if (status == CELLGATE_UNSUPPORTED) {
        choice->segment = NULL;
        snprintf(choice->reason, sizeof choice->reason, "%s", refusal.text);
        return CELLGATE_OK;
    }
    if (status != CELLGATE_OK)
        return cellgate_fail(error, status, "%s", refusal.text);
    if (count < longest)
        note_cut(greedy->pool->graph, nodes[count], &cut, choice);
    return CELLGATE_OK;
}
