/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on tensors, as x + y and keras.ops write them in functional
 * models: arithmetic of tensors of as many axes or of a tensor and a number,
 * activations, and transposition. Keras 3 has a class for each; in Keras 2 all
 * are TFOpLambda, which names a function. No mask passes an operation, in
 * either.
 */
#include "config.h"

#include <math.h>

#include "runtime/formats/keras_trailing.h"

const char *const cg_keras_tf_operation_options[] = { "function", NULL };
const char *const cg_keras_transpose_options[] = { "axes", NULL };

#define CONSTANT_NAME "_CONSTANT_VALUE" /* Keras 2's, in place of a layer's */

typedef enum operation_kind {
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    MAXIMUM,
    MINIMUM,
    NEGATE,
    ACTIVATE,
    TRANSPOSE
} operation_kind;

typedef struct operation {
    const char *class_name; /* in Keras 3 */
    const char *function;   /* in Keras 2 */
    operation_kind kind;
    cellgate_activation_kind activation;
} operation;

static const operation operations[] = {
    { "Add", "__operators__.add", ADD, 0 },
    { NULL, "math.add", ADD, 0 },
    { "Divide", "math.divide", DIVIDE, 0 },
    { "Exp", "math.exp", ACTIVATE, CELLGATE_EXPONENTIAL },
    { "Maximum", "math.maximum", MAXIMUM, 0 },
    { "Minimum", "math.minimum", MINIMUM, 0 },
    { "Multiply", "math.multiply", MULTIPLY, 0 },
    { "Negative", "math.negative", NEGATE, 0 },
    { "Relu", "nn.relu", ACTIVATE, CELLGATE_RELU },
    { "Sigmoid", "math.sigmoid", ACTIVATE, CELLGATE_SIGMOID },
    { "Silu", NULL, ACTIVATE, CELLGATE_SILU },
    { "Softplus", "math.softplus", ACTIVATE, CELLGATE_SOFTPLUS },
    { "Subtract", "math.subtract", SUBTRACT, 0 },
    { "Tanh", "math.tanh", ACTIVATE, CELLGATE_TANH },
    { NULL, "compat.v1.transpose", TRANSPOSE, 0 },
    { "TrueDivide", "math.truediv", DIVIDE, 0 },
};

