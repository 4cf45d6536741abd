/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model's self-test: one small request and the answers of the host
 * reference. The native file keeps it (formats/native.h); the host ops make it
 * (host/selftest.h); a session runs it on a device (session/selftest.c).
 */
#ifndef CELLGATE_RUNTIME_MODEL_SELFTEST_H
#define CELLGATE_RUNTIME_MODEL_SELFTEST_H

#include "runtime/model/model.h"

/* More rows are no self-test any more. */
#define CG_SELFTEST_MAX_ROWS 64
/* Nor are more bytes: of inputs, masks and answers, which a file keeps, and of
   all values together, which a run of it has to hold. */
#define CG_SELFTEST_MAX_BYTES ((size_t)16 << 20)
#define CG_SELFTEST_MAX_VALUES ((size_t)256 << 20)

typedef struct cg_selftest_input {
    cellgate_tensor tensor; /* of the model input's dtype */
    const uint8_t *mask;    /* [rows][steps], or NULL */
} cg_selftest_input;

typedef struct cg_selftest {
    int64_t rows;
    cg_selftest_input *inputs; /* one for each model input */
    cellgate_tensor *outputs;  /* the answers, one for each model output */
} cg_selftest;

/* Room for a self-test of `model`, which it lives as long as; NULL: none. */
cg_selftest *cg_selftest_create(cellgate_model *model);

/*
 * Shapes of all values for the self-test's inputs; `shapes` is indexed by value
 * number. BAD_FILE: an input does not fit the model. BAD_SHAPE: a node that
 * does not take such shapes.
 */
cellgate_status cg_selftest_shapes(const cellgate_model *model,
                                   const cg_selftest *selftest,
                                   cg_shape *shapes, cellgate_error *error);

/* UNSUPPORTED: more than CG_SELFTEST_MAX_BYTES or _VALUES, says the text. */
cellgate_status cg_selftest_bound(const cellgate_model *model,
                                  const cg_shape *shapes,
                                  cellgate_error *error);

/*
 * Whether the self-test is one of this model: shapes and dtypes of inputs,
 * masks and answers, and its size. BAD_FILE says what is not.
 */
cellgate_status cg_selftest_check(const cellgate_model *model,
                                  const cg_selftest *selftest,
                                  cellgate_error *error);

/* Bytes of a tensor of known shape and dtype. */
size_t cg_selftest_bytes(const cellgate_tensor *tensor);

/* 32 hex digits over every number and shape, and a NUL. */
cellgate_status cg_selftest_checksum(const cellgate_model *model,
                                     const cg_selftest *selftest, char text[33],
                                     cellgate_error *error);

#endif
