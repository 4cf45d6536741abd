/* SPDX-License-Identifier: Apache-2.0 */
/* Add, Subtract, Multiply, Average, Maximum, Minimum. */
#include "config.h"

#include "runtime/formats/keras_merge.h"

static cellgate_status find_mode(const cg_keras_layer *layer, cg_combine *mode)
{
    static const struct {
        const char *class_name;
        cg_combine mode;
    } modes[] = {
        { "Add", CG_COMBINE_ADD },
        { "Subtract", CG_COMBINE_SUBTRACT },
        { "Multiply", CG_COMBINE_MULTIPLY },
        { "Average", CG_COMBINE_AVERAGE },
        { "Maximum", CG_COMBINE_MAXIMUM },
        { "Minimum", CG_COMBINE_MINIMUM },
    };

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(layer->class_name, modes[i].class_name) == 0) {
            *mode = modes[i].mode;
            return CELLGATE_OK;
        }
    return CELLGATE_INTERNAL;
}

/* ---- Masked steps, in Keras 3 -------------------------------------------- */

/* The mask that leaves steps of an input out, or CG_NO_VALUE. */
static int32_t mask_of(const cg_keras_call *call, size_t input, int32_t rank)
{
    const cg_keras_tensor *x = &call->inputs.items[input];

    return x->mask != CG_NO_VALUE &&
                   cg_keras_shape(call, x->value)->rank == rank &&
                   cg_keras_shape(call, x->mask)->rank == rank - 1
               ? x->mask
               : CG_NO_VALUE;
}

/* The most axes that any input has. */
static int32_t most_axes(const cg_keras_call *call)
{
    int32_t most = 0;

    for (size_t i = 0; i < call->inputs.count; i++) {
        const int32_t rank =
            cg_keras_shape(call, call->inputs.items[i].value)->rank;

        most = rank > most ? rank : most;
    }
    return most;
}

/* x, with `other` or, without one, 1 where it is masked; *value is x before. */
static cellgate_status replace_masked(const cg_keras_call *call, int32_t mask,
                                      int32_t other, int32_t *value,
                                      cellgate_error *error)
{
    const cg_node node = { .kind = CG_SELECT,
                           .as.select = other == CG_NO_VALUE ? 1.0f : 0.0f };
    const int32_t inputs[3] = { *value, mask, other };

    if (mask == CG_NO_VALUE)
        return CELLGATE_OK;
    return cg_keras_emit_simple(call, &node, inputs,
                                other == CG_NO_VALUE ? 2 : 3, ":select", value,
                                error);
}

/* `mask` is that of the result. */
static cellgate_status multiply(cg_keras_call *call, const cg_node *node,
                                int32_t mask, int32_t *value,
                                cellgate_error *error)
{
    const cg_node masked = { .kind = CG_MASKED };
    const int32_t rank = most_axes(call);
    int32_t inputs[2] = { CG_NO_VALUE, mask };
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < call->inputs.count; i++)
        status = replace_masked(call, mask_of(call, i, rank), CG_NO_VALUE,
                                &call->inputs.items[i].value, error);
    if (status != CELLGATE_OK || mask == CG_NO_VALUE)
        return status == CELLGATE_OK
                   ? cg_keras_merge_emit(call, node, "", value, error)
                   : status;
    status = cg_keras_merge_emit(call, node, ":product", &inputs[0], error);
    return status == CELLGATE_OK ? cg_keras_emit_simple(call, &masked, inputs,
                                                        2, "", value, error)
                                 : status;
}

/* Maximum and Minimum, input by input; *mask is of what is there so far. */
static cellgate_status choose(const cg_keras_call *call, const cg_node *node,
                              size_t input, int32_t rank, int32_t *value,
                              int32_t *mask, cellgate_error *error)
{
    const cg_node either = { .kind = CG_LOGIC, .as.logic = CG_LOGIC_OR };
    const bool last = input + 1 == call->inputs.count;
    const int32_t masks[2] = { *mask, mask_of(call, input, rank) };
    int32_t pair[2] = { *value, call->inputs.items[input].value };
    cellgate_status status =
        replace_masked(call, masks[1], pair[0], &pair[1], error);

    if (status == CELLGATE_OK)
        status = replace_masked(call, masks[0], pair[1], &pair[0], error);
    *mask = masks[0] == masks[1] ? masks[0] : CG_NO_VALUE;
    if (status == CELLGATE_OK && !last && masks[0] != masks[1] &&
        masks[0] != CG_NO_VALUE && masks[1] != CG_NO_VALUE)
        status =
            cg_keras_emit_simple(call, &either, masks, 2, ":mask", mask, error);
    return status == CELLGATE_OK
               ? cg_keras_emit_simple(call, node, pair, 2, last ? "" : ":part",
                                      value, error)
               : status;
}

static cellgate_status choose_all(const cg_keras_call *call,
                                  const cg_node *node, int32_t *value,
                                  cellgate_error *error)
{
    const int32_t rank = most_axes(call);
    int32_t mask = mask_of(call, 0, rank);
    cellgate_status status = CELLGATE_OK;

    *value = call->inputs.items[0].value;
    for (size_t i = 1; status == CELLGATE_OK && i < call->inputs.count; i++)
        status = choose(call, node, i, rank, value, &mask, error);
    return status;
}

/* ---- The layers ---------------------------------------------------------- */

static bool any_mask(const cg_keras_call *call)
{
    const int32_t rank = most_axes(call);

    for (size_t i = 0; i < call->inputs.count; i++)
        if (mask_of(call, i, rank) != CG_NO_VALUE)
            return true;
    return false;
}

/* `mask` is that of the result. */
static cellgate_status emit_combine(cg_keras_call *call, const cg_node *node,
                                    int32_t mask, int32_t *value,
                                    cellgate_error *error)
{
    const cg_combine mode = node->as.combine;

    if (call->layer->reader->keras_major < 3 || call->inputs.count < 2 ||
        !any_mask(call))
        return cg_keras_merge_emit(call, node, "", value, error);
    if (mode == CG_COMBINE_MULTIPLY)
        return multiply(call, node, mask, value, error);
    if (mode == CG_COMBINE_MAXIMUM || mode == CG_COMBINE_MINIMUM)
        return choose_all(call, node, value, error);
    return cg_keras_merge_emit(call, node, "", value, error);
}

cellgate_status cg_keras_build_combine(cg_keras_call *call,
                                       cellgate_error *error)
{
    cg_node node = { .kind = CG_COMBINE };
    int32_t value, mask = CG_NO_VALUE;
    cellgate_status status = find_mode(call->layer, &node.as.combine);

    if (status == CELLGATE_OK)
        status = node.as.combine == CG_COMBINE_SUBTRACT
                     ? cg_keras_merge_check(call, 2, 2, error)
                     : cg_keras_merge_check(call, 1, SIZE_MAX, error);
    if (status == CELLGATE_OK)
        status = cg_keras_merge_claim(call, CELLGATE_F32, error);
    if (status == CELLGATE_OK)
        status = cg_keras_merge_masks(call, most_axes(call), &mask, error);
    if (status == CELLGATE_OK)
        status = emit_combine(call, &node, mask, &value, error);
    return status == CELLGATE_OK ? cg_keras_return(call, value, mask, error)
                                 : status;
}
