/* SPDX-License-Identifier: Apache-2.0 */
/*
 * persistent.cu: all steps of a layer in one cooperative grid.
 *
 * A block owns UNITS units of a direction with all their gates, and there are
 * no more blocks than multiprocessors, so that every weight stays where it was
 * loaded: in registers, and what they do not hold in shared memory. A warp has
 * UNIT_LANES lanes of units by SLICES slices; a lane has EACH units and, of the
 * depth, every (8 warps * SLICES)-th group of four. So each warp reads h
 * straight from L2 into the registers that it meets the weights in, its lanes
 * of one slice as one, and no two warps of a block read the same. The slices'
 * sums are added up by shuffles within warps and by shared memory between them;
 * then a thread does the cell of a unit and a row, whose c is in shared memory.
 *
 * A step ends with one synchronisation of the direction's blocks: each adds one
 * to a counter, with release, and waits, with acquire, until all have. h is in
 * two halves, one read and one written, so that one is enough; a projection
 * needs a second one. h passes the L1 cache by, which is not coherent.
 *
 * Rows come by length, so that those that go on are the first `active` ones.
 *
 * What bounds a step, on an H100 or H200 SXM (132 multiprocessors at up to
 * 1.98 GHz, 128 multiply-adds and 128 bytes of shared memory a clock each, by
 * the CUDA C++ Programming Guide's tables for 9.0 and NVIDIA's data sheets): no
 * weight is read beyond the multiprocessor, where a launch a step reads 16 H^2
 * bytes of L2 or memory. What is read is h, 4 H bytes a row by each block,
 * which is 4 H^2 / UNITS a row in all; at H 1024 and 8 units that is 0.5 MiB a
 * row. The multiplications take 4 H UNITS / 128 clocks a row: 256, 0.13 us, at
 * H 1024. Below some ten rows the synchronisation is what is left, about 1
 * to 1.5 us. float32 fits up to H 1584 on 132 multiprocessors.
 */
#include "plugins/cuda/kernels/cell.h"
#include "plugins/cuda/kernels/fit.h"
#include "plugins/cuda/kernels/weights.h"

#define THREADS CUK_PERSISTENT_THREADS
#define WARPS (THREADS / 32)
#define CHUNK CUK_PERSISTENT_CHUNK /* rows whose sums are there at once */

template <int TYPE_, int UNIT_LANES_, int EACH_, int ROWS_> struct grid_shape {
    static constexpr int TYPE = TYPE_, UNIT_LANES = UNIT_LANES_;
    static constexpr int EACH = EACH_, ROWS = ROWS_ /* multiplied at once */;
    static constexpr int UNITS = UNIT_LANES * EACH;
    static constexpr int SLICES = 32 / UNIT_LANES;
    static constexpr int STRIDE = WARPS * SLICES; /* groups of four */
    static constexpr int HELD = CUK_PERSISTENT_HELD(TYPE, EACH);
};

/* What a thread of the grid is. */
struct grid_thread {
    int direction, first_unit;
    int unit, slice; /* in the block; in the direction's depth */
    int groups;
    bool aligned; /* rows of h are read four numbers at a time */
};

/* The block's shared memory. */
template <class S> struct grid_memory {
    stored<S::TYPE> *spilled; /* [groups - HELD][4][EACH][THREADS] */
    float4 *sums;             /* [WARPS][CHUNK][UNITS] */
    float *c;                 /* [batch][UNITS] */
    int *rows;                /* [batch][2]: sample, length */
};

template <class S>
CUK_DEVICE grid_memory<S> divide_memory(const cuk_lstm &a, int groups,
                                        float *memory)
{
    const int spilled = max(groups - S::HELD, 0);
    grid_memory<S> m;

    m.spilled = (stored<S::TYPE> *)memory;
    m.sums = (float4 *)(m.spilled + (size_t)spilled * 4 * S::EACH * THREADS);
    m.c = (float *)(m.sums + WARPS * CHUNK * S::UNITS);
    m.rows = (int *)(m.c + (size_t)a.batch * S::UNITS);
    return m;
}

/* ---- Before the first step, and after the last ------------------------- */

/* The gates of the block's unit `unit` and number k of the depth, as stored. */
template <class S>
CUK_DEVICE stored<S::TYPE> weights_of(const cuk_lstm &a, const grid_thread &t,
                                      int unit, int k)
{
    if (k >= CUK_DEPTH(a.output) || t.first_unit + unit >= a.hidden)
        return no_gates<S::TYPE>();
    return stored_gates<S::TYPE>(
        a.recurrent, packed_direction(a, t.direction) +
                         packed_at(a.output, t.first_unit + unit, k));
}

