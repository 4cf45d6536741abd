/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/keras.h"

#define WITHOUT_EFFECT(name)                                                   \
#name "_initializer", #name "_regularizer", #name "_constraint"

const char *const cg_keras_lstm_options[] = {
    "units", "activation", "recurrent_activation", "use_bias", "go_backwards",
    "return_sequences", "return_state", "stateful", "zero_output_for_mask",
    /* without effect at inference */
    "unroll", "unit_forget_bias", "dropout", "recurrent_dropout", "seed",
    "implementation", "use_cudnn", WITHOUT_EFFECT(kernel),
    WITHOUT_EFFECT(recurrent), WITHOUT_EFFECT(bias), NULL
};

const char *const cg_keras_bidirectional_options[] = {
    "layer", "backward_layer", "merge_mode", "weights", NULL
};

/* One LSTM layer of the file, as it says. */
typedef struct keras_lstm {
    int64_t units;
    cellgate_activation gate, cell;
    bool bias;
    bool go_backwards;
    bool sequences;
    bool states;
    bool stateful;
    bool zero_masked;
    const char *suffix; /* of its cell's group in the weights */
} keras_lstm;

/* The wanted values of one LSTM node. */
typedef struct lstm_results {
    int32_t main;         /* the sequence, or the last output */
    int32_t states[2][2]; /* [direction][h, c] */
} lstm_results;

/* ---- Reading the options ------------------------------------------------- */

static cellgate_status get_activation(const cg_keras_layer *layer,
                                      const char *key,
                                      cellgate_activation *activation,
                                      cellgate_error *error)
{
    cg_keras_activation any;
    cellgate_status status = cg_keras_get_activation(layer, key, &any, error);

    if (status == CELLGATE_OK && any.softmax)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "softmax as '%s' of an LSTM is not supported",
                             key);
    if (status == CELLGATE_OK)
        *activation = any.elementwise;
    return status;
}

static cellgate_status read_flags(const cg_keras_layer *layer, keras_lstm *lstm,
                                  cellgate_error *error)
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

static cellgate_status read_lstm(const cg_keras_layer *layer,
                                 const char *suffix, keras_lstm *lstm,
                                 cellgate_error *error)
{
    cellgate_status status =
        cg_keras_get_size(layer, "units", &lstm->units, error);

    lstm->suffix = suffix;
    if (status == CELLGATE_OK)
        status = read_flags(layer, lstm, error);
    if (status == CELLGATE_OK)
        status = get_activation(layer, "activation", &lstm->cell, error);
    if (status == CELLGATE_OK)
        status =
            get_activation(layer, "recurrent_activation", &lstm->gate, error);
    return status;
}

/* ---- Emitting ------------------------------------------------------------ */

/* What the call's LSTM nodes have in common. */
typedef struct lstm_inputs {
    cg_keras_tensor x;
    int32_t mask; /* what the layer looks at, or CG_NO_VALUE */
    int64_t features;
} lstm_inputs;

