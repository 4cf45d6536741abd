/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenate and Dot, and what all merging layers share. */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_merge.h"

/* ---- Inputs -------------------------------------------------------------- */

cellgate_status cg_keras_merge_check(const cg_keras_call *call, size_t least,
                                     size_t most, cellgate_error *error)
{
    const size_t count = call->inputs.count;

    if (count >= least && count <= most && call->states.count == 0)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                         "it is called on %zu tensors; it takes %s",
                         count + call->states.count,
                         most == 2 ? "two" : "at least one");
}

cellgate_status cg_keras_merge_emit(const cg_keras_call *call,
                                    const cg_node *node, const char *suffix,
                                    int32_t *value, cellgate_error *error)
{
    int32_t *inputs = calloc(call->inputs.count, sizeof *inputs);
    cellgate_status status;

    if (inputs == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the layers");
    for (size_t i = 0; i < call->inputs.count; i++)
        inputs[i] = call->inputs.items[i].value;
    status = cg_keras_emit_simple(call, node, inputs, call->inputs.count,
                                  suffix, value, error);
    free(inputs);
    return status;
}

cellgate_status cg_keras_merge_claim(cg_keras_call *call, int32_t dtype,
                                     cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < call->inputs.count; i++)
        status = cg_keras_claim(call, &call->inputs.items[i], dtype, error);
    return status;
}

/* ---- Masks --------------------------------------------------------------- */

/* Masks to merge. */
typedef struct mask_set {
    int32_t *values;
    size_t count;
    bool match; /* as far as is known */
} mask_set;

static void add_mask(const cg_keras_call *call, mask_set *masks, int32_t mask)
{
    const cg_shape *shape = cg_keras_shape(call, mask);

    if (masks->count > 0) {
        const cg_shape *first = cg_keras_shape(call, masks->values[0]);
        const int64_t a = first->extent[1], b = shape->extent[1];

        masks->match =
            masks->match && shape->rank == first->rank &&
            (a == b || a == 1 || b == 1 || a == CG_UNKNOWN || b == CG_UNKNOWN);
    }
    for (size_t i = 0; i < masks->count; i++)
        if (masks->values[i] == mask)
            return;
    masks->values[masks->count++] = mask;
}

cellgate_status cg_keras_merge_masks(const cg_keras_call *call, int32_t rank,
                                     int32_t *mask, cellgate_error *error)
{
    const bool any = call->layer->reader->keras_major >= 3;
    const cg_node node = { .kind = CG_LOGIC,
                           .as.logic = any ? CG_LOGIC_OR : CG_LOGIC_AND };
    mask_set masks = { .values = calloc(call->inputs.count, sizeof(int32_t)),
                       .match = true };
    bool lacking = false;
    cellgate_status status = CELLGATE_OK;

    *mask = CG_NO_VALUE;
    if (masks.values == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the layers");
    for (size_t i = 0; i < call->inputs.count; i++) {
        const cg_keras_tensor *x = &call->inputs.items[i];

        if (x->mask != CG_NO_VALUE &&
            cg_keras_shape(call, x->value)->rank == rank)
            add_mask(call, &masks, x->mask);
        else
            lacking = true;
    }
    if (masks.count == 1 && !(any && lacking))
        *mask = masks.values[0];
    else if (masks.count > 1 && masks.match && !(any && lacking))
        status = cg_keras_emit_simple(call, &node, masks.values, masks.count,
                                      ":mask", mask, error);
    free(masks.values);
    return status;
}

/* Of tensors of steps behind each other. */
static cellgate_status join_masks(const cg_keras_call *call, int32_t *mask,
                                  cellgate_error *error)
{
    const cg_node concat = { .kind = CG_CONCAT, .as.concat = 1 };
    const cg_node valid = { .kind = CG_VALID };
    const size_t count = call->inputs.count;
    int32_t *values = calloc(count, sizeof *values);
    bool masked = false;
    cellgate_status status = CELLGATE_OK;

    *mask = CG_NO_VALUE;
    if (values == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the layers");
    for (size_t i = 0; i < count; i++)
        masked = masked || call->inputs.items[i].mask != CG_NO_VALUE;
    for (size_t i = 0; masked && status == CELLGATE_OK && i < count; i++) {
        const cg_keras_tensor *x = &call->inputs.items[i];

        values[i] = x->mask;
        if (x->mask == CG_NO_VALUE)
            status = cg_keras_emit_simple(call, &valid, &x->value, 1, ":valid",
                                          &values[i], error);
    }
    if (status == CELLGATE_OK && masked)
        status = cg_keras_emit_simple(call, &concat, values, count, ":mask",
                                      mask, error);
    free(values);
    return status;
}

/* ---- Layers -------------------------------------------------------------- */

/* Ids stay ids if all are; otherwise all are numbers. */
static cellgate_status claim_alike(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_reader *reader = call->layer->reader;
    bool ids = true;
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < call->inputs.count; i++) {
        status = cg_keras_claim_any(call, &call->inputs.items[i], error);
        ids = ids && reader->model->values[call->inputs.items[i].value].dtype ==
                         CELLGATE_I32;
    }
    return status == CELLGATE_OK && !ids
               ? cg_keras_merge_claim(call, CELLGATE_F32, error)
               : status;
}

/* An axis of the call's input, counted from its end if it is negative. */
static cellgate_status find_axis(const cg_keras_call *call, size_t input,
                                 int64_t number, int32_t *axis,
                                 cellgate_error *error)
{
    const int32_t rank =
        cg_keras_shape(call, call->inputs.items[input].value)->rank;

    *axis = (int32_t)(number < 0 ? number + rank : number);
    if (number >= -rank && number<rank && * axis> 0)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                         "axis %lld of an input of %d axes cannot be meant; "
                         "axis 0 is the batch",
                         (long long)number, (int)rank);
}

