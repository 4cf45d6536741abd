/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include "tests/conformance/case.h"

case_op case_lstm(int64_t hidden_size)
{
    case_op op = { .kind = CELLGATE_OP_LSTM,
                   .size = hidden_size,
                   .directions = 1,
                   .has_bias = 1 };

    op.outputs = CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST | CELLGATE_LSTM_H |
                 CELLGATE_LSTM_C;
    for (int d = 0; d < 2; d++) {
        op.activations[d][0].kind = CELLGATE_SIGMOID;
        op.activations[d][1].kind = CELLGATE_TANH;
        op.activations[d][2].kind = CELLGATE_TANH;
    }
    return op;
}

case_op case_dense(int64_t units, int32_t activation)
{
    case_op op = { .kind = CELLGATE_OP_DENSE, .size = units, .has_bias = 1 };

    op.activations[0][0].kind = activation;
    return op;
}

test_case case_of(const char *group, uint64_t seed, case_op op)
{
    test_case c = { .group = group,
                    .seed = seed,
                    .batch = 3,
                    .steps = 5,
                    .input_size = 4,
                    .op_count = 1,
                    .weight_scale = 1.0f };

    c.ops[0] = op;
    return c;
}

int case_is_minimal(const test_case *c)
{
    const case_op *op = &c->ops[0];

    return c->op_count == 1 && op->kind == CELLGATE_OP_LSTM &&
           op->directions == 1 && !op->reverse && op->projection == 0 &&
           !op->has_peepholes && !op->coupled && op->clip == 0.0f &&
           op->activations[0][0].kind == CELLGATE_SIGMOID &&
           op->activations[0][1].kind == CELLGATE_TANH &&
           op->activations[0][2].kind == CELLGATE_TANH;
}

int64_t case_op_output(const test_case *c, int32_t index)
{
    const case_op *op = &c->ops[index];
    int64_t width = op->projection > 0 ? op->projection : op->size;

    if (op->kind == CELLGATE_OP_LSTM)
        return width * op->directions;
    if (op->kind == CELLGATE_OP_ACTIVATION || op->kind == CELLGATE_OP_SOFTMAX)
        return case_op_input(c, index);
    return op->size;
}

int64_t case_op_input(const test_case *c, int32_t index)
{
    return index == 0 ? c->input_size : case_op_output(c, index - 1);
}

int64_t case_cost(const test_case *c)
{
    int64_t cost = 0;

    for (int32_t i = 0; i < c->op_count; i++) {
        const case_op *op = &c->ops[i];
        int64_t in = case_op_input(c, i);
        int64_t width = op->projection > 0 ? op->projection : op->size;
        if (op->kind == CELLGATE_OP_LSTM)
            cost += op->directions *
                    ((in + width) * 4 * op->size + op->size * op->projection);
        else if (op->kind == CELLGATE_OP_DENSE)
            cost += in * op->size;
        else
            cost += in;
    }
    return cost * c->batch * (c->steps > 0 ? c->steps : 1);
}

const char *case_activation_name(int32_t kind)
{
    switch (kind) {
#define ACTIVATION_NAME(name, value, text, parameters)                         \
    case value:                                                                \
        return text;
        CELLGATE_ACTIVATION_LIST(ACTIVATION_NAME)
#undef ACTIVATION_NAME
    default:
        return "?";
    }
}

/* A growing line of text, cut where it no longer fits. */
typedef struct line {
    char *text;
    size_t size, used;
} line;

CELLGATE_PRINTF_LIKE(2, 3)
static void add(line *to, const char *format, ...)
{
    va_list arguments;
    int written;

    if (to->used >= to->size)
        return;
    va_start(arguments, format);
    written =
        vsnprintf(to->text + to->used, to->size - to->used, format, arguments);
    va_end(arguments);
    to->used += written > 0 ? (size_t)written : 0;
}

static void add_activation(line *to, const cellgate_activation *activation)
{
    add(to, "%s", case_activation_name(activation->kind));
    if (activation->alpha != 0.0f || activation->beta != 0.0f)
        add(to, "(%g,%g)", (double)activation->alpha, (double)activation->beta);
}

static void add_lstm(line *to, const case_op *op)
{
    static const struct {
        uint32_t flag;
        const char *text;
    } outputs[] = { { CELLGATE_LSTM_SEQUENCE, "sequence" },
                    { CELLGATE_LSTM_LAST, "last" },
                    { CELLGATE_LSTM_H, "h" },
                    { CELLGATE_LSTM_C, "c" } };

    add(to, " lstm(hidden=%" PRId64, op->size);
    if (op->projection > 0)
        add(to, " projection=%" PRId64, op->projection);
    add(to, " %s",
        op->directions == 2 ? "bidirectional"
        : op->reverse       ? "reversed"
                            : "forward");
    for (int d = 0; d < op->directions; d++) {
        for (int a = 0; a < 3; a++) {
            add(to, a == 0 ? " " : "/");
            add_activation(to, &op->activations[d][a]);
        }
    }
    add(to, op->has_bias ? " bias" : " no-bias");
    if (op->has_peepholes)
        add(to, " peepholes");
    if (op->coupled)
        add(to, " coupled");
    if (op->clip != 0.0f)
        add(to, " clip=%g", (double)op->clip);
    add(to, " gives");
    for (int i = 0; i < 4; i++)
        if (op->outputs & outputs[i].flag)
            add(to, " %s", outputs[i].text);
    add(to, ")");
}

static void add_op(line *to, const case_op *op)
{
    switch (op->kind) {
    case CELLGATE_OP_LSTM:
        add_lstm(to, op);
        break;
    case CELLGATE_OP_DENSE:
        add(to, " dense(units=%" PRId64 " ", op->size);
        add_activation(to, &op->activations[0][0]);
        add(to, op->has_bias ? " bias)" : " no-bias)");
        break;
    case CELLGATE_OP_EMBEDDING:
        add(to, " embedding(vocabulary=%" PRId64 " size=%" PRId64 ")",
            op->vocabulary, op->size);
        break;
    case CELLGATE_OP_ACTIVATION:
        add(to, " activation(");
        add_activation(to, &op->activations[0][0]);
        add(to, ")");
        break;
    case CELLGATE_OP_SOFTMAX:
        add(to, " softmax");
        break;
    default:
        add(to, " op(kind=%d)", (int)op->kind);
    }
}

void case_describe(const test_case *c, char *text, size_t size)
{
    static const char *const lengths[] = { "full", "full-listed", "ragged",
                                           "with-zeros", "all-zero" };
    static const char *const layouts[] = { "batch-major", "time-major",
                                           "padded-batch-major",
                                           "padded-time-major" };
    static const char *const values[] = { "ordinary",     "saturating",
                                          "large",        "denormal",
                                          "nan-in-a-row", "infinity-in-a-row" };
    static const char *const states[] = { "none", "given", "h-only", "c-only" };
    line to = { text, size, 0 };

    add(&to, "%s: batch=%" PRId64, c->group, c->batch);
    if (c->takes_rows)
        add(&to, " rows");
    else
        add(&to, " steps=%" PRId64, c->steps);
    add(&to, " input=%" PRId64, c->input_size);
    for (int32_t i = 0; i < c->op_count; i++)
        add_op(&to, &c->ops[i]);
    add(&to,
        " lengths=%s x=%s y=%s state=%s%s values=%s scale=%g seed=%" PRIu64,
        lengths[c->lengths], layouts[c->x_layout], layouts[c->y_layout],
        states[c->state], c->no_finals ? " finals=unwanted" : "",
        values[c->values], (double)c->weight_scale, c->seed);
}
