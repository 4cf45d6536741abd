/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.cu: all steps of a layer in one thread block for each ROWS rows and
 * direction, for small hidden sizes.
 *
 * SLICES neighbouring lanes share a unit: each keeps the unit's four gates of
 * its part of the depth in registers, the first HELD fours of it, and what is
 * left in shared memory, a float4 a lane side by side, so that no banks
 * collide. A step is: read h from shared memory (the lanes of a slice read as
 * one), its products, their sum over the slices by shuffles in which the rows
 * spread over the lanes, the cell of a unit and a row in one lane, h to the
 * other half of the shared memory, and one barrier. The cell state stays in a
 * register; input products are fetched AHEAD steps before they are needed.
 *
 * No weight is read from beyond the multiprocessor after the first step. What a
 * step costs is a chain of latencies: a barrier, a read of shared memory, 16
 * multiplications for each four of the depth, two rounds of shuffles, two
 * activations after each other.
 */
#include "plugins/cuda/kernels/cell.h"
#include "plugins/cuda/kernels/fit.h"
#include "plugins/cuda/kernels/weights.h"

#define SLICES CUK_BLOCK_SLICES
#define AHEAD(rows) ((rows) == 1 ? 4 : 2)

/* What a thread is, and what it keeps. */
template <int ROWS> struct block_thread {
    int direction, slice, unit;
    int groups, pitch; /* of h: floats of a row */
    /* Of the row that it does the cell of, if it does one. */
    bool does_cell;
    int sample, length;
    float c, h, peephole[3];
};

template <int ROWS>
CUK_DEVICE void thread_init(const cuk_lstm &a, int groups,
                            block_thread<ROWS> &t)
{
    const int row = blockIdx.x * ROWS;

    t.direction = blockIdx.y;
    t.slice = threadIdx.x % SLICES;
    t.unit = threadIdx.x / SLICES;
    t.groups = groups;
    t.pitch = groups * SLICES * 4;
    const int own = row + t.slice / (SLICES / ROWS);
    t.does_cell =
        t.slice % (SLICES / ROWS) == 0 && own < a.batch && t.unit < a.hidden;
    t.sample = own < a.batch ? a.order[own] : 0;
    t.length = own < a.batch ? a.lengths[t.sample] : 0;
    t.c = t.h = 0.0f;
    if (!t.does_cell)
        return;
    if (has_h(a, a.first))
        t.h = h_row(a, a.first & 1, t.direction, t.sample)[t.unit];
    if (has_c(a, a.first))
        t.c = c_row(a, t.direction, t.sample)[t.unit];
    peepholes_of(a, t.direction, t.unit, t.peephole);
}

/* The unit's gates of number k of the depth; zeros beyond it. */
template <int ROWS>
CUK_DEVICE float4 weights_of(const cuk_lstm &a, const block_thread<ROWS> &t,
                             int k)
{
    const size_t at =
        packed_direction(a, t.direction) + packed_at(a.output, t.unit, k);

    if (k >= a.output || t.unit >= a.hidden)
        return four(0, 0, 0, 0);
    return a.type == CUK_F32   ? gates<CUK_F32>(a.recurrent, at)
           : a.type == CUK_F16 ? gates<CUK_F16>(a.recurrent, at)
                               : gates<CUK_BF16>(a.recurrent, at);
}

/* Zeros, and the rows' state before the first step, into half 0 of h. */
template <int ROWS>
CUK_DEVICE void h_init(const block_thread<ROWS> &t, float *h)
{
    for (int e = threadIdx.x; e < 2 * ROWS * t.pitch; e += blockDim.x)
        h[e] = 0.0f;
    __syncthreads();
    if (t.does_cell)
        h[t.slice / (SLICES / ROWS) * t.pitch + t.unit] = t.h;
    __syncthreads();
}

/* Row by row: z += x[k] * w for four of the depth. */
template <int ROWS>
CUK_DEVICE void multiply_four(const float *h, int pitch, const float4 w[4],
                              float4 z[ROWS][1])
{
    CUK_UNROLL
    for (int r = 0; r < ROWS; r++) {
        const float4 x = *(const float4 *)(h + r * pitch);

        add_scaled(z[r][0], x.x, w[0]);
        add_scaled(z[r][0], x.y, w[1]);
        add_scaled(z[r][0], x.z, w[2]);
        add_scaled(z[r][0], x.w, w[3]);
    }
}

template <int HELD, int ROWS>
CUK_DEVICE void multiply_h(const block_thread<ROWS> &t, const float *h,
                           const float4 held[HELD][4], const float4 *spilled,
                           float4 z[ROWS][1])
{
    CUK_UNROLL
    for (int r = 0; r < ROWS; r++)
        z[r][0] = four(0, 0, 0, 0);
    h += t.slice * 4;
    CUK_UNROLL
    for (int j = 0; j < HELD; j++)
        if (j < t.groups)
            multiply_four<ROWS>(h + j * SLICES * 4, t.pitch, held[j], z);
    for (int j = HELD; j < t.groups; j++) {
        float4 w[4];

        CUK_UNROLL
        for (int i = 0; i < 4; i++)
            w[i] = spilled[((j - HELD) * 4 + i) * blockDim.x + threadIdx.x];
        multiply_four<ROWS>(h + j * SLICES * 4, t.pitch, w, z);
    }
}

template <int ROWS>
CUK_DEVICE float4 fetch(const cuk_lstm &a, const block_thread<ROWS> &t,
                        int step)
{
    if (!t.does_cell || step >= t.length || step >= a.end)
        return four(0, 0, 0, 0);
    return products_of(a, t.direction, t.sample, t.length, step, t.unit);
}

