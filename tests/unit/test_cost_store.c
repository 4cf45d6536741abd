/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/cost/store.h"
#include "tests/unit/cost_store_rig.h"
#include "tests/unit/scratch_folder.h"

/* ---- What it is for ----------------------------------------------------- */

static void what_is_put_is_found_again(void **state)
{
    const char *path = scratch_path("deep/er/costs");
    cg_cost_store *store = store_rig_open(path, NULL);
    cg_cost_point point;

    (void)state;
    assert_true(cg_cost_store_keeps(store));
    assert_null(cg_cost_store_note(store, 0));
    store_rig_put(store, &store_rig_narrow, store_rig_point(64, 20, 9e-5, 31));
    cg_cost_store_close(store);
    store = store_rig_open(path, NULL);
    point = store_rig_only(store, &store_rig_narrow);
    assert_int_equal(point.shape.batch, 64);
    assert_int_equal(point.shape.steps, 20);
    assert_true(point.shape.fill == 1);
    assert_true(point.summary.median == 9e-5);
    assert_true(point.summary.low == 9e-5 * 0.99);
    assert_true(point.summary.error == 0.005);
    assert_int_equal(point.summary.count, 31);
    store_rig_put(store, &store_rig_narrow, store_rig_point(64, 20, 8e-5, 31));
    assert_true(store_rig_only(store, &store_rig_narrow).summary.median ==
                8e-5);
    cg_cost_store_close(store);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(scratch_path("deep/er")), 0);
    assert_int_equal(remove(scratch_path("deep")), 0);
}

static void nothing_of_others(void **state)
{
    cg_cost_store *store = store_rig_open(NULL, NULL);
    cg_cost_candidate other;

    (void)state;
    assert_false(cg_cost_store_keeps(store));
    store_rig_put(store, &store_rig_narrow, store_rig_point(1, 1, 1e-5, 9));
    assert_int_equal(store_rig_count(store, &store_rig_narrow, store_rig_lstm,
                                     CG_BACK_TO_BACK),
                     1);
    assert_int_equal(
        store_rig_count(store, &store_rig_narrow, store_rig_lstm, CG_SPACED),
        0);
    assert_int_equal(
        store_rig_count(store, &store_rig_narrow, "lstm", CG_BACK_TO_BACK), 0);
    assert_int_equal(store_rig_count(store, &store_rig_wide, store_rig_lstm,
                                     CG_BACK_TO_BACK),
                     0);
    for (int field = 0; field < 6; field++) {
        other = store_rig_narrow;
        *(const char **[]){
            &other.plugin,   &other.build,   &other.identity,
            &other.settings, &other.numeric, &other.host
        }[field] = "other";
        assert_int_equal(
            store_rig_count(store, &other, store_rig_lstm, CG_BACK_TO_BACK), 0);
    }
    other = store_rig_narrow;
    other.device = "renamed";
    assert_int_equal(
        store_rig_count(store, &other, store_rig_lstm, CG_BACK_TO_BACK), 1);
    cg_cost_store_close(store);
}

static void the_users_goes_before_the_sites(void **state)
{
    const char *site = scratch_path("a site?#%.costs");
    const char *user = scratch_path("user");
    cg_cost_store *store = store_rig_open(site, NULL);
    cg_cost_point point = store_rig_point(2, 2, 7e-5, 9);

    (void)state;
    store_rig_put(store, &store_rig_narrow, store_rig_point(1, 1, 5e-5, 9));
    store_rig_put(store, &store_rig_wide, store_rig_point(1, 1, 6e-5, 9));
    cg_cost_store_close(store);
    assert_int_equal(chmod(site, 0444), 0);
    store = store_rig_open(user, site);
    assert_true(store_rig_only(store, &store_rig_narrow).summary.median ==
                5e-5);
    store_rig_put(store, &store_rig_narrow, store_rig_point(1, 1, 4e-5, 3));
    assert_true(store_rig_only(store, &store_rig_narrow).summary.median ==
                4e-5);
    assert_true(store_rig_only(store, &store_rig_wide).summary.median == 6e-5);
    store_rig_put(store, &store_rig_narrow, point);
    assert_int_equal(store_rig_count(store, &store_rig_narrow, store_rig_lstm,
                                     CG_BACK_TO_BACK),
                     2);
    cg_cost_store_close(store);
    store = store_rig_open(NULL, site);
    assert_true(store_rig_only(store, &store_rig_narrow).summary.median ==
                5e-5);
    cg_cost_store_close(store);
}

