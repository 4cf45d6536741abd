/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/segment.h"

/* Sizes beyond it could overflow the products formed of them. */
#define LARGEST_SIZE (INT64_C(1) << 24)

static const char *activation_name(int32_t kind)
{
    static const char *const names[] = {
#define NAME(name, value, text, parameters) [value] = text,
        CELLGATE_ACTIVATION_LIST(NAME)
#undef NAME
    };
    if (kind < 0 || kind >= CELLGATE_ACTIVATION_COUNT)
        return "unknown to this plugin";
    return names[kind];
}

static cellgate_status check_activation(const cellgate_activation *activation,
                                        uint32_t index, cellgate_error *error)
{
    switch (activation->kind) {
    case CELLGATE_TANH:
    case CELLGATE_SIGMOID:
    case CELLGATE_LINEAR:
    case CELLGATE_RELU:
    case CELLGATE_HARD_SIGMOID:
        return CELLGATE_OK;
    default:
        return cellgate_refuse(error, CELLGATE_REASON_ACTIVATION,
                               "op %u: activation %s (%d) is not among tanh, "
                               "sigmoid, linear, relu, hard_sigmoid",
                               (unsigned)index,
                               activation_name(activation->kind),
                               (int)activation->kind);
    }
}

static cellgate_status check_size(int64_t size, const char *what,
                                  uint32_t index, cellgate_error *error)
{
    if (size < 1)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "op %u: %s is %lld, it must be at least 1",
                             (unsigned)index, what, (long long)size);
    if (size > LARGEST_SIZE)
        return cellgate_refuse(
            error, CELLGATE_REASON_SHAPE, "op %u: %s is %lld, more than %lld",
            (unsigned)index, what, (long long)size, (long long)LARGEST_SIZE);
    return CELLGATE_OK;
}

/* That the op can take what the one before it passes on. */
static cellgate_status check_link(const struct remote_op *before,
                                  const struct remote_op *op, uint32_t index,
                                  cellgate_error *error)
{
    if (before == NULL) {
        if (op->kind != CELLGATE_OP_LSTM)
            return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                                   "op 0 is no LSTM; a segment of this device "
                                   "begins with one");
        return CELLGATE_OK;
    }
    if (op->kind == CELLGATE_OP_LSTM && !before->passes_sequence)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "op %u: an LSTM cannot follow an op that gives "
                               "one row a sample",
                               (unsigned)index);
    if (op->input != before->features)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "op %u: input size %lld, but op %u gives %lld "
                               "features",
                               (unsigned)index, (long long)op->input,
                               (unsigned)index - 1,
                               (long long)before->features);
    return CELLGATE_OK;
}

/* Options that this device has no circuits for. */
static cellgate_status check_options(const cellgate_lstm *lstm, uint32_t index,
                                     cellgate_error *error)
{
    const uint32_t known = CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST |
                           CELLGATE_LSTM_H | CELLGATE_LSTM_C;

    if (lstm->reserved != 0 || (lstm->outputs & ~known) != 0)
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "op %u: asks for something newer than this "
                               "plugin",
                               (unsigned)index);
    if (lstm->has_peepholes)
        return cellgate_refuse(error, CELLGATE_REASON_PEEPHOLES,
                               "op %u: peepholes are not supported",
                               (unsigned)index);
    if (lstm->coupled)
        return cellgate_refuse(error, CELLGATE_REASON_COUPLED,
                               "op %u: coupled input and forget gates are not "
                               "supported",
                               (unsigned)index);
    if (lstm->directions != 1 && lstm->directions != 2)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "op %u: %d directions; 1 and 2 are supported",
                               (unsigned)index, (int)lstm->directions);
    if (lstm->directions == 2 && lstm->reverse)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "op %u: reverse with two directions",
                               (unsigned)index);
    return CELLGATE_OK;
}

/* What an LSTM gives: something, and one thing to the op after it. */
static cellgate_status check_outputs(uint32_t outputs, bool final,
                                     uint32_t index, cellgate_error *error)
{
    const uint32_t passes =
        outputs & (CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST);

    if (outputs == 0)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "op %u: no output is wanted", (unsigned)index);
    if (!final && passes != CELLGATE_LSTM_SEQUENCE &&
        passes != CELLGATE_LSTM_LAST)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "op %u: must pass on either its sequence or its "
                               "last output",
                               (unsigned)index);
    return CELLGATE_OK;
}