template <class S>
CUK_DEVICE void load_weights(const cuk_lstm &a, const grid_thread &t,
                             const grid_memory<S> &m,
                             stored<S::TYPE> held[S::HELD][4][S::EACH])
{
    CUK_UNROLL
    for (int j = 0; j < S::HELD; j++)
        CUK_UNROLL
    for (int i = 0; i < 4; i++)
        CUK_UNROLL
    for (int n = 0; n < S::EACH; n++)
        held[j][i][n] = weights_of<S>(a, t, t.unit + n * S::UNIT_LANES,
                                      (j * S::STRIDE + t.slice) * 4 + i);
    for (int j = S::HELD; j < t.groups; j++)
        for (int i = 0; i < 4; i++)
            for (int n = 0; n < S::EACH; n++)
                m.spilled[(((j - S::HELD) * 4 + i) * S::EACH + n) * THREADS +
                          threadIdx.x] =
                    weights_of<S>(a, t, t.unit + n * S::UNIT_LANES,
                                  (j * S::STRIDE + t.slice) * 4 + i);
}

template <class S>
CUK_DEVICE void load_state(const cuk_lstm &a, const grid_thread &t,
                           const grid_memory<S> &m)
{
    for (int row = threadIdx.x; row < a.batch; row += THREADS) {
        m.rows[2 * row] = a.order[row];
        m.rows[2 * row + 1] = a.lengths[a.order[row]];
    }
    for (int e = threadIdx.x; e < a.batch * S::UNITS; e += THREADS) {
        const int unit = t.first_unit + e % S::UNITS;

        m.c[e] = has_c(a, a.first) && unit < a.hidden
                     ? c_row(a, t.direction, a.order[e / S::UNITS])[unit]
                     : 0.0f;
    }
    __syncthreads();
}

/* c of the block's units, and h of its outputs [first, first + count) where it
   is not in the half in which it must be. */
template <class S>
CUK_DEVICE void store_state(const cuk_lstm &a, const grid_thread &t,
                            const grid_memory<S> &m, int first, int count)
{
    for (int e = threadIdx.x; e < a.batch * S::UNITS; e += THREADS) {
        const int unit = t.first_unit + e % S::UNITS;

        if (unit < a.hidden)
            c_row(a, t.direction, m.rows[e / S::UNITS * 2])[unit] = m.c[e];
    }
    for (int e = threadIdx.x; e < a.batch * count; e += THREADS) {
        const int sample = m.rows[e / count * 2], k = first + e % count;
        const int length = m.rows[e / count * 2 + 1];
        const int is_in = max(a.first, min(length, a.end)) & 1;

        if (k >= a.output || length >= a.end)
            continue;
        if (!has_h(a, max(a.first, length)))
            h_row(a, a.end & 1, t.direction, sample)[k] = 0.0f;
        else if (is_in != (a.end & 1))
            h_row(a, a.end & 1, t.direction, sample)[k] =
                h_row(a, is_in, t.direction, sample)[k];
    }
}

/* ---- The grid's barrier ------------------------------------------------ */

/* A direction's numbers: who has come, and who has ended. */
#define COME(a, direction) ((a).sync + (direction)*CUK_SYNC / 2)
#define ENDED(a, direction) ((a).sync + (direction)*CUK_SYNC / 2 + 32)

/* The block's writes so far are for those who wait for this. */
CUK_DEVICE void grid_arrive(const cuk_lstm &a, int direction)
{
    __syncthreads();
    if (threadIdx.x == 0)
        cuk_add_release(COME(a, direction), 1);
}

/* Until all blocks of the direction have come for the time number `time`. */
CUK_DEVICE void grid_wait(const cuk_lstm &a, int direction, uint32_t time)
{
    if (threadIdx.x == 0)
        while (cuk_load_acquire(COME(a, direction)) < time * gridDim.x)
            CUK_PAUSE();
    __syncthreads();
}

/* The last block to end leaves zeros for the next launch. */
CUK_DEVICE void grid_end(const cuk_lstm &a, int direction)
{
    if (threadIdx.x == 0 &&
        cuk_add_acquire_release(ENDED(a, direction), 1) == gridDim.x - 1)
        *COME(a, direction) = *ENDED(a, direction) = 0;
}

/* ---- The recurrent product --------------------------------------------- */

