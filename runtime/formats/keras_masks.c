/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that a functional model of Keras 3 writes masks with: those of
 * Embedding and Masking as comparisons, those of merging layers as logic. What
 * Concatenate does to masks is spelt out in steps: each mask gets an axis of
 * features (ExpandDims), is stretched along it (LogicalOr with ZerosLike), or
 * is OnesLike an input without a mask; they are concatenated, and Any takes the
 * features away again.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_merge.h"

static cellgate_status give(cg_keras_call *call, int32_t value,
                            cg_keras_stand stands, cellgate_error *error)
{
    const cg_keras_tensor tensor = { .value = value,
                                     .mask = CG_NO_VALUE,
                                     .stands = stands };

    return cg_keras_list_add(&call->outputs, tensor, error);
}

/* ---- Comparisons --------------------------------------------------------- */

cellgate_status cg_keras_build_not_equal(cg_keras_call *call,
                                         cellgate_error *error)
{
    const json_t *constant = json_array_get(call->args, 1);
    cg_keras_tensor x = { 0 };
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status != CELLGATE_OK)
        return status;
    if (!json_is_number(constant) || x.compared || x.stands != CG_KERAS_ITSELF)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it is supported for a tensor and a number only");
    x.compared = true;
    x.constant = (float)json_number_value(constant);
    x.mask = CG_NO_VALUE;
    return cg_keras_list_add(&call->outputs, x, error);
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

cellgate_status cg_keras_build_expand_dims(cg_keras_call *call,
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
    if (status == CELLGATE_OK && axis != -1)
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

cellgate_status cg_keras_build_logical_or(cg_keras_call *call,
                                          cellgate_error *error)
{
    const cg_node node = { .kind = CG_LOGIC, .as.logic = CG_LOGIC_OR };
    const cg_keras_tensor *x = call->inputs.items;
    int32_t mask;
    cellgate_status status = cg_keras_merge_check(call, 2, 2, error);

    if (status != CELLGATE_OK)
        return status;
    if (x[0].stands == CG_KERAS_STRETCHED && x[1].stands == CG_KERAS_ZEROS)
        return give(call, x[0].value, CG_KERAS_STRETCHED, error);
    status = join(call, &node, false, &mask, error);
    return status == CELLGATE_OK ? give(call, mask, CG_KERAS_ITSELF, error)
                                 : status;
}

/* Of features, what matters is whether any is there. */
cellgate_status cg_keras_build_mask_concatenate(cg_keras_call *call,
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
