/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/cuda/kernels/kernels.h"
#include "plugins/cuda/kernels/shapes.h"

size_t cuk_type_size(enum cuk_type type)
{
    return type == CUK_F32 ? sizeof(float) : sizeof(uint16_t);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* To the nearest, of two as near the even one; NaN stays NaN. */
static uint16_t to_bf16(float value)
{
    const uint32_t bits = bits_of(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* `value` in units of the last place, 2^-shift of it, rounded likewise. */
static uint32_t rounded(uint32_t value, unsigned shift)
{
    const uint32_t half = 1u << (shift - 1);
    const uint32_t whole = value >> shift, rest = value & (2 * half - 1);

    return whole + (rest > half || (rest == half && (whole & 1u)));
}

static uint16_t to_f16(float value)
{
    const uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
    const uint32_t sign = bits >> 16 & 0x8000u;
    const int exponent = (int)(magnitude >> 23) - 127;

    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (exponent > 15) /* beyond the largest, infinity too */
        return (uint16_t)(sign | 0x7c00u);
    if (exponent >= -14) /* what rounds up to 2^16 becomes infinity by itself */
        return (uint16_t)(sign | rounded(magnitude - (112u << 23), 13));
    if (exponent < -25)
        return (uint16_t)sign;
    return (uint16_t)(sign | rounded((magnitude & 0x7fffffu) | 0x800000u,
                                     (unsigned)(-1 - exponent)));
}

static void store(float value, enum cuk_type type, void *to, size_t at)
{
    if (type == CUK_F32)
        ((float *)to)[at] = value;
    else
        ((uint16_t *)to)[at] = type == CUK_F16 ? to_f16(value) : to_bf16(value);
}

void cuk_pack_plain(const float *from, int64_t count, enum cuk_type type,
                    void *to)
{
    for (int64_t i = 0; i < count; i++)
        store(from[i], type, to, (size_t)i);
}

void cuk_pack_gates(const float *from, int64_t depth, int64_t hidden, float *to)
{
    for (int64_t k = 0; k < depth; k++)
        for (int64_t unit = 0; unit < hidden; unit++)
            for (int64_t gate = 0; gate < 4; gate++)
                to[(k * hidden + unit) * 4 + gate] =
                    from[k * 4 * hidden + gate * hidden + unit];
}

static size_t recurrent_count(int64_t depth, int64_t hidden)
{
    return (size_t)(CUK_DIVIDE_UP(hidden, CUK_UNITS) * CUK_DEPTH(depth) *
                    CUK_UNITS * 4);
}

size_t cuk_recurrent_size(int64_t depth, int64_t hidden, enum cuk_type type)
{
    return recurrent_count(depth, hidden) * cuk_type_size(type);
}

void cuk_pack_recurrent(const float *from, int64_t depth, int64_t hidden,
                        enum cuk_type type, void *to)
{
    memset(to, 0, cuk_recurrent_size(depth, hidden, type));
    for (int64_t unit = 0; unit < hidden; unit++)
        for (int64_t k = 0; k < depth; k++)
            for (int64_t gate = 0; gate < 4; gate++)
                store(from[k * 4 * hidden + gate * hidden + unit], type, to,
                      (size_t)((unit / CUK_UNITS * CUK_DEPTH(depth) + k) *
                                   CUK_UNITS +
                               unit % CUK_UNITS) *
                              4 +
                          (size_t)gate);
}
