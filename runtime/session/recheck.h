/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of a device that was out of service: it is opened anew, and a small
 * LSTM over rows of several lengths is run on it and compared with the host
 * ops. No request, and no session, has to do with it.
 */
#ifndef CELLGATE_RUNTIME_SESSION_RECHECK_H
#define CELLGATE_RUNTIME_SESSION_RECHECK_H

#include "runtime/plugin/devices.h"

/* How long opening, preparing and running may take, in seconds. */
#define CG_RECHECK_LIMIT 10

/*
 * Readmits the device, or says why it has to stay out. `limit` in seconds, for
 * the run; all of it may take twice as long. What hangs is left behind, with
 * its thread. NO_MEMORY: it could not be tried.
 */
cellgate_status cg_recheck(cg_device_table *table, cg_device *device,
                           double limit, cellgate_error *error);

#endif
