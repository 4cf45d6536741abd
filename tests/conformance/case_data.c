/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tests/conformance/case_data.h"
#include "tests/oracle/random.h"

int64_t case_length(const case_data *data, int64_t row)
{
    return data->lengths != NULL ? data->lengths[row] : data->c.steps;
}

int64_t case_state_width(const case_op *op)
{
    return op->projection > 0 ? op->projection : op->size;
}

static void *array(int64_t count, size_t size)
{
    return calloc(count > 0 ? (size_t)count : 1, size);
}

/* ---- Weights ----------------------------------------------------------- */

/* Hands out weights: counts them when `at` is NULL, else fills them in. */
typedef struct weight_source {
    float *at;
    int64_t count;
    random_source random;
} weight_source;

static const float *take(weight_source *from, int64_t count, double limit)
{
    const float *start = from->at;

    from->count += count;
    if (from->at == NULL)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        *from->at++ = (float)random_between(&from->random, -limit, limit);
    return start;
}

static void lstm_weights(const test_case *c, int32_t index, weight_source *from,
                         cellgate_lstm *lstm)
{
    const case_op *op = &c->ops[index];
    int64_t in = case_op_input(c, index), h = op->size;
    int64_t r = case_state_width(op);
    double scale = c->weight_scale;

    for (int d = 0; d < op->directions; d++) {
        cellgate_lstm_weights *w = &lstm->weights[d];
        w->kernel = take(from, in * 4 * h, scale / sqrt((double)in));
        w->recurrent_kernel = take(from, r * 4 * h, scale / sqrt((double)r));
        w->bias = op->has_bias ? take(from, 4 * h, 0.5 * scale) : NULL;
        w->peephole = op->has_peepholes ? take(from, 3 * h, scale) : NULL;
        w->projection = op->projection > 0
                            ? take(from, h * r, 1.7 / sqrt((double)h))
                            : NULL;
    }
}

static void op_weights(const test_case *c, int32_t index, weight_source *from,
                       case_op_storage *op)
{
    int64_t in = case_op_input(c, index), size = c->ops[index].size;

    switch (c->ops[index].kind) {
    case CELLGATE_OP_LSTM:
        lstm_weights(c, index, from, &op->lstm);
        break;
    case CELLGATE_OP_DENSE:
        op->dense.kernel =
            take(from, in * size, 1.7 * c->weight_scale / sqrt((double)in));
        op->dense.bias = c->ops[index].has_bias ? take(from, size, 0.5) : NULL;
        break;
    case CELLGATE_OP_EMBEDDING:
        op->embedding.table = take(from, c->ops[index].vocabulary * size, 1.0);
        break;
    default:
        break;
    }
}

static int make_weights(case_data *data)
{
    weight_source from = { NULL, 0, random_from(data->c.seed, 1) };

    for (int32_t i = 0; i < data->c.op_count; i++)
        op_weights(&data->c, i, &from, &data->ops[i]);
    data->weight_count = from.count;
    data->weights = array(from.count, sizeof(float));
    if (data->weights == NULL)
        return -1;
    from.at = data->weights;
    for (int32_t i = 0; i < data->c.op_count; i++)
        op_weights(&data->c, i, &from, &data->ops[i]);
    return 0;
}

/* ---- Structure --------------------------------------------------------- */

static void fill_lstm(const test_case *c, int32_t index, cellgate_lstm *lstm)
{
    const case_op *op = &c->ops[index];

    lstm->op.struct_size = sizeof *lstm;
    lstm->input_size = case_op_input(c, index);
    lstm->hidden_size = op->size;
    lstm->projection_size = op->projection;
    lstm->directions = op->directions;
    lstm->reverse = op->reverse;
    lstm->outputs = op->outputs;
    lstm->has_bias = op->has_bias;
    lstm->has_peepholes = op->has_peepholes;
    lstm->coupled = op->coupled;
    lstm->clip = op->clip;
    for (int d = 0; d < op->directions; d++)
        for (int a = 0; a < 3; a++)
            lstm->activations[d][a] = op->activations[d][a];
}

static void fill_op(const test_case *c, int32_t index, case_op_storage *to)
{
    const case_op *op = &c->ops[index];

    memset(to, 0, sizeof *to);
    to->op.kind = op->kind;
    switch (op->kind) {
    case CELLGATE_OP_LSTM:
        fill_lstm(c, index, &to->lstm);
        break;
    case CELLGATE_OP_DENSE:
        to->op.struct_size = sizeof to->dense;
        to->dense.input_size = case_op_input(c, index);
        to->dense.units = op->size;
        to->dense.has_bias = op->has_bias;
        to->dense.activation = op->activations[0][0];
        break;
    case CELLGATE_OP_EMBEDDING:
        to->op.struct_size = sizeof to->embedding;
        to->embedding.vocabulary = op->vocabulary;
        to->embedding.size = op->size;
        break;
    case CELLGATE_OP_ACTIVATION:
        to->op.struct_size = sizeof to->activation;
        to->activation.size = case_op_input(c, index);
        to->activation.activation = op->activations[0][0];
        break;
    case CELLGATE_OP_SOFTMAX:
        to->op.struct_size = sizeof to->softmax;
        to->softmax.size = case_op_input(c, index);
        break;
    default:
        to->op.struct_size = sizeof to->op;
    }
}