static cellgate_status get_inputs(const cg_keras_call *call, lstm_inputs *in,
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

/* The mask of the output: Keras passes on the one that goes with the input. */
static int32_t passed_mask(const cg_keras_call *call, const lstm_inputs *in,
                           bool sequences)
{
    if (!sequences)
        return CG_NO_VALUE;
    return call->mask.value != CG_NO_VALUE ? in->mask : in->x.mask;
}

static void set_direction(cg_node *node, size_t direction,
                          const keras_lstm *lstm)
{
    cellgate_activation *triple = node->as.lstm.shape.activations[direction];

    triple[0] = lstm->gate;
    triple[1] = lstm->cell;
    triple[2] = lstm->cell;
}

static void set_shape(cg_node *node, const lstm_inputs *in,
                      const keras_lstm *const *lstms, size_t directions)
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
                        const keras_lstm *lstm, const char *main,
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

/*
 * One node for one LSTM layer, or for two that run in opposite directions.
 * `states` are its initial states, two a direction, or NULL. The node is called
 * by `suffix`, its main value by `main`.
 */
static cellgate_status
emit_lstm(const cg_keras_call *call, const lstm_inputs *in,
          const keras_lstm *const *lstms, size_t directions,
          const cg_keras_tensor *states, const char *suffix, const char *main,
          lstm_results *results, cellgate_error *error)
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
        inputs[CG_LSTM_INPUT_STATE + i] =
            states != NULL ? states[i].value : CG_NO_VALUE;
        if (states != NULL)
            status = cg_keras_claim(call, &states[i], CELLGATE_F32, error);
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

static cellgate_status emit_reverse(const cg_keras_call *call, int32_t input,
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

static cellgate_status return_states(cg_keras_call *call,
                                     const lstm_results *results,
                                     size_t directions, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < 2 * directions; i++)
        status = cg_keras_return(call, results->states[i / 2][i % 2],
                                 CG_NO_VALUE, error);
    return status;
}

/* ---- LSTM ---------------------------------------------------------------- */

static cellgate_status check_states(const cg_keras_call *call, size_t expected,
                                    cellgate_error *error)
{
    if (call->states.count == 0 || call->states.count == expected)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                         "it has %zu initial states; it takes %zu",
                         call->states.count, expected);
}

/* Keras 2 passes states among the inputs. */
static cellgate_status split_states(cg_keras_call *call, cellgate_error *error)
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
    keras_lstm lstm;
    const keras_lstm *lstms[1] = { &lstm };
    lstm_inputs in;
    lstm_results results = { 0 };
    bool turned = false;
    cellgate_status status = split_states(call, error);

    if (status == CELLGATE_OK)
        status = check_states(call, 2, error);
    if (status == CELLGATE_OK)
        status = read_lstm(call->layer, "/cell", &lstm, error);
    if (status == CELLGATE_OK)
        status = get_inputs(call, &in, error);
    if (status == CELLGATE_OK) {
        /* The node's output keeps time order, Keras's stays reversed. */
        turned = lstm.go_backwards && lstm.sequences;
        status = emit_lstm(call, &in, lstms, 1,
                           call->states.count != 0 ? call->states.items : NULL,
                           "", turned ? ":in_time" : "", &results, error);
    }
    if (status == CELLGATE_OK && turned)
        status = emit_reverse(call, results.main, ":reverse", "", &results.main,
                              error);
    if (status == CELLGATE_OK)
        status = cg_keras_return(call, results.main,
                                 passed_mask(call, &in, lstm.sequences), error);
    if (status == CELLGATE_OK && lstm.states)
        status = return_states(call, &results, 1, error);
    return status;
}

/* ---- Bidirectional ------------------------------------------------------- */

typedef enum merge_mode {
    MERGE_CONCAT,
    MERGE_SUM,
    MERGE_AVERAGE,
    MERGE_PRODUCT,
    MERGE_NONE
} merge_mode;

static cellgate_status get_merge_mode(const cg_keras_layer *layer,
                                      merge_mode *mode, cellgate_error *error)
{
    static const struct {
        const char *name;
        merge_mode mode;
    } modes[] = { { "concat", MERGE_CONCAT },
                  { "sum", MERGE_SUM },
                  { "ave", MERGE_AVERAGE },
                  { "mul", MERGE_PRODUCT } };
    const json_t *value = json_object_get(layer->config, "merge_mode");
    const char *name = json_string_value(value);

    if (json_is_null(value)) {
        *mode = MERGE_NONE;
        return CELLGATE_OK;
    }
    if (value == NULL)
        name = "concat";
    for (size_t i = 0; name != NULL && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(name, modes[i].name) == 0) {
            *mode = modes[i].mode;
            return CELLGATE_OK;
        }
    return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                         "'merge_mode' must be concat, sum, ave, mul or null");
}

