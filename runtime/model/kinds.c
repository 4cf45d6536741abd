/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/model/kinds.h"

#define PLAIN(text, kind, member)                                              \
    {                                                                          \
        .name = (text), .type = CG_ATTRIBUTE_##kind,                           \
        .offset = offsetof(cg_node, as.member)                                 \
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
    PLAIN("begin", SIZE, slice.begin),
    PLAIN("end", SIZE, slice.end),
};

static const cg_attribute not_equal_attributes[] = {
    PLAIN("value", FLOAT, not_equal),
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
                   DTYPES(F32, F32, F32),
                   ATTRIBUTES(slice),
                   .check = cg_check_slice,
                   .infer = cg_infer_slice,
                   .describe = cg_describe_slice },
    [CG_CONCAT] = { .name = "concat",
                    ARITY(1, CG_ANY_COUNT, CG_ANY_COUNT, 1),
                    DTYPES(F32, F32, F32),
                    .infer = cg_infer_concat },
    [CG_NONZERO] = { .name = "nonzero",
                     ARITY(1, 1, 1, 1),
                     DTYPES(I32, I32, U8),
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
