/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.h: the threads of a device, and how they wait for one another.
 *
 * A team of N members is the thread that calls cpu_team_run() (member 0) and
 * N - 1 others, which sit in one OpenMP parallel region for as long as the team
 * lives. The region belongs to a thread of the team's own, so that no thread
 * of the application ever opens one. Members without work spin for a bounded
 * time and then sleep.
 *
 * Everything is synchronised with the atomics and the condition variables
 * below, never with OpenMP's own barriers.
 */
#ifndef CELLGATE_OPENMP_TEAM_H
#define CELLGATE_OPENMP_TEAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdatomic.h>

#include "cellgate/plugin.h"

/* A counter that threads wait for. */
struct cpu_signal {
    _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* False: the system has no resources for it. */
bool cpu_signal_init(struct cpu_signal *signal);
void cpu_signal_finish(struct cpu_signal *signal);

/* Adds one to the counter and wakes who waits; returns the new value. */
uint32_t cpu_signal_raise(struct cpu_signal *signal);

/*
 * Returns once the counter differs from `seen`: spins, then offers the
 * processor to others, then sleeps.
 */
void cpu_signal_wait(struct cpu_signal *signal, uint32_t seen);

/* A barrier for `size` threads, used any number of times. */
struct cpu_barrier {
    struct cpu_signal passed;
    _Atomic uint32_t arrived;
    uint32_t size;
};

bool cpu_barrier_init(struct cpu_barrier *barrier, uint32_t size);
void cpu_barrier_finish(struct cpu_barrier *barrier);
void cpu_barrier_wait(struct cpu_barrier *barrier);

/* Threads that share one piece of work, as one of them sees it. */
struct cpu_crew {
    uint32_t size;
    uint32_t member;             /* 0 to size - 1 */
    struct cpu_barrier *barrier; /* of exactly this crew; unused for size 1 */
};

static inline void cpu_crew_meet(const struct cpu_crew *crew)
{
    if (crew->size > 1)
        cpu_barrier_wait(crew->barrier);
}

/* The member's share [*first, *end) of `count` things, in order, even. */
static inline void cpu_crew_share(const struct cpu_crew *crew, int64_t count,
                                  int64_t *first, int64_t *end)
{
    *first = count * crew->member / crew->size;
    *end = count * (crew->member + 1) / crew->size;
}

struct cpu_team;

/* A team of `size` >= 2 members. Starts no thread yet. */
cellgate_status cpu_team_create(const cellgate_host *host, uint32_t size,
                                struct cpu_team **team, cellgate_error *error);

/*
 * Ends the threads. In a child process after fork(), where they do not exist,
 * it leaves everything as it is. NULL is allowed.
 */
void cpu_team_destroy(struct cpu_team *team);

/* Starts the threads if they are not running; any thread, any number of times.
 */
cellgate_status cpu_team_start(struct cpu_team *team, cellgate_error *error);

/*
 * Calls work(context, member) once for each member, on its own thread and all
 * at once, and returns when the last one has returned. The team must have been
 * started. One call at a time has the team; others wait their turn.
 */
void cpu_team_run(struct cpu_team *team,
                  void (*work)(void *context, uint32_t member), void *context);

#endif /* CELLGATE_OPENMP_TEAM_H */
