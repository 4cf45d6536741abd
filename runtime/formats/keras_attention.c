/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/keras.h"

const char *const cg_keras_attention_options[] = {
    "use_scale", "score_mode", "causal",
    /* without effect at inference */
    "dropout", "seed", NULL
};

static cellgate_status read_mode(const cg_keras_layer *layer,
                                 cg_attention *attention, cellgate_error *error)
{
    const bool additive = strcmp(layer->class->name, "AdditiveAttention") == 0;
    const json_t *value = json_object_get(layer->config, "score_mode");
    const char *name = value != NULL ? json_string_value(value) : "dot";

    if (additive)
        attention->mode = CG_ATTENTION_ADDITIVE;
    else if (name != NULL && strcmp(name, "dot") == 0)
        attention->mode = CG_ATTENTION_DOT;
    else if (name != NULL && strcmp(name, "concat") == 0)
        attention->mode = CG_ATTENTION_CONCAT;
    else
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'score_mode' must be dot or concat");
    return cg_keras_get_flag(layer, "use_scale", additive, &attention->scaled,
                             error);
}

/* Query, value and perhaps key: what goes in. */
static cellgate_status get_tensors(cg_keras_call *call, int32_t *inputs,
                                   cellgate_error *error)
{
    const cg_keras_reader *reader = call->layer->reader;
    const size_t count = call->inputs.count;
    cellgate_status status = CELLGATE_OK;

    if (count < 2 || count > 3 || call->states.count != 0)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                             "it is called on %zu tensors; it takes a query, a "
                             "value and perhaps a key",
                             count + call->states.count);
    inputs[CG_ATTENTION_INPUT_KEY] = CG_NO_VALUE;
    for (size_t i = 0; status == CELLGATE_OK && i < count; i++) {
        cg_keras_tensor *x = &call->inputs.items[i];

        status = cg_keras_claim(call, x, CELLGATE_F32, error);
        inputs[i] = x->value;
        if (status == CELLGATE_OK && reader->shapes[x->value].rank != 3)
            status = cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                                   "input %zu has %d axes; it must have 3: "
                                   "batch, steps and features",
                                   i + 1, (int)reader->shapes[x->value].rank);
    }
    return status;
}

/* The masks of query and value: those that the call gives, or else those that
   go with them. */
static cellgate_status get_masks(const cg_keras_call *call, int32_t *inputs,
                                 cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (call->mask.value != CG_NO_VALUE || call->masks.count == 1 ||
        call->masks.count > 3)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                             "mask= must be a list: of the query, and of the "
                             "value");
    for (size_t i = 0; status == CELLGATE_OK && i < 2; i++) {
        int32_t *mask = &inputs[CG_ATTENTION_INPUT_QUERY_MASK + i];

        *mask = CG_NO_VALUE;
        if (call->masks.count == 0)
            *mask = call->inputs.items[i].mask;
        else if (call->masks.items[i].value != CG_NO_VALUE)
            status =
                cg_keras_make_mask(call, &call->masks.items[i], mask, error);
    }
    return status;
}

cellgate_status cg_keras_build_attention(cg_keras_call *call,
                                         cellgate_error *error)
{
    static const char *const suffixes[] = { "", ":scores" };
    cg_weight weights[2] = { 0 };
    int32_t inputs[5], outputs[2] = { CG_KERAS_NEW, CG_NO_VALUE };
    cg_node node = { .kind = CG_ATTENTION,
                     .inputs = inputs,
                     .input_count = 5,
                     .outputs = outputs,
                     .output_count = 2,
                     .weights = weights,
                     .weight_count = 2 };
    cg_attention *attention = &node.as.attention;
    cellgate_status status = get_tensors(call, inputs, error);

    if (status == CELLGATE_OK)
        status = get_masks(call, inputs, error);
    if (status == CELLGATE_OK)
        status = read_mode(call->layer, attention, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(call->layer, "causal", false,
                                   &attention->causal, error);
    if (status == CELLGATE_OK)
        status = cg_keras_features(call, &call->inputs.items[0],
                                   &attention->size, error);
    if (status == CELLGATE_OK)
        status = cg_keras_load(call->layer, "", &node, 0, 2, weights, error);
    if (status != CELLGATE_OK)
        return status;
    attention->causal = attention->causal || call->causal;
    if (call->scores)
        outputs[1] = CG_KERAS_NEW;
    status = cg_keras_emit(call, &node, "", suffixes, error);
    if (status == CELLGATE_OK)
        status = cg_keras_return(call, outputs[0],
                                 inputs[CG_ATTENTION_INPUT_QUERY_MASK], error);
    if (status == CELLGATE_OK && call->scores)
        status = cg_keras_return(call, outputs[1], CG_NO_VALUE, error);
    return status;
}
