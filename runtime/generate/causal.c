/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/generate/causal.h"
#include "runtime/model/kinds.h"

#define TIME_AXIS 1

/* ---- What follows from the ids ------------------------------------------- */

void cg_causal_follow(const cellgate_model *model, size_t token, bool *follows)
{
    const cg_input *input = &model->inputs[token];

    memset(follows, 0, model->value_count * sizeof *follows);
    follows[input->value] = true;
    if (input->mask != CG_NO_VALUE)
        follows[input->mask] = true;
    for (size_t n = 0; n < model->node_count; n++) {
        const cg_node *node = &model->nodes[n];
        bool any = false;

        for (size_t i = 0; i < node->input_count; i++)
            any = any ||
                  (node->inputs[i] != CG_NO_VALUE && follows[node->inputs[i]]);
        for (size_t i = 0; any && i < node->output_count; i++)
            if (node->outputs[i] != CG_NO_VALUE)
                follows[node->outputs[i]] = true;
    }
}

/* Marks what the scores do not need; everything else is CG_APART at first. */
static void mark_needed(const cellgate_model *model, int32_t scores,
                        cg_reach *reach)
{
    for (size_t v = 0; v < model->value_count; v++)
        reach[v] = CG_UNNEEDED;
    reach[scores] = CG_APART;
    for (size_t n = model->node_count; n-- > 0;) {
        const cg_node *node = &model->nodes[n];
        bool needed = false;

        for (size_t i = 0; i < node->output_count; i++)
            needed = needed || (node->outputs[i] != CG_NO_VALUE &&
                                reach[node->outputs[i]] != CG_UNNEEDED);
        for (size_t i = 0; needed && i < node->input_count; i++)
            if (node->inputs[i] != CG_NO_VALUE)
                reach[node->inputs[i]] = CG_APART;
    }
}

/* ---- The rules of the kinds -----------------------------------------------
 */

typedef struct cg_trace {
    const cellgate_model *model;
    cg_reach *reach;
} cg_trace;

static cg_reach reach_of(const cg_trace *trace, const cg_node *node,
                         size_t input)
{
    if (input >= node->input_count || node->inputs[input] == CG_NO_VALUE)
        return CG_APART;
    return trace->reach[node->inputs[input]];
}

static const cg_value *input_of(const cg_trace *trace, const cg_node *node,
                                size_t input)
{
    return &trace->model->values[node->inputs[input]];
}

CELLGATE_PRINTF_LIKE(3, 4)
static cellgate_status refuse(const cg_node *node, cellgate_error *error,
                              const char *format, ...)
{
    va_list arguments;
    char text[256];

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return cg_node_fail(error, CELLGATE_UNSUPPORTED, node,
                        "%s, so the scores cannot be computed a step at a time",
                        text);
}

static void set_outputs(const cg_trace *trace, const cg_node *node,
                        cg_reach reach)
{
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != CG_NO_VALUE &&
            trace->reach[node->outputs[i]] != CG_UNNEEDED)
            trace->reach[node->outputs[i]] = reach;
}

static int32_t most_axes(const cg_trace *trace, const cg_node *node)
{
    int32_t most = 0;

    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != CG_NO_VALUE &&
            input_of(trace, node, i)->rank > most)
            most = input_of(trace, node, i)->rank;
    return most;
}

/* Of inputs whose axes match from the last one: whether this one's axis 1 lies
   on the decoder's time axis, with steps of its own. */
static bool has_other_steps(const cg_trace *trace, const cg_node *node,
                            size_t input)
{
    const cg_value *value;

    if (node->inputs[input] == CG_NO_VALUE)
        return false;
    value = input_of(trace, node, input);
    if (reach_of(trace, node, input) == CG_STEPS)
        return value->rank != most_axes(trace, node);
    return value->rank == most_axes(trace, node) && value->rank > TIME_AXIS &&
           value->shape[TIME_AXIS] != 1;
}

/* One input, or several of which those that follow from the ids agree and the
   others serve every step alike: all outputs follow as they do. */
