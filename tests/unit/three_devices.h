/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session over three devices, each measured to be best at one number of
 * steps: "cpu" at 1, "card" at 8, "spare" at 40. What the card does wrong is
 * the test's to say. What it should do, the host ops do.
 */
#ifndef CELLGATE_TESTS_UNIT_THREE_DEVICES_H
#define CELLGATE_TESTS_UNIT_THREE_DEVICES_H

#include "tests/unit/cost_rig.h"

#define THREE_STEPS 3
extern const int64_t three_steps[THREE_STEPS];

typedef struct three_devices {
    cellgate_runtime *runtime;
    cellgate_model *model; /* two LSTMs of 6 and 5 over 4 features */
    cellgate_session *session, *host;
} three_devices;

/* `scheduler`: lines of that section; `faults`: of the card's. */
void three_devices_begin(three_devices *with, const char *scheduler,
                         const char *faults);
void three_devices_end(three_devices *with);

/* Whether the outputs are `wanted` within the conformance tolerance. Any
   thread. */
bool three_devices_agree(const rig_request *request, const float *wanted);

#endif
