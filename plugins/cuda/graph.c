/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c: steps of a layer as a CUDA graph, which costs less to launch than
 * they do. A graph has GRAPH_STEPS steps, and counts in device memory where it
 * is, so that it serves any number of them. It is made when a run is like the
 * one before it: what comes once is launched step by step.
 */
#include "config.h"

#include "plugins/cuda/plan.h"

#define GRAPH_STEPS 8

static bool is_alike(const struct cuk_lstm *a, const struct cuk_lstm *b)
{
    return a->batch == b->batch && a->steps == b->steps &&
           a->initial == b->initial && a->y == b->y && a->last == b->last &&
           a->y_at.batch == b->y_at.batch && a->y_at.time == b->y_at.time &&
           a->products_at.batch == b->products_at.batch;
}

void cud_graph_destroy(struct cellgate_plan *plan, struct cud_graph *graph)
{
    if (graph->made && cud_device_enter_to_free(plan->device))
        (void)cudaGraphExecDestroy(graph->made);
    graph->made = NULL;
    cud_buffer_destroy(plan->device, &graph->counter);
}

cellgate_status cud_graph_create(struct cellgate_plan *plan,
                                 struct cud_graph *graph, cellgate_error *error)
{
    return cud_buffer_create(plan->device, 1, sizeof(int32_t), &graph->counter,
                             error);
}

/* What one launch of the graph does. */
static int record(struct cellgate_plan *plan, const struct cud_graph *graph,
                  const struct cuk_lstm *a)
{
    struct cuk_lstm some = *a;
    int code;

    some.first = 0;
    some.end = GRAPH_STEPS;
    some.counter = graph->counter.memory;
    code = cuk_step(&some, plan->stream);
    return code
               ? code
               : cuk_count(graph->counter.memory, GRAPH_STEPS, 0, plan->stream);
}

/* Also after a failure the stream must leave the recording. */
static cudaError_t make(struct cellgate_plan *plan, struct cud_graph *graph,
                        const struct cuk_lstm *a)
{
    cudaGraph_t recorded = NULL;
    cudaError_t code =
        cudaStreamBeginCapture(plan->stream, cudaStreamCaptureModeThreadLocal);
    cudaError_t ended;

    if (code != cudaSuccess)
        return code;
    code = (cudaError_t)record(plan, graph, a);
    ended = cudaStreamEndCapture(plan->stream, &recorded);
    if (code == cudaSuccess)
        code = ended;
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&graph->made, recorded, 0);
    if (recorded)
        (void)cudaGraphDestroy(recorded);
    return code;
}

static cellgate_status replace(struct cellgate_plan *plan,
                               struct cud_graph *graph,
                               const struct cuk_lstm *a, cellgate_error *error)
{
    cudaError_t code = cudaSuccess;

    if (graph->made)
        code = cudaGraphExecDestroy(graph->made);
    graph->made = NULL;
    if (code == cudaSuccess)
        code = make(plan, graph, a);
    graph->of = *a;
    return cud_device_check(plan->device, error, code, "cudaGraphInstantiate",
                            "making a graph of steps");
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
    cellgate_status status = CELLGATE_OK;

    if (a->steps >= 2 * GRAPH_STEPS && graph->made && is_alike(&graph->of, a))
        return launch(plan, graph, a->steps, error);
    if (a->steps >= 2 * GRAPH_STEPS && graph->seen &&
        is_alike(&graph->last, a)) {
        status = replace(plan, graph, a, error);
        return status == CELLGATE_OK ? launch(plan, graph, a->steps, error)
                                     : status;
    }
    graph->last = *a;
    graph->seen = true;
    return cud_device_check(plan->device, error,
                            (cudaError_t)cuk_step(a, plan->stream), "cuk_step",
                            "running a segment");
}
