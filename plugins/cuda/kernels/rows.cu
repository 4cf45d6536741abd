/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.cu: what is done to rows: products with a matrix, activations,
 * gathering, softmax.
 */
#include "plugins/cuda/kernels/cell.h"
#include "plugins/cuda/kernels/weights.h"

#define THREADS 256

/* ---- Products ---------------------------------------------------------- */

#define DEPTH 16 /* of the sums at a time */

/*
 * A block makes a tile of M rows by N columns, a thread MR by NR of it. Both
 * factors go through shared memory, DEPTH of the sums at a time, the next part
 * being on its way in registers while this one is multiplied. Where MR is 8, a
 * thread's rows are two groups of four, so that neighbours read neighbours.
 */
template <int M_, int N_, int MR_, int NR_> struct tile_shape {
    static constexpr int M = M_, N = N_, MR = MR_, NR = NR_;
    static constexpr int ACROSS = N / NR;
    static constexpr int LEFT = M * DEPTH / THREADS; /* of a thread to load */
    static constexpr int RIGHT = N * DEPTH / THREADS;
    static constexpr int PITCH = M + 4; /* of the left factor, transposed */
    static constexpr int PART = DEPTH * (PITCH + N);
    static constexpr size_t SHARED =
        2 * PART * sizeof(float) + M * sizeof(int64_t);
    static_assert(M / MR * ACROSS == THREADS, "a thread each");
    static_assert(LEFT > 0 && RIGHT > 0, "something to load");
};

/* Which of the tile's rows is number i of part `at` of `parts`, R of them. */
template <int R> CUK_DEVICE int spread(int at, int parts, int i)
{
    return R < 8 ? at * R + i : i / 4 * (parts * 4) + at * 4 + i % 4;
}

/* Row m: its sample, step and time, and whether there is such a one. */
CUK_DEVICE bool product_row(const struct cuk_product &a, int direction,
                            int64_t m, int *b, int *step, int *time)
{
    int length;

    *b = (int)(m % a.batch);
    *step = a.first + (int)(m / a.batch);
    if (*step >= a.end)
        return false;
    length = a.lengths ? a.lengths[*b] : a.end;
    *time = a.reverse[direction] ? length - 1 - *step : *step;
    return *step < length;
}

/* Where the tile's rows begin in x; -1: there is no such row. */
template <class S>
CUK_DEVICE void find_rows(const struct cuk_product &a, int direction,
                          int64_t first, int64_t *row_at)
{
    for (int r = threadIdx.x; r < S::M; r += THREADS) {
        int b, step, time;

        row_at[r] = -1;
        if (!product_row(a, direction, first + r, &b, &step, &time))
            continue;
        row_at[r] = b * a.x_at.batch + time * a.x_at.time;
        if (a.ids)
            row_at[r] = (int64_t)a.ids[row_at[r]] * a.depth;
    }
}

template <class S, int TYPE>
CUK_DEVICE void load_part(const struct cuk_product &a, const int64_t *row_at,
                          size_t matrix, int first_column, int k0,
                          float left[S::LEFT], float right[S::RIGHT])
{
    CUK_UNROLL
    for (int i = 0; i < S::LEFT; i++) {
        const int e = threadIdx.x + i * THREADS;
        const int64_t at = row_at[e / DEPTH];
        const int k = k0 + e % DEPTH;

        left[i] = at >= 0 && k < a.depth ? a.x[at + k] : 0.0f;
    }
    CUK_UNROLL
    for (int i = 0; i < S::RIGHT; i++) {
        const int e = threadIdx.x + i * THREADS;
        const int k = k0 + e / S::N, column = first_column + e % S::N;

        right[i] = k < a.depth && column < a.columns
                       ? weight<TYPE>(a.matrix,
                                      matrix + (size_t)k * a.columns + column)
                       : 0.0f;
    }
}

template <class S>
CUK_DEVICE void store_part(float *part, const float left[S::LEFT],
                           const float right[S::RIGHT])
{
    CUK_UNROLL
    for (int i = 0; i < S::LEFT; i++) {
        const int e = threadIdx.x + i * THREADS;

        part[e % DEPTH * S::PITCH + e / DEPTH] = left[i];
    }
    CUK_UNROLL
    for (int i = 0; i < S::RIGHT; i++)
        part[DEPTH * S::PITCH + threadIdx.x + i * THREADS] = right[i];
}

