/* SPDX-License-Identifier: Apache-2.0 */
/* vec_avx2.h: eight floats, with AVX2 and FMA. See vec_scalar.h. */
#ifndef CELLGATE_OPENMP_VEC_AVX2_H
#define CELLGATE_OPENMP_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

typedef __m256 vf;
typedef __m256 vf_mask;

#define VF_WIDTH 8
#define VF_TILE 3 /* 12 sums, 3 inputs and 1 weight fill the 16 registers */

static inline vf vf_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

static inline vf vf_load_f16(const uint16_t *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
}

static inline vf vf_load_int8(const int8_t *from)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)from)));
}

static inline void vf_store(float *to, vf a)
{
    _mm256_storeu_ps(to, a);
}

static inline void vf_stream(float *to, vf a)
{
    _mm256_stream_ps(to, a);
}

static inline void vf_stream_end(void)
{
    _mm_sfence();
}

/* Pieces of 4, 2 and 1: masked stores are slow on several processors. */
static inline void vf_store_some(float *to, vf a, int64_t count)
{
    __m128 part = _mm256_castps256_ps128(a);

    if (count & 4) {
        _mm_storeu_ps(to, part);
        part = _mm256_extractf128_ps(a, 1);
        to += 4;
    }
    if (count & 2) {
        _mm_storel_pi((__m64 *)(void *)to, part);
        part = _mm_movehl_ps(part, part);
        to += 2;
    }
    if (count & 1)
        _mm_store_ss(to, part);
}

static inline vf vf_set(float a)
{
    return _mm256_set1_ps(a);
}

static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

static inline vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

static inline vf_mask vf_less(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline vf vf_choose(vf_mask which, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, which);
}

static inline vf vf_power_of_two(vf shifted)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_castps_si256(shifted), 23));
}

static inline float vf_total(vf a)
{
    __m128 sum =
        _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

static inline float vf_largest(vf a)
{
    __m128 most =
        _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    most = _mm_max_ps(most, _mm_movehl_ps(most, most));
    return _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
}

#endif /* CELLGATE_OPENMP_VEC_AVX2_H */
