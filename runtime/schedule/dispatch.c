/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "runtime/schedule/dispatch.h"

/* How long the line keeps a way busy that shares it with all ways that are at
   least as fast. */
static double line(const cg_turn *turns, size_t count, size_t at, size_t behind)
{
    double rate = 0;

    for (size_t other = 0; other < count; other++)
        if (turns[other].seconds <= turns[at].seconds)
            rate += turns[other].rate;
    return rate > 0 ? (double)behind / rate : 0;
}

size_t cg_dispatch(const cg_turn *turns, size_t count, size_t behind)
{
    double first = HUGE_VAL;
    size_t best = 0;

    for (size_t at = 0; at < count; at++) {
        double end = turns[at].wait + turns[at].seconds;

        if (turns[at].wait > 0 && behind > 0)
            end += line(turns, count, at, behind);
        if (end < first) {
            first = end;
            best = at;
        }
    }
    return best;
}
