/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "tests/oracle/oracle.h"

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* log(1 + e^x) */
static double softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}

static double between(double low, double x, double high)
{
    return x < low ? low : x > high ? high : x;
}

static double selu(double x)
{
    const double s = 1.0507009873554805, t = 1.6732632423543772;
    return s * (x > 0.0 ? x : t * expm1(x));
}

static double celu(double x, double a)
{
    double below = a * expm1(x / a);
    return (x > 0.0 ? x : 0.0) + (below < 0.0 ? below : 0.0);
}

static double sparse_plus(double x)
{
    return x <= -1.0 ? 0.0 : x >= 1.0 ? x : (x + 1.0) * (x + 1.0) / 4.0;
}

static double gelu_tanh(double x)
{
    const double root = 0.79788456080286535588; /* sqrt(2/pi) */
    return x * (1.0 + tanh(root * (x + 0.044715 * x * x * x))) / 2.0;
}

double oracle_activate(const cellgate_activation *activation, double x)
{
    const double a = activation->alpha, b = activation->beta;

    if (isnan(x))
        return x;
    switch (activation->kind) {
    case CELLGATE_TANH:
        return tanh(x);
    case CELLGATE_SIGMOID:
        return sigmoid(x);
    case CELLGATE_LINEAR:
        return x;
    case CELLGATE_RELU:
        return x > 0.0 ? x : 0.0;
    case CELLGATE_LEAKY_RELU:
        return x < 0.0 ? a * x : x;
    case CELLGATE_RELU6:
        return between(0.0, x, 6.0);
    case CELLGATE_ELU:
        return x > 0.0 ? x : a * expm1(x);
    case CELLGATE_SELU:
        return selu(x);
    case CELLGATE_CELU:
        return celu(x, a);
    case CELLGATE_SOFTPLUS:
        return softplus(x);
    case CELLGATE_SOFTSIGN:
        return isinf(x) ? copysign(1.0, x) : x / (1.0 + fabs(x));
    case CELLGATE_SQUAREPLUS:
        return x < 0.0 ? a / (2.0 * (sqrt(x * x + a) - x))
                       : (x + sqrt(x * x + a)) / 2.0;
    case CELLGATE_SOFT_SHRINK:
        return x > a ? x - a : x < -a ? x + a : 0.0;
    case CELLGATE_HARD_SHRINK:
        return fabs(x) > a ? x : 0.0;
    case CELLGATE_SPARSE_PLUS:
        return sparse_plus(x);
    case CELLGATE_SILU:
        return x == -INFINITY ? 0.0 : x * sigmoid(x);
    case CELLGATE_GELU_ERF:
        return x == -INFINITY ? 0.0 : x * erfc(-x / sqrt(2.0)) / 2.0;
    case CELLGATE_GELU_TANH:
        return x == -INFINITY ? 0.0 : gelu_tanh(x);
    case CELLGATE_TANH_SHRINK:
        return x - tanh(x);
    case CELLGATE_THRESHOLD:
        return x > a ? x : b;
    case CELLGATE_SPARSE_SIGMOID:
        return between(0.0, (x + 1.0) / 2.0, 1.0);
    case CELLGATE_EXPONENTIAL:
        return exp(x);
    case CELLGATE_HARD_SIGMOID:
        return between(0.0, a * x + b, 1.0);
    case CELLGATE_HARD_SILU:
        return x == -INFINITY ? 0.0 : x * between(0.0, x / 6.0 + 0.5, 1.0);
    case CELLGATE_HARD_TANH:
        return between(-1.0, x, 1.0);
    case CELLGATE_MISH:
        return x == -INFINITY ? 0.0 : x * tanh(softplus(x));
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

double oracle_jump_distance(const cellgate_activation *activation, double x)
{
    switch (activation->kind) {
    case CELLGATE_HARD_SHRINK:
        return fabs(fabs(x) - activation->alpha);
    case CELLGATE_THRESHOLD:
        return fabs(x - activation->alpha);
    default:
        return INFINITY;
    }
}

double oracle_activation_scale(const cellgate_activation *activation, double x,
                               double value)
{
    double parameters = fabs(activation->alpha) + fabs(activation->beta);

    switch (activation->kind) {
    case CELLGATE_TANH:
    case CELLGATE_SIGMOID:
    case CELLGATE_SOFTSIGN:
    case CELLGATE_SPARSE_SIGMOID:
    case CELLGATE_HARD_TANH:
    case CELLGATE_HARD_SIGMOID:
    case CELLGATE_SCALED_TANH:
    case CELLGATE_EXPONENTIAL:
        return fabs(value) + 1.0 + parameters;
    default:
        return fabs(value) + fabs(x) + 1.0 + parameters;
    }
}
