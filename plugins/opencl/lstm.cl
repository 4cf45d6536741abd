/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lstm.cl: one LSTM layer. Build options:
 *
 *   ROWS    samples that a work-group takes through its steps together
 *   SLICES  work-items that share a unit's sums in the step kernel
 *   FUSED   1: the whole-sequence kernel forms the input products itself
 *   PROJECT 1: the layer has a projection
 *   USUAL   1: the activations are sigmoid, tanh, tanh
 *   HALF    1: matrices are kept in half precision
 *
 * Matrices are packed in blocks of V units with their four gates side by side:
 * element (k, unit u, gate g) is at
 *     (u / V) * BLOCK_STRIDE(depth) + k * ROW_STRIDE(blocks) + g * V + u % V
 * where either the rows of a block follow each other (V > 1: a CPU streams
 * through a block) or the blocks of a row (V == 1: work-items that run in
 * lockstep read neighbours). Samples come sorted by length, the longest first,
 * by way of `order`.
 */
#if V == 1
#define BLOCK_STRIDE(depth, width) ((size_t)(width))
#define ROW_STRIDE(blocks, width) ((size_t)(blocks) * (width))
#else
#define BLOCK_STRIDE(depth, width) ((size_t)(depth) * (width))
#define ROW_STRIDE(blocks, width) ((size_t)(width))
#endif


static void options_of(const struct ocl_lstm_arguments *a, int direction,
                       struct cell_options *options)
{
    options->coupled = a->coupled;
    options->clip = a->clip > 0.0f ? a->clip : INFINITY;
    for (int i = 0; i < 3; i++)
        options->activations[i] = a->activations[direction][i];
}

static void peepholes_of(const struct ocl_lstm_arguments *a,
                         global const float *peephole, int direction,
                         int block, real *of)
{
    const int padded = a->blocks * V;

    for (int i = 0; i < 3; i++)
        of[i] = a->peepholes ? REAL_LOAD(peephole + (direction * 3 + i) *
                                         padded + block * V)
                             : REAL(0.0f);
}

/* z += v * matrix, for ROWS rows of v, `stride` apart, in local memory. */
static void multiply_local(real z[ROWS][4], local const float *v, int stride,
                           int depth, global const WEIGHT *matrix,
                           size_t row_stride)
{
    for (int k = 0; k < depth; k++, matrix += row_stride) {
        const real i = WEIGHT_LOAD(matrix), f = WEIGHT_LOAD(matrix + V);
        const real g = WEIGHT_LOAD(matrix + 2 * V);
        const real o = WEIGHT_LOAD(matrix + 3 * V);

#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float x = v[r * stride + k];

            z[r][0] += x * i;
            z[r][1] += x * f;
            z[r][2] += x * g;
            z[r][3] += x * o;
        }
    }
}

/* Where row r of a group begins in the input at the row's step `step`. */
static global const float *input_row(const struct ocl_lstm_arguments *a,
                                     global const float *x,
                                     global const int *ids, int b, int t)
{
    const size_t at = (size_t)a->x.at + (size_t)b * a->x.batch +
                      (size_t)t * a->x.time;

    return ids ? x + (size_t)ids[at] * a->input : x + at;
}

/*
 * The whole sequence in one work-group: h and c stay in local memory, with
 * local barriers between the steps only. Group (i, d) has the samples
 * order[i * ROWS ...] in direction d. `memory` holds h twice, [2][ROWS][R],
 * c [ROWS][blocks V], with a projection the hidden values [ROWS][blocks V],
 * and when fused the input [ROWS][input]; R is a multiple of V.
 */
