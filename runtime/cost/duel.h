/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what was chosen was the right choice: it against its rivals at one
 * shape, on fresh times alone.
 *
 * In each round the choice, the choice once more and every rival are timed one
 * after the other, each round beginning with another one. A rival is done with
 * when the interval of the choice's time over its own (ratio.h) lies within the
 * tolerance or beyond it. One whose every sample is far slower than all of the
 * choice's is done with after few. The choice against itself is what the method
 * cannot tell apart.
 *
 * Back to back, a run that is not timed goes before each short sample: a
 * request in service follows one on the same device, not one of a rival.
 */
#ifndef CELLGATE_RUNTIME_COST_DUEL_H
#define CELLGATE_RUNTIME_COST_DUEL_H

#include "runtime/cost/measure.h"
#include "runtime/cost/ratio.h"

typedef struct cg_dueling {
    const cg_clock *clock;
    double budget;     /* seconds; one round at least is taken all the same */
    double tolerance;  /* the choice is right up to this ratio: 1.05 */
    double confidence; /* of the intervals, at each look */
    double far;        /* a rival this many times slower is done with early */
    uint32_t most;     /* rounds, at most CG_RATIO_PAIRS */
    double gap;        /* seconds before each run; 0: back to back */
    void (*idle)(void *context); /* before the gap; NULL: nothing */
    void *idle_context;
    /* Asked between rounds; false ends the duel. NULL: never asked. */
    bool (*go_on)(void *context);
    void *go_on_context;
} cg_dueling;

typedef enum cg_duel_verdict {
    CG_DUEL_UNDECIDED, /* the time was up, or the most rounds were taken */
    CG_DUEL_RIGHT,     /* the choice is not slower by more than the tolerance */
    CG_DUEL_WRONG,     /* it is */
    CG_DUEL_OUT        /* the rival could not be run */
} cg_duel_verdict;

typedef struct cg_duel_rival {
    cg_duel_verdict verdict;
    bool far;             /* right, because it is far slower */
    cg_ratio ratio;       /* of the choice's time to the rival's */
    cellgate_error error; /* of one that is out */
} cg_duel_rival;

typedef struct cg_duel {
    cg_duel_verdict verdict; /* of the choice; OUT: it could not be run */
    cellgate_error error;    /* then */
    double seconds;          /* the choice's median */
    cg_ratio self;           /* the choice against itself */
    uint32_t rounds;
} cg_duel;

/* Sensible values; the caller changes what it wants to. */
void cg_dueling_init(cg_dueling *how);

/* Fills *duel and rivals_found[i] for rivals[i]. NO_MEMORY, or OK: what fails
   to run is in the results. */
cellgate_status cg_duel_run(const cg_dueling *how, const cg_subject *chosen,
                            const cg_subject *rivals, size_t count,
                            cg_duel *duel, cg_duel_rival *rivals_found,
                            cellgate_error *error);

#endif
