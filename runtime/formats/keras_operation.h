/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on tensors, as x[:, -1], x + y and keras.ops write them in
 * functional models. Keras 3 has a class for each, whose options are in its
 * configuration; Keras 2 has TFOpLambda and SlicingOpLambda for all, which name
 * a function of TensorFlow, whose options are in the call. A builder sees both
 * in the form of Keras 3. No mask passes an operation, in either.
 *
 *   keras_operation.c    the table, and what an operation is called on
 *   keras_arithmetic.c   arithmetic, activations, products
 *   keras_pick.c         x[...], Split, Unstack, Flip
 *   keras_reduce.c       Mean, Sum, Max, Min
 *   keras_axes_moved.c   Reshape, Transpose, Stack, Tile ...
 *   keras_masks.c        comparisons, logic, casts
 *
 * To support one more, write a builder and add an entry to the table.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_OPERATION_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_OPERATION_H

#include "runtime/formats/keras.h"

typedef struct cg_keras_operation {
    cg_keras_class class;           /* of Keras 3; its name may be NULL */
    const char *function;           /* of TensorFlow, or NULL */
    int detail;                     /* what the builder is to make: see there */
    cellgate_activation activation; /* of an activation: its defaults */
} cg_keras_operation;

/* The one that a call is of. */
static inline const cg_keras_operation *
cg_keras_operation_of(const cg_keras_call *call)
{
    return (const cg_keras_operation *)(const void *)call->layer->class;
}

/* An argument: a number or an array of numbers, or a tensor. */
typedef struct cg_keras_operand {
    const json_t *constant;
    cg_keras_tensor *tensor; /* one of the call's inputs; NULL: a constant */
} cg_keras_operand;

/* ---- keras_operation.c -------------------------------------------------- */

/* The call's arguments, `least` to `most` of them, one tensor at least; others
   are refused. */
cellgate_status cg_keras_get_operands(cg_keras_call *call, size_t least,
                                      size_t most, cg_keras_operand *operands,
                                      size_t *count, cellgate_error *error);
/* Adds nodes of one input behind each other, the last one's value being the
   call's own; *value is the first one's input before. */
cellgate_status cg_keras_emit_chain(const cg_keras_call *call,
                                    const cg_node *nodes, size_t count,
                                    int32_t *value, cellgate_error *error);
/* A reshaping of everything behind `keep` axes of a shape; its extents are
   still to be appended. */
cg_node cg_keras_reshaping(int32_t keep);
/* UNSUPPORTED: more than one of its extents is open. */
cellgate_status cg_keras_check_reshaping(const cg_keras_layer *layer,
                                         const cg_node *node,
                                         cellgate_error *error);
void cg_keras_append_extent(cg_node *reshaping, int64_t extent);

/* ---- Builders ----------------------------------------------------------- */

cellgate_status cg_keras_build_arithmetic(cg_keras_call *call,
                                          cellgate_error *error);
cellgate_status cg_keras_build_sum_of(cg_keras_call *call,
                                      cellgate_error *error);
cellgate_status cg_keras_build_function(cg_keras_call *call,
                                        cellgate_error *error);
cellgate_status cg_keras_build_absolute(cg_keras_call *call,
                                        cellgate_error *error);
cellgate_status cg_keras_build_power(cg_keras_call *call,
                                     cellgate_error *error);
cellgate_status cg_keras_build_clip(cg_keras_call *call, cellgate_error *error);
cellgate_status cg_keras_build_softmax_of(cg_keras_call *call,
                                          cellgate_error *error);
cellgate_status cg_keras_build_matmul(cg_keras_call *call,
                                      cellgate_error *error);

cellgate_status cg_keras_build_get_item(cg_keras_call *call,
                                        cellgate_error *error);
cellgate_status cg_keras_build_split(cg_keras_call *call,
                                     cellgate_error *error);
cellgate_status cg_keras_build_unstack(cg_keras_call *call,
                                       cellgate_error *error);
cellgate_status cg_keras_build_flip(cg_keras_call *call, cellgate_error *error);

cellgate_status cg_keras_build_reduction(cg_keras_call *call,
                                         cellgate_error *error);

cellgate_status cg_keras_build_transpose(cg_keras_call *call,
                                         cellgate_error *error);
cellgate_status cg_keras_build_swap_axes(cg_keras_call *call,
                                         cellgate_error *error);
cellgate_status cg_keras_build_reshape_of(cg_keras_call *call,
                                          cellgate_error *error);
cellgate_status cg_keras_build_expand_dims(cg_keras_call *call,
                                           cellgate_error *error);
cellgate_status cg_keras_build_squeeze(cg_keras_call *call,
                                       cellgate_error *error);
cellgate_status cg_keras_build_join(cg_keras_call *call, cellgate_error *error);
cellgate_status cg_keras_build_stack(cg_keras_call *call,
                                     cellgate_error *error);
cellgate_status cg_keras_build_tile(cg_keras_call *call, cellgate_error *error);
cellgate_status cg_keras_build_repeat(cg_keras_call *call,
                                      cellgate_error *error);
cellgate_status cg_keras_build_pad(cg_keras_call *call, cellgate_error *error);

cellgate_status cg_keras_build_cast(cg_keras_call *call, cellgate_error *error);
cellgate_status cg_keras_build_one_hot(cg_keras_call *call,
                                       cellgate_error *error);
cellgate_status cg_keras_build_not_equal(cg_keras_call *call,
                                         cellgate_error *error);
cellgate_status cg_keras_build_equal(cg_keras_call *call,
                                     cellgate_error *error);
cellgate_status cg_keras_build_any(cg_keras_call *call, cellgate_error *error);
cellgate_status cg_keras_build_logic(cg_keras_call *call,
                                     cellgate_error *error);
cellgate_status cg_keras_build_zeros_like(cg_keras_call *call,
                                          cellgate_error *error);
cellgate_status cg_keras_build_ones_like(cg_keras_call *call,
                                         cellgate_error *error);
/* What Concatenate does to masks is spelt out in steps: keras_masks.c. */
bool cg_keras_is_mask(const cg_keras_call *call, const cg_keras_tensor *tensor);
cellgate_status cg_keras_build_expanded_mask(cg_keras_call *call,
                                             cellgate_error *error);
cellgate_status cg_keras_build_joined_masks(cg_keras_call *call,
                                            cellgate_error *error);

#endif
