/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of cellgate_audit() share. Private to audit*.c. */
#ifndef CELLGATE_RUNTIME_SESSION_AUDIT_H
#define CELLGATE_RUNTIME_SESSION_AUDIT_H

#include "runtime/cost/caches.h"
#include "runtime/session/audit_rivals.h"

/* A shape of the audit, and what is told of it. */
typedef struct cg_audit_cell {
    int64_t asked; /* steps; 0: the model's own */
    cellgate_audit_cell told;
    char choice[256], best[160], note[768];
    double loss; /* the choice's time over the measured best's; at least 1 */
} cg_audit_cell;

typedef struct cg_audit {
    cellgate_session *session; /* made for the audit: like the one asked for */
    cellgate_audit_options options; /* complete */
    cg_regime regime;
    cg_displacer displacer; /* of the spaced regime */
    cg_audit_rivals rivals;
    double start;
    bool stopped; /* by the application */
    cg_audit_cell *cells;
    size_t count, done;
} cg_audit;

/* Fills batch and steps of the cells, in the order in which they are done. */
cellgate_status cg_audit_list_cells(cg_audit *audit, cellgate_error *error);

/* Fills the rest of a cell, in about `budget` seconds. What concerns the cell
   alone is in its verdict and note. */
cellgate_status cg_audit_measure(cg_audit *audit, cg_audit_cell *cell,
                                 double budget, cellgate_error *error);

/* Asks the application whether to go on. */
bool cg_audit_goes_on(void *audit);

#endif
