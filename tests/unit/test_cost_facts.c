/* SPDX-License-Identifier: Apache-2.0 */
/* What a store keeps beside costs: what is done once, and where memory ends. */
#include "config.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/cost_store_rig.h"
#include "tests/unit/scratch_folder.h"

static const cg_cost_candidate opening = { "cpu", "fast 1.0", "b1", "id",
                                           "",    "",         "",   "x86" };

static double seconds_of(cg_cost_store *store,
                         const cg_cost_candidate *candidate,
                         const char *structure)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_cost_once once = { 99, 99 };

    if (cg_cost_store_once(store, candidate, structure, &once, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_true((once.seconds > 0) == (once.at > 0));
    return once.seconds;
}

static void put_once(cg_cost_store *store, const cg_cost_candidate *candidate,
                     const char *structure, double seconds)
{
    const cg_cost_once once = { seconds, 0 };

    assert_int_equal(
        cg_cost_store_put_once(store, candidate, structure, &once, NULL),
        CELLGATE_OK);
}

static size_t limits_of(cg_cost_store *store,
                        const cg_cost_candidate *candidate,
                        cg_cost_limit *first)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_cost_limit *limits;
    size_t count;

    if (cg_cost_store_limits(store, candidate, store_rig_lstm, &limits, &count,
                             &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    if (count > 0)
        *first = limits[0];
    free(limits);
    return count;
}

static void put_limit(cg_cost_store *store, const cg_cost_candidate *candidate,
                      int64_t batch, int64_t steps)
{
    const cg_cost_limit limit = { batch, steps, 0 };

    assert_int_equal(
        cg_cost_store_put_limit(store, candidate, store_rig_lstm, &limit, NULL),
        CELLGATE_OK);
}

static void what_is_done_once_is_kept(void **state)
{
    const char *path = scratch_path("once");
    cg_cost_store *store = store_rig_open(path, NULL);
    cg_cost_candidate newer = opening;

    (void)state;
    assert_true(seconds_of(store, &opening, CG_OPENING) == 0);
    put_once(store, &opening, CG_OPENING, 0.4);
    put_once(store, &opening, CG_OPENING, 0.3); /* the last one counts */
    put_once(store, &store_rig_wide, store_rig_lstm, 0.02);
    cg_cost_store_close(store);
    store = store_rig_open(path, NULL);
    assert_true(seconds_of(store, &opening, CG_OPENING) == 0.3);
    assert_true(seconds_of(store, &store_rig_wide, store_rig_lstm) == 0.02);
    assert_true(seconds_of(store, &store_rig_narrow, store_rig_lstm) == 0);
    assert_true(seconds_of(store, &store_rig_wide, "lstm 8 8") == 0);
    newer.build = "b2";
    assert_true(seconds_of(store, &newer, CG_OPENING) == 0);
    /* It is no cost. */
    assert_int_equal(store_rig_count(store, &store_rig_wide, store_rig_lstm,
                                     CG_BACK_TO_BACK),
                     0);
    cg_cost_store_close(store);
    /* What the user measured goes before the site's. */
    store = store_rig_open(scratch_path("once.user"), path);
    assert_true(seconds_of(store, &opening, CG_OPENING) == 0.3);
    put_once(store, &opening, CG_OPENING, 0.5);
    assert_true(seconds_of(store, &opening, CG_OPENING) == 0.5);
    assert_true(seconds_of(store, &store_rig_wide, store_rig_lstm) == 0.02);
    cg_cost_store_close(store);
}

static void limits_of_memory_are_kept(void **state)
{
    const char *path = scratch_path("limits");
    cg_cost_store *store = store_rig_open(path, NULL);
    cg_cost_candidate newer = store_rig_wide;
    cg_cost_limit limit;

    (void)state;
    put_limit(store, &store_rig_wide, 64, 128);
    put_limit(store, &store_rig_wide, 8, 512);
    cg_cost_store_close(store);
    store = store_rig_open(path, NULL);
    assert_int_equal(limits_of(store, &store_rig_wide, &limit), 2);
    assert_int_equal(limit.batch, 8);
    assert_int_equal(limit.steps, 512);
    assert_true(limit.at > 1700000000);
    assert_int_equal(limits_of(store, &store_rig_narrow, &limit), 0);
    newer.settings = "memory=2";
    assert_int_equal(limits_of(store, &newer, &limit), 0);
    /* A run at a shape, or a larger one, lifts what was said of it. */
    store_rig_put(store, &store_rig_wide, store_rig_point(63, 512, 1e-3, 9));
    assert_int_equal(limits_of(store, &store_rig_wide, &limit), 1);
    assert_int_equal(limit.batch, 64);
    store_rig_put(store, &store_rig_wide, store_rig_point(64, 128, 1e-3, 9));
    assert_int_equal(limits_of(store, &store_rig_wide, &limit), 0);
    cg_cost_store_close(store);
}

static void they_go_to_other_machines(void **state)
{
    cg_cost_store *from = store_rig_open(NULL, NULL),
                  *to = store_rig_open(NULL, NULL);
    char *text, *again;
    cg_cost_limit limit;
    size_t rows = 0;

    (void)state;
    store_rig_put(from, &store_rig_wide,
                  store_rig_point(64, 20, 1.0 / 3e4, 31));
    put_once(from, &opening, CG_OPENING, 1.0 / 3);
    put_once(from, &store_rig_wide, store_rig_lstm, 0.02);
    put_limit(from, &store_rig_wide, 64, 128);
    text = store_rig_export(from);
    assert_int_equal(store_rig_import(to, text, &rows, NULL), CELLGATE_OK);
    assert_int_equal(rows, 4);
    again = store_rig_export(to);
    assert_string_equal(text, again);
    assert_true(seconds_of(to, &opening, CG_OPENING) == 1.0 / 3);
    assert_int_equal(limits_of(to, &store_rig_wide, &limit), 1);
    free(text);
    free(again);
    cg_cost_store_close(from);
    cg_cost_store_close(to);
}

#define TITLE "# cellgate calibration 2: and so on\n"
#define OPENING(seconds, at)                                                   \
    "cpu\tfast 1.0\tb1\tid\t\t\t\tx86\t\tonce\t1\t0\t1000\t" seconds           \
    "\t" seconds "\t" seconds "\t0\t1\t" at "\n"
#define LIMIT(at)                                                              \
    "cpu\tfast 1.0\tb1\tid\t\t\t\tx86\t\tno-memory\t8\t0\t1000\t0\t0\t0"       \
    "\t0\t0\t" at "\n"

/* A store over a site's has both in its export: the user's is the later one. */
static void the_later_one_stays(void **state)
{
    cg_cost_store *store = store_rig_open(NULL, NULL);
    cg_cost_limit *limits;
    size_t rows, count;

    (void)state;
    assert_int_equal(
        store_rig_import(store,
                         TITLE OPENING("0.5", "1700000002") LIMIT("1700000002")
                             OPENING("7", "1700000001") LIMIT("1700000001"),
                         &rows, NULL),
        CELLGATE_OK);
    assert_true(seconds_of(store, &opening, CG_OPENING) == 0.5);
    assert_int_equal(cg_cost_store_limits(store, &opening, CG_OPENING, &limits,
                                          &count, NULL),
                     CELLGATE_OK);
    assert_int_equal(count, 1);
    assert_int_equal(limits[0].at, 1700000002);
    free(limits);
    assert_int_equal(store_rig_import(store,
                                      TITLE OPENING("0.25", "1700000003"),
                                      &rows, NULL),
                     CELLGATE_OK);
    assert_true(seconds_of(store, &opening, CG_OPENING) == 0.25);
    cg_cost_store_close(store);
}

/* A file as the first layout had it. */
static const char *make_first_layout(const char *name)
{
    const char *path = scratch_path(name);
    cg_cost_store *store = store_rig_open(path, NULL);
    sqlite3 *file = NULL;

    store_rig_put(store, &store_rig_wide, store_rig_point(64, 20, 1e-4, 31));
    cg_cost_store_close(store);
    assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file,
                                  "DROP TABLE once; DROP TABLE limits;"
                                  "PRAGMA user_version = 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(file);
    return path;
}

static void the_first_layout_is_brought_up(void **state)
{
    const char *path = make_first_layout("first");
    cg_cost_store *store = store_rig_open(path, NULL);
    cg_cost_limit limit;

    (void)state;
    assert_null(cg_cost_store_note(store, 0));
    assert_true(store_rig_only(store, &store_rig_wide).summary.median == 1e-4);
    assert_true(seconds_of(store, &store_rig_wide, store_rig_lstm) == 0);
    put_once(store, &store_rig_wide, store_rig_lstm, 0.02);
    put_limit(store, &store_rig_wide, 64, 128);
    cg_cost_store_close(store);
    store = store_rig_open(path, NULL);
    assert_true(seconds_of(store, &store_rig_wide, store_rig_lstm) == 0.02);
    assert_int_equal(limits_of(store, &store_rig_wide, &limit), 1);
    assert_true(store_rig_only(store, &store_rig_wide).summary.median == 1e-4);
    cg_cost_store_close(store);
}

/* A site's file is not written: what it lacks is not measured. */
static void the_first_layout_is_read_as_it_is(void **state)
{
    const char *path = make_first_layout("site.first");
    cg_cost_store *store = store_rig_open(NULL, path);
    size_t unused = 0, size;
    cg_cost_limit limit;
    char *text = NULL;
    FILE *stream;

    (void)state;
    assert_null(cg_cost_store_note(store, 0));
    assert_true(store_rig_only(store, &store_rig_wide).summary.median == 1e-4);
    assert_true(seconds_of(store, &store_rig_wide, store_rig_lstm) == 0);
    assert_int_equal(limits_of(store, &store_rig_wide, &limit), 0);
    put_once(store, &store_rig_wide, store_rig_lstm, 0.02);
    assert_true(seconds_of(store, &store_rig_wide, store_rig_lstm) == 0.02);
    stream = open_memstream(&text, &size);
    assert_int_equal(
        cg_cost_store_diff(store, &store_rig_narrow, 1, stream, &unused, NULL),
        CELLGATE_OK);
    assert_int_equal(unused, 2); /* the site's cost, and what was put */
    fclose(stream);
    free(text);
    text = store_rig_export(store);
    assert_non_null(strstr(text, "\tonce\t"));
    free(text);
    cg_cost_store_close(store);
}

static void nonsense_was_never_measured(void **state)
{
    const char *path = scratch_path("nonsense");
    cg_cost_store *store = store_rig_open(path, NULL);
    sqlite3 *file = NULL;
    cg_cost_limit limit;

    (void)state;
    put_once(store, &opening, CG_OPENING, 0.4);
    put_once(store, &store_rig_wide, store_rig_lstm, 0.4);
    put_limit(store, &store_rig_wide, 64, 128);
    cg_cost_store_close(store);
    assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(file,
                     "UPDATE once SET seconds = CASE WHEN candidate = (SELECT "
                     "min(candidate) FROM once) THEN -1 ELSE 1e300 END;"
                     "UPDATE limits SET batch = 0",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(file);
    store = store_rig_open(path, NULL);
    assert_true(seconds_of(store, &opening, CG_OPENING) == 0);
    assert_true(seconds_of(store, &store_rig_wide, store_rig_lstm) == 0);
    assert_int_equal(limits_of(store, &store_rig_wide, &limit), 0);
    cg_cost_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_done_once_is_kept),
        cmocka_unit_test(limits_of_memory_are_kept),
        cmocka_unit_test(they_go_to_other_machines),
        cmocka_unit_test(the_later_one_stays),
        cmocka_unit_test(the_first_layout_is_brought_up),
        cmocka_unit_test(the_first_layout_is_read_as_it_is),
        cmocka_unit_test(nonsense_was_never_measured),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
