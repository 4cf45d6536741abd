/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels_row.h: the kernels that go over one row of features: activations,
 * softmax and copies, over the vector of the vec_ header that was included
 * before. See kernels.h.
 */
#ifndef CELLGATE_OPENMP_KERNELS_ROW_H
#define CELLGATE_OPENMP_KERNELS_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "plugins/openmp/cell.h"

/* Stores up to one vector, of which `count` lanes (1 or more) exist. */
INLINE void store_within(float *to, vf a, int64_t count)
{
    if (count >= VF_WIDTH)
        vf_store(to, a);
    else
        vf_store_some(to, a, count);
}

INLINE vf load_within(const float *from, int64_t count)
{
    float lanes[VF_WIDTH] = { 0 };
    int64_t i;

    if (count >= VF_WIDTH)
        return vf_load(from);
    for (i = 0; i < count; i++)
        lanes[i] = from[i];
    return vf_load(lanes);
}

static void activate(const cellgate_activation *activation, const float *x,
                     float *y, int64_t count)
{
    int64_t i;
    int j, n;

    for (i = 0; i < count; i += n * (int64_t)VF_WIDTH) {
        vf some[VF_TILE];

        for (n = 0; n < VF_TILE && i + n * VF_WIDTH < count; n++)
            some[n] =
                load_within(x + i + n * VF_WIDTH, count - i - n * VF_WIDTH);
        activate_vectors(activation, n, some);
        for (j = 0; j < n; j++)
            store_within(y + i + j * VF_WIDTH, some[j],
                         count - i - j * VF_WIDTH);
    }
}

/* Vectors side by side where each would wait for the one before it. */
#define CHAINS 4

static float row_largest(const float *row, int64_t count)
{
    const int64_t stride = CHAINS * VF_WIDTH;
    vf most[CHAINS];
    float largest;
    int64_t i;
    int j;

    UNROLL
    for (j = 0; j < CHAINS; j++)
        most[j] = vf_set(row[0]);
    for (i = 0; i + stride <= count; i += stride)
        UNROLL
    for (j = 0; j < CHAINS; j++)
        most[j] = vf_max(vf_load(row + i + j * VF_WIDTH), most[j]);
    largest =
        vf_largest(vf_max(vf_max(most[0], most[1]), vf_max(most[2], most[3])));
    for (; i < count; i++)
        largest = row[i] > largest ? row[i] : largest;
    return largest;
}

/*
 * row[i] = exp(row[i] - largest) for whole vectors; returns their sum. In
 * blocks, since of a vocabulary of 10,000 a float would lose most of the many
 * small terms beside one that is nearly all.
 */
static double whole_exponentials(float *row, int64_t count, vf largest)
{
    const int64_t block = 16 * VF_WIDTH;
    double total = 0;
    int64_t begin, i;

    for (begin = 0; begin < count; begin += block) {
        const int64_t end = begin + block < count ? begin + block : count;
        vf sum = vf_set(0);

        for (i = begin; i < end; i += VF_WIDTH) {
            vf e = vf_exp(vf_sub(vf_load(row + i), largest));

            vf_store(row + i, e);
            sum = vf_add(sum, e);
        }
        total += (double)vf_total(sum);
    }
    return total;
}

static float exponentials(float *row, int64_t count, const float *lanes)
{
    const vf largest =
        vf_set(lanes ? vf_largest(vf_load(lanes)) : row_largest(row, count));
    const int64_t whole = count - count % VF_WIDTH;
    double total = whole_exponentials(row, whole, largest);
    float rest[VF_WIDTH];
    int64_t i;

    if (whole < count) {
        vf_store(rest, vf_exp(vf_sub(load_within(row + whole, count - whole),
                                     largest)));
        for (i = whole; i < count; i++) {
            row[i] = rest[i - whole];
            total += (double)row[i];
        }
    }
    return (float)(1 / total);
}

static void scale(float *to, const float *from, float factor, int64_t count,
                  bool past_caches)
{
    const uintptr_t bytes = VF_WIDTH * sizeof(float);
    const vf factors = vf_set(factor);
    int64_t i = 0;

    if (past_caches) {
        for (; i < count && (uintptr_t)(to + i) % bytes != 0; i++)
            to[i] = from[i] * factor;
        for (; i + VF_WIDTH <= count; i += VF_WIDTH)
            vf_stream(to + i, vf_mul(vf_load(from + i), factors));
        vf_stream_end();
    }
    for (; i + VF_WIDTH <= count; i += VF_WIDTH)
        vf_store(to + i, vf_mul(vf_load(from + i), factors));
    for (; i < count; i++)
        to[i] = from[i] * factor;
}

#endif /* CELLGATE_OPENMP_KERNELS_ROW_H */
