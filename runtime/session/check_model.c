/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/session/check_model.h"

#define INPUT_SIZE 5
#define HIDDEN_SIZE 7
#define STATES 2

static void set_shape(cellgate_lstm *shape)
{
    shape->input_size = INPUT_SIZE;
    shape->hidden_size = HIDDEN_SIZE;
    shape->directions = 1;
    shape->has_bias = 1;
    shape->activations[0][0].kind = CELLGATE_SIGMOID;
    shape->activations[0][1].kind = CELLGATE_TANH;
    shape->activations[0][2].kind = CELLGATE_TANH;
}

/* In [-0.5, 0.5), from a Weyl sequence: no gate is stuck, no two weights are
   alike. */
static bool fill(cellgate_model *model, cg_weight *weight, uint32_t *next)
{
    int64_t size = 1;
    float *data;

    for (int32_t axis = 0; axis < weight->rank; axis++)
        size *= weight->shape[axis];
    data = cg_model_memory(model, (size_t)size * sizeof *data);
    for (int64_t at = 0; data != NULL && at < size; at++) {
        *next += UINT32_C(2654435769);
        data[at] = (float)((double)*next / 4294967296.0 - 0.5);
    }
    weight->data = data;
    return data != NULL;
}

static cellgate_status add_lstm(cellgate_model *model, int32_t x,
                                int32_t *sequence, cellgate_error *error)
{
    char name[] = "check";
    cg_weight weights[CG_LSTM_WEIGHTS] = { { 0 } };
    int32_t inputs[2 + STATES] = { x, model->inputs[0].mask, CG_NO_VALUE,
                                   CG_NO_VALUE };
    int32_t outputs[2 + STATES] = { 0, CG_NO_VALUE, CG_NO_VALUE, CG_NO_VALUE };
    cg_node node = { .kind = CG_LSTM,
                     .name = name,
                     .layer = name,
                     .inputs = inputs,
                     .input_count = 2 + STATES,
                     .outputs = outputs,
                     .output_count = 2 + STATES,
                     .weights = weights };
    cellgate_status status;
    uint32_t next = 1;

    set_shape(&node.as.lstm.shape);
    node.weight_count = cg_node_weight_count(&node);
    for (size_t at = 0; at < node.weight_count; at++)
        if (cg_node_weight(&node, at, &weights[at]) &&
            !fill(model, &weights[at], &next))
            return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "no memory to check a device");
    status = cg_model_add_value(model, "y", CELLGATE_F32, 0, NULL, &outputs[0],
                                error);
    if (status != CELLGATE_OK)
        return status;
    *sequence = outputs[0];
    return cg_model_add_node(model, &node, error);
}

static cellgate_status build(cellgate_model *model, cellgate_error *error)
{
    const int64_t shape[3] = { CG_UNKNOWN, CG_UNKNOWN, INPUT_SIZE };
    int32_t x, y;
    cellgate_status status =
        cg_model_add_value(model, "x", CELLGATE_F32, 3, shape, &x, error);

    if (status == CELLGATE_OK)
        status = cg_model_add_input(model, x, error);
    if (status == CELLGATE_OK)
        status = add_lstm(model, x, &y, error);
    if (status == CELLGATE_OK)
        status = cg_model_add_output(model, y, error);
    return status == CELLGATE_OK ? cg_model_finish(model, error) : status;
}

cellgate_status cg_check_model_create(cellgate_model **model,
                                      cellgate_error *error)
{
    cellgate_model *made = NULL;
    cellgate_status status = cg_model_create("check", "made", "", &made, error);

    if (status == CELLGATE_OK)
        status = build(made, error);
    if (status != CELLGATE_OK) {
        cellgate_model_destroy(made);
        return status;
    }
    *model = made;
    return CELLGATE_OK;
}
