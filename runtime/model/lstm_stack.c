/* SPDX-License-Identifier: Apache-2.0 */
/* A model to be timed: LSTM layers of any size, with made-up weights. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "runtime/given.h"
#include "runtime/model/model.h"

#define MOST_SIZE 65536
#define MOST_LAYERS 64

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory for the weights of the layers");
}

static cellgate_status read_stack(const cellgate_lstm_stack *stack,
                                  cellgate_lstm_stack *read,
                                  cellgate_error *error)
{
    *read = (cellgate_lstm_stack){ .struct_size = sizeof *read };
    if (stack == NULL || !cg_given_known(stack, CG_FIRST_ANY, sizeof *read))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the layers have members that this libcellgate "
                             "does not know");
    cellgate_struct_copy(read, stack);
    if (read->input_size < 1 || read->input_size > MOST_SIZE ||
        read->hidden_size < 1 || read->hidden_size > MOST_SIZE ||
        read->layers < 1 || read->layers > MOST_LAYERS)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "input %lld, hidden %lld, %d layers: sizes are "
                             "from 1 to %d, layers "
                             "from 1 to %d",
                             (long long)read->input_size,
                             (long long)read->hidden_size, (int)read->layers,
                             MOST_SIZE, MOST_LAYERS);
    return CELLGATE_OK;
}

/* Numbers in [-1, 1) / sqrt(rows), from a Weyl sequence: as large as those of a
   trained layer, so that no gate is stuck. */
static bool fill(cellgate_model *model, cg_weight *weight, uint32_t seed)
{
    const double scale = 1 / sqrt((double)weight->shape[0] + 1);
    int64_t size = 1;
    float *data;

    for (int32_t axis = 0; axis < weight->rank; axis++)
        size *= weight->shape[axis];
    data = cg_model_memory(model, (size_t)size * sizeof *data);
    for (int64_t at = 0; data != NULL && at < size; at++) {
        const uint32_t next = seed + (uint32_t)at * UINT32_C(2654435769);

        data[at] = (float)(((double)next / 2147483648.0 - 1) * scale);
    }
    weight->data = data;
    return data != NULL;
}

static void set_shape(const cellgate_lstm_stack *stack, int32_t layer,
                      cellgate_lstm *shape)
{
    const int32_t directions = stack->bidirectional ? 2 : 1;

    shape->input_size =
        layer == 0 ? stack->input_size : directions * stack->hidden_size;
    shape->hidden_size = stack->hidden_size;
    shape->directions = directions;
    shape->has_bias = 1;
    for (int32_t direction = 0; direction < directions; direction++) {
        shape->activations[direction][0].kind = CELLGATE_SIGMOID;
        shape->activations[direction][1].kind = CELLGATE_TANH;
        shape->activations[direction][2].kind = CELLGATE_TANH;
    }
}

/* *value: the layer's input, then its sequence. */
static cellgate_status add_layer(cellgate_model *model,
                                 const cellgate_lstm_stack *stack,
                                 int32_t layer, int32_t *value,
                                 cellgate_error *error)
{
    cg_weight weights[2 * CG_LSTM_WEIGHTS];
    int32_t inputs[6] = { *value,      CG_NO_VALUE, CG_NO_VALUE,
                          CG_NO_VALUE, CG_NO_VALUE, CG_NO_VALUE };
    int32_t outputs[6] = { 0,           CG_NO_VALUE, CG_NO_VALUE,
                           CG_NO_VALUE, CG_NO_VALUE, CG_NO_VALUE };
    cg_node node = { .kind = CG_LSTM, .inputs = inputs, .outputs = outputs };
    char name[32];
    cellgate_status status;

    snprintf(name, sizeof name, "lstm_%d", (int)layer + 1);
    node.name = node.layer = name;
    set_shape(stack, layer, &node.as.lstm.shape);
    node.input_count = node.output_count =
        2 + 2 * (size_t)node.as.lstm.shape.directions;
    memset(weights, 0, sizeof weights);
    node.weights = weights;
    node.weight_count = cg_node_weight_count(&node);
    for (size_t at = 0; at < node.weight_count; at++)
        if (cg_node_weight(&node, at, &weights[at]) &&
            !fill(model, &weights[at], (uint32_t)(layer * 31 + (int)at)))
            return no_memory(error);
    snprintf(name, sizeof name, "sequence_%d", (int)layer + 1);
    status = cg_model_add_value(model, name, CELLGATE_F32, 0, NULL, &outputs[0],
                                error);
    snprintf(name, sizeof name, "lstm_%d", (int)layer + 1);
    if (status == CELLGATE_OK)
        status = cg_model_add_node(model, &node, error);
    *value = outputs[0];
    return status;
}

static cellgate_status build(cellgate_model *model,
                             const cellgate_lstm_stack *stack,
                             cellgate_error *error)
{
    const int64_t shape[3] = { CG_UNKNOWN, CG_UNKNOWN, stack->input_size };
    int32_t value;
    cellgate_status status =
        cg_model_add_value(model, "x", CELLGATE_F32, 3, shape, &value, error);

    if (status == CELLGATE_OK)
        status = cg_model_add_input(model, value, error);
    for (int32_t layer = 0; status == CELLGATE_OK && layer < stack->layers;
         layer++)
        status = add_layer(model, stack, layer, &value, error);
    if (status == CELLGATE_OK)
        status = cg_model_add_output(model, value, error);
    return status == CELLGATE_OK ? cg_model_finish(model, error) : status;
}

cellgate_status cellgate_model_make_lstm(const cellgate_lstm_stack *stack,
                                         cellgate_model **model,
                                         cellgate_error *error)
{
    cellgate_lstm_stack read;
    cellgate_model *made;
    cellgate_status status = read_stack(stack, &read, error);

    if (status == CELLGATE_OK)
        status = cg_model_create("lstm", "made", "", &made, error);
    if (status != CELLGATE_OK)
        return status;
    status = build(made, &read, error);
    if (status == CELLGATE_OK)
        *model = made;
    else
        cellgate_model_destroy(made);
    return status;
}
