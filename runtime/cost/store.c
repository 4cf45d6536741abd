/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/cost/store_file.h"

/* What no run takes, and no samples are apart: 30 years, and e to the 1000. */
#define SECONDS_MOST 1e9
#define ERROR_MOST 1e3

const char *const cg_candidate_fields[CG_CANDIDATE_FIELDS] = {
    "plugin", "build", "identity", "settings", "variant", "numeric", "host"
};

void cg_candidate_texts(const cg_cost_candidate *candidate,
                        const char *texts[CG_CANDIDATE_FIELDS])
{
    texts[0] = candidate->plugin;
    texts[1] = candidate->build;
    texts[2] = candidate->identity;
    texts[3] = candidate->settings;
    texts[4] = candidate->variant;
    texts[5] = candidate->numeric;
    texts[6] = candidate->host;
}

const char *cg_regime_name(cg_regime regime)
{
    return regime == CG_SPACED ? "spaced" : "back-to-back";
}

/* ---- Opening ------------------------------------------------------------ */

cellgate_status cg_cost_store_open(const char *user_path, const char *site_path,
                                   cg_cost_store **store, cellgate_error *error)
{
    cg_cost_store *made = calloc(1, sizeof *made);
    cellgate_status status;

    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for the calibration store");
    status = cg_cost_store_open_files(made, user_path, site_path, error);
    if (status != CELLGATE_OK) {
        cg_cost_store_close(made);
        return status;
    }
    *store = made;
    return CELLGATE_OK;
}

void cg_cost_store_close(cg_cost_store *store)
{
    if (store == NULL)
        return;
    sqlite3_close(store->user);
    sqlite3_close(store->site);
    free(store->pending);
    for (size_t i = 0; i < store->note_count; i++)
        free(store->notes[i]);
    free(store);
}

const char *cg_cost_store_note(const cg_cost_store *store, size_t index)
{
    return index < store->note_count ? store->notes[index] : NULL;
}

bool cg_cost_store_keeps(const cg_cost_store *store)
{
    return store->keeps;
}

/* ---- Statements --------------------------------------------------------- */

sqlite3_stmt *cg_cost_store_prepare(sqlite3 *file, const char *text,
                                    const cg_cost_candidate *candidate,
                                    const char *structure)
{
    const char *texts[CG_CANDIDATE_FIELDS];
    sqlite3_stmt *statement = NULL;
    bool bound =
        sqlite3_prepare_v2(file, text, -1, &statement, NULL) == SQLITE_OK;

    cg_candidate_texts(candidate, texts);
    for (int i = 0; bound && i < CG_CANDIDATE_FIELDS; i++)
        bound = sqlite3_bind_text(statement, i + 1, texts[i], -1,
                                  SQLITE_STATIC) == SQLITE_OK;
    if (bound && structure != NULL)
        bound = sqlite3_bind_text(statement, CG_CANDIDATE_FIELDS + 1, structure,
                                  -1, SQLITE_STATIC) == SQLITE_OK;
    if (bound)
        return statement;
    sqlite3_finalize(statement);
    return NULL;
}

const char *cg_cost_store_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text != NULL ? text : "";
}

bool cg_cost_store_finish(sqlite3_stmt *statement)
{
    const bool done =
        statement != NULL && sqlite3_step(statement) == SQLITE_DONE;

    return sqlite3_finalize(statement) == SQLITE_OK && done;
}

int64_t cg_cost_store_fill(double fill)
{
    return llround(fill * 1000);
}

/* ---- Reading ------------------------------------------------------------ */

typedef struct list {
    cg_cost_point *points;
    size_t count, room;
} list;

static bool has(const list *of, const cg_cost_shape *shape)
{
    for (size_t i = 0; i < of->count; i++)
        if (of->points[i].shape.batch == shape->batch &&
            of->points[i].shape.steps == shape->steps &&
            cg_cost_store_fill(of->points[i].shape.fill) ==
                cg_cost_store_fill(shape->fill))
            return true;
    return false;
}

static bool add(list *of, const cg_cost_point *point)
{
    if (has(of, &point->shape))
        return true;
    if (of->count == of->room) {
        const size_t room = 2 * of->room + 16;
        cg_cost_point *points = realloc(of->points, room * sizeof *points);

        if (points == NULL)
            return false;
        of->points = points;
        of->room = room;
    }
    of->points[of->count++] = *point;
    return true;
}

