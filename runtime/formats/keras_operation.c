/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations: the place to go to support one more. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/formats/keras_graph.h"
#include "runtime/formats/keras_operation.h"

#define CONSTANT_NAME "_CONSTANT_VALUE" /* Keras 2's, in place of a layer's */

/* ---- The table ----------------------------------------------------------- */

static const char *const none[] = { NULL };
static const char *const axes_option[] = { "axes", NULL };
static const char *const axis_option[] = { "axis", NULL };
static const char *const reduction_options[] = { "axis", "keepdims", NULL };
static const char *const slope_option[] = { "negative_slope", NULL };
static const char *const alpha_option[] = { "alpha", NULL };
static const char *const approximate_option[] = { "approximate", NULL };
static const char *const b_option[] = { "b", NULL };
static const char *const threshold_options[] = { "threshold", "default_value",
                                                 NULL };
static const char *const clip_options[] = { "x_min", "x_max", NULL };
static const char *const matmul_options[] = { "transpose_a", "transpose_b",
                                              NULL };
static const char *const split_options[] = { "indices_or_sections", "axis",
                                             NULL };
static const char *const unstack_options[] = { "num", "axis", NULL };
static const char *const swap_options[] = { "axis1", "axis2", NULL };
static const char *const move_options[] = { "source", "destination", NULL };
static const char *const shape_option[] = { "newshape", NULL };
static const char *const repeats_options[] = { "repeats", "axis", NULL };
static const char *const pad_options[] = { "pad_width", "mode", NULL };
static const char *const dtype_option[] = { "dtype", NULL };
static const char *const one_hot_options[] = { "num_classes", "axis", "dtype",
                                               "on_value", NULL };

#define ENTRY(name, build, options, more)                                      \
    .class = { name, build, options, CG_KERAS_OPERATION | (more) }
#define ARITHMETIC(name, tf, mode)                                             \
    {                                                                          \
        ENTRY(name, cg_keras_build_arithmetic, none, CG_KERAS_TURNS),          \
            .function = (tf), .detail = CG_COMBINE_##mode                      \
    }
#define FUNCTION(name, tf, options, ...)                                       \
    {                                                                          \
        ENTRY(name, cg_keras_build_function, options, CG_KERAS_TURNS),         \
            .function = (tf), .activation = {                                  \
                __VA_ARGS__                                                    \
            }                                                                  \
    }
#define OTHER(name, tf, build, options)                                        \
    {                                                                          \
        ENTRY(name, build, options, 0), .function = (tf)                       \
    }
#define DETAIL(name, tf, build, options, number)                               \
    {                                                                          \
        ENTRY(name, build, options, 0), .function = (tf), .detail = (number)   \
    }
#define SAME(name, tf)                                                         \
    {                                                                          \
        ENTRY(name, cg_keras_build_identity, none, CG_KERAS_ANY_ORDER),        \
            .function = (tf)                                                   \
    }