/* R numbers of a part of a factor, in loads of four where they are so many. */
template <int R>
CUK_DEVICE void read_part(const float *from, int at, int parts, float to[R])
{
    if constexpr (R < 4) {
        CUK_UNROLL
        for (int i = 0; i < R; i++)
            to[i] = from[spread<R>(at, parts, i)];
    } else {
        CUK_UNROLL
        for (int i = 0; i < R; i += 4) {
            const float4 x = *(const float4 *)(from + spread<R>(at, parts, i));

            to[i] = x.x;
            to[i + 1] = x.y;
            to[i + 2] = x.z;
            to[i + 3] = x.w;
        }
    }
}

template <class S>
CUK_DEVICE void multiply_part(const float *part, int down, int across,
                              float z[S::MR][S::NR])
{
    CUK_UNROLL
    for (int k = 0; k < DEPTH; k++) {
        float left[S::MR], right[S::NR];

        read_part<S::MR>(part + k * S::PITCH, down, S::M / S::MR, left);
        read_part<S::NR>(part + DEPTH * S::PITCH + k * S::N, across, S::ACROSS,
                         right);
        CUK_UNROLL
        for (int i = 0; i < S::MR; i++)
            CUK_UNROLL
        for (int j = 0; j < S::NR; j++)
            z[i][j] += left[i] * right[j];
    }
}

template <class S>
CUK_DEVICE void store_tile(const struct cuk_product &a, int direction,
                           int64_t first, int first_column, int down,
                           int across, const float z[S::MR][S::NR])
{
    CUK_UNROLL
    for (int i = 0; i < S::MR; i++) {
        int b, step, time;
        float *to;

        if (!product_row(a, direction,
                         first + spread<S::MR>(down, S::M / S::MR, i), &b,
                         &step, &time))
            continue;
        to = a.y + direction * a.y_direction + b * a.y_at.batch +
             (a.in_time ? time : step - a.first) * a.y_at.time;
        CUK_UNROLL
        for (int j = 0; j < S::NR; j++) {
            const int n = first_column + spread<S::NR>(across, S::ACROSS, j);

            if (n < a.columns)
                to[n] = activate(
                    a.activation,
                    z[i][j] +
                        (a.bias ? a.bias[direction * a.columns + n] : 0.0f));
        }
    }
}

template <class S, int TYPE>
CUK_KERNEL(THREADS)
product_kernel(CUK_PARAMETER(struct cuk_product) a)
{
    CUK_SHARED(memory);
    float *part = memory, *other = part + S::PART;
    int64_t *row_at = (int64_t *)(void *)(part + 2 * S::PART);
    const int down = threadIdx.x / S::ACROSS, across = threadIdx.x % S::ACROSS;
    const int direction = grid_direction(a.directions);
    const int first_column = grid_y(a.directions) * S::N;
    const int64_t first = (int64_t)blockIdx.x * S::M;
    const size_t matrix = (size_t)(direction * a.matrix_direction);
    float left[S::LEFT], right[S::RIGHT], z[S::MR][S::NR];

    CUK_UNROLL
    for (int i = 0; i < S::MR; i++)
        CUK_UNROLL
    for (int j = 0; j < S::NR; j++)
        z[i][j] = 0.0f;
    find_rows<S>(a, direction, first, row_at);
    __syncthreads();
    load_part<S, TYPE>(a, row_at, matrix, first_column, 0, left, right);
    for (int k0 = 0; k0 < a.depth; k0 += DEPTH) {
        float *swap = part;

        store_part<S>(part, left, right);
        __syncthreads();
        if (k0 + DEPTH < a.depth)
            load_part<S, TYPE>(a, row_at, matrix, first_column, k0 + DEPTH,
                               left, right);
        multiply_part<S>(part, down, across, z);
        part = other;
        other = swap;
    }
    store_tile<S>(a, direction, first, first_column, down, across, z);
}

