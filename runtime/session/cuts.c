/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/cuts.h"

static bool same_parts(const cg_partition *a, const cg_partition *b)
{
    if (a->count != b->count)
        return false;
    for (size_t at = 0; at < a->count; at++)
        if (a->parts[at].segment != b->parts[at].segment ||
            a->parts[at].node != b->parts[at].node)
            return false;
    return true;
}

static cg_cut *find(cg_cut *cuts, const cg_partition *partition, bool masked)
{
    while (cuts != NULL &&
           (cuts->masked != masked || !same_parts(&cuts->partition, partition)))
        cuts = cuts->next;
    return cuts;
}

static void add_engine(cg_cut *cut, const cg_segment *segment)
{
    size_t at = 0;

    while (at < cut->engine_count && cut->engines[at] != segment->engine)
        at++;
    if (at == CG_CUT_DEVICES)
        return;
    if (at == cut->engine_count)
        cut->engines[cut->engine_count++] = segment->engine;
    if (cut->places[at] < segment->variant.threads)
        cut->places[at] = segment->variant.threads;
}

cg_cut *cg_cuts_put(cg_cut **cuts, cg_partition *partition, bool masked)
{
    cg_cut *cut = find(*cuts, partition, masked);

    if (cut != NULL) {
        cg_partition_finish(partition);
        return cut;
    }
    cut = calloc(1, sizeof *cut);
    if (cut == NULL)
        return NULL;
    cut->masked = masked;
    cut->partition = *partition;
    atomic_init(&cut->placement, NULL);
    for (size_t at = 0; at < partition->count; at++)
        if (partition->parts[at].segment != NULL)
            add_engine(cut, partition->parts[at].segment);
    cut->next = *cuts;
    *cuts = cut;
    return cut;
}

cellgate_status cg_cut_place(cg_cut *cut, cg_segment_pool *pool,
                             double watchdog, cg_placement **placement,
                             cellgate_error *error)
{
    cg_placement *made = atomic_load(&cut->placement);
    cellgate_status status = CELLGATE_OK;

    if (made == NULL)
        status = cg_placement_create_cut(pool, &cut->partition, cut->masked,
                                         "measured to be the best", watchdog,
                                         &made, error);
    if (status != CELLGATE_OK)
        return status;
    atomic_store(&cut->placement, made);
    *placement = made;
    return CELLGATE_OK;
}

void cg_cuts_retire(cg_cut *cuts, const cg_engine *engine)
{
    for (cg_cut *at = cuts; at != NULL; at = at->next) {
        cg_placement *placement = atomic_load(&at->placement);

        if (placement != NULL && cg_placement_has(placement, engine))
            cg_placement_retire(placement);
    }
}

bool cg_cuts_destroy(cg_cut *cuts)
{
    bool freed = true;

    for (cg_cut *at = cuts; at != NULL; at = at->next) {
        cg_placement *placement = atomic_load(&at->placement);

        if (!cg_placement_destroy(placement)) {
            freed = false;
            continue;
        }
        if (placement != NULL) /* the partition was its own */
            memset(&at->partition, 0, sizeof at->partition);
        atomic_store(&at->placement, NULL);
    }
    if (!freed)
        return false;
    while (cuts != NULL) {
        cg_cut *next = cuts->next;

        cg_partition_finish(&cuts->partition);
        free(cuts);
        cuts = next;
    }
    return true;
}
