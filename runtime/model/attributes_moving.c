/* SPDX-License-Identifier: Apache-2.0 */
/* What the attributes of kinds that move and join elements may be. */
#include "config.h"

#include <math.h>

#include "runtime/model/kinds.h"

static cellgate_status check_axis(const cg_node *node, int32_t axis,
                                  int32_t least, cellgate_error *error)
{
    if (axis >= least && axis < CELLGATE_MAX_RANK)
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                        "axis %d is none that can be meant here", (int)axis);
}

cellgate_status cg_check_slice(const cg_node *node, cellgate_error *error)
{
    const cg_slice *slice = &node->as.slice;

    if (slice->begin < -CG_MAX_SIZE || slice->begin > CG_MAX_SIZE ||
        slice->end < -CG_MAX_SIZE || slice->end > 2 * CG_MAX_SIZE ||
        ((slice->begin < 0) == (slice->end <= 0) && slice->begin >= slice->end))
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "the range %lld to %lld is empty or out of bounds",
                            (long long)slice->begin, (long long)slice->end);
    if (slice->step < -CG_MAX_SIZE || slice->step > CG_MAX_SIZE)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "the step %lld is out of bounds",
                            (long long)slice->step);
    return check_axis(node, slice->axis, 0, error);
}

cellgate_status cg_check_concat(const cg_node *node, cellgate_error *error)
{
    return check_axis(node, node->as.concat, 0, error);
}

cellgate_status cg_check_pad(const cg_node *node, cellgate_error *error)
{
    const cg_pad *pad = &node->as.pad;
    cellgate_status status = check_axis(node, pad->axis, 1, error);

    if (status == CELLGATE_OK)
        status =
            cg_check_size(node, "the padding before", pad->before, 0, error);
    if (status == CELLGATE_OK)
        status = cg_check_size(node, "the padding after", pad->after, 0, error);
    return status;
}

cellgate_status cg_check_repeat(const cg_node *node, cellgate_error *error)
{
    cellgate_status status = check_axis(node, node->as.repeat.axis, 1, error);

    if (status == CELLGATE_OK)
        status = cg_check_size(node, "the number of repetitions",
                               node->as.repeat.times, 1, error);
    return status;
}

cellgate_status cg_check_reshape(const cg_node *node, cellgate_error *error)
{
    const cg_reshape *reshape = &node->as.reshape;
    int open = 0;
    cellgate_status status = CELLGATE_OK;

    if (reshape->keep < 1 || reshape->extents.count < 0 ||
        reshape->extents.count > CELLGATE_MAX_RANK ||
        reshape->keep > CELLGATE_MAX_RANK - reshape->extents.count)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "the new shape has %d axes after %d; 1 to %d are "
                            "possible together",
                            (int)reshape->extents.count, (int)reshape->keep,
                            CELLGATE_MAX_RANK);
    for (int32_t i = 0; status == CELLGATE_OK && i < reshape->extents.count;
         i++) {
        if (reshape->extents.extent[i] == CG_UNKNOWN)
            open++;
        else
            status = cg_check_size(node, "an extent of the new shape",
                                   reshape->extents.extent[i], 1, error);
    }
    if (status == CELLGATE_OK && open > 1)
        status = cg_node_fail(error, CELLGATE_BAD_FILE, node,
                              "%d extents of the new shape are open; one can "
                              "be worked out",
                              open);
    return status;
}

cellgate_status cg_check_permute(const cg_node *node, cellgate_error *error)
{
    const cg_extents *order = &node->as.permute;
    unsigned seen = 0;

    for (int32_t i = 0; i < order->count && i < CELLGATE_MAX_RANK; i++)
        if (order->extent[i] >= 0 && order->extent[i] < order->count)
            seen |= 1u << order->extent[i];
    if (order->count >= 1 && order->count <= CELLGATE_MAX_RANK &&
        order->extent[0] == 0 && seen == (1u << order->count) - 1)
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                        "it does not name each axis once, the batch first");
}

static cellgate_status check_inputs(const cg_node *node, bool good,
                                    const char *expected, cellgate_error *error)
{
    if (good)
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                        "it has %zu inputs; it takes %s", node->input_count,
                        expected);
}

cellgate_status cg_check_combine(const cg_node *node, cellgate_error *error)
{
    return check_inputs(node,
                        (node->as.combine != CG_COMBINE_SUBTRACT &&
                         node->as.combine != CG_COMBINE_DIVIDE) ||
                            node->input_count == 2,
                        "two", error);
}

cellgate_status cg_check_logic(const cg_node *node, cellgate_error *error)
{
    return check_inputs(
        node, node->as.logic != CG_LOGIC_NOT || node->input_count == 1, "one",
        error);
}

cellgate_status cg_check_select(const cg_node *node, cellgate_error *error)
{
    if (isfinite(node->as.select))
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                        "what stands for masked steps is not finite");
}

cellgate_status cg_check_dot(const cg_node *node, cellgate_error *error)
{
    const cg_dot *dot = &node->as.dot;
    cellgate_status status = check_axis(node, dot->axis_a, 1, error);

    if (status == CELLGATE_OK)
        status = check_axis(node, dot->axis_b, 1, error);
    if (status == CELLGATE_OK &&
        (!isfinite(dot->least_square) || dot->least_square < 0))
        status = cg_node_fail(error, CELLGATE_BAD_FILE, node,
                              "the least sum of squares must be 0 or a "
                              "positive number");
    return status;
}