bool cg_cost_store_sane_seconds(double seconds)
{
    return seconds > 0 && seconds <= SECONDS_MOST;
}

bool cg_cost_store_sane_shape(int64_t batch, int64_t steps)
{
    return batch >= 1 && batch <= INT32_MAX && steps >= 0 && steps <= INT32_MAX;
}

bool cg_cost_store_sane(const cg_cost_point *point)
{
    const cg_summary *summary = &point->summary;

    return cg_cost_store_sane_shape(point->shape.batch, point->shape.steps) &&
           point->shape.fill >= 0 && point->shape.fill <= 1 &&
           cg_cost_store_sane_seconds(summary->low) &&
           summary->low <= summary->median &&
           summary->median <= summary->high &&
           cg_cost_store_sane_seconds(summary->high) && summary->error >= 0 &&
           summary->error <= ERROR_MOST && summary->count >= 1;
}

/* False: nothing that was ever put looks like that row. */
static bool read_point(sqlite3_stmt *row, cg_cost_point *point)
{
    cg_summary *summary = &point->summary;

    point->shape.batch = sqlite3_column_int64(row, 0);
    point->shape.steps = sqlite3_column_int64(row, 1);
    point->shape.fill = (double)sqlite3_column_int64(row, 2) / 1000;
    summary->median = sqlite3_column_double(row, 3);
    summary->low = sqlite3_column_double(row, 4);
    summary->high = sqlite3_column_double(row, 5);
    summary->error = sqlite3_column_double(row, 6);
    summary->count = (uint32_t)sqlite3_column_int64(row, 7);
    point->at = sqlite3_column_int64(row, 8);
    return cg_cost_store_sane(point);
}

static const char select_points[] =
    "SELECT batch, steps, fill, median, low, high, error, count, cost.at "
    "FROM cost JOIN candidate c ON c.id = cost.candidate "
    "JOIN structure s ON s.id = cost.structure WHERE " CG_CANDIDATE_IS
    " AND s.text = ?8 AND regime = ?9 ORDER BY batch, steps, fill";

static cellgate_status read_points(sqlite3 *file,
                                   const cg_cost_candidate *candidate,
                                   const char *structure, cg_regime regime,
                                   list *into, cellgate_error *error)
{
    sqlite3_stmt *rows =
        cg_cost_store_prepare(file, select_points, candidate, structure);
    bool memory = true;
    int step = SQLITE_ERROR;

    if (rows != NULL && sqlite3_bind_int(rows, 9, (int)regime) == SQLITE_OK)
        while (memory && (step = sqlite3_step(rows)) == SQLITE_ROW) {
            cg_cost_point point = { .shape = { 0 } };

            if (read_point(rows, &point))
                memory = add(into, &point);
        }
    sqlite3_finalize(rows);
    if (!memory)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for what was measured");
    return step == SQLITE_DONE
               ? CELLGATE_OK
               : cg_cost_store_fail(file, "reading costs", error);
}

cellgate_status cg_cost_store_points(cg_cost_store *store,
                                     const cg_cost_candidate *candidate,
                                     const char *structure, cg_regime regime,
                                     cg_cost_point **points, size_t *count,
                                     cellgate_error *error)
{
    list read = { 0 };
    cellgate_status status =
        read_points(store->user, candidate, structure, regime, &read, error);

    if (status == CELLGATE_OK && store->site != NULL)
        status = read_points(store->site, candidate, structure, regime, &read,
                             error);
    if (status != CELLGATE_OK) {
        free(read.points);
        return status;
    }
    *points = read.points;
    *count = read.count;
    return CELLGATE_OK;
}

static bool visit_rows(sqlite3_stmt *rows, cg_cost_store_visitor visit,
                       void *context, cellgate_status *status)
{
    int step = SQLITE_DONE;

    while (*status == CELLGATE_OK && (step = sqlite3_step(rows)) == SQLITE_ROW)
        *status = visit(context, cg_cost_store_text(rows, 0),
                        (size_t)sqlite3_column_int64(rows, 1));
    return *status != CELLGATE_OK || step == SQLITE_DONE;
}

