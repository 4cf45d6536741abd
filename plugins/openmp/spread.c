/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "plugins/openmp/spread.h"

#if defined(__linux__)

void cpu_spread_init(struct cpu_spread *spread)
{
    uint32_t member;

    spread->avoided = -1;
    for (member = 0; member < CPU_SPREAD_MEMBERS; member++)
        atomic_init(&spread->threads[member], 0);
    CPU_ZERO(&spread->allowed);
    /* A machine with more processors than the set has is left alone. */
    if (sched_getaffinity(0, sizeof spread->allowed, &spread->allowed) != 0)
        CPU_ZERO(&spread->allowed);
}

void cpu_spread_join(struct cpu_spread *spread, uint32_t member)
{
    if (member < CPU_SPREAD_MEMBERS)
        atomic_store(&spread->threads[member], (int32_t)syscall(SYS_gettid));
}

void cpu_spread_from_caller(struct cpu_spread *spread, uint32_t members)
{
    const int here = sched_getcpu();
    cpu_set_t others = spread->allowed;
    uint32_t member;

    if (here == spread->avoided || here < 0)
        return;
    if (here < CPU_SETSIZE)
        CPU_CLR(here, &others);
    if ((uint32_t)CPU_COUNT(&others) + 1 < members)
        return;
    spread->avoided = here;
    for (member = 1; member < members && member < CPU_SPREAD_MEMBERS;
         member++) {
        const int32_t thread = atomic_load(&spread->threads[member]);

        if (thread == 0)
            spread->avoided = -1; /* not there yet: again next time */
        else
            (void)sched_setaffinity(thread, sizeof others, &others);
    }
}

#else

void cpu_spread_init(struct cpu_spread *spread)
{
    spread->avoided = -1;
}

void cpu_spread_join(struct cpu_spread *spread, uint32_t member)
{
    (void)spread;
    (void)member;
}

void cpu_spread_from_caller(struct cpu_spread *spread, uint32_t members)
{
    (void)spread;
    (void)members;
}

#endif
