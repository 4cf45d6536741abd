/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.h: the activations and the cell, which are those of the OpenCL plugin:
 * plugins/opencl/cell.cl, in words of CUDA. It is compiled twice, for any
 * activations and for sigmoid, tanh, tanh.
 */
#ifndef CELLGATE_CUDA_CELL_H
#define CELLGATE_CUDA_CELL_H

#include <math.h>

#include "plugins/cuda/kernels/device.h"

typedef float real;
#define REAL(x) ((float)(x))
#define REAL_POWER_OF_TWO(n) cuk_power_of_two(n)
#define REAL_LIMIT(x, low, high)                                               \
    ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#define CELL_FUNCTION CUK_DEVICE
#define CELL_LARGE_FUNCTION CUK_LARGE_DEVICE
#define CELL_ACTIVATION cellgate_activation

namespace cuk_any
{
#define USUAL 0
#include "plugins/opencl/cell.cl"
#undef USUAL
} // namespace cuk_any
#undef CELL_GATE
#undef CELL_CANDIDATE
#undef CELL_HIDDEN
#undef CELL_ACTIVATE
namespace cuk_usual
{
#define USUAL 1
#include "plugins/opencl/cell.cl"
#undef USUAL
} // namespace cuk_usual

CUK_DEVICE float activate(const cellgate_activation &how, float x)
{
    return cuk_any::cell_activate(how.kind, how.alpha, how.beta, x);
}

static inline bool is_usual(const cuk_lstm &a)
{
    for (int d = 0; d < a.directions; d++)
        if (a.activations[d][0].kind != CELLGATE_SIGMOID ||
            a.activations[d][1].kind != CELLGATE_TANH ||
            a.activations[d][2].kind != CELLGATE_TANH)
            return false;
    return true;
}

/* The peephole vectors of a unit, zeros without. */
CUK_DEVICE void peepholes_of(const cuk_lstm &a, int direction, int unit,
                             float p[3])
{
    for (int i = 0; i < 3; i++)
        p[i] = a.peephole
                   ? a.peephole[((size_t)direction * 3 + i) * a.hidden + unit]
                   : 0.0f;
}

/* One step of a unit: from its gates' sums to the new c; returns the output. */
template <bool USUAL_CELL>
CUK_DEVICE float cell(const cuk_lstm &a, int direction, const float4 &sums,
                      const float p[3], float *c)
{
    const float z[4] = { sums.x, sums.y, sums.z, sums.w };

    if (USUAL_CELL) {
        cuk_usual::cell_options options;

        options.coupled = a.coupled;
        options.clip = a.clip > 0.0f ? a.clip : INFINITY;
        return cuk_usual::cell_step(&options, z, p, c);
    } else {
        cuk_any::cell_options options;

        options.coupled = a.coupled;
        options.clip = a.clip > 0.0f ? a.clip : INFINITY;
        for (int i = 0; i < 3; i++)
            options.activations[i] = a.activations[direction][i];
        return cuk_any::cell_step(&options, z, p, c);
    }
}

#endif /* CELLGATE_CUDA_CELL_H */
