/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread.h: keeps the members of a team off the processor of their caller.
 *
 * Linux wakes a thread on its waker's processor when it takes no other one for
 * idle, and in a virtual machine a sleeping processor counts as taken (its vCPU
 * is preempted): the two then share one processor until the next balancing,
 * milliseconds later. On two idle processors of such a machine the median time
 * of small layers was that of one thread, or worse; with this it is the best
 * time. It costs a system call a member when the caller has moved, and none
 * otherwise.
 */
#ifndef CELLGATE_OPENMP_SPREAD_H
#define CELLGATE_OPENMP_SPREAD_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

/* Members beyond these are left to the system. */
#define CPU_SPREAD_MEMBERS 256

struct cpu_spread {
    int avoided; /* processor that members keep off; -1: none yet */
#if defined(__linux__)
    cpu_set_t allowed; /* to the team; empty: unknown */
    /* Of members 1 and up; 0: not joined. */
    _Atomic int32_t threads[CPU_SPREAD_MEMBERS];
#endif
};

/* On a thread that may run where the members may. */
void cpu_spread_init(struct cpu_spread *spread);

/* Called by member `member` (1 and up) on its own thread. */
void cpu_spread_join(struct cpu_spread *spread, uint32_t member);

/*
 * Called by member 0 before it gives the others work: `members` counts it too.
 * One thread at a time. Does nothing where there are fewer processors than
 * members.
 */
void cpu_spread_from_caller(struct cpu_spread *spread, uint32_t members);

#endif /* CELLGATE_OPENMP_SPREAD_H */