static void verdicts(void **state)
{
    cg_cost_store *store = store_rig_open(NULL, NULL);
    cg_cost_verdict verdict = { .checked = true, .right = false, .worst = 0.5 };

    (void)state;
    assert_int_equal(cg_cost_store_put_verdict(store, &store_rig_narrow,
                                               store_rig_lstm, &verdict, NULL),
                     CELLGATE_OK);
    memset(&verdict, 0, sizeof verdict);
    assert_int_equal(cg_cost_store_verdict(store, &store_rig_narrow,
                                           store_rig_lstm, &verdict, NULL),
                     CELLGATE_OK);
    assert_true(verdict.checked && !verdict.right && verdict.worst == 0.5);
    assert_int_equal(cg_cost_store_verdict(store, &store_rig_wide,
                                           store_rig_lstm, &verdict, NULL),
                     CELLGATE_OK);
    assert_false(verdict.checked);
    cg_cost_store_close(store);
}

/* ---- Text --------------------------------------------------------------- */

static void text_goes_round(void **state)
{
    cg_cost_store *from = store_rig_open(NULL, NULL),
                  *to = store_rig_open(NULL, NULL);
    char *text, *again;
    size_t rows = 0;

    (void)state;
    store_rig_put(from, &store_rig_narrow,
                  store_rig_point(64, 20, 1.0 / 3e4, 31));
    store_rig_put(from, &store_rig_wide, store_rig_point(1, 1, 5e-6, 9));
    text = store_rig_export(from);
    assert_int_equal(store_rig_import(to, text, &rows, NULL), CELLGATE_OK);
    assert_int_equal(rows, 2);
    again = store_rig_export(to);
    assert_string_equal(text, again);
    assert_true(store_rig_only(to, &store_rig_narrow).summary.median ==
                1.0 / 3e4);
    free(text);
    free(again);
    cg_cost_store_close(from);
    cg_cost_store_close(to);
}

static void import_keeps_what_is_known_better(void **state)
{
    cg_cost_store *from = store_rig_open(NULL, NULL),
                  *to = store_rig_open(NULL, NULL);
    char *text;
    size_t rows = 0;

    (void)state;
    store_rig_put(from, &store_rig_narrow, store_rig_point(1, 1, 1e-5, 9));
    store_rig_put(from, &store_rig_wide, store_rig_point(1, 1, 1e-5, 99));
    store_rig_put(to, &store_rig_narrow, store_rig_point(1, 1, 2e-5, 31));
    store_rig_put(to, &store_rig_wide, store_rig_point(1, 1, 2e-5, 31));
    text = store_rig_export(from);
    assert_int_equal(store_rig_import(to, text, &rows, NULL), CELLGATE_OK);
    assert_true(store_rig_only(to, &store_rig_narrow).summary.median == 2e-5);
    assert_true(store_rig_only(to, &store_rig_wide).summary.median == 1e-5);
    free(text);
    cg_cost_store_close(from);
    cg_cost_store_close(to);
}