/* Four numbers of a row of h, which other blocks have written. */
CUK_DEVICE float4 load_four(const float *row, int k, int depth, bool aligned)
{
    if (aligned && k < depth)
        return __ldcg((const float4 *)(row + k));
    return four(k < depth ? __ldcg(row + k) : 0.0f,
                k + 1 < depth ? __ldcg(row + k + 1) : 0.0f,
                k + 2 < depth ? __ldcg(row + k + 2) : 0.0f,
                k + 3 < depth ? __ldcg(row + k + 3) : 0.0f);
}

/* z += four of the depth by the weights that meet them. */
template <class S>
CUK_DEVICE void multiply_group(const stored<S::TYPE> w[4][S::EACH],
                               const float4 x[S::ROWS],
                               float4 z[S::ROWS][S::EACH])
{
    CUK_UNROLL
    for (int n = 0; n < S::EACH; n++)
        CUK_UNROLL
    for (int i = 0; i < 4; i++) {
        const float4 gate = decode<S::TYPE>(w[i][n]);

        CUK_UNROLL
        for (int r = 0; r < S::ROWS; r++)
            add_scaled(z[r][n],
                       i == 0   ? x[r].x
                       : i == 1 ? x[r].y
                       : i == 2 ? x[r].z
                                : x[r].w,
                       gate);
    }
}

/* The lane's share of the products of rows `row` ... row + ROWS - 1. */
template <class S>
CUK_DEVICE void
multiply_rows(const cuk_lstm &a, const grid_thread &t, const grid_memory<S> &m,
              const stored<S::TYPE> held[S::HELD][4][S::EACH], const float *h,
              int row, int active, float4 z[S::ROWS][S::EACH])
{
    int rows[S::ROWS]; /* where they begin */

    CUK_UNROLL
    for (int r = 0; r < S::ROWS; r++) {
        /* A row beyond the last is the last one again, and not looked at. */
        rows[r] = m.rows[2 * min(row + r, active - 1)] * a.output;
        CUK_UNROLL
        for (int n = 0; n < S::EACH; n++)
            z[r][n] = four(0, 0, 0, 0);
    }
    CUK_UNROLL
    for (int j = 0; j < S::HELD; j++)
        if (j < t.groups) {
            stored<S::TYPE> w[4][S::EACH];
            float4 x[S::ROWS];

            CUK_UNROLL
            for (int r = 0; r < S::ROWS; r++)
                x[r] = load_four(h + rows[r], (j * S::STRIDE + t.slice) * 4,
                                 a.output, t.aligned);
            CUK_UNROLL
            for (int i = 0; i < 4; i++)
                CUK_UNROLL
            for (int n = 0; n < S::EACH; n++)
                w[i][n] = kept(held[j][i][n]);
            multiply_group<S>(w, x, z);
        }
    for (int j = S::HELD; j < t.groups; j++) {
        stored<S::TYPE> w[4][S::EACH];
        float4 x[S::ROWS];

        CUK_UNROLL
        for (int r = 0; r < S::ROWS; r++)
            x[r] = load_four(h + rows[r], (j * S::STRIDE + t.slice) * 4,
                             a.output, t.aligned);
        CUK_UNROLL
        for (int i = 0; i < 4; i++)
            CUK_UNROLL
        for (int n = 0; n < S::EACH; n++)
            w[i][n] =
                m.spilled[(((j - S::HELD) * 4 + i) * S::EACH + n) * THREADS +
                          threadIdx.x];
        multiply_group<S>(w, x, z);
    }
}

/* The sums over the warp's slices, of each row from the lanes that have it. */
template <class S>
CUK_DEVICE void store_sums(const grid_thread &t, const grid_memory<S> &m,
                           int chunk_row, float4 z[S::ROWS][S::EACH])
{
    const int slice = t.slice % S::SLICES, warp = threadIdx.x / 32;
    constexpr int SHARE = S::SLICES / S::ROWS;

    add_slices<S::SLICES / 2, S::ROWS, S::EACH>(slice, S::UNIT_LANES, z);
    if (slice % SHARE == 0)
        CUK_UNROLL
    for (int n = 0; n < S::EACH; n++)
        m.sums[(warp * CHUNK + chunk_row + slice / SHARE) * S::UNITS + t.unit +
               n * S::UNIT_LANES] = z[0][n];
}

/* ---- A step ------------------------------------------------------------ */

