/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.cu: one step of a layer in one launch, the recurrent product and the
 * cell; with a projection a second one.
 *
 * A block has UNITS units and TILE = ROWS * GROUPS rows. Its 256 threads are
 * units by slices of the depth by groups of rows: a thread has one unit's four
 * gates for ROWS rows and every SLICES-th four of the depth. Weights come in
 * loads of 16 bytes (8 in 16 bits), each lane's neighbour after it, straight
 * from L2 to registers; h by way of shared memory, DEPTH of it at a time, which
 * lanes of a slice read as one. Then the slices' sums are added up, within
 * warps by shuffles, and a thread does the cell of a unit and a row.
 *
 * The weights are read once for each TILE rows: 16 H^2 bytes in float32, from
 * L2 where they fit (50 MB on an H100 or H200, so up to H 1700 or so), from
 * memory where they do not: at H 2048 64 MiB, 14 us at the 4.8 TB/s of an
 * H200's data sheet. With one row a block reads 64 bytes of every k, so that at
 * H 512 128 blocks share the reading. Under all that lies a launch.
 */
#include "plugins/cuda/kernels/cell.h"
#include "plugins/cuda/kernels/weights.h"

#define THREADS 256

template <int UNITS_, int ROWS_, int GROUPS_> struct step_shape {
    static constexpr int UNITS = UNITS_, ROWS = ROWS_, GROUPS = GROUPS_;
    static constexpr int TILE = ROWS * GROUPS;
    static constexpr int SLICES = THREADS / UNITS / GROUPS;
    /* Slices whose lanes are in one warp, and what that leaves to add up. */
    static constexpr int IN_WARP = SLICES < 32 / UNITS ? SLICES : 32 / UNITS;
    static constexpr int SUMS = SLICES / IN_WARP;
    static constexpr int DEPTH = 8192 / TILE;
    static constexpr int SHARED = 8192 * (int)sizeof(float);
};

/* h of the tile's rows, numbers k0 ... k0 + DEPTH - 1, into shared memory. */
template <class S>
CUK_DEVICE void stage_h(const cuk_lstm &a, const float *from, int first_row,
                        int k0, float *h)
{
    const int depth = min(S::DEPTH, CUK_DEPTH(a.output - k0));

    for (int r = 0; r < S::TILE; r++) {
        const int row = first_row + r;
        const float *at =
            from + (size_t)(row < a.batch ? a.order[row] : 0) * a.output + k0;

        for (int k = threadIdx.x; k < depth; k += THREADS)
            h[r * S::DEPTH + k] =
                row < a.batch && k0 + k < a.output ? at[k] : 0.0f;
    }
}

/* z += what DEPTH of the depth from k0 on give. */
template <class S, int TYPE>
CUK_DEVICE void multiply(const cuk_lstm &a, const void *weights,
                         size_t weights_at, int k0, const float *h, int slice,
                         float4 z[S::ROWS])
{
    const int depth = min(S::DEPTH, a.output - k0);

    for (int k = slice * 4; k < depth; k += S::SLICES * 4) {
        float4 w[4];

        CUK_UNROLL
        for (int i = 0; i < 4; i++)
            w[i] = gates<TYPE>(weights,
                               weights_at + (size_t)(k0 + k + i) * CUK_UNITS);
        CUK_UNROLL
        for (int r = 0; r < S::ROWS; r++) {
            const float4 x = *(const float4 *)(h + r * S::DEPTH + k);

            add_scaled(z[r], x.x, w[0]);
            add_scaled(z[r], x.y, w[1]);
            add_scaled(z[r], x.z, w[2]);
            add_scaled(z[r], x.w, w[3]);
        }
    }
}

/* The sum over the slices of a warp, in every lane. */
template <class S> CUK_DEVICE void add_slices(float4 &z)
{
    CUK_UNROLL
    for (int lane = S::UNITS; lane < S::UNITS * S::IN_WARP; lane *= 2) {
        z.x += __shfl_xor_sync(CUK_FULL_MASK, z.x, lane);
        z.y += __shfl_xor_sync(CUK_FULL_MASK, z.y, lane);
        z.z += __shfl_xor_sync(CUK_FULL_MASK, z.z, lane);
        z.w += __shfl_xor_sync(CUK_FULL_MASK, z.w, lane);
    }
}

