/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a recurrent layer, and its call. */
#include "config.h"

#include "runtime/formats/keras_recurrent.h"

/* ---- Inputs -------------------------------------------------------------- */

static cellgate_status split_states(cg_keras_call *call, size_t states,
                                    cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 1; status == CELLGATE_OK && i < call->inputs.count; i++)
        status = cg_keras_list_add(&call->states, call->inputs.items[i], error);
    if (status != CELLGATE_OK)
        return status;
    if (call->inputs.count > 1)
        call->inputs.count = 1;
    if (call->states.count != 0 && call->states.count != states)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                             "it has %zu initial states; it takes %zu",
                             call->states.count, states);
    return CELLGATE_OK;
}

/* What the layer looks at, and what goes with its output: see keras.h. */
static cellgate_status find_masks(const cg_keras_call *call, int32_t of_input,
                                  bool sequences, cg_keras_sequence *in,
                                  cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    in->mask = call->states.count == 0 || call->layer->reader->keras_major < 3
                   ? of_input
                   : CG_NO_VALUE;
    in->passed = of_input;
    if (call->mask.value != CG_NO_VALUE) {
        status = cg_keras_make_mask(call, &call->mask, &in->mask, error);
        in->passed = in->mask;
    }
    if (!sequences)
        in->passed = CG_NO_VALUE;
    return status;
}

cellgate_status cg_keras_get_sequence(cg_keras_call *call, size_t states,
                                      const cg_keras_recurrent *recurrent,
                                      cg_keras_sequence *in,
                                      cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_keras_tensor *x;
    cellgate_status status = split_states(call, states, error);

    if (status != CELLGATE_OK)
        return status;
    if (call->inputs.count != 1)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "it is called on %zu tensors; it takes one",
                             call->inputs.count);
    x = &call->inputs.items[0];
    status = cg_keras_claim(call, x, CELLGATE_F32, error);
    if (status != CELLGATE_OK)
        return status;
    if (layer->reader->shapes[x->value].rank != 3)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "its input has %d axes; it must have 3: batch, "
                             "steps and features",
                             (int)layer->reader->shapes[x->value].rank);
    in->x = x->value;
    status = cg_keras_check_turned(call, recurrent->time_major, error);
    if (status == CELLGATE_OK)
        status = find_masks(call, x->mask, recurrent->sequences, in, error);
    if (status == CELLGATE_OK)
        status = cg_keras_features(call, x, &in->features, error);
    return status;
}

/* ---- Nodes --------------------------------------------------------------- */

#define MOST_PORTS 6 /* inputs, or outputs, of an LSTM of two directions */

/* A node under construction, with the memory of its lists. */
typedef struct node_draft {
    cg_node node;
    int32_t inputs[MOST_PORTS], outputs[MOST_PORTS];
    char names[MOST_PORTS][96];
    cg_weight weights[2 * CG_LSTM_WEIGHTS];
    size_t state_count;
} node_draft;

static void set_lstm(cg_node *node, const cg_keras_sequence *in,
                     const cg_keras_recurrent *layer, const cg_keras_cell *cell)
{
    cellgate_lstm *shape = &node->as.lstm.shape;

    shape->input_size = in->features;
    shape->hidden_size = cell->units;
    shape->directions = 1;
    shape->reverse = layer->go_backwards;
    shape->has_bias = cell->bias;
    shape->activations[0][0] = cell->gate;
    shape->activations[0][1] = cell->activation;
    shape->activations[0][2] = cell->activation;
    node->as.lstm.zero_masked = layer->zero_masked;
    node->as.lstm.stateful = layer->stateful;
}

static void set_recurrent(cg_node *node, const cg_keras_sequence *in,
                          const cg_keras_recurrent *layer,
                          const cg_keras_cell *cell)
{
    node->as.recurrent = (cg_recurrent){
        .input_size = in->features,
        .hidden_size = cell->units,
        .has_bias = cell->bias,
        .reset_after = cell->reset_after,
        .reverse = layer->go_backwards,
        .zero_masked = layer->zero_masked,
        .stateful = layer->stateful,
        .gate = cell->gate,
        .activation = cell->activation,
    };
}