/* Of the thread's cell of the chunk from `first_row` on. */
template <class S>
CUK_DEVICE float4 fetch(const cuk_lstm &a, const grid_thread &t,
                        const grid_memory<S> &m, int step, int first_row)
{
    const int row = first_row + threadIdx.x / S::UNITS;
    const int unit = t.first_unit + threadIdx.x % S::UNITS;

    if (threadIdx.x >= CHUNK * S::UNITS || row >= a.batch || unit >= a.hidden ||
        step >= m.rows[2 * row + 1] || step >= a.end)
        return four(0, 0, 0, 0);
    return products_of(a, t.direction, m.rows[2 * row], m.rows[2 * row + 1],
                       step, unit);
}

template <class S>
CUK_DEVICE void chunk_cells(const cuk_lstm &a, const grid_thread &t,
                            const grid_memory<S> &m, bool usual, int step,
                            int first_row, int active, bool product, float4 z)
{
    const int row = first_row + threadIdx.x / S::UNITS;
    const int own = threadIdx.x % S::UNITS, unit = t.first_unit + own;
    float p[3], output;

    if (threadIdx.x >= CHUNK * S::UNITS || row >= active || unit >= a.hidden)
        return;
    const int sample = m.rows[2 * row], length = m.rows[2 * row + 1];
    if (product)
        for (int w = 0; w < WARPS; w++)
            add_to(z, m.sums[(w * CHUNK + row - first_row) * S::UNITS + own]);
    peepholes_of(a, t.direction, unit, p);
    output =
        usual ? cell<true>(a, t.direction, z, p, &m.c[row * S::UNITS + own])
              : cell<false>(a, t.direction, z, p, &m.c[row * S::UNITS + own]);
    if (a.projection) {
        a.unprojected[((size_t)t.direction * a.batch + sample) * a.hidden +
                      unit] = output;
        return;
    }
    h_row(a, (step + 1) & 1, t.direction, sample)[unit] = output;
    give(a, t.direction, sample, length, step, unit, output);
}

/* The block's units in all rows that go on. `first` is what fetch() gave for
   the first chunk. */
template <class S>
CUK_DEVICE void grid_step(const cuk_lstm &a, const grid_thread &t,
                          const grid_memory<S> &m,
                          const stored<S::TYPE> held[S::HELD][4][S::EACH],
                          bool usual, int step, int active, const float4 &first)
{
    const float *h = h_row(a, step & 1, t.direction, 0);
    const bool product = has_h(a, step);

    for (int chunk = 0; chunk < active; chunk += CHUNK) {
        const int end = min(chunk + CHUNK, active);
        const float4 z = chunk == 0 ? first : fetch<S>(a, t, m, step, chunk);

        for (int row = chunk; product && row < end; row += S::ROWS) {
            float4 sums[S::ROWS][S::EACH];

            multiply_rows<S>(a, t, m, held, h, row, active, sums);
            store_sums<S>(t, m, row - chunk, sums);
        }
        __syncthreads();
        chunk_cells<S>(a, t, m, usual, step, chunk, active, product, z);
        if (end < active)
            __syncthreads();
    }
}

/* h = unprojected * projection: the block's outputs [first, first + count), a
   warp an output of a row. */
template <class S>
CUK_DEVICE void grid_project(const cuk_lstm &a, const grid_thread &t,
                             const grid_memory<S> &m, int step, int active,
                             int first, int count)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t matrix = (size_t)t.direction * a.hidden * a.output;

    for (int e = warp; e < active * count; e += WARPS) {
        const int sample = m.rows[e / count * 2], k = first + e % count;
        const float *from =
            a.unprojected + ((size_t)t.direction * a.batch + sample) * a.hidden;
        float sum = 0.0f;

        if (k >= a.output)
            continue;
        for (int i = lane; i < a.hidden; i += 32)
            sum += __ldcg(from + i) *
                   weight<S::TYPE>(a.projection,
                                   matrix + (size_t)i * a.output + k);
        CUK_UNROLL
        for (int other = 16; other > 0; other /= 2)
            sum += __shfl_xor_sync(CUK_FULL_MASK, sum, other);
        if (lane > 0)
            continue;
        h_row(a, (step + 1) & 1, t.direction, sample)[k] = sum;
        give(a, t.direction, sample, m.rows[e / count * 2 + 1], step, k, sum);
    }
}

/* Zeros for the rows that have no such step. */
template <class S>
CUK_DEVICE void give_nothing(const cuk_lstm &a, const grid_thread &t,
                             const grid_memory<S> &m, int step, int active,
                             int first, int count)
{
    for (int e = active * count + threadIdx.x; e < a.batch * count;
         e += THREADS)
        if (first + e % count < a.output)
            give(a, t.direction, m.rows[e / count * 2],
                 m.rows[e / count * 2 + 1], step, first + e % count, 0.0f);
}

