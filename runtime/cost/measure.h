/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring candidates against each other at one shape.
 *
 * Every subject is warmed up, and those runs are dropped. Then the subjects
 * take turns of a sample or two, in an order that changes from round to round,
 * so that what disturbs the machine disturbs all of them. A subject whose run
 * is too short for the clock is run several times a sample. Measuring ends when
 * every subject's median is known well enough, or is known to be far from the
 * best, or when the time is up.
 *
 * Back to back, a turn begins with a run that is dropped: while the others had
 * theirs, the subject's threads fell asleep and its weights left the caches,
 * which is not what this regime measures.
 *
 * In the spaced regime `idle`, which uses the caches as another program would,
 * and an idle gap lie before each run: a thread that spun is asleep then, and
 * weights are cold.
 */
#ifndef CELLGATE_RUNTIME_COST_MEASURE_H
#define CELLGATE_RUNTIME_COST_MEASURE_H

#include "cellgate/plugin.h"
#include "runtime/cost/clock.h"
#include "runtime/cost/samples.h"

typedef struct cg_subject {
    /* One run, done when it returns. A failure ends the subject's part. */
    cellgate_status (*run)(void *context, cellgate_error *error);
    void *context;
} cg_subject;

typedef struct cg_measuring {
    const cg_clock *clock;
    double budget;    /* seconds for all subjects together; at least one sample
                         of each is taken all the same */
    uint32_t warm_up; /* runs that are dropped, at least 1 */
    uint32_t least, most;        /* samples a subject */
    double enough;               /* standard error of ln(median) that ends it */
    double far;                  /* a subject this factor from the best needs no
                                    more than `least` samples; 0: never */
    double gap;                  /* seconds before each run; 0: back to back */
    void (*idle)(void *context); /* before the gap; NULL: nothing */
    void *idle_context;
    /* Asked before each subject is warmed up and before each sample, with the
       share of the budget that is used up; false ends the measuring, also of
       subjects that have no sample yet. NULL: never asked. */
    bool (*go_on)(void *context, double used);
    void *go_on_context;
} cg_measuring;

typedef struct cg_measured {
    cellgate_status status; /* OK, or why the subject could not be run */
    cellgate_error error;
    double first; /* seconds of the first run of all: the cold call */
    uint32_t runs_a_sample;
    cg_summary summary; /* seconds a run */
} cg_measured;

/* Sensible values; the caller changes what it wants to. */
void cg_measuring_init(cg_measuring *how);

/*
 * Fills results[i] for subjects[i]. NO_MEMORY, or OK: a subject's failure is in
 * its result. Whether it ended before its time is in the counts.
 */
cellgate_status cg_measure(const cg_measuring *how, const cg_subject *subjects,
                           size_t count, cg_measured *results,
                           cellgate_error *error);

#endif
