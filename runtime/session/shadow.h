/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shadow runs: in service only what is chosen is timed, so a rival that has
 * become faster is never seen. Now and then the runner-up runs at a shape that
 * requests have, over made-up inputs, on a thread of the session's queue, when
 * nothing waits there; what that takes stays within a share of what requests
 * take ([scheduler] shadow).
 */
#ifndef CELLGATE_RUNTIME_SESSION_SHADOW_H
#define CELLGATE_RUNTIME_SESSION_SHADOW_H

#include <stdatomic.h>

#include "runtime/schedule/queue.h"
#include "runtime/session/segment.h"

struct cellgate_session;
struct cg_call;

/* One at a time. */
typedef struct cg_shadow {
    cg_queue_job job; /* first: the queue hands it back as itself */
    struct cellgate_session *session;
    double share;     /* of the requests' seconds; 0: none */
    atomic_bool busy; /* of the job and of all below */
    bool queued; /* the job was, before: the queue may not be done with it */
    cg_segment *segment;
    cg_cost_shape shape;
} cg_shadow;

void cg_shadow_init(cg_shadow *shadow, struct cellgate_session *session,
                    double share);

/* After a request was answered: one more shadow run, if it is time for one.
   Never waits. */
void cg_shadow_after(cg_shadow *shadow, const struct cg_call *call);

#endif
