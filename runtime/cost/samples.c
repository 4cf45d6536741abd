/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cost/samples.h"

bool cg_samples_add(cg_samples *samples, double seconds)
{
    if (!isfinite(seconds) || seconds <= 0)
        return false;
    samples->seconds[samples->next] = seconds;
    samples->next = (samples->next + 1) % CG_SAMPLES_KEPT;
    if (samples->count < CG_SAMPLES_KEPT)
        samples->count++;
    samples->total++;
    return true;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/*
 * The widest k such that the k-th smallest and the k-th largest of n samples
 * enclose the median with 95%: the number of samples below it is binomial
 * (n, 1/2), here by its normal limit, rounded outwards.
 */
static uint32_t interval_rank(uint32_t count)
{
    const double rank = floor((count - 1.96 * sqrt(count)) / 2);

    return rank > 0 ? (uint32_t)rank : 0;
}

/* What few samples may hide: one says nothing of the noise, so it counts as off
   by a factor of 1.3; with more, the interval takes over. */
static double least_error(uint32_t count)
{
    return count < 6 ? 0.26 / count : 0;
}

void cg_summarise(double *seconds, uint32_t count, cg_summary *summary)
{
    uint32_t rank;

    memset(summary, 0, sizeof *summary);
    summary->error = HUGE_VAL;
    if (count == 0)
        return;
    qsort(seconds, count, sizeof *seconds, by_value);
    rank = interval_rank(count);
    summary->count = count;
    summary->median = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
    summary->low = seconds[rank];
    summary->high = seconds[count - 1 - rank];
    summary->error = log(summary->high / summary->low) / (2 * 1.96);
    if (summary->error < least_error(count))
        summary->error = least_error(count);
}

void cg_samples_summarise(const cg_samples *samples, cg_summary *summary)
{
    double sorted[CG_SAMPLES_KEPT];

    memcpy(sorted, samples->seconds, samples->count * sizeof *sorted);
    cg_summarise(sorted, samples->count, summary);
}
