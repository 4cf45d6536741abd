/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM in double precision, a row at a time, with masks of any pattern. The
 * formulas are those of cellgate_lstm in plugin.h.
 */
#include "config.h"

#include "runtime/host/ops.h"

/* One direction of one row; the scratch is shared by all of them. */
typedef struct lstm_row {
    const cellgate_lstm *shape;
    cellgate_lstm_weights weights;
    const cellgate_activation *activations; /* gate, cell, hidden */
    int64_t width;                          /* of h: R */
    double *gates;                          /* [4H]: i, f, c, o */
    double *cell;                           /* [H] */
    double *hidden;                         /* [H], before projection */
    double *state;                          /* [R] */
} lstm_row;

static int64_t state_width(const cellgate_lstm *shape)
{
    return shape->projection_size > 0 ? shape->projection_size
                                      : shape->hidden_size;
}

size_t cg_host_lstm_scratch(const cg_node *node)
{
    const cellgate_lstm *shape = &node->as.lstm.shape;

    return (size_t)(6 * shape->hidden_size + state_width(shape)) *
           sizeof(double);
}

static double clipped(const cellgate_lstm *shape, double x)
{
    double clip = shape->clip;

    if (clip == 0)
        return x;
    return x < -clip ? -clip : x > clip ? clip : x;
}

/* gates += x * kernel; kernel is [size][gates] */
static void add_product(double *gates, const float *kernel, int64_t columns,
                        double x)
{
    for (int64_t k = 0; k < columns; k++)
        gates[k] += x * kernel[k];
}

static void sum_gates(const lstm_row *row, const float *x)
{
    const cellgate_lstm_weights *weights = &row->weights;
    int64_t columns = 4 * row->shape->hidden_size;

    for (int64_t k = 0; k < columns; k++)
        row->gates[k] = weights->bias != NULL ? weights->bias[k] : 0;
    for (int64_t k = 0; k < row->shape->input_size; k++)
        add_product(row->gates, weights->kernel + k * columns, columns, x[k]);
    for (int64_t k = 0; k < row->width; k++)
        add_product(row->gates, weights->recurrent_kernel + k * columns,
                    columns, row->state[k]);
}

/* Cell number k: updates its c and leaves its output before projection. */
static void step_cell(const lstm_row *row, int64_t k)
{
    const cellgate_lstm *shape = row->shape;
    const cellgate_activation *activations = row->activations;
    const float *peephole = row->weights.peephole;
    int64_t hidden = shape->hidden_size;
    double i = row->gates[k], f = row->gates[hidden + k];
    double g = row->gates[2 * hidden + k], o = row->gates[3 * hidden + k];
    double c = row->cell[k];

    if (peephole != NULL) {
        i += peephole[k] * c;
        f += peephole[hidden + k] * c;
    }
    i = cg_host_activation(activations[0], clipped(shape, i));
    f = shape->coupled ? 1 - i
                       : cg_host_activation(activations[0], clipped(shape, f));
    g = cg_host_activation(activations[1], clipped(shape, g));
    c = f * c + i * g;
    if (peephole != NULL)
        o += peephole[2 * hidden + k] * c;
    o = cg_host_activation(activations[0], clipped(shape, o));
    row->cell[k] = c;
    row->hidden[k] = o * cg_host_activation(activations[2], c);
}

static void step_row(const lstm_row *row, const float *x)
{
    const cellgate_lstm *shape = row->shape;

    sum_gates(row, x);
    for (int64_t k = 0; k < shape->hidden_size; k++)
        step_cell(row, k);
    if (row->weights.projection == NULL) {
        memcpy(row->state, row->hidden, (size_t)row->width * sizeof(double));
        return;
    }
    memset(row->state, 0, (size_t)row->width * sizeof(double));
    for (int64_t k = 0; k < shape->hidden_size; k++)
        add_product(row->state, row->weights.projection + k * row->width,
                    row->width, row->hidden[k]);
}

static void load_state(double *state, const float *initial, int64_t size)
{
    for (int64_t k = 0; k < size; k++)
        state[k] = initial != NULL ? initial[k] : 0;
}

static void store_state(float *result, const double *state, int64_t size)
{
    for (int64_t k = 0; k < size; k++)
        result[k] = (float)state[k];
}

/* A step's output: the state, the previous one, or zeros. */
static void store_output(float *y, const lstm_row *row, bool valid, bool repeat)
{
    if (valid || repeat)
        store_state(y, row->state, row->width);
    else
        memset(y, 0, (size_t)row->width * sizeof *y);
}

