/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/host/host.h"
#include "runtime/session/trial.h"
#include "runtime/session/worker.h"

struct cg_trial {
    cg_segment_pool *pool;
    cg_segment *segment;
    int64_t batch, steps;
    double watchdog;
    cg_shape *shapes; /* by value */
    void *x;
    float *y;         /* of sequence or last, whichever the segment gives */
    float *last;      /* of an LSTM that gives both */
    int32_t *lengths; /* NULL: all full */
    cellgate_plan *plan;
    cg_worker *worker; /* NULL: runs are made on the caller */
    bool abandoned;    /* a run hangs: it, and all that it uses, stays */
    cellgate_segment_run run;
    cellgate_status status;
    cellgate_error error;
};

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to try a segment at this shape");
}

/* ---- Shapes
 * ------------------------------------------------------------------ */

static void set_input_shape(const cg_graph *graph, const cg_segment *segment,
                            int64_t batch, int64_t steps, cg_shape *shapes)
{
    const cg_value *x = &graph->model->values[segment->x];
    cg_shape *shape = &shapes[segment->x];

    shape->rank = x->rank;
    memcpy(shape->extent, x->shape, sizeof shape->extent);
    shape->extent[0] = batch;
    if (!segment->rows)
        shape->extent[1] = steps;
}

static void set_mask_shape(const cg_node *node, int64_t batch, int64_t steps,
                           cg_shape *shapes)
{
    if (node->kind == CG_LSTM &&
        node->inputs[CG_LSTM_INPUT_MASK] != CG_NO_VALUE)
        shapes[node->inputs[CG_LSTM_INPUT_MASK]] =
            (cg_shape){ .rank = 2, .extent = { batch, steps } };
}

static cellgate_status infer(const cg_graph *graph, const cg_segment *segment,
                             int64_t batch, int64_t steps, cg_shape *shapes,
                             cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    set_input_shape(graph, segment, batch, steps, shapes);
    for (size_t at = 0; status == CELLGATE_OK && at < segment->node_count;
         at++) {
        const cg_node *node = &graph->model->nodes[segment->nodes[at]];

        set_mask_shape(node, batch, steps, shapes);
        status = cg_node_infer(graph->model, node, shapes, error);
    }
    return status;
}

static int64_t elements(const cg_shape *shapes, int32_t value)
{
    return value == CG_NO_VALUE ? 0 : cg_shape_elements(&shapes[value]);
}

int64_t cg_trial_bytes(const cg_segment_pool *pool, const cg_segment *segment,
                       int64_t batch, int64_t steps)
{
    cg_shape *shapes = calloc(pool->graph->value_count + 1, sizeof *shapes);
    int64_t x, y, last, bytes = -1;

    if (shapes != NULL && infer(pool->graph, segment, batch, steps, shapes,
                                NULL) == CELLGATE_OK) {
        x = elements(shapes, segment->x);
        y = elements(shapes, segment->sequence);
        last = elements(shapes, segment->last);
        if (x >= 0 && y >= 0 && last >= 0)
            bytes = (x + y + last) * (int64_t)sizeof(float);
    }
    free(shapes);
    return bytes;
}

/* ---- Inputs
 * ------------------------------------------------------------------- */

/* Park and Miller's generator (1988). */
static uint32_t next(uint32_t *seed)
{
    *seed = (uint32_t)((uint64_t)*seed * 48271 % 2147483647);
    return *seed;
}

static void fill(cg_trial *trial)
{
    const cg_node *first = &trial->pool->graph->nodes[trial->segment->nodes[0]];
    const int64_t count = elements(trial->shapes, trial->segment->x);
    uint32_t seed = 20260801;

    for (int64_t at = 0; at < count; at++)
        if (first->kind == CG_EMBEDDING)
            ((int32_t *)trial->x)[at] =
                (int32_t)(next(&seed) %
                          (uint64_t)first->as.embedding.vocabulary);
        else
            ((float *)trial->x)[at] = (float)next(&seed) / 1073741824.0f - 1.0f;
}

