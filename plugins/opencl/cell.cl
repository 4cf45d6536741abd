/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.cl: activations and the LSTM cell, elementwise, on `real`: a float or a
 * vector of floats. No address space, no work-item function: any C-like
 * language in which the words of prelude.cl are defined compiles it.
 *
 * The kinds are numbered as in cellgate/types.h. Every comparison is such that
 * a NaN comes out as NaN.
 */
CELL_FUNCTION real cell_sigmoid(real x)
{
    return REAL(1.0f) / (REAL(1.0f) + exp(-x));
}

/*
 * tanh x as (e^2x - 1) / (e^2x + 1), with e^2x - 1 = 2^n (2^f - 1) + (2^n - 1)
 * and 2^f - 1 as f times a polynomial of degree 5, so that nothing cancels near
 * 0 (3e-7 relative). From |x| = 9.02 on it is exactly -1 or 1.
 */
CELL_FUNCTION real cell_tanh(real x)
{
    real y = REAL_LIMIT(x, REAL(-15.0f), REAL(15.0f)) *
             REAL(2.88539008177792681f);
    real n = rint(y);
    real f = y - n;
    real power = REAL_POWER_OF_TWO(n);
    real p = REAL(1.540351261626e-04f);
    real dividend;

    p = p * f + REAL(1.339073547756e-03f);
    p = p * f + REAL(9.618237494179e-03f);
    p = p * f + REAL(5.550357433636e-02f);
    p = p * f + REAL(2.402264979496e-01f);
    p = p * f + REAL(6.931471879267e-01f);
    dividend = power * (p * f) + (power - REAL(1.0f));
    return dividend / (dividend + REAL(2.0f));
}

CELL_FUNCTION real cell_softplus(real x)
{
    return (x > REAL(0.0f) ? x : REAL(0.0f)) + log1p(exp(-fabs(x)));
}

/* e^x - 1 below 0, scaled. */
CELL_FUNCTION real cell_elu(real x, real scale, real divisor)
{
    return x > REAL(0.0f) ? x : scale * expm1(x / divisor);
}

CELL_FUNCTION real cell_squareplus(real x, real a)
{
    real root = sqrt(x * x + a);

    return REAL(0.5f) *
           (x < REAL(0.0f) && a > REAL(0.0f) ? a / (root - x) : x + root);
}

CELL_FUNCTION real cell_softsign(real x)
{
    return fabs(x) == REAL(INFINITY) ? copysign(REAL(1.0f), x)
                                     : x / (REAL(1.0f) + fabs(x));
}

CELL_FUNCTION real cell_sparse_plus(real x)
{
    real one = x + REAL(1.0f);

    return x <= REAL(-1.0f)
               ? REAL(0.0f)
               : (x >= REAL(1.0f) ? x : REAL(0.25f) * one * one);
}

CELL_FUNCTION real cell_gelu_tanh(real x)
{
    real inner = REAL(0.7978845608028654f) *
                 (x + REAL(0.044715f) * x * x * x);

    return REAL(0.5f) * x * (REAL(1.0f) + cell_tanh(inner));
}

CELL_FUNCTION real cell_soft_shrink(real x, real a)
{
    return x > a ? x - a : (x < -a ? x + a : x - x);
}

