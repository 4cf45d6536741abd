/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/model/kinds.h"

#define PLAIN(text, kind, member)                                              \
    {                                                                          \
        .name = (text), .type = CG_ATTRIBUTE_##kind,                           \
        .offset = offsetof(cg_node, as.member)                                 \
    }
#define ADDED(text, kind, member)                                              \
    {                                                                          \
        .name = (text), .type = CG_ATTRIBUTE_##kind,                           \
        .offset = offsetof(cg_node, as.member), .optional = true               \
    }
#define CHOICE(text, member, table)                                            \
    {                                                                          \
        .name = (text), .type = CG_ATTRIBUTE_CHOICE,                           \
        .offset = offsetof(cg_node, as.member), .choices = (table)             \
    }

static const cg_attribute embedding_attributes[] = {
    PLAIN("vocabulary", SIZE, embedding.vocabulary),
    PLAIN("size", SIZE, embedding.size),
};

static const cg_attribute lstm_attributes[] = {
    PLAIN("input_size", SIZE, lstm.shape.input_size),
    PLAIN("hidden_size", SIZE, lstm.shape.hidden_size),
    PLAIN("projection_size", SIZE, lstm.shape.projection_size),
    PLAIN("directions", COUNT, lstm.shape.directions),
    PLAIN("reverse", FLAG, lstm.shape.reverse),
    PLAIN("bias", FLAG, lstm.shape.has_bias),
    PLAIN("peepholes", FLAG, lstm.shape.has_peepholes),
    PLAIN("coupled", FLAG, lstm.shape.coupled),
    PLAIN("clip", FLOAT, lstm.shape.clip),
    PLAIN("gate", ACTIVATION, lstm.shape.activations[0][0]),
    PLAIN("cell", ACTIVATION, lstm.shape.activations[0][1]),
    PLAIN("hidden", ACTIVATION, lstm.shape.activations[0][2]),
    PLAIN("backward_gate", ACTIVATION, lstm.shape.activations[1][0]),
    PLAIN("backward_cell", ACTIVATION, lstm.shape.activations[1][1]),
    PLAIN("backward_hidden", ACTIVATION, lstm.shape.activations[1][2]),
    PLAIN("zero_masked", BOOL, lstm.zero_masked),
    PLAIN("stateful", BOOL, lstm.stateful),
};

static const cg_attribute gru_attributes[] = {
    PLAIN("input_size", SIZE, recurrent.input_size),
    PLAIN("hidden_size", SIZE, recurrent.hidden_size),
    PLAIN("bias", BOOL, recurrent.has_bias),
    PLAIN("reset_after", BOOL, recurrent.reset_after),
    PLAIN("reverse", BOOL, recurrent.reverse),
    PLAIN("gate", ACTIVATION, recurrent.gate),
    PLAIN("activation", ACTIVATION, recurrent.activation),
    PLAIN("zero_masked", BOOL, recurrent.zero_masked),
    PLAIN("stateful", BOOL, recurrent.stateful),
};

static const cg_attribute simple_rnn_attributes[] = {
    PLAIN("input_size", SIZE, recurrent.input_size),
    PLAIN("hidden_size", SIZE, recurrent.hidden_size),
    PLAIN("bias", BOOL, recurrent.has_bias),
    PLAIN("reverse", BOOL, recurrent.reverse),
    PLAIN("activation", ACTIVATION, recurrent.activation),
    PLAIN("zero_masked", BOOL, recurrent.zero_masked),
    PLAIN("stateful", BOOL, recurrent.stateful),
};

static const char *const attention_modes[] = {
    [CG_ATTENTION_DOT] = "dot",
    [CG_ATTENTION_CONCAT] = "concat",
    [CG_ATTENTION_ADDITIVE] = "additive",
    NULL,
};

static const cg_attribute attention_attributes[] = {
    CHOICE("mode", attention.mode, attention_modes),
    PLAIN("size", SIZE, attention.size),
    PLAIN("scaled", BOOL, attention.scaled),
    PLAIN("causal", BOOL, attention.causal),
};

