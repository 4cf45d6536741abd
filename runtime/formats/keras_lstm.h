/* SPDX-License-Identifier: Apache-2.0 */
/* What LSTM and Bidirectional share. Private to keras_lstm.c and
   keras_bidirectional.c. */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_LSTM_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_LSTM_H

#include "runtime/formats/keras.h"

/* One LSTM layer of the file, as it says. */
typedef struct cg_keras_lstm {
    int64_t units;
    cellgate_activation gate, cell;
    bool bias;
    bool go_backwards;
    bool sequences;
    bool states;
    bool stateful;
    bool zero_masked;
    const char *suffix; /* of its cell's group in the weights */
} cg_keras_lstm;

/* The wanted values of one LSTM node. */
typedef struct cg_keras_lstm_results {
    int32_t main;         /* the sequence, or the last output */
    int32_t states[2][2]; /* [direction][h, c] */
} cg_keras_lstm_results;

/* What the call's LSTM nodes have in common. */
typedef struct cg_keras_lstm_inputs {
    cg_keras_tensor x;
    int32_t mask; /* what the layer looks at, or CG_NO_VALUE */
    int64_t features;
} cg_keras_lstm_inputs;

/* Reads the options of an LSTM layer; its weights lie at PATH/SUFFIX. */
cellgate_status cg_keras_read_lstm(const cg_keras_layer *layer,
                                   const char *suffix, cg_keras_lstm *lstm,
                                   cellgate_error *error);

/* Moves initial states from among the inputs to the states, where they are if
   Keras 2 wrote the file. */
cellgate_status cg_keras_split_states(cg_keras_call *call,
                                      cellgate_error *error);
/* There must be none, or `expected` of them. */
cellgate_status cg_keras_check_states(const cg_keras_call *call,
                                      size_t expected, cellgate_error *error);
cellgate_status cg_keras_lstm_get_inputs(const cg_keras_call *call,
                                         cg_keras_lstm_inputs *in,
                                         cellgate_error *error);
/* The mask of the output: Keras passes on the one that goes with the input. */
int32_t cg_keras_lstm_passed_mask(const cg_keras_call *call,
                                  const cg_keras_lstm_inputs *in,
                                  bool sequences);

/*
 * One node for one LSTM layer, or for two that run in opposite directions.
 * `states` are its initial states, two a direction, or NULL. The node is called
 * by `suffix`, its main value by `main`.
 */
cellgate_status
cg_keras_emit_lstm(const cg_keras_call *call, const cg_keras_lstm_inputs *in,
                   const cg_keras_lstm *const *lstms, size_t directions,
                   const cg_keras_tensor *states, const char *suffix,
                   const char *main, cg_keras_lstm_results *results,
                   cellgate_error *error);
/* A node that turns the steps of `input` round. */
cellgate_status cg_keras_emit_reverse(const cg_keras_call *call, int32_t input,
                                      const char *suffix, const char *main,
                                      int32_t *value, cellgate_error *error);
/* Adds h and c of each direction to the call's outputs. */
cellgate_status cg_keras_return_states(cg_keras_call *call,
                                       const cg_keras_lstm_results *results,
                                       size_t directions,
                                       cellgate_error *error);

#endif