static bool is_named(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static const operation *find_operation(const cg_keras_layer *layer)
{
    const char *function =
        json_string_value(json_object_get(layer->config, "function"));

    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (layer->class->flags & CG_KERAS_OPERATION
                ? is_named(operations[i].class_name, layer->class_name)
                : is_named(operations[i].function, function))
            return &operations[i];
    return NULL;
}

/* ---- What it is called on ------------------------------------------------ */

/* One side: a tensor, or a number. */
typedef struct operand {
    bool is_number;
    double number;
    cg_keras_tensor tensor;
} operand;

typedef struct operands {
    operand sides[2];
    size_t count;
} operands;

static bool is_number(const json_t *json)
{
    return json_is_number(json) && isfinite((float)json_number_value(json));
}

/* Keras 2 writes the second one as a keyword, and a constant first one as a
   layer of a name of its own. */
static void find_sides(const cg_keras_call *call, const json_t *sides[2])
{
    sides[0] = json_array_get(call->args, 0);
    sides[1] = json_array_get(call->args, 1);
    if (call->layer->class->flags & CG_KERAS_OPERATION)
        return;
    sides[1] = json_object_get(call->keywords, "y");
    if (is_named(json_string_value(sides[0]), CONSTANT_NAME))
        sides[0] = json_array_get(call->args, 2);
}

static cellgate_status get_operands(cg_keras_call *call, operands *found,
                                    cellgate_error *error)
{
    const json_t *sides[2];
    size_t tensors = 0;
    cellgate_status status = CELLGATE_OK;

    find_sides(call, sides);
    *found = (operands){ 0 };
    for (size_t i = 0; status == CELLGATE_OK && i < 2 && sides[i] != NULL;
         i++) {
        operand *side = &found->sides[found->count++];

        side->is_number = is_number(sides[i]);
        side->number = json_number_value(sides[i]);
        if (side->is_number)
            continue;
        if (tensors == call->inputs.count)
            return cg_keras_refuse_operation(call->layer, error);
        side->tensor = call->inputs.items[tensors++];
        status = cg_keras_claim(call, &side->tensor, CELLGATE_F32, error);
    }
    /* Arrays are neither, and a list of tensors is too many. */
    if (status == CELLGATE_OK &&
        (tensors == 0 || tensors != call->inputs.count))
        return cg_keras_refuse_operation(call->layer, error);
    return status;
}

/* ---- Arithmetic ---------------------------------------------------------- */

/* x * scale + offset */
static cellgate_status scale(const cg_keras_call *call,
                             const cg_keras_tensor *x, double factor,
                             double offset, int32_t *value,
                             cellgate_error *error)
{
    const cg_node node = { .kind = CG_AFFINE,
                           .as.affine = { .extents = { 1, { 1 } },
                                          .has_offset = true } };
    cellgate_model *model = call->layer->reader->model;
    float *const factors = cg_model_memory(model, sizeof *factors);
    float *const offsets = cg_model_memory(model, sizeof *offsets);
    cg_weight weights[3] = { { 0 } };

    if (factors == NULL || offsets == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the layers");
    if (!isfinite((float)factor) || !isfinite((float)offset))
        return cg_keras_refuse_operation(call->layer, error);
    *factors = (float)factor;
    *offsets = (float)offset;
    weights[CG_KERAS_SCALE].data = factors;
    weights[CG_KERAS_OFFSET].data = offsets;
    return cg_keras_emit_weighted(call, &node, x->value, weights, 3, "", value,
                                  error);
}

/* With a number on either side. */
static cellgate_status compute_scaled(const cg_keras_call *call,
                                      operation_kind kind,
                                      const operands *sides, int32_t *value,
                                      cellgate_error *error)
{
    const bool first = sides->sides[0].is_number;
    const cg_keras_tensor *x = &sides->sides[first].tensor;
    const double number = sides->sides[!first].number;

    switch (kind) {
    case ADD:
        return scale(call, x, 1, number, value, error);
    case SUBTRACT:
        return scale(call, x, first ? -1 : 1, first ? number : -number, value,
                     error);
    case MULTIPLY:
        return scale(call, x, number, 0, value, error);
    case DIVIDE:
        if (!first && number != 0)
            return scale(call, x, 1 / number, 0, value, error);
        break;
    default:
        break;
    }
    return cg_keras_refuse_operation(call->layer, error);
}

static bool find_combination(operation_kind kind, cg_combine *combine)
{
    static const struct {
        operation_kind kind;
        cg_combine combine;
    } all[] = {
        { ADD, CG_COMBINE_ADD },           { SUBTRACT, CG_COMBINE_SUBTRACT },
        { MULTIPLY, CG_COMBINE_MULTIPLY }, { MAXIMUM, CG_COMBINE_MAXIMUM },
        { MINIMUM, CG_COMBINE_MINIMUM },
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].kind == kind) {
            *combine = all[i].combine;
            return true;
        }
    return false;
}

/* Of two tensors; with fewer axes, one would match the other's last ones. */
static cellgate_status compute_combined(const cg_keras_call *call,
                                        operation_kind kind,
                                        const operands *sides, int32_t *value,
                                        cellgate_error *error)
{
    const int32_t inputs[2] = { sides->sides[0].tensor.value,
                                sides->sides[1].tensor.value };
    cg_node node = { .kind = CG_COMBINE };

    if (!find_combination(kind, &node.as.combine))
        return cg_keras_refuse_operation(call->layer, error);
    if (cg_keras_shape(call, inputs[0])->rank !=
            cg_keras_shape(call, inputs[1])->rank ||
        sides->sides[0].tensor.turned != sides->sides[1].tensor.turned)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "arithmetic is supported between tensors of as "
                             "many axes, in one order, and with numbers");
    return cg_keras_emit_simple(call, &node, inputs, 2, "", value, error);
}

