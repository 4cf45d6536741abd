/* SPDX-License-Identifier: Apache-2.0 */
/* Where a runtime's measurements are kept. */
#ifndef CELLGATE_RUNTIME_STORES_H
#define CELLGATE_RUNTIME_STORES_H

#include "runtime/plugin/devices.h"
#include "runtime/schedule/book.h"

/*
 * Opens the files that [calibration] names, or the default ones:
 * $XDG_DATA_HOME/cellgate/costs (~/.local/share without the variable) over
 * SYSCONFDIR/cellgate/costs. In a setuid or setgid program the environment
 * plays no part, and nothing is kept. What is wrong with a file is logged.
 */
cellgate_status cg_stores_open(cg_device_table *table, cg_cost_book **book,
                               cellgate_error *error);

/* The user's file; NULL: there is none. malloc'ed. */
char *cg_stores_user_path(const cg_config *config);

#endif
