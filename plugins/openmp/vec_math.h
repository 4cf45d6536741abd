/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_math.h: exponential, sigmoid and tanh over vectors, in terms of a vec_
 * header. Coefficients are this project's own minimax fits.
 *
 * Errors against the exact value, over all finite x (tests/unit holds every
 * level to them):
 *   exp      2.5e-7 relative with a fused multiply-add, for -87 < x < 88
 *            (5e-6 without, where x/ln 2 is rounded before its fraction is
 *            taken); below e^-87, above infinity
 *   sigmoid  1.5e-7 absolute; exactly 0 and 1 at the infinities
 *   tanh     2e-7 absolute, and relative to tanh x; exactly -1 and 1 from
 *            |x| = 9.02 on
 * NaN gives NaN. Nothing overflows on the way.
 */
#ifndef CELLGATE_OPENMP_VEC_MATH_H
#define CELLGATE_OPENMP_VEC_MATH_H

/*
 * 2^(x / ln 2) = 2^n 2^f with n whole and |f| <= 1/2; 2^f by a polynomial of
 * degree 5 that is exact at 0 (relative error 9.2e-8). Limits are applied with
 * x as the second operand, which lets a NaN through.
 */
static inline vf vf_exp(vf x)
{
    const vf per_e = vf_set(1.44269504088896341f);
    const vf shift = vf_set(0x1.8p23f + 127);
    vf bounded = vf_min(vf_set(89), vf_max(vf_set(-87), x));
    vf shifted = vf_fma(bounded, per_e, shift);
    vf n = vf_sub(shifted, shift);
    vf f = vf_fma(bounded, per_e, vf_sub(vf_set(0), n));
    vf p = vf_set(0.001326472712f);

    p = vf_fma(p, f, vf_set(0.009671512645f));
    p = vf_fma(p, f, vf_set(0.055507337435f));
    p = vf_fma(p, f, vf_set(0.240222420853f));
    p = vf_fma(p, f, vf_set(0.693146977599f));
    p = vf_fma(p, f, vf_set(1));
    return vf_mul(p, vf_power_of_two(shifted));
}

/* 1 + e^-x, of which the sigmoid is the reciprocal. */
static inline vf vf_sigmoid_divisor(vf x)
{
    return vf_add(vf_set(1), vf_exp(vf_sub(vf_set(0), x)));
}

static inline vf vf_sigmoid(vf x)
{
    return vf_div(vf_set(1), vf_sigmoid_divisor(x));
}

/*
 * tanh x as a fraction, x P(x^2)/Q(x^2) with P and Q of degree 4 (relative
 * error 2.2e-8 up to the bound, where tanh rounds to 1). The divisor is
 * between 1 and 430.
 */
static inline void vf_tanh_fraction(vf x, vf *dividend, vf *divisor)
{
    const vf bound = vf_set(9.02f);
    vf b = vf_min(bound, vf_max(vf_sub(vf_set(0), bound), x));
    vf u = vf_mul(b, b);
    vf p = vf_set(1.331911100383e-08f), q = vf_set(7.762039858874e-07f);

    p = vf_fma(p, u, vf_set(2.058352462414e-05f));
    q = vf_fma(q, u, vf_set(3.283097790263e-04f));
    p = vf_fma(p, u, vf_set(3.494037895278e-03f));
    q = vf_fma(q, u, vf_set(2.587108665924e-02f));
    p = vf_fma(p, u, vf_set(1.337972099910e-01f));
    q = vf_fma(q, u, vf_set(4.671303625000e-01f));
    p = vf_fma(p, u, vf_set(9.999999790387e-01f));
    q = vf_fma(q, u, vf_set(1));
    *dividend = vf_mul(b, p);
    *divisor = q;
}

static inline vf vf_tanh(vf x)
{
    vf dividend, divisor;

    vf_tanh_fraction(x, &dividend, &divisor);
    return vf_div(dividend, divisor);
}

#endif /* CELLGATE_OPENMP_VEC_MATH_H */
