/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_math.h: exponential, sigmoid and tanh over vectors, in terms of a vec_
 * header. Coefficients are this project's own minimax fits.
 *
 * Errors against the exact value, over all finite x (tests/unit holds every
 * level to them at some millions of x, and `make check-math` at every float):
 *   exp      of x up to 0: 3e-7 relative near 0; 2e-6 down to -87 (5e-6
 *            without a fused multiply-add); held at e^-87 below
 *   sigmoid  1.2e-7 absolute; exactly 0 and 1 at the infinities
 *   tanh     1.6e-7 absolute, 3.1e-7 relative; exactly -1 and 1 from |x| = 9.02
 *            on
 * NaN gives NaN. Nothing overflows on the way.
 */
#ifndef CELLGATE_OPENMP_VEC_MATH_H
#define CELLGATE_OPENMP_VEC_MATH_H

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_DEPTH _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#define UNROLL_DEPTH _Pragma("GCC unroll 4")
#endif

/*
 * x * scale = n + f with n whole and |f| <= 1/2: returns f, and what
 * vf_scale() takes to multiply by 2^n. Here n is from -126 to 128, and f is
 * exact with a fused multiply-add. A vec_ header that defines VF_SCALES has its
 * own, for any n, of the product as it is rounded; and vf_split_fused(), as
 * exact as this, for finite products.
 */
#ifndef VF_SCALES
static inline vf vf_split(vf x, float scale, vf *power)
{
    const vf per = vf_set(scale), shift = vf_set(0x1.8p23f + 127);
    vf shifted = vf_fma(x, per, shift);

    *power = vf_power_of_two(shifted);
    return vf_fma(x, per, vf_sub(shift, shifted));
}

#define vf_split_fused vf_split

static inline vf vf_scale(vf a, vf power)
{
    return vf_mul(a, power);
}
#endif

/* x, held where vf_split() takes it. A limit has x as the second operand,
   which lets a NaN through. */
static inline vf vf_not_below(float low, vf x)
{
#ifdef VF_SCALES
    (void)low;
    return x;
#else
    return vf_max(vf_set(low), x);
#endif
}

static inline vf vf_not_above(float high, vf x)
{
#ifdef VF_SCALES
    (void)high;
    return x;
#else
    return vf_min(vf_set(high), x);
#endif
}

/* Repeats a statement for i from 0 below a constant n. */
#define VF_EACH(i, n) UNROLL for (i = 0; i < (n); i++)

/*
 * The functions below compute up to VF_AT_ONCE vectors side by side, operation
 * by operation: one alone is a chain of operations that wait for one another,
 * and a processor looks ahead over little more than one such chain.
 */

/* y = 2^f scaled by `power`, with 2^f by a polynomial of degree 5 that is exact
   at 0 (relative error 9.2e-8). */
INLINE void vf_exp2s(const int n, const vf *f, const vf *power, vf *y)
{
    vf square[VF_AT_ONCE], high[VF_AT_ONCE], middle[VF_AT_ONCE],
        low[VF_AT_ONCE];
    int i;

    VF_EACH (i, n)
        square[i] = vf_mul(f[i], f[i]);
    VF_EACH (i, n)
        high[i] =
            vf_fma(vf_set(0.001326472712f), f[i], vf_set(0.009671512645f));
    VF_EACH (i, n)
        middle[i] =
            vf_fma(vf_set(0.055507337435f), f[i], vf_set(0.240222420853f));
    VF_EACH (i, n)
        low[i] = vf_fma(vf_set(0.693146977599f), f[i], vf_set(1));
    VF_EACH (i, n)
        high[i] = vf_fma(high[i], square[i], middle[i]);
    VF_EACH (i, n)
        high[i] = vf_fma(high[i], square[i], low[i]);
    VF_EACH (i, n)
        y[i] = vf_scale(high[i], power[i]);
}

#define VF_LOG2_E 1.44269504088896341f

/* y = e^x for x up to 0; e^-87 below -87. */
INLINE void vf_exps(const int n, const vf *x, vf *y)
{
    vf f[VF_AT_ONCE], power[VF_AT_ONCE];
    int i;

    VF_EACH (i, n)
        f[i] = vf_max(vf_set(-87), x[i]);
    VF_EACH (i, n)
        f[i] = vf_split_fused(f[i], VF_LOG2_E, &power[i]);
    vf_exp2s(n, f, power, y);
}