/* Kind and attributes of a node for one direction. */
static void start_node(node_draft *draft, const cg_keras_sequence *in,
                       const cg_keras_recurrent *layer,
                       const cg_keras_cell *cell)
{
    cg_node *node = &draft->node;

    memset(draft, 0, sizeof *draft);
    node->kind = cell->kind;
    if (cell->kind == CG_LSTM)
        set_lstm(node, in, layer, cell);
    else
        set_recurrent(node, in, layer, cell);
}

/* Lists of inputs, outputs and weights; the attributes decide their length. */
static void set_ports(node_draft *draft, const cg_keras_sequence *in,
                      const cg_keras_recurrent *layer, const char *main)
{
    cg_node *node = &draft->node;

    draft->state_count =
        (size_t)(cg_node_state_kinds(node) * cg_node_directions(node));
    node->inputs = draft->inputs;
    node->outputs = draft->outputs;
    node->weights = draft->weights;
    node->input_count = CG_RECURRENT_INPUT_STATE + draft->state_count;
    node->output_count = node->input_count;
    node->weight_count = cg_node_weight_count(node);
    for (size_t i = 0; i < node->output_count; i++) {
        draft->inputs[i] = CG_NO_VALUE;
        draft->outputs[i] = CG_NO_VALUE;
        (void)snprintf(draft->names[i], sizeof draft->names[i], "%s", main);
    }
    draft->inputs[0] = in->x;
    draft->inputs[CG_RECURRENT_INPUT_MASK] = in->mask;
    draft->outputs[layer->sequences ? CG_RECURRENT_OUTPUT_SEQUENCE
                                    : CG_RECURRENT_OUTPUT_LAST] = CG_KERAS_NEW;
}

/* States of the graph, in and out; `prefix` begins the names of those that
   come out. */
static cellgate_status set_states(const cg_keras_call *call, node_draft *draft,
                                  const cg_keras_recurrent *layer,
                                  const cg_keras_tensor *states,
                                  const char *prefix, cellgate_error *error)
{
    static const char *const ends[] = { "h", "c" };
    static const char *const sides[] = { ":forward_", ":backward_" };
    const size_t kinds = (size_t)cg_node_state_kinds(&draft->node);
    const bool both = draft->state_count > kinds;
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < draft->state_count; i++) {
        const size_t port = CG_RECURRENT_OUTPUT_STATE + i;
        cg_keras_tensor state;

        (void)snprintf(draft->names[port], sizeof draft->names[port],
                       "%.60s%s%s", prefix,
                       both                ? sides[i / kinds]
                       : prefix[0] == '\0' ? ":"
                                           : "_",
                       ends[i % kinds]);
        if (layer->states)
            draft->outputs[port] = CG_KERAS_NEW;
        if (states == NULL)
            continue;
        state = states[i];
        status = cg_keras_claim(call, &state, CELLGATE_F32, error);
        draft->inputs[port] = state.value;
    }
    return status;
}

/* Adds the node to the model, and its values to the results. */
static cellgate_status emit_draft(const cg_keras_call *call, node_draft *draft,
                                  const char *suffix, cg_keras_results *results,
                                  cellgate_error *error)
{
    const char *names[MOST_PORTS];
    cellgate_status status;

    for (size_t i = 0; i < MOST_PORTS; i++)
        names[i] = draft->names[i];
    status = cg_keras_emit(call, &draft->node, suffix, names, error);
    if (status != CELLGATE_OK)
        return status;
    results->main = draft->outputs[CG_RECURRENT_OUTPUT_SEQUENCE];
    if (results->main == CG_NO_VALUE)
        results->main = draft->outputs[CG_RECURRENT_OUTPUT_LAST];
    for (size_t i = 0; i < draft->state_count; i++)
        results->states[results->state_count++] =
            draft->outputs[CG_RECURRENT_OUTPUT_STATE + i];
    return CELLGATE_OK;
}

