/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "plugins/openmp/activation.h"

static float limit(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static float softplus(float x)
{
    return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
}

static float selu(float x)
{
    const float scale = 1.0507009873554805f, slope = 1.6732632423543772f;

    return scale * (x > 0 ? x : slope * expm1f(x));
}

static float gelu_tanh(float x)
{
    const float root = 0.7978845608028654f; /* sqrt(2/pi) */

    return 0.5f * x * (1.0f + tanhf(root * (x + 0.044715f * x * x * x)));
}

/* The kinds whose value is made of pieces of straight lines and parabolas. */
static float piecewise(int32_t kind, float a, float b, float x)
{
    switch (kind) {
    case CELLGATE_RELU:
        return x > 0 ? x : 0;
    case CELLGATE_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case CELLGATE_RELU6:
        return limit(x, 0, 6);
    case CELLGATE_SOFT_SHRINK:
        return x > a ? x - a : x < -a ? x + a : 0;
    case CELLGATE_HARD_SHRINK:
        return fabsf(x) > a ? x : 0;
    case CELLGATE_SPARSE_PLUS:
        return x <= -1 ? 0 : x >= 1 ? x : 0.25f * (x + 1) * (x + 1);
    case CELLGATE_THRESHOLD:
        return x > a ? x : b;
    case CELLGATE_SPARSE_SIGMOID:
        return limit(0.5f * (x + 1), 0, 1);
    case CELLGATE_HARD_SIGMOID:
        return limit(a * x + b, 0, 1);
    case CELLGATE_HARD_SILU:
        return x * limit(x / 6 + 0.5f, 0, 1);
    case CELLGATE_HARD_TANH:
        return limit(x, -1, 1);
    case CELLGATE_AFFINE:
        return a * x + b;
    default:
        return x;
    }
}

float cpu_activation(const cellgate_activation *activation, float x)
{
    const float a = activation->alpha, b = activation->beta;

    if (isnan(x))
        return x;
    switch (activation->kind) {
    case CELLGATE_TANH:
        return tanhf(x);
    case CELLGATE_SIGMOID:
        return sigmoid(x);
    case CELLGATE_ELU:
        return x > 0 ? x : a * expm1f(x);
    case CELLGATE_SELU:
        return selu(x);
    case CELLGATE_CELU:
        return x > 0 ? x : a * expm1f(x / a);
    case CELLGATE_SOFTPLUS:
        return softplus(x);
    case CELLGATE_SOFTSIGN:
        return isinf(x) ? copysignf(1, x) : x / (1 + fabsf(x));
    case CELLGATE_SQUAREPLUS:
        return (float)(0.5 * (x + sqrt((double)x * x + a)));
    case CELLGATE_SILU:
        return x * sigmoid(x);
    case CELLGATE_GELU_ERF:
        return 0.5f * x * erfcf(x * -0.7071067811865476f);
    case CELLGATE_GELU_TANH:
        return gelu_tanh(x);
    case CELLGATE_TANH_SHRINK:
        return x - tanhf(x);
    case CELLGATE_EXPONENTIAL:
        return expf(x);
    case CELLGATE_MISH:
        return x * tanhf(softplus(x));
    case CELLGATE_LOG_SIGMOID:
        return -softplus(-x);
    case CELLGATE_SCALED_TANH:
        return a * tanhf(b * x);
    default:
        return piecewise(activation->kind, a, b, x);
    }
}