/* Of as many samples what was measured later is believed. */
static void import_keeps_what_is_later(void **state)
{
    static const int64_t dates[2] = { 1700000000, 1800000000 };

    (void)state;
    for (int imported = 0; imported < 2; imported++) {
        cg_cost_store *from = store_rig_open(NULL, NULL),
                      *to = store_rig_open(NULL, NULL);
        cg_cost_point given = store_rig_point(1, 1, 1e-5, 9);
        cg_cost_point known = store_rig_point(1, 1, 2e-5, 9);
        size_t rows = 0;
        char *text;

        given.at = dates[imported];
        known.at = dates[!imported];
        store_rig_put(from, &store_rig_narrow, given);
        store_rig_put(to, &store_rig_narrow, known);
        text = store_rig_export(from);
        assert_int_equal(store_rig_import(to, text, &rows, NULL), CELLGATE_OK);
        assert_int_equal(rows, 1);
        assert_int_equal(store_rig_only(to, &store_rig_narrow).at, dates[1]);
        free(text);
        cg_cost_store_close(from);
        cg_cost_store_close(to);
    }
}

/* When something was measured goes along; what has no time is of now. */
static void age_goes_along(void **state)
{
    cg_cost_store *from = store_rig_open(NULL, NULL),
                  *to = store_rig_open(NULL, NULL);
    cg_cost_point old = store_rig_point(1, 1, 1e-5, 9);
    size_t rows = 0;
    char *text;

    (void)state;
    old.at = 1700000000;
    store_rig_put(from, &store_rig_narrow, old);
    store_rig_put(from, &store_rig_wide, store_rig_point(1, 1, 1e-5, 9));
    assert_int_equal(store_rig_only(from, &store_rig_narrow).at, 1700000000);
    assert_true(store_rig_only(from, &store_rig_wide).at > 1700000000);
    text = store_rig_export(from);
    assert_int_equal(store_rig_import(to, text, &rows, NULL), CELLGATE_OK);
    assert_int_equal(store_rig_only(to, &store_rig_narrow).at, 1700000000);
    free(text);
    cg_cost_store_close(from);
    cg_cost_store_close(to);
}

#define TITLE "# cellgate calibration 1: and so on\n"
#define GOOD                                                                   \
    "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tspaced\t1\t1\t1000\t1e-5\t1e-5\t1e-5"   \
    "\t0\t9\t1700000000\n"

static void import_is_all_or_none(void **state)
{
    static const char *const wrong[] = {
        "",
        "rows\n",
        TITLE GOOD "short\tline\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tspaced\t0\t1\t1000\t1e-5\t1e-5\t"
        "1e-5\t0\t9\t1700000000\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\t\t\th\t\tonce\t1\t0\t1000\t-1\t-1\t-1\t0\t1\t"
        "1700000000\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tno-memory\t0\t0\t1000\t0\t0\t0"
        "\t0\t0\t1700000000\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tspaced\t1\t1\t1000\tnan\t1e-5\t"
        "1e-5\t0\t9\t1700000000\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tsometimes\t1\t1\t1000\t1e-5\t1e-5\t"
        "1e-5\t0\t9\t1700000000\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tspaced\t1\t1\t1000\t1e-5\t1e-5\t"
        "1e-5\t0\t9\t1700000000\textra\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tspaced\t1\t1\t1000\t1e-5\t1e-5\t"
        "1e-5\t0\t9\t-5\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tspaced\t1\t1\t1000\t1e-5\t1e-5\t"
        "1e300\t0\t9\t1700000000\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tspaced\t1\t1\t1000\t1e-5\t1e-5\t"
        "1e-5\t1e300\t9\t1700000000\n",
        TITLE GOOD
        "cpu\tp\tb\ti\ts\tv\tf32\th\tlstm\tspaced\t4294967296\t1\t1000\t1e-5"
        "\t1e-5\t1e-5\t0\t9\t1700000000\n",
    };
    cg_cost_store *store = store_rig_open(NULL, NULL);
    size_t rows = 77;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        char *text;

        /* fmemopen() takes no empty buffer. */
        if (wrong[i][0] != '\0')
            assert_int_equal(store_rig_import(store, wrong[i], &rows, &error),
                             CELLGATE_BAD_FILE);
        if (i >= 2)
            assert_non_null(strstr(error.text, "fleet.txt:3: "));
        assert_int_equal(rows, 77);
        text = store_rig_export(store);
        assert_null(strstr(text, "cpu"));
        free(text);
    }
    assert_int_equal(
        store_rig_import(store, TITLE "# a note\n\n" GOOD, &rows, NULL),
        CELLGATE_OK);
    assert_int_equal(rows, 1);
    cg_cost_store_close(store);
}