static const cg_keras_operation operations[] = {
    DETAIL("Absolute", "math.abs", cg_keras_build_absolute, none, 0),
    ARITHMETIC("Add", "__operators__.add", ADD),
    ARITHMETIC(NULL, "math.add", ADD),
    OTHER(NULL, "math.add_n", cg_keras_build_sum_of, none),
    OTHER("Any", "math.reduce_any", cg_keras_build_any, reduction_options),
    OTHER("Cast", "cast", cg_keras_build_cast, dtype_option),
    FUNCTION("Celu", NULL, alpha_option, CELLGATE_CELU, 1.0f, 0),
    OTHER("Clip", "clip_by_value", cg_keras_build_clip, clip_options),
    OTHER("Concatenate", "concat", cg_keras_build_join, axis_option),
    SAME("ConvertToTensor", "convert_to_tensor"),
    ARITHMETIC("Divide", "math.divide", DIVIDE),
    FUNCTION("Elu", "nn.elu", alpha_option, CELLGATE_ELU, 1.0f, 0),
    OTHER("Equal", "math.equal", cg_keras_build_equal, none),
    FUNCTION("Exp", "math.exp", none, CELLGATE_EXPONENTIAL, 0, 0),
    OTHER("ExpandDims", "expand_dims", cg_keras_build_expand_dims, axis_option),
    OTHER("Flip", "reverse", cg_keras_build_flip, axis_option),
    FUNCTION("Gelu", "nn.gelu", approximate_option, CELLGATE_GELU_ERF, 0, 0),
    OTHER("GetItem", "__operators__.getitem", cg_keras_build_get_item, none),
    FUNCTION("HardShrink", NULL, threshold_options, CELLGATE_HARD_SHRINK, 0.5f,
             0),
    FUNCTION("HardSigmoid", NULL, none, CELLGATE_HARD_SIGMOID, 1.0f / 6.0f,
             0.5f),
    FUNCTION("HardSilu", NULL, none, CELLGATE_HARD_SILU, 0, 0),
    FUNCTION("HardTanh", NULL, none, CELLGATE_HARD_TANH, 0, 0),
    SAME("Identity", "identity"),
    FUNCTION("LeakyRelu", "nn.leaky_relu", slope_option, CELLGATE_LEAKY_RELU,
             0.2f, 0),
    FUNCTION("LogSigmoid", "math.log_sigmoid", none, CELLGATE_LOG_SIGMOID, 0,
             0),
    DETAIL("LogSoftmax", "nn.log_softmax", cg_keras_build_softmax_of,
           axis_option, CG_LOG_SOFTMAX),
    DETAIL("LogicalAnd", "math.logical_and", cg_keras_build_logic, none,
           CG_LOGIC_AND),
    DETAIL("LogicalNot", "math.logical_not", cg_keras_build_logic, none,
           CG_LOGIC_NOT),
    DETAIL("LogicalOr", "math.logical_or", cg_keras_build_logic, none,
           CG_LOGIC_OR),
    OTHER("Matmul", "linalg.matmul", cg_keras_build_matmul, matmul_options),
    DETAIL("Max", "math.reduce_max", cg_keras_build_reduction,
           reduction_options, CG_POOL_MAXIMUM),
    ARITHMETIC("Maximum", "math.maximum", MAXIMUM),
    DETAIL("Mean", "math.reduce_mean", cg_keras_build_reduction,
           reduction_options, CG_POOL_AVERAGE),
    DETAIL("Min", "math.reduce_min", cg_keras_build_reduction,
           reduction_options, CG_POOL_MINIMUM),
    ARITHMETIC("Minimum", "math.minimum", MINIMUM),
    FUNCTION("Mish", NULL, none, CELLGATE_MISH, 0, 0),
    OTHER("Moveaxis", NULL, cg_keras_build_swap_axes, move_options),
    ARITHMETIC("Multiply", "math.multiply", MULTIPLY),
    { ENTRY("Negative", cg_keras_build_arithmetic, none, CG_KERAS_TURNS),
      .function = "math.negative", .detail = -1 },
    OTHER("NotEqual", "math.not_equal", cg_keras_build_not_equal, none),
    OTHER("OneHot", "one_hot", cg_keras_build_one_hot, one_hot_options),
    OTHER("OnesLike", "ones_like", cg_keras_build_ones_like, dtype_option),
    OTHER("Pad", "compat.v1.pad", cg_keras_build_pad, pad_options),
    OTHER("Power", "math.pow", cg_keras_build_power, none),
    FUNCTION("Relu", "nn.relu", none, CELLGATE_RELU, 0, 0),
    FUNCTION("Relu6", "nn.relu6", none, CELLGATE_RELU6, 0, 0),
    OTHER("Repeat", "repeat", cg_keras_build_repeat, repeats_options),
    OTHER("Reshape", "reshape", cg_keras_build_reshape_of, shape_option),
    FUNCTION("Selu", "nn.selu", none, CELLGATE_SELU, 0, 0),
    FUNCTION("Sigmoid", "math.sigmoid", none, CELLGATE_SIGMOID, 0, 0),
    FUNCTION("Silu", "nn.silu", none, CELLGATE_SILU, 0, 0),
    FUNCTION("SoftShrink", NULL, threshold_options, CELLGATE_SOFT_SHRINK, 0.5f,
             0),
    DETAIL("Softmax", "nn.softmax", cg_keras_build_softmax_of, axis_option,
           CG_SOFTMAX),
    FUNCTION("Softplus", "math.softplus", none, CELLGATE_SOFTPLUS, 0, 0),
    FUNCTION("Softsign", "nn.softsign", none, CELLGATE_SOFTSIGN, 0, 0),
    FUNCTION("SparsePlus", NULL, none, CELLGATE_SPARSE_PLUS, 0, 0),
    FUNCTION("SparseSigmoid", NULL, none, CELLGATE_SPARSE_SIGMOID, 0, 0),
    OTHER("Split", "split", cg_keras_build_split, split_options),
    DETAIL("Square", "math.square", cg_keras_build_power, none, 2),
    FUNCTION("Squareplus", NULL, b_option, CELLGATE_SQUAREPLUS, 4.0f, 0),
    OTHER("Squeeze", "compat.v1.squeeze", cg_keras_build_squeeze, axis_option),
    OTHER("Stack", "stack", cg_keras_build_stack, axis_option),
    SAME("StopGradient", "stop_gradient"),
    ARITHMETIC("Subtract", "math.subtract", SUBTRACT),
    DETAIL("Sum", "math.reduce_sum", cg_keras_build_reduction,
           reduction_options, CG_POOL_SUM),
    OTHER("Swapaxes", NULL, cg_keras_build_swap_axes, swap_options),
    FUNCTION("Tanh", "math.tanh", none, CELLGATE_TANH, 0, 0),
    FUNCTION("TanhShrink", NULL, none, CELLGATE_TANH_SHRINK, 0, 0),
    FUNCTION("Threshold", NULL, threshold_options, CELLGATE_THRESHOLD, 0, 0),
    OTHER("Tile", "tile", cg_keras_build_tile, repeats_options),
    { ENTRY("Transpose", cg_keras_build_transpose, axes_option, CG_KERAS_TURNS),
      .function = "compat.v1.transpose" },
    ARITHMETIC("TrueDivide", "math.truediv", DIVIDE),
    OTHER("Unstack", "unstack", cg_keras_build_unstack, unstack_options),
    OTHER("ZerosLike", "zeros_like", cg_keras_build_zeros_like, dtype_option),
};

