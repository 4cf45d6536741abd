/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this process is a fork()ed child of the one that created a runtime:
 * its devices, teams of threads and locks are not to be touched then.
 *
 * A program that forks before it creates its first runtime (a daemon) is not
 * concerned: watching begins with the first runtime.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_PROCESS_H
#define CELLGATE_RUNTIME_PLUGIN_PROCESS_H

#include <stdbool.h>

#include "cellgate/plugin.h"

/* Begins watching for fork(). Any number of calls, from any thread. */
void cg_process_watch(void);
/* Cheap: one relaxed load. */
bool cg_process_forked(void);
/* OK, or FORKED. */
cellgate_status cg_process_check(cellgate_error *error);

#endif
