/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/cost_store_rig.h"

const cg_cost_candidate store_rig_narrow = { "cpu", "fast 1.0", "b1",  "id",
                                             "",    "t1",       "f32", "x86" };
const cg_cost_candidate store_rig_wide = { "cpu", "fast 1.0", "b1",  "id",
                                           "",    "t4",       "f32", "x86" };
const char store_rig_lstm[] = "lstm 16 32";

cg_cost_point store_rig_point(int64_t batch, int64_t steps, double seconds,
                              uint32_t count)
{
    return (cg_cost_point){ { batch, steps, 1 },
                            { .median = seconds,
                              .low = seconds * 0.99,
                              .high = seconds * 1.01,
                              .error = 0.005,
                              .count = count },
                            0 };
}

cg_cost_store *store_rig_open(const char *user, const char *site)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_cost_store *store = NULL;

    if (cg_cost_store_open(user, site, &store, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return store;
}

void store_rig_put(cg_cost_store *store, const cg_cost_candidate *candidate,
                   cg_cost_point point)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cg_cost_store_put(store, candidate, store_rig_lstm, CG_BACK_TO_BACK,
                          &point, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
}

/* The only point, or fails. */
cg_cost_point store_rig_only(cg_cost_store *store,
                             const cg_cost_candidate *candidate)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_cost_point *points = NULL, point;
    size_t count = 0;

    if (cg_cost_store_points(store, candidate, store_rig_lstm, CG_BACK_TO_BACK,
                             &points, &count, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(count, 1);
    point = points[0];
    free(points);
    return point;
}

size_t store_rig_count(cg_cost_store *store, const cg_cost_candidate *candidate,
                       const char *structure, cg_regime regime)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_cost_point *points = NULL;
    size_t count = 0;

    if (cg_cost_store_points(store, candidate, structure, regime, &points,
                             &count, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    free(points);
    return count;
}

char *store_rig_export(cg_cost_store *store)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    assert_int_equal(cg_cost_store_export(store, stream, NULL), CELLGATE_OK);
    fclose(stream);
    return text;
}

cellgate_status store_rig_import(cg_cost_store *store, const char *text,
                                 size_t *rows, cellgate_error *error)
{
    FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    cellgate_status status =
        cg_cost_store_import(store, stream, "fleet.txt", rows, error);

    fclose(stream);
    return status;
}
