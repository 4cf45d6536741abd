/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tests/oracle/arithmetic.h"

/* What one op passes to the next. */
typedef struct flow {
    double *values;    /* [batch][steps][features], or [batch][features] */
    int64_t positions; /* a sample's vectors: steps, or 1 */
    int64_t features;
    int is_rows;
} flow;

static int64_t lstm_features(const cellgate_lstm *lstm)
{
    int64_t r =
        lstm->projection_size > 0 ? lstm->projection_size : lstm->hidden_size;
    return r * lstm->directions;
}

void oracle_output_size(const cellgate_segment *segment, int64_t *features,
                        int32_t *has_sequence, int32_t *has_row)
{
    int rows = 0, sequence = 1;
    int64_t size = 0;

    for (uint32_t i = 0; i < segment->op_count; i++) {
        const cellgate_op *op = segment->ops[i];
        if (op->kind == CELLGATE_OP_LSTM) {
            const cellgate_lstm *lstm = (const cellgate_lstm *)op;
            sequence = (lstm->outputs & CELLGATE_LSTM_SEQUENCE) != 0;
            rows = (lstm->outputs & CELLGATE_LSTM_LAST) != 0;
            size = lstm_features(lstm);
        } else if (op->kind == CELLGATE_OP_DENSE) {
            size = ((const cellgate_dense *)op)->units;
        } else if (op->kind == CELLGATE_OP_EMBEDDING) {
            size = ((const cellgate_embedding *)op)->size;
        } else if (op->kind == CELLGATE_OP_ACTIVATION) {
            size = ((const cellgate_activation_op *)op)->size;
        } else if (op->kind == CELLGATE_OP_SOFTMAX) {
            size = ((const cellgate_softmax *)op)->size;
        }
    }
    if (features != NULL)
        *features = size;
    if (has_sequence != NULL)
        *has_sequence = sequence;
    if (has_row != NULL)
        *has_row = rows;
}

static void softmax(oracle_arithmetic *arithmetic, int64_t row, double *v,
                    int64_t n)
{
    double largest = -INFINITY, sum = 0.0;

    for (int64_t j = 0; j < n; j++)
        if (v[j] > largest || isnan(v[j]))
            largest = v[j];
    for (int64_t j = 0; j < n; j++) {
        double x = v[j] - largest;
        /* The argument's own rounding moves e^x by |x| of its value. */
        v[j] = oracle_rounded(arithmetic, row, exp(x),
                              x > -700.0 ? exp(x) * (1.0 - x) : 0.0);
        sum += v[j];
    }
    for (int64_t j = 0; j < n; j++)
        v[j] = oracle_rounded(arithmetic, row, v[j] / sum, v[j] / sum);
}

static int run_dense(oracle_arithmetic *arithmetic, const cellgate_dense *dense,
                     int64_t batch, const flow *in, flow *out)
{
    int64_t units = dense->units, n = dense->input_size;
    double *kernel = oracle_weights(arithmetic, dense->kernel, n * units);
    double *x = oracle_doubles(n);
    int result = kernel == NULL || x == NULL ? -1 : 0;

    for (int64_t at = 0; at < batch * in->positions && result == 0; at++) {
        double *y = out->values + at * units;
        for (int64_t j = 0; j < units; j++)
            y[j] = dense->has_bias ? dense->bias[j] : 0.0;
        oracle_factors(arithmetic, in->values + at * n, n, x);
        oracle_multiply(x, kernel, n, units, y);
        for (int64_t j = 0; j < units; j++)
            y[j] = oracle_activated(arithmetic, at / in->positions,
                                    &dense->activation, y[j]);
    }
    free(kernel);
    free(x);
    return result;
}

static int run_embedding(oracle_arithmetic *arithmetic,
                         const cellgate_embedding *embedding,
                         const oracle_run *run, flow *out)
{
    int64_t n = embedding->size;
    double *table =
        oracle_weights(arithmetic, embedding->table, embedding->vocabulary * n);

    if (table == NULL)
        return -1;
    for (int64_t at = 0; at < run->batch * out->positions; at++)
        for (int64_t j = 0; j < n; j++)
            out->values[at * n + j] = table[run->ids[at] * n + j];
    free(table);
    return 0;
}

/* Elementwise ops, and softmax: the values keep their place and size. */
static int run_in_place(oracle_arithmetic *arithmetic, const cellgate_op *op,
                        int64_t batch, const flow *in, flow *out)
{
    int64_t n = in->features;

    for (int64_t at = 0; at < batch * in->positions; at++) {
        double *y = out->values + at * n;
        int64_t row = at / in->positions;
        for (int64_t j = 0; j < n; j++)
            y[j] = in->values[at * n + j];
        if (op->kind == CELLGATE_OP_SOFTMAX) {
            softmax(arithmetic, row, y, n);
            continue;
        }
        for (int64_t j = 0; j < n; j++)
            y[j] = oracle_activated(
                arithmetic, row,
                &((const cellgate_activation_op *)op)->activation, y[j]);
    }
    return 0;
}