static cellgate_status check_lstm(const cellgate_lstm *lstm, bool final,
                                  uint32_t index, cellgate_error *error)
{
    cellgate_status status;
    int32_t direction, which;

    status = check_options(lstm, index, error);
    if (status == CELLGATE_OK)
        status = check_size(lstm->input_size, "input size", index, error);
    if (status == CELLGATE_OK)
        status = check_size(lstm->hidden_size, "hidden size", index, error);
    if (status == CELLGATE_OK && lstm->projection_size != 0)
        status =
            check_size(lstm->projection_size, "projection size", index, error);
    if (status == CELLGATE_OK)
        status = check_outputs(lstm->outputs, final, index, error);
    for (direction = 0; status == CELLGATE_OK && direction < lstm->directions;
         direction++)
        for (which = 0; status == CELLGATE_OK && which < 3; which++)
            status = check_activation(&lstm->activations[direction][which],
                                      index, error);
    return status;
}

static cellgate_status read_lstm(const cellgate_op *op, bool final,
                                 uint32_t index, struct remote_op *out,
                                 cellgate_error *error)
{
    cellgate_lstm lstm = { .op.struct_size = sizeof lstm };
    cellgate_status status;

    cellgate_struct_copy(&lstm, op);
    status = check_lstm(&lstm, final, index, error);
    if (status != CELLGATE_OK)
        return status;
    out->projects = lstm.projection_size > 0;
    out->input = lstm.input_size;
    out->hidden = lstm.hidden_size;
    out->recurrent = out->projects ? lstm.projection_size : lstm.hidden_size;
    out->directions = lstm.directions;
    out->features = out->directions * out->recurrent;
    out->reverse = lstm.reverse != 0;
    out->outputs = lstm.outputs;
    out->passes_sequence = (lstm.outputs & CELLGATE_LSTM_SEQUENCE) != 0;
    out->has_bias = lstm.has_bias != 0;
    out->clip = lstm.clip;
    memcpy(out->activations, lstm.activations, sizeof out->activations);
    return CELLGATE_OK;
}

static cellgate_status read_dense(const cellgate_op *op, uint32_t index,
                                  const struct remote_op *before,
                                  struct remote_op *out, cellgate_error *error)
{
    cellgate_dense dense = { .op.struct_size = sizeof dense };
    cellgate_status status;

    cellgate_struct_copy(&dense, op);
    status = check_size(dense.input_size, "input size", index, error);
    if (status == CELLGATE_OK)
        status = check_size(dense.units, "units", index, error);
    if (status == CELLGATE_OK)
        status = check_activation(&dense.activation, index, error);
    if (status != CELLGATE_OK)
        return status;
    out->input = dense.input_size;
    out->features = dense.units;
    out->has_bias = dense.has_bias != 0;
    out->activation = dense.activation;
    out->passes_sequence = before != NULL && before->passes_sequence;
    return CELLGATE_OK;
}

/* Bytes of an op that this plugin knows; 0 for a kind that it does not take. */
static size_t known_size(int32_t kind)
{
    switch (kind) {
    case CELLGATE_OP_LSTM:
        return sizeof(cellgate_lstm);
    case CELLGATE_OP_DENSE:
        return sizeof(cellgate_dense);
    default:
        return 0;
    }
}

cellgate_status remote_read_op(const cellgate_segment *segment, uint32_t index,
                               const struct remote_op *before,
                               struct remote_op *out, cellgate_error *error)
{
    const cellgate_op *op = segment->ops[index];
    struct remote_op read = { .kind = op->kind };
    const bool final = index + 1 == segment->op_count;
    size_t known = known_size(op->kind);
    cellgate_status status;

    if (known == 0)
        return cellgate_refuse(error, CELLGATE_REASON_KIND,
                               "op %u: kind %d is none that this device takes "
                               "(LSTM, Dense)",
                               (unsigned)index, (int)op->kind);
    if (!cellgate_struct_known(op, known) || op->reserved != 0)
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "op %u: a field is set that is newer than this "
                               "plugin, which knows %zu bytes",
                               (unsigned)index, known);
    status = op->kind == CELLGATE_OP_LSTM
                 ? read_lstm(op, final, index, &read, error)
                 : read_dense(op, index, before, &read, error);
    if (status == CELLGATE_OK)
        status = check_link(before, &read, index, error);
    if (status == CELLGATE_OK)
        *out = read;
    return status;
}
