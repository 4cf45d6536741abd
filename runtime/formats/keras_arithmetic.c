/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that compute numbers from numbers, element by element, and
   products of matrices. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/formats/keras_operation.h"
#include "runtime/formats/keras_trailing.h"

#define MAX_POWER 8

/* The result is in the order of its first input. */
static cellgate_status finish(cg_keras_call *call, int32_t value,
                              cellgate_error *error)
{
    cellgate_status status = cg_keras_return(call, value, CG_NO_VALUE, error);

    if (status == CELLGATE_OK)
        call->outputs.items[0].turned = call->inputs.items[0].turned;
    return status;
}

/* ---- With numbers -------------------------------------------------------- */

/* One number, or an array of them, that a tensor meets. */
typedef struct constant {
    cg_keras_numbers numbers;
    cg_extents extents; /* of the trailing axes */
} constant;

/* What it makes of each of its numbers. */
static cellgate_status derive(const cg_keras_call *call, const char *what,
                              const constant *from, double factor, double power,
                              const float **data, cellgate_error *error)
{
    const int64_t count = cg_keras_product(&from->extents);
    char name[CG_KERAS_PLACE];
    float *made = NULL;
    bool fresh;
    cellgate_status status;

    (void)snprintf(name, sizeof name, "%s of %.200s", what, call->name);
    status =
        cg_keras_derive(call->layer, name, (size_t)count, &made, &fresh, error);
    for (int64_t i = 0; status == CELLGATE_OK && fresh && i < count; i++) {
        made[i] =
            (float)(power == 0 ? factor
                               : factor * pow(from->numbers.items[i], power));
        if (!isfinite(made[i]))
            status = cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                                   "it divides by 0, or by next to nothing");
    }
    *data = made;
    return status;
}

/* x * scale + offset, by the constant c of kind `mode`; `first`: it comes
   before x. */
static cellgate_status scale(const cg_keras_call *call, int mode, bool first,
                             const constant *c, int32_t x, int32_t *value,
                             cellgate_error *error)
{
    const bool offset = mode == CG_COMBINE_ADD || mode == CG_COMBINE_SUBTRACT;
    const cg_node node = { .kind = CG_AFFINE,
                           .as.affine = { .extents = c->extents,
                                          .has_offset = true } };
    cg_weight weights[3] = { { 0 } };
    const double sign = mode == CG_COMBINE_SUBTRACT ? -1 : 1;
    cellgate_status status =
        derive(call, "scale", c, offset && first ? sign : 1,
               mode == CG_COMBINE_MULTIPLY ? 1
               : mode == CG_COMBINE_DIVIDE ? -1
                                           : 0,
               &weights[CG_KERAS_SCALE].data, error);

    if (status == CELLGATE_OK)
        status = derive(call, "offset", c,
                        !offset ? 0
                        : first ? 1
                                : sign,
                        offset ? 1 : 0, &weights[CG_KERAS_OFFSET].data, error);
    return status == CELLGATE_OK
               ? cg_keras_emit_weighted(call, &node, x, weights, 3, "", value,
                                        error)
               : status;
}

