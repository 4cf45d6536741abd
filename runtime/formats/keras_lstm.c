/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/keras_lstm.h"

const char *const cg_keras_lstm_options[] = {
    "units", "activation", "recurrent_activation", "use_bias", "go_backwards",
    "return_sequences", "return_state", "stateful", "zero_output_for_mask",
    /* without effect at inference */
    "unroll", "unit_forget_bias", "dropout", "recurrent_dropout", "seed",
    "implementation", "use_cudnn", CG_KERAS_TRAINING(kernel),
    CG_KERAS_TRAINING(recurrent), CG_KERAS_TRAINING(bias), NULL
};

/* ---- Reading the options ------------------------------------------------- */

static cellgate_status get_activation(const cg_keras_layer *layer,
                                      const char *key, const char *absent,
                                      cellgate_activation *activation,
                                      cellgate_error *error)
{
    cg_keras_activation any;
    cellgate_status status =
        cg_keras_get_activation(layer, key, absent, &any, error);

    if (status == CELLGATE_OK && any.softmax)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "softmax as '%s' of an LSTM is not supported",
                             key);
    if (status == CELLGATE_OK)
        *activation = any.elementwise;
    return status;
}

static cellgate_status read_flags(const cg_keras_layer *layer,
                                  cg_keras_lstm *lstm, cellgate_error *error)
{
    const struct {
        const char *key;
        bool absent;
        bool *flag;
    } flags[] = {
        { "use_bias", true, &lstm->bias },
        { "go_backwards", false, &lstm->go_backwards },
        { "return_sequences", false, &lstm->sequences },
        { "return_state", false, &lstm->states },
        { "stateful", false, &lstm->stateful },
        { "zero_output_for_mask", false, &lstm->zero_masked },
    };
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0;
         status == CELLGATE_OK && i < sizeof flags / sizeof flags[0]; i++)
        status = cg_keras_get_flag(layer, flags[i].key, flags[i].absent,
                                   flags[i].flag, error);
    return status;
}

cellgate_status cg_keras_read_lstm(const cg_keras_layer *layer,
                                   const char *suffix, cg_keras_lstm *lstm,
                                   cellgate_error *error)
{
    cellgate_status status =
        cg_keras_get_size(layer, "units", &lstm->units, error);

    lstm->suffix = suffix;
    if (status == CELLGATE_OK)
        status = read_flags(layer, lstm, error);
    if (status == CELLGATE_OK)
        status =
            get_activation(layer, "activation", "tanh", &lstm->cell, error);
    if (status == CELLGATE_OK)
        status = get_activation(layer, "recurrent_activation", "sigmoid",
                                &lstm->gate, error);
    return status;
}

/* ---- Emitting ------------------------------------------------------------ */

cellgate_status cg_keras_lstm_get_inputs(const cg_keras_call *call,
                                         cg_keras_lstm_inputs *in,
                                         cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cellgate_status status;

    if (call->inputs.count != 1)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "it is called on %zu tensors; it takes one",
                             call->inputs.count);
    in->x = call->inputs.items[0];
    status = cg_keras_claim(call, &in->x, CELLGATE_F32, error);
    if (status != CELLGATE_OK)
        return status;
    if (layer->reader->shapes[in->x.value].rank != 3)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "its input has %d axes; it must have 3: batch, "
                             "steps and features",
                             (int)layer->reader->shapes[in->x.value].rank);
    /* With states as tensors, Keras hands on only a mask given as mask=. */
    in->mask = call->states.count == 0 ? in->x.mask : CG_NO_VALUE;
    if (call->mask.value != CG_NO_VALUE)
        status = cg_keras_make_mask(call, &call->mask, &in->mask, error);
    if (status == CELLGATE_OK)
        status = cg_keras_features(call, &in->x, &in->features, error);
    return status;
}

int32_t cg_keras_lstm_passed_mask(const cg_keras_call *call,
                                  const cg_keras_lstm_inputs *in,
                                  bool sequences)
{
    if (!sequences)
        return CG_NO_VALUE;
    return call->mask.value != CG_NO_VALUE ? in->mask : in->x.mask;
}

static void set_direction(cg_node *node, size_t direction,
                          const cg_keras_lstm *lstm)
{
    cellgate_activation *triple = node->as.lstm.shape.activations[direction];

    triple[0] = lstm->gate;
    triple[1] = lstm->cell;
    triple[2] = lstm->cell;
}

static void set_shape(cg_node *node, const cg_keras_lstm_inputs *in,
                      const cg_keras_lstm *const *lstms, size_t directions)
{
    cellgate_lstm *shape = &node->as.lstm.shape;

    node->kind = CG_LSTM;
    shape->input_size = in->features;
    shape->hidden_size = lstms[0]->units;
    shape->directions = (int32_t)directions;
    shape->reverse = directions == 1 && lstms[0]->go_backwards;
    shape->has_bias = lstms[0]->bias;
    node->as.lstm.zero_masked = lstms[0]->zero_masked;
    node->as.lstm.stateful = lstms[0]->stateful;
    for (size_t d = 0; d < directions; d++)
        set_direction(node, d, lstms[d]);
}

/* The names of its values: the main one's is given. */
static void set_outputs(int32_t *outputs, const char **suffixes,
                        const cg_keras_lstm *lstm, const char *main,
                        size_t directions)
{
    static const char *const one[] = { ":h", ":c" };
    static const char *const two[] = { ":forward_h", ":forward_c",
                                       ":backward_h", ":backward_c" };

    outputs[CG_LSTM_OUTPUT_SEQUENCE] =
        lstm->sequences ? CG_KERAS_NEW : CG_NO_VALUE;
    outputs[CG_LSTM_OUTPUT_LAST] = lstm->sequences ? CG_NO_VALUE : CG_KERAS_NEW;
    suffixes[CG_LSTM_OUTPUT_SEQUENCE] = main;
    suffixes[CG_LSTM_OUTPUT_LAST] = main;
    for (size_t i = 0; i < 2 * directions; i++) {
        outputs[CG_LSTM_OUTPUT_STATE + i] =
            lstm->states ? CG_KERAS_NEW : CG_NO_VALUE;
        suffixes[CG_LSTM_OUTPUT_STATE + i] = directions == 1 ? one[i] : two[i];
    }
}