/* What the thread's lane does with the sums of its row. */
template <int ROWS, bool USUAL_CELL>
CUK_DEVICE void block_cell(const cuk_lstm &a, block_thread<ROWS> &t, int step,
                           const float4 &z, float *h_next)
{
    if (!t.does_cell)
        return;
    if (step < t.length)
        t.h = cell<USUAL_CELL>(a, t.direction, z, t.peephole, &t.c);
    h_next[t.slice / (SLICES / ROWS) * t.pitch + t.unit] = t.h;
    give(a, t.direction, t.sample, t.length, step, t.unit, t.h);
}

/* The steps up to the end or the longest row's length. */
template <int HELD, int ROWS, bool USUAL_CELL>
CUK_DEVICE void block_steps(const cuk_lstm &a, block_thread<ROWS> &t, int end,
                            float *h, const float4 held[HELD][4],
                            const float4 *spilled)
{
    float *h_next = h + ROWS * t.pitch;
    float4 products[AHEAD(ROWS)];

    CUK_UNROLL
    for (int i = 0; i < AHEAD(ROWS); i++)
        products[i] = fetch(a, t, a.first + i);
    for (int step = a.first; step < end; step += AHEAD(ROWS)) {
        CUK_UNROLL
        for (int i = 0; i < AHEAD(ROWS); i++) {
            float4 rows[ROWS][1], z;
            float *swap = h;

            if (step + i >= end)
                break;
            multiply_h<HELD, ROWS>(t, h, held, spilled, rows);
            /* Lane s of a unit's has row s / (SLICES / ROWS). */
            add_slices<SLICES / 2, ROWS, 1>(t.slice, 1, rows);
            z = rows[0][0];
            add_to(z, products[i]);
            products[i] = fetch(a, t, step + i + AHEAD(ROWS));
            block_cell<ROWS, USUAL_CELL>(a, t, step + i, z, h_next);
            __syncthreads();
            h = h_next;
            h_next = swap;
        }
    }
}

template <int HELD, int ROWS, int THREADS, bool USUAL_CELL>
CUK_KERNEL(THREADS)
block_kernel(CUK_PARAMETER(cuk_lstm) a)
{
    CUK_SHARED(memory);
    const int groups = CUK_DIVIDE_UP(a.output, 4 * SLICES);
    /* The block's first row is its longest. */
    const int longest = a.lengths[a.order[blockIdx.x * ROWS]];
    const int end = min(a.end, longest);
    block_thread<ROWS> t;
    float4 held[HELD][4];

    thread_init<ROWS>(a, groups, t);
    float4 *spilled = (float4 *)(memory + 2 * ROWS * t.pitch);
    CUK_UNROLL
    for (int j = 0; j < HELD; j++)
        CUK_UNROLL
    for (int i = 0; i < 4; i++)
        held[j][i] = weights_of(a, t, (j * SLICES + t.slice) * 4 + i);
    for (int j = HELD; j < groups; j++)
        for (int i = 0; i < 4; i++)
            spilled[((j - HELD) * 4 + i) * blockDim.x + threadIdx.x] =
                weights_of(a, t, (j * SLICES + t.slice) * 4 + i);
    h_init<ROWS>(t, memory);
    block_steps<HELD, ROWS, USUAL_CELL>(a, t, end, memory, held, spilled);
    if (!t.does_cell)
        return;
    for (int step = max(a.first, longest); step < a.end; step++)
        give(a, t.direction, t.sample, t.length, step, t.unit, t.h);
    h_row(a, a.end & 1, t.direction, t.sample)[t.unit] = t.h;
    c_row(a, t.direction, t.sample)[t.unit] = t.c;
}

/* ---- Launching --------------------------------------------------------- */

typedef void (*block_function)(cuk_lstm);

template <int ROWS, bool USUAL_CELL>
static block_function block_of(const struct cuk_block_shape &shape)
{
#define HAS(most, kept)                                                        \
    if (shape.held == (kept))                                                  \
        return block_kernel<kept, ROWS, (most)*SLICES, USUAL_CELL>;
    CUK_BLOCK_SIZES(HAS)
#undef HAS
    return nullptr;
}

static block_function block_function_of(const struct cuk_block_shape &shape,
                                        bool usual)
{
    if (shape.rows == 1)
        return usual ? block_of<1, true>(shape) : block_of<1, false>(shape);
    return usual ? block_of<CUK_BLOCK_ROWS, true>(shape)
                 : block_of<CUK_BLOCK_ROWS, false>(shape);
}

extern "C" int cuk_block(const struct cuk_device *device,
                         const struct cuk_lstm *lstm,
                         struct CUstream_st *stream)
{
    struct cuk_block_shape shape;

    cuk_block_shape(device, lstm, &shape);
    return cuk_launch(block_function_of(shape, is_usual(*lstm)),
                      dim3(shape.blocks, lstm->directions), dim3(shape.threads),
                      shape.shared, false, stream, *lstm);
}

/* Only the largest needs more shared memory than a block has anyway. */
extern "C" int cuk_block_setup(const struct cuk_device *device)
{
    int code = 0;

    for (int i = 0; code == 0 && i < 4; i++) {
        struct cuk_block_shape shape = {};

        shape.held = 5;
        shape.rows = i & 1 ? CUK_BLOCK_ROWS : 1;
        code =
            cuk_allow_shared(block_function_of(shape, i & 2), device->shared);
    }
    return code;
}