/* Full, none, and what lies between. */
static void fill_lengths(cg_trial *trial)
{
    for (int64_t row = 0; row < trial->batch; row++)
        trial->lengths[row] = (int32_t)(row % 3 == 0   ? trial->steps
                                        : row % 3 == 1 ? 0
                                                       : trial->steps / 2);
}

static void *take(int64_t count)
{
    void *memory = NULL;

    if (count < 0 ||
        posix_memalign(&memory, 64, (size_t)count * sizeof(float) + 64) != 0)
        return NULL;
    memset(memory, 0, (size_t)count * sizeof(float) + 64);
    return memory;
}

static cellgate_status allocate(cg_trial *trial, bool ragged,
                                cellgate_error *error)
{
    const cg_segment *segment = trial->segment;

    trial->x = take(elements(trial->shapes, segment->x));
    if (segment->sequence != CG_NO_VALUE)
        trial->y = take(elements(trial->shapes, segment->sequence));
    if (segment->last != CG_NO_VALUE)
        trial->last = take(elements(trial->shapes, segment->last));
    if (ragged)
        trial->lengths = take(trial->batch);
    if (trial->x == NULL ||
        (segment->sequence != CG_NO_VALUE && trial->y == NULL) ||
        (segment->last != CG_NO_VALUE && trial->last == NULL) ||
        (ragged && trial->lengths == NULL))
        return no_memory(error);
    fill(trial);
    if (ragged)
        fill_lengths(trial);
    return CELLGATE_OK;
}

/* ---- The run
 * ------------------------------------------------------------------ */

static void set_sequence(const cg_trial *trial, cellgate_sequence *sequence,
                         int32_t value, void *data, int64_t steps)
{
    const cg_value *of = &trial->pool->graph->model->values[value];
    const cg_shape *shape = &trial->shapes[value];
    const int64_t features =
        of->dtype == CELLGATE_I32 ? 1 : shape->extent[shape->rank - 1];

    sequence->data = data;
    sequence->dtype = of->dtype;
    sequence->time_stride = features;
    sequence->batch_stride = steps * features;
}

static void set_run(cg_trial *trial)
{
    const cg_segment *segment = trial->segment;
    cellgate_segment_run *run = &trial->run;

    run->struct_size = sizeof *run;
    run->batch = trial->batch;
    run->steps = trial->steps;
    run->lengths = trial->lengths;
    set_sequence(trial, &run->x, segment->x, trial->x, run->steps);
    if (segment->sequence != CG_NO_VALUE)
        set_sequence(trial, &run->y, segment->sequence, trial->y, run->steps);
    if (segment->last != CG_NO_VALUE)
        set_sequence(trial, &run->y_last, segment->last, trial->last, 1);
}

/* The host ops take masks and a device takes lengths: where the model has no
   mask for an LSTM, or makes something else of masked steps, there is nothing
   to compare with. */
static bool takes_lengths(const cg_trial *trial)
{
    const cg_segment *segment = trial->segment;
    const cg_graph *graph = trial->pool->graph;

    for (size_t at = 0; at < segment->node_count; at++) {
        const cg_node *node = &graph->nodes[segment->nodes[at]];

        if (node->kind == CG_LSTM &&
            node->inputs[CG_LSTM_INPUT_MASK] == CG_NO_VALUE)
            return false;
    }
    return !segment->rows && !segment->zero_last;
}

static cellgate_status make_plan(cg_trial *trial, cellgate_error *error)
{
    const cg_engine *engine = trial->segment->engine;
    const cellgate_shape shape = { sizeof shape, trial->batch, trial->steps };
    cellgate_status status = cg_segment_fits(trial->segment, &shape, error);

    if (status == CELLGATE_OK)
        status = cg_segment_pool_prepare(trial->pool, trial->segment, error);
    if (status == CELLGATE_OK)
        status = engine->ops->plan_create(
            engine->handle, trial->segment->weights, trial->segment->variant.id,
            &shape, &trial->plan, error);
    if (status == CELLGATE_OK && engine->staged)
        status = cg_worker_create(&trial->worker, error);
    return status;
}

