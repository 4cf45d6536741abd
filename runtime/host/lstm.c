/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM in double precision, a row at a time, with masks of any pattern. The
 * formulas are those of cellgate_lstm in plugin.h.
 */
#include "config.h"

#include "runtime/host/scan.h"

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

static void sum_gates(const lstm_row *row, const float *x)
{
    const cellgate_lstm_weights *weights = &row->weights;
    int64_t columns = 4 * row->shape->hidden_size;

    for (int64_t k = 0; k < columns; k++)
        row->gates[k] = weights->bias != NULL ? weights->bias[k] : 0;
    for (int64_t k = 0; k < row->shape->input_size; k++)
        cg_host_add_product(row->gates, weights->kernel + k * columns, columns,
                            x[k]);
    for (int64_t k = 0; k < row->width; k++)
        cg_host_add_product(row->gates, weights->recurrent_kernel + k * columns,
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

static void step_row(const void *of, const float *x)
{
    const lstm_row *row = of;
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
        cg_host_add_product(row->state,
                            row->weights.projection + k * row->width,
                            row->width, row->hidden[k]);
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

cellgate_status cg_host_lstm(const cg_host_call *call, cellgate_error *error)
{
    const cg_lstm *lstm = &call->node->as.lstm;

    (void)error;
    for (int32_t direction = 0; direction < lstm->shape.directions;
         direction++) {
        lstm_row row;
        cg_host_scan scan = {
            .step = step_row,
            .row = &row,
            .input_size = lstm->shape.input_size,
            .directions = lstm->shape.directions,
            .direction = direction,
            .reverse = direction == 1 || lstm->shape.reverse,
            .zero_masked = lstm->zero_masked,
        };

        row_init(&row, call, direction);
        scan.states[0] = row.state;
        scan.states[1] = row.cell;
        cg_host_scan_rows(call, &scan);
    }
    return CELLGATE_OK;
}
