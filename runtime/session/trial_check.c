/* SPDX-License-Identifier: Apache-2.0 */
/* A trial's results against those of the host ops. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/host/host.h"
#include "runtime/session/numeric.h"
#include "runtime/session/trial_state.h"

/* Buffers by value for the host ops: x and, for LSTMs with a mask, that one as
   the lengths say; results of the nodes are allocated. */
typedef struct reference {
    void **buffers;
    void *scratch;
    uint8_t *mask;
} reference;

static void reference_finish(const cg_trial *trial, reference *of)
{
    const cg_graph *graph = trial->pool->graph;

    for (size_t at = 0; of->buffers != NULL && at < trial->segment->node_count;
         at++) {
        const cg_node *node = &graph->model->nodes[trial->segment->nodes[at]];

        for (size_t k = 0; k < node->output_count; k++)
            if (node->outputs[k] != CG_NO_VALUE)
                free(of->buffers[node->outputs[k]]);
    }
    free(of->buffers);
    free(of->mask);
    free(of->scratch);
}

static bool set_mask(const cg_trial *trial, const cg_node *node, reference *of)
{
    const int32_t mask =
        node->kind == CG_LSTM ? node->inputs[CG_LSTM_INPUT_MASK] : CG_NO_VALUE;

    if (mask == CG_NO_VALUE || trial->lengths == NULL)
        return true;
    if (of->mask == NULL) {
        of->mask = calloc((size_t)(trial->batch * trial->steps) + 1, 1);
        if (of->mask == NULL)
            return false;
        for (int64_t row = 0; row < trial->batch; row++)
            memset(of->mask + row * trial->steps, 1,
                   (size_t)trial->lengths[row]);
    }
    of->buffers[mask] = of->mask;
    return true;
}

static cellgate_status run_node(const cg_trial *trial, const cg_node *node,
                                reference *of, cellgate_error *error)
{
    const cellgate_model *model = trial->pool->graph->model;
    const size_t scratch = cg_host_scratch(node, trial->shapes);

    free(of->scratch);
    of->scratch = malloc(scratch + 1);
    if (of->scratch == NULL || !set_mask(trial, node, of))
        return cg_trial_no_memory(error);
    for (size_t k = 0; k < node->output_count; k++)
        if (node->outputs[k] != CG_NO_VALUE) {
            of->buffers[node->outputs[k]] = cg_trial_take(
                cg_trial_elements(trial->shapes, node->outputs[k]));
            if (of->buffers[node->outputs[k]] == NULL)
                return cg_trial_no_memory(error);
        }
    return cg_host_run(model, node, trial->shapes, of->buffers, of->scratch,
                       error);
}

static cellgate_status reference_make(const cg_trial *trial, reference *of,
                                      cellgate_error *error)
{
    const cg_graph *graph = trial->pool->graph;
    cellgate_status status = CELLGATE_OK;

    memset(of, 0, sizeof *of);
    of->buffers = calloc(graph->value_count + 1, sizeof *of->buffers);
    if (of->buffers == NULL)
        return cg_trial_no_memory(error);
    of->buffers[trial->segment->x] = trial->x;
    for (size_t at = 0;
         status == CELLGATE_OK && at < trial->segment->node_count; at++)
        status = run_node(
            trial, &graph->model->nodes[trial->segment->nodes[at]], of, error);
    return status;
}

/* The largest difference over the largest magnitude; where there are lengths,
   of valid steps: what a masked step holds is not the device's to say. */
static double difference(const cg_trial *trial, int32_t value, const float *got,
                         const float *wanted, bool sequence)
{
    const cg_shape *shape = &trial->shapes[value];
    const int64_t row =
        cg_trial_elements(trial->shapes, value) / shape->extent[0];
    const int64_t step = sequence && trial->steps > 0 ? row / trial->steps : 0;
    double largest = 0, magnitude = 0;

    for (int64_t b = 0; b < shape->extent[0]; b++) {
        const int64_t count =
            sequence && trial->lengths != NULL ? trial->lengths[b] * step : row;

        for (int64_t at = b * row; at < b * row + count; at++) {
            const double off = fabs((double)got[at] - (double)wanted[at]);

            largest = isnan(off) ? HUGE_VAL : fmax(largest, off);
            magnitude = fmax(magnitude, fabs((double)wanted[at]));
        }
    }
    return largest > 0 ? largest / magnitude : 0;
}

cellgate_status cg_trial_check(cg_trial *trial, bool *right, double *worst,
                               cellgate_error *error)
{
    const cg_segment *segment = trial->segment;
    reference wanted;
    double most = 0;
    cellgate_status status = cg_trial_run(trial, error);

    if (status != CELLGATE_OK)
        return status;
    status = reference_make(trial, &wanted, error);
    if (status == CELLGATE_OK && segment->sequence != CG_NO_VALUE)
        most = difference(trial, segment->sequence, trial->y,
                          wanted.buffers[segment->sequence], !segment->rows);
    if (status == CELLGATE_OK && segment->last != CG_NO_VALUE)
        most = fmax(most, difference(trial, segment->last, trial->last,
                                     wanted.buffers[segment->last], false));
    reference_finish(trial, &wanted);
    if (status != CELLGATE_OK)
        return status;
    *worst = most;
    *right = most <= cg_numeric_tolerance(segment->variant.numeric);
    return CELLGATE_OK;
}
