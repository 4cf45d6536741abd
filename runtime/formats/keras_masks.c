/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that masks are written with, and those that make numbers of them.
 * A functional model of Keras 3 spells out the masks of Embedding and Masking
 * as comparisons, those of merging layers as logic. What Concatenate does to
 * masks takes several steps: each mask gets an axis of features (ExpandDims),
 * is stretched along it (LogicalOr with ZerosLike), or is OnesLike an input
 * without a mask; they are concatenated, and Any takes the features away again.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_merge.h"
#include "runtime/formats/keras_operation.h"
#include "runtime/formats/keras_trailing.h"

static cellgate_status give(cg_keras_call *call, int32_t value,
                            cg_keras_stand stands, cellgate_error *error)
{
    const cg_keras_tensor tensor = { .value = value,
                                     .mask = CG_NO_VALUE,
                                     .stands = stands };

    return cg_keras_list_add(&call->outputs, tensor, error);
}

/* Of a tensor as an argument, the file says whether it holds truth values. */
static bool says_bool(const cg_keras_call *call)
{
    const json_t *first = json_array_get(call->args, 0);
    const char *dtype;

    if (json_is_array(first))
        first = json_array_get(first, 0);
    dtype = json_string_value(
        json_object_get(json_object_get(first, "config"), "dtype"));
    return dtype != NULL && strcmp(dtype, "bool") == 0;
}

bool cg_keras_is_mask(const cg_keras_call *call, const cg_keras_tensor *tensor)
{
    return tensor->compared || tensor->stands != CG_KERAS_ITSELF ||
           call->layer->reader->model->values[tensor->value].dtype ==
               CELLGATE_U8 ||
           says_bool(call);
}

/* ---- Comparisons --------------------------------------------------------- */

/* The tensor that is compared with a number, in either order. */
static cellgate_status compare(cg_keras_call *call, cg_keras_tensor *x,
                               cellgate_error *error)
{
    cg_keras_operand sides[2];
    size_t count;
    const json_t *constant;
    cellgate_status status =
        cg_keras_get_operands(call, 2, 2, sides, &count, error);

    if (status != CELLGATE_OK)
        return status;
    constant = sides[sides[0].tensor != NULL].constant;
    if (call->inputs.count == 1)
        *x = call->inputs.items[0];
    if (call->inputs.count != 1 || !json_is_number(cg_keras_unwrap(constant)) ||
        x->compared || x->stands != CG_KERAS_ITSELF)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it is supported for a tensor and a number only");
    x->compared = true;
    x->constant = (float)json_number_value(cg_keras_unwrap(constant));
    x->mask = CG_NO_VALUE;
    return CELLGATE_OK;
}

cellgate_status cg_keras_build_not_equal(cg_keras_call *call,
                                         cellgate_error *error)
{
    cg_keras_tensor x = { 0 };
    cellgate_status status = compare(call, &x, error);

    return status == CELLGATE_OK ? cg_keras_list_add(&call->outputs, x, error)
                                 : status;
}

cellgate_status cg_keras_build_equal(cg_keras_call *call, cellgate_error *error)
{
    const cg_node node = { .kind = CG_LOGIC, .as.logic = CG_LOGIC_NOT };
    cg_keras_tensor x = { 0 };
    int32_t mask;
    cellgate_status status = compare(call, &x, error);

    if (status == CELLGATE_OK && cg_keras_shape(call, x.value)->rank != 2)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it is supported for tensors of one number a "
                             "step, to make a mask");
    if (status == CELLGATE_OK)
        status = cg_keras_make_mask(call, &x, &mask, error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit_simple(call, &node, &mask, 1, "", &mask, error);
    return status == CELLGATE_OK ? give(call, mask, CG_KERAS_ITSELF, error)
                                 : status;
}

cellgate_status cg_keras_build_any(cg_keras_call *call, cellgate_error *error)
{
    const json_t *axis = json_object_get(call->layer->config, "axis");
    bool keepdims = false, is_last;
    int32_t mask;
    cg_keras_tensor x = { 0 };
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (json_is_array(axis) && json_array_size(axis) == 1)
        axis = json_array_get(axis, 0);
    is_last = json_is_integer(axis) && json_integer_value(axis) == -1;
    if (status == CELLGATE_OK)
        status =
            cg_keras_get_flag(call->layer, "keepdims", false, &keepdims, error);
    if (status != CELLGATE_OK)
        return status;
    if (x.stands == CG_KERAS_STRETCHED && is_last && !keepdims)
        return cg_keras_return(call, x.value, CG_NO_VALUE, error);
    if (!x.compared || keepdims || !is_last ||
        call->layer->reader->shapes[x.value].rank < 3)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it is supported over the features of a "
                             "comparison only, to make a mask");
    status = cg_keras_make_mask(call, &x, &mask, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, mask, CG_NO_VALUE, error)
               : status;
}

