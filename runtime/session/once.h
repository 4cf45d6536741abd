/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done once before a session's first request on a device: opening it,
 * and laying out weights. Where few requests are expected, it is weighed as the
 * share of one, as far as it was measured; what is done already does not count.
 *
 * A measured device that is not open is opened only where opening takes less
 * time than all expected requests would on what is open: no choice of it could
 * make up for more.
 *
 * The session's mutex is held.
 */
#ifndef CELLGATE_RUNTIME_SESSION_ONCE_H
#define CELLGATE_RUNTIME_SESSION_ONCE_H

#include <math.h>

#include "runtime/session/session.h"

/* Whether so few requests are expected that it is weighed. */
static inline bool cg_once_counts(const cg_policy *policy)
{
    return policy->expected_requests < HUGE_VAL;
}

/*
 * Opens what is worth it and decides, as cg_pin_decide(). No way where nothing
 * is known. A costing that `asks` opens nothing: devices that were opened for a
 * look alone are taken for closed.
 */
cellgate_status cg_once_decide(cg_costing *costing, cg_cut **cuts, bool masked,
                               const cg_pin *before, cg_pin *pin,
                               cellgate_error *error);

/* Seconds that opening a candidate's device takes, if no request of the session
   has a use of it yet; 0: it has, or that was not measured. */
cellgate_status cg_once_opening(const cellgate_session *session,
                                const cg_candidate *candidate, double *seconds,
                                cellgate_error *error);
/* The same of laying out a segment's weights. */
cellgate_status cg_once_preparing(cellgate_session *session,
                                  const cg_segment *segment,
                                  const cg_cost_candidate *candidate,
                                  double *seconds, cellgate_error *error);

/* The opening of a device, as a candidate of the book. NO_DEVICE: its plugin is
   not there. */
cellgate_status cg_once_candidate(cg_device *device,
                                  cg_cost_candidate *candidate,
                                  cellgate_error *error);

/* What this process measured of them goes into the book; nothing that was not
   measured does. As cg_cost_book_put(). */
cellgate_status cg_once_keep_opening(cellgate_session *session,
                                     const cg_candidate *candidate,
                                     cellgate_error *error);
cellgate_status cg_once_keep_preparing(cellgate_session *session,
                                       const cg_segment *segment,
                                       cellgate_error *error);

#endif
