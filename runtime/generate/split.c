/* SPDX-License-Identifier: Apache-2.0 */
/* One model, split into the encoder and the step. choose.c says where. */
#include "config.h"

#include <stdlib.h>

#include "runtime/generate/causal.h"
#include "runtime/generate/choose.h"
#include "runtime/generate/part_model.h"
#include "runtime/generate/parts.h"

#define STATES_MOST 2 /* of a node: h and c */

typedef struct cg_splitting {
    const cellgate_model *whole;
    size_t token;
    int32_t scores;
    const cg_reach *reach;
    cg_part_model encoder, step;
    size_t *encoded; /* [value_count]: output of the encoder, or CG_NONE */
    size_t encoded_count;
    int32_t *finals; /* values of the step: its outputs after the scores */
    size_t final_count;
    cg_parts *parts;
    size_t wire_count;
} cg_splitting;

static bool of_step(const cg_splitting *split, const cg_node *node)
{
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != CG_NO_VALUE &&
            (split->reach[node->outputs[i]] == CG_STEPS ||
             split->reach[node->outputs[i]] == CG_NEWEST))
            return true;
    return false;
}

static bool of_encoder(const cg_splitting *split, const cg_node *node)
{
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != CG_NO_VALUE &&
            split->reach[node->outputs[i]] == CG_APART)
            return true;
    return false;
}

/* Whether a step's node takes something at every step that it has apart. */
static bool is_boundary(const cg_splitting *split, const cg_node *node,
                        size_t input)
{
    return input < node->input_count && node->inputs[input] != CG_NO_VALUE &&
           split->reach[node->inputs[input]] == CG_APART;
}

static bool is_state(const cg_splitting *split, const cg_node *node,
                     size_t input)
{
    return cg_causal_carries(node, split->reach) &&
           input >= CG_RECURRENT_INPUT_STATE;
}

/* ---- The encoder -------------------------------------------------------- */

/* Number, among the inputs that the request brings, of the one whose optional
   mask this value is; CG_NONE: of none. */
static size_t mask_of_input(const cg_splitting *split, int32_t value)
{
    size_t number = 0;

    for (size_t i = 0; i < split->whole->input_count; i++) {
        if (i == split->token)
            continue;
        if (split->whole->inputs[i].mask == value)
            return number;
        number++;
    }
    return CG_NONE;
}

static cellgate_status encode(cg_splitting *split, int32_t value,
                              cellgate_error *error)
{
    cellgate_status status;

    if (split->encoded[value] != CG_NONE ||
        mask_of_input(split, value) != CG_NONE)
        return CELLGATE_OK;
    status = cg_part_output(&split->encoder, value, error);
    if (status == CELLGATE_OK)
        split->encoded[value] = split->encoded_count++;
    return status;
}

static cellgate_status encoder_outputs(cg_splitting *split,
                                       cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t n = 0; n < split->whole->node_count; n++) {
        const cg_node *node = &split->whole->nodes[n];

        for (size_t i = 0; of_step(split, node) && status == CELLGATE_OK &&
                           i < node->input_count;
             i++)
            if (is_boundary(split, node, i))
                status = encode(split, node->inputs[i], error);
    }
    return status;
}

static cellgate_status build_encoder(cg_splitting *split, cellgate_error *error)
{
    const cellgate_model *whole = split->whole;
    cellgate_status status = cg_part_begin(&split->encoder, whole, error);

    for (size_t i = 0; status == CELLGATE_OK && i < whole->input_count; i++)
        if (i != split->token)
            status = cg_part_input(&split->encoder, whole->inputs[i].value,
                                   whole->inputs[i].mask, NULL, error);
    for (size_t n = 0; status == CELLGATE_OK && n < whole->node_count; n++)
        if (of_encoder(split, &whole->nodes[n]))
            status = cg_part_node(&split->encoder, &whole->nodes[n], NULL, NULL,
                                  error);
    if (status == CELLGATE_OK)
        status = encoder_outputs(split, error);
    /* A mask alone that the request gives needs no encoder: but then there is
       the input that it belongs to, whose shape it has. */
    if (status != CELLGATE_OK || split->encoded_count == 0)
        return status;
    status = cg_model_finish(split->encoder.model, error);
    if (status == CELLGATE_OK) {
        split->parts->encoder = split->encoder.model;
        split->encoder.model = NULL;
    }
    return status;
}

/* ---- Inputs of the step ------------------------------------------------- */

static void add_wire(cg_splitting *split, size_t from, size_t carried)
{
    split->parts->wires[split->wire_count++] =
        (cg_wire){ from, carried, CG_NONE, CG_NONE };
}

