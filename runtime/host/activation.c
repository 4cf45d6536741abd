/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "runtime/host/ops.h"

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double clamp(double x, double lowest, double highest)
{
    return x < lowest ? lowest : x > highest ? highest : x;
}

/* Rewritten for x < 0, where the two terms of the sum cancel. */
static double squareplus(double x, double a)
{
    double root = sqrt(x * x + a);

    return x < 0 ? a / (2 * (root - x)) : (x + root) / 2;
}

static double sparse_plus(double x)
{
    return x <= -1 ? 0 : x >= 1 ? x : (x + 1) * (x + 1) / 4;
}

static double selu(double x)
{
    const double scale = 1.0507009873554805, alpha = 1.6732632423543772;

    return scale * (x > 0 ? x : alpha * expm1(x));
}

static double gelu_tanh(double x)
{
    const double root = 0.79788456080286535588; /* sqrt(2 / pi) */

    return x * (1 + tanh(root * (x + 0.044715 * x * x * x))) / 2;
}

/* Those of the form x times a factor that vanishes below: 0 at -infinity. */
static double gated(int32_t kind, double x)
{
    if (x == -INFINITY)
        return 0;
    switch (kind) {
    case CELLGATE_SILU:
        return x * sigmoid(x);
    case CELLGATE_GELU_ERF:
        return x * erfc(-x / sqrt(2)) / 2;
    case CELLGATE_GELU_TANH:
        return gelu_tanh(x);
    case CELLGATE_HARD_SILU:
        return x * clamp(x / 6 + 0.5, 0, 1);
    default: /* CELLGATE_MISH */
        return x * tanh(softplus(x));
    }
}

double cg_host_activation(cellgate_activation activation, double x)
{
    const double a = activation.alpha, b = activation.beta;

    if (isnan(x))
        return x;
    switch (activation.kind) {
    case CELLGATE_TANH:
        return tanh(x);
    case CELLGATE_SIGMOID:
        return sigmoid(x);
    case CELLGATE_LINEAR:
        return x;
    case CELLGATE_RELU:
        return x > 0 ? x : 0;
    case CELLGATE_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case CELLGATE_RELU6:
        return clamp(x, 0, 6);
    case CELLGATE_ELU:
        return x > 0 ? x : a * expm1(x);
    case CELLGATE_SELU:
        return selu(x);
    case CELLGATE_CELU:
        return x >= 0 ? x : a * expm1(x / a);
    case CELLGATE_SOFTPLUS:
        return softplus(x);
    case CELLGATE_SOFTSIGN:
        return isinf(x) ? copysign(1, x) : x / (1 + fabs(x));
    case CELLGATE_SQUAREPLUS:
        return squareplus(x, a);
    case CELLGATE_SOFT_SHRINK:
        return x > a ? x - a : x < -a ? x + a : 0;
    case CELLGATE_HARD_SHRINK:
        return fabs(x) > a ? x : 0;
    case CELLGATE_SPARSE_PLUS:
        return sparse_plus(x);
    case CELLGATE_SILU:
    case CELLGATE_GELU_ERF:
    case CELLGATE_GELU_TANH:
    case CELLGATE_HARD_SILU:
    case CELLGATE_MISH:
        return gated(activation.kind, x);
    case CELLGATE_TANH_SHRINK:
        return x - tanh(x);
    case CELLGATE_THRESHOLD:
        return x > a ? x : b;
    case CELLGATE_SPARSE_SIGMOID:
        return clamp((x + 1) / 2, 0, 1);
    case CELLGATE_EXPONENTIAL:
        return exp(x);
    case CELLGATE_HARD_SIGMOID:
        return clamp(a * x + b, 0, 1);
    case CELLGATE_HARD_TANH:
        return clamp(x, -1, 1);
    case CELLGATE_LOG_SIGMOID:
        return -softplus(-x);
    case CELLGATE_AFFINE:
        return a * x + b;
    case CELLGATE_SCALED_TANH:
        return a * tanh(b * x);
    default:
        return NAN;
    }
}

cellgate_status cg_host_activate(const cg_host_call *call,
                                 cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    float *y = cg_host_output(call, 0);
    int64_t count = cg_host_extent(shape, 0, shape->rank);

    (void)error;
    for (int64_t k = 0; y != NULL && k < count; k++)
        y[k] = (float)cg_host_activation(call->node->as.activation, x[k]);
    return CELLGATE_OK;
}

static float rectify(const cg_relu *relu, float x)
{
    if (isnan(x))
        return x;
    if (x > relu->threshold)
        return relu->limited && x > relu->limit ? relu->limit : x;
    /* Without a slope, minus infinity makes no NaN. */
    return relu->slope == 0
               ? 0
               : (float)(relu->slope * ((double)x - relu->threshold));
}

cellgate_status cg_host_relu(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    float *y = cg_host_output(call, 0);
    int64_t count = cg_host_extent(shape, 0, shape->rank);

    (void)error;
    for (int64_t k = 0; y != NULL && k < count; k++)
        y[k] = rectify(&call->node->as.relu, x[k]);
    return CELLGATE_OK;
}