static cellgate_status same(const cg_trace *trace, const cg_node *node,
                            cellgate_error *error)
{
    cg_reach reach = CG_APART;

    for (size_t i = 0; i < node->input_count; i++) {
        const cg_reach own = reach_of(trace, node, i);

        if (own == CG_APART)
            continue;
        if (reach != CG_APART && reach != own)
            return refuse(node, error,
                          "it joins all steps with the newest one's result");
        reach = own;
    }
    for (size_t i = 0; reach == CG_STEPS && i < node->input_count; i++)
        if (has_other_steps(trace, node, i))
            return refuse(node, error,
                          "it joins the decoder's steps with those of '%s', "
                          "of which each step needs its own",
                          input_of(trace, node, i)->name);
    set_outputs(trace, node, reach);
    return CELLGATE_OK;
}

/* What works along an axis (0: the last one) leaves the steps apart, unless
   the axis is theirs. */
static cellgate_status along(const cg_trace *trace, const cg_node *node,
                             int32_t axis, cellgate_error *error)
{
    for (size_t i = 0; i < node->input_count; i++) {
        const int32_t last = node->inputs[i] != CG_NO_VALUE
                                 ? input_of(trace, node, i)->rank - 1
                                 : 0;

        if (reach_of(trace, node, i) == CG_STEPS &&
            (axis == 0 ? last : axis) == TIME_AXIS)
            return refuse(node, error,
                          "it mixes, or takes some of, the steps "
                          "of '%s'",
                          input_of(trace, node, i)->name);
    }
    return same(trace, node, error);
}

/* Axis 1 of a shape of steps has to stay where it is. */
static cellgate_status moved(const cg_trace *trace, const cg_node *node,
                             bool stays, cellgate_error *error)
{
    if (reach_of(trace, node, 0) == CG_STEPS && !stays)
        return refuse(node, error, "it moves the axis of the decoder's steps");
    return same(trace, node, error);
}

/* The first input's axes come first; the second one's steps would be last. */
static cellgate_status dot(const cg_trace *trace, const cg_node *node,
                           cellgate_error *error)
{
    const cg_reach a = reach_of(trace, node, 0), b = reach_of(trace, node, 1);

    if (b == CG_STEPS || (a == CG_STEPS && node->as.dot.axis_a == TIME_AXIS) ||
        (a == CG_STEPS && b != CG_APART))
        return refuse(node, error,
                      "its product takes all of the decoder's steps at once");
    set_outputs(trace, node, a == CG_APART ? b : a);
    return CELLGATE_OK;
}

/* The numbers and their mask, both of the decoder's steps. */
static cellgate_status masked(const cg_trace *trace, const cg_node *node,
                              cellgate_error *error)
{
    for (size_t i = 0; i < node->input_count; i++)
        if (reach_of(trace, node, i) != CG_STEPS)
            return refuse(node, error,
                          "'%s' and what is masked with it do not both belong "
                          "to the decoder's steps",
                          input_of(trace, node, i)->name);
    set_outputs(trace, node, CG_STEPS);
    return CELLGATE_OK;
}

static cellgate_status across(const cg_node *node, cellgate_error *error)
{
    return refuse(node, error, "its kind, %s, looks across the decoder's steps",
                  cg_kind_get((int)node->kind)->name);
}

static cellgate_status lstm_shape(const cg_node *node, cellgate_error *error)
{
    const cellgate_lstm *shape = &node->as.lstm.shape;

    if (shape->directions != 1)
        return refuse(node, error,
                      "it has a backward direction, which begins "
                      "at the last step");
    if (shape->reverse)
        return refuse(node, error, "it goes backwards, from the last step");
    return CELLGATE_OK;
}

static bool has_initial(const cg_node *node)
{
    for (size_t i = CG_LSTM_INPUT_STATE; i < node->input_count; i++)
        if (node->inputs[i] != CG_NO_VALUE)
            return true;
    return false;
}

