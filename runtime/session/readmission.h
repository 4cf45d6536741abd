/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings devices back into service: a thread, started when the first device of
 * a table is taken out, that waits until one is to be tried again and checks it
 * (recheck.h). Shared by a runtime and its sessions.
 */
#ifndef CELLGATE_RUNTIME_SESSION_READMISSION_H
#define CELLGATE_RUNTIME_SESSION_READMISSION_H

#include "runtime/plugin/devices.h"

typedef struct cg_readmission cg_readmission;

/* Keeps a reference to the table. NO_MEMORY. */
cellgate_status cg_readmission_create(cg_device_table *table,
                                      cg_readmission **readmission,
                                      cellgate_error *error);
cg_readmission *cg_readmission_reference(cg_readmission *readmission);
/* The last one ends the thread, and waits for a check that is under way. NULL
   is allowed. In a child after fork() it frees nothing. */
void cg_readmission_release(cg_readmission *readmission);

#endif
