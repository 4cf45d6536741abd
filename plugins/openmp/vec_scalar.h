/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_scalar.h: the vector of the scalar level, one float. It says what the
 * names mean that kernels.h uses; every other vec_ header follows it.
 */
#ifndef CELLGATE_OPENMP_VEC_SCALAR_H
#define CELLGATE_OPENMP_VEC_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float vf;
typedef int vf_mask; /* a comparison's result, lane by lane */

#define VF_WIDTH 1
#define VF_TILE 2    /* rows a tile: 4 * VF_TILE sums stay in registers */

static inline vf vf_load(const float *from)
{
    return *from;
}

/* Widened from float16, given as bits, and from int8. */
static inline vf vf_load_f16(const uint16_t *from)
{
    const uint32_t magnitude = *from & 0x7fffu;
    uint32_t bits = magnitude << 13;
    float wide;

    if (magnitude < 0x400)
        wide = (float)magnitude * 0x1p-24f;
    else {
        bits += magnitude < 0x7c00 ? 112u << 23 : 224u << 23;
        memcpy(&wide, &bits, sizeof wide);
    }
    return *from & 0x8000u ? -wide : wide;
}

static inline vf vf_load_int8(const int8_t *from)
{
    return (float)*from;
}

static inline void vf_store(float *to, vf a)
{
    *to = a;
}

/* A whole vector, to an aligned place, past the caches where there is a way;
   what is stored after vf_stream_end() comes later for every processor. */
static inline void vf_stream(float *to, vf a)
{
    *to = a;
}

static inline void vf_stream_end(void)
{
}

/* The first `count` lanes, 0 < count < VF_WIDTH. */
static inline void vf_store_some(float *to, vf a, int64_t count)
{
    (void)count;
    *to = a;
}

static inline vf vf_set(float a)
{
    return a;
}

static inline vf vf_add(vf a, vf b)
{
    return a + b;
}

static inline vf vf_sub(vf a, vf b)
{
    return a - b;
}

static inline vf vf_mul(vf a, vf b)
{
    return a * b;
}

static inline vf vf_div(vf a, vf b)
{
    return a / b;
}

/* a * b + c; rounded once where the machine can. */
static inline vf vf_fma(vf a, vf b, vf c)
{
    return a * b + c;
}

/* The larger and the smaller; b when either is NaN. */
static inline vf vf_max(vf a, vf b)
{
    return a > b ? a : b;
}

static inline vf vf_min(vf a, vf b)
{
    return a < b ? a : b;
}

static inline vf_mask vf_less(vf a, vf b)
{
    return a < b;
}

static inline vf vf_choose(vf_mask which, vf yes, vf no)
{
    return which ? yes : no;
}

/*
 * 2^n, from the float 1.5 * 2^23 + 127 + n, in whose lowest bits the exponent
 * of 2^n stands; n from -126 to 128 (infinity).
 */
static inline vf vf_power_of_two(vf shifted)
{
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 23;
    memcpy(&shifted, &bits, sizeof bits);
    return shifted;
}

/* Sum, and largest (not defined with a NaN), over the lanes. */
static inline float vf_total(vf a)
{
    return a;
}

static inline float vf_largest(vf a)
{
    return a;
}

#endif /* CELLGATE_OPENMP_VEC_SCALAR_H */
