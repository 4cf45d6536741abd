/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.cl: what is done to rows: products with a matrix, activations, softmax
 * and gathering.
 */
#if V == 1
#define MATRIX_BLOCK(depth) ((size_t)4)
#define MATRIX_ROW(blocks) ((size_t)(blocks) * 4)
#else
#define MATRIX_BLOCK(depth) ((size_t)(depth) * 4 * V)
#define MATRIX_ROW(blocks) ((size_t)(4 * V))
#endif

/* Row m of the product: its sample, its step, and whether there is such a one. */
static int product_row(const struct ocl_product_arguments *a,
                       global const int *lengths, int direction, int m, int *b,
                       int *step, int *t)
{
    int length;

    *step = a->first + m / a->batch;
    *b = m % a->batch;
    length = lengths ? lengths[*b] : a->end;
    *t = a->reverse[direction] ? length - 1 - *step : *step;
    return *step < a->end && *step < length;
}

static global const float *product_input(const struct ocl_product_arguments *a,
                                         global const float *x,
                                         global const int *ids, int b, int t)
{
    const size_t at = (size_t)a->x.at + (size_t)b * a->x.batch +
                      (size_t)t * a->x.time;

    return ids ? x + (size_t)ids[at] * a->depth : x + at;
}

#if V > 1
/*
 * y = x * matrix + bias, one item a tile of TILE rows by 4 V columns
 * and RUN such tiles after each other: the four vectors of a row of the matrix
 * meet TILE rows of x.
 */
#define TILE 4
#define RUN 8

static void product_store(const struct ocl_product_arguments *a,
                          global float *to, int column, real x)
{
    float values[V];

    if (column + V <= a->columns) {
        REAL_STORE(x, to + column);
        return;
    }
    REAL_STORE(x, values);
    for (int u = 0; column + u < a->columns; u++)
        to[column + u] = values[u];
}

kernel void product(const struct ocl_product_arguments a,
                    global const float *x, global const int *ids,
                    global const WEIGHT *matrix, global const float *bias,
                    global float *y, global const int *lengths)
{
    const int block = get_global_id(0), direction = get_global_id(2);
    const int rows = (a.end - a.first) * a.batch;
    global const WEIGHT *columns = matrix + direction * a.matrix_direction +
                                  block * MATRIX_BLOCK(a.depth);

    bias += ((size_t)direction * a.blocks + block) * 4 * V;
    y += a.y.at + direction * a.y_direction;
    for (int tile = 0; tile < RUN; tile++) {
        const int first = ((int)get_global_id(1) * RUN + tile) * TILE;
        global const float *from[TILE];
        int there[TILE], b[TILE], step[TILE];
        real z[TILE][4];

        if (first >= rows)
            return;
        for (int r = 0; r < TILE; r++) {
            int t;

            there[r] = product_row(&a, lengths, direction, first + r, &b[r],
                                   &step[r], &t);
            from[r] = there[r] ? product_input(&a, x, ids, b[r], t) : x;
            for (int g = 0; g < 4; g++)
                z[r][g] = REAL_LOAD(bias + g * V);
        }
        for (int k = 0; k < a.depth; k++) {
            global const WEIGHT *row = columns + k * MATRIX_ROW(a.blocks);
            const real m0 = WEIGHT_LOAD(row), m1 = WEIGHT_LOAD(row + V);
            const real m2 = WEIGHT_LOAD(row + 2 * V);
            const real m3 = WEIGHT_LOAD(row + 3 * V);

#pragma unroll
            for (int r = 0; r < TILE; r++) {
                const float value = from[r][k];

                z[r][0] += value * m0;
                z[r][1] += value * m1;
                z[r][2] += value * m2;
                z[r][3] += value * m3;
            }
        }
        for (int r = 0; r < TILE; r++)
            if (there[r])
                for (int g = 0; g < 4; g++)
                    product_store(&a,
                                  y + (size_t)b[r] * a.y.batch +
                                      (size_t)(step[r] - a.first) * a.y.time,
                                  (block * 4 + g) * V,
                                  z[r][g]);
    }
}
#else
/*
 * The same for work-items in lockstep: a group of SIDE x SIDE items makes a tile
 * of 4 SIDE rows by 4 SIDE columns, DEPTH elements of the sums at a time by way
 * of local memory.
 */
#define DEPTH 16

