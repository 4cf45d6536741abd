/* SPDX-License-Identifier: Apache-2.0 */
/* vec_avx512.h: sixteen floats, with AVX-512 (F and DQ). See vec_scalar.h. */
#ifndef CELLGATE_OPENMP_VEC_AVX512_H
#define CELLGATE_OPENMP_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>

typedef __m512 vf;
typedef __mmask16 vf_mask;

#define VF_WIDTH 16
#define VF_TILE 6 /* 24 sums, 6 inputs and a weight: 31 of 32 registers */

static inline vf vf_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

static inline vf vf_load_f16(const uint16_t *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)from));
}

static inline vf vf_load_int8(const int8_t *from)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)from)));
}

static inline void vf_store(float *to, vf a)
{
    _mm512_storeu_ps(to, a);
}

static inline void vf_stream(float *to, vf a)
{
    _mm512_stream_ps(to, a);
}

static inline void vf_stream_end(void)
{
    _mm_sfence();
}

static inline void vf_store_some(float *to, vf a, int64_t count)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), a);
}

static inline vf vf_set(float a)
{
    return _mm512_set1_ps(a);
}

static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

static inline vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

static inline vf_mask vf_less(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline vf vf_choose(vf_mask which, vf yes, vf no)
{
    return _mm512_mask_blend_ps(which, no, yes);
}

/* See vec_math.h. Whole numbers of any size will do: of an infinity the
   fraction is 0. */
#define VF_SCALES

static inline vf vf_split(vf x, float scale, vf *whole)
{
    vf product = _mm512_mul_ps(x, _mm512_set1_ps(scale));
    vf f = _mm512_reduce_ps(product, 0);

    *whole = _mm512_sub_ps(product, f);
    return f;
}

static inline vf vf_split_fused(vf x, float scale, vf *whole)
{
    (void)vf_split(x, scale, whole);
    return _mm512_fmsub_ps(x, _mm512_set1_ps(scale), *whole);
}

static inline vf vf_scale(vf a, vf whole)
{
    return _mm512_scalef_ps(a, whole);
}

static inline float vf_total(vf a)
{
    return _mm512_reduce_add_ps(a);
}

static inline float vf_largest(vf a)
{
    return _mm512_reduce_max_ps(a);
}

#endif /* CELLGATE_OPENMP_VEC_AVX512_H */
