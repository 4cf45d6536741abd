/* SPDX-License-Identifier: Apache-2.0 */
/* A store as text: out and in. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cost/store_file.h"

/* The first line, without its newline. What is done once and limits of memory
   came with 2: rows with these words for a regime, whose other fields are as
   those of a cost of one sample, or all 0. */
static const char title[] =
    "# cellgate calibration 2: device plugin build identity settings variant "
    "numeric host structure regime batch steps fill median low high error "
    "count at";

#define ONCE "once"
#define LIMIT "no-memory"

#define FIELDS 19
#define TEXT_FIELDS 9 /* device, seven of the candidate, structure */

/* ---- Out ---------------------------------------------------------------- */

static const char select_all[] =
    "SELECT c.device, c.plugin, c.build, c.identity, c.settings, c.variant, "
    "c.numeric, c.host, s.text, regime, batch, steps, fill, median, low, high, "
    "error, count, cost.at FROM cost JOIN candidate c ON c.id = cost.candidate "
    "JOIN structure s ON s.id = cost.structure "
    "ORDER BY c.id, s.id, regime, batch, steps, fill";

/* As rows of the same fields; a regime below 0 stands for its word. */
#define WHOSE                                                                  \
    "SELECT c.device, c.plugin, c.build, c.identity, c.settings, c.variant, "  \
    "c.numeric, c.host, s.text, "
#define IN(table)                                                              \
    " FROM " table " f JOIN candidate c ON c.id = f.candidate "                \
    "JOIN structure s ON s.id = f.structure ORDER BY c.id, s.id"

static const char select_once[] =
    WHOSE "-1, 1, 0, 1000, seconds, seconds, seconds, 0, 1, f.at" IN("once");
static const char select_limits[] = WHOSE
    "-2, batch, steps, 1000, 0, 0, 0, 0, 0, f.at" IN("limits") ", batch, steps";

static const char *word_of(int regime)
{
    return regime == -1   ? ONCE
           : regime == -2 ? LIMIT
                          : cg_regime_name((cg_regime)regime);
}

/* Numbers with all of their digits, so that import gives the same bits. */
static void write_row(sqlite3_stmt *row, FILE *stream)
{
    for (int i = 0; i < TEXT_FIELDS; i++)
        fprintf(stream, "%s\t", cg_cost_store_text(row, i));
    fprintf(stream, "%s\t%lld\t%lld\t%lld", word_of(sqlite3_column_int(row, 9)),
            (long long)sqlite3_column_int64(row, 10),
            (long long)sqlite3_column_int64(row, 11),
            (long long)sqlite3_column_int64(row, 12));
    for (int i = 13; i < 17; i++)
        fprintf(stream, "\t%.17g", sqlite3_column_double(row, i));
    fprintf(stream, "\t%lld\t%lld\n", (long long)sqlite3_column_int64(row, 17),
            (long long)sqlite3_column_int64(row, 18));
}

static cellgate_status write_rows(sqlite3 *file, const char *select,
                                  FILE *stream, cellgate_error *error)
{
    sqlite3_stmt *rows = NULL;
    int step = SQLITE_ERROR;

    if (sqlite3_prepare_v2(file, select, -1, &rows, NULL) == SQLITE_OK)
        while ((step = sqlite3_step(rows)) == SQLITE_ROW)
            write_row(rows, stream);
    sqlite3_finalize(rows);
    return step == SQLITE_DONE ? CELLGATE_OK
                               : cg_cost_store_fail(file, "exporting", error);
}

static cellgate_status write_file(sqlite3 *file, FILE *stream,
                                  cellgate_error *error)
{
    cellgate_status status = write_rows(file, select_all, stream, error);

    if (status != CELLGATE_OK || !cg_cost_store_has_facts(file))
        return status;
    status = write_rows(file, select_once, stream, error);
    return status == CELLGATE_OK
               ? write_rows(file, select_limits, stream, error)
               : status;
}

cellgate_status cg_cost_store_export(cg_cost_store *store, FILE *stream,
                                     cellgate_error *error)
{
    cellgate_status status;

    fprintf(stream, "%s\n", title);
    status = write_file(store->user, stream, error);
    if (status == CELLGATE_OK && store->site != NULL)
        status = write_file(store->site, stream, error);
    if (status == CELLGATE_OK && (fflush(stream) != 0 || ferror(stream)))
        return cellgate_fail(error, CELLGATE_IO,
                             "the calibration cannot be written: %s",
                             strerror(errno));
    return status;
}