static const cg_attribute dense_attributes[] = {
    PLAIN("input_size", SIZE, dense.input_size),
    PLAIN("units", SIZE, dense.units),
    PLAIN("bias", BOOL, dense.has_bias),
    PLAIN("activation", ACTIVATION, dense.activation),
};

static const cg_attribute activation_attributes[] = {
    PLAIN("activation", ACTIVATION, activation),
};

static const char *const merge_modes[] = {
    [CG_MERGE_SUM] = "sum",
    [CG_MERGE_AVERAGE] = "average",
    [CG_MERGE_PRODUCT] = "product",
    NULL,
};

static const cg_attribute merge_attributes[] = {
    CHOICE("mode", merge, merge_modes),
};

static const cg_attribute slice_attributes[] = {
    PLAIN("begin", INTEGER, slice.begin),
    PLAIN("end", INTEGER, slice.end),
    ADDED("axis", COUNT, slice.axis),
    ADDED("step", INTEGER, slice.step),
};

static const cg_attribute concat_attributes[] = {
    ADDED("axis", COUNT, concat),
};

static const cg_attribute pad_attributes[] = {
    PLAIN("before", SIZE, pad.before),
    PLAIN("after", SIZE, pad.after),
    PLAIN("axis", COUNT, pad.axis),
};

static const cg_attribute repeat_attributes[] = {
    PLAIN("times", SIZE, repeat.times),
    PLAIN("axis", COUNT, repeat.axis),
};

static const cg_attribute reshape_attributes[] = {
    PLAIN("extents", EXTENTS, reshape.extents),
    PLAIN("keep", COUNT, reshape.keep),
};

static const cg_attribute permute_attributes[] = {
    PLAIN("order", EXTENTS, permute),
};

static const char *const cast_dtypes[] = {
    [CG_CAST_NUMBERS] = "float32",
    [CG_CAST_IDS] = "int32",
    NULL,
};

static const cg_attribute cast_attributes[] = {
    CHOICE("dtype", cast, cast_dtypes),
};

static const char *const combine_modes[] = {
    [CG_COMBINE_ADD] = "add",           [CG_COMBINE_SUBTRACT] = "subtract",
    [CG_COMBINE_MULTIPLY] = "multiply", [CG_COMBINE_AVERAGE] = "average",
    [CG_COMBINE_MAXIMUM] = "maximum",   [CG_COMBINE_MINIMUM] = "minimum",
    [CG_COMBINE_DIVIDE] = "divide",     NULL,
};

static const cg_attribute combine_attributes[] = {
    CHOICE("mode", combine, combine_modes),
};

static const cg_attribute select_attributes[] = {
    PLAIN("otherwise", FLOAT, select),
};

static const cg_attribute dot_attributes[] = {
    PLAIN("axis_a", COUNT, dot.axis_a),
    PLAIN("axis_b", COUNT, dot.axis_b),
    PLAIN("least_square", FLOAT, dot.least_square),
    PLAIN("normalize", BOOL, dot.normalize),
};

static const char *const logic_modes[] = {
    [CG_LOGIC_AND] = "and",
    [CG_LOGIC_OR] = "or",
    [CG_LOGIC_NOT] = "not",
    NULL,
};

static const cg_attribute logic_attributes[] = {
    CHOICE("mode", logic, logic_modes),
};

static const cg_attribute not_equal_attributes[] = {
    PLAIN("value", FLOAT, not_equal),
};

static const cg_attribute relu_attributes[] = {
    PLAIN("slope", FLOAT, relu.slope),
    PLAIN("threshold", FLOAT, relu.threshold),
    PLAIN("limit", FLOAT, relu.limit),
    PLAIN("limited", BOOL, relu.limited),
};

static const cg_attribute prelu_attributes[] = {
    PLAIN("extents", EXTENTS, prelu),
};

