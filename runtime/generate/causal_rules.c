/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/generate/causal_rules.h"
#include "runtime/model/kinds.h"

/* ---- For rules ----------------------------------------------------------- */

cg_reach cg_causal_reach(const cg_trace *trace, const cg_node *node,
                         size_t input)
{
    if (input >= node->input_count || node->inputs[input] == CG_NO_VALUE)
        return CG_APART;
    return trace->reach[node->inputs[input]];
}

const cg_value *cg_causal_input(const cg_trace *trace, const cg_node *node,
                                size_t input)
{
    return &trace->model->values[node->inputs[input]];
}

cellgate_status cg_causal_refuse(const cg_node *node, cellgate_error *error,
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

void cg_causal_set(const cg_trace *trace, const cg_node *node, cg_reach reach)
{
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != CG_NO_VALUE &&
            trace->reach[node->outputs[i]] != CG_UNNEEDED)
            trace->reach[node->outputs[i]] = reach;
}

/* ---- Inputs that meet element by element --------------------------------- */

/* A mask that goes with x lacks its last axis. */
static int32_t axes_of(const cg_trace *trace, const cg_node *node, size_t input)
{
    const bool beside =
        input == 1 && (node->kind == CG_SELECT || node->kind == CG_MASKED ||
                       node->kind == CG_REDUCE);

    if (node->inputs[input] == CG_NO_VALUE)
        return 0;
    return cg_causal_input(trace, node, input)->rank + (beside ? 1 : 0);
}

/* Whether this input's axis 1 lies on the decoder's time axis, with steps of
   its own, or the other way round. */
static bool has_other_steps(const cg_trace *trace, const cg_node *node,
                            size_t input)
{
    const int32_t axes = axes_of(trace, node, input);
    int32_t most = 0;

    for (size_t i = 0; i < node->input_count; i++)
        if (axes_of(trace, node, i) > most)
            most = axes_of(trace, node, i);
    if (axes == 0)
        return false;
    if (cg_causal_reach(trace, node, input) == CG_STEPS)
        return axes != most;
    return axes == most &&
           cg_causal_input(trace, node, input)->shape[CG_TIME_AXIS] != 1;
}

cellgate_status cg_causal_rule_same(const cg_trace *trace, const cg_node *node,
                                    cellgate_error *error)
{
    cg_reach reach = CG_APART;

    for (size_t i = 0; i < node->input_count; i++) {
        const cg_reach own = cg_causal_reach(trace, node, i);

        if (own == CG_APART)
            continue;
        if (reach != CG_APART && reach != own)
            return cg_causal_refuse(
                node, error, "it joins all steps with the newest one's result");
        reach = own;
    }
    for (size_t i = 0; reach == CG_STEPS && i < node->input_count; i++)
        if (has_other_steps(trace, node, i))
            return cg_causal_refuse(
                node, error,
                "it joins the decoder's steps with those of "
                "'%s', of which each step needs its own",
                cg_causal_input(trace, node, i)->name);
    cg_causal_set(trace, node, reach);
    return CELLGATE_OK;
}

/* ---- Kinds that work along an axis -------------------------------------- */

/* What is wrong with a kind that works along the axis of the steps. */
static const char *along_text(const cg_node *node)
{
    switch (node->kind) {
    case CG_SOFTMAX:
    case CG_LOG_SOFTMAX:
    case CG_SPARSEMAX:
        return "it shares out a sum of 1 among the steps";
    case CG_SLICE:
        return "it takes some of the steps";
    case CG_CONCAT:
        return "it puts further steps before or behind those";
    case CG_PAD:
        return "it adds steps to those";
    case CG_REPEAT:
        return "it repeats the steps";
    case CG_REVERSE:
        return "it turns round the order of the steps";
    case CG_NOT_EQUAL:
        return "it compares the steps";
    case CG_WINDOW:
    case CG_POOL:
        return "its windows hold several, or leave out some, of the steps";
    case CG_REDUCE:
        return "it makes one of all the steps";
    case CG_NORMALIZE:
        return "what it divides by comes from all the steps";
    case CG_AFFINE:
    case CG_PRELU:
        return "it has weights of its own for each of the steps";
    default:
        return "it mixes the steps";
    }
}

/* What works along an axis (0: the last one) leaves the steps apart, unless
   the axis is theirs. */
static cellgate_status along(const cg_trace *trace, const cg_node *node,
                             int32_t axis, cellgate_error *error)
{
    for (size_t i = 0; i < node->input_count; i++) {
        const cg_value *value;

        if (cg_causal_reach(trace, node, i) != CG_STEPS)
            continue;
        value = cg_causal_input(trace, node, i);
        if ((axis == 0 ? value->rank - 1 : axis) == CG_TIME_AXIS)
            return cg_causal_refuse(node, error, "%s of '%s'", along_text(node),
                                    value->name);
    }
    return cg_causal_rule_same(trace, node, error);
}

/* Windows over the last axis but one; those of one step each change nothing. */
static cellgate_status windows(const cg_trace *trace, const cg_node *node,
                               const cg_window *window, cellgate_error *error)
{
    if (window != NULL && window->size == 1 && window->stride == 1)
        return cg_causal_rule_same(trace, node, error);
    return along(trace, node, cg_causal_input(trace, node, 0)->rank - 2, error);
}

