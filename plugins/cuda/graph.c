/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c: steps of a layer as a CUDA graph, which costs less to launch than
 * they do. A graph has GRAPH_STEPS steps, and counts in device memory where it
 * is, so that it serves any number of them.
 *
 * It is made with the plan, for runs of the plan's whole shape, and has its
 * memory from then on: a run allocates nothing. When a run is like the one
 * before it and the graph is for others, the graph gets that one's parameters;
 * what comes once is launched step by step. So is everything where a graph
 * cannot be made, which a warning says.
 */
#include "config.h"

#include "plugins/cuda/plan.h"

#define GRAPH_STEPS 8

static bool is_alike(const struct cuk_lstm *a, const struct cuk_lstm *b)
{
    return a->batch == b->batch && a->steps == b->steps &&
           a->initial == b->initial && a->y == b->y && a->last == b->last &&
           a->y_at.batch == b->y_at.batch && a->y_at.time == b->y_at.time &&
           a->products_at.batch == b->products_at.batch &&
           a->products_at.time == b->products_at.time;
}

static void destroy(struct cellgate_plan *plan, struct cud_graph *graph)
{
    if (graph->made && cud_device_enter_to_free(plan->device))
        (void)cudaGraphExecDestroy(graph->made);
    graph->made = NULL;
}

void cud_graph_destroy(struct cellgate_plan *plan, struct cud_graph *graph)
{
    destroy(plan, graph);
    cud_buffer_destroy(plan->device, &graph->counter);
}

cellgate_status cud_graph_create(struct cellgate_plan *plan,
                                 struct cud_graph *graph, cellgate_error *error)
{
    return cud_buffer_create(plan->device, 1, sizeof(int32_t), &graph->counter,
                             error);
}

/* Some steps and the count of them: of GRAPH_STEPS, what one launch of the
   graph does. */
static cudaError_t record(struct cellgate_plan *plan,
                          const struct cud_graph *graph,
                          const struct cuk_lstm *a, int32_t steps)
{
    struct cuk_lstm some = *a;
    int code;

    some.first = 0;
    some.end = steps;
    some.counter = graph->counter.memory;
    code = cuk_step(&some, plan->stream);
    if (code == 0)
        code = cuk_count(graph->counter.memory, steps, 0, plan->stream);
    return (cudaError_t)code;
}

/* Every kernel once before it is captured, since a first launch may load it,
   which is no part of a graph. The counter being beyond the last step, they do
   nothing. */
static cudaError_t load(struct cellgate_plan *plan,
                        const struct cud_graph *graph, const struct cuk_lstm *a)
{
    const cudaError_t code = (cudaError_t)cuk_count(graph->counter.memory,
                                                    a->steps, 1, plan->stream);

    return code == cudaSuccess ? record(plan, graph, a, 1) : code;
}

/* Also after a failure the stream must leave the capture. */
static cudaError_t capture(struct cellgate_plan *plan,
                           const struct cud_graph *graph,
                           const struct cuk_lstm *a, cudaGraph_t *to)
{
    cudaError_t code =
        cudaStreamBeginCapture(plan->stream, cudaStreamCaptureModeThreadLocal);
    cudaError_t ended;

    if (code != cudaSuccess)
        return code;
    code = record(plan, graph, a, GRAPH_STEPS);
    ended = cudaStreamEndCapture(plan->stream, to);
    return code == cudaSuccess ? ended : code;
}

/* No graph from now on: OK where the device is whole all the same. */
static cellgate_status give_up(struct cellgate_plan *plan,
                               struct cud_graph *graph, cudaError_t code,
                               cellgate_error *error)
{
    const cellgate_host *host = plan->device->host;
    cellgate_error why = CELLGATE_ERROR_INIT;
    char line[300];

    if (cud_device_fail(plan->device, &why, code, "the CUDA runtime",
                        "making a graph of steps") == CELLGATE_DEVICE_LOST) {
        *error = why;
        return CELLGATE_DEVICE_LOST;
    }
    destroy(plan, graph);
    (void)snprintf(line, sizeof line,
                   "variant %s launches its steps one by one: %.200s",
                   plan->variant->name, why.text);
    host->log(host->context, CELLGATE_LOG_WARNING, line);
    return CELLGATE_OK;
}

cellgate_status cud_graph_make(struct cellgate_plan *plan,
                               struct cud_graph *graph,
                               const struct cuk_lstm *a, cellgate_error *error)
{
    cudaGraph_t recorded = NULL;
    cudaError_t code;

    if (a->steps < 2 * GRAPH_STEPS)
        return CELLGATE_OK;
    code = load(plan, graph, a);
    if (code == cudaSuccess)
        code = capture(plan, graph, a, &recorded);
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&graph->made, recorded, 0);
    if (code == cudaSuccess)
        code = cudaGraphUpload(graph->made, plan->stream);
    if (recorded)
        (void)cudaGraphDestroy(recorded);
    graph->of = *a;
    return code == cudaSuccess ? CELLGATE_OK
                               : give_up(plan, graph, code, error);
}

/* The same kernels with other parameters, or others of their kind: those of the
   run before this one, which launched them. */
static cellgate_status update(struct cellgate_plan *plan,
                              struct cud_graph *graph, const struct cuk_lstm *a,
                              cellgate_error *error)
{
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t recorded = NULL;
    cudaError_t code = capture(plan, graph, a, &recorded);

    if (code == cudaSuccess)
        code = cudaGraphExecUpdate(graph->made, recorded, &info);
    if (recorded)
        (void)cudaGraphDestroy(recorded);
    graph->of = *a;
    return code == cudaSuccess ? CELLGATE_OK
                               : give_up(plan, graph, code, error);
}

static cellgate_status launch(struct cellgate_plan *plan,
                              const struct cud_graph *graph, int64_t steps,
                              cellgate_error *error)
{
    cudaError_t code =
        (cudaError_t)cuk_count(graph->counter.memory, 0, 1, plan->stream);
    int64_t step;

    for (step = 0; code == cudaSuccess && step < steps; step += GRAPH_STEPS)
        code = cudaGraphLaunch(graph->made, plan->stream);
    return cud_device_check(plan->device, error, code, "cudaGraphLaunch",
                            "running a segment");
}

cellgate_status cud_graph_run(struct cellgate_plan *plan,
                              struct cud_graph *graph, const struct cuk_lstm *a,
                              cellgate_error *error)
{
    const bool long_enough = a->steps >= 2 * GRAPH_STEPS;
    cellgate_status status = CELLGATE_OK;

    if (graph->made && long_enough && !is_alike(&graph->of, a) && graph->seen &&
        is_alike(&graph->last, a))
        status = update(plan, graph, a, error);
    if (status != CELLGATE_OK)
        return status;
    graph->last = *a;
    graph->seen = true;
    if (graph->made && long_enough && is_alike(&graph->of, a))
        return launch(plan, graph, a->steps, error);
    return cud_device_check(plan->device, error,
                            (cudaError_t)cuk_step(a, plan->stream), "cuk_step",
                            "running a segment");
}
