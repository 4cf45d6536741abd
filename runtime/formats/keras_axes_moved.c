/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that bring the same numbers into another shape or order, or put
   them beside each other. */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_merge.h"
#include "runtime/formats/keras_operation.h"

#define MAX_TILES 1024

static cellgate_status take_any(const cg_keras_call *call, cg_keras_tensor *x,
                                cellgate_error *error)
{
    cellgate_status status = cg_keras_only_input(call, x, error);

    return status == CELLGATE_OK ? cg_keras_claim_any(call, x, error) : status;
}

static cellgate_status finish(cg_keras_call *call, const cg_node *node,
                              int32_t x, cellgate_error *error)
{
    cellgate_status status = cg_keras_emit_chain(call, node, 1, &x, error);

    return status == CELLGATE_OK ? cg_keras_return(call, x, CG_NO_VALUE, error)
                                 : status;
}

/* One axis, counted from 0, of a value of `rank` axes; never the batch. */
static cellgate_status get_axis(const cg_keras_call *call, const char *key,
                                int32_t rank, int32_t *axis,
                                cellgate_error *error)
{
    const cg_extents absent = { 0 };
    cg_extents axes = { 0 };
    cellgate_status status =
        cg_keras_get_axes(call->layer, key, rank, &absent, &axes, error);

    if (status == CELLGATE_OK && axes.count != 1)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "'%s' must name one axis", key);
    *axis = (int32_t)axes.extent[0];
    return status;
}

/* ---- Orders -------------------------------------------------------------- */

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

cellgate_status cg_keras_build_transpose(cg_keras_call *call,
                                         cellgate_error *error)
{
    cg_keras_tensor x = { 0 };
    cg_node node = { .kind = CG_PERMUTE };
    cellgate_status status = take_any(call, &x, error);

    if (status != CELLGATE_OK)
        return status;
    if (!read_order(json_object_get(call->layer->config, "axes"),
                    cg_keras_shape(call, x.value)->rank, &node.as.permute))
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
    return finish(call, &node, x.value, error);
}

/* Swapaxes: the two change places; Moveaxis: the others move up. */
static void move_axis(cg_extents *order, int32_t rank, int32_t from, int32_t to,
                      bool swap)
{
    const int32_t step = from < to ? 1 : -1;

    order->count = rank;
    for (int32_t axis = 0; axis < rank; axis++)
        order->extent[axis] = axis;
    if (swap)
        order->extent[from] = to;
    for (int32_t axis = from; !swap && axis != to; axis += step)
        order->extent[axis] = axis + step;
    order->extent[to] = from;
}

cellgate_status cg_keras_build_swap_axes(cg_keras_call *call,
                                         cellgate_error *error)
{
    const bool swap = json_object_get(call->layer->config, "axis1") != NULL;
    cg_keras_tensor x = { 0 };
    cg_node node = { .kind = CG_PERMUTE };
    int32_t rank, from = 0, to = 0;
    cellgate_status status = take_any(call, &x, error);

    if (status != CELLGATE_OK)
        return status;
    rank = cg_keras_shape(call, x.value)->rank;
    status = get_axis(call, swap ? "axis1" : "source", rank, &from, error);
    if (status == CELLGATE_OK)
        status =
            get_axis(call, swap ? "axis2" : "destination", rank, &to, error);
    if (status != CELLGATE_OK)
        return status;
    move_axis(&node.as.permute, rank, from, to, swap);
    return finish(call, &node, x.value, error);
}

/* ---- Shapes -------------------------------------------------------------- */

/* Numbers a row, or CG_UNKNOWN. */
static int64_t count_row(const cg_shape *shape)
{
    int64_t count = 1;

    for (int32_t axis = 1; axis < shape->rank; axis++)
        if (shape->extent[axis] == CG_UNKNOWN ||
            __builtin_mul_overflow(count, shape->extent[axis], &count))
            return CG_UNKNOWN;
    return count;
}

/* The batch is the extent that is left open, where that is the first; where a
   number stands for it, the model is of one batch alone. */