/* Weights over the trailing axes, where `stretches` says that an extent of 1
   serves a whole axis. */
static cellgate_status over(const cg_trace *trace, const cg_node *node,
                            const cg_extents *extents, bool stretches,
                            cellgate_error *error)
{
    const int32_t axes = cg_causal_input(trace, node, 0)->rank;
    const int32_t at = CG_TIME_AXIS - (axes - extents->count);

    if (at < 0 || (stretches && extents->extent[at] == 1))
        return cg_causal_rule_same(trace, node, error);
    return along(trace, node, CG_TIME_AXIS, error);
}

/* ---- Kinds that move axes ----------------------------------------------- */

/* Axis 1 of a shape of steps has to stay where it is. */
static cellgate_status moved(const cg_trace *trace, const cg_node *node,
                             bool stays, cellgate_error *error)
{
    if (cg_causal_reach(trace, node, 0) == CG_STEPS && !stays)
        return cg_causal_refuse(node, error, "it %s the decoder's steps",
                                node->kind == CG_PERMUTE
                                    ? "moves the axis of"
                                    : "merges or splits the axis of");
    return cg_causal_rule_same(trace, node, error);
}

/* The first input's axes come first, then the second one's, but for the batch
   and the one that the sum goes over. */
static cellgate_status dot(const cg_trace *trace, const cg_node *node,
                           cellgate_error *error)
{
    const cg_dot *dot = &node->as.dot;
    const cg_reach a = cg_causal_reach(trace, node, 0);
    const cg_reach b = cg_causal_reach(trace, node, 1);

    if ((a == CG_STEPS && dot->axis_a == CG_TIME_AXIS) ||
        (b == CG_STEPS && dot->axis_b == CG_TIME_AXIS))
        return cg_causal_refuse(node, error,
                                "its sums go over the decoder's steps");
    if ((a == CG_STEPS && b != CG_APART) || (b == CG_STEPS && a != CG_APART))
        return cg_causal_refuse(
            node, error, "it multiplies all of the decoder's steps with '%s'",
            cg_causal_input(trace, node, a == CG_STEPS ? 1 : 0)->name);
    if (b == CG_STEPS && cg_causal_input(trace, node, 0)->rank > 2)
        return cg_causal_refuse(node, error,
                                "its result has the decoder's steps behind an "
                                "axis of '%s'; as the first of its inputs they "
                                "would come first",
                                cg_causal_input(trace, node, 0)->name);
    cg_causal_set(trace, node, a == CG_APART ? b : a);
    return CELLGATE_OK;
}

/* ---- All of them -------------------------------------------------------- */

/* No default: a kind without a rule does not compile. */
cellgate_status cg_causal_rule(const cg_trace *trace, const cg_node *node,
                               cellgate_error *error)
{
    switch (node->kind) {
    case CG_LSTM:
    case CG_GRU:
    case CG_SIMPLE_RNN:
        return cg_causal_rule_recurrent(trace, node, error);
    case CG_ATTENTION:
        return cg_causal_rule_attention(trace, node, error);
    case CG_EMBEDDING:
    case CG_ACTIVATION:
    case CG_NONZERO:
    case CG_CAST:
    case CG_COMBINE:
    case CG_SELECT:
    case CG_MASKED:
    case CG_LOGIC:
    case CG_VALID:
    case CG_RELU:
        return cg_causal_rule_same(trace, node, error);
    case CG_DENSE:
    case CG_SOFTMAX:
    case CG_LOG_SOFTMAX:
    case CG_SPARSEMAX:
    case CG_MERGE:
    case CG_NOT_EQUAL:
        return along(trace, node, 0, error);
    case CG_REVERSE:
        return along(trace, node, CG_TIME_AXIS, error);
    case CG_SLICE:
        return along(trace, node, node->as.slice.axis, error);
    case CG_CONCAT:
        return along(trace, node, node->as.concat, error);
    case CG_PAD:
        return along(trace, node, node->as.pad.axis, error);
    case CG_REPEAT:
        return along(trace, node, node->as.repeat.axis, error);
    case CG_RESHAPE:
        return moved(trace, node, node->as.reshape.keep > CG_TIME_AXIS, error);
    case CG_PERMUTE:
        return moved(trace, node,
                     node->as.permute.extent[CG_TIME_AXIS] == CG_TIME_AXIS,
                     error);
    case CG_DOT:
        return dot(trace, node, error);
    case CG_WINDOW:
        return windows(trace, node, &node->as.window, error);
    case CG_POOL:
        return windows(trace, node, &node->as.pool.window, error);
    case CG_REDUCE:
        return windows(trace, node, NULL, error);
    case CG_NORMALIZE:
        return over(trace, node, &node->as.normalize.extents, false, error);
    case CG_AFFINE:
        return over(trace, node, &node->as.affine.extents, true, error);
    case CG_PRELU:
        return over(trace, node, &node->as.prelu, true, error);
    case CG_KIND_COUNT:
        break;
    }
    return cg_causal_refuse(node, error, "its kind is not known");
}
