/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recurrent layers share: LSTM, GRU, SimpleRNN, RNN around cells, and
 * Bidirectional around any of them. Private to keras_recurrent.c,
 * keras_cells.c and keras_bidirectional.c.
 *
 * A layer is a chain of cells, of one mostly: a node a cell. Cells that are
 * stacked step together in Keras, a chain of nodes runs one after the other;
 * the numbers are the same, since a step that the mask hides leaves all of them
 * alone.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_RECURRENT_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_RECURRENT_H

#include "runtime/formats/keras.h"

#define CG_KERAS_MAX_CELLS 32
#define CG_KERAS_MAX_STATES ((size_t)2 * CG_KERAS_MAX_CELLS)

/* What makes a step. */
typedef struct cg_keras_cell {
    cg_kind kind; /* LSTM, GRU or SIMPLE_RNN */
    int64_t units;
    cellgate_activation gate, activation;
    bool bias;
    bool reset_after;
    char suffix[80]; /* of its group in the weights: "/cell" */
} cg_keras_cell;

/* One recurrent layer of the file, as it says. */
typedef struct cg_keras_recurrent {
    cg_keras_cell cells[CG_KERAS_MAX_CELLS];
    size_t cell_count;
    bool go_backwards;
    bool sequences;
    bool states;
    bool stateful;
    bool unroll;
    bool zero_masked;
    bool time_major;
} cg_keras_recurrent;

/* The wanted values of a layer, or of two in opposite directions. */
typedef struct cg_keras_results {
    int32_t main; /* the sequence, or the last output */
    int32_t states[2 * CG_KERAS_MAX_STATES]; /* in Keras's order */
    size_t state_count;
} cg_keras_results;

/* What the call's nodes have in common. */
typedef struct cg_keras_sequence {
    int32_t x;
    int64_t features;
    int32_t mask;   /* what the layer looks at, or CG_NO_VALUE */
    int32_t passed; /* the mask of the output, likewise */
} cg_keras_sequence;

/* How the values of a layer are called, beyond the call's name. */
typedef struct cg_keras_names {
    const char *node; /* of its last node */
    const char *main; /* of its main value */
} cg_keras_names;

/* ---- keras_cells.c ------------------------------------------------------ */

/* Whether a class is a layer of this family. */
bool cg_keras_is_recurrent(const cg_keras_class *class);
/* Reads a layer's options; its weights lie at PATH/SUFFIX. */
cellgate_status cg_keras_read_recurrent(const cg_keras_layer *layer,
                                        const char *suffix,
                                        cg_keras_recurrent *recurrent,
                                        cellgate_error *error);
/* Kinds of state of all its cells together. */
size_t cg_keras_state_count(const cg_keras_recurrent *recurrent);

/* ---- keras_recurrent.c -------------------------------------------------- */

/*
 * Looks through the call's inputs: moves initial states from among them to the
 * states, where they are if Keras 2 wrote the file; there must be none, or
 * `states` of them. `layer` tells which way round the input has to be.
 */
cellgate_status cg_keras_get_sequence(cg_keras_call *call, size_t states,
                                      const cg_keras_recurrent *layer,
                                      cg_keras_sequence *in,
                                      cellgate_error *error);
/*
 * The nodes of one layer; its main value is in time order. `states` are its
 * initial states, or NULL. The results' states are added to.
 */
cellgate_status
cg_keras_emit_layer(const cg_keras_call *call, const cg_keras_sequence *in,
                    const cg_keras_recurrent *layer,
                    const cg_keras_tensor *states, const cg_keras_names *names,
                    cg_keras_results *results, cellgate_error *error);
/*
 * Whether Keras zeroes masked steps of a layer by their place and not by their
 * time: unrolled and backwards, the first output, of the last step, is zero
 * where the mask hides the first step. Measured on Keras 3.15 and
 * tf_keras 2.21.
 */
bool cg_keras_masks_by_place(const cg_keras_recurrent *layer, int32_t mask);
/* One LSTM node for two layers of one such cell each, the second of which runs
   backwards. */
cellgate_status
cg_keras_emit_both(const cg_keras_call *call, const cg_keras_sequence *in,
                   const cg_keras_recurrent *const layers[2],
                   const cg_keras_tensor *states, const cg_keras_names *names,
                   cg_keras_results *results, cellgate_error *error);
/* A node that turns the steps of `input` round. */
cellgate_status cg_keras_emit_reverse(const cg_keras_call *call, int32_t input,
                                      const cg_keras_names *names,
                                      int32_t *value, cellgate_error *error);
/* Adds the states to the call's outputs. */
cellgate_status cg_keras_return_states(cg_keras_call *call,
                                       const cg_keras_results *results,
                                       cellgate_error *error);

#endif
