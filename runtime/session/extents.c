/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/session/extents.h"

static void settle(int64_t *extent, int64_t otherwise)
{
    if (*extent <= 0)
        *extent = otherwise;
}

cellgate_status cg_extents_settle(const char *doing, int64_t *batch_least,
                                  int64_t *batch_most, int64_t *steps_least,
                                  int64_t *steps_most, cellgate_error *error)
{
    settle(batch_least, 1);
    settle(batch_most, 64);
    settle(steps_least, 1);
    settle(steps_most, 128);
    if (*batch_most < *batch_least || *steps_most < *steps_least ||
        *batch_most > INT32_MAX || *steps_most > INT32_MAX)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "no shapes to %s: batch %lld to %lld, steps %lld "
                             "to %lld",
                             doing, (long long)*batch_least,
                             (long long)*batch_most, (long long)*steps_least,
                             (long long)*steps_most);
    return CELLGATE_OK;
}

size_t cg_extents_axis(int64_t least, int64_t most,
                       int64_t values[CG_AXIS_MOST])
{
    size_t count = 0;
    int64_t at = 1;

    values[count++] = least;
    while (at <= least)
        at *= 2;
    for (; at < most; at *= 2)
        values[count++] = at;
    if (most > least)
        values[count++] = most;
    return count;
}
