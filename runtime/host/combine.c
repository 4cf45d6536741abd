/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that join values element by element, and the casts between dtypes. */
#include "config.h"

#include <math.h>

#include "runtime/host/ops.h"

/* ---- Casts --------------------------------------------------------------- */

static int32_t to_id(float x)
{
    /* Of floats, these are the bounds that an int32 holds. */
    return x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN;
}

static float to_number(const void *x, int32_t dtype, int64_t at)
{
    switch (dtype) {
    case CELLGATE_I32:
        return (float)((const int32_t *)x)[at];
    case CELLGATE_U8:
        return ((const uint8_t *)x)[at] != 0 ? 1.0f : 0.0f;
    default:
        return ((const float *)x)[at];
    }
}

/* An absent mask is all valid. */
cellgate_status cg_host_cast(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const int32_t dtype = call->model->values[call->node->inputs[0]].dtype;
    const int64_t count = cg_host_extent(shape, 0, shape->rank);
    const void *x = cg_host_input(call, 0);
    void *y = cg_host_output(call, 0);

    (void)error;
    for (int64_t at = 0; y != NULL && at < count; at++) {
        if (call->node->as.cast == CG_CAST_NUMBERS)
            ((float *)y)[at] = x != NULL ? to_number(x, dtype, at) : 1.0f;
        else if (dtype == CELLGATE_I32)
            ((int32_t *)y)[at] = ((const int32_t *)x)[at];
        else
            ((int32_t *)y)[at] =
                to_id(x != NULL ? to_number(x, dtype, at) : 1.0f);
    }
    return CELLGATE_OK;
}

/* ---- Inputs that stretch ------------------------------------------------- */

/*
 * How far apart elements of an input lie along each axis of the output: 0
 * where the input has one index only, or no such axis.
 */
static void find_strides(const cg_shape *x, const cg_shape *y, int64_t *strides)
{
    const int32_t shift = y->rank - x->rank;
    int64_t stride = 1;

    memset(strides, 0, CELLGATE_MAX_RANK * sizeof *strides);
    for (int32_t axis = x->rank - 1; axis >= 0; axis--) {
        if (axis == 0 || x->extent[axis] != 1)
            strides[axis == 0 ? 0 : axis + shift] = stride;
        stride *= x->extent[axis];
    }
}

/* Where the elements of row `row` of the output begin in an input, a row being
   all of the last axis; *step is how far apart they are. */
static int64_t find_row(const cg_shape *x, const cg_shape *y, int64_t row,
                        int64_t *step)
{
    int64_t strides[CELLGATE_MAX_RANK], offset = 0;

    find_strides(x, y, strides);
    for (int32_t axis = y->rank - 2; axis >= 0; axis--) {
        offset += row % y->extent[axis] * strides[axis];
        row /= y->extent[axis];
    }
    *step = strides[y->rank - 1];
    return offset;
}

/* ---- Numbers ------------------------------------------------------------- */

static double joined(cg_combine mode, double a, double b)
{
    switch (mode) {
    case CG_COMBINE_SUBTRACT:
        return a - b;
    case CG_COMBINE_MULTIPLY:
        return a * b;
    case CG_COMBINE_DIVIDE:
        return a / b;
    case CG_COMBINE_MAXIMUM:
        return isnan(a) || a > b ? a : b;
    case CG_COMBINE_MINIMUM:
        return isnan(a) || a < b ? a : b;
    default: /* CG_COMBINE_ADD, CG_COMBINE_AVERAGE */
        return a + b;
    }
}

#define BLOCK 64 /* of sums in double */

static void combine_block(const cg_host_call *call, const cg_shape *shape,
                          int64_t row, int64_t begin, int64_t count, float *y)
{
    const cg_combine mode = call->node->as.combine;
    const size_t inputs = call->node->input_count;
    double sums[BLOCK] = { 0 };

    for (size_t i = 0; i < inputs; i++) {
        const float *x = cg_host_input(call, i);
        int64_t step;

        x += find_row(cg_host_input_shape(call, i), shape, row, &step);
        x += begin * step;
        for (int64_t k = 0; k < count; k++)
            sums[k] = i == 0 ? (double)x[k * step]
                             : joined(mode, sums[k], (double)x[k * step]);
    }
    for (int64_t k = 0; k < count; k++)
        y[k] = (float)(mode == CG_COMBINE_AVERAGE ? sums[k] / (double)inputs
                                                  : sums[k]);
}

