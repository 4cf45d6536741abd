/* SPDX-License-Identifier: Apache-2.0 */
/* Stores, and what is put into them, for tests of the store. */
#ifndef CELLGATE_TESTS_UNIT_COST_STORE_RIG_H
#define CELLGATE_TESTS_UNIT_COST_STORE_RIG_H

#include "runtime/cost/store.h"

/* Two variants of a device, and a structure. */
extern const cg_cost_candidate store_rig_narrow, store_rig_wide;
extern const char store_rig_lstm[];

/* A measurement of so many samples. */
cg_cost_point store_rig_point(int64_t batch, int64_t steps, double seconds,
                              uint32_t count);

/* Each fails the test when the store does. */
cg_cost_store *store_rig_open(const char *user, const char *site);
/* Back to back, of the structure. */
void store_rig_put(cg_cost_store *store, const cg_cost_candidate *candidate,
                   cg_cost_point point);
/* The only point, or fails. */
cg_cost_point store_rig_only(cg_cost_store *store,
                             const cg_cost_candidate *candidate);
size_t store_rig_count(cg_cost_store *store, const cg_cost_candidate *candidate,
                       const char *structure, cg_regime regime);

/* As text; malloc'ed. */
char *store_rig_export(cg_cost_store *store);
cellgate_status store_rig_import(cg_cost_store *store, const char *text,
                                 size_t *rows, cellgate_error *error);

#endif