cellgate_status cg_keras_build_reshape_of(cg_keras_call *call,
                                          cellgate_error *error)
{
    const json_t *target = json_object_get(call->layer->config, "newshape");
    const size_t count = json_array_size(target);
    cg_node node = cg_keras_reshaping(1);
    cg_keras_tensor x = { 0 };
    int64_t row = 1;
    cellgate_status status = take_any(call, &x, error);

    if (status != CELLGATE_OK)
        return status;
    for (size_t i = 1; i < count; i++) {
        const json_t *item = json_array_get(target, i);
        const int64_t extent = json_integer_value(item);

        if (!json_is_integer(item) || extent < 1 || extent > CG_MAX_SIZE ||
            __builtin_mul_overflow(row, extent, &row))
            row = CG_UNKNOWN;
        cg_keras_append_extent(&node, extent);
        if (row == CG_UNKNOWN)
            break;
    }
    if (count == 0 || json_integer_value(json_array_get(target, 0)) != -1 ||
        row == CG_UNKNOWN || row != count_row(cg_keras_shape(call, x.value)))
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it is supported where the first axis, -1, is the "
                             "batch, and the others are numbers that hold a "
                             "row; for others use the layer Reshape");
    status = cg_keras_check_reshaping(call->layer, &node, error);
    return status == CELLGATE_OK ? finish(call, &node, x.value, error) : status;
}

/* With an axis of one index more at `axis`. */
static cellgate_status expand(const cg_keras_call *call, int32_t value,
                              int32_t axis, cg_node *node,
                              cellgate_error *error)
{
    const cg_shape *shape = cg_keras_shape(call, value);

    *node = cg_keras_reshaping(axis);
    cg_keras_append_extent(node, 1);
    for (int32_t i = axis; i < shape->rank; i++)
        cg_keras_append_extent(node, shape->extent[i]);
    return cg_keras_check_reshaping(call->layer, node, error);
}

cellgate_status cg_keras_build_expand_dims(cg_keras_call *call,
                                           cellgate_error *error)
{
    cg_keras_tensor x = { 0 };
    cg_node node;
    int32_t axis = 0;
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK && cg_keras_is_mask(call, &x))
        return cg_keras_build_expanded_mask(call, error);
    if (status == CELLGATE_OK)
        status = cg_keras_claim_any(call, &x, error);
    if (status == CELLGATE_OK)
        status = get_axis(call, "axis", cg_keras_shape(call, x.value)->rank + 1,
                          &axis, error);
    if (status == CELLGATE_OK)
        status = expand(call, x.value, axis, &node, error);
    return status == CELLGATE_OK ? finish(call, &node, x.value, error) : status;
}

cellgate_status cg_keras_build_squeeze(cg_keras_call *call,
                                       cellgate_error *error)
{
    cg_keras_tensor x = { 0 };
    cg_node node;
    const cg_shape *shape;
    int32_t axis = 0;
    cellgate_status status = take_any(call, &x, error);

    if (status != CELLGATE_OK)
        return status;
    shape = cg_keras_shape(call, x.value);
    status = get_axis(call, "axis", shape->rank, &axis, error);
    if (status == CELLGATE_OK && shape->extent[axis] != 1)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "axis %d has not one index", (int)axis);
    if (status != CELLGATE_OK)
        return status;
    node = cg_keras_reshaping(axis);
    for (int32_t i = axis + 1; i < shape->rank; i++)
        cg_keras_append_extent(&node, shape->extent[i]);
    status = cg_keras_check_reshaping(call->layer, &node, error);
    return status == CELLGATE_OK ? finish(call, &node, x.value, error) : status;
}

/* ---- Beside each other --------------------------------------------------- */

cellgate_status cg_keras_build_join(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_list *inputs = &call->inputs;

    if (inputs->count > 0 && cg_keras_is_mask(call, &inputs->items[0]))
        return cg_keras_build_joined_masks(call, error);
    for (size_t i = 0; i < inputs->count; i++)
        inputs->items[i].mask = CG_NO_VALUE;
    return cg_keras_build_concatenate(call, error);
}

cellgate_status cg_keras_build_stack(cg_keras_call *call, cellgate_error *error)
{
    cg_node join = { .kind = CG_CONCAT };
    int32_t value, *axis = &join.as.concat;
    cellgate_status status = cg_keras_merge_check(call, 1, SIZE_MAX, error);

    if (status == CELLGATE_OK)
        status = cg_keras_merge_claim(call, CELLGATE_F32, error);
    if (status == CELLGATE_OK)
        status = get_axis(
            call, "axis",
            cg_keras_shape(call, call->inputs.items[0].value)->rank + 1, axis,
            error);
    for (size_t i = 0; status == CELLGATE_OK && i < call->inputs.count; i++) {
        int32_t *x = &call->inputs.items[i].value;
        const int32_t input = *x;
        cg_node wider;

        if (*axis > cg_keras_shape(call, input)->rank)
            return cg_keras_refuse_operation(call->layer, error);
        status = expand(call, input, *axis, &wider, error);
        if (status == CELLGATE_OK)
            status = cg_keras_emit_simple(call, &wider, &input, 1, ":part", x,
                                          error);
    }
    if (status == CELLGATE_OK)
        status = cg_keras_merge_emit(call, &join, "", &value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, value, CG_NO_VALUE, error)
               : status;
}

