/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision: which of the options a request, or all requests of a shape, are
 * given to, and why. Pure arithmetic; nothing here knows what an option is.
 *
 * An option's score is what it costs from now to the answer: the wait for its
 * resource, the run, and its share of what has to be done once. For throughput
 * it is the time that the resource is kept from others: the run, weighed by the
 * part of the resource that it takes.
 */
#ifndef CELLGATE_RUNTIME_SCHEDULE_DECIDE_H
#define CELLGATE_RUNTIME_SCHEDULE_DECIDE_H

#include "runtime/cost/surface.h"

typedef enum cg_objective { CG_LATENCY, CG_THROUGHPUT } cg_objective;

typedef struct cg_option {
    /* NULL, or why it is not to be taken: a text for people. */
    const char *excluded;
    cg_cost cost; /* of the run, host memory to host memory */
    double wait;  /* predicted, until its resource is free */
    double once;  /* what is not done yet: opening, preparing, planning */
    double share; /* of its resource that a run takes, in (0, 1] */
} cg_option;

typedef struct cg_policy {
    cg_objective objective;
    /* Requests that what is done once is spread over; at least 1. */
    double expected_requests;
    /* A pin goes to another option for a relative gain above this only. */
    double margin;
} cg_policy;

#define CG_NO_OPTION SIZE_MAX

/* Why the chosen one. */
typedef enum cg_because {
    CG_BECAUSE_NONE,   /* every option is excluded */
    CG_BECAUSE_ONLY,   /* the others are excluded */
    CG_BECAUSE_BEST,   /* its score is the least */
    CG_BECAUSE_KEPT,   /* it was pinned, and no other is better by more than
                          the margin and the noise */
    CG_BECAUSE_UNKNOWN /* nothing is measured: the first one */
} cg_because;

typedef struct cg_decision {
    size_t chosen; /* CG_NO_OPTION: none */
    size_t rival;  /* the best of the others; CG_NO_OPTION without one */
    double score;  /* of the chosen one, seconds */
    double ahead;  /* the rival's score over the chosen one's; 0 without */
    double error;  /* standard error of ln(ahead) */
    /* So many times better an option must be than the chosen one, of that
       error, for a pin on it to go there: beyond the margin and the noise. 0
       without a rival that is measured. */
    double needed;
    cg_because because;
} cg_decision;

/* Latency, one request, a margin of 5%. */
void cg_policy_init(cg_policy *policy);

/* Infinite for what is excluded or not measured. */
double cg_option_score(const cg_option *option, const cg_policy *policy);

/*
 * Decides among `count` options. `pinned` is the one taken until now, or
 * CG_NO_OPTION: it stays unless another's score is lower by more than the
 * margin and by more than the noise of both (one-sided, 95%). An option that
 * is not measured is never taken before one that is; of equal ones, and where
 * none is measured, the first in order.
 */
void cg_decide(const cg_option *options, size_t count, size_t pinned,
               const cg_policy *policy, cg_decision *decision);

#endif
