/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch over two devices: some rows go one way, the others another way at the
 * same time, where that is predicted to end sooner than the best way alone.
 */
#ifndef CELLGATE_RUNTIME_SESSION_SPLIT_H
#define CELLGATE_RUNTIME_SESSION_SPLIT_H

#include "runtime/session/call.h"

/* Looks whether a pin's first way and another one, on other resources, would be
   faster together, by more than the margin; fills pin->split. `costing` is of
   the request that was pinned. */
cellgate_status cg_split_decide(const cg_costing *costing, cg_pin *pin,
                                cellgate_error *error);

/* Why, for reports; of a pin that says so. */
void cg_split_text(const cg_pin *pin, char *text, size_t size);

/* Whether the request goes both ways now: its pin says so, nothing waits, both
   are free, and its rows can be told apart. */
bool cg_split_wanted(const cg_call *call);

/* Runs it both ways. A device's failure is the request's, whose outputs are
   undefined then. */
cellgate_status cg_split_run(cg_call *call, struct cellgate_session *session,
                             cellgate_error *error);

#endif
