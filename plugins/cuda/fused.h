/* SPDX-License-Identifier: Apache-2.0 */
/* fused.h: cuDNN's descriptors. */
#ifndef CELLGATE_CUDA_FUSED_H
#define CELLGATE_CUDA_FUSED_H

#include "plugins/cuda/plan.h"

/* What says that there is no dropout between layers, for which cuDNN's
   reference names no other way than one that is set to 0; it has no states.
   Freed with the device. */
cellgate_status cud_dropout_create(cellgate_device *device,
                                   const struct cud_handle *handle,
                                   cellgate_error *error);
void cud_dropout_destroy(cellgate_device *device);

/* A descriptor of a stack of layers. UNSUPPORTED: cuDNN has no such thing. */
cellgate_status cud_rnn_create(cellgate_device *device,
                               const struct cud_lstm *lstms, uint32_t layers,
                               int algorithm, int math, cud_cudnn_rnn *rnn,
                               cellgate_error *error);
void cud_rnn_destroy(cellgate_device *device, cud_cudnn_rnn rnn);

/*
 * Bytes of memory that a stack needs for so many rows and steps, at least 1 of
 * each, in either layout. UNSUPPORTED: too many rows for cuDNN. `x` is
 * described for the purpose, and `lengths`, [rows], written.
 */
cellgate_status
cud_rnn_work_size(cellgate_device *device, const struct cud_handle *handle,
                  cud_cudnn_rnn rnn, const struct cud_lstm *lstms,
                  uint32_t layers, int64_t rows, int64_t span, cud_cudnn_data x,
                  int32_t *lengths, size_t *size, cellgate_error *error);

/* Finds the stage's weights as a descriptor reads them; NULL: they are not laid
   out so. */
cellgate_status
cud_rnn_weights(cellgate_device *device, const struct cud_handle *handle,
                cud_cudnn_rnn rnn, const struct cud_stage *stage,
                const struct cud_buffer **weights, cellgate_error *error);

/* Sets a stage's descriptors for the run going on. */
cellgate_status cud_fused_describe(struct cellgate_plan *plan, uint32_t stage,
                                   cellgate_error *error);

#endif /* CELLGATE_CUDA_FUSED_H */
