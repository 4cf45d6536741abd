/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h: the words in which the kernels are written: CUDA C++, with a few of
 * our own where its spelling is PTX or a launch. tests/cuda/executor_cuda.h
 * defines all of them for a CPU, and comes first there.
 */
#ifndef CELLGATE_CUDA_DEVICE_H
#define CELLGATE_CUDA_DEVICE_H

#include "plugins/cuda/kernels/kernels.h"
#include "plugins/cuda/kernels/shapes.h"

#ifndef CUK_KERNEL

#include <cuda_runtime.h>

/* A kernel, the most threads that a block has, and its one parameter. */
#define CUK_KERNEL(threads) __global__ void __launch_bounds__(threads)
#define CUK_PARAMETER(type) const __grid_constant__ type
#define CUK_DEVICE static __device__ __forceinline__
#define CUK_LARGE_DEVICE static __device__ __noinline__
/* The block's dynamic shared memory, floats. */
#define CUK_SHARED(name) extern __shared__ __align__(16) float name[]

CUK_DEVICE float cuk_float_of_bits(uint32_t bits)
{
    return __uint_as_float(bits);
}

/* 2^n for a whole n, |n| < 127; NaN gives any number. */
CUK_DEVICE float cuk_power_of_two(float n)
{
    return __int_as_float((__float2int_rn(n) + 127) << 23);
}

CUK_DEVICE float cuk_float_of_half(uint32_t bits)
{
    float value;

    asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h; }"
        : "=f"(value)
        : "r"(bits));
    return value;
}

/* Adds; what the block's thread did before is seen by who acquires the sum. */
CUK_DEVICE void cuk_add_release(uint32_t *at, uint32_t by)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(at), "r"(by)
                 : "memory");
}

CUK_DEVICE uint32_t cuk_add_acquire_release(uint32_t *at, uint32_t by)
{
    uint32_t before;

    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(at), "r"(by)
                 : "memory");
    return before;
}

CUK_DEVICE uint32_t cuk_load_acquire(const uint32_t *at)
{
    uint32_t value;

    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(at)
                 : "memory");
    return value;
}

/* The most blocks of a grid in y and in z: the CUDA C++ Programming Guide's
   table of compute capabilities. In x there may be 2^31 - 1. */
#define CUK_GRID_MOST 65535
/* The compiler may not know what is in two registers. */
#define CUK_KEEP(x, y) asm volatile("" : "+r"(x), "+r"(y))
#define CUK_UNROLL _Pragma("unroll")
/* In a loop that waits. */
#define CUK_PAUSE() ((void)0)

template <class P>
static int cuk_launch(void (*kernel)(P), dim3 grid, dim3 block, size_t shared,
                      bool cooperative, CUstream_st *stream,
                      const P &parameters)
{
    void *arguments[] = { const_cast<P *>(&parameters) };
    const void *function = reinterpret_cast<const void *>(kernel);

    return cooperative ? cudaLaunchCooperativeKernel(function, grid, block,
                                                     arguments, shared, stream)
                       : cudaLaunchKernel(function, grid, block, arguments,
                                          shared, stream);
}

/* Shared memory beyond the default, for the current device. */
template <class P> static int cuk_allow_shared(void (*kernel)(P), int bytes)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                bytes);
}

#endif /* CUK_KERNEL */

#define CUK_FULL_MASK 0xffffffffu

/*
 * A grid of x by y blocks in 1 or 2 directions: what is too much for the axis y
 * goes on in z, which has the directions lowest. There may be blocks beyond y.
 * x fits, being tiles of fewer than 2^28 rows or units; so does z, for tiles of
 * 2^30 columns at most.
 */
static inline dim3 cuk_grid(int64_t x, int64_t y, int directions)
{
    const int64_t parts = CUK_DIVIDE_UP(y, CUK_GRID_MOST);

    return dim3((unsigned)x, (unsigned)CUK_DIVIDE_UP(y, parts),
                (unsigned)(parts * directions));
}

/* The block's direction, and its place in y, in such a grid. */
CUK_DEVICE int grid_direction(int directions)
{
    return (int)(blockIdx.z & (unsigned)(directions - 1));
}

CUK_DEVICE int grid_y(int directions)
{
    return (int)((blockIdx.z >> (directions - 1)) * gridDim.y + blockIdx.y);
}

#endif /* CELLGATE_CUDA_DEVICE_H */
