/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cellgate/chain.h"
#include "plugins/openmp/dense.h"
#include "plugins/openmp/plan.h"

/*
 * Samples a member needs to be given its own, in tiles; and the most that a
 * layer's weights may be then, as each member reads all of them at every step.
 * Where they are more, each is better off with a slice of them, and the barrier
 * is small beside a step.
 */
#define OWN_TILES 2
#define OWN_BYTES (4 << 20)

/* ---- Dealing out ------------------------------------------------------- */

/* Sorts places in the batch by length, the longest first (a shell sort). */
static void sort_samples(int32_t *order, int64_t count, const int32_t *lengths)
{
    int64_t gap, i, j;

    for (gap = count / 2; gap > 0; gap /= 2)
        for (i = gap; i < count; i++) {
            int32_t moved = order[i];

            for (j = i; j >= gap && lengths[order[j - gap]] < lengths[moved];
                 j -= gap)
                order[j] = order[j - gap];
            order[j] = moved;
        }
}

/* Gives each of `lanes` lanes every `lanes`-th sample of the sorted batch. */
static void deal(struct cellgate_plan *plan, uint32_t lanes)
{
    const cellgate_segment_run *run = plan->run;
    int64_t i, at = 0;
    uint32_t lane;

    for (i = 0; i < run->batch; i++)
        plan->order[i] = (int32_t)i;
    if (run->lengths)
        sort_samples(plan->order, run->batch, run->lengths);
    for (lane = 0; lane < lanes; lane++) {
        plan->lanes[lane] = (struct cpu_lane){
            .steps = run->steps,
            .sample = plan->sample + at,
            .length = plan->length + at,
        };
        for (i = lane; i < run->batch; i += lanes, at++) {
            int32_t b = plan->order[i];

            plan->sample[at] = b;
            plan->length[at] =
                run->lengths ? run->lengths[b] : (int32_t)run->steps;
            plan->lanes[lane].count++;
        }
    }
}

/* ---- Computing --------------------------------------------------------- */

/* One member's view of a run. */
struct task {
    struct cellgate_plan *plan;
    struct cpu_crew crew;
    const struct cpu_lane *lane;
    const struct cpu_pointers *pointers;
    uint32_t number; /* of the lane */
};

/* The lane's part of the memory for one direction at a time. */
static struct cpu_scratch scratch_of(const struct task *task, uint32_t place)
{
    const struct cellgate_plan *plan = task->plan;
    const int64_t row = task->lane->sample - plan->sample;
    const int64_t rows = plan->need.hoists_all ? task->lane->count : 0;
    const int64_t gate_row =
        task->number * CPU_GATE_ROWS + (plan->need.hoists_all ? row : 0);

    return (struct cpu_scratch){
        .c = plan->c[place] + row * plan->need.c,
        .h = { plan->h[place][0] + row * plan->need.output,
               plan->h[place][1] + row * plan->need.output },
        .hidden = plan->hidden[place] + row * plan->need.hidden,
        .zero = plan->zero,
        .gates = plan->gates[place] + gate_row * plan->need.gates,
        .gate_rows = rows > CPU_GATE_ROWS ? rows : CPU_GATE_ROWS,
    };
}

/*
 * Two directions on a crew of several: each half of the crew takes one, with
 * memory of its own, and the halves do not wait for each other.
 */
static void lstm_directions(const struct cpu_lstm_run *run,
                            const struct task *task)
{
    const struct cpu_crew *crew = &task->crew;
    struct cpu_scratch scratch;
    int32_t d;

    if (run->lstm->directions == 2 && crew->size > 1) {
        uint32_t first = crew->size - crew->size / 2;
        uint32_t half = crew->member >= first;
        struct cpu_crew part = { half ? crew->size / 2 : first,
                                 crew->member - (half ? first : 0),
                                 &task->plan->half[half] };

        scratch = scratch_of(task, half);
        cpu_lstm_direction(run, (int32_t)half, &part, &scratch, task->pointers);
        return;
    }
    scratch = scratch_of(task, 0);
    for (d = 0; d < run->lstm->directions; d++)
        cpu_lstm_direction(run, d, crew, &scratch, task->pointers);
}

static void lstm_stage(const struct task *task, const struct cpu_stage *stage,
                       const struct cpu_source *x,
                       const struct cpu_target *result)
{
    const cellgate_segment_run *run = task->plan->run;
    const struct cpu_target y_last = { run->y_last.data,
                                       run->y_last.batch_stride, 0 };
    struct cpu_lstm_run lstm = {
        .kernels = task->plan->kernels,
        .lstm = &stage->lstm,
        .lane = task->lane,
        .batch = run->batch,
        .x = *x,
        .state = run->states ? &run->states[stage->lstm.op] : NULL,
    };

    if (stage->sequence)
        lstm.y = *result;
    if (stage->lstm.outputs & CELLGATE_LSTM_LAST)
        lstm.last = stage->sequence ? y_last : *result;
    lstm_directions(&lstm, task);
}