static cellgate_status negate(const cg_keras_call *call, int32_t x,
                              const char *suffix, int32_t *value,
                              cellgate_error *error)
{
    const cg_node node = { .kind = CG_AFFINE,
                           .as.affine = { .extents = { 1, { 1 } },
                                          .has_offset = true } };
    cellgate_model *model = call->layer->reader->model;
    float *const factor = cg_model_memory(model, sizeof *factor);
    float *const offset = cg_model_memory(model, sizeof *offset);
    cg_weight weights[3] = { { 0 } };

    if (factor == NULL || offset == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the layers");
    *factor = -1;
    *offset = 0;
    weights[CG_KERAS_SCALE].data = factor;
    weights[CG_KERAS_OFFSET].data = offset;
    return cg_keras_emit_weighted(call, &node, x, weights, 3, suffix, value,
                                  error);
}

/* x, or the number where that is greater. */
static cellgate_status at_least(const cg_keras_call *call, int32_t x,
                                double number, const char *suffix,
                                int32_t *value, cellgate_error *error)
{
    const cg_node node = { .kind = CG_ACTIVATION,
                           .as.activation = { CELLGATE_THRESHOLD, (float)number,
                                              (float)number } };

    return cg_keras_emit_simple(call, &node, &x, 1, suffix, value, error);
}

static cellgate_status at_most(const cg_keras_call *call, int32_t x,
                               double number, int32_t *value,
                               cellgate_error *error)
{
    cellgate_status status = negate(call, x, ":negative", &x, error);

    if (status == CELLGATE_OK)
        status = at_least(call, x, -number, ":limited", &x, error);
    return status == CELLGATE_OK ? negate(call, x, "", value, error) : status;
}

static cellgate_status compute_with(const cg_keras_call *call, bool first,
                                    const constant *c, int32_t x,
                                    int32_t *value, cellgate_error *error)
{
    const int mode = cg_keras_operation_of(call)->detail;
    const bool limits =
        mode == CG_COMBINE_MAXIMUM || mode == CG_COMBINE_MINIMUM;

    if (limits && c->numbers.shape.count != 0)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it is called with an array of numbers; with one "
                             "number, or another tensor, it is supported");
    if (mode == CG_COMBINE_DIVIDE && first)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "numbers divided by a tensor are not supported; "
                             "a tensor divided by numbers, or by another one, "
                             "is");
    if (mode == CG_COMBINE_MAXIMUM)
        return at_least(call, x, c->numbers.items[0], "", value, error);
    if (mode == CG_COMBINE_MINIMUM)
        return at_most(call, x, c->numbers.items[0], value, error);
    return scale(call, mode, first, c, x, value, error);
}

/* Which axes of x the constant's lie over: the last ones. */
static cellgate_status fit(const cg_keras_call *call, const cg_shape *x,
                           constant *c, cellgate_error *error)
{
    cg_extents *extents = &c->extents;
    bool fits;

    *extents = c->numbers.shape;
    /* What is 1 in front of the others changes nothing. */
    while (extents->count > 1 && extents->extent[0] == 1) {
        extents->count--;
        memmove(extents->extent, extents->extent + 1,
                (size_t)extents->count * sizeof extents->extent[0]);
        extents->extent[extents->count] = 0;
    }
    if (extents->count == 0)
        *extents = (cg_extents){ .count = 1, .extent = { 1 } };
    fits = extents->count < x->rank;
    for (int32_t i = 1; fits && i <= extents->count; i++) {
        const int64_t own = extents->extent[extents->count - i];

        fits = own == 1 || own == x->extent[x->rank - i];
    }
    if (fits)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                         "the array of numbers that it is called with does "
                         "not fit the last axes of its tensor");
}

static cellgate_status compute_constant(const cg_keras_call *call,
                                        const cg_keras_operand *sides,
                                        int32_t *value, cellgate_error *error)
{
    const bool first = sides[0].tensor == NULL;
    const cg_keras_tensor *x = sides[first].tensor;
    constant c = { 0 };
    cellgate_status status =
        x->turned && !json_is_number(sides[!first].constant)
            ? cg_keras_refuse_operation(call->layer, error)
            : cg_keras_read_numbers(call->layer, "its constant",
                                    sides[!first].constant, &c.numbers, error);

    if (status == CELLGATE_OK)
        status = fit(call, cg_keras_shape(call, x->value), &c, error);
    if (status == CELLGATE_OK)
        status = compute_with(call, first, &c, x->value, value, error);
    free(c.numbers.items);
    return status;
}

/* ---- Of tensors ---------------------------------------------------------- */

/* With fewer axes, one would match the other's last ones. */
static cellgate_status combine(const cg_keras_call *call, cg_combine mode,
                               const cg_keras_tensor *x, size_t count,
                               int32_t *value, cellgate_error *error)
{
    const cg_node node = { .kind = CG_COMBINE, .as.combine = mode };
    int32_t *inputs = calloc(count + 1, sizeof *inputs);
    cellgate_status status = CELLGATE_OK;

    if (inputs == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the layers");
    for (size_t i = 0; status == CELLGATE_OK && i < count; i++) {
        inputs[i] = x[i].value;
        if (cg_keras_shape(call, inputs[i])->rank !=
                cg_keras_shape(call, inputs[0])->rank ||
            x[i].turned != x[0].turned)
            status = cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                                   "arithmetic is supported between tensors of "
                                   "as many axes, in one order, and with "
                                   "numbers");
    }
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_simple(call, &node, inputs, count, "", value, error);
    free(inputs);
    return status;
}

static cellgate_status claim_numbers(cg_keras_call *call, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < call->inputs.count; i++)
        status =
            cg_keras_claim(call, &call->inputs.items[i], CELLGATE_F32, error);
    return status;
}

