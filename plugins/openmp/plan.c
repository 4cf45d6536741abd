/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/openmp/dense.h"
#include "plugins/openmp/device.h"
#include "plugins/openmp/plan.h"

/* ---- Memory ------------------------------------------------------------ */

static void at_least(int64_t *need, int64_t value)
{
    if (*need < value)
        *need = value;
}

static void need_of(struct cpu_need *need, const cellgate_weights *weights,
                    int64_t batch, int64_t steps)
{
    const int64_t vector = weights->kernels->vector;
    uint32_t i;

    for (i = 0; i < weights->stage_count; i++) {
        const struct cpu_stage *stage = &weights->stages[i];
        const struct cpu_lstm *lstm = &stage->lstm;
        int64_t padded;

        if (i + 1 < weights->stage_count)
            at_least(&need->between, stage->width);
        else
            need->staging =
                stage->width *
                cpu_dense_staging(weights->kernels, stage, batch, steps);
        if (stage->kind != CPU_STAGE_LSTM)
            continue;
        padded = lstm->direction[0].recurrent.panel_count * vector;
        at_least(&need->c, padded);
        at_least(&need->gates, 4 * padded);
        at_least(&need->output, lstm->output);
        at_least(&need->weight_bytes,
                 (lstm->direction[0].kernel.depth + lstm->output) * 4 * padded *
                     (int64_t)cpu_weight_size(weights->kernels->pack));
        if (lstm->direction[0].projection.panel_count > 0)
            at_least(&need->hidden, lstm->hidden);
        if (lstm->directions == 2)
            need->two_directions = true;
        if (cpu_lstm_hoists(lstm, &lstm->direction[0], batch))
            need->hoists_all = true;
    }
}

static void layout_pointers(struct cpu_pointers *p, struct cpu_arena *arena,
                            int64_t capacity, int64_t staging)
{
    const float **in = cpu_arena_take(arena, capacity, sizeof *in);
    const float **before = cpu_arena_take(arena, capacity, sizeof *before);
    float **out = cpu_arena_take(arena, capacity, sizeof *out);
    float **hidden = cpu_arena_take(arena, capacity, sizeof *hidden);
    float *staged = cpu_arena_take(arena, staging, sizeof *staged);

    if (p)
        *p = (struct cpu_pointers){ capacity, in, before, out, hidden, staged };
}

static void layout(struct cellgate_plan *plan, struct cpu_arena *arena)
{
    const struct cpu_need *need = &plan->need;
    const int64_t batch = plan->batch;
    const size_t size = sizeof(float);
    int directions = plan->threads > 1 && need->two_directions ? 2 : 1, d;
    int64_t between, gate_rows, i;

    plan->pointers =
        cpu_arena_take(arena, plan->threads, sizeof *plan->pointers);
    plan->lanes = cpu_arena_take(arena, plan->threads, sizeof *plan->lanes);
    for (i = 0; i < plan->threads; i++)
        layout_pointers(plan->pointers ? &plan->pointers[i] : NULL, arena,
                        batch > CPU_GATE_ROWS ? batch : CPU_GATE_ROWS,
                        need->staging);
    plan->sample = cpu_arena_take(arena, batch, sizeof *plan->sample);
    plan->length = cpu_arena_take(arena, batch, sizeof *plan->length);
    plan->order = cpu_arena_take(arena, batch, sizeof *plan->order);
    for (d = 0; d < directions; d++) {
        plan->c[d] = cpu_arena_take(arena, batch * need->c, size);
        plan->h[d][0] = cpu_arena_take(arena, batch * need->output, size);
        plan->h[d][1] = cpu_arena_take(arena, batch * need->output, size);
        plan->hidden[d] = cpu_arena_take(arena, batch * need->hidden, size);
    }
    plan->zero = cpu_arena_take(arena, need->output, size);
    gate_rows = CPU_GATE_ROWS * plan->threads + (need->hoists_all ? batch : 0);
    for (d = 0; d < directions; d++)
        plan->gates[d] = cpu_arena_take(arena, gate_rows * need->gates, size);
    if (__builtin_mul_overflow(batch, cpu_between_stride(plan, plan->steps),
                               &between))
        between = -1;
    plan->between[0] = cpu_arena_take(arena, between, size);
    plan->between[1] = cpu_arena_take(arena, between, size);
}

