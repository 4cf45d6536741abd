/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.h: whether what a host asks of a plugin makes sense, for plugins that
 * take every op of the ABI. It is source to compile in, and no part of the ABI:
 * a plugin with narrower limits asks for these after it, and one that reads ops
 * its own way needs none of it.
 *
 * Any thread; nothing is kept. What is wrong is named by the op's number in the
 * chain, and refused with the reason that plugin.h has for it.
 */
#ifndef CELLGATE_CHAIN_H
#define CELLGATE_CHAIN_H

#include "cellgate/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sizes and structs -------------------------------------------------- */

/* What flows along a chain. */
typedef struct cellgate_flow {
    int64_t most;     /* that any size may be */
    int64_t features; /* 0: not known yet */
    int sequence;     /* each step has them; else each sample */
} cellgate_flow;

static inline cellgate_status
cellgate_chain_check_size(uint32_t op, const char *what, int64_t size,
                          const cellgate_flow *flow, cellgate_error *error)
{
    if (size >= 1 && size <= flow->most)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                           "op %u: %s %lld is not between 1 and %lld",
                           (unsigned)op, what, (long long)size,
                           (long long)flow->most);
}

static inline cellgate_status
cellgate_chain_check_activation(uint32_t op, int32_t kind,
                                cellgate_error *error)
{
    if (kind >= 0 && kind < CELLGATE_ACTIVATION_COUNT)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_ACTIVATION,
                           "op %u: activation %d is not known", (unsigned)op,
                           (int)kind);
}

/* Whether op `op` takes what the one before it makes. */
static inline cellgate_status
cellgate_chain_check_input(uint32_t op, int64_t input,
                           const cellgate_flow *flow, cellgate_error *error)
{
    if (flow->features == 0 || flow->features == input)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                           "op %u takes %lld features, op %u makes %lld",
                           (unsigned)op, (long long)input, (unsigned)op - 1,
                           (long long)flow->features);
}

/* Refuses what a newer host may ask: bytes beyond `known` that are not zero. */
static inline cellgate_status
cellgate_chain_check_known(uint32_t op, const cellgate_op *header, size_t known,
                           cellgate_error *error)
{
    if (header->struct_size < sizeof *header)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "op %u: struct_size %lu is too small",
                             (unsigned)op, (unsigned long)header->struct_size);
    if (cellgate_struct_known(header, known) && header->reserved == 0)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                           "op %u sets a field newer than this plugin",
                           (unsigned)op);
}

/* ---- Ops ---------------------------------------------------------------- */

/* Reads an op of any age of the host's into the struct that this header knows,
   of `size` bytes. */
static inline void cellgate_op_read(void *to, size_t size,
                                    const cellgate_op *from)
{
    memset(to, 0, size);
    memcpy(to, &size, sizeof size);
    cellgate_struct_copy(to, from);
}

/* `flow` becomes that after the op. */

static inline cellgate_status
cellgate_chain_check_fields(uint32_t op, const cellgate_lstm *lstm,
                            cellgate_error *error)
{
    const uint32_t outputs = CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST |
                             CELLGATE_LSTM_H | CELLGATE_LSTM_C;
    cellgate_status status = CELLGATE_OK;
    int i;

    if (lstm->directions != 1 && lstm->directions != 2)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "op %u: %d directions", (unsigned)op,
                               (int)lstm->directions);
    if (lstm->directions == 2 && lstm->reverse)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "op %u: reverse with two directions",
                               (unsigned)op);
    if (lstm->outputs == 0 || (lstm->outputs & ~outputs) || lstm->reserved)
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "op %u: outputs 0x%x are not known",
                               (unsigned)op, (unsigned)lstm->outputs);
    if (!(lstm->clip >= 0))
        return cellgate_refuse(error, CELLGATE_REASON_CLIP,
                               "op %u: clip is negative or not a number",
                               (unsigned)op);
    for (i = 0; status == CELLGATE_OK && i < 3 * lstm->directions; i++)
        status = cellgate_chain_check_activation(
            op, lstm->activations[i / 3][i % 3].kind, error);
    return status;
}