/* Where one row's numbers lie; strides in elements. */
typedef struct lstm_place {
    const float *x;      /* [steps][I] */
    const uint8_t *mask; /* [steps] or NULL */
    int64_t steps;
    bool reverse;
    float *sequence; /* of this direction's half, or NULL */
    int64_t sequence_stride;
    float *last; /* likewise */
} lstm_place;

static void run_row(const lstm_row *row, const lstm_place *place,
                    bool zero_masked)
{
    int64_t size = row->shape->input_size;
    bool seen = false, valid = false;

    for (int64_t done = 0; done < place->steps; done++) {
        int64_t step = place->reverse ? place->steps - 1 - done : done;

        valid = place->mask == NULL || place->mask[step] != 0;
        if (valid)
            step_row(row, place->x + step * size);
        seen = seen || valid;
        if (place->sequence != NULL)
            store_output(place->sequence + step * place->sequence_stride, row,
                         valid, seen && !zero_masked);
    }
    if (place->last != NULL)
        store_output(place->last, row, valid, seen && !zero_masked);
}

static void row_init(lstm_row *row, const cg_host_call *call, int32_t direction)
{
    const cellgate_lstm *shape = &call->node->as.lstm.shape;
    size_t first = (size_t)direction * CG_LSTM_WEIGHTS;
    int64_t hidden = shape->hidden_size;

    row->shape = shape;
    row->weights.kernel = cg_host_weight(call, first);
    row->weights.recurrent_kernel = cg_host_weight(call, first + 1);
    row->weights.bias =
        shape->has_bias ? cg_host_weight(call, first + 2) : NULL;
    row->weights.peephole =
        shape->has_peepholes ? cg_host_weight(call, first + 3) : NULL;
    row->weights.projection =
        shape->projection_size > 0 ? cg_host_weight(call, first + 4) : NULL;
    row->activations = shape->activations[direction];
    row->width = state_width(shape);
    row->gates = call->scratch;
    row->cell = row->gates + 4 * hidden;
    row->hidden = row->cell + hidden;
    row->state = row->hidden + hidden;
}

static void place_init(lstm_place *place, const cg_host_call *call,
                       int32_t direction, int64_t b)
{
    const cellgate_lstm *shape = &call->node->as.lstm.shape;
    const float *x = cg_host_input(call, 0);
    const uint8_t *mask = cg_host_input(call, CG_LSTM_INPUT_MASK);
    float *sequence = cg_host_output(call, CG_LSTM_OUTPUT_SEQUENCE);
    float *last = cg_host_output(call, CG_LSTM_OUTPUT_LAST);
    int64_t width = state_width(shape), both = width * shape->directions;

    place->steps = cg_host_input_shape(call, 0)->extent[1];
    place->x = x + b * place->steps * shape->input_size;
    place->mask = mask != NULL ? mask + b * place->steps : NULL;
    place->reverse = direction == 1 || shape->reverse;
    place->sequence_stride = both;
    place->sequence = sequence == NULL ? NULL
                                       : sequence + b * place->steps * both +
                                             direction * width;
    place->last = last == NULL ? NULL : last + b * both + direction * width;
}

static const float *offset_input(const float *base, int64_t offset)
{
    return base != NULL ? base + offset : NULL;
}

cellgate_status cg_host_lstm(const cg_host_call *call, cellgate_error *error)
{
    const cg_lstm *lstm = &call->node->as.lstm;
    int64_t hidden = lstm->shape.hidden_size;
    int64_t batch = cg_host_input_shape(call, 0)->extent[0];

    (void)error;
    for (int32_t direction = 0; direction < lstm->shape.directions;
         direction++) {
        size_t slot = CG_LSTM_INPUT_STATE + 2 * (size_t)direction;
        const float *h0 = cg_host_input(call, slot);
        const float *c0 = cg_host_input(call, slot + 1);
        float *h = cg_host_output(call, slot);
        float *c = cg_host_output(call, slot + 1);
        lstm_row row;

        row_init(&row, call, direction);
        for (int64_t b = 0; b < batch; b++) {
            lstm_place place;

            place_init(&place, call, direction, b);
            load_state(row.state, offset_input(h0, b * row.width), row.width);
            load_state(row.cell, offset_input(c0, b * hidden), hidden);
            run_row(&row, &place, lstm->zero_masked);
            if (h != NULL)
                store_state(h + b * row.width, row.state, row.width);
            if (c != NULL)
                store_state(c + b * hidden, row.cell, hidden);
        }
    }
    return CELLGATE_OK;
}
