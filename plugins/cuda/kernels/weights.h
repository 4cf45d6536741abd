/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.h: reading packed weights, and what the sequence kernels have in
 * common: where a row's step is, and where its results go.
 */
#ifndef CELLGATE_CUDA_WEIGHTS_H
#define CELLGATE_CUDA_WEIGHTS_H

#include "plugins/cuda/kernels/device.h"
#include "plugins/cuda/kernels/shapes.h"

CUK_DEVICE float4 four(float x, float y, float z, float w)
{
    float4 made;

    made.x = x;
    made.y = y;
    made.z = z;
    made.w = w;
    return made;
}

CUK_DEVICE void add_to(float4 &to, const float4 &x)
{
    to.x += x.x;
    to.y += x.y;
    to.z += x.z;
    to.w += x.w;
}

CUK_DEVICE float4 shuffle_xor(const float4 &x, int lane)
{
    return four(__shfl_xor_sync(CUK_FULL_MASK, x.x, lane),
                __shfl_xor_sync(CUK_FULL_MASK, x.y, lane),
                __shfl_xor_sync(CUK_FULL_MASK, x.z, lane),
                __shfl_xor_sync(CUK_FULL_MASK, x.w, lane));
}

/* to += factor * x */
CUK_DEVICE void add_scaled(float4 &to, float factor, const float4 &x)
{
    to.x += factor * x.x;
    to.y += factor * x.y;
    to.z += factor * x.z;
    to.w += factor * x.w;
}

template <int TYPE> CUK_DEVICE float weight(const void *from, size_t at)
{
    if (TYPE == CUK_F32)
        return __ldg((const float *)from + at);
    const uint32_t bits = __ldg((const unsigned short *)from + at);
    return TYPE == CUK_F16 ? cuk_float_of_half(bits)
                           : cuk_float_of_bits(bits << 16);
}

/* A unit's gates i, f, c, o at some place of the depth, as they are stored. */
template <int TYPE> struct stored_as {
    typedef uint2 four;
};
template <> struct stored_as<CUK_F32> {
    typedef float4 four;
};
template <int TYPE> using stored = typename stored_as<TYPE>::four;

/* Number `at` of them. */
template <int TYPE>
CUK_DEVICE stored<TYPE> stored_gates(const void *from, size_t at)
{
    return __ldg((const stored<TYPE> *)from + at);
}

template <int TYPE> CUK_DEVICE stored<TYPE> no_gates()
{
    if constexpr (TYPE == CUK_F32) {
        return four(0, 0, 0, 0);
    } else {
        uint2 none;

        none.x = none.y = 0;
        return none;
    }
}

template <int TYPE> CUK_DEVICE float4 decode(const stored<TYPE> &bits)
{
    if constexpr (TYPE == CUK_F32)
        return bits;
    else if constexpr (TYPE == CUK_F16)
        return four(cuk_float_of_half(bits.x & 0xffffu),
                    cuk_float_of_half(bits.x >> 16),
                    cuk_float_of_half(bits.y & 0xffffu),
                    cuk_float_of_half(bits.y >> 16));
    else
        return four(cuk_float_of_bits(bits.x << 16),
                    cuk_float_of_bits(bits.x & 0xffff0000u),
                    cuk_float_of_bits(bits.y << 16),
                    cuk_float_of_bits(bits.y & 0xffff0000u));
}

/* The same, but to the compiler of unknown value: so that numbers in 16 bits
   are not decoded once for all steps, into twice the registers. */
CUK_DEVICE float4 kept(const float4 &gates)
{
    return gates;
}

CUK_DEVICE uint2 kept(uint2 bits)
{
    CUK_KEEP(bits.x, bits.y);
    return bits;
}

template <int TYPE> CUK_DEVICE float4 gates(const void *from, size_t at)
{
    return decode<TYPE>(stored_gates<TYPE>(from, at));
}

/* Number by number: a choice between two places would keep them in memory. */
CUK_DEVICE float4 either(bool which, const float4 &x, const float4 &y)
{
    return four(which ? x.x : y.x, which ? x.y : y.y, which ? x.z : y.z,
                which ? x.w : y.w);
}

