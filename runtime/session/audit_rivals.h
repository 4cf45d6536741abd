/* SPDX-License-Identifier: Apache-2.0 */
/* Who a choice is compared with: the model on one device in one variant each,
   in sessions of their own. */
#ifndef CELLGATE_RUNTIME_SESSION_AUDIT_RIVALS_H
#define CELLGATE_RUNTIME_SESSION_AUDIT_RIVALS_H

#include "runtime/session/explanation.h"

typedef struct cg_audit_rival {
    char *device, *variant;
    cellgate_session *session; /* made on first need */
    bool runs;                 /* at the shape at hand */
} cg_audit_rival;

typedef struct cg_audit_rivals {
    cellgate_session *of; /* the session that is audited */
    cg_audit_rival *list;
    size_t count;
} cg_audit_rivals;

/* A session like that one for one device, variant, or both; NULL: any. It
   learns nothing. */
cellgate_status cg_audit_session(const cellgate_session *like,
                                 const char *device, const char *variant,
                                 cellgate_session **session,
                                 cellgate_error *error);

/* Says of each candidate of the explanation whether it runs at its shape. */
cellgate_status cg_audit_rivals_note(cg_audit_rivals *rivals,
                                     const cellgate_explanation *explanation,
                                     cellgate_error *error);
/* The session of number `index`; the rivals keep it. */
cellgate_status cg_audit_rivals_session(cg_audit_rivals *rivals, size_t index,
                                        cellgate_session **session,
                                        cellgate_error *error);
/* Ends the sessions, for their memory; they are made again on need. */
void cg_audit_rivals_shrink(cg_audit_rivals *rivals);
void cg_audit_rivals_finish(cg_audit_rivals *rivals);

#endif