static int op_sizes(const cellgate_op *op, int64_t *in, int64_t *out)
{
    switch (op->kind) {
    case CELLGATE_OP_LSTM:
        *in = ((const cellgate_lstm *)op)->input_size;
        *out = lstm_features((const cellgate_lstm *)op);
        return 0;
    case CELLGATE_OP_DENSE:
        *in = ((const cellgate_dense *)op)->input_size;
        *out = ((const cellgate_dense *)op)->units;
        return 0;
    case CELLGATE_OP_EMBEDDING:
        *in = 0;
        *out = ((const cellgate_embedding *)op)->size;
        return 0;
    case CELLGATE_OP_ACTIVATION:
        *in = *out = ((const cellgate_activation_op *)op)->size;
        return 0;
    case CELLGATE_OP_SOFTMAX:
        *in = *out = ((const cellgate_softmax *)op)->size;
        return 0;
    default:
        return -1;
    }
}

static void copy_out(double *to, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count && to != NULL; i++)
        to[i] = from[i];
}

/* An LSTM; its rows, where it passes those on, replace the sequence in *out. */
static int run_lstm(oracle_arithmetic *arithmetic, const cellgate_lstm *lstm,
                    const oracle_run *run, uint32_t index, int is_last_op,
                    const flow *in, flow *out)
{
    static const oracle_state none = { NULL, NULL, NULL, NULL };
    const oracle_state *state =
        run->states != NULL ? &run->states[index] : &none;
    int64_t width = out->features;
    double *last = oracle_doubles(run->batch * width);
    int result = -1;

    if (last != NULL)
        result = oracle_lstm_run(arithmetic, lstm, run, in->values, state,
                                 out->values, last);
    if (result == 0 && is_last_op) {
        copy_out(run->y, out->values, run->batch * run->steps * width);
        copy_out(run->y_last, last, run->batch * width);
    } else if (result == 0 && !(lstm->outputs & CELLGATE_LSTM_SEQUENCE)) {
        free(out->values);
        out->values = last;
        last = NULL;
        out->is_rows = 1;
        out->positions = 1;
    }
    free(last);
    return result;
}

static int run_op(oracle_arithmetic *arithmetic, const cellgate_op *op,
                  const oracle_run *run, uint32_t index, int is_last_op,
                  flow *current)
{
    int64_t in_size, out_size;
    flow out = *current;
    int result = -1;

    if (op_sizes(op, &in_size, &out_size) != 0)
        return -1;
    if (op->kind != CELLGATE_OP_EMBEDDING && in_size != current->features)
        return -1;
    if ((op->kind == CELLGATE_OP_EMBEDDING && index != 0) ||
        (op->kind == CELLGATE_OP_LSTM && current->is_rows))
        return -1;
    out.features = out_size;
    out.values = oracle_doubles(run->batch * out.positions * out_size);
    if (out.values == NULL)
        return -1;
    if (op->kind == CELLGATE_OP_LSTM)
        result = run_lstm(arithmetic, (const cellgate_lstm *)op, run, index,
                          is_last_op, current, &out);
    else if (op->kind == CELLGATE_OP_DENSE)
        result = run_dense(arithmetic, (const cellgate_dense *)op, run->batch,
                           current, &out);
    else if (op->kind == CELLGATE_OP_EMBEDDING)
        result = run_embedding(arithmetic, (const cellgate_embedding *)op, run,
                               &out);
    else
        result = run_in_place(arithmetic, op, run->batch, current, &out);
    free(current->values);
    *current = out;
    return result;
}

static int load_input(const cellgate_segment *segment, const oracle_run *run,
                      flow *start)
{
    int64_t in_size, out_size, count;

    if (segment->op_count == 0 ||
        op_sizes(segment->ops[0], &in_size, &out_size) != 0)
        return -1;
    start->is_rows = run->takes_rows;
    start->positions = run->takes_rows ? 1 : run->steps;
    start->features = in_size;
    count = run->batch * start->positions * in_size;
    start->values = oracle_doubles(count);
    if (start->values == NULL)
        return -1;
    for (int64_t i = 0; i < count; i++)
        start->values[i] = run->x[i];
    return 0;
}

int oracle_segment_run(const cellgate_segment *segment, const oracle_run *run)
{
    oracle_arithmetic arithmetic = { run->noise, { 0 }, run->rows };
    flow current = { NULL, 0, 0, 0 };
    int result = load_input(segment, run, &current);

    if (run->noise != NULL)
        arithmetic.random = random_from(run->noise->seed, 0);
    for (int64_t b = 0; b < run->batch && run->rows != NULL; b++)
        run->rows[b] = (oracle_row){ 0.0, INFINITY };
    for (uint32_t i = 0; i < segment->op_count && result == 0; i++)
        result = run_op(&arithmetic, segment->ops[i], run, i,
                        i + 1 == segment->op_count, &current);
    if (result == 0 &&
        segment->ops[segment->op_count - 1]->kind != CELLGATE_OP_LSTM)
        copy_out(current.is_rows ? run->y_last : run->y, current.values,
                 run->batch * current.positions * current.features);
    free(current.values);
    return result;
}
