/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up request of some shape, to be timed. */
#ifndef CELLGATE_RUNTIME_SESSION_AUDIT_REQUEST_H
#define CELLGATE_RUNTIME_SESSION_AUDIT_REQUEST_H

#include "runtime/session/session.h"

typedef struct cg_audit_request {
    cellgate_request request;
    cellgate_input *inputs;
    cellgate_tensor *outputs;
    double bytes; /* of all of them */
} cg_audit_request;

/*
 * Full rows: numbers in [-1, 1), and ids that the model has. NO_MEMORY: also
 * for one of more than a gigabyte. cg_audit_request_finish() in either case.
 */
cellgate_status cg_audit_request_init(cg_audit_request *made,
                                      const cellgate_session *session,
                                      const cellgate_question *question,
                                      cellgate_error *error);
void cg_audit_request_finish(cg_audit_request *made);

#endif