static cellgate_status plan_memory(struct cellgate_plan *plan,
                                   cellgate_error *error)
{
    struct cpu_arena arena = { 0 };

    need_of(&plan->need, plan->weights, plan->batch, plan->steps);
    layout(plan, &arena);
    if (!arena.overflow)
        arena.base = plan->host->allocate(plan->host->context, CPU_ALIGNMENT,
                                          arena.used);
    plan->memory = arena.base;
    if (!arena.base)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a plan of batch %lld, steps %lld",
                             (long long)plan->batch, (long long)plan->steps);
    arena.used = 0;
    layout(plan, &arena);
    memset(plan->zero, 0, (size_t)plan->need.output * sizeof *plan->zero);
    return CELLGATE_OK;
}

static cellgate_status plan_barriers(struct cellgate_plan *plan,
                                     cellgate_error *error)
{
    const uint32_t sizes[3] = { plan->threads,
                                plan->threads - plan->threads / 2,
                                plan->threads / 2 };
    struct cpu_barrier *barriers[3] = { &plan->all, &plan->half[0],
                                        &plan->half[1] };

    for (; plan->barriers < 3; plan->barriers++)
        if (!cpu_barrier_init(barriers[plan->barriers], sizes[plan->barriers]))
            return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "no resources for a barrier");
    return CELLGATE_OK;
}

cellgate_status cpu_plan_create(cellgate_device *device,
                                cellgate_weights *weights, uint64_t variant,
                                const cellgate_shape *given,
                                cellgate_plan **plan, cellgate_error *error)
{
    const cellgate_host *host = device->host;
    cellgate_shape shape;
    cellgate_status status = cpu_shape_read(given, &shape, error);
    struct cellgate_plan *made;
    enum cpu_pack pack;
    uint32_t threads, i;

    if (status != CELLGATE_OK)
        return status;
    if (!cpu_variant_read(device, variant, &pack, &threads) ||
        pack != weights->kernels->pack)
        return cellgate_fail(error, CELLGATE_INVALID, "no variant %llu",
                             (unsigned long long)variant);
    made = host->allocate(host->context, CPU_ALIGNMENT, sizeof *made);
    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for a plan");
    memset(made, 0, sizeof *made);
    made->host = host;
    made->kernels = weights->kernels;
    made->weights = weights;
    made->batch = shape.batch;
    made->steps = shape.steps;
    made->threads = threads;
    made->team = threads > 1 ? device->team : NULL;
    for (i = 0; i < weights->stage_count; i++)
        if (weights->stages[i].kind == CPU_STAGE_LSTM)
            made->has_lstm = true;
    status = plan_memory(made, error);
    if (status == CELLGATE_OK)
        status = plan_barriers(made, error);
    if (status == CELLGATE_OK && made->team)
        status = cpu_team_start(made->team, error);
    if (status == CELLGATE_OK)
        *plan = made;
    else
        cpu_plan_destroy(made);
    return status;
}

void cpu_plan_destroy(cellgate_plan *plan)
{
    const cellgate_host *host;

    if (!plan)
        return;
    host = plan->host;
    if (plan->barriers > 2)
        cpu_barrier_finish(&plan->half[1]);
    if (plan->barriers > 1)
        cpu_barrier_finish(&plan->half[0]);
    if (plan->barriers > 0)
        cpu_barrier_finish(&plan->all);
    host->release(host->context, plan->memory);
    host->release(host->context, plan);
}
