/* SPDX-License-Identifier: Apache-2.0 */
/* GRU and SimpleRNN in double precision; the formulas are in model.h. */
#include "config.h"

#include "runtime/host/scan.h"

/* One row at a step. */
typedef struct recurrent_row {
    const cg_recurrent *shape;
    const float *kernel, *recurrent_kernel;
    const float *bias;           /* of the input, or NULL */
    const float *recurrent_bias; /* of the state, or NULL */
    double *input;               /* sums over x: [3H], of SimpleRNN [H] */
    double *inner;               /* sums over the state: [3H] */
    double *state;               /* [H] */
} recurrent_row;

/* Columns of the kernels. */
static int64_t columns_of(const cg_node *node)
{
    return (node->kind == CG_GRU ? 3 : 1) * node->as.recurrent.hidden_size;
}

size_t cg_host_recurrent_scratch(const cg_node *node)
{
    return (size_t)(2 * columns_of(node) + node->as.recurrent.hidden_size) *
           sizeof(double);
}

/* input = bias + x * kernel */
static void sum_input(const recurrent_row *row, const float *x, int64_t columns)
{
    for (int64_t k = 0; k < columns; k++)
        row->input[k] = row->bias != NULL ? row->bias[k] : 0;
    for (int64_t k = 0; k < row->shape->input_size; k++)
        cg_host_add_product(row->input, row->kernel + k * columns, columns,
                            x[k]);
}

/* inner = bias + (scale * state) * kernel, for columns [begin, end); a `scale`
   of NULL is 1. */
static void sum_state(const recurrent_row *row, int64_t columns, int64_t begin,
                      int64_t end, const double *scale)
{
    const float *bias = row->recurrent_bias;

    for (int64_t k = begin; k < end; k++)
        row->inner[k] = bias != NULL ? bias[k] : 0;
    for (int64_t k = 0; k < row->shape->hidden_size; k++)
        cg_host_add_product(
            row->inner + begin, row->recurrent_kernel + k * columns + begin,
            end - begin,
            scale != NULL ? scale[k] * row->state[k] : row->state[k]);
}

static void step_gru(const void *of, const float *x)
{
    const recurrent_row *row = of;
    const cg_recurrent *shape = row->shape;
    const int64_t hidden = shape->hidden_size, columns = 3 * hidden;
    double *z = row->input, *r = z + hidden, *n = r + hidden;

    sum_input(row, x, columns);
    sum_state(row, columns, 0, shape->reset_after ? columns : 2 * hidden, NULL);
    for (int64_t k = 0; k < 2 * hidden; k++)
        z[k] = cg_host_activation(shape->gate, z[k] + row->inner[k]);
    if (!shape->reset_after)
        sum_state(row, columns, 2 * hidden, columns, r);
    for (int64_t k = 0; k < hidden; k++) {
        const double inner = row->inner[2 * hidden + k];

        n[k] = cg_host_activation(
            shape->activation,
            n[k] + (shape->reset_after ? r[k] * inner : inner));
        row->state[k] = z[k] * row->state[k] + (1 - z[k]) * n[k];
    }
}

static void step_simple(const void *of, const float *x)
{
    const recurrent_row *row = of;
    const int64_t hidden = row->shape->hidden_size;

    sum_input(row, x, hidden);
    sum_state(row, hidden, 0, hidden, NULL);
    for (int64_t k = 0; k < hidden; k++)
        row->state[k] = cg_host_activation(row->shape->activation,
                                           row->input[k] + row->inner[k]);
}

static void row_init(recurrent_row *row, const cg_host_call *call)
{
    const cg_recurrent *shape = &call->node->as.recurrent;
    const int64_t columns = columns_of(call->node);

    *row = (recurrent_row){
        .shape = shape,
        .kernel = cg_host_weight(call, 0),
        .recurrent_kernel = cg_host_weight(call, 1),
        .bias = shape->has_bias ? cg_host_weight(call, 2) : NULL,
        .input = call->scratch,
    };
    if (row->bias != NULL && call->node->kind == CG_GRU && shape->reset_after)
        row->recurrent_bias = row->bias + columns;
    row->inner = row->input + columns;
    row->state = row->inner + columns;
}

cellgate_status cg_host_recurrent(const cg_host_call *call,
                                  cellgate_error *error)
{
    const cg_recurrent *shape = &call->node->as.recurrent;
    recurrent_row row;
    cg_host_scan scan = {
        .step = call->node->kind == CG_GRU ? step_gru : step_simple,
        .row = &row,
        .input_size = shape->input_size,
        .directions = 1,
        .reverse = shape->reverse,
        .zero_masked = shape->zero_masked,
    };

    (void)error;
    row_init(&row, call);
    scan.states[0] = row.state;
    cg_host_scan_rows(call, &scan);
    return CELLGATE_OK;
}