static inline cellgate_status
cellgate_chain_check_lstm(uint32_t op, const cellgate_op *header, int is_last,
                          cellgate_flow *flow, cellgate_error *error)
{
    const uint32_t passed = CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST;
    cellgate_lstm lstm;
    cellgate_status status;

    cellgate_op_read(&lstm, sizeof lstm, header);
    status = cellgate_chain_check_size(op, "input size", lstm.input_size, flow,
                                       error);
    if (status == CELLGATE_OK)
        status = cellgate_chain_check_size(op, "hidden size", lstm.hidden_size,
                                           flow, error);
    if (status == CELLGATE_OK && lstm.projection_size != 0)
        status = cellgate_chain_check_size(op, "projection size",
                                           lstm.projection_size, flow, error);
    if (status == CELLGATE_OK)
        status = cellgate_chain_check_input(op, lstm.input_size, flow, error);
    if (status == CELLGATE_OK)
        status = cellgate_chain_check_fields(op, &lstm, error);
    if (status != CELLGATE_OK)
        return status;
    if (!flow->sequence)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "op %u: an LSTM needs a sequence", (unsigned)op);
    if (!is_last && (lstm.outputs & passed) != CELLGATE_LSTM_SEQUENCE &&
        (lstm.outputs & passed) != CELLGATE_LSTM_LAST)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "op %u passes on neither or both of sequence "
                               "and last output",
                               (unsigned)op);
    flow->features =
        lstm.directions *
        (lstm.projection_size ? lstm.projection_size : lstm.hidden_size);
    flow->sequence = (lstm.outputs & CELLGATE_LSTM_SEQUENCE) != 0;
    return CELLGATE_OK;
}

static inline cellgate_status
cellgate_chain_check_dense(uint32_t op, const cellgate_op *header,
                           cellgate_flow *flow, cellgate_error *error)
{
    cellgate_dense dense;
    cellgate_status status;

    cellgate_op_read(&dense, sizeof dense, header);
    status = cellgate_chain_check_size(op, "input size", dense.input_size, flow,
                                       error);
    if (status == CELLGATE_OK)
        status =
            cellgate_chain_check_size(op, "units", dense.units, flow, error);
    if (status == CELLGATE_OK)
        status =
            cellgate_chain_check_activation(op, dense.activation.kind, error);
    if (status == CELLGATE_OK)
        status = cellgate_chain_check_input(op, dense.input_size, flow, error);
    if (status == CELLGATE_OK)
        flow->features = dense.units;
    return status;
}

static inline cellgate_status
cellgate_chain_check_embedding(uint32_t op, const cellgate_op *header,
                               cellgate_flow *flow, cellgate_error *error)
{
    cellgate_embedding embedding;
    cellgate_status status;

    cellgate_op_read(&embedding, sizeof embedding, header);
    if (op != 0)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "op %u: an embedding comes first", (unsigned)op);
    status = cellgate_chain_check_size(op, "vocabulary", embedding.vocabulary,
                                       flow, error);
    if (status == CELLGATE_OK)
        status = cellgate_chain_check_size(op, "embedding size", embedding.size,
                                           flow, error);
    if (status == CELLGATE_OK)
        flow->features = embedding.size;
    return status;
}

static inline cellgate_status
cellgate_chain_check_elementwise(uint32_t op, const cellgate_op *header,
                                 cellgate_flow *flow, cellgate_error *error)
{
    cellgate_activation_op act;
    cellgate_softmax softmax;
    cellgate_status status = CELLGATE_OK;
    int64_t size;

    if (header->kind == CELLGATE_OP_ACTIVATION) {
        cellgate_op_read(&act, sizeof act, header);
        size = act.size;
        status =
            cellgate_chain_check_activation(op, act.activation.kind, error);
    } else {
        cellgate_op_read(&softmax, sizeof softmax, header);
        size = softmax.size;
    }
    if (status == CELLGATE_OK)
        status = cellgate_chain_check_size(op, "size", size, flow, error);
    if (status == CELLGATE_OK)
        status = cellgate_chain_check_input(op, size, flow, error);
    if (status == CELLGATE_OK)
        flow->features = size;
    return status;
}

/* 0: the kind is not known. */
static inline size_t cellgate_op_size(int32_t kind)
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

static inline cellgate_status
cellgate_chain_check_op(uint32_t op, const cellgate_op *header, int is_last,
                        cellgate_flow *flow, cellgate_error *error)
{
    const size_t known = cellgate_op_size(header->kind);
    cellgate_status status;

    if (known == 0)
        return cellgate_refuse(error, CELLGATE_REASON_KIND,
                               "op %u is of kind %d, which is not known",
                               (unsigned)op, (int)header->kind);
    status = cellgate_chain_check_known(op, header, known, error);
    if (status != CELLGATE_OK)
        return status;
    switch (header->kind) {
    case CELLGATE_OP_LSTM:
        return cellgate_chain_check_lstm(op, header, is_last, flow, error);
    case CELLGATE_OP_DENSE:
        return cellgate_chain_check_dense(op, header, flow, error);
    case CELLGATE_OP_EMBEDDING:
        return cellgate_chain_check_embedding(op, header, flow, error);
    default:
        return cellgate_chain_check_elementwise(op, header, flow, error);
    }
}

/* ---- What plugins ask --------------------------------------------------- */

/*
 * Whether a segment is a chain of ops that fit each other, with every size from
 * 1 to `most`, of fields and kinds that this header knows. UNSUPPORTED with a
 * reason; INVALID for a host's mistake. Weights may be NULL.
 */
