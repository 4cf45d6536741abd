/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging layers, and how they merge masks; both as measured.
 *
 *                 Keras 3                        Keras 2
 *   element-wise  a step is valid where any      where every input with a mask
 *                 input has it so; no mask       has it so; no mask if no input
 *                 unless every input has one     has one
 *   Concatenate   of features: the same as       as element-wise
 *                 element-wise
 *                 of steps: the masks behind     the same, if every input has
 *                 each other, valid for inputs   a mask; else it fails
 *                 without one
 *   Dot           none                           none
 *
 * In Keras 3, Multiply, Maximum and Minimum also leave masked steps out: a
 * factor counts as 1 where it is masked, and the product is 0 where all are; of
 * two numbers one that is masked yields to the other one. They do so for masks
 * of steps, of tensors with as many axes as any input has.
 *
 * A mask that is missing is the same as one that is valid everywhere. Where the
 * inputs' ranks or masks' shapes don't match and Keras fails, the mask ends.
 * Private to keras_merge.c, keras_combine.c.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_MERGE_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_MERGE_H

#include "runtime/formats/keras.h"

/* Refuses a call on fewer than `least` or more than `most` tensors. */
cellgate_status cg_keras_merge_check(const cg_keras_call *call, size_t least,
                                     size_t most, cellgate_error *error);
/* All the call's inputs become of a dtype. */
cellgate_status cg_keras_merge_claim(cg_keras_call *call, int32_t dtype,
                                     cellgate_error *error);
/* Adds a node of all the call's inputs, called by `suffix`; "" makes its
   main value. */
cellgate_status cg_keras_merge_emit(const cg_keras_call *call,
                                    const cg_node *node, const char *suffix,
                                    int32_t *value, cellgate_error *error);
/* What the masks of inputs of `rank` axes make together, or CG_NO_VALUE. */
cellgate_status cg_keras_merge_masks(const cg_keras_call *call, int32_t rank,
                                     int32_t *mask, cellgate_error *error);

#endif