cellgate_status cg_trial_create(cg_segment_pool *pool, cg_segment *segment,
                                int64_t batch, int64_t steps, bool ragged,
                                double watchdog, cg_trial **trial,
                                cellgate_error *error)
{
    cg_trial *made = calloc(1, sizeof *made);
    cellgate_status status;

    if (made == NULL)
        return no_memory(error);
    made->pool = pool;
    made->segment = segment;
    made->batch = batch;
    made->steps = segment->rows ? 1 : steps;
    made->watchdog = watchdog;
    made->shapes = calloc(pool->graph->value_count + 1, sizeof *made->shapes);
    status = made->shapes == NULL ? no_memory(error)
                                  : infer(pool->graph, segment, batch, steps,
                                          made->shapes, error);
    if (status == CELLGATE_OK)
        status = allocate(made, ragged && takes_lengths(made), error);
    if (status == CELLGATE_OK)
        status = make_plan(made, error);
    if (status != CELLGATE_OK) {
        cg_trial_destroy(made);
        return status;
    }
    set_run(made);
    *trial = made;
    return CELLGATE_OK;
}

void cg_trial_destroy(cg_trial *trial)
{
    if (trial == NULL || trial->abandoned)
        return;
    cg_worker_destroy(trial->worker);
    if (trial->plan != NULL)
        trial->segment->engine->ops->plan_destroy(trial->plan);
    free(trial->x);
    free(trial->y);
    free(trial->last);
    free(trial->lengths);
    free(trial->shapes);
    free(trial);
}

static void fly(void *argument)
{
    cg_trial *trial = argument;

    memset(&trial->error, 0, sizeof trial->error);
    trial->error.struct_size = sizeof trial->error;
    trial->status = trial->segment->engine->ops->run(trial->plan, &trial->run,
                                                     &trial->error);
}

static cellgate_status hung(cg_trial *trial, cellgate_error *error)
{
    cg_device *device = trial->segment->engine->device;
    char reason[160];

    trial->abandoned = true;
    snprintf(reason, sizeof reason,
             "a run did not end within %g s ([scheduler] watchdog)",
             trial->watchdog);
    cg_device_quarantine(device, CELLGATE_TIMEOUT, reason);
    return cellgate_fail(error, CELLGATE_TIMEOUT, "device '%s': %s",
                         cg_device_name(device), reason);
}

cellgate_status cg_trial_run(void *argument, cellgate_error *error)
{
    cg_trial *trial = argument;
    cg_device *device = trial->segment->engine->device;
    const uint32_t threads = trial->segment->variant.threads;
    bool ended = true;

    cg_device_threads_acquire(device, threads);
    if (trial->worker != NULL)
        ended = cg_worker_run(trial->worker, fly, trial, trial->watchdog);
    else
        fly(trial);
    cg_device_threads_release(device, threads);
    if (!ended)
        return hung(trial, error);
    if (trial->status == CELLGATE_OK)
        return CELLGATE_OK;
    trial->error.text[sizeof trial->error.text - 1] = '\0';
    if (trial->status == CELLGATE_DEVICE_LOST)
        cg_device_quarantine(device, CELLGATE_DEVICE_LOST, trial->error.text);
    return cellgate_fail(error, trial->status, "%s", trial->error.text);
}

/* ---- Against the host
 * ----------------------------------------------------------- */

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
        return no_memory(error);
    for (size_t k = 0; k < node->output_count; k++)
        if (node->outputs[k] != CG_NO_VALUE) {
            of->buffers[node->outputs[k]] =
                take(elements(trial->shapes, node->outputs[k]));
            if (of->buffers[node->outputs[k]] == NULL)
                return no_memory(error);
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
        return no_memory(error);
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
    const int64_t row = elements(trial->shapes, value) / shape->extent[0];
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

/* As for a model's self-test (cellgate_selftest_result). */
static double tolerance_of(int32_t numeric)
{
    switch (numeric) {
    case CELLGATE_NUMERIC_F32:
        return 1e-5;
    case CELLGATE_NUMERIC_TF32:
    case CELLGATE_NUMERIC_F16:
        return 1e-2;
    case CELLGATE_NUMERIC_BF16:
        return 5e-2;
    default:
        return 0.1;
    }
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
    *right = most <= tolerance_of(segment->variant.numeric);
    return CELLGATE_OK;
}