cellgate_status cg_host_combine(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_output_shape(call, 0);
    float *y = cg_host_output(call, 0);
    const int64_t size = shape->extent[shape->rank - 1];
    const int64_t rows = cg_host_extent(shape, 0, shape->rank - 1);

    (void)error;
    for (int64_t row = 0; y != NULL && row < rows; row++)
        for (int64_t begin = 0; begin < size; begin += BLOCK)
            combine_block(call, shape, row, begin,
                          size - begin < BLOCK ? size - begin : BLOCK,
                          y + row * size + begin);
    return CELLGATE_OK;
}

/* ---- Selection ---------------------------------------------------------- */

static void select_row(const cg_host_call *call, const cg_shape *shape,
                       int64_t row, float *y)
{
    const float *x = cg_host_input(call, 0), *other = cg_host_input(call, 2);
    const uint8_t *mask = cg_host_input(call, 1);
    cg_shape wide = *cg_host_input_shape(call, 1);
    int64_t x_step, other_step = 0, mask_step = 0;

    x += find_row(cg_host_input_shape(call, 0), shape, row, &x_step);
    if (other != NULL)
        other +=
            find_row(cg_host_input_shape(call, 2), shape, row, &other_step);
    wide.extent[wide.rank++] = 1;
    if (mask != NULL)
        mask += find_row(&wide, shape, row, &mask_step);
    for (int64_t k = 0; k < shape->extent[shape->rank - 1]; k++) {
        if (mask == NULL || mask[k * mask_step] != 0)
            y[k] = x[k * x_step];
        else
            y[k] =
                other != NULL ? other[k * other_step] : call->node->as.select;
    }
}

cellgate_status cg_host_select(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_output_shape(call, 0);
    float *y = cg_host_output(call, 0);
    const int64_t size = shape->extent[shape->rank - 1];
    const int64_t rows = cg_host_extent(shape, 0, shape->rank - 1);

    (void)error;
    for (int64_t row = 0; y != NULL && row < rows; row++)
        select_row(call, shape, row, y + row * size);
    return CELLGATE_OK;
}

/* ---- Masks --------------------------------------------------------------- */

static void logic_row(const cg_host_call *call, const cg_shape *shape,
                      int64_t row, uint8_t *y)
{
    const cg_logic mode = call->node->as.logic;
    const int64_t size = shape->extent[shape->rank - 1];

    memset(y, mode != CG_LOGIC_OR, (size_t)size);
    for (size_t i = 0; i < call->node->input_count; i++) {
        const uint8_t *x = cg_host_input(call, i);
        int64_t step = 0, offset = 0;

        if (x != NULL)
            offset = find_row(cg_host_input_shape(call, i), shape, row, &step);
        for (int64_t k = 0; k < size; k++) {
            const bool valid = x == NULL || x[offset + k * step] != 0;

            if (mode == CG_LOGIC_OR)
                y[k] = y[k] || valid;
            else
                y[k] = y[k] && (mode == CG_LOGIC_NOT ? !valid : valid);
        }
    }
}

cellgate_status cg_host_logic(const cg_host_call *call, cellgate_error *error)
{
    const cg_shape *shape = cg_host_output_shape(call, 0);
    uint8_t *y = cg_host_output(call, 0);
    const int64_t size = shape->extent[shape->rank - 1];
    const int64_t rows = cg_host_extent(shape, 0, shape->rank - 1);

    (void)error;
    for (int64_t row = 0; y != NULL && row < rows; row++)
        logic_row(call, shape, row, y + row * size);
    return CELLGATE_OK;
}

cellgate_status cg_host_valid(const cg_host_call *call, cellgate_error *error)
{
    uint8_t *y = cg_host_output(call, 0);

    (void)error;
    if (y != NULL)
        memset(y, 1,
               (size_t)cg_host_extent(cg_host_input_shape(call, 0), 0, 2));
    return CELLGATE_OK;
}