static void diff_says_what_changed(void **state)
{
    cg_cost_store *store = store_rig_open(NULL, NULL);
    cg_cost_candidate now[2] = { store_rig_narrow, store_rig_wide };
    size_t unused = 0, size;
    char *text = NULL;
    FILE *stream = open_memstream(&text, &size);

    (void)state;
    store_rig_put(store, &store_rig_narrow, store_rig_point(1, 1, 1e-5, 9));
    store_rig_put(store, &store_rig_narrow, store_rig_point(2, 1, 1e-5, 9));
    store_rig_put(store, &store_rig_wide, store_rig_point(1, 1, 1e-5, 9));
    now[0].build = "b2";
    assert_int_equal(cg_cost_store_diff(store, now, 2, stream, &unused, NULL),
                     CELLGATE_OK);
    assert_int_equal(unused, 2);
    fflush(stream);
    assert_string_equal(text, "cpu t1: 2 rows unused: build was \"b1\", and is "
                              "\"b2\"\n");
    assert_int_equal(
        cg_cost_store_diff(store, &now[1], 1, stream, &unused, NULL),
        CELLGATE_OK);
    fclose(stream);
    assert_non_null(strstr(text, "there is no such device or variant now"));
    free(text);
    cg_cost_store_close(store);
}

/* ---- Faults ------------------------------------------------------------- */

static void damaged_is_put_aside(void **state)
{
    const char *path = scratch_path("torn");
    unsigned char *bytes;
    size_t size;
    cg_cost_store *store = store_rig_open(path, NULL);

    (void)state;
    for (int64_t batch = 1; batch < 200; batch++)
        store_rig_put(store, &store_rig_narrow,
                      store_rig_point(batch, 1, 1e-5, 9));
    cg_cost_store_close(store);
    bytes = read_whole_file(path, &size);
    memset(bytes + 4096, 0x5a, size - 4096);
    scratch_write("torn", bytes, size);
    free(bytes);
    store = store_rig_open(path, NULL);
    assert_non_null(strstr(cg_cost_store_note(store, 0), "torn.damaged"));
    assert_true(cg_cost_store_keeps(store));
    assert_int_equal(store_rig_count(store, &store_rig_narrow, store_rig_lstm,
                                     CG_BACK_TO_BACK),
                     0);
    store_rig_put(store, &store_rig_narrow, store_rig_point(1, 1, 1e-5, 9));
    cg_cost_store_close(store);
    assert_int_equal(access(scratch_path("torn.damaged"), F_OK), 0);
    store = store_rig_open(path, NULL);
    assert_null(cg_cost_store_note(store, 0));
    assert_int_equal(store_rig_count(store, &store_rig_narrow, store_rig_lstm,
                                     CG_BACK_TO_BACK),
                     1);
    cg_cost_store_close(store);
}

static void no_database_is_put_aside(void **state)
{
    const char text[] = "this is a letter, and not a database at all; it is "
                        "long enough to have a header's size, or nearly so, "
                        "with these words at its end";
    const char *path = scratch_write("letter", text, sizeof text);
    cg_cost_store *store = store_rig_open(path, NULL);

    (void)state;
    assert_non_null(strstr(cg_cost_store_note(store, 0), "damaged"));
    assert_true(cg_cost_store_keeps(store));
    cg_cost_store_close(store);
    assert_int_equal(access(scratch_path("letter.damaged"), F_OK), 0);
}