/* A kind that is a matter of its definition in cellgate/types.h. */
CELL_LARGE_FUNCTION real cell_other(int kind, real a, real b, real x)
{
    switch (kind) {
    case 3: /* relu */
        return x < REAL(0.0f) ? REAL(0.0f) : x;
    case 4: /* leaky_relu */
        return x < REAL(0.0f) ? a * x : x;
    case 5: /* relu6 */
        return REAL_LIMIT(x, REAL(0.0f), REAL(6.0f));
    case 6: /* elu */
        return cell_elu(x, a, REAL(1.0f));
    case 7: /* selu */
        return REAL(1.0507009873554805f) *
               cell_elu(x, REAL(1.6732632423543772f), REAL(1.0f));
    case 8: /* celu */
        return cell_elu(x, a, a);
    case 9: /* softplus */
        return cell_softplus(x);
    case 10: /* softsign */
        return cell_softsign(x);
    case 11: /* squareplus */
        return cell_squareplus(x, a);
    case 12: /* soft_shrink */
        return cell_soft_shrink(x, a);
    case 13: /* hard_shrink */
        return fabs(x) <= a ? REAL(0.0f) : x;
    case 14: /* sparse_plus */
        return cell_sparse_plus(x);
    case 15: /* silu */
        return x * cell_sigmoid(x);
    case 16: /* gelu_erf */
        return REAL(0.5f) * x * erfc(x * REAL(-0.7071067811865476f));
    case 17: /* gelu_tanh */
        return cell_gelu_tanh(x);
    case 18: /* tanh_shrink */
        return x - tanh(x);
    case 19: /* threshold */
        return x <= a ? b : x;
    case 20: /* sparse_sigmoid */
        return REAL_LIMIT(REAL(0.5f) * (x + REAL(1.0f)), REAL(0.0f),
                          REAL(1.0f));
    case 21: /* exponential */
        return exp(x);
    case 22: /* hard_sigmoid */
        return REAL_LIMIT(a * x + b, REAL(0.0f), REAL(1.0f));
    case 23: /* hard_silu */
        return x * REAL_LIMIT(x / REAL(6.0f) + REAL(0.5f), REAL(0.0f),
                              REAL(1.0f));
    case 24: /* hard_tanh */
        return REAL_LIMIT(x, REAL(-1.0f), REAL(1.0f));
    case 25: /* mish */
        return x * cell_tanh(cell_softplus(x));
    case 26: /* log_sigmoid */
        return -cell_softplus(-x);
    case 27: /* affine */
        return a * x + b;
    case 28: /* scaled_tanh */
        return a * cell_tanh(b * x);
    default: /* linear */
        return x;
    }
}

CELL_FUNCTION real cell_activate(int kind, float alpha, float beta, real x)
{
    return kind == 0   ? cell_tanh(x)
           : kind == 1 ? cell_sigmoid(x)
                       : cell_other(kind, REAL(alpha), REAL(beta), x);
}

#if USUAL
/* The activations that nearly every model has. */
#define CELL_GATE(options, x) cell_sigmoid(x)
#define CELL_CANDIDATE(options, x) cell_tanh(x)
#define CELL_HIDDEN(options, x) cell_tanh(x)
#else
#define CELL_ACTIVATE(which, x)                                                \
    cell_activate((which).kind, (which).alpha, (which).beta, x)
#define CELL_GATE(options, x) CELL_ACTIVATE((options)->activations[0], x)
#define CELL_CANDIDATE(options, x) CELL_ACTIVATE((options)->activations[1], x)
#define CELL_HIDDEN(options, x) CELL_ACTIVATE((options)->activations[2], x)
#endif

/* What a direction's cells have in common. */
struct cell_options {
    int coupled;
    float clip; /* infinity without */
    CELL_ACTIVATION activations[3]; /* gate, candidate, hidden */
};

CELL_FUNCTION real cell_clip(const struct cell_options *options, real x)
{
    return REAL_LIMIT(x, REAL(-options->clip), REAL(options->clip));
}

/*
 * One step of V units: from the sums of the gates i, f, c, o (in z) and the
 * peephole vectors of i, f, o (zeros without) to the new c; returns the output
 * before any projection. The formula is in cellgate/plugin.h.
 */
CELL_FUNCTION real cell_step(const struct cell_options *options,
                             const real *z, const real *peephole, real *c)
{
    real input = CELL_GATE(options,
                           cell_clip(options, z[0] + peephole[0] * *c));
    real candidate = CELL_CANDIDATE(options, cell_clip(options, z[2]));
    real forget = options->coupled
                      ? REAL(1.0f) - input
                      : CELL_GATE(options, cell_clip(options, z[1] +
                                                     peephole[1] * *c));
    real output;

    *c = forget * *c + input * candidate;
    output = CELL_GATE(options, cell_clip(options, z[3] + peephole[2] * *c));
    return output * CELL_HIDDEN(options, *c);
}