cellgate_status
cg_keras_emit_lstm(const cg_keras_call *call, const cg_keras_lstm_inputs *in,
                   const cg_keras_lstm *const *lstms, size_t directions,
                   const cg_keras_tensor *states, const char *suffix,
                   const char *main, cg_keras_lstm_results *results,
                   cellgate_error *error)
{
    cg_weight weights[2 * CG_LSTM_WEIGHTS] = { 0 };
    int32_t inputs[6], outputs[6];
    const char *suffixes[6];
    cg_node node = { .inputs = inputs,
                     .input_count = 2 + 2 * directions,
                     .outputs = outputs,
                     .output_count = 2 + 2 * directions,
                     .weights = weights,
                     .weight_count = CG_LSTM_WEIGHTS * directions };
    cellgate_status status = CELLGATE_OK;

    set_shape(&node, in, lstms, directions);
    set_outputs(outputs, suffixes, lstms[0], main, directions);
    inputs[0] = in->x.value;
    inputs[CG_LSTM_INPUT_MASK] = in->mask;
    for (size_t i = 0; status == CELLGATE_OK && i < 2 * directions; i++) {
        cg_keras_tensor state = { .value = CG_NO_VALUE };

        if (states != NULL) {
            state = states[i];
            status = cg_keras_claim(call, &state, CELLGATE_F32, error);
        }
        inputs[CG_LSTM_INPUT_STATE + i] = state.value;
    }
    for (size_t d = 0; status == CELLGATE_OK && d < directions; d++)
        status = cg_keras_load(call->layer, lstms[d]->suffix, &node,
                               CG_LSTM_WEIGHTS * d, CG_LSTM_WEIGHTS,
                               &weights[CG_LSTM_WEIGHTS * d], error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit(call, &node, suffix, suffixes, error);
    if (status != CELLGATE_OK)
        return status;
    results->main = outputs[lstms[0]->sequences ? CG_LSTM_OUTPUT_SEQUENCE
                                                : CG_LSTM_OUTPUT_LAST];
    memcpy(results->states, outputs + CG_LSTM_OUTPUT_STATE,
           2 * directions * sizeof outputs[0]);
    return CELLGATE_OK;
}

cellgate_status cg_keras_emit_reverse(const cg_keras_call *call, int32_t input,
                                      const char *suffix, const char *main,
                                      int32_t *value, cellgate_error *error)
{
    int32_t output = CG_KERAS_NEW;
    cg_node node = { .kind = CG_REVERSE,
                     .inputs = &input,
                     .input_count = 1,
                     .outputs = &output,
                     .output_count = 1 };
    cellgate_status status = cg_keras_emit(call, &node, suffix, &main, error);

    if (status == CELLGATE_OK)
        *value = output;
    return status;
}

cellgate_status cg_keras_return_states(cg_keras_call *call,
                                       const cg_keras_lstm_results *results,
                                       size_t directions, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < 2 * directions; i++)
        status = cg_keras_return(call, results->states[i / 2][i % 2],
                                 CG_NO_VALUE, error);
    return status;
}

/* ---- LSTM ---------------------------------------------------------------- */

cellgate_status cg_keras_check_states(const cg_keras_call *call,
                                      size_t expected, cellgate_error *error)
{
    if (call->states.count == 0 || call->states.count == expected)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                         "it has %zu initial states; it takes %zu",
                         call->states.count, expected);
}

cellgate_status cg_keras_split_states(cg_keras_call *call,
                                      cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 1; status == CELLGATE_OK && i < call->inputs.count; i++)
        status = cg_keras_list_add(&call->states, call->inputs.items[i], error);
    if (status == CELLGATE_OK && call->inputs.count > 1)
        call->inputs.count = 1;
    return status;
}

cellgate_status cg_keras_build_lstm(cg_keras_call *call, cellgate_error *error)
{
    cg_keras_lstm lstm;
    const cg_keras_lstm *lstms[1] = { &lstm };
    cg_keras_lstm_inputs in;
    cg_keras_lstm_results results = { 0 };
    bool turned = false;
    cellgate_status status = cg_keras_split_states(call, error);

    if (status == CELLGATE_OK)
        status = cg_keras_check_states(call, 2, error);
    if (status == CELLGATE_OK)
        status = cg_keras_read_lstm(call->layer, "/cell", &lstm, error);
    if (status == CELLGATE_OK)
        status = cg_keras_lstm_get_inputs(call, &in, error);
    if (status == CELLGATE_OK) {
        /* The node's output keeps time order, Keras's stays reversed. */
        turned = lstm.go_backwards && lstm.sequences;
        status = cg_keras_emit_lstm(
            call, &in, lstms, 1,
            call->states.count != 0 ? call->states.items : NULL, "",
            turned ? ":in_time" : "", &results, error);
    }
    if (status == CELLGATE_OK && turned)
        status = cg_keras_emit_reverse(call, results.main, ":reverse", "",
                                       &results.main, error);
    if (status == CELLGATE_OK)
        status = cg_keras_return(
            call, results.main,
            cg_keras_lstm_passed_mask(call, &in, lstm.sequences), error);
    if (status == CELLGATE_OK && lstm.states)
        status = cg_keras_return_states(call, &results, 1, error);
    return status;
}
