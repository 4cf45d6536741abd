/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin, linked in, on PoCL alone, with one LSTM layer and a host
 * of its own. What fails in here fails the test.
 */
#ifndef CELLGATE_TESTS_UNIT_OPENCL_RIG_H
#define CELLGATE_TESTS_UNIT_OPENCL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/opencl/plan.h"

#define BATCH 5
#define STEPS 40
#define INPUT 7
#define HIDDEN 19

extern char cache[400];     /* the folder of compiled programs */
extern const char *kernels; /* the keys of those names */
extern const char *threads, *clblast;
extern const char *excluded; /* how names of variants begin that are left out */
extern uint32_t budget;      /* of the host's threads */

extern float kernel[INPUT * 4 * HIDDEN], recurrent[HIDDEN * 4 * HIDDEN];
extern float bias[4 * HIDDEN], x[BATCH * STEPS * INPUT];
extern float y[BATCH * STEPS * HIDDEN], first_y[BATCH * STEPS * HIDDEN];
extern cellgate_lstm lstm;
extern const cellgate_op *const ops[1];
extern const cellgate_segment segment;
extern const cellgate_shape shape;
extern const cellgate_plugin *table;
extern cellgate_instance *instance;
extern cellgate_error error;
extern const int32_t *lengths; /* of run(); NULL: full */
extern struct ocl_api driver;  /* as it is */

/* Numbers of magnitude 0.4 and less. */
void make_random(float *to, size_t count, uint64_t seed);
cellgate_device *open_device(void);
cellgate_weights *prepare(cellgate_device *device); /* floats */
cellgate_weights *prepare_pack(cellgate_device *device, uint32_t pack);
/* Of the variants that run the layer with these weights, the first from *id on;
   false: none. */
bool next_variant(const cellgate_weights *weights, uint64_t *id);
cellgate_status run(cellgate_plan *plan, float *to);
void remove_folder(const char *path);

/* Whether PoCL is there, and the build not instrumented; says why not. */
bool opencl_rig_usable(void);
/* Of the group of tests. */
int opencl_rig_start(void **state);
int opencl_rig_end(void **state);

#endif
