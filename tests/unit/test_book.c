/* SPDX-License-Identifier: Apache-2.0 */
/* The book over stores that are well, locked, full or not there. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "runtime/schedule/book_pages.h"
#include "tests/unit/scratch_folder.h"

static const cg_cost_candidate one_thread = { "cpu", "fast 1.0", "b1",  "id",
                                              "",    "t1",       "f32", "x86" };
static const char lstm[] = "lstm 16 32";
static const cg_cost_shape shape = { 4, 8, 1 };

static int complaints;
static char complaint[1024];

static void hear(void *context, const char *text)
{
    (void)context;
    complaints++;
    snprintf(complaint, sizeof complaint, "%s", text);
}

static cg_cost_book *open_book(const char *path)
{
    cg_cost_store *store;
    cg_cost_book *book;

    complaints = 0;
    complaint[0] = '\0';
    assert_int_equal(cg_cost_store_open(path, NULL, &store, NULL), CELLGATE_OK);
    assert_int_equal(cg_cost_book_create(store, hear, NULL, &book, NULL),
                     CELLGATE_OK);
    return book;
}

static cellgate_status put(cg_cost_book *book, cg_regime regime, double seconds)
{
    const cg_cost_point point = {
        shape, { seconds, seconds, seconds, .error = 0.01, .count = 31 }, 0
    };

    return cg_cost_book_put(book, &one_thread, lstm, regime, &point, NULL);
}

/* Seconds, or 0 for none; it never fails. */
static double predicted(cg_cost_book *book, cg_regime regime)
{
    cg_cost cost;

    assert_int_equal(cg_cost_book_predict(book, &one_thread, lstm, regime,
                                          &shape, &cost, NULL),
                     CELLGATE_OK);
    return cost.kind == CG_COST_NONE ? 0 : cost.seconds;
}

static cg_cost_verdict verdict_of(cg_cost_book *book)
{
    cg_cost_verdict verdict = { .checked = true };

    assert_int_equal(
        cg_cost_book_verdict(book, &one_thread, lstm, &verdict, NULL),
        CELLGATE_OK);
    return verdict;
}

static const cg_cost_verdict wrong = { .checked = true, .worst = 0.3 };

static void what_is_put_holds(void **state)
{
    cg_cost_book *book = open_book(scratch_path("well"));
    uint64_t before = cg_cost_book_generation(book);
    cg_cost_point *points;
    size_t count;

    (void)state;
    assert_true(predicted(book, CG_SPACED) == 0);
    assert_false(verdict_of(book).checked);
    assert_int_equal(put(book, CG_SPACED, 2e-3), CELLGATE_OK);
    assert_true(cg_cost_book_generation(book) > before);
    assert_true(predicted(book, CG_SPACED) == 2e-3);
    assert_true(predicted(book, CG_BACK_TO_BACK) == 0);
    before = cg_cost_book_generation(book);
    assert_int_equal(
        cg_cost_book_put_verdict(book, &one_thread, lstm, &wrong, NULL),
        CELLGATE_OK);
    assert_true(cg_cost_book_generation(book) > before);
    assert_true(verdict_of(book).checked && !verdict_of(book).right);
    assert_int_equal(put(book, CG_SPACED, 1e-3), CELLGATE_OK);
    assert_true(predicted(book, CG_SPACED) == 1e-3);
    cg_cost_book_release(book);

    /* Another process. */
    book = open_book(scratch_path("well"));
    assert_true(predicted(book, CG_SPACED) == 1e-3);
    assert_true(verdict_of(book).worst == 0.3);
    assert_int_equal(cg_cost_book_points(book, &one_thread, lstm, CG_SPACED,
                                         &points, &count, NULL),
                     CELLGATE_OK);
    assert_int_equal(count, 1);
    free(points);
    assert_int_equal(complaints, 0);
    assert_int_equal(cg_cost_book_trouble(book, NULL), CELLGATE_OK);
    cg_cost_book_release(book);
}

static sqlite3 *lock_file(const char *path)
{
    sqlite3 *file;

    assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file, "BEGIN EXCLUSIVE", NULL, NULL, NULL),
                     SQLITE_OK);
    return file;
}

