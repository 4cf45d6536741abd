/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/context.h"

static bool context_allocate(cg_context *context, const cg_graph *graph)
{
    size_t values = graph->value_count + 1;

    context->buffers = calloc(values, sizeof *context->buffers);
    context->shapes = calloc(values, sizeof *context->shapes);
    context->absent = calloc(values, sizeof *context->absent);
    context->memory = calloc(graph->state_count + 1, sizeof *context->memory);
    context->states = calloc(graph->node_count + 1, sizeof *context->states);
    return cg_binding_init(&context->binding, graph->model) &&
           context->buffers != NULL && context->shapes != NULL &&
           context->absent != NULL && context->memory != NULL &&
           context->states != NULL;
}

cellgate_status cg_context_create(const cg_graph *graph, bool staged,
                                  const cg_engine *pinned, cg_context **context,
                                  cellgate_error *error)
{
    cg_context *made = calloc(1, sizeof *made);
    cellgate_status status = CELLGATE_OK;

    if (made == NULL || !context_allocate(made, graph))
        status = cellgate_fail(error, CELLGATE_NO_MEMORY,
                               "no memory for one more request at a time");
    if (status == CELLGATE_OK) {
        made->graph = graph;
        if (pinned != NULL && pinned->ops->host_allocate != NULL &&
            pinned->ops->host_release != NULL)
            made->arena.pinned = pinned;
        if (staged)
            status = cg_worker_create(&made->worker, error);
    }
    if (status != CELLGATE_OK) {
        cg_context_destroy(made);
        return status;
    }
    *context = made;
    return CELLGATE_OK;
}

void cg_context_drop_plans(cg_context *context)
{
    for (size_t at = 0; at < context->plan_count; at++) {
        cg_plan_set *set = &context->plans[at];

        while (set->count > 0)
            set->segment->engine->ops->plan_destroy(
                set->entries[--set->count].plan);
    }
}

void cg_context_destroy(cg_context *context)
{
    if (context == NULL)
        return;
    cg_worker_destroy(context->worker);
    cg_context_drop_plans(context);
    cg_arena_finish(&context->arena);
    cg_binding_finish(&context->binding);
    free(context->plans);
    free(context->buffers);
    free(context->shapes);
    free(context->absent);
    free(context->memory);
    free(context->states);
    free(context);
}
