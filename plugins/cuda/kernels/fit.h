/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.h: how the whole-sequence kernels divide a layer, which the host and the
 * launches must agree upon. Plain arithmetic.
 */
#ifndef CELLGATE_CUDA_FIT_H
#define CELLGATE_CUDA_FIT_H

#include "plugins/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * block.cu: four lanes share a unit's sums. A lane has `groups` groups of four
 * of the depth, the first `held` of them in registers, the others in shared
 * memory; its block has `rows` rows.
 */
struct cuk_block_shape {
    int held, rows, groups, threads, blocks;
    size_t shared;
};

#define CUK_BLOCK_SLICES 4
#define CUK_BLOCK_HIDDEN 128 /* at most */
#define CUK_BLOCK_ROWS 4 /* where there are more rows than multiprocessors */

/*
 * Up to so many units: what a lane of so many threads can keep in registers.
 * With 512 threads a lane has 128 registers, of which 80 are weights.
 */
#define CUK_BLOCK_SIZES(X)                                                     \
    X(32, 2)                                                                   \
    X(64, 4)                                                                   \
    X(96, 6)                                                                   \
    X(CUK_BLOCK_HIDDEN, 5)

void cuk_block_shape(const struct cuk_device *device,
                     const struct cuk_lstm *lstm,
                     struct cuk_block_shape *shape);

/*
 * persistent.cu: a block has `units` units of a direction, `lanes` lanes of a
 * warp by `each` units of a lane; it multiplies `rows` rows at once.
 */
struct cuk_persistent_shape {
    int units, rows, blocks; /* blocks: of a direction */
    size_t shared;
};

#define CUK_PERSISTENT_THREADS 256
#define CUK_PERSISTENT_CHUNK 16
#define CUK_PERSISTENT_ROWS(each) ((each) < 3 ? 4 : 2)

/* (lanes, each), from the smallest: on 132 multiprocessors up to 528, 1056 and
   1584 units. */
#define CUK_PERSISTENT_UNITS(X) X(4, 1) X(4, 2) X(4, 3)

/* Groups of four of the depth that a lane keeps in registers: up to a depth of
   1024, and then as many as leave room for the sums: 144 of 255 registers. */
#define CUK_PERSISTENT_HELD(type, each)                                        \
    ((each) < 3 ? 4 : (type) == CUK_F32 ? 3 : 4)

/* Returns 0 where there are too many units for the multiprocessors, or too much
   for their shared memory; *shape has what the largest blocks would take. */
int cuk_persistent_shape(const struct cuk_device *device,
                         const struct cuk_lstm *lstm,
                         struct cuk_persistent_shape *shape);

/* What cuk_setup() does for each. */
int cuk_block_setup(const struct cuk_device *device);
int cuk_persistent_setup(const struct cuk_device *device);

#ifdef __cplusplus
}
#endif

#endif /* CELLGATE_CUDA_FIT_H */