/* A value that the step is given under a name of its own. */
static cellgate_status own_input(cg_splitting *split, const char *name,
                                 const char *suffix, int32_t dtype,
                                 const int64_t *shape, int32_t *value,
                                 cellgate_error *error)
{
    char text[256];
    cellgate_status status;

    (void)snprintf(text, sizeof text, "%.200s:%s", name, suffix);
    status = cg_model_add_value(split->step.model, text, dtype, 2, shape, value,
                                error);
    return status == CELLGATE_OK
               ? cg_model_add_input(split->step.model, *value, error)
               : status;
}

/* Models take masks only with an input: here with one made for the purpose. */
static cellgate_status mask_input(cg_splitting *split, int32_t value,
                                  cellgate_error *error)
{
    const cg_value *of = &split->whole->values[value];
    const cellgate_model *step = split->step.model;
    cg_wire *wire = &split->parts->wires[split->wire_count];
    int32_t carrier;
    cellgate_status status = own_input(split, of->name, "steps", CELLGATE_I32,
                                       of->shape, &carrier, error);

    if (status != CELLGATE_OK)
        return status;
    split->step.values[value] = step->inputs[step->input_count - 1].mask;
    add_wire(split, CG_NONE, CG_NONE);
    wire->mask = split->encoded[value];
    wire->request_mask = mask_of_input(split, value);
    return CELLGATE_OK;
}

static cellgate_status constant_input(cg_splitting *split, int32_t value,
                                      cellgate_error *error)
{
    const cg_value *of = &split->whole->values[value];
    cellgate_status status;

    if (split->step.values[value] != CG_NO_VALUE)
        return CELLGATE_OK;
    if (of->dtype == CELLGATE_U8 && of->rank != 2)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "the mask '%s' goes from the encoder to the "
                             "decoder's steps and has %d axes; it must have 2",
                             of->name, (int)of->rank);
    if (of->dtype == CELLGATE_U8)
        return mask_input(split, value, error);
    status = cg_part_input(&split->step, value, CG_NO_VALUE, NULL, error);
    if (status == CELLGATE_OK)
        add_wire(split, split->encoded[value], CG_NONE);
    return status;
}

/* State number `state` of a node: an input, and an output to carry. */
static cellgate_status state_input(cg_splitting *split, const cg_node *node,
                                   size_t state, int32_t *initial,
                                   int32_t *final, cellgate_error *error)
{
    static const char *const begins[] = { "begin_h", "begin_c" };
    static const char *const ends[] = { "end_h", "end_c" };
    const int64_t shape[2] = { CG_UNKNOWN,
                               cg_node_state_width(node, (int32_t)state) };
    const int32_t given = node->inputs[CG_RECURRENT_INPUT_STATE + state];
    const int32_t made = node->outputs[CG_RECURRENT_OUTPUT_STATE + state];
    char text[256];
    cellgate_status status = own_input(split, node->name, begins[state],
                                       CELLGATE_F32, shape, initial, error);

    if (status != CELLGATE_OK)
        return status;
    if (made != CG_NO_VALUE) {
        status = cg_part_value(&split->step, made, final, error);
    } else {
        (void)snprintf(text, sizeof text, "%.200s:%s", node->name, ends[state]);
        status = cg_model_add_value(split->step.model, text, CELLGATE_F32, 0,
                                    NULL, final, error);
    }
    if (status != CELLGATE_OK)
        return status;
    split->finals[split->final_count++] = *final;
    add_wire(split, given != CG_NO_VALUE ? split->encoded[given] : CG_NONE,
             split->final_count); /* output 0 is the scores */
    return CELLGATE_OK;
}

/* ---- Nodes of the step -------------------------------------------------- */

/*
 * In one step, a masked step has no previous output to repeat: it's h, which
 * is the same, for h stays what it was, and is zero before the first valid step
 * where the layer begins with zeros.
 */
static bool repeats(const cg_node *node)
{
    return node->inputs[CG_RECURRENT_INPUT_MASK] != CG_NO_VALUE &&
           !cg_causal_zero_masked(node);
}

