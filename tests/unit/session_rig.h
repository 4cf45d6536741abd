/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models built by hand and requests made up, for the tests of sessions. What
 * fails in here fails the test.
 */
#ifndef CELLGATE_TESTS_UNIT_SESSION_RIG_H
#define CELLGATE_TESTS_UNIT_SESSION_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/model/model.h"

/* ---- Numbers ----------------------------------------------------------- */

/* A generator: equal seeds give equal numbers. */
uint32_t rig_random(uint64_t *state);
int32_t rig_between(uint64_t *state, int32_t lowest, int32_t highest);
float rig_float(uint64_t *state); /* in [-1, 1) */

/* ---- Models ------------------------------------------------------------ */

typedef struct rig_model {
    cellgate_model *model;
    uint64_t random; /* of the weights */
    int32_t count;   /* of names given so far */
} rig_model;

void rig_model_begin(rig_model *rig, uint64_t seed);
/* Checks and hands over the model. */
cellgate_model *rig_model_end(rig_model *rig);

/* Float [batch][steps][features], or ids [batch][steps] for features 0. */
int32_t rig_input(rig_model *rig, int64_t steps, int64_t features);
/* Float [batch][features]. */
int32_t rig_row_input(rig_model *rig, int64_t features);
/* The optional mask of a model input. */
int32_t rig_mask(const rig_model *rig, size_t input);
void rig_output(rig_model *rig, int32_t value);

/* What an LSTM of the rig is given, and the values that it gives. */
typedef struct rig_lstm {
    cellgate_lstm shape; /* zero: one direction, sigmoid and tanh, a bias */
    bool zero_masked;
    int32_t mask;       /* CG_NO_VALUE: none */
    int32_t initial[4]; /* h0, c0 a direction; CG_NO_VALUE: none */
    int32_t sequence, last, final[4]; /* results */
} rig_lstm;

void rig_lstm_init(rig_lstm *lstm, int64_t input_size, int64_t hidden_size);
void rig_add_lstm(rig_model *rig, int32_t x, rig_lstm *lstm);

/* A GRU or SimpleRNN of those sizes, and its values; h0 and mask may be
   CG_NO_VALUE. */
typedef struct rig_recurrent {
    cg_kind kind;
    int64_t input_size, hidden_size;
    bool reset_after;
    int32_t mask, initial;
    int32_t sequence, last, final; /* results */
} rig_recurrent;

void rig_add_recurrent(rig_model *rig, int32_t x, rig_recurrent *recurrent);

int32_t rig_dense(rig_model *rig, int32_t x, int64_t input_size, int64_t units,
                  int32_t activation);
int32_t rig_embedding(rig_model *rig, int32_t ids, int64_t vocabulary,
                      int64_t size);
/* Kinds without weights: one input, one output. */
int32_t rig_node(rig_model *rig, const cg_node *attributes, int32_t x);
int32_t rig_activation(rig_model *rig, int32_t x, int32_t kind);
int32_t rig_simple(rig_model *rig, cg_kind kind, int32_t x);

/* ---- Runtimes ---------------------------------------------------------- */

/* A runtime with this configuration and the plugins of the build tree. */
cellgate_runtime *rig_runtime(const char *config);
/* Whether the log since the last rig_runtime() begins with that level, and has
   that text. */
bool rig_logged(int32_t level, const char *text);
/* Counts the lines of the log with that text from now on; and how many. */
void rig_log_watch(const char *text);
int rig_log_watched(void);
cellgate_session *rig_session(cellgate_runtime *runtime,
                              const cellgate_model *model, const char *device,
                              const char *variant);

/* ---- Requests ---------------------------------------------------------- */

#define RIG_MOST 8

/* A request with memory for all that it points to. */
typedef struct rig_request {
    cellgate_request request;
    cellgate_input inputs[RIG_MOST];
    cellgate_tensor outputs[RIG_MOST];
} rig_request;

/* Random inputs for a model of known feature counts; unknown steps become
   `steps`; ids are below `vocabulary`. */
void rig_request_init(rig_request *request, cellgate_session *session,
                      const cellgate_model *model, int64_t batch, int64_t steps,
                      int32_t vocabulary, uint64_t *random);
void rig_request_finish(rig_request *request);
void rig_request_lengths(rig_request *request, size_t input, uint64_t *random);
/* Any pattern; now and then a row without a valid step. */
void rig_request_mask(rig_request *request, size_t input, uint64_t *random);
/* Other numbers in the same memory: the inputs, their lengths and masks. */
void rig_request_refill(rig_request *request, int32_t vocabulary,
                        uint64_t *random);
/* Expects success; *report may be NULL. */
void rig_run(cellgate_session *session, rig_request *request,
             cellgate_report *report);
/* A copy of all outputs, one behind the other; the caller frees it. */
float *rig_outputs(const rig_request *request, size_t *count);
/* Expects the outputs within `tolerance` of the largest magnitude of each, or
   one rounding of a number near one; NaN where NaN is wanted. */
void rig_expect(const rig_request *request, const float *wanted,
                double tolerance);

#endif