cellgate_status cg_cost_store_structures(cg_cost_store *store,
                                         const cg_cost_candidate *candidate,
                                         cg_regime regime,
                                         cg_cost_store_visitor visit,
                                         void *context, cellgate_error *error)
{
    sqlite3 *const files[] = { store->user, store->site };
    cellgate_status status = CELLGATE_OK;

    for (int i = 0; status == CELLGATE_OK && i < 2 && files[i] != NULL; i++) {
        sqlite3_stmt *rows = cg_cost_store_prepare(
            files[i],
            "SELECT s.text, count(*) FROM cost JOIN candidate c ON "
            "c.id = cost.candidate JOIN structure s ON s.id = cost.structure "
            "WHERE " CG_CANDIDATE_IS
            " AND regime = ?8 GROUP BY s.id ORDER BY s.text",
            candidate, NULL);
        bool done = rows != NULL &&
                    sqlite3_bind_int(rows, 8, (int)regime) == SQLITE_OK &&
                    visit_rows(rows, visit, context, &status);

        sqlite3_finalize(rows);
        if (!done)
            return cg_cost_store_fail(files[i], "listing structures", error);
    }
    return status;
}

static cellgate_status read_verdict(sqlite3 *file,
                                    const cg_cost_candidate *candidate,
                                    const char *structure,
                                    cg_cost_verdict *verdict,
                                    cellgate_error *error)
{
    sqlite3_stmt *row = cg_cost_store_prepare(
        file,
        "SELECT correct, worst, v.at FROM verdict v JOIN candidate c ON "
        "c.id = v.candidate JOIN structure s ON s.id = v.structure "
        "WHERE " CG_CANDIDATE_IS " AND s.text = ?8",
        candidate, structure);
    const int step = row != NULL ? sqlite3_step(row) : SQLITE_ERROR;

    if (step == SQLITE_ROW) {
        verdict->checked = true;
        verdict->right = sqlite3_column_int(row, 0) == 1;
        verdict->worst = sqlite3_column_double(row, 1);
        verdict->at = sqlite3_column_int64(row, 2);
    }
    sqlite3_finalize(row);
    return step == SQLITE_ROW || step == SQLITE_DONE
               ? CELLGATE_OK
               : cg_cost_store_fail(file, "reading a verdict", error);
}

cellgate_status cg_cost_store_verdict(cg_cost_store *store,
                                      const cg_cost_candidate *candidate,
                                      const char *structure,
                                      cg_cost_verdict *verdict,
                                      cellgate_error *error)
{
    cg_cost_verdict read = { .checked = false };
    cellgate_status status =
        read_verdict(store->user, candidate, structure, &read, error);

    if (status == CELLGATE_OK && !read.checked && store->site != NULL)
        status = read_verdict(store->site, candidate, structure, &read, error);
    if (status == CELLGATE_OK)
        *verdict = read;
    return status;
}

static cellgate_status ask_known(sqlite3 *file, const char *identity,
                                 bool *known, cellgate_error *error)
{
    sqlite3_stmt *row = NULL;
    int step = SQLITE_ERROR;

    if (sqlite3_prepare_v2(file,
                           "SELECT 1 FROM candidate c JOIN cost ON "
                           "cost.candidate = c.id WHERE identity = ?1 LIMIT 1",
                           -1, &row, NULL) == SQLITE_OK &&
        sqlite3_bind_text(row, 1, identity, -1, SQLITE_STATIC) == SQLITE_OK)
        step = sqlite3_step(row);
    sqlite3_finalize(row);
    *known = step == SQLITE_ROW;
    return step == SQLITE_ROW || step == SQLITE_DONE
               ? CELLGATE_OK
               : cg_cost_store_fail(file, "looking for a device", error);
}

cellgate_status cg_cost_store_knows(cg_cost_store *store, const char *identity,
                                    bool *known, cellgate_error *error)
{
    bool found = false;
    cellgate_status status = ask_known(store->user, identity, &found, error);

    if (status == CELLGATE_OK && !found && store->site != NULL)
        status = ask_known(store->site, identity, &found, error);
    if (status == CELLGATE_OK)
        *known = found;
    return status;
}