static const char *const normalize_modes[] = {
    [CG_NORMALIZE_MOMENTS] = "moments",
    [CG_NORMALIZE_VARIANCE] = "variance",
    [CG_NORMALIZE_RMS] = "rms",
    [CG_NORMALIZE_UNIT] = "unit",
    NULL,
};

static const cg_attribute normalize_attributes[] = {
    CHOICE("mode", normalize.mode, normalize_modes),
    PLAIN("extents", EXTENTS, normalize.extents),
    PLAIN("epsilon", FLOAT, normalize.epsilon),
    PLAIN("gamma", BOOL, normalize.has_gamma),
    PLAIN("beta", BOOL, normalize.has_beta),
};

static const cg_attribute affine_attributes[] = {
    PLAIN("extents", EXTENTS, affine.extents),
    PLAIN("shift", BOOL, affine.has_shift),
    PLAIN("offset", BOOL, affine.has_offset),
};

static const char *const paddings[] = {
    [CG_PADDING_VALID] = "valid",
    [CG_PADDING_SAME] = "same",
    [CG_PADDING_CAUSAL] = "causal",
    NULL,
};

static const cg_attribute window_attributes[] = {
    PLAIN("size", SIZE, window.size),
    PLAIN("stride", SIZE, window.stride),
    PLAIN("dilation", SIZE, window.dilation),
    CHOICE("padding", window.padding, paddings),
};

static const char *const pool_modes[] = {
    [CG_POOL_MAXIMUM] = "maximum",
    [CG_POOL_AVERAGE] = "average",
    NULL,
};

static const cg_attribute pool_attributes[] = {
    CHOICE("mode", pool.mode, pool_modes),
    PLAIN("size", SIZE, pool.window.size),
    PLAIN("stride", SIZE, pool.window.stride),
    CHOICE("padding", pool.window.padding, paddings),
};

static const char *const reduce_modes[] = {
    [CG_POOL_MAXIMUM] = "maximum",
    [CG_POOL_AVERAGE] = "average",
    [CG_POOL_SUM] = "sum",
    [CG_POOL_MINIMUM] = "minimum",
    NULL,
};

static const cg_attribute reduce_attributes[] = {
    CHOICE("mode", reduce.mode, reduce_modes),
    PLAIN("keep", BOOL, reduce.keep),
};

#define ATTRIBUTES(kind)                                                       \
    .attributes = kind##_attributes,                                           \
    .attribute_count = sizeof kind##_attributes / sizeof kind##_attributes[0]
#define ARITY(least, most, need, out)                                          \
    .min_inputs = (least), .max_inputs = (most), .required = (need),           \
    .outputs = (out)