/* y = 1 + e^-x, of which the sigmoid is the reciprocal. */
INLINE void vf_sigmoid_divisors(const int n, const vf *x, vf *y)
{
    vf f[VF_AT_ONCE], power[VF_AT_ONCE];
    int i;

    VF_EACH (i, n)
        f[i] = vf_not_above(87, vf_not_below(-89, x[i]));
    VF_EACH (i, n)
        f[i] = vf_split(f[i], -VF_LOG2_E, &power[i]);
    vf_exp2s(n, f, power, y);
    VF_EACH (i, n)
        y[i] = vf_add(vf_set(1), y[i]);
}

INLINE void vf_sigmoids(const int n, const vf *x, vf *y)
{
    int i;

    vf_sigmoid_divisors(n, x, y);
    VF_EACH (i, n)
        y[i] = vf_div(vf_set(1), y[i]);
}

/*
 * tanh x as the fraction (e^2x - 1) / (e^2x + 1). The dividend is put together
 * as 2^n (2^f - 1) + (2^n - 1), with 2^f - 1 as f times a polynomial of degree
 * 5 (relative error 1.1e-8), so that nothing cancels near 0. From |x| = 9.02
 * on, where tanh rounds to 1, the fraction is exactly 1 in magnitude, and
 * nowhere is it more. The divisor is between 1 and 2^44.
 */
INLINE void vf_tanh_fractions(const int n, const vf *x, vf *dividend,
                              vf *divisor)
{
    vf power[VF_AT_ONCE], f[VF_AT_ONCE], square[VF_AT_ONCE], high[VF_AT_ONCE],
        middle[VF_AT_ONCE], low[VF_AT_ONCE];
    int i;

    VF_EACH (i, n)
        f[i] = vf_min(vf_set(15), vf_not_below(-15, x[i]));
    VF_EACH (i, n)
        f[i] = vf_split(f[i], 2 * VF_LOG2_E, &power[i]);
    VF_EACH (i, n)
        square[i] = vf_mul(f[i], f[i]);
    VF_EACH (i, n)
        high[i] = vf_fma(vf_set(1.540351261626e-04f), f[i],
                         vf_set(1.339073547756e-03f));
    VF_EACH (i, n)
        middle[i] = vf_fma(vf_set(9.618237494179e-03f), f[i],
                           vf_set(5.550357433636e-02f));
    VF_EACH (i, n)
        low[i] = vf_fma(vf_set(2.402264979496e-01f), f[i],
                        vf_set(6.931471879267e-01f));
    VF_EACH (i, n)
        high[i] = vf_fma(high[i], square[i], middle[i]);
    VF_EACH (i, n)
        high[i] = vf_fma(high[i], square[i], low[i]);
    VF_EACH (i, n)
        power[i] = vf_scale(vf_set(1), power[i]);
    VF_EACH (i, n)
        high[i] = vf_mul(high[i], f[i]);
    VF_EACH (i, n)
        middle[i] = vf_sub(power[i], vf_set(1));
    VF_EACH (i, n)
        dividend[i] = vf_fma(power[i], high[i], middle[i]);
    VF_EACH (i, n)
        divisor[i] = vf_add(dividend[i], vf_set(2));
}

INLINE void vf_tanhs(const int n, const vf *x, vf *y)
{
    vf divisor[VF_AT_ONCE];
    int i;

    vf_tanh_fractions(n, x, y, divisor);
    VF_EACH (i, n)
        y[i] = vf_div(y[i], divisor[i]);
}

/* One vector. */
INLINE vf vf_exp(vf x)
{
    vf_exps(1, &x, &x);
    return x;
}

INLINE vf vf_sigmoid(vf x)
{
    vf_sigmoids(1, &x, &x);
    return x;
}

INLINE vf vf_tanh(vf x)
{
    vf_tanhs(1, &x, &x);
    return x;
}

#endif /* CELLGATE_OPENMP_VEC_MATH_H */
