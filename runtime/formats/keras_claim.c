/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What dtype values have. The file says it of each input, but float32 is what
 * Keras says when nobody cared: an input that is looked up in an embedding and
 * used for nothing else takes ids. Where the uses differ, the input keeps what
 * the file says, and the others are cast to, as Keras casts.
 */
#include "config.h"

#include "runtime/formats/keras.h"

static cellgate_status fail_comparison(const cg_keras_call *call,
                                       cellgate_error *error)
{
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                         "a comparison is supported as a mask only");
}

/* The value cast to a dtype, by a node that may be there already. */
static cellgate_status cast(const cg_keras_call *call, int32_t value,
                            int32_t dtype, int32_t *result,
                            cellgate_error *error)
{
    const cg_node node = { .kind = CG_CAST,
                           .as.cast = dtype == CELLGATE_I32 ? CG_CAST_IDS
                                                            : CG_CAST_NUMBERS };

    return cg_keras_emit_once(call, &node, value,
                              dtype == CELLGATE_I32 ? ":ids" : ":numbers",
                              result, error);
}

/* Gives a model input back the dtype that the file says; those that took it as
   something else take a cast of it from now on. */
static cellgate_status restore(const cg_keras_call *call, int32_t value,
                               cellgate_error *error)
{
    cg_keras_reader *reader = call->layer->reader;
    cellgate_model *model = reader->model;
    const size_t users = model->node_count;
    const int32_t taken = model->values[value].dtype;
    int32_t result;
    cellgate_status status;

    model->values[value].dtype = reader->declared[value];
    status = cast(call, value, taken, &result, error);
    for (size_t i = 0; status == CELLGATE_OK && i < users; i++)
        for (size_t k = 0; k < model->nodes[i].input_count; k++)
            if (model->nodes[i].inputs[k] == value &&
                model->nodes[i].kind != CG_NONZERO &&
                model->nodes[i].outputs[0] != result)
                model->nodes[i].inputs[k] = result;
    return status;
}

cellgate_status cg_keras_claim_any(const cg_keras_call *call,
                                   const cg_keras_tensor *tensor,
                                   cellgate_error *error)
{
    cg_keras_reader *reader = call->layer->reader;
    const cg_value *value = &reader->model->values[tensor->value];

    if (tensor->compared || tensor->stands != CG_KERAS_ITSELF)
        return fail_comparison(call, error);
    if (value->dtype == CELLGATE_U8)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it takes numbers or ids, and '%s' is a mask",
                             value->name);
    if (value->producer != -1)
        return CELLGATE_OK;
    reader->claimed[tensor->value] = true;
    return value->dtype == reader->declared[tensor->value]
               ? CELLGATE_OK
               : restore(call, tensor->value, error);
}

cellgate_status cg_keras_claim(const cg_keras_call *call,
                               cg_keras_tensor *tensor, int32_t dtype,
                               cellgate_error *error)
{
    cg_keras_reader *reader = call->layer->reader;
    cg_value *value = &reader->model->values[tensor->value];
    cellgate_status status;

    if (!tensor->compared && tensor->stands == CG_KERAS_ITSELF &&
        value->producer == -1 && value->dtype != CELLGATE_U8 &&
        !reader->claimed[tensor->value]) {
        value->dtype = dtype;
        reader->claimed[tensor->value] = true;
    }
    if (!tensor->compared && tensor->stands == CG_KERAS_ITSELF &&
        value->dtype == dtype)
        return CELLGATE_OK;
    status = cg_keras_claim_any(call, tensor, error);
    if (status != CELLGATE_OK ||
        reader->model->values[tensor->value].dtype == dtype)
        return status;
    return cast(call, tensor->value, dtype, &tensor->value, error);
}
