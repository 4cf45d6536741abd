/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/cuda/segment.h"

/* The largest size of one axis: kernels count in 32 bits. */
#define SIZE_LIMIT ((int64_t)1 << 28)

/* What flows along the chain: features, and whether each step has them. */
struct flow {
    int64_t features; /* 0: not known yet */
    bool sequence;
};

static bool size_valid(int64_t size)
{
    return size >= 1 && size < SIZE_LIMIT;
}

static cellgate_status check_size(uint32_t op, const char *what, int64_t size,
                                  cellgate_error *error)
{
    if (size_valid(size))
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                           "op %u: %s %lld is not between 1 and 2^28 - 1", op,
                           what, (long long)size);
}

static cellgate_status check_activation(uint32_t op, int32_t kind,
                                        cellgate_error *error)
{
    if (kind >= 0 && kind < CELLGATE_ACTIVATION_COUNT)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_ACTIVATION,
                           "op %u: activation %d is not known", op, (int)kind);
}

static cellgate_status check_flow(uint32_t op, const struct flow *flow,
                                  int64_t input, cellgate_error *error)
{
    if (flow->features == 0 || flow->features == input)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                           "op %u takes %lld features, op %u makes %lld", op,
                           (long long)input, op - 1, (long long)flow->features);
}

/* Refuses what a newer host may ask: bytes beyond `known` that are not zero. */
static cellgate_status check_known(uint32_t op, const cellgate_op *header,
                                   size_t known, cellgate_error *error)
{
    if (header->struct_size < sizeof *header)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "op %u: struct_size %zu is too small", op,
                             header->struct_size);
    if (cellgate_struct_known(header, known) && header->reserved == 0)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                           "op %u sets a field newer than this plugin", op);
}

static cellgate_status check_lstm_fields(uint32_t op, const cellgate_lstm *lstm,
                                         cellgate_error *error)
{
    const uint32_t outputs = CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST |
                             CELLGATE_LSTM_H | CELLGATE_LSTM_C;
    cellgate_status status;
    int i;

    if (lstm->directions != 1 && lstm->directions != 2)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "op %u: %d directions", op,
                               (int)lstm->directions);
    if (lstm->directions == 2 && lstm->reverse)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "op %u: reverse with two directions", op);
    if (lstm->outputs == 0 || (lstm->outputs & ~outputs) || lstm->reserved)
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "op %u: outputs 0x%x are not known", op,
                               (unsigned)lstm->outputs);
    if (!(lstm->clip >= 0))
        return cellgate_refuse(error, CELLGATE_REASON_CLIP,
                               "op %u: clip is negative or not a number", op);
    for (i = 0; i < 3 * lstm->directions; i++) {
        status =
            check_activation(op, lstm->activations[i / 3][i % 3].kind, error);
        if (status != CELLGATE_OK)
            return status;
    }
    return CELLGATE_OK;
}

static cellgate_status check_lstm(uint32_t op, const cellgate_op *header,
                                  bool last, struct flow *flow,
                                  cellgate_error *error)
{
    const uint32_t passed = CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST;
    cellgate_lstm lstm = { .op = { sizeof lstm, 0, 0 } };
    cellgate_status status;

    cellgate_struct_copy(&lstm, header);
    status = check_size(op, "input size", lstm.input_size, error);
    if (status == CELLGATE_OK)
        status = check_size(op, "hidden size", lstm.hidden_size, error);
    if (status == CELLGATE_OK && lstm.projection_size != 0)
        status = check_size(op, "projection size", lstm.projection_size, error);
    if (status == CELLGATE_OK)
        status = check_flow(op, flow, lstm.input_size, error);
    if (status == CELLGATE_OK)
        status = check_lstm_fields(op, &lstm, error);
    if (status != CELLGATE_OK)
        return status;
    if (!flow->sequence)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "op %u: an LSTM needs a sequence", op);
    if (!last && (lstm.outputs & passed) != CELLGATE_LSTM_SEQUENCE &&
        (lstm.outputs & passed) != CELLGATE_LSTM_LAST)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "op %u passes on neither or both of sequence "
                               "and last output",
                               op);
    flow->features =
        lstm.directions *
        (lstm.projection_size ? lstm.projection_size : lstm.hidden_size);
    flow->sequence = (lstm.outputs & CELLGATE_LSTM_SEQUENCE) != 0;
    return CELLGATE_OK;
}

static cellgate_status check_dense(uint32_t op, const cellgate_op *header,
                                   struct flow *flow, cellgate_error *error)
{
    cellgate_dense dense = { .op = { sizeof dense, 0, 0 } };
    cellgate_status status;

