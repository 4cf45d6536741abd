/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "tests/plugins/remote/faults.h"
#include "tests/plugins/remote/resident.h"
#include "tests/plugins/remote/run.h"
#include "tests/plugins/remote/simulation.h"

/* Sleeping is only so exact; the rest is spent looking at the clock. */
#define SLEEP_MARGIN 150000u /* nanoseconds */

static double number_of(const cellgate_host *host,
                        const cellgate_settings *settings, const char *key)
{
    return (double)strtoull(host->setting(host->context, settings, key), NULL,
                            10);
}

static double seconds_of(const cellgate_host *host,
                         const cellgate_settings *settings, const char *key)
{
    return (double)remote_read_seconds(host, settings, key) * 1e-9;
}

void remote_simulation_init(struct remote_simulation *simulation,
                            const cellgate_host *host,
                            const cellgate_settings *settings)
{
    const char *active = host->setting(host->context, settings, "simulate");

    simulation->active = strcmp(active, "yes") == 0;
    simulation->launch = seconds_of(host, settings, "launch");
    simulation->step = seconds_of(host, settings, "step");
    simulation->large_step = seconds_of(host, settings, "large_step");
    simulation->large_batch = (int64_t)number_of(host, settings, "large_batch");
    simulation->tile = (int64_t)number_of(host, settings, "tile");
    simulation->bus = number_of(host, settings, "bus");
    simulation->rate = number_of(host, settings, "rate");
    simulation->noise = number_of(host, settings, "noise") / 100;
    simulation->compute_most = number_of(host, settings, "compute_most");
    simulation->idle_after = seconds_of(host, settings, "idle_after");
    simulation->idle_penalty = seconds_of(host, settings, "idle_penalty");
    atomic_init(&simulation->ended, 0);
}

/* ---- How long ----------------------------------------------------------- */

/* Multiplications and additions a row and step, all ops together. */
static double operations(const cellgate_plan *plan, int64_t batch)
{
    const double steps = (double)plan->run->steps;
    double sum = 0;

    for (uint32_t at = 0; at < plan->weights->op_count; at++) {
        const struct remote_op *op = &plan->weights->ops[at];

        if (op->kind == CELLGATE_OP_LSTM)
            sum += 8.0 * (double)op->hidden * op->directions * steps *
                   (double)(op->input + op->recurrent);
        else
            sum += 2.0 * (double)op->input * (double)op->features *
                   (op->passes_sequence ? steps : 1);
    }
    return sum * (double)batch;
}

/* Over the bus: x, and the results that are wanted. */
static double bytes(const cellgate_plan *plan)
{
    const cellgate_segment_run *run = plan->run;
    const struct remote_op *last =
        &plan->weights->ops[plan->weights->op_count - 1];
    double numbers = (double)plan->weights->ops[0].input * (double)run->steps;

    if (run->y.data != NULL)
        numbers += (double)last->features * (double)run->steps;
    if (run->y_last.data != NULL)
        numbers += (double)last->features;
    return numbers * (double)run->batch * sizeof(float);
}

/* Normal, of mean 0 and deviation 1, from the number of the run: twelve uniform
   numbers (splitmix64, Steele, Lea, Flood 2014), less six. */
static double normal(uint64_t seed)
{
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        sum += (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
    }
    return sum;
}

static bool was_idle(const struct remote_simulation *how, uint64_t start)
{
    const uint64_t ended = atomic_load(&how->ended);

    return start > ended && (double)(start - ended) * 1e-9 > how->idle_after;
}

double remote_simulation_seconds(const cellgate_plan *plan, uint64_t start)
{
    const struct remote_simulation *how = &plan->device->simulation;
    const int64_t batch = plan->run->batch;
    const int64_t tiles = (batch + how->tile - 1) / how->tile;
    const bool large = how->large_batch > 0 && batch >= how->large_batch;
    double seconds = how->launch + (double)plan->run->steps *
                                       (large ? how->large_step : how->step);

    if (how->bus > 0)
        seconds += bytes(plan) / how->bus;
    if (how->rate > 0)
        seconds += operations(plan, tiles * how->tile) / how->rate;
    if (how->idle_penalty > 0 && was_idle(how, start))
        seconds += how->idle_penalty;
    return seconds * exp(how->noise * normal(plan->number * 1000003));
}

bool remote_simulation_skips(const cellgate_plan *plan)
{
    const double most = plan->device->simulation.compute_most;

    return most > 0 && operations(plan, plan->run->batch) > most;
}

void remote_simulation_wait(const cellgate_plan *plan, uint64_t start)
{
    const cellgate_host *host = plan->device->host;
    const double seconds = remote_simulation_seconds(plan, start);
    const uint64_t end = start + (uint64_t)(seconds * 1e9);
    uint64_t now = host->clock(host->context);

    if (now + SLEEP_MARGIN < end) {
        const uint64_t left = end - now - SLEEP_MARGIN;
        const struct timespec pause = { (time_t)(left / 1000000000),
                                        (long)(left % 1000000000) };

        (void)nanosleep(&pause, NULL);
    }
    while ((now = host->clock(host->context)) < end)
        continue;
    atomic_store(&plan->device->simulation.ended, now);
}

/* ---- The same input? ---------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *at = data;

    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;

        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
        hash ^= hash >> 29;
    }
    for (; size > 0; size--, at++)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_states(uint64_t hash, const cellgate_plan *plan)
{
    const cellgate_segment_run *run = plan->run;

    for (uint32_t at = 0; run->states != NULL && at < plan->weights->op_count;
         at++) {
        const struct remote_op *op = &plan->weights->ops[at];
        const cellgate_lstm_state *state = &run->states[at];

        if (op->kind != CELLGATE_OP_LSTM)
            continue;
        if (state->h0 != NULL)
            hash = mix(hash, state->h0, remote_h_bytes(op, run->batch));
        if (state->c0 != NULL)
            hash = mix(hash + 1, state->c0, remote_c_bytes(op, run->batch));
    }
    return hash;
}

uint64_t remote_simulation_input(const cellgate_plan *plan)
{
    const cellgate_segment_run *run = plan->run;
    const size_t row = (size_t)plan->weights->ops[0].input * sizeof(float);
    const int64_t sizes[2] = { run->batch, run->steps };
    uint64_t hash = mix(UINT64_C(0x243f6a8885a308d3), sizes, sizeof sizes);

    for (int64_t b = 0; b < run->batch; b++)
        for (int64_t t = 0; t < run->steps; t++)
            hash = mix(hash,
                       (const float *)run->x.data + b * run->x.batch_stride +
                           t * run->x.time_stride,
                       row);
    if (run->lengths != NULL)
        hash = mix(hash, run->lengths, (size_t)run->batch * sizeof(int32_t));
    return mix_states(hash, plan);
}
