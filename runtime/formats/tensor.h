/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of tensors, with every overflow caught, and memory for them.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_TENSOR_H
#define CELLGATE_RUNTIME_FORMATS_TENSOR_H

#include "cellgate/types.h"

/* Tensor memory begins at a multiple of this: a cache line, a vector. */
#define CG_TENSOR_ALIGNMENT 64u

/*
 * Elements and bytes of a tensor (data is not looked at). An axis of 0 makes
 * both 0; rank 0 is one element. Returns 0, with nothing set, when the rank is
 * out of range, an axis is negative, the dtype is none, or the bytes of the
 * non-zero axes exceed PTRDIFF_MAX. Either pointer may be NULL.
 */
int cg_tensor_size(const cellgate_tensor *tensor, size_t *elements,
                   size_t *bytes);

/*
 * Memory for that many bytes, aligned as above and never NULL for want of
 * bytes; NULL when there is none. Contents undefined; freed with free().
 */
void *cg_tensor_allocate(size_t bytes);

#endif
