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

#define VF_LOG2_E 1.44269504088896341f

/* 2^f scaled by `power`, with 2^f by a polynomial of degree 5 that is exact at
   0 (relative error 9.2e-8). */
static inline vf vf_exp2(vf f, vf power)
{
    vf square = vf_mul(f, f);
    vf high = vf_fma(vf_set(0.001326472712f), f, vf_set(0.009671512645f));
    vf middle = vf_fma(vf_set(0.055507337435f), f, vf_set(0.240222420853f));
    vf low = vf_fma(vf_set(0.693146977599f), f, vf_set(1));

    return vf_scale(vf_fma(vf_fma(high, square, middle), square, low), power);
}

/* e^x for x up to 0; e^-87 below -87. */
static inline vf vf_exp(vf x)
{
    vf power;
    vf f = vf_split_fused(vf_max(vf_set(-87), x), VF_LOG2_E, &power);

    return vf_exp2(f, power);
}

/* 1 + e^-x, of which the sigmoid is the reciprocal. */
static inline vf vf_sigmoid_divisor(vf x)
{
    vf power;
    vf f = vf_split(vf_not_above(87, vf_not_below(-89, x)), -VF_LOG2_E, &power);

    return vf_add(vf_set(1), vf_exp2(f, power));
}

static inline vf vf_sigmoid(vf x)
{
    return vf_div(vf_set(1), vf_sigmoid_divisor(x));
}

/*
 * tanh x as the fraction (e^2x - 1) / (e^2x + 1). The dividend is put together
 * as 2^n (2^f - 1) + (2^n - 1), with 2^f - 1 as f times a polynomial of degree
 * 5 (relative error 1.1e-8), so that nothing cancels near 0. From |x| = 9.02
 * on, where tanh rounds to 1, the fraction is exactly 1 in magnitude, and
 * nowhere is it more. The divisor is between 1 and 2^44.
 */
static inline void vf_tanh_fraction(vf x, vf *dividend, vf *divisor)
{
    vf scale;
    vf f = vf_split(vf_min(vf_set(15), vf_not_below(-15, x)), 2 * VF_LOG2_E,
                    &scale);
    vf power = vf_scale(vf_set(1), scale);
    vf square = vf_mul(f, f);
    vf high =
        vf_fma(vf_set(1.540351261626e-04f), f, vf_set(1.339073547756e-03f));
    vf middle =
        vf_fma(vf_set(9.618237494179e-03f), f, vf_set(5.550357433636e-02f));
    vf low =
        vf_fma(vf_set(2.402264979496e-01f), f, vf_set(6.931471879267e-01f));
    vf p = vf_fma(vf_fma(high, square, middle), square, low);

    *dividend = vf_fma(power, vf_mul(p, f), vf_sub(power, vf_set(1)));
    *divisor = vf_add(*dividend, vf_set(2));
}

static inline vf vf_tanh(vf x)
{
    vf dividend, divisor;

    vf_tanh_fraction(x, &dividend, &divisor);
    return vf_div(dividend, divisor);
}

#endif /* CELLGATE_OPENMP_VEC_MATH_H */