template <class S>
CUK_KERNEL(THREADS)
persistent_kernel(CUK_PARAMETER(cuk_lstm) a)
{
    CUK_SHARED(memory);
    const int share = CUK_DIVIDE_UP(a.output, (int)gridDim.x);
    const int first_output =
        blockIdx.x * (a.projection ? share : (int)S::UNITS);
    const int outputs = a.projection ? share : (int)S::UNITS;
    const bool usual = a.activations[blockIdx.y][0].kind == CELLGATE_SIGMOID &&
                       a.activations[blockIdx.y][1].kind == CELLGATE_TANH &&
                       a.activations[blockIdx.y][2].kind == CELLGATE_TANH;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    grid_thread t;
    stored<S::TYPE> held[S::HELD][4][S::EACH];
    uint32_t times = 0;
    int active = a.batch;

    t.direction = blockIdx.y;
    t.first_unit = blockIdx.x * S::UNITS;
    t.unit = lane % S::UNIT_LANES;
    t.slice = warp * S::SLICES + lane / S::UNIT_LANES;
    t.groups = CUK_DIVIDE_UP(a.output, 4 * S::STRIDE);
    t.aligned = a.output % 4 == 0;
    const grid_memory<S> m = divide_memory<S>(a, t.groups, memory);
    load_weights<S>(a, t, m, held);
    load_state<S>(a, t, m);
    for (int step = a.first; step < a.end; step++) {
        const float4 products = fetch<S>(a, t, m, step, 0);

        while (active > 0 && m.rows[2 * active - 1] <= step)
            active--;
        if (times > 0)
            grid_wait(a, t.direction, times);
        grid_step<S>(a, t, m, held, usual, step, active, products);
        if (a.projection) {
            grid_arrive(a, t.direction);
            grid_wait(a, t.direction, ++times);
            grid_project<S>(a, t, m, step, active, first_output, outputs);
        }
        if (step + 1 < a.end) {
            grid_arrive(a, t.direction);
            times++;
        }
        give_nothing<S>(a, t, m, step, active, first_output, outputs);
    }
    __syncthreads();
    store_state<S>(a, t, m, first_output, outputs);
    grid_end(a, t.direction);
}

/* ---- Launching --------------------------------------------------------- */

typedef void (*grid_function)(cuk_lstm);

template <int TYPE>
static grid_function grid_of_type(const struct cuk_persistent_shape &shape)
{
#define HAS(lanes, each)                                                       \
    if (shape.units == (lanes) * (each))                                       \
        return shape.rows == 1                                                 \
                   ? persistent_kernel<grid_shape<TYPE, lanes, each, 1>>       \
                   : persistent_kernel<grid_shape<TYPE, lanes, each,           \
                                                  CUK_PERSISTENT_ROWS(each)>>;
    CUK_PERSISTENT_UNITS(HAS)
#undef HAS
    return nullptr;
}

static grid_function grid_function_of(int type,
                                      const struct cuk_persistent_shape &shape)
{
    return type == CUK_F32   ? grid_of_type<CUK_F32>(shape)
           : type == CUK_F16 ? grid_of_type<CUK_F16>(shape)
                             : grid_of_type<CUK_BF16>(shape);
}

extern "C" int cuk_persistent(const struct cuk_device *device,
                              const struct cuk_lstm *lstm,
                              struct CUstream_st *stream)
{
    struct cuk_persistent_shape shape;

    cuk_persistent_shape(device, lstm, &shape);
    return cuk_launch(grid_function_of(lstm->type, shape),
                      dim3(shape.blocks, lstm->directions), dim3(THREADS),
                      shape.shared, true, stream, *lstm);
}

extern "C" int cuk_persistent_setup(const struct cuk_device *device)
{
    int code = 0;

    for (int i = 0; code == 0 && i < 6; i++) {
        struct cuk_persistent_shape shape = {};

        shape.rows = i % 2 ? 1 : 2;
#define ALLOW(lanes, each)                                                     \
    shape.units = (lanes) * (each);                                            \
    if (code == 0)                                                             \
        code = cuk_allow_shared(grid_function_of(i / 2, shape), device->shared);
        CUK_PERSISTENT_UNITS(ALLOW)
#undef ALLOW
    }
    return code;
}