/* ---- In ----------------------------------------------------------------- */

typedef enum row_kind { A_COST, DONE_ONCE, A_LIMIT } row_kind;

typedef struct row {
    row_kind kind;
    cg_cost_candidate candidate;
    const char *structure;
    cg_regime regime;
    cg_cost_point point; /* of a limit the shape and the time alone */
} row;

/* Splits a line at its tabs, in place; the number of fields. */
static int split(char *line, char *fields[FIELDS])
{
    int count = 0;

    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; at != NULL && count <= FIELDS; count++) {
        if (count < FIELDS)
            fields[count] = at;
        at = strchr(at, '\t');
        if (at != NULL)
            *at++ = '\0';
    }
    return count;
}

static bool whole(const char *text, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool real(const char *text, double *number)
{
    char *end;

    *number = strtod(text, &end);
    return end != text && *end == '\0';
}

static bool read_limit(char *const fields[FIELDS], cg_cost_point *point)
{
    return whole(fields[10], &point->shape.batch) &&
           whole(fields[11], &point->shape.steps) &&
           whole(fields[18], &point->at) && point->at >= 0 &&
           cg_cost_store_sane_shape(point->shape.batch, point->shape.steps);
}

static bool read_numbers(char *const fields[FIELDS], cg_cost_point *point)
{
    cg_summary *summary = &point->summary;
    int64_t fill, count;

    if (!whole(fields[10], &point->shape.batch) ||
        !whole(fields[11], &point->shape.steps) || !whole(fields[12], &fill) ||
        !real(fields[13], &summary->median) ||
        !real(fields[14], &summary->low) || !real(fields[15], &summary->high) ||
        !real(fields[16], &summary->error) || !whole(fields[17], &count) ||
        !whole(fields[18], &point->at) || point->at < 0 || count < 1 ||
        count > UINT32_MAX)
        return false;
    point->shape.fill = (double)fill / 1000;
    summary->count = (uint32_t)count;
    return cg_cost_store_sane(point);
}

static bool read_kind(const char *text, row_kind *kind, cg_regime *regime)
{
    *kind = strcmp(text, ONCE) == 0    ? DONE_ONCE
            : strcmp(text, LIMIT) == 0 ? A_LIMIT
                                       : A_COST;
    if (*kind != A_COST)
        return true;
    for (int i = 0; i < CG_REGIMES; i++)
        if (strcmp(text, cg_regime_name((cg_regime)i)) == 0) {
            *regime = (cg_regime)i;
            return true;
        }
    return false;
}

static bool read_row(char *line, row *to)
{
    char *fields[FIELDS];

    if (split(line, fields) != FIELDS)
        return false;
    to->candidate = (cg_cost_candidate){ .device = fields[0],
                                         .plugin = fields[1],
                                         .build = fields[2],
                                         .identity = fields[3],
                                         .settings = fields[4],
                                         .variant = fields[5],
                                         .numeric = fields[6],
                                         .host = fields[7] };
    to->structure = fields[8];
    if (!read_kind(fields[9], &to->kind, &to->regime))
        return false;
    return to->kind == A_LIMIT ? read_limit(fields, &to->point)
                               : read_numbers(fields, &to->point);
}

#define KNOWN(what, table)                                                     \
    "SELECT " what " FROM " table " f JOIN candidate c ON "                    \
    "c.id = f.candidate JOIN structure s ON s.id = f.structure "               \
    "WHERE " CG_CANDIDATE_IS " AND s.text = ?8"

static const char *const select_known[] = {
    [A_COST] = KNOWN("count, f.at", "cost") " AND batch = ?9 AND steps = ?10 "
                                            "AND regime = ?11 AND fill = ?12",
    [DONE_ONCE] = KNOWN("0, f.at", "once"),
    [A_LIMIT] = KNOWN("0, f.at", "limits") " AND batch = ?9 AND steps = ?10",
};

/* How far a row is to be believed: a cost of more samples more, and of equal
   ones what is of later. */
typedef struct weight {
    int64_t samples, at;
} weight;

/* Of what the file has for that already; {0, 0}: nothing. */
static weight known_weight(sqlite3 *file, const row *of)
{
    const int64_t keys[] = { of->point.shape.batch, of->point.shape.steps,
                             (int64_t)of->regime,
                             cg_cost_store_fill(of->point.shape.fill) };
    sqlite3_stmt *find = cg_cost_store_prepare(file, select_known[of->kind],
                                               &of->candidate, of->structure);
    const int last = find != NULL ? sqlite3_bind_parameter_count(find) : 0;
    bool bound = find != NULL;
    weight known = { 0, 0 };

    for (int at = 9; bound && at <= last; at++)
        bound = sqlite3_bind_int64(find, at, keys[at - 9]) == SQLITE_OK;
    if (bound && sqlite3_step(find) == SQLITE_ROW)
        known = (weight){ sqlite3_column_int64(find, 0),
                          sqlite3_column_int64(find, 1) };
    sqlite3_finalize(find);
    return known;
}

static bool put_row(sqlite3 *file, const row *of)
{
    const cg_cost_once once = { of->point.summary.median, of->point.at };
    const cg_cost_limit limit = { of->point.shape.batch, of->point.shape.steps,
                                  of->point.at };

    if (of->kind == DONE_ONCE)
        return cg_cost_store_add_once(file, &of->candidate, of->structure,
                                      &once);
    if (of->kind == A_LIMIT)
        return cg_cost_store_add_limit(file, &of->candidate, of->structure,
                                       &limit);
    return cg_cost_store_put_point(file, &of->candidate, of->structure,
                                   of->regime, &of->point);
}

static bool take_row(sqlite3 *file, const row *of)
{
    const weight known = known_weight(file, of);
    const int64_t samples = of->kind == A_COST ? of->point.summary.count : 0;

    if (known.samples > samples ||
        (known.samples == samples && known.at > of->point.at))
        return true;
    return cg_cost_store_name_both(file, &of->candidate, of->structure) &&
           put_row(file, of);
}

/* The lines after the first one. */
static cellgate_status take_rows(sqlite3 *file, FILE *stream, const char *name,
                                 size_t *rows, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    size_t room = 0, number = 1;
    char *line = NULL;

    while (status == CELLGATE_OK && getline(&line, &room, stream) >= 0) {
        row read = { .kind = A_COST };

        number++;
        if (line[0] == '#' || line[strspn(line, "\r\n")] == '\0')
            continue;
        if (!read_row(line, &read))
            status = cellgate_fail(error, CELLGATE_BAD_FILE,
                                   "%s:%zu: this is not a row of %d fields "
                                   "that a calibration can have",
                                   name, number, FIELDS);
        else if (!take_row(file, &read))
            status = cg_cost_store_fail(file, "importing", error);
        else
            ++*rows;
    }
    free(line);
    if (status == CELLGATE_OK && ferror(stream))
        status = cellgate_fail(error, CELLGATE_IO, "%s cannot be read", name);
    return status;
}

static cellgate_status check_title(FILE *stream, const char *name,
                                   cellgate_error *error)
{
    const size_t version = strlen("# cellgate calibration ");
    size_t room = 0;
    char *line = NULL;
    bool right = getline(&line, &room, stream) >= 0 &&
                 strncmp(line, title, version) == 0 &&
                 (line[version] == '1' || line[version] == '2') &&
                 line[version + 1] == ':';

    free(line);
    return right ? CELLGATE_OK
                 : cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "%s:1: this is not what \"cellgate "
                                 "calibrate --export\" writes",
                                 name);
}

cellgate_status cg_cost_store_import(cg_cost_store *store, FILE *stream,
                                     const char *name, size_t *rows,
                                     cellgate_error *error)
{
    cellgate_status status = check_title(stream, name, error);
    size_t count = 0;
    sqlite3 *file;

    if (status != CELLGATE_OK)
        return status;
    cg_cost_store_make_file(store);
    file = store->user;
    if (!cg_cost_store_begin(file))
        return cg_cost_store_settle(file, false, "importing", error);
    status = take_rows(file, stream, name, &count, error);
    if (status != CELLGATE_OK) {
        (void)cg_cost_store_settle(file, false, "importing", NULL);
        return status;
    }
    status = cg_cost_store_settle(file, true, "importing", error);
    if (status == CELLGATE_OK)
        *rows = count;
    return status;
}
