/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread's last request was, and what was found out about it: that it is
 * well formed, and what is pinned for its shape. Most requests repeat the one
 * before them, and need neither be checked nor looked up again.
 *
 * A request repeats another one when its tensors have the same dtypes and
 * shapes, when it wants the same outputs and masks the same inputs. Where its
 * numbers lie is another matter (binding.h), and they are never looked at here.
 * One that brings lengths is not remembered: these are numbers, too, and say
 * how much of it is to be computed. The pin holds as long as what it was
 * decided from (cg_router_pin()).
 *
 * A recall is used by one request at a time, from taking it to giving it back.
 */
#ifndef CELLGATE_RUNTIME_SESSION_RECALL_H
#define CELLGATE_RUNTIME_SESSION_RECALL_H

#include <stdatomic.h>

#include "runtime/session/route.h"

typedef struct cg_recall {
    atomic_flag busy; /* of all below */
    bool known;       /* there is a request, and it was answered */
    uint64_t number;  /* of all that repeat it, and of no others */
    int64_t batch;
    bool masked;
    cellgate_input *inputs;   /* [model->input_count], as they were given */
    cellgate_tensor *outputs; /* [model->output_count], likewise */
    cg_pin pin;               /* of its shape, or nothing */
    cg_pin_age age; /* what the pin was decided from; 0: there is none */
} cg_recall;

/* Threads whose requests are remembered; of two with the same place the one
   that comes first. */
#define CG_RECALLS 8

typedef struct cg_recalls {
    const cellgate_model *model;
    _Atomic uint64_t numbers; /* given so far */
    cg_recall of[CG_RECALLS];
} cg_recalls;

/* Whether there was memory for it; finish it in any case. */
bool cg_recalls_init(cg_recalls *recalls, const cellgate_model *model);
void cg_recalls_finish(cg_recalls *recalls);

/* The calling thread's; NULL: another request has it. */
cg_recall *cg_recalls_take(cg_recalls *recalls);
void cg_recall_give_back(cg_recall *recall); /* NULL is allowed */

/* Whether a request repeats the one that is remembered. */
bool cg_recall_is(const cg_recalls *recalls, const cg_recall *recall,
                  const cellgate_request *request);
/* Nothing is remembered, but for the number of a request that begins. */
void cg_recall_begin(cg_recalls *recalls, cg_recall *recall);
/* That one was answered: it is remembered, unless it has lengths. */
void cg_recall_keep(cg_recall *recall, const struct cg_call *call);

#endif
