/* SPDX-License-Identifier: Apache-2.0 */
/* What a store keeps beside costs: what is done once, and where memory ends. */
#include "config.h"

#include <stdlib.h>

#include "runtime/cost/store_file.h"

/* ---- What is done once -------------------------------------------------- */

static cellgate_status read_once(sqlite3 *file,
                                 const cg_cost_candidate *candidate,
                                 const char *structure, cg_cost_once *once,
                                 cellgate_error *error)
{
    sqlite3_stmt *row;
    int step;

    if (!cg_cost_store_has_facts(file))
        return CELLGATE_OK;
    row = cg_cost_store_prepare(
        file,
        "SELECT seconds, o.at FROM once o JOIN candidate c ON "
        "c.id = o.candidate JOIN structure s ON s.id = o.structure "
        "WHERE " CG_CANDIDATE_IS " AND s.text = ?8",
        candidate, structure);
    step = row != NULL ? sqlite3_step(row) : SQLITE_ERROR;
    if (step == SQLITE_ROW) {
        const double seconds = sqlite3_column_double(row, 0);

        if (cg_cost_store_sane_seconds(seconds))
            *once = (cg_cost_once){ seconds, sqlite3_column_int64(row, 1) };
    }
    sqlite3_finalize(row);
    return step == SQLITE_ROW || step == SQLITE_DONE
               ? CELLGATE_OK
               : cg_cost_store_fail(file, "reading what is done once", error);
}

cellgate_status cg_cost_store_once(cg_cost_store *store,
                                   const cg_cost_candidate *candidate,
                                   const char *structure, cg_cost_once *once,
                                   cellgate_error *error)
{
    cg_cost_once read = { 0, 0 };
    cellgate_status status =
        read_once(store->user, candidate, structure, &read, error);

    if (status == CELLGATE_OK && read.seconds == 0 && store->site != NULL)
        status = read_once(store->site, candidate, structure, &read, error);
    if (status == CELLGATE_OK)
        *once = read;
    return status;
}

bool cg_cost_store_add_once(sqlite3 *file, const cg_cost_candidate *candidate,
                            const char *structure, const cg_cost_once *once)
{
    sqlite3_stmt *put = cg_cost_store_prepare(
        file, "INSERT OR REPLACE INTO once SELECT c.id, s.id, ?9, ?10 " CG_BOTH,
        candidate, structure);

    if (put == NULL ||
        sqlite3_bind_double(put, 9, once->seconds) != SQLITE_OK ||
        sqlite3_bind_int64(put, 10, cg_cost_dated(once->at)) != SQLITE_OK) {
        sqlite3_finalize(put);
        return false;
    }
    return cg_cost_store_finish(put);
}

static bool add_once(sqlite3 *file, const cg_cost_candidate *candidate,
                     const char *structure, const void *what)
{
    return cg_cost_store_add_once(file, candidate, structure, what);
}

cellgate_status cg_cost_store_put_once(cg_cost_store *store,
                                       const cg_cost_candidate *candidate,
                                       const char *structure,
                                       const cg_cost_once *once,
                                       cellgate_error *error)
{
    return cg_cost_store_keep(store, candidate, structure, add_once, once,
                              "keeping what is done once", error);
}

/* ---- Where memory ends -------------------------------------------------- */

static bool add(cg_cost_limit **limits, size_t *count, sqlite3_stmt *row)
{
    cg_cost_limit *grown = realloc(*limits, (*count + 1) * sizeof *grown);

    if (grown == NULL)
        return false;
    *limits = grown;
    grown[(*count)++] = (cg_cost_limit){ sqlite3_column_int64(row, 0),
                                         sqlite3_column_int64(row, 1),
                                         sqlite3_column_int64(row, 2) };
    return true;
}

