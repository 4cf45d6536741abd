/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the application's cellgate_runtime is, for the rooms that take one.
 */
#ifndef CELLGATE_RUNTIME_RUNTIME_H
#define CELLGATE_RUNTIME_RUNTIME_H

#include "runtime/plugin/devices.h"
#include "runtime/schedule/book.h"
#include "runtime/schedule/load.h"

struct cellgate_runtime {
    cg_device_table *table;             /* one reference */
    cg_cost_book *book;                 /* likewise */
    cg_loads *loads;                    /* likewise */
    struct cg_readmission *readmission; /* likewise */
};

#endif
