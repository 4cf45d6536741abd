/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modelled time: with `simulate = yes` a run takes as long as its settings say,
 * not as long as the stand-in's plain loops take, so that crossovers, queues
 * and faults can be tried on any machine.
 *
 *   seconds = launch + steps * step + bytes / bus + operations / rate
 *
 * with the batch rounded up to a whole number of tiles in `operations`, another
 * `step` from `large_batch` rows on (an algorithm that changes), `idle_penalty`
 * for a run that finds the device idle for longer than `idle_after` (threads
 * that fell asleep), and noise.
 * Results are real: computed at the first run of a plan over an input, and kept
 * while the plan gets the same input again, so that what is timed is the model
 * alone.
 */
#ifndef REMOTE_SIMULATION_H
#define REMOTE_SIMULATION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cellgate/plugin.h"

struct cellgate_plan;

struct remote_simulation {
    bool active;
    double launch, step, large_step; /* seconds */
    int64_t large_batch;             /* 0: never */
    int64_t tile;
    double bus;          /* bytes a second */
    double rate;         /* multiplications and additions a second */
    double noise;        /* standard deviation of ln(seconds) */
    double compute_most; /* runs with more operations are not computed */
    double idle_after, idle_penalty; /* seconds */
    _Atomic uint64_t ended;          /* the last run, by the host's clock */
};

/* What a plan keeps of its last run. */
struct remote_memory_of_run {
    bool valid;
    uint64_t input; /* hash of all that the results depend on */
};

void remote_simulation_init(struct remote_simulation *simulation,
                            const cellgate_host *host,
                            const cellgate_settings *settings);

/* Seconds that the plan's run, which began at `start`, is to take. */
double remote_simulation_seconds(const struct cellgate_plan *plan,
                                 uint64_t start);

/* Hash of the run's input: x, lengths and initial states. */
uint64_t remote_simulation_input(const struct cellgate_plan *plan);

/* Whether the run is so large that it is not computed: for timing alone. */
bool remote_simulation_skips(const struct cellgate_plan *plan);

/* Returns when the plan's run, which began at `start` in nanoseconds of the
   host's clock, has taken its time. */
void remote_simulation_wait(const struct cellgate_plan *plan, uint64_t start);

#endif