/* Its detail is a cg_combine, or -1: the negative. */
cellgate_status cg_keras_build_arithmetic(cg_keras_call *call,
                                          cellgate_error *error)
{
    const int mode = cg_keras_operation_of(call)->detail;
    const size_t wanted = mode < 0 ? 1 : 2;
    cg_keras_operand sides[2];
    size_t count;
    int32_t value = CG_NO_VALUE;
    cellgate_status status =
        cg_keras_get_operands(call, wanted, wanted, sides, &count, error);

    if (status == CELLGATE_OK)
        status = claim_numbers(call, error);
    if (status != CELLGATE_OK)
        return status;
    if (mode < 0)
        status = negate(call, sides[0].tensor->value, "", &value, error);
    else if (sides[0].tensor == NULL || sides[1].tensor == NULL)
        status = compute_constant(call, sides, &value, error);
    else
        status = combine(call, (cg_combine)mode, call->inputs.items, 2, &value,
                         error);
    return status == CELLGATE_OK ? finish(call, value, error) : status;
}

/* Of a list of tensors. */
cellgate_status cg_keras_build_sum_of(cg_keras_call *call,
                                      cellgate_error *error)
{
    int32_t value;
    cellgate_status status = claim_numbers(call, error);

    if (status == CELLGATE_OK && call->inputs.count == 0)
        return cg_keras_refuse_operation(call->layer, error);
    if (status == CELLGATE_OK)
        status = combine(call, CG_COMBINE_ADD, call->inputs.items,
                         call->inputs.count, &value, error);
    return status == CELLGATE_OK ? finish(call, value, error) : status;
}

/* ---- Of one tensor ------------------------------------------------------- */

/* An activation's own numbers, where it takes any. */
static cellgate_status read_parameters(const cg_keras_layer *layer,
                                       cellgate_activation *activation,
                                       cellgate_error *error)
{
    const char *const *options = layer->class->options;
    float *const numbers[] = { &activation->alpha, &activation->beta };
    bool approximate = false;
    cellgate_status status = CELLGATE_OK;

    if (activation->kind == CELLGATE_GELU_ERF) {
        status =
            cg_keras_get_flag(layer, "approximate", false, &approximate, error);
        if (approximate)
            activation->kind = CELLGATE_GELU_TANH;
        return status;
    }
    for (size_t i = 0; status == CELLGATE_OK && i < 2 && options[i] != NULL;
         i++)
        status = cg_keras_get_number(layer, options[i], (double)*numbers[i],
                                     numbers[i], error);
    return status;
}

cellgate_status cg_keras_build_function(cg_keras_call *call,
                                        cellgate_error *error)
{
    cg_keras_activation activation = {
        .kind = CG_ACTIVATION,
        .elementwise = cg_keras_operation_of(call)->activation
    };
    cg_keras_operand x;
    size_t count;
    int32_t value;
    cellgate_status status =
        cg_keras_get_operands(call, 1, 1, &x, &count, error);

    if (status == CELLGATE_OK)
        status = claim_numbers(call, error);
    if (status == CELLGATE_OK)
        status = read_parameters(call->layer, &activation.elementwise, error);
    if (status == CELLGATE_OK)
        status = cg_keras_activate(call, &activation, x.tensor->value, "", "",
                                   &value, error);
    return status == CELLGATE_OK ? finish(call, value, error) : status;
}

cellgate_status cg_keras_build_absolute(cg_keras_call *call,
                                        cellgate_error *error)
{
    cg_keras_tensor pair[2] = { 0 };
    int32_t value;
    cellgate_status status = cg_keras_take_numbers(call, &pair[0], error);

    if (status == CELLGATE_OK)
        status =
            negate(call, pair[0].value, ":negative", &pair[1].value, error);
    if (status == CELLGATE_OK)
        status = combine(call, CG_COMBINE_MAXIMUM, pair, 2, &value, error);
    return status == CELLGATE_OK ? finish(call, value, error) : status;
}

