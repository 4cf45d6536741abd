/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "runtime/cost/crossover.h"

typedef struct pair {
    const cg_surface *first, *second;
    cg_cost_shape shape;
    cg_cost_axis axis;
} pair;

/* ln(first / second) at an extent; *error is its standard error. NaN where one
   has no estimate. */
static double advantage(const pair *of, int64_t extent, double *error)
{
    cg_cost_shape shape = of->shape;
    cg_cost first, second;

    if (of->axis == CG_AXIS_BATCH)
        shape.batch = extent;
    else
        shape.steps = extent;
    cg_surface_predict(of->first, &shape, &first);
    cg_surface_predict(of->second, &shape, &second);
    if (first.kind == CG_COST_NONE || second.kind == CG_COST_NONE)
        return NAN;
    *error = hypot(first.error, second.error);
    return log(first.seconds / second.seconds);
}

/* A quarter of an octave on, at least one. */
static int64_t next_extent(int64_t extent, int64_t to)
{
    const double next = ceil((double)extent * 1.189207115);

    if (next >= (double)to)
        return to;
    return (int64_t)next > extent ? (int64_t)next : extent + 1;
}

/* The first extent of (low, high] where the sign is that at `high`. */
static int64_t bisect(const pair *of, int64_t low, int64_t high, bool after)
{
    double error;

    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if ((advantage(of, middle, &error) > 0) == after)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* From `at` outwards while the two are not told apart. */
static int64_t blurred(const pair *of, int64_t at, int64_t end)
{
    double error = 0;
    int64_t last = at;

    while (last != end) {
        int64_t next = end > at ? next_extent(last, end)
                                : (int64_t)((double)last / 1.189207115);

        if (end < at && next < end)
            next = end;
        if (fabs(advantage(of, next, &error)) > 1.96 * error)
            break;
        last = next;
    }
    return last;
}

size_t cg_crossovers(const cg_surface *first, const cg_surface *second,
                     const cg_cost_shape *shape, cg_cost_axis axis,
                     int64_t from, int64_t to, cg_crossover *found, size_t room)
{
    const pair of = { first, second, *shape, axis };
    double error, before = advantage(&of, from, &error);
    size_t count = 0;

    for (int64_t last = from; !isnan(before) && last < to;) {
        const int64_t extent = next_extent(last, to);
        const double after = advantage(&of, extent, &error);

        if ((before > 0) != (after > 0)) {
            if (count < room) {
                cg_crossover *at = &found[count];

                at->second_after = after > 0;
                at->at = bisect(&of, last, extent, after > 0);
                at->low = blurred(&of, at->at, from);
                at->high = blurred(&of, at->at, to);
            }
            count++;
        }
        before = after;
        last = extent;
    }
    return count;
}