static cellgate_status
emit_cell(const cg_keras_call *call, const cg_keras_sequence *in,
          const cg_keras_recurrent *layer, const cg_keras_cell *cell,
          const cg_keras_tensor *states, const cg_keras_names *names,
          cg_keras_results *results, cellgate_error *error)
{
    node_draft draft;
    cellgate_status status;

    start_node(&draft, in, layer, cell);
    set_ports(&draft, in, layer, names->main);
    status = set_states(call, &draft, layer, states, names->node, error);
    if (status == CELLGATE_OK)
        status = cg_keras_load(call->layer, cell->suffix, &draft.node, 0,
                               draft.node.weight_count, draft.weights, error);
    if (status == CELLGATE_OK)
        status = emit_draft(call, &draft, names->node, results, error);
    return status;
}

/* A cell below another one: it makes a sequence for that. */
static cellgate_status
emit_lower_cell(const cg_keras_call *call, const cg_keras_sequence *in,
                const cg_keras_recurrent *layer, size_t number,
                const cg_keras_tensor *states, const cg_keras_names *names,
                cg_keras_results *results, cellgate_error *error)
{
    cg_keras_recurrent lower = *layer;
    char name[96];

    lower.sequences = true;
    lower.zero_masked = false;
    (void)snprintf(name, sizeof name, "%.60s:cell%zu", names->node, number + 1);
    return emit_cell(call, in, &lower, &layer->cells[number], states,
                     &(cg_keras_names){ name, name }, results, error);
}

static cellgate_status
emit_chain(const cg_keras_call *call, const cg_keras_sequence *in,
           const cg_keras_recurrent *layer, const cg_keras_tensor *states,
           const cg_keras_names *names, cg_keras_results *results,
           cellgate_error *error)
{
    const size_t last = layer->cell_count - 1;
    cg_keras_sequence x = *in;
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < last; i++) {
        status =
            emit_lower_cell(call, &x, layer, i, states, names, results, error);
        x.x = results->main;
        x.features = layer->cells[i].units;
        if (states != NULL)
            states += layer->cells[i].kind == CG_LSTM ? 2 : 1;
    }
    return status == CELLGATE_OK
               ? emit_cell(call, &x, layer, &layer->cells[last], states, names,
                           results, error)
               : status;
}

cellgate_status cg_keras_emit_reverse(const cg_keras_call *call, int32_t input,
                                      const cg_keras_names *names,
                                      int32_t *value, cellgate_error *error)
{
    int32_t output = CG_KERAS_NEW;
    cg_node node = { .kind = CG_REVERSE,
                     .inputs = &input,
                     .input_count = 1,
                     .outputs = &output,
                     .output_count = 1 };
    cellgate_status status =
        cg_keras_emit(call, &node, names->node, &names->main, error);

    if (status == CELLGATE_OK)
        *value = output;
    return status;
}

/* ---- Layers -------------------------------------------------------------- */

bool cg_keras_masks_by_place(const cg_keras_recurrent *layer, int32_t mask)
{
    return layer->unroll && layer->go_backwards && layer->sequences &&
           layer->zero_masked && mask != CG_NO_VALUE;
}