template <class S, int TYPE>
static int launch_product(const struct cuk_product &a, CUstream_st *stream)
{
    const int64_t rows = (int64_t)(a.end - a.first) * a.batch;
    const dim3 grid = cuk_grid(CUK_DIVIDE_UP(rows, S::M),
                               CUK_DIVIDE_UP(a.columns, S::N), a.directions);

    return cuk_launch(product_kernel<S, TYPE>, grid, dim3(THREADS), S::SHARED,
                      false, stream, a);
}

/* Large tiles where they leave no multiprocessor without one. */
template <int TYPE>
static int any_product(const struct cuk_product &a, CUstream_st *stream)
{
    const int64_t rows = (int64_t)(a.end - a.first) * a.batch;
    const int64_t tiles = rows / 128 * CUK_DIVIDE_UP(a.columns, 128);

    if (rows == 0)
        return 0;
    if (rows <= 16)
        return launch_product<tile_shape<16, 64, 4, 1>, TYPE>(a, stream);
    if (tiles * a.directions < 128)
        return launch_product<tile_shape<64, 64, 4, 4>, TYPE>(a, stream);
    return launch_product<tile_shape<128, 128, 8, 8>, TYPE>(a, stream);
}

extern "C" int cuk_product(const struct cuk_product *product,
                           struct CUstream_st *stream)
{
    return product->type == CUK_F32   ? any_product<CUK_F32>(*product, stream)
           : product->type == CUK_F16 ? any_product<CUK_F16>(*product, stream)
                                      : any_product<CUK_BF16>(*product, stream);
}

/* ---- Elementwise ------------------------------------------------------- */

/* `lanes` threads a row, a power of two. */
CUK_KERNEL(THREADS)
activate_kernel(CUK_PARAMETER(cuk_rows) a)
{
    const int lanes = blockDim.x, lane = threadIdx.x;
    const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const int64_t b = row / a.steps, t = row % a.steps;
    const int64_t at = b * a.x_at.batch + t * a.x_at.time;

    if (b >= a.batch)
        return;
    const float *from = a.ids ? a.x + (int64_t)a.ids[at] * a.width : a.x + at;
    float *to = a.y + b * a.y_at.batch + t * a.y_at.time;

    for (int k = lane; k < a.width; k += lanes)
        to[k] = activate(a.activation, from[k]);
}

extern "C" int cuk_activate(const struct cuk_rows *rows,
                            struct CUstream_st *stream)
{
    const int64_t count = (int64_t)rows->batch * rows->steps;
    int lanes = 1;

    if (count == 0)
        return 0;
    while (lanes < rows->width && lanes < THREADS)
        lanes *= 2;
    return cuk_launch(activate_kernel,
                      dim3((unsigned)CUK_DIVIDE_UP(count, THREADS / lanes)),
                      dim3(lanes, THREADS / lanes), 0, false, stream, *rows);
}

/* ---- Softmax ----------------------------------------------------------- */

#define HELD 16 /* numbers of a row that a thread keeps */

/* The largest, or the sum, over the block. */
template <bool SUM> CUK_DEVICE float over_block(float value, float *memory)
{
    const int warps = blockDim.x / 32, lane = threadIdx.x % 32;

    CUK_UNROLL
    for (int other = 16; other > 0; other /= 2) {
        const float theirs = __shfl_xor_sync(CUK_FULL_MASK, value, other);

        value = SUM ? value + theirs : fmaxf(value, theirs);
    }
    __syncthreads(); /* what an earlier call left there has been read */
    if (lane == 0)
        memory[threadIdx.x / 32] = value;
    __syncthreads();
    value = memory[0];
    for (int i = 1; i < warps; i++)
        value = SUM ? value + memory[i] : fmaxf(value, memory[i]);
    return value;
}

/* A row of up to HELD numbers a thread: read once and written once. */
CUK_DEVICE void short_softmax(const float *x, float *y, int width,
                              float *memory)
{
    const int threads = blockDim.x;
    float held[HELD], most = -INFINITY, sum = 0.0f;

    CUK_UNROLL
    for (int i = 0; i < HELD; i++) {
        const int k = threadIdx.x + i * threads;

        held[i] = k < width ? x[k] : -INFINITY;
        most = fmaxf(most, held[i]);
    }
    most = over_block<false>(most, memory);
    CUK_UNROLL
    for (int i = 0; i < HELD; i++)
        if ((int)threadIdx.x + i * threads < width) {
            held[i] = expf(held[i] - most);
            sum += held[i];
        }
    sum = over_block<true>(sum, memory);
    CUK_UNROLL
    for (int i = 0; i < HELD; i++)
        if ((int)threadIdx.x + i * threads < width)
            y[threadIdx.x + i * threads] = held[i] / sum;
}

