/* SPDX-License-Identifier: Apache-2.0 */
/* Putting what was measured into a store: one transaction each. */
#include "config.h"

#include "runtime/cost/store_file.h"

/* ---- Writing ------------------------------------------------------------ */

/* Rows of the candidate and of the structure, within a transaction. */
bool cg_cost_store_name_both(sqlite3 *file, const cg_cost_candidate *candidate,
                             const char *structure)
{
    sqlite3_stmt *statement = cg_cost_store_prepare(
        file,
        "INSERT INTO candidate (plugin, build, identity, settings, variant,"
        " numeric, host, device) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        " ON CONFLICT DO UPDATE SET device = excluded.device",
        candidate, candidate->device);

    if (!cg_cost_store_finish(statement))
        return false;
    statement = NULL;
    if (sqlite3_prepare_v2(file,
                           "INSERT OR IGNORE INTO structure (text) VALUES (?1)",
                           -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_text(statement, 1, structure, -1, SQLITE_STATIC) !=
            SQLITE_OK) {
        sqlite3_finalize(statement);
        return false;
    }
    return cg_cost_store_finish(statement);
}

bool cg_cost_store_put_point(sqlite3 *file, const cg_cost_candidate *candidate,
                             const char *structure, cg_regime regime,
                             const cg_cost_point *point)
{
    const cg_summary *summary = &point->summary;
    sqlite3_stmt *put = cg_cost_store_prepare(
        file,
        "INSERT OR REPLACE INTO cost SELECT c.id, s.id, ?9, ?10, ?11, ?12,"
        " ?13, ?14, ?15, ?16, ?17, ?18 " CG_BOTH,
        candidate, structure);

    if (put == NULL || sqlite3_bind_int(put, 9, (int)regime) != SQLITE_OK ||
        sqlite3_bind_int64(put, 10, point->shape.batch) != SQLITE_OK ||
        sqlite3_bind_int64(put, 11, point->shape.steps) != SQLITE_OK ||
        sqlite3_bind_int64(put, 12, cg_cost_store_fill(point->shape.fill)) !=
            SQLITE_OK ||
        sqlite3_bind_double(put, 13, summary->median) != SQLITE_OK ||
        sqlite3_bind_double(put, 14, summary->low) != SQLITE_OK ||
        sqlite3_bind_double(put, 15, summary->high) != SQLITE_OK ||
        sqlite3_bind_double(put, 16, summary->error) != SQLITE_OK ||
        sqlite3_bind_int64(put, 17, summary->count) != SQLITE_OK ||
        sqlite3_bind_int64(put, 18, cg_cost_dated(point->at)) != SQLITE_OK) {
        sqlite3_finalize(put);
        return false;
    }
    return cg_cost_store_finish(put);
}

cellgate_status cg_cost_store_keep(cg_cost_store *store,
                                   const cg_cost_candidate *candidate,
                                   const char *structure,
                                   cg_cost_store_adder *add, const void *what,
                                   const char *doing, cellgate_error *error)
{
    sqlite3 *file;
    bool done;

    cg_cost_store_make_file(store);
    file = store->user;
    done = cg_cost_store_begin(file) &&
           cg_cost_store_name_both(file, candidate, structure) &&
           add(file, candidate, structure, what);
    return cg_cost_store_settle(file, done, doing, error);
}

/* A point, and what its measuring has shown to be no limit. */
typedef struct cost {
    cg_regime regime;
    const cg_cost_point *point;
} cost;

static bool add_cost(sqlite3 *file, const cg_cost_candidate *candidate,
                     const char *structure, const void *what)
{
    const cost *of = what;

    return cg_cost_store_put_point(file, candidate, structure, of->regime,
                                   of->point) &&
           cg_cost_store_lift_limits(file, candidate, structure,
                                     &of->point->shape);
}

cellgate_status cg_cost_store_put(cg_cost_store *store,
                                  const cg_cost_candidate *candidate,
                                  const char *structure, cg_regime regime,
                                  const cg_cost_point *point,
                                  cellgate_error *error)
{
    const cost what = { regime, point };

    return cg_cost_store_keep(store, candidate, structure, add_cost, &what,
                              "keeping a cost", error);
}

static bool add_verdict(sqlite3 *file, const cg_cost_candidate *candidate,
                        const char *structure, const void *what)
{
    const cg_cost_verdict *verdict = what;
    sqlite3_stmt *put = cg_cost_store_prepare(
        file,
        "INSERT OR REPLACE INTO verdict SELECT c.id, s.id, ?9,"
        " ?10, ?11 " CG_BOTH,
        candidate, structure);

    if (put == NULL || sqlite3_bind_int(put, 9, verdict->right) != SQLITE_OK ||
        sqlite3_bind_double(put, 10, verdict->worst) != SQLITE_OK ||
        sqlite3_bind_int64(put, 11, cg_cost_dated(verdict->at)) != SQLITE_OK) {
        sqlite3_finalize(put);
        return false;
    }
    return cg_cost_store_finish(put);
}

cellgate_status cg_cost_store_put_verdict(cg_cost_store *store,
                                          const cg_cost_candidate *candidate,
                                          const char *structure,
                                          const cg_cost_verdict *verdict,
                                          cellgate_error *error)
{
    return cg_cost_store_keep(store, candidate, structure, add_verdict, verdict,
                              "keeping a verdict", error);
}
