/* SPDX-License-Identifier: Apache-2.0 */
/* Costs written into a session's book, as if they had been measured. */
#ifndef CELLGATE_TESTS_UNIT_COST_RIG_H
#define CELLGATE_TESTS_UNIT_COST_RIG_H

#include "runtime/session/session.h"
#include "tests/unit/session_rig.h"

/* LSTM(6) and Dense(3) over 4 features: one chain for every device. */
cellgate_model *cost_rig_model(void);
/* The session's segment of nodes [first, first + count). */
cg_segment *cost_rig_segment(cellgate_session *session, const char *device,
                             const char *variant, size_t first, size_t count);
/* That segment costs so much for so many rows of 5 steps. */
void cost_rig_put(cellgate_session *session, const cg_segment *segment,
                  int64_t batch, double seconds);
void cost_rig_put_at(cellgate_session *session, const cg_segment *segment,
                     int64_t batch, int64_t steps, double seconds);
/* The whole chain costs so much for 1 row and for 64. */
void cost_rig_set(cellgate_session *session, const char *device,
                  const char *variant, double one, double many);

#endif