/* The tile's recurrent products, into sums[SUMS][TILE][UNITS]. */
template <class S, int TYPE>
CUK_DEVICE void recurrent_sums(const cuk_lstm &a, int direction, int step,
                               int first_row, int first_unit, float *memory)
{
    const int unit = threadIdx.x % S::UNITS, part = threadIdx.x / S::UNITS;
    const int slice = part % S::SLICES, group = part / S::SLICES;
    const float *from = h_row(a, step & 1, direction, 0);
    const size_t at = packed_direction(a, direction) +
                      packed_at(a.output, first_unit + unit, 0);
    float4 *sums = (float4 *)memory;
    float4 z[S::ROWS];

    CUK_UNROLL
    for (int r = 0; r < S::ROWS; r++)
        z[r] = four(0, 0, 0, 0);
    for (int k0 = 0; k0 < a.output; k0 += S::DEPTH) {
        stage_h<S>(a, from, first_row, k0, memory);
        __syncthreads();
        multiply<S, TYPE>(a, a.recurrent, at, k0,
                          memory + group * S::ROWS * S::DEPTH, slice, z);
        __syncthreads();
    }
    CUK_UNROLL
    for (int r = 0; r < S::ROWS; r++) {
        add_slices<S>(z[r]);
        if (slice % S::IN_WARP == 0)
            sums[((slice / S::IN_WARP) * S::TILE + group * S::ROWS + r) *
                     S::UNITS +
                 unit] = z[r];
    }
    __syncthreads();
}

/* A unit's cell in one row, its recurrent product being z. */
template <bool USUAL_CELL>
CUK_DEVICE void step_cell(const cuk_lstm &a, int direction, int step,
                          int sample, int unit, float4 z)
{
    const int length = a.lengths[sample];
    const bool has_state = has_h(a, step);
    float *h_to = h_row(a, (step + 1) & 1, direction, sample);
    float *c = c_row(a, direction, sample) + unit;
    float p[3], state = has_c(a, step) ? *c : 0.0f, output = 0.0f;

    if (step < length) {
        add_to(z, products_of(a, direction, sample, length, step, unit));
        peepholes_of(a, direction, unit, p);
        output = cell<USUAL_CELL>(a, direction, z, p, &state);
    } else if (!a.projection) {
        output = has_state ? h_row(a, step & 1, direction, sample)[unit] : 0.0f;
    }
    if (step < length || step == 0)
        *c = state;
    if (a.projection) {
        a.unprojected[((size_t)direction * a.batch + sample) * a.hidden +
                      unit] = output;
        return;
    }
    h_to[unit] = output;
    give(a, direction, sample, length, step, unit, output);
}

template <class S, int TYPE, bool USUAL_CELL>
CUK_KERNEL(THREADS)
step_kernel(CUK_PARAMETER(cuk_lstm) a)
{
    CUK_SHARED(memory);
    const int direction = grid_direction(a.directions);
    const int first_row = grid_y(a.directions) * S::TILE;
    const int first_unit = blockIdx.x * S::UNITS;
    const int step = a.first + (a.counter ? *a.counter : 0);
    const float4 *sums = (const float4 *)memory;
    bool product;

    if (step >= a.steps || first_row >= a.batch)
        return;
    /* The tile's first row is its longest. */
    product = has_h(a, step) && step < a.lengths[a.order[first_row]];
    if (product)
        recurrent_sums<S, TYPE>(a, direction, step, first_row, first_unit,
                                memory);
    for (int e = threadIdx.x; e < S::TILE * S::UNITS; e += THREADS) {
        const int row = first_row + e / S::UNITS;
        const int unit = first_unit + e % S::UNITS;
        float4 z = four(0, 0, 0, 0);

        if (row >= a.batch || unit >= a.hidden)
            continue;
        if (product)
            for (int s = 0; s < S::SUMS; s++)
                add_to(z, sums[s * S::TILE * S::UNITS + e]);
        step_cell<USUAL_CELL>(a, direction, step, a.order[row], unit, z);
    }
}

/* ---- The projection ---------------------------------------------------- */

#define PROJECT_ROWS 4
#define PROJECT_COLUMNS 32
#define PROJECT_SLICES (THREADS / PROJECT_COLUMNS)

/* h = unprojected * projection: a block has 32 outputs of 4 rows, each of its
   warps a slice of the units. */