/* Something of the step that makes `output` of a node out of h. */
static cellgate_status from_h(cg_splitting *split, const cg_node *node,
                              size_t output, int32_t h, cellgate_error *error)
{
    const bool steps = output == CG_RECURRENT_OUTPUT_SEQUENCE;
    const int32_t value = node->outputs[output];
    int32_t made;
    cg_node reshape = { .kind = CG_RESHAPE,
                        .layer = node->layer,
                        .inputs = &h,
                        .outputs = &made,
                        .input_count = 1,
                        .output_count = 1 };
    char text[256];
    cellgate_status status;

    if (value == CG_NO_VALUE)
        return CELLGATE_OK;
    status = cg_part_value(&split->step, value, &made, error);
    (void)snprintf(text, sizeof text, "%.200s:%s", node->name,
                   steps ? "of_steps" : "of_newest");
    reshape.name = text;
    reshape.as.reshape.keep = 1;
    if (steps)
        reshape.as.reshape.extents.extent[reshape.as.reshape.extents.count++] =
            1;
    reshape.as.reshape.extents.extent[reshape.as.reshape.extents.count++] =
        cg_node_state_width(node, 0);
    return status == CELLGATE_OK
               ? cg_model_add_node(split->step.model, &reshape, error)
               : status;
}

/* A request gives no mask with the ids: a layer that would look at it has none
   in the step. */
static bool mask_is_never_given(const cg_splitting *split, const cg_node *node)
{
    const int32_t mask = node->inputs[CG_RECURRENT_INPUT_MASK];

    return mask != CG_NO_VALUE &&
           mask == split->whole->inputs[split->token].mask;
}

static cellgate_status add_recurrent(cg_splitting *split, const cg_node *node,
                                     const int32_t *inputs,
                                     const int32_t *outputs,
                                     cellgate_error *error)
{
    const int32_t h = outputs[CG_RECURRENT_OUTPUT_STATE];
    int32_t given[CG_RECURRENT_INPUT_STATE + STATES_MOST];
    int32_t made[CG_RECURRENT_OUTPUT_STATE + STATES_MOST];
    cg_node bare = *node;
    cellgate_status status;

    memcpy(given, node->inputs, node->input_count * sizeof *given);
    memcpy(made, node->outputs, node->output_count * sizeof *made);
    bare.inputs = given;
    bare.outputs = made;
    if (mask_is_never_given(split, node))
        given[CG_RECURRENT_INPUT_MASK] = CG_NO_VALUE;
    if (!repeats(&bare))
        return cg_part_node(&split->step, &bare, inputs, outputs, error);
    made[CG_RECURRENT_OUTPUT_SEQUENCE] = made[CG_RECURRENT_OUTPUT_LAST] =
        CG_NO_VALUE;
    status = cg_part_node(&split->step, &bare, inputs, outputs, error);
    if (status == CELLGATE_OK)
        status = from_h(split, node, CG_RECURRENT_OUTPUT_SEQUENCE, h, error);
    if (status == CELLGATE_OK)
        status = from_h(split, node, CG_RECURRENT_OUTPUT_LAST, h, error);
    return status;
}

static cellgate_status recurrent_node(cg_splitting *split, const cg_node *node,
                                      cellgate_error *error)
{
    int32_t inputs[CG_RECURRENT_INPUT_STATE + STATES_MOST];
    int32_t outputs[CG_RECURRENT_OUTPUT_STATE + STATES_MOST];
    const size_t states = (size_t)cg_node_state_kinds(node);
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; i < CG_RECURRENT_INPUT_STATE + STATES_MOST; i++)
        inputs[i] = outputs[i] = CG_NO_VALUE;
    for (size_t s = 0; status == CELLGATE_OK && s < states; s++)
        status =
            state_input(split, node, s, &inputs[CG_RECURRENT_INPUT_STATE + s],
                        &outputs[CG_RECURRENT_OUTPUT_STATE + s], error);
    return status == CELLGATE_OK
               ? add_recurrent(split, node, inputs, outputs, error)
               : status;
}

static cellgate_status step_node(cg_splitting *split, const cg_node *node,
                                 cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < node->input_count; i++)
        if (is_boundary(split, node, i) && !is_state(split, node, i))
            status = constant_input(split, node->inputs[i], error);
    if (status != CELLGATE_OK)
        return status;
    if (cg_causal_carries(node, split->reach))
        return recurrent_node(split, node, error);
    return cg_part_node(&split->step, node, NULL, NULL, error);
}

static cellgate_status step_outputs(cg_splitting *split, cellgate_error *error)
{
    cellgate_status status = cg_part_output(&split->step, split->scores, error);

    for (size_t s = 0; status == CELLGATE_OK && s < split->final_count; s++)
        status =
            cg_model_add_output(split->step.model, split->finals[s], error);
    return status;
}