/*
 * Adds up over the slices of a warp, `apart` lanes apart, 2 PART of them: rows
 * spread over the lanes as long as there are several, each half of the lanes
 * keeping half of them. Slice s then has row s / (2 PART / ROWS), in z[0].
 */
template <int PART, int ROWS, int EACH>
CUK_DEVICE void add_slices(int slice, int apart, float4 z[][EACH])
{
    if constexpr (PART > 0) {
        if constexpr (ROWS > 1) {
            const bool upper = slice & PART;

            CUK_UNROLL
            for (int r = 0; r < ROWS / 2; r++)
                CUK_UNROLL
            for (int n = 0; n < EACH; n++) {
                const float4 low = z[r][n], high = z[r + ROWS / 2][n];

                z[r][n] = either(upper, high, low);
                add_to(z[r][n],
                       shuffle_xor(either(upper, low, high), PART * apart));
            }
        } else {
            CUK_UNROLL
            for (int n = 0; n < EACH; n++)
                add_to(z[0][n], shuffle_xor(z[0][n], PART * apart));
        }
        add_slices<PART / 2, (ROWS > 1 ? ROWS / 2 : 1), EACH>(slice, apart, z);
    }
}

/* Where the gates of row k and a unit are in a packed recurrent kernel, in
   groups of four. */
CUK_DEVICE size_t packed_at(int depth, int unit, int k)
{
    return ((size_t)(unit / CUK_UNITS) * CUK_DEPTH(depth) + k) * CUK_UNITS +
           unit % CUK_UNITS;
}

/* From one direction's packed recurrent kernel to the next, in groups. */
CUK_DEVICE size_t packed_direction(const cuk_lstm &a, int direction)
{
    return (size_t)(direction * a.recurrent_direction / 4);
}

/* The time of a row's step. */
CUK_DEVICE int time_of(const cuk_lstm &a, int direction, int length, int step)
{
    return a.reverse[direction] ? length - 1 - step : step;
}

/* A unit's input products at a row's step. */
CUK_DEVICE float4 products_of(const cuk_lstm &a, int direction, int sample,
                              int length, int step, int unit)
{
    const int time = a.products_in_time ? time_of(a, direction, length, step)
                                        : step - a.first;

    return __ldg((const float4 *)(a.products +
                                  direction * a.products_direction +
                                  sample * a.products_at.batch +
                                  time * a.products_at.time) +
                 unit);
}

/* Where half `half` of h has row (direction, sample). */
CUK_DEVICE float *h_row(const cuk_lstm &a, int half, int direction, int sample)
{
    return a.h +
           (((size_t)half * a.directions + direction) * a.batch + sample) *
               a.output;
}

CUK_DEVICE float *c_row(const cuk_lstm &a, int direction, int sample)
{
    return a.c + ((size_t)direction * a.batch + sample) * a.hidden;
}

/* Whether state is there before the step; else it is zeros. */
CUK_DEVICE bool has_h(const cuk_lstm &a, int step)
{
    return step > 0 || (a.initial & 1);
}

CUK_DEVICE bool has_c(const cuk_lstm &a, int step)
{
    return step > 0 || (a.initial & 2);
}

/*
 * What a row's step says outside: its output number k to y, and to `last` if it
 * is the row's last one. Where the row has no such step, zeros.
 */
CUK_DEVICE void give(const cuk_lstm &a, int direction, int sample, int length,
                     int step, int k, float value)
{
    const bool does = step < length;
    const int time = does ? time_of(a, direction, length, step) : step;
    const int feature = direction * a.output + k;

    if (a.y)
        a.y[sample * a.y_at.batch + time * a.y_at.time + feature] =
            does ? value : 0.0f;
    if (a.last && (step == length - 1 || (length == 0 && step == 0)))
        a.last[sample * a.last_stride + feature] = does ? value : 0.0f;
}

#endif /* CELLGATE_CUDA_WEIGHTS_H */