/* Sound to SQLite, and of no use: someone took a table out of it. */
static void what_lacks_a_table_is_put_aside(void **state)
{
    static const char *const taken[] = {
        "DROP TABLE candidate",
        "DROP TABLE structure",
        "DROP TABLE cost",
        "DROP TABLE verdict",
        "DROP TABLE once",
        "DROP TABLE limits",
        "ALTER TABLE cost DROP COLUMN error",
    };

    (void)state;
    for (size_t at = 0; at < sizeof taken / sizeof taken[0]; at++) {
        const char *path = scratch_path("lacking");
        cg_cost_store *store = store_rig_open(path, NULL);
        sqlite3 *file = NULL;

        store_rig_put(store, &store_rig_narrow, store_rig_point(1, 1, 1e-5, 9));
        cg_cost_store_close(store);
        assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
        assert_int_equal(sqlite3_exec(file, taken[at], NULL, NULL, NULL),
                         SQLITE_OK);
        sqlite3_close(file);
        store = store_rig_open(path, NULL);
        if (cg_cost_store_note(store, 0) == NULL)
            fail_msg("nothing is said after %s", taken[at]);
        assert_non_null(
            strstr(cg_cost_store_note(store, 0), "lacking.damaged"));
        assert_true(cg_cost_store_keeps(store));
        store_rig_put(store, &store_rig_narrow, store_rig_point(1, 1, 1e-5, 9));
        assert_int_equal(store_rig_count(store, &store_rig_narrow,
                                         store_rig_lstm, CG_BACK_TO_BACK),
                         1);
        cg_cost_store_close(store);
        assert_int_equal(unlink(scratch_path("lacking.damaged")), 0);
    }
}

static void others_databases_are_left_alone(void **state)
{
    const char *path = scratch_path("foreign");
    unsigned char *before, *after;
    size_t size, now;
    sqlite3 *file = NULL;
    cg_cost_store *store;

    (void)state;
    assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file, "CREATE TABLE t (x)", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(file);
    before = read_whole_file(path, &size);
    store = store_rig_open(path, NULL);
    assert_non_null(strstr(cg_cost_store_note(store, 0), "another program"));
    assert_false(cg_cost_store_keeps(store));
    store_rig_put(store, &store_rig_narrow,
                  store_rig_point(1, 1, 1e-5, 9)); /* within the process */
    cg_cost_store_close(store);
    after = read_whole_file(path, &now);
    assert_int_equal(size, now);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
}

static void a_folder_is_no_store(void **state)
{
    cg_cost_store *store = store_rig_open(scratch_folder(), NULL);

    (void)state;
    assert_non_null(cg_cost_store_note(store, 0));
    assert_false(cg_cost_store_keeps(store));
    cg_cost_store_close(store);
}

/* Rows that were never put: they are passed over. */
static void poisoned_rows_are_passed_over(void **state)
{
    const char *path = scratch_path("poisoned");
    cg_cost_store *store = store_rig_open(path, NULL);
    sqlite3 *file = NULL;

    (void)state;
    for (int64_t batch = 1; batch <= 6; batch++)
        store_rig_put(store, &store_rig_narrow,
                      store_rig_point(batch, 1, 1e-5, 9));
    cg_cost_store_close(store);
    assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(file,
                     "UPDATE cost SET median = -1 WHERE batch = 1;"
                     "UPDATE cost SET median = 9e999 WHERE batch = 2;"
                     "UPDATE cost SET count = 0 WHERE batch = 3;"
                     "UPDATE cost SET low = 'text' WHERE batch = 4;"
                     "UPDATE cost SET fill = 5000 WHERE batch = 5",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(file);
    store = store_rig_open(path, NULL);
    assert_int_equal(store_rig_only(store, &store_rig_narrow).shape.batch, 6);
    cg_cost_store_close(store);
}

/* A file that may not grow any more is what a full disk looks like. */
static void full_disk_is_an_error(void **state)
{
    const char *path = scratch_path("full");
    cg_cost_store *store = store_rig_open(path, NULL);
    struct rlimit before, none;
    struct stat about;
    cellgate_status status = CELLGATE_OK;
    int64_t batch = 0;

    (void)state;
    store_rig_put(store, &store_rig_wide, store_rig_point(1, 1, 1e-5, 9));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)about.st_size;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    while (status == CELLGATE_OK && batch < 5000) {
        cg_cost_point point = store_rig_point(++batch, 1, 1e-5, 9);

        status = cg_cost_store_put(store, &store_rig_narrow, store_rig_lstm,
                                   CG_BACK_TO_BACK, &point, NULL);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, CELLGATE_IO);
    assert_int_equal(store_rig_count(store, &store_rig_narrow, store_rig_lstm,
                                     CG_BACK_TO_BACK),
                     batch - 1);
    store_rig_put(store, &store_rig_narrow, store_rig_point(batch, 1, 1e-5, 9));
    cg_cost_store_close(store);
    store = store_rig_open(path, NULL);
    assert_null(cg_cost_store_note(store, 0));
    assert_int_equal(store_rig_count(store, &store_rig_narrow, store_rig_lstm,
                                     CG_BACK_TO_BACK),
                     batch);
    cg_cost_store_close(store);
}