static cellgate_status build_step(cg_splitting *split, cellgate_error *error)
{
    const cellgate_model *whole = split->whole;
    const cg_input *token = &whole->inputs[split->token];
    const int64_t shape[2] = { CG_UNKNOWN, 1 };
    cellgate_status status = cg_part_begin(&split->step, whole, error);

    if (status == CELLGATE_OK)
        status = cg_part_input(&split->step, token->value, token->mask, shape,
                               error);
    if (status == CELLGATE_OK)
        add_wire(split, CG_NONE, CG_NONE);
    for (size_t n = 0; status == CELLGATE_OK && n < whole->node_count; n++)
        if (of_step(split, &whole->nodes[n]))
            status = step_node(split, &whole->nodes[n], error);
    if (status == CELLGATE_OK)
        status = step_outputs(split, error);
    if (status == CELLGATE_OK)
        status = cg_model_finish(split->step.model, error);
    if (status == CELLGATE_OK) {
        split->parts->step = split->step.model;
        split->step.model = NULL;
    }
    return status;
}

/* ---- All of it ---------------------------------------------------------- */

/* Room for whatever the step may need: each of its nodes' inputs is new. */
static cellgate_status allocate(cg_splitting *split, cellgate_error *error)
{
    const cellgate_model *whole = split->whole;
    size_t states = 0, inputs = 1;

    for (size_t n = 0; n < whole->node_count; n++) {
        inputs += whole->nodes[n].input_count;
        states += whole->nodes[n].output_count;
    }
    split->encoded = malloc((whole->value_count + 1) * sizeof *split->encoded);
    split->finals = malloc((states + 1) * sizeof *split->finals);
    split->parts->wires = calloc(inputs, sizeof *split->parts->wires);
    if (split->encoded == NULL || split->finals == NULL ||
        split->parts->wires == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to split the model");
    for (size_t v = 0; v < whole->value_count; v++)
        split->encoded[v] = CG_NONE;
    return CELLGATE_OK;
}

/* ---- Fixed steps -------------------------------------------------------- */

static bool carries_from_call_to_call(const cellgate_model *model)
{
    for (size_t n = 0; n < model->node_count; n++) {
        const cg_node *node = &model->nodes[n];

        if ((node->kind == CG_LSTM && node->as.lstm.stateful) ||
            (cg_node_state_kinds(node) == 1 && node->as.recurrent.stateful))
            return true;
    }
    return false;
}

/* Zeros before a text are as if they were not there. */
static bool masks_ids(const cellgate_model *model, int32_t ids)
{
    for (size_t n = 0; n < model->node_count; n++)
        if (model->nodes[n].kind == CG_NONZERO &&
            model->nodes[n].inputs[0] == ids)
            return true;
    return false;
}

/*
 * What reads a fixed number of ids in the file cannot read more: Keras refuses
 * it too. Where it scores what comes behind all of them alone, it has never
 * seen fewer, unless padding is masked.
 */
static cellgate_status find_window(cg_splitting *split, cellgate_error *error)
{
    const cellgate_model *whole = split->whole;
    const int32_t ids = whole->inputs[split->token].value;
    const int64_t steps = whole->values[ids].shape[1];

    if (whole->values[ids].rank < 2 || steps <= 1 ||
        carries_from_call_to_call(whole))
        return CELLGATE_OK;
    split->parts->window = steps;
    if (whole->values[split->scores].rank == 3 || masks_ids(whole, ids))
        return CELLGATE_OK;
    return cellgate_fail(
        error, CELLGATE_UNSUPPORTED,
        "the model's file fixes input '%s' at %lld steps, and '%s' scores what "
        "comes behind all of them: it looks at windows of %lld ids, where "
        "generating reads each id once and carries the state; if it was "
        "trained "
        "on texts from their beginning, build it with Input((None,)) and the "
        "same weights",
        whole->values[ids].name, (long long)steps,
        whole->values[split->scores].name, (long long)steps);
}

cellgate_status cg_split(const cellgate_model *model, const char *token,
                         const char *scores, cg_parts *parts,
                         cellgate_error *error)
{
    cg_splitting split = { .whole = model, .parts = parts };
    cg_choice choice = { 0 };
    cellgate_status status = cg_choose(model, token, scores, &choice, error);

    memset(parts, 0, sizeof *parts);
    if (status == CELLGATE_OK) {
        split.token = choice.token;
        split.scores = choice.scores;
        split.reach = choice.reach;
        status = allocate(&split, error);
    }
    if (status == CELLGATE_OK)
        status = build_encoder(&split, error);
    if (status == CELLGATE_OK)
        status = build_step(&split, error);
    if (status == CELLGATE_OK)
        status = cg_parts_describe(parts, error);
    if (status == CELLGATE_OK)
        status = find_window(&split, error);
    cg_part_end(&split.encoder);
    cg_part_end(&split.step);
    free(split.encoded);
    free(split.finals);
    free(choice.reach);
    if (status != CELLGATE_OK)
        cg_parts_finish(parts);
    return status;
}