const cg_keras_class *cg_keras_find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (operations[i].class.name != NULL &&
            strcmp(name, operations[i].class.name) == 0)
            return &operations[i].class;
    return NULL;
}

static const cg_keras_operation *find_function(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (operations[i].function != NULL &&
            strcmp(name, operations[i].function) == 0)
            return &operations[i];
    return NULL;
}

/* ---- What it is called on ------------------------------------------------ */

static bool is_tensor(const json_t *json)
{
    const char *class_name =
        json_string_value(json_object_get(json, "class_name"));

    return class_name != NULL ? strcmp(class_name, "__keras_tensor__") == 0
                              : cg_keras_is_tensor_name(json);
}

/* Numbers in lists in lists, maybe with their dtype around them; what is no
   number among them is found when they are read. */
static bool is_constant(const json_t *json)
{
    const char *class_name =
        json_string_value(json_object_get(json, "class_name"));

    if (class_name != NULL)
        return strcmp(class_name, "__numpy__") == 0 ||
               strcmp(class_name, "__tensor__") == 0;
    while (json_is_array(json))
        json = json_array_get(json, 0);
    return json_is_number(json) && isfinite((float)json_number_value(json));
}

cellgate_status cg_keras_get_operands(cg_keras_call *call, size_t least,
                                      size_t most, cg_keras_operand *operands,
                                      size_t *count, cellgate_error *error)
{
    size_t tensors = 0;

    *count = json_array_size(call->args);
    while (*count > 0 && json_is_null(json_array_get(call->args, *count - 1)))
        (*count)--;
    if (*count < least || *count > most || call->states.count != 0)
        return cg_keras_refuse_operation(call->layer, error);
    for (size_t i = 0; i < *count; i++) {
        const json_t *at = json_array_get(call->args, i);

        operands[i] = (cg_keras_operand){ .constant = at };
        if (is_constant(at))
            continue;
        if (!is_tensor(at) || tensors == call->inputs.count)
            return cg_keras_refuse_operation(call->layer, error);
        operands[i].tensor = &call->inputs.items[tensors++];
    }
    return tensors != 0 && tensors == call->inputs.count
               ? CELLGATE_OK
               : cg_keras_refuse_operation(call->layer, error);
}

/* ---- What several do ----------------------------------------------------- */

cellgate_status cg_keras_emit_chain(const cg_keras_call *call,
                                    const cg_node *nodes, size_t count,
                                    int32_t *value, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < count; i++) {
        const int32_t input = *value;

        status =
            cg_keras_emit_simple(call, &nodes[i], &input, 1,
                                 i + 1 == count ? "" : ":part", value, error);
    }
    return status;
}

cg_node cg_keras_reshaping(int32_t keep)
{
    return (cg_node){ .kind = CG_RESHAPE, .as.reshape.keep = keep };
}