/* Somebody writes for long: nothing is known, and nothing fails. */
static void a_locked_store_is_as_good_as_empty(void **state)
{
    const char *path = scratch_path("locked");
    cg_cost_book *book = open_book(path);
    cellgate_error error = CELLGATE_ERROR_INIT;
    uint64_t before;
    sqlite3 *other;

    (void)state;
    assert_int_equal(put(book, CG_SPACED, 2e-3), CELLGATE_OK);
    cg_cost_book_release(book);
    book = open_book(path);
    other = lock_file(path);
    before = cg_cost_book_generation(book);
    assert_true(predicted(book, CG_SPACED) == 0);
    assert_true(predicted(book, CG_BACK_TO_BACK) == 0);
    assert_false(verdict_of(book).checked);
    assert_false(cg_cost_book_knows(book, "id"));
    assert_int_equal(complaints, 1);
    assert_non_null(strstr(complaint, "locked"));
    assert_int_equal(cg_cost_book_trouble(book, &error), CELLGATE_BUSY);
    assert_non_null(strstr(error.text, "calibration store"));
    assert_true(cg_cost_book_generation(book) == before);
    /* Whoever decided asks again some time later, in vain, and again. */
    book->retry = 0;
    assert_true(cg_cost_book_generation(book) == before + 1);
    assert_true(cg_cost_book_generation(book) == before + 1);
    assert_true(predicted(book, CG_SPACED) == 0);
    sqlite3_close(other);
    assert_true(predicted(book, CG_SPACED) == 0);
    book->retry = 0;
    before = cg_cost_book_generation(book);
    assert_true(predicted(book, CG_SPACED) == 2e-3);
    assert_true(cg_cost_book_generation(book) > before);
    assert_int_equal(cg_cost_book_trouble(book, NULL), CELLGATE_OK);
    cg_cost_book_release(book);
}

/* What was measured while the store could not be read is newer than it. */
static void what_is_newer_stays(void **state)
{
    const char *path = scratch_path("newer");
    cg_cost_book *book = open_book(path);
    sqlite3 *other;

    (void)state;
    assert_int_equal(put(book, CG_SPACED, 2e-3), CELLGATE_OK);
    cg_cost_book_release(book);
    book = open_book(path);
    other = lock_file(path);
    assert_true(predicted(book, CG_SPACED) == 0);
    sqlite3_close(other);
    assert_int_equal(put(book, CG_SPACED, 3e-3), CELLGATE_OK);
    book->retry = 0;
    assert_true(predicted(book, CG_SPACED) == 3e-3);
    cg_cost_book_release(book);
}

static void without_a_file_it_holds_for_the_process(void **state)
{
    cg_cost_book *book = open_book("/dev/null/none");

    (void)state;
    assert_int_equal(put(book, CG_SPACED, 2e-3), CELLGATE_IO);
    assert_non_null(strstr(complaint, "/dev/null/none"));
    assert_int_equal(
        cg_cost_book_put_verdict(book, &one_thread, lstm, &wrong, NULL),
        CELLGATE_IO);
    assert_true(complaints >= 1);
    assert_int_equal(cg_cost_book_trouble(book, NULL), CELLGATE_OK);
    assert_true(predicted(book, CG_SPACED) == 2e-3);
    assert_true(verdict_of(book).worst == 0.3);
    cg_cost_book_release(book);
    book = open_book(NULL);
    assert_int_equal(put(book, CG_SPACED, 2e-3), CELLGATE_IO);
    assert_int_equal(complaints, 1);
    assert_non_null(strstr(complaint, "[calibration] store"));
    assert_true(predicted(book, CG_SPACED) == 2e-3);
    cg_cost_book_release(book);
}