static bool stage_is_rows(const struct cellgate_plan *plan,
                          const struct cpu_stage *stage)
{
    return plan->rows_only || !stage->sequence;
}

/* Where a stage's result goes: on to the next stage, or to the caller. */
static struct cpu_target target_of(const struct cellgate_plan *plan,
                                   uint32_t index)
{
    const struct cpu_stage *stage = &plan->weights->stages[index];
    const cellgate_segment_run *run = plan->run;
    bool rows = stage_is_rows(plan, stage);
    const cellgate_sequence *y = rows ? &run->y_last : &run->y;

    if (index + 1 == plan->weights->stage_count)
        return (struct cpu_target){ y->data, y->batch_stride, y->time_stride };
    return (struct cpu_target){ plan->between[index & 1],
                                cpu_between_stride(plan, run->steps),
                                stage->width };
}

static struct cpu_source source_of_run(const struct cellgate_plan *plan)
{
    const cellgate_sequence *x = &plan->run->x;
    struct cpu_source source = { .batch_stride = x->batch_stride,
                                 .time_stride = x->time_stride };

    if (plan->weights->table) {
        source.base = plan->weights->table;
        source.width = plan->weights->table_width;
        source.ids = x->data;
    } else {
        source.base = x->data;
    }
    return source;
}

static void compute(const struct task *task)
{
    const struct cellgate_plan *plan = task->plan;
    struct cpu_source x = source_of_run(plan);
    uint32_t i;

    for (i = 0; i < plan->weights->stage_count; i++) {
        const struct cpu_stage *stage = &plan->weights->stages[i];
        const struct cpu_target y = target_of(plan, i);
        struct cpu_dense_run dense = {
            .kernels = plan->kernels,
            .stage = stage,
            .lane = task->lane,
            .steps = stage_is_rows(plan, stage) ? 1 : plan->run->steps,
            .x = x,
            .y = y,
        };

        if (i + 1 == plan->weights->stage_count)
            dense.staging_rows = cpu_dense_staging(
                plan->kernels, stage, plan->run->batch, dense.steps);

        if (stage->kind == CPU_STAGE_LSTM) {
            lstm_stage(task, stage, &x, &y);
            if (stage->finish_count > 0)
                cpu_crew_meet(&task->crew);
            cpu_finish_rows(&dense, &task->crew);
        } else {
            cpu_dense_rows(&dense, &task->crew, task->pointers);
        }
        cpu_crew_meet(&task->crew);
        x = (struct cpu_source){ .base = y.base,
                                 .batch_stride = y.batch_stride,
                                 .time_stride = y.time_stride };
    }
}

/* What a member of the team does. */
static void work(void *context, uint32_t member)
{
    struct cellgate_plan *plan = context;
    struct task task = {
        .plan = plan,
        .crew = { plan->threads, member, &plan->all },
        .lane = &plan->lanes[0],
        .pointers = &plan->pointers[member],
    };

    if (plan->own_samples) {
        task.crew = (struct cpu_crew){ 1, 0, NULL };
        task.lane = &plan->lanes[member];
        task.number = member;
    }
    compute(&task);
}

/* ---- Running ----------------------------------------------------------- */

static cellgate_status check_run(const cellgate_plan *plan,
                                 const cellgate_segment_run *run,
                                 cellgate_error *error)
{
    const int32_t dtype = plan->weights->table ? CELLGATE_I32 : CELLGATE_F32;
    const cellgate_shape capacity = { sizeof capacity, plan->batch,
                                      plan->steps };

    if (run->resident)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "the CPU keeps no resident state");
    return cellgate_run_check(run, &capacity, dtype, error);
}

cellgate_status cpu_run(cellgate_plan *plan, const cellgate_segment_run *run,
                        cellgate_error *error)
{
    cellgate_segment_run known = { .struct_size = sizeof known };
    cellgate_status status;

    if (!cellgate_struct_known(run, sizeof known))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the run sets a field newer than this plugin");
    cellgate_struct_copy(&known, run);
    status = check_run(plan, &known, error);
    if (status != CELLGATE_OK || known.batch == 0)
        return status;
    plan->run = &known;
    plan->rows_only = !plan->has_lstm && !known.y.data;
    plan->own_samples =
        plan->team && plan->need.weight_bytes <= OWN_BYTES &&
        known.batch >= plan->threads * plan->kernels->tile * OWN_TILES;
    deal(plan, plan->own_samples ? plan->threads : 1);
    if (plan->team)
        cpu_team_run(plan->team, work, plan);
    else
        work(plan, 0);
    plan->run = NULL;
    return CELLGATE_OK;
}
