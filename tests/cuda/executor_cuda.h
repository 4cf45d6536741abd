/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor_cuda.h: the words of plugins/cuda/kernels/device.h, and those of
 * CUDA C++ that the kernels use, for the executor. A test includes it, and then
 * the kernels' source.
 */
#ifndef TESTS_CUDA_EXECUTOR_CUDA_H
#define TESTS_CUDA_EXECUTOR_CUDA_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/executor.h"

struct CUstream_st;

struct float2 {
    float x, y;
} __attribute__((aligned(8)));
struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));
struct uint2 {
    unsigned x, y;
} __attribute__((aligned(8)));
struct uint4 {
    unsigned x, y, z, w;
} __attribute__((aligned(16)));
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

#define CUK_KERNEL(threads) static void
#define CUK_PARAMETER(type) const type
#define CUK_DEVICE static inline
#define CUK_LARGE_DEVICE static inline
#define CUK_KEEP(x, y) ((void)(x), (void)(y))
#define CUK_UNROLL
#define CUK_SHARED(name) float *name = (float *)executor_shared()

#define threadIdx executor_thread()
#define blockIdx executor_block_at()
#define blockDim executor_block()
#define gridDim executor_grid()

#define __syncthreads() executor_syncthreads(__FILE__, __LINE__)
#define __syncwarp(mask) executor_syncwarp(mask, __FILE__, __LINE__)
#define __shfl_sync(mask, value, lane)                                         \
    executor_shuffled(mask, value, (unsigned)(lane), __FILE__, __LINE__)
#define __shfl_xor_sync(mask, value, other)                                    \
    executor_shuffled(mask, value,                                             \
                      (executor_thread().x ^ (unsigned)(other)) % 32,          \
                      __FILE__, __LINE__)
#define CUK_PAUSE() executor_pause(__FILE__, __LINE__)
#define CUK_GRID_MOST ((int)executor_grid_most())

static inline float executor_shuffled(unsigned mask, float value, unsigned lane,
                                      const char *file, int line)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    bits = (uint32_t)executor_shuffle(mask, bits, lane, file, line);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

template <class T> static inline T __ldg(const T *at)
{
    return *at;
}

/* What is written by other blocks of the grid: past the L1 cache. */
template <class T> static inline T __ldcg(const T *at)
{
    return *at;
}

static inline int min(int a, int b)
{
    return a < b ? a : b;
}

static inline int max(int a, int b)
{
    return a > b ? a : b;
}

static inline float cuk_float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float cuk_power_of_two(float n)
{
    return n > -127.0f && n < 128.0f
               ? cuk_float_of_bits((uint32_t)((int)n + 127) << 23)
               : 0.0f;
}

static inline float cuk_float_of_half(uint32_t bits)
{
    const uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;

    if (rest >= 0x7c00u)
        return cuk_float_of_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest < 0x400u) /* subnormal: rest * 2^-24 */
        return cuk_float_of_bits(sign | 0x3f800000u) * (float)rest *
               5.9604644775390625e-8f;
    return cuk_float_of_bits(sign | ((rest << 13) + (112u << 23)));
}

static inline void cuk_add_release(uint32_t *at, uint32_t by)
{
    __atomic_fetch_add(at, by, __ATOMIC_RELEASE);
    executor_progress();
}

static inline uint32_t cuk_add_acquire_release(uint32_t *at, uint32_t by)
{
    executor_progress();
    return __atomic_fetch_add(at, by, __ATOMIC_ACQ_REL);
}

static inline uint32_t cuk_load_acquire(const uint32_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

template <class P> static void executor_call(void (*kernel)(), const void *from)
{
    P parameters;

    memcpy(&parameters, from, sizeof parameters);
    ((void (*)(P))kernel)(parameters);
}

template <class P>
static int cuk_launch(void (*kernel)(P), dim3 grid, dim3 block, size_t shared,
                      bool cooperative, CUstream_st *stream,
                      const P &parameters)
{
    executor_launch *launch;
    int code;

    static_assert(sizeof parameters <= EXECUTOR_PARAMETERS, "parameters");
    launch = (executor_launch *)calloc(1, sizeof *launch);
    if (!launch)
        abort();
    launch->kernel = (void (*)())kernel;
    launch->call = executor_call<P>;
    launch->grid = { grid.x, grid.y, grid.z };
    launch->block = { block.x, block.y, block.z };
    launch->shared = shared;
    launch->cooperative = cooperative;
    launch->size = sizeof parameters;
    memcpy(launch->parameters, &parameters, sizeof parameters);
    code = executor_submit(stream, launch);
    free(launch);
    return code;
}

template <class P> static int cuk_allow_shared(void (*kernel)(P), int bytes)
{
    return executor_allow_shared((void (*)())kernel, (size_t)bytes);
}

#endif /* TESTS_CUDA_EXECUTOR_CUDA_H */