static cellgate_status read_wrapped(const cg_keras_layer *outer,
                                    const json_t *json, const char *suffix,
                                    keras_lstm *lstm, cellgate_error *error)
{
    const cg_keras_class *class = cg_keras_find_class(json);
    cg_keras_layer inner = *outer;
    cellgate_status status;

    if (class == NULL || class->build != cg_keras_build_lstm)
        return cg_keras_fail(
            error, CELLGATE_UNSUPPORTED, outer,
            "Bidirectional is supported around LSTM only, not around %.60s",
            json_is_string(json_object_get(json, "class_name"))
                ? json_string_value(json_object_get(json, "class_name"))
                : "this");
    status = cg_keras_layer_init(&inner, json, 0, 1, outer->name, error);
    if (status == CELLGATE_OK)
        status = read_lstm(&inner, suffix, lstm, error);
    /* Keras forces this on both layers, whatever they say. */
    lstm->zero_masked = lstm->sequences;
    return status;
}

static cellgate_status read_pair(const cg_keras_layer *layer,
                                 keras_lstm *forward, keras_lstm *backward,
                                 cellgate_error *error)
{
    const json_t *first = json_object_get(layer->config, "layer");
    const json_t *second = json_object_get(layer->config, "backward_layer");
    const bool derived = second == NULL || json_is_null(second);
    cellgate_status status =
        read_wrapped(layer, first, "/forward_layer/cell", forward, error);

    if (status == CELLGATE_OK)
        status = read_wrapped(layer, derived ? first : second,
                              "/backward_layer/cell", backward, error);
    if (status != CELLGATE_OK)
        return status;
    if (derived)
        backward->go_backwards = true;
    if (forward->go_backwards == backward->go_backwards ||
        forward->sequences != backward->sequences ||
        forward->states != backward->states)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "its two layers must differ in go_backwards and "
                             "agree in return_sequences and return_state");
    return CELLGATE_OK;
}

/* One node for both, where the layers are alike enough. */
static bool fits_one_node(const keras_lstm *forward, const keras_lstm *backward)
{
    return !forward->go_backwards && forward->units == backward->units &&
           forward->bias == backward->bias &&
           forward->stateful == backward->stateful;
}

static cellgate_status emit_concat(const cg_keras_call *call,
                                   const int32_t halves[2], const char *main,
                                   int32_t *value, cellgate_error *error)
{
    int32_t output = CG_KERAS_NEW;
    cg_node node = { .kind = CG_CONCAT,
                     .inputs = (int32_t *)(uintptr_t)halves,
                     .input_count = 2,
                     .outputs = &output,
                     .output_count = 1 };
    cellgate_status status =
        cg_keras_emit(call, &node, ":concat", &main, error);

    if (status == CELLGATE_OK)
        *value = output;
    return status;
}

/*
 * Two nodes. Keras turns the backward layer's sequence by its place, not by its
 * direction: with go_backwards on the forward one, both come out reversed.
 */
static cellgate_status emit_apart(const cg_keras_call *call,
                                  const lstm_inputs *in,
                                  const keras_lstm *const *lstms,
                                  lstm_results *results, int32_t halves[2],
                                  cellgate_error *error)
{
    static const char *const suffixes[2][3] = {
        { ":forward", ":forward_in_time", ":forward_reverse" },
        { ":backward", ":backward_in_time", ":backward_reverse" },
    };
    const bool turned = lstms[0]->go_backwards && lstms[0]->sequences;
    cellgate_status status = CELLGATE_OK;

    for (size_t d = 0; status == CELLGATE_OK && d < 2; d++) {
        lstm_results one = { 0 };

        status = emit_lstm(
            call, in, &lstms[d], 1,
            call->states.count != 0 ? &call->states.items[2 * d] : NULL,
            suffixes[d][0], suffixes[d][turned ? 1 : 0], &one, error);
        if (status != CELLGATE_OK)
            break;
        halves[d] = one.main;
        memcpy(results->states[d], one.states[0], sizeof one.states[0]);
        if (turned)
            status = emit_reverse(call, one.main, suffixes[d][2],
                                  suffixes[d][0], &halves[d], error);
    }
    return status;
}

