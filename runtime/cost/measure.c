/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cost/measure.h"

/* A sample should be this many times what the clock resolves. */
#define RESOLVED 200.0
#define MOST_RUNS 4096u
/* Samples that a subject takes one after the other, back to back. */
#define TURN 2

typedef struct measuring {
    const cg_measuring *how;
    const cg_subject *subjects;
    cg_measured *results;
    size_t count;
    double *samples; /* [count][how->most] */
    double start, resolution;
    bool late;    /* the time is up */
    bool stopped; /* by the caller */
} measuring;

void cg_measuring_init(cg_measuring *how)
{
    memset(how, 0, sizeof *how);
    how->clock = &cg_real_clock;
    how->budget = 1;
    how->warm_up = 3;
    how->least = 5;
    how->most = 51;
    how->enough = 0.01;
    how->far = 2;
}

static double used(const measuring *at)
{
    return (cg_now(at->how->clock) - at->start) / at->how->budget;
}

static bool go_on(measuring *at)
{
    const double share = used(at);

    at->late = share >= 1;
    at->stopped = at->how->go_on != NULL &&
                  !at->how->go_on(at->how->go_on_context, share);
    return !at->late && !at->stopped;
}

static void gap(const measuring *at)
{
    const cg_measuring *how = at->how;

    if (how->gap <= 0)
        return;
    if (how->idle != NULL)
        how->idle(how->idle_context);
    how->clock->sleep(how->clock->context, how->gap);
}

/* Seconds a run; negative after a failure, which the result keeps. */
static double time_runs(measuring *at, size_t subject, uint32_t runs)
{
    const cg_subject *of = &at->subjects[subject];
    cg_measured *result = &at->results[subject];
    double seconds = 0;

    for (uint32_t run = 0; run < runs; run++) {
        double start;

        gap(at);
        start = cg_now(at->how->clock);
        result->status = of->run(of->context, &result->error);
        seconds += cg_now(at->how->clock) - start;
        if (result->status != CELLGATE_OK)
            return -1;
    }
    return seconds / runs;
}

/* Back to back, the clock is read around all runs of a sample. */
static double time_sample(measuring *at, size_t subject)
{
    const cg_subject *of = &at->subjects[subject];
    cg_measured *result = &at->results[subject];
    const uint32_t runs = result->runs_a_sample;
    double start;

    if (at->how->gap > 0 || runs == 1)
        return time_runs(at, subject, runs);
    start = cg_now(at->how->clock);
    for (uint32_t run = 0; run < runs; run++) {
        result->status = of->run(of->context, &result->error);
        if (result->status != CELLGATE_OK)
            return -1;
    }
    return (cg_now(at->how->clock) - start) / runs;
}

/* The first run is the cold one; the last one's time says how many runs the
   clock needs. */
static void warm_up(measuring *at, size_t subject)
{
    cg_measured *result = &at->results[subject];
    double last;
    uint32_t runs = 1;

    memset(&result->error, 0, sizeof result->error);
    result->error.struct_size = sizeof result->error;
    result->first = last = time_runs(at, subject, 1);
    for (uint32_t run = 1; run < at->how->warm_up && last >= 0; run++)
        last = time_runs(at, subject, 1);
    if (last < 0)
        return;
    while (runs < MOST_RUNS && last * runs < RESOLVED * at->resolution)
        runs *= 2;
    result->runs_a_sample = runs;
}

static void summarise(measuring *at, size_t subject, uint32_t count)
{
    double *samples = at->samples + subject * at->how->most;

    cg_summarise(samples, count, &at->results[subject].summary);
}

static bool take_sample(measuring *at, size_t subject)
{
    cg_measured *result = &at->results[subject];
    const uint32_t count = result->summary.count;
    const double seconds = time_sample(at, subject);

    if (seconds < 0)
        return false;
    /* A clock that did not move says: no time at all, as far as it sees. */
    at->samples[subject * at->how->most + count] =
        fmax(seconds, at->resolution / result->runs_a_sample);
    summarise(at, subject, count + 1);
    return true;
}

static double best_median(const measuring *at)
{
    double best = HUGE_VAL;

    for (size_t i = 0; i < at->count; i++)
        if (at->results[i].status == CELLGATE_OK &&
            at->results[i].summary.count > 0)
            best = fmin(best, at->results[i].summary.median);
    return best;
}

static bool wants_more(const measuring *at, size_t subject, double best)
{
    const cg_measured *result = &at->results[subject];
    const cg_summary *summary = &result->summary;

    if (result->status != CELLGATE_OK || summary->count >= at->how->most)
        return false;
    if (summary->count < at->how->least)
        return true;
    if (at->how->far > 0 && summary->low > at->how->far * best)
        return false;
    return summary->error > at->how->enough;
}

/* A subject's samples of a round, the first one of all whatever the time. */
static void take_turn(measuring *at, size_t subject, double best)
{
    const cg_measured *result = &at->results[subject];
    const bool spaced = at->how->gap > 0;
    const uint32_t end = result->summary.count + (spaced ? 1 : TURN);
    bool awake = spaced || at->count == 1;

    while (result->summary.count < end && wants_more(at, subject, best)) {
        if (!go_on(at) && (at->stopped || result->summary.count > 0))
            return;
        if (!awake && time_runs(at, subject, 1) < 0)
            return;
        awake = true;
        if (!take_sample(at, subject))
            return;
    }
}

/* A turn of each that wants one, beginning with another one each time; false
   when nobody wanted one or the time is up. */
static bool take_round(measuring *at, size_t round)
{
    const double best = best_median(at);
    bool taken = false;

    for (size_t i = 0; i < at->count && !at->stopped; i++) {
        const size_t subject = (i + round) % at->count;

        if (!wants_more(at, subject, best) ||
            (at->late && at->results[subject].summary.count > 0))
            continue;
        take_turn(at, subject, best);
        taken = true;
    }
    return taken && !at->late && !at->stopped;
}

cellgate_status cg_measure(const cg_measuring *how, const cg_subject *subjects,
                           size_t count, cg_measured *results,
                           cellgate_error *error)
{
    measuring at = {
        .how = how, .subjects = subjects, .results = results, .count = count
    };

    at.samples = calloc(count * how->most + 1, sizeof *at.samples);
    if (at.samples == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for what is measured");
    at.resolution = cg_clock_resolution(how->clock);
    at.start = cg_now(how->clock);
    for (size_t i = 0; i < count; i++) {
        memset(&results[i], 0, sizeof results[i]);
        results[i].summary.error = HUGE_VAL;
    }
    for (size_t i = 0; i < count && (go_on(&at) || !at.stopped); i++)
        warm_up(&at, i);
    for (size_t round = 0; take_round(&at, round); round++)
        continue;
    free(at.samples);
    return CELLGATE_OK;
}