/* The value several times behind itself. */
static cellgate_status tile(const cg_keras_call *call, int32_t axis,
                            int64_t times, const char *suffix, int32_t *value,
                            cellgate_error *error)
{
    const cg_node repeat = { .kind = CG_REPEAT, .as.repeat = { times, axis } };
    const cg_node join = { .kind = CG_CONCAT, .as.concat = axis };
    int32_t inputs[MAX_TILES];

    if (cg_keras_shape(call, *value)->extent[axis] == 1) {
        inputs[0] = *value;
        return cg_keras_emit_simple(call, &repeat, inputs, 1, suffix, value,
                                    error);
    }
    if (times > MAX_TILES)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "up to %d times are supported", MAX_TILES);
    for (int64_t i = 0; i < times; i++)
        inputs[i] = *value;
    return cg_keras_emit_simple(call, &join, inputs, (size_t)times, suffix,
                                value, error);
}

cellgate_status cg_keras_build_tile(cg_keras_call *call, cellgate_error *error)
{
    int64_t times[CELLGATE_MAX_RANK] = { 0 };
    size_t count = 0, last = 0;
    cg_keras_tensor x = { 0 };
    cellgate_status status = take_any(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_integers(call->layer, "repeats", 1,
                                       CELLGATE_MAX_RANK, times, &count, error);
    if (status == CELLGATE_OK &&
        ((int32_t)count != cg_keras_shape(call, x.value)->rank ||
         times[0] != 1))
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "one number an axis is supported, 1 for the "
                             "batch");
    for (size_t i = 1; i < count; i++) {
        if (times[i] < 1)
            return cg_keras_refuse_operation(call->layer, error);
        last = times[i] > 1 ? i : last;
    }
    for (size_t i = 1; status == CELLGATE_OK && i <= last; i++)
        if (times[i] > 1)
            status = tile(call, (int32_t)i, times[i], i == last ? "" : ":part",
                          &x.value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, x.value, CG_NO_VALUE, error)
               : status;
}

cellgate_status cg_keras_build_repeat(cg_keras_call *call,
                                      cellgate_error *error)
{
    cg_node node = { .kind = CG_REPEAT };
    cg_keras_tensor x = { 0 };
    cellgate_status status = take_any(call, &x, error);

    if (status == CELLGATE_OK)
        status = get_axis(call, "axis", cg_keras_shape(call, x.value)->rank,
                          &node.as.repeat.axis, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_size(call->layer, "repeats",
                                   &node.as.repeat.times, error);
    return status == CELLGATE_OK ? finish(call, &node, x.value, error) : status;
}

/* Zeros around. */
cellgate_status cg_keras_build_pad(cg_keras_call *call, cellgate_error *error)
{
    const json_t *widths = json_object_get(call->layer->config, "pad_width");
    const char *mode =
        json_string_value(json_object_get(call->layer->config, "mode"));
    cg_node nodes[CELLGATE_MAX_RANK];
    size_t count = 0;
    cg_keras_tensor x = { 0 };
    cellgate_status status = take_any(call, &x, error);

    if (status != CELLGATE_OK)
        return status;
    if (mode == NULL || strcasecmp(mode, "constant") != 0 ||
        json_array_size(widths) != (size_t)cg_keras_shape(call, x.value)->rank)
        return cg_keras_refuse_operation(call->layer, error);
    for (size_t axis = 0; axis < json_array_size(widths); axis++) {
        const json_t *width = json_array_get(widths, axis);
        const json_int_t before = json_integer_value(json_array_get(width, 0));
        const json_int_t after = json_integer_value(json_array_get(width, 1));

        if (!json_is_integer(json_array_get(width, 0)) ||
            !json_is_integer(json_array_get(width, 1)) || before < 0 ||
            after < 0 || (axis == 0 && before + after > 0))
            return cg_keras_refuse_operation(call->layer, error);
        if (before + after > 0)
            nodes[count++] =
                (cg_node){ .kind = CG_PAD,
                           .as.pad = { before, after, (int32_t)axis } };
    }
    status = cg_keras_emit_chain(call, nodes, count, &x.value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, x.value, CG_NO_VALUE, error)
               : status;
}
