/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a store's files, and what to do with those that cannot be used. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cost/store_file.h"

/* Kept in the file's header: who wrote it, and how its tables are laid out. */
#define APPLICATION 0x43476163 /* "CGac" */
/* 1 had no tables once and limits; a file of it is brought up to 2 when it is
   opened to be written, and read as it is otherwise. */
#define LAYOUT 2
/* How long it waits for a writer, in milliseconds: whoever writes or opens a
   file, and whoever reads, which may be for a request. */
#define PATIENCE 5000
#define READERS_PATIENCE 200

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS candidate (id INTEGER PRIMARY KEY,"
    " device TEXT NOT NULL, plugin TEXT NOT NULL, build TEXT NOT NULL,"
    " identity TEXT NOT NULL, settings TEXT NOT NULL, variant TEXT NOT NULL,"
    " numeric TEXT NOT NULL, host TEXT NOT NULL, UNIQUE (plugin, build,"
    " identity, settings, variant, numeric, host));"
    "CREATE TABLE IF NOT EXISTS structure (id INTEGER PRIMARY KEY,"
    " text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE IF NOT EXISTS cost (candidate INTEGER NOT NULL,"
    " structure INTEGER NOT NULL, regime INTEGER NOT NULL,"
    " batch INTEGER NOT NULL, steps INTEGER NOT NULL, fill INTEGER NOT NULL,"
    " median REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,"
    " error REAL NOT NULL, count INTEGER NOT NULL, at INTEGER NOT NULL,"
    " PRIMARY KEY (candidate, structure, regime, batch, steps, fill))"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS verdict (candidate INTEGER NOT NULL,"
    " structure INTEGER NOT NULL, correct INTEGER NOT NULL,"
    " worst REAL NOT NULL, at INTEGER NOT NULL,"
    " PRIMARY KEY (candidate, structure)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS once (candidate INTEGER NOT NULL,"
    " structure INTEGER NOT NULL, seconds REAL NOT NULL, at INTEGER NOT NULL,"
    " PRIMARY KEY (candidate, structure)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS limits (candidate INTEGER NOT NULL,"
    " structure INTEGER NOT NULL, batch INTEGER NOT NULL,"
    " steps INTEGER NOT NULL, at INTEGER NOT NULL,"
    " PRIMARY KEY (candidate, structure, batch, steps)) WITHOUT ROWID;";

void cg_cost_store_add_note(cg_cost_store *store, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;

    if (store->note_count == CG_STORE_NOTES)
        return;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (text != NULL)
        store->notes[store->note_count++] = text;
}

cellgate_status cg_cost_store_fail(sqlite3 *file, const char *doing,
                                   cellgate_error *error)
{
    const int code = sqlite3_errcode(file) & 0xff;
    const cellgate_status status = code == SQLITE_NOMEM  ? CELLGATE_NO_MEMORY
                                   : code == SQLITE_BUSY ? CELLGATE_BUSY
                                                         : CELLGATE_IO;

    cellgate_fail(error, status, "calibration store, while %s: %s", doing,
                  sqlite3_errmsg(file));
    if (error != NULL)
        error->vendor_code = sqlite3_extended_errcode(file);
    return status;
}

/* ---- One file ----------------------------------------------------------- */

typedef enum verdict {
    USABLE,
    FRESH,   /* empty: the tables are to be made */
    FOREIGN, /* of another program, or of a later version */
    DAMAGED,
    UNREADABLE
} verdict;

static bool ask_number(sqlite3 *file, const char *question, int64_t *answer)
{
    sqlite3_stmt *statement = NULL;
    bool done =
        sqlite3_prepare_v2(file, question, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW;

    if (done)
        *answer = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return done;
}

bool cg_cost_store_has_facts(sqlite3 *file)
{
    int64_t layout;

    return ask_number(file, "PRAGMA user_version", &layout) && layout >= 2;
}

bool cg_cost_store_execute(sqlite3 *file, const char *text)
{
    return sqlite3_exec(file, text, NULL, NULL, NULL) == SQLITE_OK;
}

static bool is_sound(sqlite3 *file)
{
    sqlite3_stmt *statement = NULL;
    bool sound =
        sqlite3_prepare_v2(file, "PRAGMA quick_check(1)", -1, &statement,
                           NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW &&
        strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0;

    sqlite3_finalize(statement);
    return sound;
}

/* What is read of each table; those from the fifth on came with layout 2. */
static const char *const columns[] = {
    "SELECT id, device, plugin, build, identity, settings, variant, numeric,"
    " host FROM candidate",
    "SELECT id, text FROM structure",
    "SELECT candidate, structure, regime, batch, steps, fill, median, low,"
    " high, error, count, at FROM cost",
    "SELECT candidate, structure, correct, worst, at FROM verdict",
    "SELECT candidate, structure, seconds, at FROM once",
    "SELECT candidate, structure, batch, steps, at FROM limits",
};

/* A file may be sound and lack a table all the same: someone dropped it. Every
   question would fail, for good. */
static bool is_whole(sqlite3 *file, int64_t layout)
{
    const size_t count = layout >= 2 ? sizeof columns / sizeof columns[0] : 4;

    for (size_t at = 0; at < count; at++) {
        sqlite3_stmt *statement = NULL;
        const int code =
            sqlite3_prepare_v2(file, columns[at], -1, &statement, NULL);

        sqlite3_finalize(statement);
        if ((code & 0xff) == SQLITE_ERROR)
            return false;
    }
    return true;
}

static verdict judge_as_it_stands(sqlite3 *file)
{
    int64_t application, layout, tables;
    int code;

    if (!cg_cost_store_execute(file, "BEGIN") ||
        !ask_number(file, "PRAGMA application_id", &application) ||
        !ask_number(file, "PRAGMA user_version", &layout) ||
        !ask_number(file, "SELECT count(*) FROM sqlite_master", &tables)) {
        code = sqlite3_errcode(file) & 0xff;
        return code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? DAMAGED
                                                               : UNREADABLE;
    }
    if (application == 0 && layout == 0 && tables == 0)
        return FRESH;
    if (application != APPLICATION || layout > LAYOUT)
        return FOREIGN;
    return is_sound(file) && is_whole(file, layout) ? USABLE : DAMAGED;
}

/* In one transaction: between two questions another process may make the
   tables, and half of either answer would be another program's file. */
static verdict judge(sqlite3 *file)
{
    const verdict found = judge_as_it_stands(file);

    (void)cg_cost_store_execute(file, "ROLLBACK");
    return found;
}

bool cg_cost_store_begin(sqlite3 *file)
{
    sqlite3_busy_timeout(file, PATIENCE);
    return cg_cost_store_execute(file, "BEGIN IMMEDIATE");
}

cellgate_status cg_cost_store_settle(sqlite3 *file, bool done,
                                     const char *doing, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (!done || !cg_cost_store_execute(file, "COMMIT")) {
        status = cg_cost_store_fail(file, doing, error);
        (void)cg_cost_store_execute(file, "ROLLBACK");
    }
    sqlite3_busy_timeout(file, READERS_PATIENCE);
    return status;
}

/* In one transaction, so that a file has all of its tables or none. */
static bool make_tables(sqlite3 *file)
{
    char header[128];

    snprintf(header, sizeof header,
             "PRAGMA application_id = %d; PRAGMA user_version = %d",
             APPLICATION, LAYOUT);
    if (cg_cost_store_execute(file, "BEGIN IMMEDIATE") &&
        cg_cost_store_execute(file, schema) &&
        cg_cost_store_execute(file, header) &&
        cg_cost_store_execute(file, "COMMIT"))
        return true;
    (void)cg_cost_store_execute(file, "ROLLBACK");
    return false;
}

static void set_up(sqlite3 *file)
{
    sqlite3_busy_timeout(file, PATIENCE);
    sqlite3_extended_result_codes(file, 1);
    /* A read-only place takes no WAL; see doc/decisions.md. */
    (void)cg_cost_store_execute(file, "PRAGMA journal_mode = DELETE;"
                                      "PRAGMA trusted_schema = OFF;"
                                      "PRAGMA cell_size_check = ON");
}

/* ---- The user's file ---------------------------------------------------- */

/* Makes the folders above a file, as far as they are missing. */
static void make_folders(const char *path)
{
    char *copy = strdup(path);

    if (copy == NULL)
        return;
    for (char *at = strchr(copy + 1, '/'); at != NULL;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(copy, 0777);
        *at = '/';
    }
    free(copy);
}

/*
 * Renames a damaged file, unless another process has done it meanwhile: under
 * a lock of its folder, and only if it is still the same file.
 */
static bool put_aside(const char *path, const struct stat *judged)
{
    char *aside = NULL, *folder = strdup(path);
    char *slash = folder != NULL ? strrchr(folder, '/') : NULL;
    struct stat now;
    bool done = false;
    int lock = -1;

    if (slash != NULL)
        slash[slash == folder] = '\0';
    if (folder != NULL && asprintf(&aside, "%s.damaged", path) > 0)
        lock = open(slash != NULL ? folder : ".",
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX) == 0) {
        if (stat(path, &now) != 0)
            done = errno == ENOENT;
        else
            done = now.st_ino != judged->st_ino || rename(path, aside) == 0;
    }
    if (lock >= 0)
        close(lock);
    free(aside);
    free(folder);
    return done;
}

static sqlite3 *open_file(const char *path, int flags)
{
    sqlite3 *file = NULL;

    if (sqlite3_open_v2(path, &file, flags | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        sqlite3_close(file);
        return NULL;
    }
    set_up(file);
    return file;
}

/* NULL: it cannot be used; a note says why. */
static sqlite3 *accept(cg_cost_store *store, sqlite3 *file, const char *path,
                       bool *damaged)
{
    verdict found = judge(file);

    *damaged = found == DAMAGED;
    if (found == FRESH && sqlite3_db_readonly(file, "main") == 0 &&
        !make_tables(file))
        found = UNREADABLE;
    /* Where that fails it is read as it is. */
    if (found == USABLE && sqlite3_db_readonly(file, "main") == 0 &&
        !cg_cost_store_has_facts(file))
        (void)make_tables(file);
    if (found == USABLE || found == FRESH) {
        sqlite3_busy_timeout(file, READERS_PATIENCE);
        return file;
    }
    if (found == FOREIGN)
        cg_cost_store_add_note(store,
                               "%s was written by another program or a later "
                               "version; it is not used, and nothing is kept",
                               path);
    if (found == UNREADABLE)
        cg_cost_store_add_note(store, "%s cannot be used: %s; nothing is kept",
                               path, sqlite3_errmsg(file));
    sqlite3_close(file);
    return NULL;
}

static sqlite3 *open_user_once(cg_cost_store *store, const char *path,
                               bool *damaged)
{
    sqlite3 *file;

    *damaged = false;
    make_folders(path);
    file = open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (file == NULL) {
        cg_cost_store_add_note(store, "%s cannot be opened; nothing is kept",
                               path);
        return NULL;
    }
    file = accept(store, file, path, damaged);
    if (file != NULL && sqlite3_db_readonly(file, "main") != 0) {
        cg_cost_store_add_note(
            store,
            "%s cannot be written; it is read, and nothing is "
            "kept",
            path);
        return file;
    }
    store->keeps = file != NULL;
    return file;
}

static sqlite3 *open_user(cg_cost_store *store, const char *path)
{
    struct stat judged;
    const bool there = stat(path, &judged) == 0;
    bool damaged;
    sqlite3 *file = open_user_once(store, path, &damaged);

    if (file != NULL || !damaged)
        return file;
    if (!there || !put_aside(path, &judged)) {
        cg_cost_store_add_note(
            store,
            "%s is damaged and cannot be put aside; nothing is "
            "kept",
            path);
        return NULL;
    }
    cg_cost_store_add_note(
        store,
        "%s was damaged; it is %s.damaged now, and a new one "
        "was begun: measure again (cellgate calibrate)",
        path, path);
    return open_user_once(store, path, &damaged);
}

/* ---- The site's file ---------------------------------------------------- */

/* The path as SQLite's "file:" form takes it. */
static char *immutable_uri(const char *path)
{
    static const char digits[] = "0123456789abcdef";
    char *uri = malloc(3 * strlen(path) + sizeof "file:?immutable=1");
    char *at = uri;

    if (uri == NULL)
        return NULL;
    at = stpcpy(at, "file:");
    for (; *path != '\0'; path++)
        if (strchr("?#% ", *path) != NULL) {
            *at++ = '%';
            *at++ = digits[(unsigned char)*path >> 4];
            *at++ = digits[(unsigned char)*path & 15];
        } else {
            *at++ = *path;
        }
    strcpy(at, "?immutable=1");
    return uri;
}

static sqlite3 *open_site(cg_cost_store *store, const char *path)
{
    char *uri = immutable_uri(path);
    sqlite3 *file = NULL;

    if (uri != NULL && access(path, F_OK) == 0)
        file = open_file(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    free(uri);
    if (file != NULL && judge(file) != USABLE) {
        cg_cost_store_add_note(
            store,
            "%s is no calibration store of this version, or is "
            "damaged; it is not used",
            path);
        sqlite3_close(file);
        file = NULL;
    } else if (file == NULL && access(path, F_OK) == 0) {
        cg_cost_store_add_note(store, "%s cannot be opened; it is not used",
                               path);
    }
    return file;
}

/* The file is made when something is to be kept, not by whoever only looks. */
void cg_cost_store_make_file(cg_cost_store *store)
{
    sqlite3 *file;

    if (store->pending == NULL)
        return;
    store->keeps = false;
    file = open_user(store, store->pending);
    if (file != NULL) {
        sqlite3_close(store->user);
        store->user = file;
    }
    free(store->pending);
    store->pending = NULL;
}

/* ---- Both --------------------------------------------------------------- */

cellgate_status cg_cost_store_open_files(cg_cost_store *store,
                                         const char *user_path,
                                         const char *site_path,
                                         cellgate_error *error)
{
    if (site_path != NULL)
        store->site = open_site(store, site_path);
    if (user_path != NULL && access(user_path, F_OK) == 0)
        store->user = open_user(store, user_path);
    else if (user_path != NULL)
        store->keeps = (store->pending = strdup(user_path)) != NULL;
    if (store->user == NULL)
        store->user =
            open_file(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    else
        return CELLGATE_OK;
    if (store->user == NULL || !make_tables(store->user))
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for what is measured");
    return CELLGATE_OK;
}
