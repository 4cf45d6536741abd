/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cellgate/plugin.h"
#include "runtime/generate/beam.h"

cellgate_status cg_beam_init(cg_beam *beam, int64_t width, int64_t longest,
                             int32_t stop, double penalty,
                             cellgate_error *error)
{
    cg_hypothesis *all = calloc(3 * (size_t)width, sizeof *all);
    int32_t *memory =
        calloc(3 * (size_t)width, (size_t)longest * sizeof *memory);

    memset(beam, 0, sizeof *beam);
    if (all == NULL || memory == NULL) {
        free(all);
        free(memory);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a beam of %lld", (long long)width);
    }
    for (int64_t at = 0; at < 3 * width; at++)
        all[at].ids = memory + at * longest;
    beam->width = width;
    beam->longest = longest;
    beam->stop = stop;
    beam->penalty = penalty;
    beam->live = all;
    beam->next = all + width;
    beam->finished = all + 2 * width;
    beam->live_count = 1;
    beam->memory = memory;
    return CELLGATE_OK;
}

void cg_beam_finish(cg_beam *beam)
{
    cg_hypothesis *first = beam->live;

    /* `live` and `next` change places: the block begins with the lower. */
    if (first != NULL && beam->next < first)
        first = beam->next;
    free(first);
    free(beam->memory);
    memset(beam, 0, sizeof *beam);
}

/*
 * Makes room in a list, best first, for one whose rank is `key`; NULL where
 * it's not among the best `width`. The ids' memory of what falls out is used
 * again.
 */
static cg_hypothesis *insert(cg_hypothesis *list, int64_t *count, int64_t width,
                             double key, bool by_value)
{
    int64_t at = *count;
    int32_t *ids;

    while (at > 0 && key > (by_value ? list[at - 1].value : list[at - 1].sum))
        at--;
    if (at == width)
        return NULL;
    *count += *count < width;
    ids = list[*count - 1].ids;
    memmove(&list[at + 1], &list[at], (size_t)(*count - 1 - at) * sizeof *list);
    list[at].ids = ids;
    return &list[at];
}

static double value_of(const cg_beam *beam, double sum, int64_t ids)
{
    return sum / pow((double)(ids > 0 ? ids : 1), beam->penalty);
}

static void fill(cg_hypothesis *to, const cg_hypothesis *from, double sum,
                 double value)
{
    to->sum = sum;
    to->value = value;
    to->length = from->length;
    to->stopped = false;
    if (from->length > 0)
        memcpy(to->ids, from->ids, (size_t)from->length * sizeof *to->ids);
}

static void offer(cg_beam *beam, int64_t parent, double sum, int32_t id)
{
    const cg_hypothesis *from = &beam->live[parent];
    const bool stopped = id == beam->stop;
    const int64_t ids = from->length + 1;
    const bool finished = stopped || ids == beam->longest;
    const double value = finished ? value_of(beam, sum, ids) : 0;
    cg_hypothesis *to = finished ? insert(beam->finished, &beam->finished_count,
                                          beam->width, value, true)
                                 : insert(beam->next, &beam->next_count,
                                          beam->width, sum, false);

    if (to == NULL)
        return;
    fill(to, from, sum, value);
    to->parent = parent;
    to->stopped = stopped;
    if (!stopped)
        to->ids[to->length++] = id;
}

void cg_beam_continue(cg_beam *beam, int64_t parent, const double *log,
                      int64_t count)
{
    const double sum = beam->live[parent].sum;

    for (int64_t id = 0; id < count; id++)
        if (log[id] > -INFINITY)
            offer(beam, parent, sum + log[id], (int32_t)id);
}

/* The best that a live hypothesis may come to: no further loss, and the
   length at which a negative sum weighs least. */
static bool is_over(const cg_beam *beam)
{
    if (beam->next_count == 0)
        return true;
    return beam->finished_count == beam->width &&
           beam->finished[beam->width - 1].value >=
               value_of(beam, beam->next[0].sum, beam->longest);
}

void cg_beam_advance(cg_beam *beam)
{
    cg_hypothesis *kept = beam->live;

    beam->live = beam->next;
    beam->live_count = is_over(beam) ? 0 : beam->next_count;
    beam->next = kept;
    beam->next_count = 0;
}