/* A longer one: read again for the sum, and its powers for the division. */
CUK_DEVICE void long_softmax(const float *x, float *y, int width, float *memory)
{
    const int threads = blockDim.x;
    float most = -INFINITY, sum = 0.0f;

    for (int k = threadIdx.x; k < width; k += threads)
        most = fmaxf(most, x[k]);
    most = over_block<false>(most, memory);
    for (int k = threadIdx.x; k < width; k += threads) {
        const float value = expf(x[k] - most);

        y[k] = value;
        sum += value;
    }
    sum = over_block<true>(sum, memory);
    for (int k = threadIdx.x; k < width; k += threads)
        y[k] /= sum;
}

/* One block a row. */
template <bool SHORT> CUK_KERNEL(1024) softmax_kernel(CUK_PARAMETER(cuk_rows) a)
{
    CUK_SHARED(memory);
    const int64_t b = blockIdx.x / a.steps, t = blockIdx.x % a.steps;
    const float *x = a.x + b * a.x_at.batch + t * a.x_at.time;
    float *y = a.y + b * a.y_at.batch + t * a.y_at.time;

    if constexpr (SHORT)
        short_softmax(x, y, a.width, memory);
    else
        long_softmax(x, y, a.width, memory);
}

extern "C" int cuk_softmax(const struct cuk_rows *rows,
                           struct CUstream_st *stream)
{
    const int64_t count = (int64_t)rows->batch * rows->steps;
    int threads = 32;

    if (count == 0)
        return 0;
    while (threads < 1024 && threads * 8 < rows->width)
        threads *= 2;
    return cuk_launch(threads * HELD >= rows->width ? softmax_kernel<true>
                                                    : softmax_kernel<false>,
                      dim3((unsigned)count), dim3(threads),
                      threads / 32 * sizeof(float), false, stream, *rows);
}

/* ---- Rows without a step ----------------------------------------------- */

CUK_DEVICE void empty_state(const struct cuk_empty &a, const float *from,
                            float *to, int width)
{
    for (int64_t e = threadIdx.x; e < (int64_t)a.layers * width;
         e += blockDim.x) {
        const int64_t at =
            (e / width * a.state_rows + blockIdx.x) * width + e % width;

        to[at] = from ? from[at] : 0.0f;
    }
}

/* One block a row. */
CUK_KERNEL(THREADS) empty_kernel(CUK_PARAMETER(struct cuk_empty) a)
{
    const int64_t row = blockIdx.x;

    if (a.lengths && a.lengths[row] > 0)
        return;
    for (int64_t e = threadIdx.x; a.y && e < (int64_t)a.steps * a.width;
         e += blockDim.x)
        a.y[row * a.y_at.batch + e / a.width * a.y_at.time + e % a.width] =
            0.0f;
    for (int k = threadIdx.x; a.last && k < a.width; k += blockDim.x)
        a.last[row * a.last_stride + k] = 0.0f;
    empty_state(a, a.h0, a.h, a.h_width);
    empty_state(a, a.c0, a.c, a.c_width);
}

extern "C" int cuk_empty(const struct cuk_empty *empty,
                         struct CUstream_st *stream)
{
    if (empty->batch == 0)
        return 0;
    return cuk_launch(empty_kernel, dim3((unsigned)empty->batch), dim3(THREADS),
                      0, false, stream, *empty);
}

/* ---- Counting ---------------------------------------------------------- */

struct count_parameters {
    int32_t *counter;
    int32_t by, set;
};

CUK_KERNEL(32) count_kernel(CUK_PARAMETER(count_parameters) a)
{
    if (threadIdx.x == 0)
        *a.counter = a.set ? a.by : *a.counter + a.by;
}

extern "C" int cuk_count(int32_t *counter, int32_t by, int32_t set,
                         struct CUstream_st *stream)
{
    const count_parameters a = { counter, by, set };

    return cuk_launch(count_kernel, dim3(1), dim3(32), 0, false, stream, a);
}
