/* SPDX-License-Identifier: Apache-2.0 */
/* What an explanation holds: texts of its own. Private to explain*.c. */
#ifndef CELLGATE_RUNTIME_SESSION_EXPLANATION_H
#define CELLGATE_RUNTIME_SESSION_EXPLANATION_H

#include "runtime/session/session.h"

typedef struct cg_explanation_line {
    cellgate_candidate_info info;
    char *nodes, *device, *variant, *excluded;
    const cg_segment *segment; /* while it is made; NULL: not to be run */
    bool runs; /* nothing but a missing measurement speaks against it */
} cg_explanation_line;

struct cellgate_explanation {
    cellgate_decision decision;
    char choice[256], rival[160], reason[256];
    cg_explanation_line *lines;
    size_t count;
};

/* Says why a line that was added is not considered; NO_MEMORY. */
cellgate_status cg_explanation_exclude(cg_explanation_line *line,
                                       const char *why, cellgate_error *error);

/*
 * Adds a line of a piece, whose texts are copied, without costs. *added is
 * valid until the next one.
 */
cellgate_status cg_explanation_add(cellgate_explanation *explanation,
                                   uint32_t piece, const char *nodes,
                                   const char *device, const char *variant,
                                   const char *excluded,
                                   cg_explanation_line **added,
                                   cellgate_error *error);

/* Puts the lines from `first` on that may run before those that may not, each
   in the order in which they were added. */
void cg_explanation_runners_first(cellgate_explanation *explanation,
                                  size_t first);

#endif
