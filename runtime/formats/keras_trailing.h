/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of one input whose weights, or numbers of the configuration, lie over
 * its trailing axes: keras_normalize.c, keras_batch_normalization.c,
 * keras_rescaling.c, keras_prelu.c. Axes are the layer's own: from 0 = batch,
 * without those that a TimeDistributed around it adds.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_TRAILING_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_TRAILING_H

#include "runtime/formats/keras.h"

/* ---- keras_trailing.c -------------------------------------------------- */

/* The only input, of float32, with an axis behind the batch. */
cellgate_status cg_keras_take_numbers(const cg_keras_call *call,
                                      cg_keras_tensor *x,
                                      cellgate_error *error);
/* How many axes the layer takes its input to have. */
int32_t cg_keras_own_rank(const cg_keras_call *call, int32_t value);
/* Extent of one of them, which has to be known. */
cellgate_status cg_keras_own_extent(const cg_keras_call *call, int32_t value,
                                    int64_t axis, int64_t *extent,
                                    cellgate_error *error);
cg_extents cg_keras_last_axis(int32_t rank);
/* In ascending order. */
void cg_keras_sort_axes(cg_extents *axes);
/* Emits the node for one input, with the data of `weights`; the shapes are
   those that the node's attributes ask for. */
cellgate_status cg_keras_emit_weighted(const cg_keras_call *call,
                                       const cg_node *attributes, int32_t input,
                                       cg_weight *weights, size_t count,
                                       const char *suffix, int32_t *value,
                                       cellgate_error *error);

/* Weights of an AFFINE. */
enum { CG_KERAS_SHIFT, CG_KERAS_SCALE, CG_KERAS_OFFSET };

/* ---- keras_stretch.c --------------------------------------------------- */

/* Extends `extents` to what `numbers` stretch to; false if they do not fit. */
bool cg_keras_stretch(cg_extents *extents, const cg_keras_numbers *numbers);
/* Number of elements; beyond CG_MAX_SIZE it need not be right. */
int64_t cg_keras_product(const cg_extents *extents);
/* An array, stretched over the extents, as a weight: made once a layer under
   this name. */
cellgate_status cg_keras_stretch_weight(const cg_keras_layer *layer,
                                        const char *name,
                                        const cg_keras_numbers *numbers,
                                        const cg_extents *extents,
                                        const float **data,
                                        cellgate_error *error);

#endif
