/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/trial_state.h"

cellgate_status cg_trial_no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to try a segment at this shape");
}

/* ---- Shapes ------------------------------------------------------------- */

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

int64_t cg_trial_elements(const cg_shape *shapes, int32_t value)
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
        x = cg_trial_elements(shapes, segment->x);
        y = cg_trial_elements(shapes, segment->sequence);
        last = cg_trial_elements(shapes, segment->last);
        if (x >= 0 && y >= 0 && last >= 0)
            bytes = (x + y + last) * (int64_t)sizeof(float);
    }
    free(shapes);
    return bytes;
}

/* ---- Inputs ------------------------------------------------------------- */

/* Park and Miller's generator (1988). */
static uint32_t next(uint32_t *seed)
{
    *seed = (uint32_t)((uint64_t)*seed * 48271 % 2147483647);
    return *seed;
}

static void fill(cg_trial *trial)
{
    const cg_node *first = &trial->pool->graph->nodes[trial->segment->nodes[0]];
    const int64_t count = cg_trial_elements(trial->shapes, trial->segment->x);
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

void *cg_trial_take(int64_t count)
{
    void *memory = NULL;

    if (count < 0 ||
        posix_memalign(&memory, 64, (size_t)count * sizeof(float) + 64) != 0)
        return NULL;
    memset(memory, 0, (size_t)count * sizeof(float) + 64);
    return memory;
}

/* A pass over the block; false: it is too small. */
static bool place(cg_trial *trial, bool ragged)
{
    const cg_segment *segment = trial->segment;
    const size_t size = sizeof(float);

    cg_arena_start(&trial->memory);
    trial->x = cg_arena_take(
        &trial->memory, cg_trial_elements(trial->shapes, segment->x), size);
    if (segment->sequence != CG_NO_VALUE)
        trial->y = cg_arena_take(
            &trial->memory, cg_trial_elements(trial->shapes, segment->sequence),
            size);
    if (segment->last != CG_NO_VALUE)
        trial->last = cg_arena_take(
            &trial->memory, cg_trial_elements(trial->shapes, segment->last),
            size);
    if (ragged)
        trial->lengths = cg_arena_take(&trial->memory, trial->batch, size);
    return cg_arena_fits(&trial->memory);
}

static cellgate_status allocate(cg_trial *trial, bool ragged,
                                cellgate_error *error)
{
    const cg_engine *engine = trial->segment->engine;

    if (engine->staged && engine->ops->host_allocate != NULL &&
        engine->ops->host_release != NULL)
        trial->memory.pinned = engine;
    if (!place(trial, ragged) &&
        (cg_arena_reserve(&trial->memory, error) != CELLGATE_OK ||
         !place(trial, ragged)))
        return cg_trial_no_memory(error);
    memset(trial->memory.base, 0, trial->memory.used);
    fill(trial);
    if (ragged)
        fill_lengths(trial);
    return CELLGATE_OK;
}

/* ---- The run ------------------------------------------------------------ */

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
    cellgate_status status = cg_engine_usable(engine, error);

    if (status == CELLGATE_OK)
        status = cg_segment_fits(trial->segment, &shape, error);
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
        return cg_trial_no_memory(error);
    made->pool = pool;
    made->segment = segment;
    made->batch = batch;
    made->steps = segment->rows ? 1 : steps;
    made->watchdog = watchdog;
    made->shapes = calloc(pool->graph->value_count + 1, sizeof *made->shapes);
    status = made->shapes == NULL ? cg_trial_no_memory(error)
                                  : infer(pool->graph, segment, batch, steps,
                                          made->shapes, error);
    if (status == CELLGATE_OK)
        status = cg_engine_hold(segment->engine, error);
    made->holds = status == CELLGATE_OK;
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

bool cg_trial_is_ragged(const cg_trial *trial)
{
    return trial->lengths != NULL;
}

void cg_trial_destroy(cg_trial *trial)
{
    if (trial == NULL)
        return;
    if (trial->abandoned ||
        (trial->plan != NULL && cg_engine_hung(trial->segment->engine))) {
        cg_segment_pool_leave(trial->pool, &trial->remnant);
        return;
    }
    cg_worker_destroy(trial->worker);
    if (trial->plan != NULL)
        trial->segment->engine->ops->plan_destroy(trial->plan);
    cg_arena_finish(&trial->memory);
    if (trial->holds)
        cg_engine_let_go(trial->segment->engine);
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
    cg_engine_failed(trial->segment->engine, CELLGATE_TIMEOUT, reason);
    return cellgate_fail(error, CELLGATE_TIMEOUT, "device '%s': %s",
                         cg_device_name(device), reason);
}

cellgate_status cg_trial_run(void *argument, cellgate_error *error)
{
    cg_trial *trial = argument;
    cg_device *device = trial->segment->engine->device;
    const uint32_t threads = trial->segment->variant.threads;
    bool ended = true;
    cellgate_status status = cg_engine_usable(trial->segment->engine, error);

    if (status != CELLGATE_OK)
        return status;
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
    cg_engine_failed(trial->segment->engine, trial->status, trial->error.text);
    return cellgate_fail(error, trial->status, "%s", trial->error.text);
}
