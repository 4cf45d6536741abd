/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a store do not hold any more, and why. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/cost/store_file.h"

/* ---- What is stale ------------------------------------------------------ */

/* How many fields of a stored candidate are those of another one; *differs: the
   first that is not. The order of the fields goes before their number. */
static int likeness(const char *const *stored, const cg_cost_candidate *other,
                    int *differs)
{
    const char *texts[CG_CANDIDATE_FIELDS];
    int same = 0;

    *differs = -1;
    cg_candidate_texts(other, texts);
    for (int i = 0; i < CG_CANDIDATE_FIELDS; i++)
        if (strcmp(stored[i], texts[i]) == 0)
            same++;
        else if (*differs < 0)
            *differs = i;
    return same;
}

static void write_stale(FILE *stream, const char *device,
                        const char *const *stored, int64_t rows,
                        const cg_cost_candidate *closest, int differs)
{
    const char *texts[CG_CANDIDATE_FIELDS];

    fprintf(stream, "%s%s%s: %" PRId64 " rows unused: ", device,
            stored[4][0] != '\0' ? " " : "", stored[4], rows);
    if (closest == NULL) {
        fprintf(stream, "there is no such device or variant now\n");
        return;
    }
    cg_candidate_texts(closest, texts);
    fprintf(stream, "%s was \"%s\", and is \"%s\"\n",
            cg_candidate_fields[differs], stored[differs], texts[differs]);
}

/* One stored candidate; the number of its rows if it is stale. */
static int64_t judge(sqlite3_stmt *row, const cg_cost_candidate *candidates,
                     size_t count, FILE *stream)
{
    const char *stored[CG_CANDIDATE_FIELDS];
    const cg_cost_candidate *closest = NULL;
    const int64_t rows = sqlite3_column_int64(row, 8);
    int most = -1, differs = -1;

    for (int i = 0; i < CG_CANDIDATE_FIELDS; i++)
        stored[i] = cg_cost_store_text(row, i + 1);
    for (size_t i = 0; i < count; i++) {
        int at, same = likeness(stored, &candidates[i], &at);

        if (same == CG_CANDIDATE_FIELDS)
            return 0;
        if (strcmp(stored[4], candidates[i].variant) == 0 && same > most) {
            most = same;
            differs = at;
            closest = &candidates[i];
        }
    }
    write_stale(stream, cg_cost_store_text(row, 0), stored, rows, closest,
                differs);
    return rows;
}

#define DIFFERENCES(rows)                                                      \
    "SELECT device, plugin, build, identity, settings, variant, numeric, "     \
    "host, (SELECT count(*) FROM cost WHERE candidate = id)" rows              \
    " FROM candidate ORDER BY id"

static const char costs_alone[] = DIFFERENCES("");
static const char all_rows[] =
    DIFFERENCES(" + (SELECT count(*) FROM once WHERE candidate = id)"
                " + (SELECT count(*) FROM limits WHERE candidate = id)");

static cellgate_status diff_file(sqlite3 *file,
                                 const cg_cost_candidate *candidates,
                                 size_t count, FILE *stream, size_t *unused,
                                 cellgate_error *error)
{
    sqlite3_stmt *rows = NULL;
    int step = SQLITE_ERROR;

    if (sqlite3_prepare_v2(
            file, cg_cost_store_has_facts(file) ? all_rows : costs_alone, -1,
            &rows, NULL) == SQLITE_OK)
        while ((step = sqlite3_step(rows)) == SQLITE_ROW)
            *unused += (size_t)judge(rows, candidates, count, stream);
    sqlite3_finalize(rows);
    return step == SQLITE_DONE ? CELLGATE_OK
                               : cg_cost_store_fail(file, "comparing", error);
}

cellgate_status cg_cost_store_diff(cg_cost_store *store,
                                   const cg_cost_candidate *candidates,
                                   size_t count, FILE *stream, size_t *unused,
                                   cellgate_error *error)
{
    size_t all = 0;
    cellgate_status status =
        diff_file(store->user, candidates, count, stream, &all, error);

    if (status == CELLGATE_OK && store->site != NULL)
        status = diff_file(store->site, candidates, count, stream, &all, error);
    if (status == CELLGATE_OK)
        *unused = all;
    return status;
}
