/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer.h: a random LSTM layer for the CUDA plugin's kernels: its weights
 * packed, its input products, buffers of exactly the size that they need, and
 * what the oracle makes of it.
 */
#ifndef TESTS_CUDA_LAYER_H
#define TESTS_CUDA_LAYER_H

#include "cellgate/plugin.h"
#include "plugins/cuda/kernels/kernels.h"

/* Lengths: of all steps; from 0 to all; or most of them 0. */
enum layer_lengths { LAYER_FULL, LAYER_RAGGED, LAYER_EMPTY };

/* Activations: sigmoid, tanh, tanh; those of Keras 2's hard_sigmoid; or others
   in either direction. */
enum layer_activations { LAYER_USUAL, LAYER_HARD, LAYER_MIXED };

typedef struct layer_case {
    int batch, steps, hidden;
    int projection;
    int directions, reverse; /* directions 0 is 1 */
    int lengths;             /* a layer_lengths */
    int initial;             /* as in cuk_lstm */
    int peepholes, coupled;
    float clip;
    int activations; /* a layer_activations */
    int type;        /* a cuk_type */
    int chunk;       /* steps of a launch; 0: all */
    int in_time;     /* where the products lie */
    int time_major;  /* y */
    int nan_row;     /* the row, counted from 1, whose input has a NaN */
    int silent;      /* y and last are not wanted */
} layer_case;

/* Runs a.first to a.end; as the kernels' functions. */
typedef int (*layer_way)(const struct cuk_lstm *a);

/*
 * Runs the case and compares all outputs; fails the test, by cmocka, with the
 * case's name at the first that is wrong.
 */
void layer_check(const char *name, const layer_case *given, layer_way way);

#endif /* TESTS_CUDA_LAYER_H */
