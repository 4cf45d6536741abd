/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of one thing, measured again and again, and what they say: the median,
 * and how far off it may be. The median is used throughout: a few runs that
 * were interrupted do not move it. Pure arithmetic; no thread rules.
 */
#ifndef CELLGATE_RUNTIME_COST_SAMPLES_H
#define CELLGATE_RUNTIME_COST_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

/* The latest samples count, older ones are forgotten: a device that slows down
   is seen within so many runs. */
#define CG_SAMPLES_KEPT 63

typedef struct cg_samples {
    uint64_t total; /* ever added */
    uint32_t count; /* kept */
    uint32_t next;  /* place of the next one */
    double seconds[CG_SAMPLES_KEPT];
} cg_samples;

typedef struct cg_summary {
    double median; /* seconds */
    /* An interval that holds the true median with at least 95%, by order
       statistics (binomial, so no shape of the distribution is assumed); with
       fewer than six samples the extremes, which hold it less surely. */
    double low, high;
    /* Standard error of ln(median), from the interval; never below what the
       number of samples warrants. */
    double error;
    uint32_t count;
} cg_summary;

/* False, and nothing changes, for a time that is not finite and above zero: a
   clock that jumped. */
bool cg_samples_add(cg_samples *samples, double seconds);
/* Of no samples: all zero, with an infinite error. */
void cg_samples_summarise(const cg_samples *samples, cg_summary *summary);
/* The same over an array, which is sorted in place. */
void cg_summarise(double *seconds, uint32_t count, cg_summary *summary);

#endif
