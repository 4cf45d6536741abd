/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "plugins/openmp/narrow.h"

#define F16_LARGEST 65504.0f

static const struct {
    size_t size;
    int32_t numeric;
    const char *suffix;
} packs[CPU_PACKS] = {
    [CPU_PACK_F32] = { 4, CELLGATE_NUMERIC_F32, "" },
    [CPU_PACK_F16] = { 2, CELLGATE_NUMERIC_F16, "-f16" },
    [CPU_PACK_INT8] = { 1, CELLGATE_NUMERIC_INT8, "-int8" },
};

size_t cpu_weight_size(enum cpu_pack pack)
{
    return packs[pack].size;
}

int32_t cpu_pack_numeric(enum cpu_pack pack)
{
    return packs[pack].numeric;
}

const char *cpu_pack_suffix(enum cpu_pack pack)
{
    return packs[pack].suffix;
}

/*
 * A float has 13 bits of mantissa more and an exponent that is 112 greater. A
 * number below 2^-14 becomes a count of 2^-24, which is the last place of
 * numbers just above 1/2: adding that rounds it.
 */
uint16_t cpu_to_f16(float x)
{
    const float magnitude = fabsf(x), half = 0.5f;
    const uint32_t sign = signbit(x) ? 0x8000u : 0;
    uint32_t bits, half_bits;
    float shifted;

    memcpy(&bits, &magnitude, sizeof bits);
    if (isnan(x))
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= F16_LARGEST + 16) /* half way to the next */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x1p-14f)
        return (uint16_t)(sign | ((bits - (112u << 23) + 0xfffu +
                                   ((bits >> 13) & 1)) >>
                                  13));
    shifted = magnitude + half;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&half_bits, &half, sizeof half_bits);
    return (uint16_t)(sign | (bits - half_bits));
}

void cpu_narrow(enum cpu_pack pack, const float *weights, int64_t count,
                const float *per, void *to)
{
    uint16_t *halves = to;
    int8_t *bytes = to;
    int64_t i;

    switch (pack) {
    case CPU_PACK_F16:
        for (i = 0; i < count; i++)
            halves[i] = cpu_to_f16(weights[i]);
        break;
    case CPU_PACK_INT8:
        for (i = 0; i < count; i++)
            bytes[i] = (int8_t)lrintf(weights[i] * per[i]);
        break;
    default:
        memcpy(to, weights, (size_t)count * sizeof *weights);
        break;
    }
}

cellgate_status cpu_narrow_check(enum cpu_pack pack, uint32_t op,
                                 const float *weights, int64_t count,
                                 cellgate_error *error)
{
    int64_t i;

    if (pack == CPU_PACK_F32)
        return CELLGATE_OK;
    for (i = 0; i < count; i++) {
        if (pack == CPU_PACK_INT8 && !isfinite(weights[i]))
            return cellgate_refuse(error, CELLGATE_REASON_DTYPE,
                                   "op %u has a weight that is %g, which int8 "
                                   "does not have",
                                   (unsigned)op, (double)weights[i]);
        if (pack == CPU_PACK_F16 && isfinite(weights[i]) &&
            fabsf(weights[i]) > F16_LARGEST)
            return cellgate_refuse(error, CELLGATE_REASON_DTYPE,
                                   "op %u has a weight of %g; float16 ends at "
                                   "65504",
                                   (unsigned)op, (double)weights[i]);
    }
    return CELLGATE_OK;
}
