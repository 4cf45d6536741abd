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

INLINE vf activate_vector(const cellgate_activation *activation, vf x)
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

NOINLINE void activate_vectors(const cellgate_activation *activation, int n,
                               vf *x)
{
    int i;

    for (i = 0; i < n; i++)
        x[i] = activate_vector(activation, x[i]);
}

/*
 * Sums of the gates i, f, c, o to the new c, and then to o . hidden(c). The
 * five activations are fractions, and their products need three divisions.
 */
INLINE vf standard_state(const vf sum[4], float *c)
{
    vf above, below, state;

    vf_tanh_fraction(sum[2], &above, &below);
    state = vf_add(vf_div(vf_load(c), vf_sigmoid_divisor(sum[1])),
                   vf_div(above, vf_mul(below, vf_sigmoid_divisor(sum[0]))));
    vf_store(c, state);
    return state;
}

INLINE vf standard_output(const vf sum[4], vf state)
{
    vf above, below;

    vf_tanh_fraction(state, &above, &below);
    return vf_div(above, vf_mul(below, vf_sigmoid_divisor(sum[3])));
}

/* ---- Any other cell ---------------------------------------------------- */

/* A vector of units of one row: where its cell is, and its sums end. */
struct place {
    float *c;
    float *out;
    int64_t left;          /* lanes that exist */
    const float *peephole; /* [3][v], or NULL */
};

static void clip_gates(const struct cpu_cell *cell, const int n, vf *x)
{
    const vf low = vf_set(-cell->clip), high = vf_set(cell->clip);
    int i;

    for (i = 0; cell->clip != 0 && i < n; i++)
        x[i] = vf_min(high, vf_max(low, x[i]));
}

/* x = activation(clip(x + peephole number `gate` . c)) for n places. */
static void activate_gates(const struct cpu_cell *cell, int gate,
                           const struct place *places, const vf *c, const int n,
                           vf *x)
{
    int i;

    for (i = 0; cell->peepholes && i < n; i++)
        x[i] =
            vf_fma(vf_load(places[i].peephole + gate * VF_WIDTH), c[i], x[i]);
    clip_gates(cell, n, x);
    activate_vectors(&cell->activations[0], n, x);
}

/* New states and outputs of n places, at most a tile. */
NOINLINE void general_cells(const struct cpu_cell *cell,
                            const struct place *places, const int n,
                            vf (*gates)[VF_TILE], vf *h)
{
    vf *i = gates[0], *f = gates[1], *g = gates[2], *o = gates[3];
    vf state[VF_TILE];
    int r;

    for (r = 0; r < n; r++)
        state[r] = vf_load(places[r].c);
    activate_gates(cell, 0, places, state, n, i);
    if (!cell->coupled)
        activate_gates(cell, 1, places, state, n, f);
    for (r = 0; cell->coupled && r < n; r++)
        f[r] = vf_sub(vf_set(1), i[r]);
    clip_gates(cell, n, g);
    activate_vectors(&cell->activations[1], n, g);
    for (r = 0; r < n; r++) {
        state[r] = vf_fma(f[r], state[r], vf_mul(i[r], g[r]));
        vf_store(places[r].c, state[r]);
    }
    activate_gates(cell, 2, places, state, n, o);
    activate_vectors(&cell->activations[2], n, state);
    for (r = 0; r < n; r++)
        h[r] = vf_mul(o[r], state[r]);
}

#endif /* CELLGATE_OPENMP_CELL_H */