static cellgate_status emit_halves(const cg_keras_call *call, int32_t both,
                                   int64_t units, int32_t halves[2],
                                   cellgate_error *error)
{
    static const char *const suffixes[2] = { ":forward", ":backward" };
    cellgate_status status = CELLGATE_OK;

    for (int64_t d = 0; status == CELLGATE_OK && d < 2; d++) {
        cg_node node = { .kind = CG_SLICE,
                         .as.slice = { d * units, (d + 1) * units } };

        status = cg_keras_emit_simple(call, &node, &both, 1, suffixes[d],
                                      &halves[d], error);
    }
    return status;
}

static cellgate_status emit_merge(const cg_keras_call *call, int32_t both,
                                  merge_mode mode, int32_t *value,
                                  cellgate_error *error)
{
    static const cg_merge_mode modes[] = {
        [MERGE_SUM] = CG_MERGE_SUM,
        [MERGE_AVERAGE] = CG_MERGE_AVERAGE,
        [MERGE_PRODUCT] = CG_MERGE_PRODUCT,
    };
    int32_t output = CG_KERAS_NEW;
    cg_node node = { .kind = CG_MERGE,
                     .inputs = &both,
                     .input_count = 1,
                     .outputs = &output,
                     .output_count = 1,
                     .as.merge = modes[mode] };
    cellgate_status status =
        cg_keras_emit(call, &node, ":merge", &(const char *){ "" }, error);

    if (status == CELLGATE_OK)
        *value = output;
    return status;
}

/* What the two directions make together: one value, or two without merging. */
static cellgate_status emit_pair(const cg_keras_call *call,
                                 const lstm_inputs *in,
                                 const keras_lstm *const *lstms,
                                 merge_mode mode, lstm_results *results,
                                 int32_t halves[2], cellgate_error *error)
{
    const char *main = mode == MERGE_CONCAT ? "" : ":both";
    cellgate_status status;

    if (fits_one_node(lstms[0], lstms[1])) {
        status = emit_lstm(call, in, lstms, 2,
                           call->states.count != 0 ? call->states.items : NULL,
                           "", main, results, error);
        if (status == CELLGATE_OK && mode == MERGE_NONE)
            status = emit_halves(call, results->main, lstms[0]->units, halves,
                                 error);
    } else {
        status = emit_apart(call, in, lstms, results, halves, error);
        if (status == CELLGATE_OK && mode != MERGE_NONE)
            status = emit_concat(call, halves, main, &results->main, error);
    }
    if (status == CELLGATE_OK && mode != MERGE_NONE && mode != MERGE_CONCAT)
        status = emit_merge(call, results->main, mode, &results->main, error);
    return status;
}

cellgate_status cg_keras_build_bidirectional(cg_keras_call *call,
                                             cellgate_error *error)
{
    keras_lstm forward, backward;
    const keras_lstm *lstms[2] = { &forward, &backward };
    lstm_inputs in;
    lstm_results results = { 0 };
    merge_mode mode = MERGE_CONCAT;
    int32_t halves[2], mask;
    cellgate_status status = split_states(call, error);

    if (status == CELLGATE_OK)
        status = check_states(call, 4, error);
    if (status == CELLGATE_OK)
        status = get_merge_mode(call->layer, &mode, error);
    if (status == CELLGATE_OK)
        status = read_pair(call->layer, &forward, &backward, error);
    if (status == CELLGATE_OK && mode != MERGE_CONCAT && mode != MERGE_NONE &&
        forward.units != backward.units)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                             "layers of %lld and %lld units can only be "
                             "concatenated",
                             (long long)forward.units,
                             (long long)backward.units);
    if (status == CELLGATE_OK)
        status = get_inputs(call, &in, error);
    if (status == CELLGATE_OK)
        status = emit_pair(call, &in, lstms, mode, &results, halves, error);
    if (status != CELLGATE_OK)
        return status;
    mask = passed_mask(call, &in, forward.sequences);
    if (mode != MERGE_NONE)
        status = cg_keras_return(call, results.main, mask, error);
    for (size_t d = 0; status == CELLGATE_OK && mode == MERGE_NONE && d < 2;
         d++)
        status = cg_keras_return(call, halves[d], mask, error);
    if (status == CELLGATE_OK && forward.states)
        status = return_states(call, &results, 2, error);
    return status;
}