static cellgate_status
emit_masked_by_place(const cg_keras_call *call, const cg_keras_sequence *in,
                     const cg_keras_recurrent *layer,
                     const cg_keras_tensor *states, const cg_keras_names *names,
                     cg_keras_results *results, cellgate_error *error)
{
    const cg_node masked = { .kind = CG_MASKED };
    cg_keras_recurrent repeating = *layer;
    int32_t inputs[2] = { CG_NO_VALUE, in->mask }, value;
    cellgate_status status;

    repeating.zero_masked = false;
    status = emit_chain(call, in, &repeating, states,
                        &(cg_keras_names){ names->node, ":repeating" }, results,
                        error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit_reverse(
            call, results->main, &(cg_keras_names){ ":turned", ":turned" },
            &inputs[0], error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit_simple(call, &masked, inputs, 2, ":masked",
                                      &value, error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit_reverse(
            call, value, &(cg_keras_names){ ":turned_back", names->main },
            &results->main, error);
    return status;
}

cellgate_status
cg_keras_emit_layer(const cg_keras_call *call, const cg_keras_sequence *in,
                    const cg_keras_recurrent *layer,
                    const cg_keras_tensor *states, const cg_keras_names *names,
                    cg_keras_results *results, cellgate_error *error)
{
    return cg_keras_masks_by_place(layer, in->mask)
               ? emit_masked_by_place(call, in, layer, states, names, results,
                                      error)
               : emit_chain(call, in, layer, states, names, results, error);
}

cellgate_status
cg_keras_emit_both(const cg_keras_call *call, const cg_keras_sequence *in,
                   const cg_keras_recurrent *const layers[2],
                   const cg_keras_tensor *states, const cg_keras_names *names,
                   cg_keras_results *results, cellgate_error *error)
{
    const cg_keras_cell *backward = &layers[1]->cells[0];
    node_draft draft;
    cellgate_lstm *shape = &draft.node.as.lstm.shape;
    cellgate_status status;

    start_node(&draft, in, layers[0], &layers[0]->cells[0]);
    shape->directions = 2;
    shape->activations[1][0] = backward->gate;
    shape->activations[1][1] = backward->activation;
    shape->activations[1][2] = backward->activation;
    set_ports(&draft, in, layers[0], names->main);
    status = set_states(call, &draft, layers[0], states, names->node, error);
    for (size_t d = 0; status == CELLGATE_OK && d < 2; d++)
        status =
            cg_keras_load(call->layer, layers[d]->cells[0].suffix, &draft.node,
                          CG_LSTM_WEIGHTS * d, CG_LSTM_WEIGHTS,
                          &draft.weights[CG_LSTM_WEIGHTS * d], error);
    if (status == CELLGATE_OK)
        status = emit_draft(call, &draft, names->node, results, error);
    return status;
}

cellgate_status cg_keras_return_states(cg_keras_call *call,
                                       const cg_keras_results *results,
                                       cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < results->state_count; i++)
        status = cg_keras_return(call, results->states[i], CG_NO_VALUE, error);
    return status;
}

/* LSTM, GRU, SimpleRNN, RNN. */
cellgate_status cg_keras_build_recurrent(cg_keras_call *call,
                                         cellgate_error *error)
{
    cg_keras_recurrent layer;
    cg_keras_sequence in;
    cg_keras_results results = { 0 };
    bool turned = false;
    cellgate_status status =
        cg_keras_read_recurrent(call->layer, "/cell", &layer, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_sequence(call, cg_keras_state_count(&layer),
                                       &layer, &in, error);
    if (status == CELLGATE_OK) {
        /* The nodes' output keeps time order, Keras's stays reversed. */
        turned = layer.go_backwards && layer.sequences;
        status = cg_keras_emit_layer(
            call, &in, &layer,
            call->states.count != 0 ? call->states.items : NULL,
            &(cg_keras_names){ "", turned ? ":in_time" : "" }, &results, error);
    }
    if (status == CELLGATE_OK && turned)
        status = cg_keras_emit_reverse(call, results.main,
                                       &(cg_keras_names){ ":reverse", "" },
                                       &results.main, error);
    if (status == CELLGATE_OK)
        status = cg_keras_return(call, results.main, in.passed, error);
    if (status == CELLGATE_OK)
        call->outputs.items[0].turned = layer.time_major && layer.sequences;
    if (status == CELLGATE_OK && layer.states)
        status = cg_keras_return_states(call, &results, error);
    return status;
}
