/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalisation by the input's own moments, and what scales and shifts by
 * numbers of the file: weights that are spread over the trailing axes.
 */
#include "config.h"

#include <math.h>

#include "runtime/host/ops.h"

static int64_t product(const cg_extents *extents)
{
    int64_t elements = 1;

    for (int32_t i = 0; i < extents->count; i++)
        elements *= extents->extent[i];
    return elements;
}

/* What x - *mean is multiplied with. */
static double moments(const cg_normalize *normalize, const float *x,
                      int64_t size, double *mean)
{
    const double epsilon = normalize->epsilon;
    double sum = 0, squares = 0, centre;

    for (int64_t k = 0; k < size; k++)
        sum += x[k];
    centre = normalize->mode == CG_NORMALIZE_RMS ||
                     normalize->mode == CG_NORMALIZE_UNIT
                 ? 0
                 : sum / (double)size;
    for (int64_t k = 0; k < size; k++)
        squares += (x[k] - centre) * (x[k] - centre);
    *mean = normalize->mode == CG_NORMALIZE_MOMENTS ? centre : 0;
    if (normalize->mode == CG_NORMALIZE_UNIT)
        return 1 / sqrt(squares < epsilon ? epsilon : squares);
    return 1 / sqrt(squares / (double)size + epsilon);
}

cellgate_status cg_host_normalize(const cg_host_call *call,
                                  cellgate_error *error)
{
    const cg_normalize *normalize = &call->node->as.normalize;
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    const float *gamma = cg_host_weight(call, 0);
    const float *beta = cg_host_weight(call, 1);
    float *y = cg_host_output(call, 0);
    const int64_t size = product(&normalize->extents);
    const int64_t rows =
        cg_host_extent(shape, 0, shape->rank - normalize->extents.count);

    (void)error;
    for (int64_t row = 0; y != NULL && row < rows; row++) {
        double mean;
        const double factor = moments(normalize, x + row * size, size, &mean);

        for (int64_t k = 0; k < size; k++) {
            double value = (x[row * size + k] - mean) * factor;

            if (gamma != NULL)
                value *= gamma[k];
            if (beta != NULL)
                value += beta[k];
            y[row * size + k] = (float)value;
        }
    }
    return CELLGATE_OK;
}

/* The weight that element `at` of the trailing axes of x has: an extent of 1
   serves the whole axis. */
static int64_t spread(const cg_extents *extents, const cg_shape *shape,
                      int64_t at)
{
    int64_t index = 0, size = 1;

    for (int32_t i = extents->count - 1; i >= 0; i--) {
        const int64_t extent = shape->extent[shape->rank - extents->count + i];

        if (extents->extent[i] != 1)
            index += at % extent * size;
        size *= extents->extent[i];
        at /= extent;
    }
    return index;
}

cellgate_status cg_host_affine(const cg_host_call *call, cellgate_error *error)
{
    const cg_extents *extents = &call->node->as.affine.extents;
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    const float *shift = cg_host_weight(call, 0);
    const float *scale = cg_host_weight(call, 1);
    const float *offset = cg_host_weight(call, 2);
    float *y = cg_host_output(call, 0);
    const int64_t count = cg_host_extent(shape, 0, shape->rank);

    (void)error;
    for (int64_t k = 0; y != NULL && k < count; k++) {
        const int64_t at = spread(extents, shape, k);
        double value = x[k];

        if (shift != NULL)
            value -= shift[at];
        value *= scale[at];
        if (offset != NULL)
            value += offset[at];
        y[k] = (float)value;
    }
    return CELLGATE_OK;
}

cellgate_status cg_host_prelu(const cg_host_call *call, cellgate_error *error)
{
    const cg_extents *extents = &call->node->as.prelu;
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const float *x = cg_host_input(call, 0);
    const float *alpha = cg_host_weight(call, 0);
    float *y = cg_host_output(call, 0);
    const int64_t count = cg_host_extent(shape, 0, shape->rank);

    (void)error;
    for (int64_t k = 0; y != NULL && k < count; k++)
        y[k] = x[k] < 0 ? x[k] * alpha[spread(extents, shape, k)] : x[k];
    return CELLGATE_OK;
}