/* ---- Masks stretched over features --------------------------------------- */

cellgate_status cg_keras_build_expanded_mask(cg_keras_call *call,
                                             cellgate_error *error)
{
    int64_t axis;
    size_t count;
    int32_t mask;
    cg_keras_tensor x = { 0 };
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_integers(call->layer, "axis", 1, 1, &axis, &count,
                                       error);
    if (status == CELLGATE_OK && axis != -1 &&
        axis != cg_keras_shape(call, x.value)->rank)
        return cg_keras_refuse_operation(call->layer, error);
    if (status == CELLGATE_OK)
        status = cg_keras_make_mask(call, &x, &mask, error);
    return status == CELLGATE_OK ? give(call, mask, CG_KERAS_STRETCHED, error)
                                 : status;
}

cellgate_status cg_keras_build_zeros_like(cg_keras_call *call,
                                          cellgate_error *error)
{
    cg_keras_tensor x = { 0 };
    cellgate_status status = cg_keras_only_input(call, &x, error);

    return status == CELLGATE_OK ? give(call, x.value, CG_KERAS_ZEROS, error)
                                 : status;
}

cellgate_status cg_keras_build_ones_like(cg_keras_call *call,
                                         cellgate_error *error)
{
    const cg_node node = { .kind = CG_VALID };
    int32_t mask;
    cg_keras_tensor x = { 0 };
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK && cg_keras_shape(call, x.value)->rank != 3)
        return cg_keras_refuse_operation(call->layer, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_simple(call, &node, &x.value, 1, "", &mask, error);
    return status == CELLGATE_OK ? give(call, mask, CG_KERAS_STRETCHED, error)
                                 : status;
}

/* ---- Logic --------------------------------------------------------------- */