kernel void lstm_whole(const struct ocl_lstm_arguments a,
                       global const float *x, global const int *ids,
                       global const WEIGHT *kernel_matrix,
                       global const WEIGHT *recurrent,
                       global const WEIGHT *projection,
                       global const float *bias, global const float *peephole,
                       global const float *products, global float *h_state,
                       global float *c_state, global float *y,
                       global float *last, global const int *lengths,
                       global const int *order, local float *memory)
{
    const int item = get_local_id(0), items = get_local_size(0);
    const int first_row = get_group_id(0) * ROWS;
    const int direction = get_group_id(1);
    const int padded = a.blocks * V;
#if PROJECT
    const int padded_output = a.output_blocks * V;
#else
    const int padded_output = padded;
#endif
    const size_t row_stride = ROW_STRIDE(a.blocks, 4 * V);
    struct cell_options options;
    local float *h = memory, *h_next = h + ROWS * padded_output;
    local float *c = h_next + ROWS * padded_output;
    local float *after_c = c + ROWS * padded;
#if PROJECT
    local float *hidden = after_c;
    local float *input = hidden + ROWS * padded;
#else
    local float *input = after_c;
#endif
    int sample[ROWS], length[ROWS];
    int end = 0;

    options_of(&a, direction, &options);
    for (int r = 0; r < ROWS; r++) {
        const int there = first_row + r < a.batch;

        sample[r] = there ? order[first_row + r] : 0;
        length[r] = there ? lengths[sample[r]] : 0;
        if (end < length[r])
            end = length[r];
    }
    if (end > a.end)
        end = a.end;
    for (int r = 0; r < ROWS; r++) {
        const size_t row = (size_t)direction * a.batch + sample[r];
        const int given = first_row + r < a.batch ? a.initial : 0;

        for (int k = item; k < padded_output; k += items)
            h[r * padded_output + k] =
                (given & 1) && k < a.output ? h_state[row * a.output + k] : 0;
        for (int k = item; k < padded; k += items)
            c[r * padded + k] =
                (given & 2) && k < a.hidden ? c_state[row * a.hidden + k] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int step = a.first; step < end; step++) {
#if FUSED
        for (int r = 0; r < ROWS; r++) {
            const int t = a.reverse[direction] ? length[r] - 1 - step : step;
            global const float *from =
                step < length[r] ? input_row(&a, x, ids, sample[r], t) : x;

            for (int k = item; k < a.input; k += items)
                input[r * a.input + k] = step < length[r] ? from[k] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        for (int block = item; block < a.blocks; block += items) {
            real z[ROWS][4], p[3];

            peepholes_of(&a, peephole, direction, block, p);
#if FUSED
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                for (int g = 0; g < 4; g++)
                    z[r][g] = REAL_LOAD(bias + ((size_t)direction * a.blocks +
                                                block) * 4 * V + g * V);
            multiply_local(z, input, a.input, a.input,
                           kernel_matrix +
                               (size_t)direction * a.input * padded * 4 +
                               block * BLOCK_STRIDE(a.input, 4 * V),
                           row_stride);
#else
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const size_t row =
                    (size_t)(step - a.first) * a.batch + sample[r];
                global const float *from =
                    products + (size_t)direction * a.products +
                    row * padded * 4 + block * 4 * V;

                for (int g = 0; g < 4; g++)
                    z[r][g] = step < length[r] ? REAL_LOAD(from + g * V)
                                               : REAL(0.0f);
            }
#endif
            multiply_local(z, h, padded_output, a.output,
                           recurrent +
                               (size_t)direction * a.output * padded * 4 +
                               block * BLOCK_STRIDE(a.output, 4 * V),
                           row_stride);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                local float *at = c + r * padded + block * V;
                real cell = REAL_LOAD(at), output;

                output = cell_step(&options, z[r], p, &cell);
                if (step < length[r])
                    REAL_STORE(cell, at);
#if PROJECT
                REAL_STORE(output, hidden + r * padded + block * V);
#else
                if (step >= length[r])
                    output = REAL_LOAD(h + r * padded + block * V);
                REAL_STORE(output, h_next + r * padded + block * V);
#endif
            }
        }
#if PROJECT
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int block = item; block < a.output_blocks; block += items) {
            global const WEIGHT *from =
                projection + (size_t)direction * a.hidden * padded_output +
                block * BLOCK_STRIDE(a.hidden, V);

            for (int r = 0; r < ROWS; r++) {
                real sum = REAL(0.0f);

                for (int k = 0; k < a.hidden; k++)
                    sum += hidden[r * padded + k] *
                           WEIGHT_LOAD(from + k * ROW_STRIDE(a.output_blocks, V));
                if (step >= length[r])
                    sum = REAL_LOAD(h + r * padded_output + block * V);
                REAL_STORE(sum, h_next + r * padded_output + block * V);
            }
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        {
            local float *swap = h;

            h = h_next;
            h_next = swap;
        }
        if (y)
            for (int r = 0; r < ROWS; r++) {
                const int t =
                    a.reverse[direction] ? length[r] - 1 - step : step;

                if (step >= length[r])
                    continue;
                for (int k = item; k < a.output; k += items)
                    y[(size_t)a.y.at + (size_t)sample[r] * a.y.batch + (size_t)t * a.y.time +
                      direction * a.output + k] = h[r * padded_output + k];
            }
    }

    for (int r = 0; r < ROWS && first_row + r < a.batch; r++) {
        const size_t row = (size_t)direction * a.batch + sample[r];

        for (int k = item; k < a.output; k += items) {
            h_state[row * a.output + k] = h[r * padded_output + k];
            if (last)
                last[(size_t)a.last_at + (size_t)sample[r] * a.last + direction * a.output + k] =
                    length[r] > 0 ? h[r * padded_output + k] : 0.0f;
        }
        for (int k = item; k < a.hidden; k += items)
            c_state[row * a.hidden + k] = c[r * padded + k];
    }
}

