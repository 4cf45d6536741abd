/* SPDX-License-Identifier: Apache-2.0 */
/* vec_neon.h: four floats, with the Advanced SIMD of aarch64. See
   vec_scalar.h. With NEON_THROUGH_SIMDE the instructions are SIMDe's, so that
   tests run them on any machine. */
#ifndef CELLGATE_OPENMP_VEC_NEON_H
#define CELLGATE_OPENMP_VEC_NEON_H

#ifdef NEON_THROUGH_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/arm/neon.h>
/* SIMDe's vectors are the compiler's, which divides them too; it has no name
   for that. */
#define vdivq_f32(a, b) ((a) / (b))
#else
#include <arm_neon.h>
#endif
#include <stdint.h>
#include <string.h>

typedef float32x4_t vf;
typedef uint32x4_t vf_mask;

#define VF_WIDTH 4
#define VF_TILE 6 /* 24 sums, 6 inputs and 1 weight fill the 32 registers */

static inline vf vf_load(const float *from)
{
    return vld1q_f32(from);
}

static inline vf vf_load_f16(const uint16_t *from)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}

static inline vf vf_load_int8(const int8_t *from)
{
    int32_t four;

    memcpy(&four, from, sizeof four);
    return vcvtq_f32_s32(vmovl_s16(
        vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}

static inline void vf_store(float *to, vf a)
{
    vst1q_f32(to, a);
}

static inline void vf_stream(float *to, vf a)
{
    vst1q_f32(to, a);
}

static inline void vf_stream_end(void)
{
}

/* Pieces of 2 and 1. */
static inline void vf_store_some(float *to, vf a, int64_t count)
{
    float32x2_t part = vget_low_f32(a);

    if (count & 2) {
        vst1_f32(to, part);
        part = vget_high_f32(a);
        to += 2;
    }
    if (count & 1)
        vst1_lane_f32(to, part, 0);
}

static inline vf vf_set(float a)
{
    return vdupq_n_f32(a);
}

static inline vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

/* Not vmaxq and vminq, which give NaN whichever operand it is. */
static inline vf vf_max(vf a, vf b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

static inline vf vf_min(vf a, vf b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

static inline vf_mask vf_less(vf a, vf b)
{
    return vcltq_f32(a, b);
}

static inline vf vf_choose(vf_mask which, vf yes, vf no)
{
    return vbslq_f32(which, yes, no);
}

static inline vf vf_power_of_two(vf shifted)
{
    return vreinterpretq_f32_s32(
        vshlq_n_s32(vreinterpretq_s32_f32(shifted), 23));
}

static inline float vf_total(vf a)
{
    return vaddvq_f32(a);
}

static inline float vf_largest(vf a)
{
    return vmaxvq_f32(a);
}

#endif /* CELLGATE_OPENMP_VEC_NEON_H */