/* The size is said, so that the compiler leaves registers for so many. */
__attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
kernel void product(const struct ocl_product_arguments a,
                    global const float *x, global const int *ids,
                    global const WEIGHT *matrix, global const float *bias,
                    global float *y, global const int *lengths)
{
    local float left[DEPTH][4 * SIDE + 1], right[DEPTH][4 * SIDE];
    local ulong row_at[4 * SIDE]; /* + 1; 0: there is no such row */
    const int column = get_local_id(0), row = get_local_id(1);
    const int item = row * SIDE + column;
    const int direction = get_group_id(2);
    const int first_row = get_group_id(1) * 4 * SIDE;
    const int first_column = get_group_id(0) * 4 * SIDE;
    const int width = a.blocks * 4;
    float z[4][4];

    matrix += direction * a.matrix_direction;
    bias += (size_t)direction * width;
    y += a.y.at + direction * a.y_direction;
    for (int r = item; r < 4 * SIDE; r += SIDE * SIDE) {
        int b, step, t;

        row_at[r] = product_row(&a, lengths, direction, first_row + r, &b,
                                &step, &t)
                        ? (ulong)(product_input(&a, x, ids, b, t) - x) + 1
                        : 0;
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            z[i][j] = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k0 = 0; k0 < a.depth; k0 += DEPTH) {
        for (int e = item; e < DEPTH * 4 * SIDE; e += SIDE * SIDE) {
            const int k = e % DEPTH, r = e / DEPTH;

            left[k][r] = k0 + k < a.depth && row_at[r] > 0
                             ? x[row_at[r] - 1 + k0 + k]
                             : 0.0f;
        }
        for (int e = item; e < DEPTH * 4 * SIDE; e += SIDE * SIDE) {
            const int n = e % (4 * SIDE), k = e / (4 * SIDE);

            right[k][n] = k0 + k < a.depth && first_column + n < width
                              ? WEIGHT_AT(matrix + (size_t)(k0 + k) * width +
                                          first_column + n)
                              : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < DEPTH; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    z[i][j] += left[k][row + i * SIDE] *
                               right[k][column + j * SIDE];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < 4; i++) {
        const int m = first_row + row + i * SIDE;
        int b, step, t;

        if (!product_row(&a, lengths, direction, m, &b, &step, &t))
            continue;
        for (int j = 0; j < 4; j++) {
            const int n = first_column + column + j * SIDE;

            if (n < a.columns)
                y[(size_t)b * a.y.batch + (size_t)(step - a.first) * a.y.time +
                  n] = z[i][j] + bias[n];
        }
    }
}
#endif

/*
 * Rows of x as a product of a library takes them, with a 1 after each, which
 * meets the bias: item (feature, step, sample) of one direction, reverse[0].
 */
kernel void rows_gather(const struct ocl_product_arguments a,
                        global const float *x, global const int *ids,
                        global float *y, global const int *lengths)
{
    const int k = get_global_id(0), b = get_global_id(2);
    const int step = a.first + (int)get_global_id(1);
    const int length = lengths ? lengths[b] : a.end;
    const int t = a.reverse[0] ? length - 1 - step : step;
    float value = 0.0f;

    if (k > a.depth)
        return;
    if (k < a.depth && step < length)
        value = product_input(&a, x, ids, b, t)[k];
    y[(size_t)b * a.y.batch + (size_t)(step - a.first) * a.y.time + k] =
        k == a.depth ? 1.0f : value;
}

/* y = activation(x), or x gathered by ids: item (feature, step, sample). */
kernel void rows_activate(const struct ocl_rows_arguments a,
                          global const float *x, global const int *ids,
                          global float *y)
{
    const int k = get_global_id(0), t = get_global_id(1), b = get_global_id(2);
    const size_t at =
        (size_t)a.x.at + (size_t)b * a.x.batch + (size_t)t * a.x.time;
    global const float *from = ids ? x + (size_t)ids[at] * a.width : x + at;
    float values[V];
    real value;

    for (int u = 0; u < V; u++)
        values[u] = k * V + u < a.width ? from[k * V + u] : 0.0f;
    value = cell_activate(a.activation.kind, a.activation.alpha,
                          a.activation.beta, REAL_LOAD(values));
    REAL_STORE(value, values);
    for (int u = 0; u < V && k * V + u < a.width; u++)
        y[(size_t)a.y.at + (size_t)b * a.y.batch + (size_t)t * a.y.time +
          k * V + u] = values[u];
}

/* The group's largest or sum, `partial` holding one value an item. */
static float group_reduce(local float *partial, int largest)
{
    const int items = get_local_size(0);
    float result;

    barrier(CLK_LOCAL_MEM_FENCE);
    result = partial[0];
    for (int i = 1; i < items; i++)
        result = largest ? fmax(result, partial[i]) : result + partial[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    return result;
}

/* Softmax in place: group (., step, sample). */
kernel void rows_softmax(const struct ocl_rows_arguments a, global float *y,
                         local float *partial)
{
    const int item = get_local_id(0), items = get_local_size(0);
    float most = -INFINITY, sum = 0.0f;

    y += (size_t)a.y.at + (size_t)get_group_id(2) * a.y.batch +
         (size_t)get_group_id(1) * a.y.time;
    for (int k = item; k < a.width; k += items)
        most = fmax(most, y[k]);
    partial[item] = most;
    most = group_reduce(partial, 1);
    for (int k = item; k < a.width; k += items) {
        const float value = exp(y[k] - most);

        y[k] = value;
        sum += value;
    }
    partial[item] = sum;
    sum = group_reduce(partial, 0);
    for (int k = item; k < a.width; k += items)
        y[k] /= sum;
}