/* One mask of several; `node` says how. */
static cellgate_status join(const cg_keras_call *call, const cg_node *node,
                            bool stretched, int32_t *mask,
                            cellgate_error *error)
{
    const size_t count = call->inputs.count;
    int32_t *masks = calloc(count + 1, sizeof *masks);
    cellgate_status status = CELLGATE_OK;

    if (masks == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the layers");
    for (size_t i = 0; status == CELLGATE_OK && i < count; i++) {
        const cg_keras_tensor *x = &call->inputs.items[i];

        masks[i] = x->value;
        if (stretched != (x->stands == CG_KERAS_STRETCHED))
            status = cg_keras_refuse_operation(call->layer, error);
        else if (!stretched)
            status = cg_keras_make_mask(call, x, &masks[i], error);
    }
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_simple(call, node, masks, count, "", mask, error);
    free(masks);
    return status;
}

/* Its detail is a cg_logic. */
cellgate_status cg_keras_build_logic(cg_keras_call *call, cellgate_error *error)
{
    const cg_logic logic = (cg_logic)cg_keras_operation_of(call)->detail;
    const cg_node node = { .kind = CG_LOGIC, .as.logic = logic };
    const cg_keras_tensor *x = call->inputs.items;
    const size_t wanted = logic == CG_LOGIC_NOT ? 1 : 2;
    int32_t mask;
    cellgate_status status = CELLGATE_OK;

    if (call->inputs.count != wanted || call->states.count != 0)
        return cg_keras_refuse_operation(call->layer, error);
    if (logic == CG_LOGIC_OR && x[0].stands == CG_KERAS_STRETCHED &&
        x[1].stands == CG_KERAS_ZEROS)
        return give(call, x[0].value, CG_KERAS_STRETCHED, error);
    status = join(call, &node, false, &mask, error);
    return status == CELLGATE_OK ? give(call, mask, CG_KERAS_ITSELF, error)
                                 : status;
}

/* Of features, what matters is whether any is there. */
cellgate_status cg_keras_build_joined_masks(cg_keras_call *call,
                                            cellgate_error *error)
{
    cg_node node = { .kind = CG_CONCAT, .as.concat = 1 };
    int64_t axis;
    size_t count;
    int32_t mask;
    cellgate_status status = cg_keras_merge_check(call, 1, SIZE_MAX, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_integers(call->layer, "axis", 1, 1, &axis, &count,
                                       error);
    if (status == CELLGATE_OK && (axis == 2 || axis == -1))
        node = (cg_node){ .kind = CG_LOGIC, .as.logic = CG_LOGIC_OR };
    else if (status == CELLGATE_OK && axis != 1 && axis != -2)
        return cg_keras_refuse_operation(call->layer, error);
    if (status == CELLGATE_OK)
        status = join(call, &node, true, &mask, error);
    return status == CELLGATE_OK ? give(call, mask, CG_KERAS_STRETCHED, error)
                                 : status;
}

/* ---- Casts --------------------------------------------------------------- */

typedef enum target { NUMBERS, IDS, TRUTH, OTHER } target;

static target find_target(const cg_keras_layer *layer)
{
    static const struct {
        const char *name;
        target to;
    } all[] = {
        { "bfloat16", NUMBERS }, { "bool", TRUTH },      { "float16", NUMBERS },
        { "float32", NUMBERS },  { "float64", NUMBERS }, { "int32", IDS },
        { "int64", IDS },
    };
    const char *name =
        json_string_value(json_object_get(layer->config, "dtype"));

    for (size_t i = 0; name != NULL && i < sizeof all / sizeof all[0]; i++)
        if (strcmp(name, all[i].name) == 0)
            return all[i].to;
    return OTHER;
}

/* What stands for a mask as truth values of the shape that it has in Keras. */
static cellgate_status spell_out(const cg_keras_call *call,
                                 const cg_keras_tensor *x, int32_t *mask,
                                 cellgate_error *error)
{
    const int32_t rank = cg_keras_shape(call, x->value)->rank;
    cg_node wider = cg_keras_reshaping(rank);

    if (x->compared && rank != 2)
        return cg_keras_compare_each(call, x, mask, error);
    if (x->stands != CG_KERAS_STRETCHED)
        return cg_keras_make_mask(call, x, mask, error);
    cg_keras_append_extent(&wider, 1);
    return cg_keras_emit_simple(call, &wider, &x->value, 1, ":stretched", mask,
                                error);
}

static cellgate_status cast_mask(cg_keras_call *call, const cg_keras_tensor *x,
                                 target to, cellgate_error *error)
{
    const cg_node node = { .kind = CG_CAST,
                           .as.cast =
                               to == IDS ? CG_CAST_IDS : CG_CAST_NUMBERS };
    int32_t value;
    cellgate_status status = CELLGATE_OK;

    if (to == TRUTH)
        return cg_keras_list_add(&call->outputs, *x, error);
    if (x->stands == CG_KERAS_ZEROS)
        return cg_keras_refuse_operation(call->layer, error);
    status = spell_out(call, x, &value, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_simple(call, &node, &value, 1, "", &value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, value, CG_NO_VALUE, error)
               : status;
}

/*
 * Numbers are float32 here, whatever the file calls them, so that a cast
 * between floating-point types changes nothing: not the model's input either,
 * whose dtype its users settle.
 */
cellgate_status cg_keras_build_cast(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_reader *reader = call->layer->reader;
    const target to = find_target(call->layer);
    cg_keras_tensor x = { 0 };
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status != CELLGATE_OK)
        return status;
    if (to == OTHER)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "casts are supported to floating-point types, "
                             "int32, int64 and bool");
    x.mask = CG_NO_VALUE;
    if (cg_keras_is_mask(call, &x))
        return cast_mask(call, &x, to, error);
    if (to == TRUTH) {
        x.compared = true;
        x.constant = 0;
    } else if (to == IDS || reader->model->values[x.value].producer != -1 ||
               reader->declared[x.value] == CELLGATE_I32) {
        status = cg_keras_claim(call, &x,
                                to == IDS ? CELLGATE_I32 : CELLGATE_F32, error);
    }
    return status == CELLGATE_OK ? cg_keras_list_add(&call->outputs, x, error)
                                 : status;
}

/* A table in which each id has its own unit vector. */
cellgate_status cg_keras_build_one_hot(cg_keras_call *call,
                                       cellgate_error *error)
{
    cg_node node = { .kind = CG_EMBEDDING };
    cg_embedding *table = &node.as.embedding;
    const json_t *axis = json_object_get(call->layer->config, "axis");
    cg_weight weight = { 0 };
    cg_keras_tensor x = { 0 };
    float *ones = NULL;
    bool fresh = false;
    int32_t value;
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, &x, CELLGATE_I32, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_size(call->layer, "num_classes",
                                   &table->vocabulary, error);
    if (status == CELLGATE_OK && axis != NULL && !json_is_null(axis) &&
        json_integer_value(axis) != -1)
        return cg_keras_refuse_operation(call->layer, error);
    table->size = table->vocabulary;
    if (status == CELLGATE_OK)
        status = cg_keras_derive(call->layer, call->name,
                                 (size_t)(table->size * table->size), &ones,
                                 &fresh, error);
    if (status != CELLGATE_OK)
        return status;
    for (int64_t i = 0; fresh && i < table->size * table->size; i++)
        ones[i] = i % (table->size + 1) == 0 ? 1.0f : 0.0f;
    weight.data = ones;
    status = cg_keras_emit_weighted(call, &node, x.value, &weight, 1, "",
                                    &value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, value, CG_NO_VALUE, error)
               : status;
}