static cellgate_status recurrent(const cg_trace *trace, const cg_node *node,
                                 cellgate_error *error)
{
    const cg_reach mask = reach_of(trace, node, CG_LSTM_INPUT_MASK);
    cellgate_status status = lstm_shape(node, error);
    int32_t sequence;

    if (status != CELLGATE_OK)
        return status;
    for (size_t i = CG_LSTM_INPUT_STATE; i < node->input_count; i++)
        if (reach_of(trace, node, i) != CG_APART)
            return refuse(node, error,
                          "its initial state, '%s', follows from all of the "
                          "ids that are being generated",
                          input_of(trace, node, i)->name);
    if (reach_of(trace, node, 0) != CG_STEPS ||
        (node->inputs[CG_LSTM_INPUT_MASK] != CG_NO_VALUE && mask != CG_STEPS))
        return refuse(node, error,
                      "of its input and its mask one belongs to the decoder's "
                      "steps and the other does not");
    if (node->inputs[CG_LSTM_INPUT_MASK] != CG_NO_VALUE &&
        !node->as.lstm.zero_masked && has_initial(node))
        return refuse(
            node, error,
            "it has a mask and initial states, and repeats, in masked "
            "steps, an output of the steps before");
    set_outputs(trace, node, CG_NEWEST);
    sequence = node->outputs[CG_LSTM_OUTPUT_SEQUENCE];
    if (sequence != CG_NO_VALUE && trace->reach[sequence] != CG_UNNEEDED)
        trace->reach[sequence] = CG_STEPS;
    return CELLGATE_OK;
}

static cellgate_status trace_node(const cg_trace *trace, const cg_node *node,
                                  cellgate_error *error)
{
    switch (node->kind) {
    case CG_LSTM:
        return recurrent(trace, node, error);
    case CG_EMBEDDING:
    case CG_ACTIVATION:
    case CG_NONZERO:
    case CG_CAST:
    case CG_COMBINE:
    case CG_LOGIC:
    case CG_VALID:
        return same(trace, node, error);
    case CG_DENSE:
    case CG_SOFTMAX:
    case CG_MERGE:
    case CG_NOT_EQUAL:
        return along(trace, node, 0, error);
    case CG_SLICE:
        return along(trace, node, node->as.slice.axis, error);
    case CG_CONCAT:
        return along(trace, node, node->as.concat, error);
    case CG_PAD:
        return along(trace, node, node->as.pad.axis, error);
    case CG_REPEAT:
        return along(trace, node, node->as.repeat.axis, error);
    case CG_RESHAPE:
        return moved(trace, node, node->as.reshape.keep > TIME_AXIS, error);
    case CG_PERMUTE:
        return moved(trace, node,
                     node->as.permute.extent[TIME_AXIS] == TIME_AXIS, error);
    case CG_DOT:
        return dot(trace, node, error);
    case CG_MASKED:
        return masked(trace, node, error);
    default:
        return across(node, error);
    }
}

static bool touched(const cg_trace *trace, const cg_node *node)
{
    bool needed = false, follows = false;

    for (size_t i = 0; i < node->output_count; i++)
        needed = needed || (node->outputs[i] != CG_NO_VALUE &&
                            trace->reach[node->outputs[i]] != CG_UNNEEDED);
    for (size_t i = 0; i < node->input_count; i++)
        follows = follows || reach_of(trace, node, i) == CG_STEPS ||
                  reach_of(trace, node, i) == CG_NEWEST;
    return needed && follows;
}

cellgate_status cg_causal_trace(const cellgate_model *model, size_t token,
                                int32_t scores, cg_reach *reach,
                                cellgate_error *error)
{
    const cg_trace trace = { model, reach };
    const cg_input *input = &model->inputs[token];
    cellgate_status status = CELLGATE_OK;

    mark_needed(model, scores, reach);
    if (reach[input->value] == CG_UNNEEDED)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "the scores '%s' do not depend on the ids of "
                             "input '%s'",
                             model->values[scores].name,
                             model->values[input->value].name);
    reach[input->value] = CG_STEPS;
    if (input->mask != CG_NO_VALUE)
        reach[input->mask] = CG_STEPS;
    for (size_t n = 0; status == CELLGATE_OK && n < model->node_count; n++)
        if (touched(&trace, &model->nodes[n]))
            status = trace_node(&trace, &model->nodes[n], error);
    return status;
}