#define DTYPES(first, second, out)                                             \
    .input_dtypes = { CELLGATE_##first, CELLGATE_##second, CELLGATE_##first,   \
                      CELLGATE_##first, CELLGATE_##first },                    \
    .output_dtype = CELLGATE_##out
/* Kinds that move elements of any dtype. */
#define MOVES                                                                  \
    .input_dtypes = { CG_DTYPE_ANY, CG_DTYPE_FIRST, CG_DTYPE_FIRST,            \
                      CG_DTYPE_FIRST, CG_DTYPE_FIRST },                        \
    .output_dtype = CG_DTYPE_FIRST

static const cg_kind_entry kinds[CG_KIND_COUNT] = {
    [CG_EMBEDDING] = { .name = "embedding",
                       ARITY(1, 1, 1, 1),
                       DTYPES(I32, I32, F32),
                       ATTRIBUTES(embedding),
                       .check = cg_check_embedding,
                       .infer = cg_infer_embedding,
                       .weight_count = cg_weight_count_embedding,
                       .weight = cg_weight_embedding,
                       .describe = cg_describe_embedding },
    /* The directions decide the arity: the check looks at it. */
    [CG_LSTM] = { .name = "lstm",
                  ARITY(4, 6, 1, 4),
                  .max_outputs = 6,
                  .optional_outputs = true,
                  DTYPES(F32, U8, F32),
                  ATTRIBUTES(lstm),
                  .check = cg_check_lstm,
                  .infer = cg_infer_lstm,
                  .weight_count = cg_weight_count_lstm,
                  .weight = cg_weight_lstm,
                  .describe = cg_describe_lstm,
                  .operations = cg_operations_lstm },
    [CG_GRU] = { .name = "gru",
                 ARITY(3, 3, 1, 3),
                 .optional_outputs = true,
                 DTYPES(F32, U8, F32),
                 ATTRIBUTES(gru),
                 .check = cg_check_recurrent,
                 .infer = cg_infer_recurrent,
                 .weight_count = cg_weight_count_recurrent,
                 .weight = cg_weight_recurrent,
                 .describe = cg_describe_recurrent,
                 .operations = cg_operations_recurrent },
    [CG_SIMPLE_RNN] = { .name = "simple_rnn",
                        ARITY(3, 3, 1, 3),
                        .optional_outputs = true,
                        DTYPES(F32, U8, F32),
                        ATTRIBUTES(simple_rnn),
                        .check = cg_check_recurrent,
                        .infer = cg_infer_recurrent,
                        .weight_count = cg_weight_count_recurrent,
                        .weight = cg_weight_recurrent,
                        .describe = cg_describe_recurrent,
                        .operations = cg_operations_recurrent },
    [CG_ATTENTION] = { .name = "attention",
                       ARITY(5, 5, 2, 2),
                       .optional_outputs = true,
                       .input_dtypes = { CELLGATE_F32, CELLGATE_F32,
                                         CELLGATE_F32, CELLGATE_U8,
                                         CELLGATE_U8 },
                       .output_dtype = CELLGATE_F32,
                       ATTRIBUTES(attention),
                       .check = cg_check_attention,
                       .infer = cg_infer_attention,
                       .weight_count = cg_weight_count_attention,
                       .weight = cg_weight_attention,
                       .describe = cg_describe_attention },
    [CG_DENSE] = { .name = "dense",
                   ARITY(1, 1, 1, 1),
                   DTYPES(F32, F32, F32),
                   ATTRIBUTES(dense),
                   .check = cg_check_dense,
                   .infer = cg_infer_dense,
                   .weight_count = cg_weight_count_dense,
                   .weight = cg_weight_dense,
                   .describe = cg_describe_dense,
                   .operations = cg_operations_dense },
    [CG_ACTIVATION] = { .name = "activation",
                        ARITY(1, 1, 1, 1),
                        DTYPES(F32, F32, F32),
                        ATTRIBUTES(activation),
                        .check = cg_check_activation,
                        .infer = cg_infer_same,
                        .describe = cg_describe_activation },
    [CG_SOFTMAX] = { .name = "softmax",
                     ARITY(1, 1, 1, 1),
                     DTYPES(F32, F32, F32),
                     .infer = cg_infer_same },
    [CG_REVERSE] = { .name = "reverse",
                     ARITY(1, 1, 1, 1),
                     MOVES,
                     .infer = cg_infer_reverse },
    [CG_MERGE] = { .name = "merge",
                   ARITY(1, 1, 1, 1),
                   DTYPES(F32, F32, F32),
                   ATTRIBUTES(merge),
                   .infer = cg_infer_merge,
                   .describe = cg_describe_merge,
                   .operations = cg_operations_merge },
    [CG_SLICE] = { .name = "slice",
                   ARITY(1, 1, 1, 1),
                   MOVES,
                   ATTRIBUTES(slice),
                   .check = cg_check_slice,
                   .infer = cg_infer_slice,
                   .describe = cg_describe_slice },
    [CG_CONCAT] = { .name = "concat",
                    ARITY(1, CG_ANY_COUNT, CG_ANY_COUNT, 1),
                    MOVES,
                    ATTRIBUTES(concat),
                    .check = cg_check_concat,
                    .infer = cg_infer_concat,
                    .describe = cg_describe_concat },
    [CG_PAD] = { .name = "pad",
                 ARITY(1, 1, 1, 1),
                 MOVES,
                 ATTRIBUTES(pad),
                 .check = cg_check_pad,
                 .infer = cg_infer_pad,
                 .describe = cg_describe_pad },
    [CG_REPEAT] = { .name = "repeat",
                    ARITY(1, 1, 1, 1),
                    MOVES,
                    ATTRIBUTES(repeat),
                    .check = cg_check_repeat,
                    .infer = cg_infer_repeat,
                    .describe = cg_describe_repeat },
    [CG_RESHAPE] = { .name = "reshape",
                     ARITY(1, 1, 1, 1),
                     MOVES,
                     ATTRIBUTES(reshape),
                     .check = cg_check_reshape,
                     .infer = cg_infer_reshape },
    [CG_PERMUTE] = { .name = "permute",
                     ARITY(1, 1, 1, 1),
                     MOVES,
                     ATTRIBUTES(permute),
                     .check = cg_check_permute,
                     .infer = cg_infer_permute,
                     .describe = cg_describe_permute },
    [CG_CAST] = { .name = "cast",
                  ARITY(1, 1, 1, 1),
                  .input_dtypes = { CG_DTYPE_ANY },
                  .output_dtype = CG_DTYPE_ANY,
                  ATTRIBUTES(cast),
                  .infer = cg_infer_same,
                  .describe = cg_describe_cast },
    [CG_COMBINE] = { .name = "combine",
                     ARITY(1, CG_ANY_COUNT, CG_ANY_COUNT, 1),
                     DTYPES(F32, F32, F32),
                     ATTRIBUTES(combine),
                     .check = cg_check_combine,
                     .infer = cg_infer_combine,
                     .describe = cg_describe_combine,
                     .operations = cg_operations_combine },
    [CG_SELECT] = { .name = "select",
                    ARITY(2, 3, 2, 1),
                    DTYPES(F32, U8, F32),
                    ATTRIBUTES(select),
                    .check = cg_check_select,
                    .infer = cg_infer_select },
    [CG_DOT] = { .name = "dot",
                 ARITY(2, 2, 2, 1),
                 DTYPES(F32, F32, F32),
                 ATTRIBUTES(dot),
                 .check = cg_check_dot,
                 .infer = cg_infer_dot,
                 .describe = cg_describe_dot },
    [CG_VALID] = { .name = "valid",
                   ARITY(1, 1, 1, 1),
                   .input_dtypes = { CG_DTYPE_ANY },
                   .output_dtype = CELLGATE_U8,
                   .infer = cg_infer_valid },
    [CG_LOGIC] = { .name = "logic",
                   ARITY(1, CG_ANY_COUNT, CG_ANY_COUNT, 1),
                   DTYPES(U8, U8, U8),
                   ATTRIBUTES(logic),
                   .check = cg_check_logic,
                   .infer = cg_infer_combine,
                   .describe = cg_describe_logic },
    [CG_NONZERO] = { .name = "nonzero",
                     ARITY(1, 1, 1, 1),
                     .input_dtypes = { CG_DTYPE_ANY },
                     .output_dtype = CELLGATE_U8,
                     .infer = cg_infer_same },
    [CG_NOT_EQUAL] = { .name = "not_equal",
                       ARITY(1, 1, 1, 1),
                       DTYPES(F32, F32, U8),
                       ATTRIBUTES(not_equal),
                       .check = cg_check_not_equal,
                       .infer = cg_infer_not_equal,
                       .describe = cg_describe_not_equal },
    [CG_MASKED] = { .name = "masked",
                    ARITY(2, 2, 2, 1),
                    DTYPES(F32, U8, F32),
                    .infer = cg_infer_masked },
    [CG_LOG_SOFTMAX] = { .name = "log_softmax",
                         ARITY(1, 1, 1, 1),
                         DTYPES(F32, F32, F32),
                         .infer = cg_infer_same },
    [CG_SPARSEMAX] = { .name = "sparsemax",
                       ARITY(1, 1, 1, 1),
                       DTYPES(F32, F32, F32),
                       .infer = cg_infer_same },
    [CG_RELU] = { .name = "relu",
                  ARITY(1, 1, 1, 1),
                  DTYPES(F32, F32, F32),
                  ATTRIBUTES(relu),
                  .check = cg_check_relu,
                  .infer = cg_infer_same,
                  .describe = cg_describe_relu },
    [CG_PRELU] = { .name = "prelu",
                   ARITY(1, 1, 1, 1),
                   DTYPES(F32, F32, F32),
                   ATTRIBUTES(prelu),
                   .check = cg_check_prelu,
                   .infer = cg_infer_prelu,
                   .weight_count = cg_weight_count_prelu,
                   .weight = cg_weight_prelu,
                   .describe = cg_describe_prelu },
    [CG_NORMALIZE] = { .name = "normalize",
                       ARITY(1, 1, 1, 1),
                       DTYPES(F32, F32, F32),
                       ATTRIBUTES(normalize),
                       .check = cg_check_normalize,
                       .infer = cg_infer_normalize,
                       .weight_count = cg_weight_count_normalize,
                       .weight = cg_weight_normalize,
                       .describe = cg_describe_normalize,
                       .operations = cg_operations_normalize },
    [CG_AFFINE] = { .name = "affine",
                    ARITY(1, 1, 1, 1),
                    DTYPES(F32, F32, F32),
                    ATTRIBUTES(affine),
                    .check = cg_check_affine,
                    .infer = cg_infer_affine,
                    .weight_count = cg_weight_count_affine,
                    .weight = cg_weight_affine,
                    .describe = cg_describe_affine,
                    .operations = cg_operations_affine },
    [CG_WINDOW] = { .name = "window",
                    ARITY(1, 1, 1, 1),
                    DTYPES(F32, F32, F32),
                    ATTRIBUTES(window),
                    .check = cg_check_window,
                    .infer = cg_infer_window,
                    .describe = cg_describe_window },
    [CG_POOL] = { .name = "pool",
                  ARITY(1, 1, 1, 1),
                  DTYPES(F32, F32, F32),
                  ATTRIBUTES(pool),
                  .check = cg_check_pool,
                  .infer = cg_infer_pool,
                  .describe = cg_describe_pool,
                  .operations = cg_operations_pool },
    [CG_REDUCE] = { .name = "reduce",
                    ARITY(1, 2, 1, 1),
                    DTYPES(F32, U8, F32),
                    ATTRIBUTES(reduce),
                    .check = cg_check_reduce,
                    .infer = cg_infer_reduce,
                    .describe = cg_describe_reduce },
};

const cg_kind_entry *cg_kind_get(int kind)
{
    if (kind < 0 || kind >= (int)CG_KIND_COUNT)
        return NULL;
    return &kinds[kind];
}

int cg_kind_find(const char *name)
{
    for (int kind = 0; kind < (int)CG_KIND_COUNT; kind++)
        if (strcmp(kinds[kind].name, name) == 0)
            return kind;
    return -1;
}

int32_t cg_node_output_dtype(const cellgate_model *model, const cg_node *node)
{
    const int32_t dtype = cg_kind_get((int)node->kind)->output_dtype;

    if (dtype == CG_DTYPE_FIRST)
        return model->values[node->inputs[0]].dtype;
    if (dtype == CG_DTYPE_ANY)
        return node->as.cast == CG_CAST_IDS ? CELLGATE_I32 : CELLGATE_F32;
    return dtype;
}

cellgate_status cg_node_fail(cellgate_error *error, cellgate_status status,
                             const cg_node *node, const char *format, ...)
{
    char text[512];
    va_list arguments;
    const char *place = node->layer != NULL ? node->layer : node->name;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return cellgate_fail(error, status, "%s: %s",
                         place != NULL ? place : "a node", text);
}
