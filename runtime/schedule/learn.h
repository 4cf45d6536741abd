/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What requests in service say about costs. Their times are collected in
 * windows, one for each thing that runs at a shape; a full window is summed up
 * and begun anew, so that what is known follows a device that changes, and no
 * old time lingers.
 *
 * Any thread. Nothing waits: a time whose window is in use is dropped, and one
 * whose place another thing has takes it over.
 */
#ifndef CELLGATE_RUNTIME_SCHEDULE_LEARN_H
#define CELLGATE_RUNTIME_SCHEDULE_LEARN_H

#include "runtime/cost/store.h"

/* Times in a full window. */
#define CG_LEARN_WINDOW 31u

typedef struct cg_learner cg_learner;

cg_learner *cg_learner_create(void);          /* NULL: no memory */
void cg_learner_destroy(cg_learner *learner); /* NULL is allowed */

/* What is timed: runs of `of`, which is compared and not looked at, at a shape,
   for requests that come so. Spaced ones and others have windows of their own.
 */
typedef struct cg_watched {
    const void *of;
    cg_cost_shape shape;
    cg_regime regime;
} cg_watched;

typedef enum cg_noted {
    CG_NOTED,
    CG_NOTED_USUAL, /* the window is full, and says what was expected */
    CG_NOTED_FULL   /* it is full: *seen is what it says */
} cg_noted;

/* A run with nothing else on its resource. `generation`: of what is known. */
cg_noted cg_learner_note(cg_learner *learner, const cg_watched *of,
                         uint64_t generation, double seconds, cg_summary *seen);
/* A median from `low` to `high` says nothing new while what is known is of that
   generation: a full window of it is not summed up. */
void cg_learner_expect(cg_learner *learner, const cg_watched *of,
                       uint64_t generation, double low, double high);

/* Whether what was seen differs from what was expected by more than the margin
   and by more than the noise (95%): of both where the shape was measured, of
   what was seen where the estimate is from elsewhere. Not where nothing was
   expected. */
bool cg_lesson_counts(const cg_cost *expected, const cg_summary *seen,
                      double margin);

/* ---- The service --------------------------------------------------------- */

/* What became of the requests that were routed by measured costs. */
typedef struct cg_service {
    uint64_t requests;
    uint64_t elsewhere; /* of these, not on the best device, which was busy */
    uint64_t failed_over;
    uint64_t judged; /* that were alone, and whose second best is known */
    double seconds;  /* that these took on devices */
    double regret;   /* of these, what the second best would have saved */
    uint64_t learned;
    double all; /* seconds of all requests on devices */
    uint64_t shadow_runs;
    double shadow_seconds;
} cg_service;

/* A request that was answered. */
typedef struct cg_answered {
    double seconds; /* on devices */
    double rival;   /* that the best of its other ways was predicted to take;
                       infinite: there is none */
    bool elsewhere;
    bool failed_over;
    bool alone; /* else it is not judged */
} cg_answered;

void cg_learner_count(cg_learner *learner, const cg_answered *request);
/* Whether shadow runs have taken less than that share of the requests'
   seconds, and one that took so long. */
bool cg_learner_shadow_due(cg_learner *learner, double share);
void cg_learner_shadowed(cg_learner *learner, double seconds);
void cg_learner_learned(cg_learner *learner);
void cg_learner_service(cg_learner *learner, cg_service *service);

#endif