/* ---- Several processes -------------------------------------------------- */

static void write_forever(const char *path, const cg_cost_candidate *candidate,
                          int done)
{
    const cg_cost_verdict verdict = { .checked = true, .right = true };
    const cg_cost_once once = { 0.1, 0 };
    cg_cost_store *store = NULL;

    if (cg_cost_store_open(path, NULL, &store, NULL) != CELLGATE_OK)
        _exit(1);
    for (int64_t at = 0;; at++) {
        cg_cost_point point = store_rig_point(1 + at % 40, 1, 1e-5, 9);
        const cg_cost_limit limit = { 50 + at % 40, 1, 0 };

        if (cg_cost_store_put(store, candidate, store_rig_lstm, CG_BACK_TO_BACK,
                              &point, NULL) != CELLGATE_OK ||
            cg_cost_store_put_verdict(store, candidate, store_rig_lstm,
                                      &verdict, NULL) != CELLGATE_OK ||
            cg_cost_store_put_once(store, candidate, store_rig_lstm, &once,
                                   NULL) != CELLGATE_OK ||
            cg_cost_store_put_limit(store, candidate, store_rig_lstm, &limit,
                                    NULL) != CELLGATE_OK ||
            write(done, "", 1) != 1)
            _exit(2);
    }
}

/* Kills a writer: the first ones as they open the file, the others after some
   writes, at any moment of the next. */
