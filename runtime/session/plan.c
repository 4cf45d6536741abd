/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a context: found, made, evicted. */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/placement.h"

static bool holds(bool exact, int64_t capacity, int64_t wanted)
{
    return exact ? capacity == wanted : capacity >= wanted;
}

static bool takes(const cg_plan_set *set, const cg_plan_entry *entry,
                  int64_t batch, int64_t steps)
{
    const cellgate_variant *variant = &set->segment->variant;

    return holds(variant->exact_batch, entry->batch, batch) &&
           holds(variant->exact_steps, entry->steps, steps);
}

/* The smallest one that takes the run; NULL if none does. Most runs are as the
   one before. */
static cg_plan_entry *find(cg_plan_set *set, int64_t batch, int64_t steps)
{
    cg_plan_entry *best = NULL;

    if (set->found < set->count && set->batch == batch && set->steps == steps)
        return &set->entries[set->found];
    for (size_t at = 0; at < set->count; at++) {
        cg_plan_entry *entry = &set->entries[at];

        if (takes(set, entry, batch, steps) &&
            (best == NULL || (double)entry->batch * (double)entry->steps <
                                 (double)best->batch * (double)best->steps))
            best = entry;
    }
    if (best == NULL)
        return NULL;
    set->found = (size_t)(best - set->entries);
    set->batch = batch;
    set->steps = steps;
    return best;
}

static int64_t rounded(bool exact, int64_t wanted)
{
    int64_t capacity = 1;

    if (exact || wanted > INT64_MAX / 2)
        return wanted;
    while (capacity < wanted)
        capacity *= 2;
    return capacity;
}

/* A place in the set: a new one, or that of the least recently used plan. */
static cg_plan_entry *vacate(cg_plan_set *set)
{
    cg_plan_entry *oldest = &set->entries[0];

    set->found = CG_PLANS_KEPT;
    if (set->count < CG_PLANS_KEPT)
        return &set->entries[set->count];
    for (size_t at = 1; at < set->count; at++)
        if (set->entries[at].used < oldest->used)
            oldest = &set->entries[at];
    set->segment->engine->ops->plan_destroy(oldest->plan);
    *oldest = set->entries[--set->count];
    return &set->entries[set->count];
}

static cellgate_status create(const cg_segment *segment, int64_t batch,
                              int64_t steps, cg_plan_entry *entry,
                              cellgate_error *error)
{
    const cg_engine *engine = segment->engine;
    cellgate_shape shape = { sizeof shape, batch, steps };
    cellgate_plan *plan = NULL;
    cellgate_status status = cg_segment_fits(segment, &shape, error);

    if (status == CELLGATE_OK)
        status =
            engine->ops->plan_create(engine->handle, segment->weights,
                                     segment->variant.id, &shape, &plan, error);
    if (status != CELLGATE_OK)
        return status;
    entry->plan = plan;
    entry->batch = batch;
    entry->steps = steps;
    return CELLGATE_OK;
}

static bool out_of_memory(cellgate_status status)
{
    return status == CELLGATE_DEVICE_MEMORY || status == CELLGATE_NO_MEMORY;
}

static const char *advice(cellgate_status status)
{
    if (out_of_memory(status))
        return " (also after freeing idle plans; use a smaller batch)";
    if (status == CELLGATE_UNSUPPORTED)
        return " ([scheduler] fallback = run would try the next device)";
    return "";
}

static cellgate_status add(cg_context *context, struct cg_placement *placement,
                           cg_plan_set *set, int64_t batch, int64_t steps,
                           cg_plan_entry **entry, cellgate_error *error)
{
    const cellgate_variant *variant = &set->segment->variant;
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cellgate_status status;

    *entry = vacate(set);
    status = create(set->segment, rounded(variant->exact_batch, batch),
                    rounded(variant->exact_steps, steps), *entry, &cause);
    if (status == CELLGATE_UNSUPPORTED) /* a limit may lie between the two */
        status = create(set->segment, batch, steps, *entry, &cause);
    if (out_of_memory(status)) {
        cg_context_drop_plans(context);
        cg_placement_drop_plans(placement);
        *entry = vacate(set);
        status = create(set->segment, batch, steps, *entry, &cause);
    }
    if (status == CELLGATE_OK) {
        set->count++;
        return CELLGATE_OK;
    }
    return cellgate_fail(error, status,
                         "device '%s' cannot plan %s for batch %lld, steps "
                         "%lld: %s%s",
                         cg_device_name(set->segment->engine->device),
                         set->segment->names, (long long)batch,
                         (long long)steps, cause.text, advice(status));
}

static cellgate_status set_for(cg_context *context, const cg_segment *segment,
                               cg_plan_set **set, cellgate_error *error)
{
    if (segment->index >= context->plan_count) {
        size_t count = segment->index + 1;
        cg_plan_set *grown =
            realloc(context->plans, count * sizeof *context->plans);

        if (grown == NULL)
            return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "no memory for the plans of a request");
        memset(grown + context->plan_count, 0,
               (count - context->plan_count) * sizeof *grown);
        context->plans = grown;
        context->plan_count = count;
    }
    *set = &context->plans[segment->index];
    (*set)->segment = segment;
    return CELLGATE_OK;
}

static cellgate_plan *touch(cg_context *context, cg_plan_entry *entry)
{
    entry->used = ++context->clock;
    return entry->plan;
}

cellgate_plan *cg_context_kept_plan(cg_context *context,
                                    const cg_segment *segment, int64_t batch,
                                    int64_t steps)
{
    cg_plan_entry *entry = NULL;

    if (segment->index < context->plan_count &&
        context->plans[segment->index].count > 0)
        entry = find(&context->plans[segment->index], batch, steps);
    return entry != NULL ? touch(context, entry) : NULL;
}

cellgate_status cg_context_new_plan(cg_context *context,
                                    struct cg_placement *placement,
                                    const cg_segment *segment, int64_t batch,
                                    int64_t steps, cellgate_plan **plan,
                                    cellgate_error *error)
{
    cg_plan_entry *entry;
    cg_plan_set *set = NULL;
    cellgate_status status = set_for(context, segment, &set, error);

    if (status == CELLGATE_OK)
        status = add(context, placement, set, batch, steps, &entry, error);
    if (status == CELLGATE_OK)
        *plan = touch(context, entry);
    return status;
}
