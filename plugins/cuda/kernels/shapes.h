/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.h: sizes that the host, the packing and the kernels agree upon. */
#ifndef CELLGATE_CUDA_SHAPES_H
#define CELLGATE_CUDA_SHAPES_H

/* Units of a block of a packed recurrent kernel; its rows are made up to a
   multiple of four, for loads of four of the factors that they meet. */
#define CUK_UNITS 8
#define CUK_DEPTH(depth) (((depth) + 3) / 4 * 4)
#define CUK_DIVIDE_UP(count, by) (((count) + (by)-1) / (by))

#endif /* CELLGATE_CUDA_SHAPES_H */