static void kill_one(const char *path, int round)
{
    const struct timespec pause = { 0, 1000 * (rand() % 4000) };
    int done[2], how;
    pid_t child;
    char byte;

    assert_int_equal(pipe(done), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        write_forever(path, &store_rig_narrow, done[1]);
    close(done[1]);
    for (int writes = round < 20 ? 0 : rand() % 4; writes > 0; writes--)
        assert_int_equal(read(done[0], &byte, 1), 1);
    nanosleep(&pause, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    close(done[0]);
}

static void killed_at_any_moment(void **state)
{
    const char *path = scratch_path("killed");
    size_t known = 0;

    (void)state;
    srand(20261130);
    for (int round = 0; round < 200; round++) {
        cg_cost_store *store;
        size_t count;

        kill_one(path, round);
        store = store_rig_open(path, NULL);
        assert_null(cg_cost_store_note(store, 0));
        count = store_rig_count(store, &store_rig_narrow, store_rig_lstm,
                                CG_BACK_TO_BACK);
        assert_true(count >= known);
        known = count;
        cg_cost_store_close(store);
    }
    assert_true(known > 0);
}

#define WRITERS 3
#define PUTS 40

static void write_some(const char *path, int number)
{
    cg_cost_store *store = NULL;

    if (cg_cost_store_open(path, NULL, &store, NULL) != CELLGATE_OK)
        _exit(1);
    for (int64_t at = 0; at < PUTS; at++) {
        cg_cost_point point = store_rig_point(1 + at, 1 + number, 1e-5, 9);

        if (cg_cost_store_put(store, &store_rig_narrow, store_rig_lstm,
                              CG_SPACED, &point, NULL) != CELLGATE_OK)
            _exit(2);
    }
    cg_cost_store_close(store);
    _exit(0);
}

static void several_writers(void **state)
{
    const char *path = scratch_path("shared");
    cg_cost_store *store;

    (void)state;
    for (int number = 0; number < WRITERS; number++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0)
            write_some(path, number);
    }
    for (int number = 0; number < WRITERS; number++) {
        int how;

        assert_true(wait(&how) > 0);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    store = store_rig_open(path, NULL);
    assert_int_equal(
        store_rig_count(store, &store_rig_narrow, store_rig_lstm, CG_SPACED),
        WRITERS * PUTS);
    cg_cost_store_close(store);
}

/* ---- A file that another process makes while it is judged --------------- */

static const char *made_meanwhile;
static bool maker_committed;

/* As another process would make its tables, without waiting. */
static void make_meanwhile(void)
{
    sqlite3 *other = NULL;

    assert_int_equal(sqlite3_open(made_meanwhile, &other), SQLITE_OK);
    maker_committed =
        sqlite3_exec(other,
                     "BEGIN IMMEDIATE; CREATE TABLE candidate (id INTEGER);"
                     "PRAGMA application_id = 1128751459;"
                     "PRAGMA user_version = 2; COMMIT",
                     NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(other);
}

static int before_statement(unsigned event, void *unused, void *statement,
                            void *text)
{
    (void)event;
    (void)unused;
    (void)statement;
    if (made_meanwhile != NULL && strcmp(text, "PRAGMA user_version") == 0) {
        make_meanwhile();
        made_meanwhile = NULL;
    }
    return 0;
}

static int watch_connection(sqlite3 *file, char **text, const void *api)
{
    (void)text;
    (void)api;
    return sqlite3_trace_v2(file, SQLITE_TRACE_STMT, before_statement, NULL);
}

static void a_file_is_judged_as_at_one_moment(void **state)
{
    const char *path = scratch_path("meanwhile");
    cg_cost_point point = store_rig_point(1, 1, 1e-5, 9);
    cg_cost_store *store;

    (void)state;
    fclose(fopen(path, "w"));
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch_connection),
                     SQLITE_OK);
    made_meanwhile = path;
    store = store_rig_open(path, NULL);
    sqlite3_reset_auto_extension();
    assert_null(made_meanwhile);
    assert_false(maker_committed);
    assert_null(cg_cost_store_note(store, 0));
    assert_int_equal(cg_cost_store_put(store, &store_rig_narrow, store_rig_lstm,
                                       CG_SPACED, &point, NULL),
                     CELLGATE_OK);
    assert_int_equal(
        store_rig_count(store, &store_rig_narrow, store_rig_lstm, CG_SPACED),
        1);
    cg_cost_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_found_again),
        cmocka_unit_test(nothing_of_others),
        cmocka_unit_test(the_users_goes_before_the_sites),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(text_goes_round),
        cmocka_unit_test(import_keeps_what_is_known_better),
        cmocka_unit_test(import_keeps_what_is_later),
        cmocka_unit_test(age_goes_along),
        cmocka_unit_test(import_is_all_or_none),
        cmocka_unit_test(diff_says_what_changed),
        cmocka_unit_test(damaged_is_put_aside),
        cmocka_unit_test(no_database_is_put_aside),
        cmocka_unit_test(what_lacks_a_table_is_put_aside),
        cmocka_unit_test(others_databases_are_left_alone),
        cmocka_unit_test(a_folder_is_no_store),
        cmocka_unit_test(poisoned_rows_are_passed_over),
        cmocka_unit_test(full_disk_is_an_error),
        cmocka_unit_test(killed_at_any_moment),
        cmocka_unit_test(several_writers),
        cmocka_unit_test(a_file_is_judged_as_at_one_moment),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
