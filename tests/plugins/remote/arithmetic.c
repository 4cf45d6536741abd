/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "tests/plugins/remote/arithmetic.h"
#include "tests/plugins/remote/bf16.h"

float remote_activate(const cellgate_activation *activation, float x)
{
    switch (activation->kind) {
    case CELLGATE_TANH:
        return tanhf(x);
    case CELLGATE_SIGMOID:
        return 1.0f / (1.0f + expf(-x));
    case CELLGATE_RELU:
        return x < 0.0f ? 0.0f : x;
    case CELLGATE_HARD_SIGMOID:
        x = activation->alpha * x + activation->beta;
        return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;
    default:
        return x;
    }
}

float remote_limit(float x, float clip)
{
    if (clip == 0.0f)
        return x;
    return x < -clip ? -clip : x > clip ? clip : x;
}

static void multiply_f32(const float *x, int64_t rows, const float *weights,
                         int64_t columns, float *sums)
{
    int64_t row, column;

    for (row = 0; row < rows; row++, weights += columns)
        for (column = 0; column < columns; column++)
            sums[column] += x[row] * weights[column];
}

static void multiply_bf16(const float *x, int64_t rows, const uint16_t *weights,
                          int64_t columns, float *sums)
{
    int64_t row, column;

    for (row = 0; row < rows; row++, weights += columns) {
        float factor = remote_from_bf16(remote_to_bf16(x[row]));
        for (column = 0; column < columns; column++)
            sums[column] += factor * remote_from_bf16(weights[column]);
    }
}

void remote_multiply(enum remote_pack pack, const float *x, int64_t rows,
                     const void *weights, int64_t columns, float *sums)
{
    if (pack == REMOTE_PACK_BF16)
        multiply_bf16(x, rows, weights, columns, sums);
    else
        multiply_f32(x, rows, weights, columns, sums);
}

void remote_start_sums(const float *bias, int64_t count, float *sums)
{
    if (bias != NULL)
        memcpy(sums, bias, (size_t)count * sizeof *sums);
    else
        memset(sums, 0, (size_t)count * sizeof *sums);
}

/* `count` floats at element `at` of a view, or NULL. */
float *remote_floats(const struct remote_view *view, int64_t at, int64_t count)
{
    return remote_at(view, (size_t)at * sizeof(float),
                     (size_t)count * sizeof(float));
}

const void *remote_matrix(const struct remote_view *view, enum remote_pack pack,
                          int64_t count)
{
    return remote_at(view, 0,
                     (size_t)count * (pack == REMOTE_PACK_BF16
                                          ? sizeof(uint16_t)
                                          : sizeof(float)));
}