#if !FUSED
/* z += v * matrix, for ROWS rows of v in global memory, this slice of them. */
static void multiply_rows(real z[ROWS][4], global const float *const *v,
                          int depth, global const WEIGHT *matrix,
                          size_t row_stride)
{
    const int slice = SLICES > 1 ? get_local_id(1) : 0;

    matrix += slice * row_stride;
    for (int k = slice; k < depth; k += SLICES) {
        const real i = WEIGHT_LOAD(matrix), f = WEIGHT_LOAD(matrix + V);
        const real g = WEIGHT_LOAD(matrix + 2 * V);
        const real o = WEIGHT_LOAD(matrix + 3 * V);

#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float x = v[r][k];

            z[r][0] += x * i;
            z[r][1] += x * f;
            z[r][2] += x * g;
            z[r][3] += x * o;
        }
        matrix += SLICES * row_stride;
    }
}

/*
 * One step, recurrent product and cell in one: item (block, slice, group of
 * samples and direction). h has two halves, [2][directions][batch][output]: one
 * is read, the other written, in turns. With a projection the hidden values go
 * to `hidden`, [directions][batch][hidden], and lstm_project follows.
 */
kernel void lstm_step(const struct ocl_lstm_arguments a,
                      global const WEIGHT *recurrent,
                      global const float *peephole,
                      global const float *products, global float *h,
                      global float *c, global float *hidden, global float *y,
                      global const int *lengths, global const int *order,
                      local float *sums)
{
    const int block = get_global_id(0);
    const int groups = (a.batch + ROWS - 1) / ROWS;
    const int first_row = (int)(get_group_id(2) % groups) * ROWS;
    const int direction = get_group_id(2) / groups;
    const int padded = a.blocks * V, step = a.first;
    const size_t half_size = (size_t)a.directions * a.batch * a.output;
    global const float *h_from = h + a.parity * half_size;
    global float *h_to = h + (1 - a.parity) * half_size;
    const int active = block < a.blocks;
    global const float *rows[ROWS];
    int sample[ROWS], length[ROWS];
    real z[ROWS][4];

    for (int r = 0; r < ROWS; r++) {
        const int there = first_row + r < a.batch;

        sample[r] = there ? order[first_row + r] : 0;
        length[r] = there ? lengths[sample[r]] : 0;
        rows[r] = h_from +
                  ((size_t)direction * a.batch + sample[r]) * a.output;
        for (int g = 0; g < 4; g++)
            z[r][g] = REAL(0.0f);
    }
    if (active)
        multiply_rows(z, rows, a.output,
                      recurrent + (size_t)direction * a.output * padded * 4 +
                          block * BLOCK_STRIDE(a.output, 4 * V),
                      ROW_STRIDE(a.blocks, 4 * V));
#if SLICES > 1
    {
        const int unit = get_local_id(0), units = get_local_size(0);
        const int slice = get_local_id(1);

        for (int r = 0; r < ROWS; r++)
            for (int g = 0; g < 4; g++)
                REAL_STORE(z[r][g],
                           sums + (((r * 4 + g) * SLICES + slice) * units +
                                   unit) * V);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice > 0)
            return;
        for (int r = 0; r < ROWS; r++)
            for (int g = 0; g < 4; g++)
                for (int s = 1; s < SLICES; s++)
                    z[r][g] += REAL_LOAD(
                        sums + (((r * 4 + g) * SLICES + s) * units + unit) * V);
    }
