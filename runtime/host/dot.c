/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "runtime/host/ops.h"

/* One row of the batch as [outer][extent][inner]: `extent` is summed over. */
typedef struct operand {
    const float *x;
    int64_t outer, extent, inner;
} operand;

static operand operand_of(const cg_host_call *call, size_t input, int32_t axis)
{
    const cg_shape *shape = cg_host_input_shape(call, input);

    return (operand){ cg_host_input(call, input),
                      cg_host_extent(shape, 1, axis), shape->extent[axis],
                      cg_host_extent(shape, axis + 1, shape->rank) };
}

/* The vector number `at` of a row; its elements are `inner` apart. */
static const float *vector(const operand *of, int64_t row, int64_t at)
{
    return of->x + row * of->outer * of->extent * of->inner +
           at / of->inner * of->extent * of->inner + at % of->inner;
}

static double dot(const float *a, int64_t a_step, const float *b,
                  int64_t b_step, int64_t count)
{
    double sum = 0;

    for (int64_t k = 0; k < count; k++)
        sum += (double)a[k * a_step] * (double)b[k * b_step];
    return sum;
}

static double divisor(const cg_dot *about, const float *x, int64_t step,
                      int64_t count)
{
    const double square = dot(x, step, x, step, count);
    const double least = (double)about->least_square;

    if (!about->normalize)
        return 1;
    return sqrt(square < least ? least : square);
}

cellgate_status cg_host_dot(const cg_host_call *call, cellgate_error *error)
{
    const cg_dot *about = &call->node->as.dot;
    const operand a = operand_of(call, 0, about->axis_a);
    const operand b = operand_of(call, 1, about->axis_b);
    const int64_t rows = cg_host_input_shape(call, 0)->extent[0];
    float *y = cg_host_output(call, 0);

    (void)error;
    for (int64_t row = 0; y != NULL && row < rows; row++)
        for (int64_t i = 0; i < a.outer * a.inner; i++) {
            const float *u = vector(&a, row, i);
            const double norm = divisor(about, u, a.inner, a.extent);

            for (int64_t j = 0; j < b.outer * b.inner; j++) {
                const float *v = vector(&b, row, j);

                *y++ = (float)(dot(u, a.inner, v, b.inner, a.extent) / norm /
                               divisor(about, v, b.inner, b.extent));
            }
        }
    return CELLGATE_OK;
}
