/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_rig.h: the CUDA plugin, linked in over the stand-ins, and one layer with
   what the oracle makes of it. */
#ifndef TESTS_UNIT_CUDA_RIG_H
#define TESTS_UNIT_CUDA_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/cuda/plan.h"
#include "tests/cuda/standin.h"

#define BATCH 5
#define STEPS 21
#define INPUT 7
#define HIDDEN 12

extern float x[BATCH * STEPS * INPUT], y[BATCH * STEPS * HIDDEN];
extern double expected[BATCH * STEPS * HIDDEN];
extern cellgate_lstm lstm;
extern const cellgate_segment segment;
extern const cellgate_shape shape;

extern const cellgate_plugin *table;
extern const cellgate_host host;
extern cellgate_instance *instance;
extern cellgate_error error;
extern char logged[2000];
extern const char *excluded; /* the only variant that is left out */

int start(void **state);  /* of the group */
int set_up(void **state); /* two whole GPUs */
int tear_down(void **state);

cellgate_device *open_device(uint32_t index);
/* The variant of a name at a shape (NULL: any), with its refusal. */
cellgate_variant find_at(cellgate_device *device, const char *name,
                         const cellgate_shape *at);
cellgate_variant find(cellgate_device *device, const char *name);
bool has_variant(cellgate_device *device, const char *name);
cellgate_weights *prepare(cellgate_device *device, const char *name);
cellgate_plan *make_plan(cellgate_device *device, cellgate_weights *weights,
                         const char *name);
cellgate_status run_rows(cellgate_plan *plan, int64_t rows);
cellgate_status run(cellgate_plan *plan);
void check_y(void);
/* Everything from opening to a right result; the status of what fails first. */
cellgate_status all_of_it(uint32_t index, const char *name);

#endif
