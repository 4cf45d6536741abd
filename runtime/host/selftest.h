/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a model's self-test: inputs from a stated recipe, answers from the
 * host ops. Private to runtime/host.
 *
 * The recipe: 3 rows (one, where three would take more than some seconds), few
 * steps. Numbers are uniform in [-1, 1); ids whole and within the vocabulary of
 * whatever embedding they reach. Where steps can be masked, by a mask of the
 * request, by id 0 or by a Masking layer's value, row 0 has all of them, row 1
 * is padded on the right, row 2 has holes. The generator is splitmix64 from
 * seed 1, so equal models get equal self-tests.
 */
#ifndef CELLGATE_RUNTIME_HOST_SELFTEST_H
#define CELLGATE_RUNTIME_HOST_SELFTEST_H

#include "runtime/host/host.h"
#include "runtime/model/selftest.h"

/* One way to make the inputs; later ones are for models that refuse earlier
   ones. */
typedef struct cg_selftest_recipe {
    int64_t rows;
    int64_t steps;   /* for axes that the request decides */
    int64_t stagger; /* how many more for each further input */
    bool masks;
    bool zero_ids;
} cg_selftest_recipe;

/* Shapes and masks' places alone; no data. */
void cg_selftest_shape_inputs(const cellgate_model *model,
                              const cg_selftest_recipe *recipe,
                              cg_selftest *selftest);
/* Gives the inputs their data, in the model's memory. */
cellgate_status cg_selftest_fill_inputs(cellgate_model *model,
                                        const cg_selftest_recipe *recipe,
                                        cg_selftest *selftest,
                                        cellgate_error *error);

#endif