static void fill_segments(case_data *data)
{
    for (int32_t i = 0; i < data->c.op_count; i++) {
        fill_op(&data->c, i, &data->ops[i]);
        fill_op(&data->c, i, &data->bare_ops[i]);
        data->op_list[i] = &data->ops[i].op;
        data->bare_list[i] = &data->bare_ops[i].op;
    }
    data->segment =
        (cellgate_segment){ sizeof data->segment, (uint32_t)data->c.op_count, 0,
                            data->op_list };
    data->structure = data->segment;
    data->structure.ops = data->bare_list;
}

/* ---- Inputs ------------------------------------------------------------ */

static int make_lengths(case_data *data)
{
    random_source random = random_from(data->c.seed, 2);
    int64_t batch = data->c.batch, steps = data->c.steps;

    if (data->c.lengths == CASE_FULL)
        return 0;
    data->lengths = array(batch, sizeof(int32_t));
    if (data->lengths == NULL)
        return -1;
    for (int64_t b = 0; b < batch; b++) {
        int64_t length = steps;
        if (data->c.lengths == CASE_RAGGED && b > 0)
            length = random_integer(&random, steps > 0, steps);
        else if (data->c.lengths == CASE_WITH_ZEROS)
            length = random_integer(&random, 0, 3) == 0
                         ? 0
                         : random_integer(&random, 0, steps);
        else if (data->c.lengths == CASE_ALL_ZERO)
            length = 0;
        data->lengths[b] = (int32_t)length;
    }
    if (data->c.lengths == CASE_WITH_ZEROS)
        data->lengths[random_integer(&random, 0, batch - 1)] = 0;
    return 0;
}

static float input_value(random_source *random, int32_t values)
{
    switch (values) {
    case CASE_SATURATING:
        return (float)random_between(random, -50.0, 50.0);
    case CASE_LARGE:
        return (float)(random_between(random, -1.0, 1.0) *
                       pow(10.0, random_between(random, 0.0, 4.0)));
    case CASE_DENORMAL:
        return (float)(random_between(random, -1.0, 1.0) * 0x1p-127);
    default:
        return (float)random_between(random, -1.0, 1.0);
    }
}

static float *values(random_source *random, int64_t count, int32_t kind)
{
    float *made = array(count, sizeof(float));

    for (int64_t i = 0; i < count && made != NULL; i++)
        made[i] = input_value(random, kind);
    return made;
}

/* Puts the one NaN or infinity into a row that has a step to put it in. */
static void spoil_a_row(case_data *data, random_source *random)
{
    const test_case *c = &data->c;
    int64_t row = random_integer(random, 0, c->batch - 1), length;
    int32_t sign = random_integer(random, 0, 1) ? 1 : -1;

    length = case_length(data, row);
    if (length == 0 || data->x == NULL)
        return;
    int64_t step = random_integer(random, 0, length - 1);
    int64_t feature = random_integer(random, 0, c->input_size - 1);
    data->x[(row * c->steps + step) * c->input_size + feature] =
        c->values == CASE_NAN_IN_A_ROW ? NAN : sign * INFINITY;
    data->special_row = row;
}

static int make_x(case_data *data)
{
    const test_case *c = &data->c;
    random_source random = random_from(c->seed, 3);
    int64_t positions = c->batch * c->steps;

    if (c->ops[0].kind == CELLGATE_OP_EMBEDDING) {
        data->ids = array(positions, sizeof(int32_t));
        for (int64_t i = 0; i < positions && data->ids != NULL; i++)
            data->ids[i] =
                (int32_t)random_integer(&random, 0, c->ops[0].vocabulary - 1);
        return data->ids != NULL ? 0 : -1;
    }
    data->x = values(&random, positions * c->input_size, c->values);
    if (data->x == NULL)
        return -1;
    if (c->values == CASE_NAN_IN_A_ROW || c->values == CASE_INFINITY_IN_A_ROW)
        spoil_a_row(data, &random);
    return 0;
}

static int make_states(case_data *data)
{
    const test_case *c = &data->c;
    random_source random = random_from(c->seed, 4);
    int32_t kind = c->values == CASE_DENORMAL ? CASE_DENORMAL : CASE_ORDINARY;

    for (int32_t i = 0; i < c->op_count; i++) {
        const case_op *op = &c->ops[i];
        int64_t rows = op->directions * c->batch;
        if (op->kind != CELLGATE_OP_LSTM || c->state == CASE_STATE_NONE)
            continue;
        if (c->state != CASE_STATE_C_ONLY) {
            data->h0[i] = values(&random, rows * case_state_width(op), kind);
            if (data->h0[i] == NULL)
                return -1;
        }
        if (c->state != CASE_STATE_H_ONLY) {
            data->c0[i] = values(&random, rows * op->size, kind);
            if (data->c0[i] == NULL)
                return -1;
        }
    }
    return 0;
}

/* ---- Outputs ----------------------------------------------------------- */