/* A file that may not grow any more is what a full disk looks like. */
static void on_a_full_disk_it_holds_for_the_process(void **state)
{
    const char *path = scratch_path("full");
    cg_cost_book *book = open_book(path);
    struct rlimit before, none;
    struct stat about;

    (void)state;
    assert_int_equal(put(book, CG_BACK_TO_BACK, 1e-3), CELLGATE_OK);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 1;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(put(book, CG_SPACED, 2e-3), CELLGATE_IO);
    assert_int_equal(put(book, CG_BACK_TO_BACK, 4e-3), CELLGATE_IO);
    assert_int_equal(
        cg_cost_book_put_verdict(book, &one_thread, lstm, &wrong, NULL),
        CELLGATE_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(complaints, 1);
    assert_non_null(strstr(complaint, "for this process alone"));
    assert_true(predicted(book, CG_SPACED) == 2e-3);
    /* Also when what the store has is read again. */
    (void)cg_cost_book_lock(book);
    cg_cost_book_unlock(book, true);
    assert_true(predicted(book, CG_SPACED) == 2e-3);
    assert_true(predicted(book, CG_BACK_TO_BACK) == 4e-3);
    assert_true(verdict_of(book).worst == 0.3);
    cg_cost_book_release(book);
}

/* Of a structure that was never measured, from the one that is most alike. */
static void structures_lend_costs(void **state)
{
    static const char small[] = "lstm 64 64 d1 a1 a2 a2 o1";
    static const char middle[] = "lstm 80 80 d1 a1 a2 a2 o1";
    static const char large[] = "lstm 512 512 d1 a1 a2 a2 o1";
    const cg_cost_point point = { shape, { 1e-3, 1e-3, 1e-3, 0.01, 31 }, 0 };
    const cg_cost_point far_off = { shape, { 1, 1, 1, 0.01, 31 }, 0 };
    cg_cost_candidate other = one_thread;
    cg_cost_book *book = open_book(scratch_path("lending"));
    cg_cost cost;

    (void)state;
    other.variant = "t2";
    assert_int_equal(
        cg_cost_book_put(book, &one_thread, small, CG_SPACED, &point, NULL),
        CELLGATE_OK);
    assert_int_equal(
        cg_cost_book_put(book, &one_thread, large, CG_SPACED, &far_off, NULL),
        CELLGATE_OK);
    for (int process = 0; process < 2; process++) {
        assert_int_equal(cg_cost_book_predict(book, &one_thread, middle,
                                              CG_SPACED, &shape, &cost, NULL),
                         CELLGATE_OK);
        assert_int_equal(cost.kind, CG_COST_BORROWED);
        assert_true(cost.seconds > 1e-3 && cost.seconds < 0.1);
        assert_int_equal(cg_cost_book_predict(book, &one_thread, middle,
                                              CG_BACK_TO_BACK, &shape, &cost,
                                              NULL),
                         CELLGATE_OK);
        assert_int_equal(cost.kind, CG_COST_NONE);
        assert_int_equal(cg_cost_book_predict(book, &other, middle, CG_SPACED,
                                              &shape, &cost, NULL),
                         CELLGATE_OK);
        assert_int_equal(cost.kind, CG_COST_NONE);
        cg_cost_book_release(book);
        book = open_book(scratch_path("lending"));
    }
    /* Something nearer, and at last the thing itself. */
    assert_int_equal(cg_cost_book_predict(book, &one_thread, middle, CG_SPACED,
                                          &shape, &cost, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_cost_book_put(book, &one_thread,
                                      "lstm 79 80 d1 a1 a2 a2 o1", CG_SPACED,
                                      &far_off, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_cost_book_predict(book, &one_thread, middle, CG_SPACED,
                                          &shape, &cost, NULL),
                     CELLGATE_OK);
    assert_true(cost.kind == CG_COST_BORROWED && cost.seconds > 1);
    assert_int_equal(
        cg_cost_book_put(book, &one_thread, middle, CG_SPACED, &point, NULL),
        CELLGATE_OK);
    assert_int_equal(cg_cost_book_predict(book, &one_thread, middle, CG_SPACED,
                                          &shape, &cost, NULL),
                     CELLGATE_OK);
    assert_true(cost.kind == CG_COST_EXACT && cost.seconds == 1e-3);
    cg_cost_book_release(book);
}

static void traffic_weighs(void **state)
{
    const cg_cost_shape cells[] = { { 1, 1, 1 }, { 1, 64, 1 }, { 64, 64, 1 } };
    cg_cost_book *book = open_book(NULL);
    double weights[3];

    (void)state;
    cg_cost_book_weights(book, lstm, cells, 3, weights);
    assert_true(weights[0] == 1 && weights[1] == 1 && weights[2] == 1);
    /* Three in four near the second one, one in four at the third. */
    cg_cost_book_saw(book, lstm, &(cg_cost_shape){ 2, 50, 1 }, 1);
    cg_cost_book_saw(book, lstm, &(cg_cost_shape){ 64, 64, 1 }, 1);
    cg_cost_book_saw(book, lstm, &(cg_cost_shape){ 2, 50, 1 }, 2);
    cg_cost_book_saw(book, "lstm 1 1", &(cg_cost_shape){ 1, 1, 1 }, 100);
    cg_cost_book_weights(book, lstm, cells, 3, weights);
    assert_true(weights[0] == 1);
    assert_true(weights[1] == 1 + 0.75 * CG_TRAFFIC_WEIGHT);
    assert_true(weights[2] == 1 + 0.25 * CG_TRAFFIC_WEIGHT);
    /* Many more: the rare ones go, the frequent ones stay. */
    for (int64_t batch = 1; batch < 1000; batch++)
        cg_cost_book_saw(book, "lstm 2 2", &(cg_cost_shape){ batch, 1, 1 },
                         0.5);
    cg_cost_book_weights(book, lstm, cells, 3, weights);
    assert_true(weights[1] == 1 + 0.75 * CG_TRAFFIC_WEIGHT);
    cg_cost_book_release(book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_holds),
        cmocka_unit_test(structures_lend_costs),
        cmocka_unit_test(traffic_weighs),
        cmocka_unit_test(a_locked_store_is_as_good_as_empty),
        cmocka_unit_test(what_is_newer_stays),
        cmocka_unit_test(without_a_file_it_holds_for_the_process),
        cmocka_unit_test(on_a_full_disk_it_holds_for_the_process),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
