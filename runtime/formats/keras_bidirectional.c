/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/keras_recurrent.h"

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
                                    cg_keras_recurrent *layer,
                                    cellgate_error *error)
{
    cg_keras_layer inner = *outer;
    cellgate_status status;

    if (!cg_keras_is_recurrent(cg_keras_find_class(json)))
        return cg_keras_fail(
            error, CELLGATE_UNSUPPORTED, outer,
            "Bidirectional is supported around LSTM, GRU, SimpleRNN and RNN "
            "only, not around %.60s",
            json_is_string(json_object_get(json, "class_name"))
                ? json_string_value(json_object_get(json, "class_name"))
                : "this");
    status = cg_keras_layer_init(&inner, json, 0, 1, outer->name, error);
    if (status == CELLGATE_OK)
        status = cg_keras_read_recurrent(&inner, suffix, layer, error);
    /* Keras forces this on both layers, whatever they say; before it was part
       of TensorFlow, Keras did not know it. */
    if (status == CELLGATE_OK && !cg_keras_before_tensorflow(outer->reader))
        layer->zero_masked = layer->sequences;
    return status;
}

static int64_t units_of(const cg_keras_recurrent *layer)
{
    return layer->cells[layer->cell_count - 1].units;
}

/* The two layers of a Bidirectional. */
typedef struct layer_pair {
    cg_keras_recurrent forward, backward;
    merge_mode mode;
} layer_pair;

static cellgate_status read_pair(const cg_keras_layer *layer, layer_pair *pair,
                                 cellgate_error *error)
{
    const json_t *first = json_object_get(layer->config, "layer");
    const json_t *second = json_object_get(layer->config, "backward_layer");
    const bool derived = second == NULL || json_is_null(second);
    cellgate_status status = get_merge_mode(layer, &pair->mode, error);

    if (status == CELLGATE_OK)
        status = read_wrapped(layer, first, "/forward_layer/cell",
                              &pair->forward, error);
    if (status == CELLGATE_OK)
        status = read_wrapped(layer, derived ? first : second,
                              "/backward_layer/cell", &pair->backward, error);
    if (status != CELLGATE_OK)
        return status;
    /* Keras 3 turns the derived layer backwards, whatever the first one does,
       and so refuses a first one that goes backwards; Keras 1 and 2 turn it
       the other way. */
    if (derived)
        pair->backward.go_backwards =
            layer->reader->keras_major >= 3 || !pair->forward.go_backwards;
    if (pair->forward.go_backwards == pair->backward.go_backwards ||
        pair->forward.sequences != pair->backward.sequences ||
        pair->forward.time_major != pair->backward.time_major ||
        pair->forward.states != pair->backward.states)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "its two layers must differ in go_backwards and "
                             "agree in return_sequences, return_state and "
                             "time_major");
    if (pair->mode != MERGE_CONCAT && pair->mode != MERGE_NONE &&
        units_of(&pair->forward) != units_of(&pair->backward))
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "layers of %lld and %lld units can only be "
                             "concatenated",
                             (long long)units_of(&pair->forward),
                             (long long)units_of(&pair->backward));
    return CELLGATE_OK;
}

/* One node for both, where the layers are alike enough. */
static bool fits_one_node(const layer_pair *pair, const cg_keras_sequence *in)
{
    const cg_keras_recurrent *forward = &pair->forward;
    const cg_keras_recurrent *backward = &pair->backward;

    return forward->cell_count == 1 && backward->cell_count == 1 &&
           forward->cells[0].kind == CG_LSTM &&
           backward->cells[0].kind == CG_LSTM && !forward->go_backwards &&
           forward->cells[0].units == backward->cells[0].units &&
           forward->cells[0].bias == backward->cells[0].bias &&
           forward->stateful == backward->stateful &&
           !cg_keras_masks_by_place(backward, in->mask);
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
                                  const cg_keras_sequence *in,
                                  const layer_pair *pair,
                                  cg_keras_results *results, int32_t halves[2],
                                  cellgate_error *error)
{
    static const char *const names[2][3] = {
        { ":forward", ":forward_in_time", ":forward_reverse" },
        { ":backward", ":backward_in_time", ":backward_reverse" },
    };
    const cg_keras_recurrent *const layers[2] = { &pair->forward,
                                                  &pair->backward };
    const bool turned = pair->forward.go_backwards && pair->forward.sequences;
    const cg_keras_tensor *states =
        call->states.count != 0 ? call->states.items : NULL;
    cellgate_status status = CELLGATE_OK;

    for (size_t d = 0; status == CELLGATE_OK && d < 2; d++) {
        status = cg_keras_emit_layer(
            call, in, layers[d], states,
            &(cg_keras_names){ names[d][0], names[d][turned ? 1 : 0] }, results,
            error);
        halves[d] = results->main;
        if (status == CELLGATE_OK && turned)
            status = cg_keras_emit_reverse(
                call, results->main,
                &(cg_keras_names){ names[d][2], names[d][0] }, &halves[d],
                error);
        if (states != NULL)
            states += cg_keras_state_count(layers[d]);
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
                                 const cg_keras_sequence *in,
                                 const layer_pair *pair,
                                 cg_keras_results *results, int32_t halves[2],
                                 cellgate_error *error)
{
    const cg_keras_recurrent *const layers[2] = { &pair->forward,
                                                  &pair->backward };
    const cg_keras_names names = { "",
                                   pair->mode == MERGE_CONCAT ? "" : ":both" };
    const bool merged = pair->mode != MERGE_NONE && pair->mode != MERGE_CONCAT;
    cellgate_status status;

    if (fits_one_node(pair, in)) {
        status = cg_keras_emit_both(call, in, layers,
                                    call->states.count != 0 ? call->states.items
                                                            : NULL,
                                    &names, results, error);
        if (status == CELLGATE_OK && pair->mode == MERGE_NONE)
            status = emit_halves(call, results->main, units_of(&pair->forward),
                                 halves, error);
    } else {
        status = emit_apart(call, in, pair, results, halves, error);
        if (status == CELLGATE_OK && pair->mode != MERGE_NONE)
            status =
                emit_concat(call, halves, names.main, &results->main, error);
    }
    if (status == CELLGATE_OK && merged)
        status =
            emit_merge(call, results->main, pair->mode, &results->main, error);
    return status;
}

cellgate_status cg_keras_build_bidirectional(cg_keras_call *call,
                                             cellgate_error *error)
{
    layer_pair pair;
    cg_keras_sequence in = { 0 };
    cg_keras_results results = { 0 };
    int32_t halves[2];
    cellgate_status status = read_pair(call->layer, &pair, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_sequence(call,
                                       cg_keras_state_count(&pair.forward) +
                                           cg_keras_state_count(&pair.backward),
                                       &pair.forward, &in, error);
    if (status == CELLGATE_OK)
        status = emit_pair(call, &in, &pair, &results, halves, error);
    if (status == CELLGATE_OK && pair.mode != MERGE_NONE)
        status = cg_keras_return(call, results.main, in.passed, error);
    for (size_t d = 0;
         status == CELLGATE_OK && pair.mode == MERGE_NONE && d < 2; d++)
        status = cg_keras_return(call, halves[d], in.passed, error);
    for (size_t i = 0; status == CELLGATE_OK && i < call->outputs.count; i++)
        call->outputs.items[i].turned =
            pair.forward.time_major && pair.forward.sequences;
    if (status == CELLGATE_OK && pair.forward.states)
        status = cg_keras_return_states(call, &results, error);
    return status;
}