static void list_tensors(case_data *data)
{
    const test_case *c = &data->c;
    int rows = c->takes_rows, sequence = !c->takes_rows;
    int64_t features = case_op_output(c, c->op_count - 1);
    case_tensor *to = data->tensors;

    for (int32_t i = 0; i < c->op_count; i++) {
        const case_op *op = &c->ops[i];
        if (op->kind != CELLGATE_OP_LSTM)
            continue;
        sequence = (op->outputs & CELLGATE_LSTM_SEQUENCE) != 0;
        rows = (op->outputs & CELLGATE_LSTM_LAST) != 0;
        if (c->no_finals)
            continue;
        if (op->outputs & CELLGATE_LSTM_H)
            *to++ = (case_tensor){ CASE_H,
                                   i,
                                   op->directions,
                                   c->batch,
                                   case_state_width(op),
                                   case_state_width(op) };
        if (op->outputs & CELLGATE_LSTM_C)
            *to++ = (case_tensor){ CASE_C,   i,        op->directions,
                                   c->batch, op->size, op->size };
    }
    if (sequence)
        *to++ = (case_tensor){ CASE_Y,   c->op_count - 1,     1,
                               c->batch, c->steps * features, features };
    if (rows)
        *to++ = (case_tensor){ CASE_Y_LAST, c->op_count - 1, 1,
                               c->batch,    features,        features };
    data->tensor_count = (int32_t)(to - data->tensors);
}

int case_data_init(case_data *data, const test_case *c)
{
    memset(data, 0, sizeof *data);
    data->c = *c;
    data->special_row = -1;
    fill_segments(data);
    list_tensors(data);
    if (make_weights(data) == 0 && make_lengths(data) == 0 &&
        make_x(data) == 0 && make_states(data) == 0)
        return 0;
    case_data_finish(data);
    return -1;
}

void case_data_finish(case_data *data)
{
    free(data->weights);
    free(data->x);
    free(data->ids);
    free(data->lengths);
    for (int32_t i = 0; i < CASE_MAX_OPS; i++) {
        free(data->h0[i]);
        free(data->c0[i]);
    }
    memset(data, 0, sizeof *data);
}

/* ---- Pieces ------------------------------------------------------------- */

static void *copy_of(const void *from, int64_t count)
{
    float *copy = array(count, sizeof(float));

    if (copy != NULL && count > 0)
        memcpy(copy, from, (size_t)count * sizeof(float));
    return copy;
}

static int slice_inputs(case_data *piece, const case_data *whole, int64_t from)
{
    const test_case *c = &piece->c;
    int64_t width = whole->ids != NULL ? 1 : c->input_size;
    const void *source =
        whole->ids != NULL ? (const void *)whole->ids : (const void *)whole->x;
    float *x = array(c->batch * c->steps * width, sizeof(float));

    if (x == NULL)
        return -1;
    for (int64_t b = 0; b < c->batch && c->steps > 0; b++)
        memcpy(x + b * c->steps * width,
               (const float *)source + (b * whole->c.steps + from) * width,
               (size_t)(c->steps * width) * sizeof(float));
    if (whole->ids != NULL)
        piece->ids = (int32_t *)(void *)x;
    else
        piece->x = x;
    if (whole->lengths == NULL)
        return 0;
    piece->lengths = array(c->batch, sizeof(int32_t));
    for (int64_t b = 0; b < c->batch && piece->lengths != NULL; b++) {
        int64_t left = whole->lengths[b] - from;
        piece->lengths[b] = (int32_t)(left < 0          ? 0
                                      : left > c->steps ? c->steps
                                                        : left);
    }
    return piece->lengths != NULL ? 0 : -1;
}

static int slice_states(case_data *piece, const case_data *whole,
                        float *const *h, float *const *c)
{
    for (int32_t i = 0; i < piece->c.op_count; i++) {
        const case_op *op = &piece->c.ops[i];
        int64_t rows = op->directions * piece->c.batch;
        const float *h0 = h != NULL && h[i] != NULL ? h[i] : whole->h0[i];
        const float *c0 = c != NULL && c[i] != NULL ? c[i] : whole->c0[i];
        if (op->kind != CELLGATE_OP_LSTM)
            continue;
        if (h0 != NULL) {
            piece->h0[i] = copy_of(h0, rows * case_state_width(op));
            if (piece->h0[i] == NULL)
                return -1;
        }
        if (c0 != NULL) {
            piece->c0[i] = copy_of(c0, rows * op->size);
            if (piece->c0[i] == NULL)
                return -1;
        }
    }
    return 0;
}

int case_data_slice(case_data *piece, const case_data *whole, int64_t from,
                    int64_t to, float *const *h, float *const *c)
{
    memset(piece, 0, sizeof *piece);
    piece->c = whole->c;
    piece->c.steps = to - from;
    piece->segment = whole->segment;
    piece->structure = whole->structure;
    piece->special_row = -1;
    list_tensors(piece);
    if (slice_inputs(piece, whole, from) == 0 &&
        slice_states(piece, whole, h, c) == 0)
        return 0;
    case_data_finish(piece);
    return -1;
}
