/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/keras_lstm.h"

const char *const cg_keras_bidirectional_options[] = {
    "layer", "backward_layer", "merge_mode", "weights", NULL
};

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
                                    cg_keras_lstm *lstm, cellgate_error *error)
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
        status = cg_keras_read_lstm(&inner, suffix, lstm, error);
    /* Keras forces this on both layers, whatever they say. */
    if (status == CELLGATE_OK)
        lstm->zero_masked = lstm->sequences;
    return status;
}

static cellgate_status read_pair(const cg_keras_layer *layer,
                                 cg_keras_lstm *forward,
                                 cg_keras_lstm *backward, cellgate_error *error)
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
static bool fits_one_node(const cg_keras_lstm *forward,
                          const cg_keras_lstm *backward)
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
                                  const cg_keras_lstm_inputs *in,
                                  const cg_keras_lstm *const *lstms,
                                  cg_keras_lstm_results *results,
                                  int32_t halves[2], cellgate_error *error)
{
    static const char *const suffixes[2][3] = {
        { ":forward", ":forward_in_time", ":forward_reverse" },
        { ":backward", ":backward_in_time", ":backward_reverse" },
    };
    const bool turned = lstms[0]->go_backwards && lstms[0]->sequences;
    cellgate_status status = CELLGATE_OK;

    for (size_t d = 0; status == CELLGATE_OK && d < 2; d++) {
        cg_keras_lstm_results one = { 0 };

        status = cg_keras_emit_lstm(
            call, in, &lstms[d], 1,
            call->states.count != 0 ? &call->states.items[2 * d] : NULL,
            suffixes[d][0], suffixes[d][turned ? 1 : 0], &one, error);
        if (status != CELLGATE_OK)
            break;
        halves[d] = one.main;
        memcpy(results->states[d], one.states[0], sizeof one.states[0]);
        if (turned)
            status = cg_keras_emit_reverse(call, one.main, suffixes[d][2],
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
                         .as.slice = { .begin = d * units,
                                       .end = (d + 1) * units } };

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
                                 const cg_keras_lstm_inputs *in,
                                 const cg_keras_lstm *const *lstms,
                                 merge_mode mode,
                                 cg_keras_lstm_results *results,
                                 int32_t halves[2], cellgate_error *error)
{
    const char *main = mode == MERGE_CONCAT ? "" : ":both";
    cellgate_status status;

    if (fits_one_node(lstms[0], lstms[1])) {
        status = cg_keras_emit_lstm(call, in, lstms, 2,
                                    call->states.count != 0 ? call->states.items
                                                            : NULL,
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
    cg_keras_lstm forward, backward;
    const cg_keras_lstm *lstms[2] = { &forward, &backward };
    cg_keras_lstm_inputs in;
    cg_keras_lstm_results results = { 0 };
    merge_mode mode = MERGE_CONCAT;
    int32_t halves[2], mask;
    cellgate_status status = cg_keras_split_states(call, error);

    if (status == CELLGATE_OK)
        status = cg_keras_check_states(call, 4, error);
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
        status = cg_keras_lstm_get_inputs(call, &in, error);
    if (status == CELLGATE_OK)
        status = emit_pair(call, &in, lstms, mode, &results, halves, error);
    if (status != CELLGATE_OK)
        return status;
    mask = cg_keras_lstm_passed_mask(call, &in, forward.sequences);
    if (mode != MERGE_NONE)
        status = cg_keras_return(call, results.main, mask, error);
    for (size_t d = 0; status == CELLGATE_OK && mode == MERGE_NONE && d < 2;
         d++)
        status = cg_keras_return(call, halves[d], mask, error);
    if (status == CELLGATE_OK && forward.states)
        status = cg_keras_return_states(call, &results, 2, error);
    return status;
}