    cellgate_struct_copy(&dense, header);
    status = check_size(op, "input size", dense.input_size, error);
    if (status == CELLGATE_OK)
        status = check_size(op, "units", dense.units, error);
    if (status == CELLGATE_OK)
        status = check_activation(op, dense.activation.kind, error);
    if (status == CELLGATE_OK)
        status = check_flow(op, flow, dense.input_size, error);
    if (status == CELLGATE_OK)
        flow->features = dense.units;
    return status;
}

static cellgate_status check_embedding(uint32_t op, const cellgate_op *header,
                                       struct flow *flow, cellgate_error *error)
{
    cellgate_embedding embedding = { .op = { sizeof embedding, 0, 0 } };
    cellgate_status status;

    cellgate_struct_copy(&embedding, header);
    if (op != 0)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "op %u: an embedding comes first", op);
    status = check_size(op, "vocabulary", embedding.vocabulary, error);
    if (status == CELLGATE_OK)
        status = check_size(op, "embedding size", embedding.size, error);
    if (status == CELLGATE_OK)
        flow->features = embedding.size;
    return status;
}

static cellgate_status check_elementwise(uint32_t op, const cellgate_op *header,
                                         struct flow *flow,
                                         cellgate_error *error)
{
    cellgate_activation_op act = { .op = { sizeof act, 0, 0 } };
    cellgate_softmax softmax = { .op = { sizeof softmax, 0, 0 } };
    cellgate_status status = CELLGATE_OK;
    int64_t size;

    if (header->kind == CELLGATE_OP_ACTIVATION) {
        cellgate_struct_copy(&act, header);
        size = act.size;
        status = check_activation(op, act.activation.kind, error);
    } else {
        cellgate_struct_copy(&softmax, header);
        size = softmax.size;
    }
    if (status == CELLGATE_OK)
        status = check_size(op, "size", size, error);
    if (status == CELLGATE_OK)
        status = check_flow(op, flow, size, error);
    if (status == CELLGATE_OK)
        flow->features = size;
    return status;
}

static size_t known_size(int32_t kind)
{
    switch (kind) {
    case CELLGATE_OP_LSTM:
        return sizeof(cellgate_lstm);
    case CELLGATE_OP_DENSE:
        return sizeof(cellgate_dense);
    case CELLGATE_OP_EMBEDDING:
        return sizeof(cellgate_embedding);
    case CELLGATE_OP_ACTIVATION:
        return sizeof(cellgate_activation_op);
    case CELLGATE_OP_SOFTMAX:
        return sizeof(cellgate_softmax);
    default:
        return 0;
    }
}

static cellgate_status check_op(const cellgate_segment *segment, uint32_t op,
                                struct flow *flow, cellgate_error *error)
{
    const cellgate_op *header = segment->ops[op];
    size_t known = known_size(header->kind);
    cellgate_status status;

    if (known == 0)
        return cellgate_refuse(error, CELLGATE_REASON_KIND,
                               "op %u is of kind %d, which is not known", op,
                               (int)header->kind);
    status = check_known(op, header, known, error);
    if (status != CELLGATE_OK)
        return status;
    switch (header->kind) {
    case CELLGATE_OP_LSTM:
        return check_lstm(op, header, op + 1 == segment->op_count, flow, error);
    case CELLGATE_OP_DENSE:
        return check_dense(op, header, flow, error);
    case CELLGATE_OP_EMBEDDING:
        return check_embedding(op, header, flow, error);
    default:
        return check_elementwise(op, header, flow, error);
    }
}

cellgate_status cud_segment_check(const cellgate_segment *segment,
                                  cellgate_error *error)
{
    struct flow flow = { 0, true };
    cellgate_status status;
    uint32_t op;

    if (!cellgate_struct_known(segment, sizeof *segment) || segment->reserved)
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the segment sets a field newer than this "
                               "plugin");
    if (segment->op_count == 0)
        return cellgate_fail(error, CELLGATE_INVALID, "a segment without ops");
    for (op = 0; op < segment->op_count; op++) {
        status = check_op(segment, op, &flow, error);
        if (status != CELLGATE_OK)
            return status;
    }
    return CELLGATE_OK;
}

cellgate_status cud_shape_read(const cellgate_shape *given,
                               cellgate_shape *shape, cellgate_error *error)
{
    shape->struct_size = sizeof *shape;
    cellgate_struct_copy(shape, given);
    if (!cellgate_struct_known(given, sizeof *shape))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the shape sets a field newer than this plugin");
    if (shape->batch < 1 || shape->steps < 0 || shape->batch >= SIZE_LIMIT ||
        shape->steps >= SIZE_LIMIT ||
        shape->batch * (shape->steps + 1) >= SIZE_LIMIT)
        return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                               "batch %lld times steps %lld is not below 2^28",
                               (long long)shape->batch,
                               (long long)shape->steps);
    return CELLGATE_OK;
}
