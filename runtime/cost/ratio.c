/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/cost/ratio.h"

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* P(W = w) for all w: each rank is added or not, with a half each. */
static uint32_t signed_ranks(uint32_t count, double *chance)
{
    uint32_t most = 0;

    chance[0] = 1;
    for (uint32_t rank = 1; rank <= count; rank++) {
        for (uint32_t w = most + 1; w <= most + rank; w++)
            chance[w] = 0;
        most += rank;
        for (uint32_t w = most; w + 1 > 0; w--)
            chance[w] = (chance[w] + (w >= rank ? chance[w - rank] : 0)) / 2;
    }
    return most;
}

uint32_t cg_ratio_rank(uint32_t count, double confidence, double *scratch)
{
    const uint32_t most = signed_ranks(count, scratch);
    double below = 0;
    uint32_t rank = 0;

    while (rank <= most / 2) {
        below += scratch[rank];
        if (2 * below > 1 - confidence)
            break;
        rank++;
    }
    return rank;
}

static double middle(const double *sorted, uint32_t count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

bool cg_ratio_of(const double *logs, uint32_t count, double confidence,
                 cg_ratio *ratio)
{
    const uint32_t means = count * (count + 1) / 2;
    double *scratch;
    uint32_t rank, at = 0;

    if (count > CG_RATIO_PAIRS)
        return false;
    *ratio = (cg_ratio){ .estimate = 1, .high = HUGE_VAL, .pairs = count };
    if (count == 0)
        return true;
    scratch = malloc((means + 1) * sizeof *scratch);
    if (scratch == NULL)
        return false;
    rank = cg_ratio_rank(count, confidence, scratch);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i; j < count; j++)
            scratch[at++] = (logs[i] + logs[j]) / 2;
    qsort(scratch, means, sizeof *scratch, by_value);
    ratio->estimate = exp(middle(scratch, means));
    if (rank > 0) {
        ratio->low = exp(scratch[rank - 1]);
        ratio->high = exp(scratch[means - rank]);
    }
    free(scratch);
    return true;
}