/* Its detail is the power, or 0: the second argument is. */
cellgate_status cg_keras_build_power(cg_keras_call *call, cellgate_error *error)
{
    const int fixed = cg_keras_operation_of(call)->detail;
    const size_t wanted = fixed != 0 ? 1 : 2;
    cg_keras_operand sides[2];
    cg_keras_tensor factors[MAX_POWER];
    double power = fixed;
    size_t count;
    int32_t value;
    cellgate_status status =
        cg_keras_get_operands(call, wanted, wanted, sides, &count, error);

    if (status == CELLGATE_OK)
        status = claim_numbers(call, error);
    if (status != CELLGATE_OK)
        return status;
    if (fixed == 0)
        power = json_number_value(sides[1].constant);
    if (sides[0].tensor == NULL || !(power >= 1 && power <= MAX_POWER) ||
        power != floor(power))
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "powers of a tensor are supported for whole "
                             "exponents from 1 to %d",
                             MAX_POWER);
    for (size_t i = 0; i < (size_t)power; i++)
        factors[i] = *sides[0].tensor;
    status = combine(call, CG_COMBINE_MULTIPLY, factors, (size_t)power, &value,
                     error);
    return status == CELLGATE_OK ? finish(call, value, error) : status;
}

cellgate_status cg_keras_build_clip(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    float least = 0, most = 0;
    cg_keras_tensor x = { 0 };
    int32_t value;
    cellgate_status status = cg_keras_take_numbers(call, &x, error);

    if (status == CELLGATE_OK &&
        (!json_is_number(cg_keras_get_value(layer, "x_min")) ||
         !json_is_number(cg_keras_get_value(layer, "x_max"))))
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "limits are supported that are numbers");
    if (status == CELLGATE_OK)
        status = cg_keras_get_number(layer, "x_min", 0, &least, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_number(layer, "x_max", 0, &most, error);
    if (status == CELLGATE_OK)
        status =
            at_least(call, x.value, (double)least, ":least", &value, error);
    if (status == CELLGATE_OK)
        status = at_most(call, value, (double)most, &value, error);
    return status == CELLGATE_OK ? finish(call, value, error) : status;
}

/* Its detail is a cg_kind. */
cellgate_status cg_keras_build_softmax_of(cg_keras_call *call,
                                          cellgate_error *error)
{
    const cg_keras_activation activation = {
        .kind = (cg_kind)cg_keras_operation_of(call)->detail
    };
    cg_keras_tensor x = { 0 };
    cg_extents axes = { 0 }, last;
    int32_t rank, value;
    cellgate_status status;

    if (activation.kind == CG_SOFTMAX)
        return cg_keras_build_softmax(call, error);
    status = cg_keras_take_numbers(call, &x, error);
    if (status != CELLGATE_OK)
        return status;
    rank = cg_keras_shape(call, x.value)->rank;
    last = cg_keras_last_axis(rank);
    status = cg_keras_get_axes(call->layer, "axis", rank, &last, &axes, error);
    if (status == CELLGATE_OK &&
        (axes.count != 1 || axes.extent[0] != rank - 1))
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it is supported over the last axis");
    if (status == CELLGATE_OK)
        status = cg_keras_activate(call, &activation, x.value, "", "", &value,
                                   error);
    return status == CELLGATE_OK ? finish(call, value, error) : status;
}

/* ---- Products ------------------------------------------------------------ */

cellgate_status cg_keras_build_matmul(cg_keras_call *call,
                                      cellgate_error *error)
{
    cg_node node = { .kind = CG_DOT };
    cg_keras_operand sides[2];
    bool turn_a = false, turn_b = false;
    int32_t inputs[2], value;
    size_t count;
    cellgate_status status =
        cg_keras_get_operands(call, 2, 2, sides, &count, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(call->layer, "transpose_a", false, &turn_a,
                                   error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(call->layer, "transpose_b", false, &turn_b,
                                   error);
    if (status == CELLGATE_OK)
        status = claim_numbers(call, error);
    for (size_t i = 0; status == CELLGATE_OK && i < 2; i++) {
        if (sides[i].tensor == NULL ||
            cg_keras_shape(call, sides[i].tensor->value)->rank != 3)
            return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                                 "products are supported of two tensors of "
                                 "three axes each; for weights use Dense, for "
                                 "other axes Dot");
        inputs[i] = sides[i].tensor->value;
    }
    if (status != CELLGATE_OK)
        return status;
    node.as.dot.axis_a = turn_a ? 1 : 2;
    node.as.dot.axis_b = turn_b ? 2 : 1;
    status = cg_keras_emit_simple(call, &node, inputs, 2, "", &value, error);
    return status == CELLGATE_OK ? finish(call, value, error) : status;
}