void cg_keras_append_extent(cg_node *reshaping, int64_t extent)
{
    cg_extents *extents = &reshaping->as.reshape.extents;

    if (extents->count < CELLGATE_MAX_RANK)
        extents->extent[extents->count] = extent;
    extents->count++;
}

cellgate_status cg_keras_check_reshaping(const cg_keras_layer *layer,
                                         const cg_node *node,
                                         cellgate_error *error)
{
    const cg_reshape *reshape = &node->as.reshape;
    int open = 0;

    if (reshape->keep + reshape->extents.count > CELLGATE_MAX_RANK)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "its result has %d axes; %d are possible",
                             (int)(reshape->keep + reshape->extents.count),
                             CELLGATE_MAX_RANK);
    for (int32_t i = 0; i < reshape->extents.count; i++)
        open += reshape->extents.extent[i] == CG_UNKNOWN;
    return open <= 1
               ? CELLGATE_OK
               : cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                               "of the axes that it changes, the file leaves "
                               "%d open; one may be",
                               open);
}

/* ---- In the form of Keras 3 ---------------------------------------------- */

static const struct {
    const char *tensorflow, *keras;
} renamed[] = {
    { "alpha", "negative_slope" },
    { "clip_value_max", "x_max" },
    { "clip_value_min", "x_min" },
    { "depth", "num_classes" },
    { "multiples", "repeats" },
    { "num_or_size_splits", "indices_or_sections" },
    { "paddings", "pad_width" },
    { "perm", "axes" },
    { "shape", "newshape" },
};

/* Options of the call as those of a layer, without its tensors. */
static json_t *options_of(const json_t *keywords)
{
    static const char *const tensors[] = { "b", "y", "slice_spec" };
    json_t *options = json_object();
    const char *key;
    json_t *value;
    bool good = options != NULL;

    json_object_foreach((json_t *)(uintptr_t)keywords, key, value)
    {
        const char *name = key;
        bool skipped = false;

        for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
            skipped = skipped || strcmp(key, tensors[i]) == 0;
        for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
            if (strcmp(key, renamed[i].tensorflow) == 0)
                name = renamed[i].keras;
        good = good && (skipped || json_object_set(options, name, value) == 0);
    }
    if (good)
        return options;
    json_decref(options);
    return NULL;
}

/* Arguments by place: the call's first, and what other functions take. */
static json_t *arguments_of(const cg_keras_call *call)
{
    static const char *const second[] = { "y", "b", "slice_spec" };
    json_t *args = json_array();
    const json_t *first = call->args;
    const char *name = json_string_value(json_array_get(first, 0));
    bool good;

    if (name != NULL && strcmp(name, CONSTANT_NAME) == 0)
        first = json_array_get(first, 2);
    good = args != NULL &&
           json_array_append(args, (json_t *)(uintptr_t)first) == 0;
    for (size_t i = 0; i < sizeof second / sizeof second[0]; i++) {
        json_t *value = json_object_get(call->keywords, second[i]);

        if (value != NULL)
            good = good && json_array_append(args, value) == 0;
    }
    if (good)
        return args;
    json_decref(args);
    return NULL;
}

static cellgate_status build_as(cg_keras_call *call,
                                const cg_keras_operation *operation,
                                json_t *options, json_t *args,
                                cellgate_error *error)
{
    cg_keras_layer layer = *call->layer;
    cg_keras_call inner = *call;
    cellgate_status status;

    if (options == NULL || args == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the layers");
    layer.class = &operation->class;
    layer.config = options;
    inner.layer = &layer;
    inner.args = args;
    status = cg_keras_check_options(&layer, operation->class.options, error);
    if (status == CELLGATE_OK)
        status = cg_keras_run_in_order(&inner, error);
    /* Lists may have been grown. */
    call->inputs = inner.inputs;
    call->outputs = inner.outputs;
    return status;
}

cellgate_status cg_keras_build_tf_operation(cg_keras_call *call,
                                            cellgate_error *error)
{
    const char *function =
        json_string_value(json_object_get(call->layer->config, "function"));
    const cg_keras_operation *operation =
        function != NULL ? find_function(function) : NULL;
    json_t *options, *args;
    cellgate_status status;

    if (operation == NULL)
        return cg_keras_refuse_operation(call->layer, error);
    options = options_of(call->keywords);
    args = arguments_of(call);
    status = build_as(call, operation, options, args, error);
    json_decref(options);
    json_decref(args);
    return status;
}