static inline cellgate_status
cellgate_chain_check(const cellgate_segment *segment, int64_t most,
                     cellgate_error *error)
{
    cellgate_flow flow;
    cellgate_status status = CELLGATE_OK;
    uint32_t op;

    flow.most = most;
    flow.features = 0;
    flow.sequence = 1;
    if (!cellgate_struct_known(segment, sizeof *segment) || segment->reserved)
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the segment sets a field newer than this "
                               "plugin");
    if (segment->op_count == 0)
        return cellgate_fail(error, CELLGATE_INVALID, "a segment without ops");
    for (op = 0; status == CELLGATE_OK && op < segment->op_count; op++)
        status =
            cellgate_chain_check_op(op, segment->ops[op],
                                    op + 1 == segment->op_count, &flow, error);
    return status;
}

/* Which of a direction's weights is not there; NULL: none. */
static inline const char *
cellgate_lstm_missing(const cellgate_lstm *lstm, int direction)
{
    const cellgate_lstm_weights *w = &lstm->weights[direction];

    return !w->kernel                                ? "kernel"
           : !w->recurrent_kernel                    ? "recurrent kernel"
           : lstm->has_bias && !w->bias              ? "bias"
           : lstm->has_peepholes && !w->peephole     ? "peephole"
           : lstm->projection_size && !w->projection ? "projection"
                                                     : NULL;
}

/* The same of an op of a chain that was checked. */
static inline const char *cellgate_op_missing(const cellgate_op *header)
{
    cellgate_lstm lstm;
    cellgate_dense dense;
    cellgate_embedding embedding;
    const char *missing = NULL;
    int d;

    switch (header->kind) {
    case CELLGATE_OP_LSTM:
        cellgate_op_read(&lstm, sizeof lstm, header);
        for (d = 0; !missing && d < lstm.directions; d++)
            missing = cellgate_lstm_missing(&lstm, d);
        return missing;
    case CELLGATE_OP_DENSE:
        cellgate_op_read(&dense, sizeof dense, header);
        return !dense.kernel                   ? "kernel"
               : dense.has_bias && !dense.bias ? "bias"
                                               : NULL;
    case CELLGATE_OP_EMBEDDING:
        cellgate_op_read(&embedding, sizeof embedding, header);
        return embedding.table ? NULL : "table";
    default:
        return NULL;
    }
}

/* Whether every op of a chain that was checked brings its weights, as prepare()
   needs them; else INVALID. */
static inline cellgate_status
cellgate_chain_check_weights(const cellgate_segment *segment,
                             cellgate_error *error)
{
    uint32_t op;

    for (op = 0; op < segment->op_count; op++) {
        const char *missing = cellgate_op_missing(segment->ops[op]);

        if (missing)
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "op %u comes without its %s", (unsigned)op,
                                 missing);
    }
    return CELLGATE_OK;
}

/* Reads a shape of any age of the host's: batch from 1, steps from 0, both to
   `most`; else UNSUPPORTED. */
static inline cellgate_status
cellgate_shape_read(const cellgate_shape *given, int64_t most,
                    cellgate_shape *shape, cellgate_error *error)
{
    shape->struct_size = sizeof *shape;
    cellgate_struct_copy(shape, given);
    if (!cellgate_struct_known(given, sizeof *shape))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the shape sets a field newer than this plugin");
    if (shape->batch >= 1 && shape->batch <= most && shape->steps >= 0 &&
        shape->steps <= most)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                           "batch %lld and steps %lld are not both up to %lld",
                           (long long)shape->batch, (long long)shape->steps,
                           (long long)most);
}

/* Whether a run fits its plan, of which `plan` is the capacity and `dtype` the
   type of x, and its lengths fit its steps; else INVALID. */
static inline cellgate_status
cellgate_run_check(const cellgate_segment_run *run, const cellgate_shape *plan,
                   int32_t dtype, cellgate_error *error)
{
    int64_t b;

    if (run->batch < 0 || run->batch > plan->batch || run->steps < 0 ||
        run->steps > plan->steps)
        return cellgate_fail(
            error, CELLGATE_INVALID,
            "batch %lld, steps %lld: the plan is for up to %lld, %lld",
            (long long)run->batch, (long long)run->steps,
            (long long)plan->batch, (long long)plan->steps);
    if (run->x.dtype != dtype)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the input is of type %d, not %d",
                             (int)run->x.dtype, (int)dtype);
    for (b = 0; run->lengths && b < run->batch; b++)
        if (run->lengths[b] < 0 || run->lengths[b] > run->steps)
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "length %d of row %lld is not between 0 and "
                                 "the %lld steps",
                                 (int)run->lengths[b], (long long)b,
                                 (long long)run->steps);
    return CELLGATE_OK;
}

#ifdef __cplusplus
}
#endif

#endif /* CELLGATE_CHAIN_H */
