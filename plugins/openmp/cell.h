/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.h: the activations, and the cell from the gates' sums to the new state,
 * over the vector of the vec_ header that was included before.
 */
#ifndef CELLGATE_OPENMP_CELL_H
#define CELLGATE_OPENMP_CELL_H

#include <stddef.h>

#include "plugins/openmp/activation.h"
#include "plugins/openmp/levels.h"
#include "plugins/openmp/vec_math.h"

#define PANEL (4 * (int64_t)VF_WIDTH)

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_DEPTH _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#define UNROLL_DEPTH _Pragma("GCC unroll 4")
#endif

NOINLINE vf activate_lanes(const cellgate_activation *activation, vf x)
{
    float lanes[VF_WIDTH];
    int i;

    vf_store(lanes, x);
    for (i = 0; i < VF_WIDTH; i++)
        lanes[i] = cpu_activation(activation, lanes[i]);
    return vf_load(lanes);
}

NOINLINE vf activate_vector(const cellgate_activation *activation, vf x)
{
    const vf a = vf_set(activation->alpha), b = vf_set(activation->beta);
    const vf zero = vf_set(0), one = vf_set(1), half = vf_set(0.5f);

    switch (activation->kind) {
    case CELLGATE_TANH:
        return vf_tanh(x);
    case CELLGATE_SIGMOID:
        return vf_sigmoid(x);
    case CELLGATE_LINEAR:
        return x;
    case CELLGATE_RELU:
        return vf_max(zero, x);
    case CELLGATE_LEAKY_RELU:
        return vf_choose(vf_less(x, zero), vf_mul(a, x), x);
    case CELLGATE_RELU6:
        return vf_min(vf_set(6), vf_max(zero, x));
    case CELLGATE_SILU:
        return vf_mul(x, vf_sigmoid(x));
    case CELLGATE_HARD_SIGMOID:
        return vf_min(one, vf_max(zero, vf_fma(a, x, b)));
    case CELLGATE_SPARSE_SIGMOID:
        return vf_min(one, vf_max(zero, vf_fma(half, x, half)));
    case CELLGATE_HARD_TANH:
        return vf_min(one, vf_max(vf_set(-1), x));
    case CELLGATE_AFFINE:
        return vf_fma(a, x, b);
    case CELLGATE_SCALED_TANH:
        return vf_mul(a, vf_tanh(vf_mul(b, x)));
    default:
        return activate_lanes(activation, x);
    }
}

/*
 * Sums of the gates i, f, c, o to the new c and to o . hidden(c). The five
 * activations are fractions, and their products need three divisions.
 */
INLINE vf standard_cell(const vf sum[4], float *c)
{
    vf above, below, state;

    vf_tanh_fraction(sum[2], &above, &below);
    state = vf_add(vf_div(vf_load(c), vf_sigmoid_divisor(sum[1])),
                   vf_div(above, vf_mul(below, vf_sigmoid_divisor(sum[0]))));
    vf_store(c, state);
    vf_tanh_fraction(state, &above, &below);
    return vf_div(above, vf_mul(below, vf_sigmoid_divisor(sum[3])));
}

INLINE vf clipped(vf x, float clip)
{
    return clip == 0 ? x : vf_min(vf_set(clip), vf_max(vf_set(-clip), x));
}

NOINLINE vf general_cell(const struct cpu_cell *cell, int64_t panel,
                         const float *sums, float *c)
{
    const cellgate_activation *act = cell->activations;
    const float *peephole =
        cell->peepholes ? cell->peepholes + panel * 3 * VF_WIDTH : NULL;
    vf old = vf_load(c), i = vf_load(sums), f = vf_load(sums + VF_WIDTH);
    vf g = vf_load(sums + 2 * VF_WIDTH), o = vf_load(sums + 3 * VF_WIDTH);

    if (peephole) {
        i = vf_fma(vf_load(peephole), old, i);
        f = vf_fma(vf_load(peephole + VF_WIDTH), old, f);
    }
    i = activate_vector(&act[0], clipped(i, cell->clip));
    if (cell->coupled)
        f = vf_sub(vf_set(1), i);
    else
        f = activate_vector(&act[0], clipped(f, cell->clip));
    g = activate_vector(&act[1], clipped(g, cell->clip));
    old = vf_fma(f, old, vf_mul(i, g));
    vf_store(c, old);
    if (peephole)
        o = vf_fma(vf_load(peephole + 2 * VF_WIDTH), old, o);
    o = activate_vector(&act[0], clipped(o, cell->clip));
    return vf_mul(o, activate_vector(&act[2], old));
}

#endif /* CELLGATE_OPENMP_CELL_H */