#endif
    if (!active)
        return;
    {
        struct cell_options options;
        real p[3];

        options_of(&a, direction, &options);
        peepholes_of(&a, peephole, direction, block, p);
        for (int r = 0; r < ROWS && first_row + r < a.batch; r++) {
            const size_t row = (size_t)direction * a.batch + sample[r];
            const int t = a.reverse[direction] ? length[r] - 1 - step : step;
            const int units = min(V, a.hidden - block * V);
            float values[V], cells[V];
            real cell, output;

            if (step >= length[r]) {
#if !PROJECT
                for (int u = 0; u < units; u++)
                    h_to[row * a.output + block * V + u] =
                        h_from[row * a.output + block * V + u];
#endif
                continue;
            }
            for (int u = 0; u < V; u++)
                cells[u] =
                    u < units ? c[row * a.hidden + block * V + u] : 0.0f;
            cell = REAL_LOAD(cells);
            for (int g = 0; g < 4; g++)
                z[r][g] += REAL_LOAD(products + direction * a.products +
                                     a.products_at + (size_t)sample[r] * padded * 4 +
                                     block * 4 * V + g * V);
            output = cell_step(&options, z[r], p, &cell);
            REAL_STORE(cell, cells);
            REAL_STORE(output, values);
            for (int u = 0; u < units; u++) {
                c[row * a.hidden + block * V + u] = cells[u];
#if PROJECT
                hidden[row * a.hidden + block * V + u] = values[u];
#else
                h_to[row * a.output + block * V + u] = values[u];
                if (y)
                    y[(size_t)a.y.at + (size_t)sample[r] * a.y.batch + (size_t)t * a.y.time +
                      direction * a.output + block * V + u] = values[u];
#endif
            }
        }
    }
}

#if PROJECT
/* h = hidden * projection: item (block of outputs, sample, direction). */
kernel void lstm_project(const struct ocl_lstm_arguments a,
                         global const WEIGHT *projection,
                         global const float *hidden, global float *h,
                         global float *y, global const int *lengths)
{
    const int block = get_global_id(0), b = get_global_id(1);
    const int direction = get_global_id(2), step = a.first;
    const size_t half_size = (size_t)a.directions * a.batch * a.output;
    const size_t row = (size_t)direction * a.batch + b;
    global const float *h_from = h + a.parity * half_size + row * a.output;
    global float *h_to = h + (1 - a.parity) * half_size + row * a.output;
    const int outputs = min(V, a.output - block * V);
    const int length = lengths[b];
    const int t = a.reverse[direction] ? length - 1 - step : step;
    global const WEIGHT *from =
        projection + (size_t)direction * a.hidden * a.output_blocks * V +
        block * BLOCK_STRIDE(a.hidden, V);
    float values[V];
    real sum = REAL(0.0f);

    if (block >= a.output_blocks)
        return;
    if (step >= length) {
        for (int u = 0; u < outputs; u++)
            h_to[block * V + u] = h_from[block * V + u];
        return;
    }
    for (int k = 0; k < a.hidden; k++)
        sum += hidden[row * a.hidden + k] *
               WEIGHT_LOAD(from + k * ROW_STRIDE(a.output_blocks, V));
    REAL_STORE(sum, values);
    for (int u = 0; u < outputs; u++) {
        h_to[block * V + u] = values[u];
        if (y)
            y[(size_t)a.y.at + (size_t)b * a.y.batch + (size_t)t * a.y.time +
              direction * a.output + block * V + u] = values[u];
    }
}
#endif

/* The last output, out of the final h: item (output, sample, direction). */
kernel void lstm_last(const struct ocl_lstm_arguments a,
                      global const float *h, global float *last,
                      global const int *lengths)
{
    const int k = get_global_id(0), b = get_global_id(1);
    const int direction = get_global_id(2);
    const size_t half_size = (size_t)a.directions * a.batch * a.output;

    if (k >= a.output)
        return;
    last[(size_t)a.last_at + (size_t)b * a.last + direction * a.output + k] =
        lengths[b] > 0 ? h[a.parity * half_size +
                           ((size_t)direction * a.batch + b) * a.output + k]
                       : 0.0f;
}
#endif
