/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdbool.h>

#include "runtime/schedule/pace.h"

void cg_pace_init(cg_pace *pace, const cg_clock *clock)
{
    pace->clock = clock;
    atomic_init(&pace->running, 0);
    atomic_init(&pace->ended, -1.0);
    atomic_init(&pace->votes, 0);
    atomic_init(&pace->regime, (int)CG_BACK_TO_BACK);
}

/* Stays within its ends; the number of votes then. */
static int vote(cg_pace *pace, int by)
{
    int votes = atomic_load_explicit(&pace->votes, memory_order_relaxed);
    int wanted;

    do {
        wanted = votes + by;
        if (wanted < 0 || wanted > CG_PACE_VOTES)
            return votes;
    } while (!atomic_compare_exchange_weak_explicit(
        &pace->votes, &votes, wanted, memory_order_relaxed,
        memory_order_relaxed));
    return wanted;
}

/* Of threads that see it at once one changes it. */
static bool change(cg_pace *pace, cg_regime from, cg_regime to)
{
    int expected = (int)from;

    return atomic_compare_exchange_strong(&pace->regime, &expected, (int)to);
}

static bool judge(cg_pace *pace, double gap)
{
    int votes;

    if (gap > CG_PACE_SHORT && gap < CG_PACE_LONG)
        return false;
    votes = vote(pace, gap < CG_PACE_LONG ? -1 : 1);
    if (votes == CG_PACE_VOTES)
        return change(pace, CG_BACK_TO_BACK, CG_SPACED);
    if (votes == 0)
        return change(pace, CG_SPACED, CG_BACK_TO_BACK);
    return false;
}

bool cg_pace_begin(cg_pace *pace)
{
    double ended;

    if (atomic_fetch_add(&pace->running, 1) > 0)
        return judge(pace, 0);
    /* Not before: one that has run since may have ended later. */
    ended = atomic_load_explicit(&pace->ended, memory_order_relaxed);
    return ended >= 0 && judge(pace, cg_now(pace->clock) - ended);
}

void cg_pace_end(cg_pace *pace)
{
    atomic_store_explicit(&pace->ended, cg_now(pace->clock),
                          memory_order_relaxed);
    atomic_fetch_sub(&pace->running, 1);
}
