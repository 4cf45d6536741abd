/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/executor_cuda.h"

#include "tests/cuda/faulty.h"

static void neighbours(const faulty_parameters &a, int32_t *shared)
{
    const unsigned i = threadIdx.x, next = (i + 1) % blockDim.x;

    shared[i] = (int32_t)i;
    __syncthreads();
    a.out[blockIdx.x * blockDim.x + i] = shared[next];
}

static void grid_neighbours(const faulty_parameters &a)
{
    const unsigned threads = blockDim.x, at = blockIdx.x * threads;

    a.out[at + threadIdx.x] = (int32_t)blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        cuk_add_release(a.sync, 1);
        while (cuk_load_acquire(a.sync) < gridDim.x)
            CUK_PAUSE();
    }
    __syncthreads();
    const int32_t theirs =
        a.out[(blockIdx.x + 1) % gridDim.x * threads + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        cuk_add_release(a.sync, 1);
        while (cuk_load_acquire(a.sync) < 2 * gridDim.x)
            CUK_PAUSE();
    }
    __syncthreads();
    a.out[at + threadIdx.x] = theirs;
}

static void two_places()
{
    if (threadIdx.x % 2)
        __syncthreads();
    else
        __syncthreads();
}

static void shuffles(const faulty_parameters &a)
{
    const unsigned lane = threadIdx.x % 32;

    if (a.what == FAULTY_LANES) {
        if (lane < 16)
            (void)__shfl_xor_sync(0xffffffffu, 1.0f, 1);
    } else if (lane < 16) {
        (void)__shfl_sync(0xffffu, 1.0f, 20);
    }
}

static void faulty_kernel(const faulty_parameters a)
{
    int32_t *shared = (int32_t *)executor_shared();

    switch (a.what) {
    case FAULTY_NOTHING:
        neighbours(a, shared);
        break;
    case FAULTY_GRID:
        grid_neighbours(a);
        break;
    case FAULTY_POISON:
        if (threadIdx.x == 0)
            a.out[0] = shared[0];
        break;
    case FAULTY_MISSED:
        if (threadIdx.x > 3)
            __syncthreads();
        else
            while (cuk_load_acquire(a.sync) == 0)
                CUK_PAUSE();
        break;
    case FAULTY_OTHER_PLACE:
        two_places();
        break;
    case FAULTY_ENDED:
        if (threadIdx.x > 3)
            __syncthreads();
        break;
    case FAULTY_LANES:
    case FAULTY_OUTSIDE_MASK:
        shuffles(a);
        break;
    case FAULTY_WAIT:
        while (cuk_load_acquire(a.sync) == 0)
            CUK_PAUSE();
        break;
    }
}

extern "C" int faulty_launch(const struct faulty_parameters *parameters,
                             unsigned blocks, unsigned warps, int cooperative)
{
    return cuk_launch(faulty_kernel, dim3(blocks), dim3(warps * 32),
                      warps * 32 * sizeof(int32_t), cooperative != 0, NULL,
                      *parameters);
}
