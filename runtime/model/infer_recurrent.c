/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of recurrent nodes and of attention. */
#include "config.h"

#include "runtime/model/infer.h"

/* x, and the mask and initial states beside it, into *x. */
static cellgate_status check_inputs(const cg_node *node, const cg_shape *shapes,
                                    int64_t features, cg_shape *x,
                                    cellgate_error *error)
{
    const int32_t kinds = cg_node_state_kinds(node);
    const cg_shape *mask =
        cg_infer_input(node, shapes, CG_RECURRENT_INPUT_MASK);
    cellgate_status status = cg_need_rank(node, "the input", x, 3, 3, error);

    if (status == CELLGATE_OK)
        status = cg_need_extent(node, "the number of features", x->extent[2],
                                features, error);
    if (status == CELLGATE_OK && mask != NULL) {
        status = cg_need_rank(node, "the mask", mask, 2, 2, error);
        if (status == CELLGATE_OK)
            status = cg_meet_leading(node, x, mask, 2, error);
    }
    for (size_t i = CG_RECURRENT_INPUT_STATE;
         status == CELLGATE_OK && i < node->input_count; i++) {
        const cg_shape *state = cg_infer_input(node, shapes, i);

        if (state == NULL)
            continue;
        status = cg_need_rank(node, "an initial state", state, 2, 2, error);
        if (status == CELLGATE_OK)
            status = cg_need_extent(
                node, "the size of an initial state", state->extent[1],
                cg_node_state_width(node, (int32_t)i % kinds), error);
        if (status == CELLGATE_OK)
            status = cg_meet_leading(node, x, state, 1, error);
    }
    return status;
}

/* Of any recurrent kind, with `features` numbers a step. */
static cellgate_status infer_scan(const cg_node *node, cg_shape *shapes,
                                  int64_t features, cellgate_error *error)
{
    const int32_t kinds = cg_node_state_kinds(node);
    const int64_t width =
        cg_node_directions(node) * cg_node_state_width(node, 0);
    cg_shape x = *cg_infer_input(node, shapes, 0);
    cg_shape y;
    cellgate_status status = check_inputs(node, shapes, features, &x, error);

    if (status != CELLGATE_OK)
        return status;
    y = (cg_shape){ 3, { x.extent[0], x.extent[1], width } };
    cg_infer_output(node, shapes, CG_RECURRENT_OUTPUT_SEQUENCE, &y);
    y = (cg_shape){ 2, { x.extent[0], width } };
    cg_infer_output(node, shapes, CG_RECURRENT_OUTPUT_LAST, &y);
    for (size_t i = CG_RECURRENT_OUTPUT_STATE; i < node->output_count; i++) {
        y.extent[1] = cg_node_state_width(node, (int32_t)i % kinds);
        cg_infer_output(node, shapes, i, &y);
    }
    return CELLGATE_OK;
}

CG_INFER(lstm)
{
    return infer_scan(node, shapes, node->as.lstm.shape.input_size, error);
}

CG_INFER(recurrent)
{
    return infer_scan(node, shapes, node->as.recurrent.input_size, error);
}

/* What a mask, if there is one, says of the batch and the steps. */
static cellgate_status meet_mask(const cg_node *node, const cg_shape *shapes,
                                 size_t index, cg_shape *of,
                                 cellgate_error *error)
{
    const cg_shape *mask = cg_infer_input(node, shapes, index);
    cellgate_status status = CELLGATE_OK;

    if (mask == NULL)
        return CELLGATE_OK;
    status = cg_need_rank(node, "a mask", mask, 2, 2, error);
    return status == CELLGATE_OK ? cg_meet_leading(node, of, mask, 2, error)
                                 : status;
}

/* Query, value and key, into *query and *value. */
static cellgate_status check_attended(const cg_node *node,
                                      const cg_shape *shapes, cg_shape *query,
                                      cg_shape *value, cellgate_error *error)
{
    const int64_t size = node->as.attention.size;
    const cg_shape *key = cg_infer_input(node, shapes, CG_ATTENTION_INPUT_KEY);
    cellgate_status status =
        cg_need_rank(node, "the query", query, 3, 3, error);

    if (status == CELLGATE_OK)
        status = cg_need_rank(node, "the value", value, 3, 3, error);
    if (status == CELLGATE_OK)
        status = cg_need_extent(node, "the size of the query", query->extent[2],
                                size, error);
    if (key == NULL && status == CELLGATE_OK)
        status = cg_need_extent(node, "the size of the value", value->extent[2],
                                size, error);
    if (key != NULL && status == CELLGATE_OK)
        status = cg_need_rank(node, "the key", key, 3, 3, error);
    if (key != NULL && status == CELLGATE_OK)
        status = cg_need_extent(node, "the size of the key", key->extent[2],
                                size, error);
    if (key != NULL && status == CELLGATE_OK)
        status = cg_meet_leading(node, value, key, 2, error);
    return status;
}

CG_INFER(attention)
{
    cg_shape query = *cg_infer_input(node, shapes, 0);
    cg_shape value = *cg_infer_input(node, shapes, 1);
    cg_shape y;
    cellgate_status status =
        check_attended(node, shapes, &query, &value, error);

    if (status == CELLGATE_OK)
        status = meet_mask(node, shapes, CG_ATTENTION_INPUT_QUERY_MASK, &query,
                           error);
    if (status == CELLGATE_OK)
        status = meet_mask(node, shapes, CG_ATTENTION_INPUT_VALUE_MASK, &value,
                           error);
    if (status == CELLGATE_OK)
        status = cg_meet_leading(node, &query, &value, 1, error);
    if (status != CELLGATE_OK)
        return status;
    y = (cg_shape){ 3, { query.extent[0], query.extent[1], value.extent[2] } };
    cg_infer_output(node, shapes, 0, &y);
    y.extent[2] = value.extent[1];
    cg_infer_output(node, shapes, 1, &y);
    return CELLGATE_OK;
}