template <int TYPE>
CUK_KERNEL(THREADS)
project_kernel(CUK_PARAMETER(cuk_lstm) a)
{
    CUK_SHARED(memory);
    float *sums = memory; /* [SLICES][ROWS][COLUMNS] */
    const int lane = threadIdx.x % PROJECT_COLUMNS;
    const int slice = threadIdx.x / PROJECT_COLUMNS;
    const int column = blockIdx.x * PROJECT_COLUMNS + lane;
    const int direction = grid_direction(a.directions);
    const int first_row = grid_y(a.directions) * PROJECT_ROWS;
    const int step = a.first + (a.counter ? *a.counter : 0);
    const size_t matrix = (size_t)direction * a.hidden * a.output;
    float z[PROJECT_ROWS] = { 0.0f };

    if (step >= a.steps)
        return;
    if (column < a.output)
        for (int k = slice; k < a.hidden; k += PROJECT_SLICES) {
            const float w = weight<TYPE>(
                a.projection, matrix + (size_t)k * a.output + column);

            CUK_UNROLL
            for (int r = 0; r < PROJECT_ROWS; r++) {
                const int row = min(first_row + r, a.batch - 1);

                z[r] +=
                    w *
                    a.unprojected[((size_t)direction * a.batch + a.order[row]) *
                                      a.hidden +
                                  k];
            }
        }
    CUK_UNROLL
    for (int r = 0; r < PROJECT_ROWS; r++)
        sums[(slice * PROJECT_ROWS + r) * PROJECT_COLUMNS + lane] = z[r];
    __syncthreads();
    for (int r = slice; r < PROJECT_ROWS; r += PROJECT_SLICES) {
        const int row = first_row + r;
        float output = 0.0f;

        if (row >= a.batch || column >= a.output)
            continue;
        const int sample = a.order[row], length = a.lengths[sample];
        if (step >= length)
            output = has_h(a, step)
                         ? h_row(a, step & 1, direction, sample)[column]
                         : 0.0f;
        else
            for (int s = 0; s < PROJECT_SLICES; s++)
                output += sums[(s * PROJECT_ROWS + r) * PROJECT_COLUMNS + lane];
        h_row(a, (step + 1) & 1, direction, sample)[column] = output;
        give(a, direction, sample, length, step, column, output);
    }
}

/* ---- Launching --------------------------------------------------------- */

template <class S, int TYPE>
static int launch_step(const cuk_lstm &a, CUstream_st *stream)
{
    const dim3 grid = cuk_grid(CUK_DIVIDE_UP(a.hidden, S::UNITS),
                               CUK_DIVIDE_UP(a.batch, S::TILE), a.directions);

    return cuk_launch(is_usual(a) ? step_kernel<S, TYPE, true>
                                  : step_kernel<S, TYPE, false>,
                      grid, dim3(THREADS), S::SHARED, false, stream, a);
}

template <int TYPE> static int one_step(const cuk_lstm &a, CUstream_st *stream)
{
    const dim3 outputs =
        cuk_grid(CUK_DIVIDE_UP(a.output, PROJECT_COLUMNS),
                 CUK_DIVIDE_UP(a.batch, PROJECT_ROWS), a.directions);
    const size_t shared = THREADS * PROJECT_ROWS * sizeof(float);
    int code;

    if (a.batch == 1)
        code = launch_step<step_shape<4, 1, 1>, TYPE>(a, stream);
    else if (a.batch == 2)
        code = launch_step<step_shape<4, 2, 1>, TYPE>(a, stream);
    else if (a.batch <= 4)
        code = launch_step<step_shape<4, 4, 1>, TYPE>(a, stream);
    else if (a.batch <= 8)
        code = launch_step<step_shape<4, 8, 1>, TYPE>(a, stream);
    else if (a.batch <= 16)
        code = launch_step<step_shape<8, 8, 2>, TYPE>(a, stream);
    else if (a.batch <= 32)
        code = launch_step<step_shape<8, 8, 4>, TYPE>(a, stream);
    else
        code = launch_step<step_shape<8, 8, 16>, TYPE>(a, stream);
    if (code == 0 && a.projection)
        code = cuk_launch(project_kernel<TYPE>, outputs, dim3(THREADS), shared,
                          false, stream, a);
    return code;
}

extern "C" int cuk_step(const struct cuk_lstm *lstm, struct CUstream_st *stream)
{
    cuk_lstm a = *lstm;
    int code = 0;

    for (int step = lstm->first; code == 0 && step < lstm->end; step++) {
        a.first = step;
        /* Where products do not lie in time, the launch's begin at first. */
        if (!a.products_in_time && step > lstm->first)
            a.products += a.products_at.time;
        code = a.type == CUK_F32   ? one_step<CUK_F32>(a, stream)
               : a.type == CUK_F16 ? one_step<CUK_F16>(a, stream)
                                   : one_step<CUK_BF16>(a, stream);
    }
    return code;
}