cellgate_status cg_keras_build_concatenate(cg_keras_call *call,
                                           cellgate_error *error)
{
    cg_node node = { .kind = CG_CONCAT };
    int64_t number = -1;
    size_t count;
    int32_t value, rank, mask = CG_NO_VALUE;
    cellgate_status status = cg_keras_merge_check(call, 1, SIZE_MAX, error);

    if (status == CELLGATE_OK &&
        json_object_get(call->layer->config, "axis") != NULL)
        status = cg_keras_get_integers(call->layer, "axis", 1, 1, &number,
                                       &count, error);
    if (status == CELLGATE_OK)
        status = find_axis(call, 0, number, &node.as.concat, error);
    if (status == CELLGATE_OK &&
        node.as.concat + 1 !=
            cg_keras_shape(call, call->inputs.items[0].value)->rank)
        status = cg_keras_check_turned(call, false, error);
    if (status == CELLGATE_OK)
        status = claim_alike(call, error);
    if (status == CELLGATE_OK)
        status = cg_keras_merge_emit(call, &node, "", &value, error);
    if (status != CELLGATE_OK)
        return status;
    rank = cg_keras_shape(call, value)->rank;
    if (rank == 3 && node.as.concat == 1)
        status = join_masks(call, &mask, error);
    else if (rank == 3)
        status = cg_keras_merge_masks(call, rank, &mask, error);
    return status == CELLGATE_OK ? cg_keras_return(call, value, mask, error)
                                 : status;
}

cellgate_status cg_keras_build_dot(cg_keras_call *call, cellgate_error *error)
{
    cg_node node = { .kind = CG_DOT };
    cg_dot *dot = &node.as.dot;
    int64_t axes[2] = { 0 };
    size_t count = 0;
    int32_t value;
    cellgate_status status = cg_keras_merge_check(call, 2, 2, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_integers(call->layer, "axes", 1, 2, axes, &count,
                                       error);
    if (status == CELLGATE_OK)
        status = find_axis(call, 0, axes[0], &dot->axis_a, error);
    if (status == CELLGATE_OK)
        status = find_axis(call, 1, axes[count - 1], &dot->axis_b, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(call->layer, "normalize", false,
                                   &dot->normalize, error);
    if (status == CELLGATE_OK)
        status = cg_keras_merge_claim(call, CELLGATE_F32, error);
    if (status != CELLGATE_OK)
        return status;
    /* Measured with vectors of tiny numbers. */
    if (dot->normalize)
        dot->least_square =
            call->layer->reader->keras_major >= 3 ? 1e-14f : 1e-12f;
    status = cg_keras_merge_emit(call, &node, "", &value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, value, CG_NO_VALUE, error)
               : status;
}