static cellgate_status read_limits(sqlite3 *file,
                                   const cg_cost_candidate *candidate,
                                   const char *structure,
                                   cg_cost_limit **limits, size_t *count,
                                   cellgate_error *error)
{
    bool memory = true;
    int step = SQLITE_ERROR;
    sqlite3_stmt *rows;

    if (!cg_cost_store_has_facts(file))
        return CELLGATE_OK;
    rows = cg_cost_store_prepare(
        file,
        "SELECT batch, steps, l.at FROM limits l JOIN candidate c ON "
        "c.id = l.candidate JOIN structure s ON s.id = l.structure "
        "WHERE " CG_CANDIDATE_IS " AND s.text = ?8 AND batch >= 1 AND "
        "steps >= 0 ORDER BY batch, steps",
        candidate, structure);
    while (rows != NULL && memory && (step = sqlite3_step(rows)) == SQLITE_ROW)
        memory = add(limits, count, rows);
    sqlite3_finalize(rows);
    if (!memory)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for what was measured");
    return step == SQLITE_DONE
               ? CELLGATE_OK
               : cg_cost_store_fail(file, "reading limits of memory", error);
}

cellgate_status cg_cost_store_limits(cg_cost_store *store,
                                     const cg_cost_candidate *candidate,
                                     const char *structure,
                                     cg_cost_limit **limits, size_t *count,
                                     cellgate_error *error)
{
    cg_cost_limit *read = NULL;
    size_t found = 0;
    cellgate_status status =
        read_limits(store->user, candidate, structure, &read, &found, error);

    if (status == CELLGATE_OK && store->site != NULL)
        status = read_limits(store->site, candidate, structure, &read, &found,
                             error);
    if (status != CELLGATE_OK) {
        free(read);
        return status;
    }
    *limits = read;
    *count = found;
    return CELLGATE_OK;
}

bool cg_cost_store_add_limit(sqlite3 *file, const cg_cost_candidate *candidate,
                             const char *structure, const cg_cost_limit *limit)
{
    sqlite3_stmt *put = cg_cost_store_prepare(
        file,
        "INSERT OR REPLACE INTO limits SELECT c.id, s.id, ?9, ?10, "
        "?11 " CG_BOTH,
        candidate, structure);

    if (put == NULL || sqlite3_bind_int64(put, 9, limit->batch) != SQLITE_OK ||
        sqlite3_bind_int64(put, 10, limit->steps) != SQLITE_OK ||
        sqlite3_bind_int64(put, 11, cg_cost_dated(limit->at)) != SQLITE_OK) {
        sqlite3_finalize(put);
        return false;
    }
    return cg_cost_store_finish(put);
}

bool cg_cost_store_lift_limits(sqlite3 *file,
                               const cg_cost_candidate *candidate,
                               const char *structure,
                               const cg_cost_shape *shape)
{
    sqlite3_stmt *lift;

    if (!cg_cost_store_has_facts(file))
        return true;
    lift = cg_cost_store_prepare(
        file,
        "DELETE FROM limits WHERE (candidate, structure) IN "
        "(SELECT c.id, s.id " CG_BOTH ") AND batch <= ?9 AND steps <= ?10",
        candidate, structure);
    if (lift == NULL ||
        sqlite3_bind_int64(lift, 9, shape->batch) != SQLITE_OK ||
        sqlite3_bind_int64(lift, 10, shape->steps) != SQLITE_OK) {
        sqlite3_finalize(lift);
        return false;
    }
    return cg_cost_store_finish(lift);
}

static bool add_limit(sqlite3 *file, const cg_cost_candidate *candidate,
                      const char *structure, const void *what)
{
    return cg_cost_store_add_limit(file, candidate, structure, what);
}

cellgate_status cg_cost_store_put_limit(cg_cost_store *store,
                                        const cg_cost_candidate *candidate,
                                        const char *structure,
                                        const cg_cost_limit *limit,
                                        cellgate_error *error)
{
    return cg_cost_store_keep(store, candidate, structure, add_limit, limit,
                              "keeping a limit of memory", error);
}