static cellgate_status compute(const cg_keras_call *call, const operation *made,
                               const operands *sides, int32_t *value,
                               cellgate_error *error)
{
    const cg_keras_activation activation = { .kind = CG_ACTIVATION,
                                             .elementwise.kind =
                                                 made->activation };
    const size_t wanted =
        made->kind == NEGATE || made->kind == ACTIVATE ? 1 : 2;

    if (sides->count != wanted)
        return cg_keras_refuse_operation(call->layer, error);
    if (made->kind == ACTIVATE)
        return cg_keras_activate(call, &activation,
                                 sides->sides[0].tensor.value, "", "", value,
                                 error);
    if (made->kind == NEGATE)
        return scale(call, &sides->sides[0].tensor, -1, 0, value, error);
    return sides->sides[0].is_number || sides->sides[1].is_number
               ? compute_scaled(call, made->kind, sides, value, error)
               : compute_combined(call, made->kind, sides, value, error);
}

cellgate_status cg_keras_build_operation(cg_keras_call *call,
                                         cellgate_error *error)
{
    const operation *made = find_operation(call->layer);
    operands sides;
    int32_t value;
    cellgate_status status;

    if (made == NULL || made->kind == TRANSPOSE || call->states.count != 0)
        return cg_keras_refuse_operation(call->layer, error);
    status = get_operands(call, &sides, error);
    if (status == CELLGATE_OK)
        status = compute(call, made, &sides, &value, error);
    if (status == CELLGATE_OK)
        status = cg_keras_return(call, value, CG_NO_VALUE, error);
    if (status == CELLGATE_OK)
        call->outputs.items[0].turned = call->inputs.items[0].turned;
    return status;
}

/* ---- Transposition ------------------------------------------------------- */

/* Which axis stands where; false: not all of them once. */
static bool read_order(const json_t *json, int32_t rank, cg_extents *order)
{
    uint32_t seen = 0;

    if (!json_is_array(json) || json_array_size(json) != (size_t)rank)
        return false;
    order->count = rank;
    for (int32_t axis = 0; axis < rank; axis++) {
        const json_t *item = json_array_get(json, (size_t)axis);
        json_int_t from = json_integer_value(item);

        from += from < 0 ? rank : 0;
        if (!json_is_integer(item) || from < 0 || from >= rank ||
            (seen & 1u << from))
            return false;
        seen |= 1u << from;
        order->extent[axis] = from;
    }
    return true;
}

/* Rows and steps change places on paper alone. */
static bool only_turns(const cg_extents *order)
{
    for (int32_t axis = 2; axis < order->count; axis++)
        if (order->extent[axis] != axis)
            return false;
    return order->count >= 2 && order->extent[0] == 1;
}

static cellgate_status transpose(cg_keras_call *call, const json_t *axes,
                                 cellgate_error *error)
{
    cg_keras_tensor x = { 0 };
    cg_node node = { .kind = CG_PERMUTE };
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim_any(call, &x, error);
    if (status != CELLGATE_OK)
        return status;
    if (!read_order(axes, cg_keras_shape(call, x.value)->rank,
                    &node.as.permute))
        return cg_keras_refuse_operation(call->layer, error);
    x.mask = CG_NO_VALUE;
    if (only_turns(&node.as.permute)) {
        x.turned = !x.turned;
        return cg_keras_list_add(&call->outputs, x, error);
    }
    if (node.as.permute.extent[0] != 0 || x.turned)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "a transposition that takes rows elsewhere than "
                             "to the place of steps is not supported");
    status =
        cg_keras_emit_simple(call, &node, &x.value, 1, "", &x.value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, x.value, CG_NO_VALUE, error)
               : status;
}

cellgate_status cg_keras_build_transpose(cg_keras_call *call,
                                         cellgate_error *error)
{
    return transpose(call, json_object_get(call->layer->config, "axes"), error);
}

cellgate_status cg_keras_build_tf_operation(cg_keras_call *call,
                                            cellgate_error *error)
{
    const operation *made = find_operation(call->layer);

    return made != NULL && made->kind == TRANSPOSE
               ? transpose(call, json_object_get(call->keywords, "perm"), error)
               : cg_keras_build_operation(call, error);
}
