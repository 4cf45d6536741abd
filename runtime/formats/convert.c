/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/convert.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "cellgate/cellgate.h"
#include "cellgate/plugin.h"
#include "runtime/formats/tensor.h"

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float cg_half_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t magnitude = bits & 0x7fffu;

    if (magnitude >= 0x7c00u) /* infinity or NaN */
        return float_of_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x0400u) { /* zero or subnormal: in units of 2^-24 */
        float value = (float)magnitude * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    /* The exponents' biases are 15 and 127. */
    return float_of_bits(sign | ((magnitude << 13) + ((127u - 15u) << 23)));
}

float cg_bfloat16_to_float(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

/* ---- To float32 -------------------------------------------------------- */

/* The index of the first element that does not fit, or `count`. */
static size_t narrow_doubles(const double *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* Half a unit above FLT_MAX rounds to infinity, and less does not. */
        if (isfinite(in[i]) && fabs(in[i]) >= 0x1.ffffffp127)
            return i;
        out[i] = (float)in[i];
    }
    return count;
}

static void widen_halves(const uint16_t *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = cg_half_to_float(in[i]);
}

static void widen_bfloat16s(const uint16_t *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = cg_bfloat16_to_float(in[i]);
}

static void convert_i32(const int32_t *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)in[i];
}

static void convert_i64(const int64_t *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)in[i];
}

static void convert_u8(const uint8_t *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)in[i];
}

static void convert_bool(const uint8_t *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] != 0 ? 1.0f : 0.0f;
}

static cellgate_status refuse_tensor(const cellgate_tensor *tensor,
                                     cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_INVALID,
                         "a tensor of dtype %d and rank %d has no valid size",
                         (int)tensor->dtype, (int)tensor->rank);
}

cellgate_status cg_narrow_f32(const cellgate_tensor *tensor, float *out,
                              int64_t *where, cellgate_error *error)
{
    const void *data = tensor->data;
    size_t count, done;

    if (!cg_tensor_size(tensor, &count, NULL))
        return refuse_tensor(tensor, error);
    done = count;
    switch ((cellgate_dtype)tensor->dtype) {
    case CELLGATE_F32:
        if (count > 0)
            memcpy(out, data, count * sizeof *out);
        break;
    case CELLGATE_F16:
        widen_halves(data, out, count);
        break;
    case CELLGATE_BF16:
        widen_bfloat16s(data, out, count);
        break;
    case CELLGATE_I32:
        convert_i32(data, out, count);
        break;
    case CELLGATE_F64:
        done = narrow_doubles(data, out, count);
        break;
    case CELLGATE_I64:
        convert_i64(data, out, count);
        break;
    case CELLGATE_U8:
        convert_u8(data, out, count);
        break;
    case CELLGATE_BOOL:
        convert_bool(data, out, count);
        break;
    }
    if (done == count)
        return CELLGATE_OK;
    if (where != NULL)
        *where = (int64_t)done;
    return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                         "%g at flat index %zu is beyond float32's range",
                         ((const double *)data)[done], done);
}

/* ---- To int32 ---------------------------------------------------------- */

static cellgate_status refuse_integer(int64_t value, size_t index,
                                      int32_t lowest, int32_t highest,
                                      cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                         "%" PRId64 " at flat index %zu is outside %" PRId32
                         " to %" PRId32,
                         value, index, lowest, highest);
}

static cellgate_status refuse_number(double value, size_t index, int32_t lowest,
                                     int32_t highest, cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                         "%g at flat index %zu is not a whole number from "
                         "%" PRId32 " to %" PRId32,
                         value, index, lowest, highest);
}

static int64_t integer_at(const cellgate_tensor *tensor, size_t index)
{
    switch ((cellgate_dtype)tensor->dtype) {
    case CELLGATE_I32:
        return ((const int32_t *)tensor->data)[index];
    case CELLGATE_I64:
        return ((const int64_t *)tensor->data)[index];
    case CELLGATE_BOOL:
        return ((const uint8_t *)tensor->data)[index] != 0;
    default:
        return ((const uint8_t *)tensor->data)[index];
    }
}

static double number_at(const cellgate_tensor *tensor, size_t index)
{
    switch ((cellgate_dtype)tensor->dtype) {
    case CELLGATE_F16:
        return (double)cg_half_to_float(
            ((const uint16_t *)tensor->data)[index]);
    case CELLGATE_BF16:
        return (double)cg_bfloat16_to_float(
            ((const uint16_t *)tensor->data)[index]);
    case CELLGATE_F64:
        return ((const double *)tensor->data)[index];
    default:
        return (double)((const float *)tensor->data)[index];
    }
}

static int is_float(int32_t dtype)
{
    return dtype == CELLGATE_F32 || dtype == CELLGATE_F16 ||
           dtype == CELLGATE_BF16 || dtype == CELLGATE_F64;
}

/* One id; the same checks whatever it was stored as. */
static cellgate_status narrow_id(const cellgate_tensor *tensor, size_t index,
                                 int32_t lowest, int32_t highest, int32_t *out,
                                 cellgate_error *error)
{
    if (is_float(tensor->dtype)) {
        double value = number_at(tensor, index);
        if (!(value >= lowest && value <= highest) || value != trunc(value))
            return refuse_number(value, index, lowest, highest, error);
        *out = (int32_t)value;
    } else {
        int64_t value = integer_at(tensor, index);
        if (value < lowest || value > highest)
            return refuse_integer(value, index, lowest, highest, error);
        *out = (int32_t)value;
    }
    return CELLGATE_OK;
}

cellgate_status cg_narrow_ids(const cellgate_tensor *tensor, int32_t lowest,
                              int32_t highest, int32_t *out, int64_t *where,
                              cellgate_error *error)
{
    size_t count;

    if (!cg_tensor_size(tensor, &count, NULL))
        return refuse_tensor(tensor, error);
    for (size_t i = 0; i < count; i++) {
        cellgate_status status =
            narrow_id(tensor, i, lowest, highest, &out[i], error);
        if (status != CELLGATE_OK) {
            if (where != NULL)
                *where = (int64_t)i;
            return status;
        }
    }
    return CELLGATE_OK;
}
