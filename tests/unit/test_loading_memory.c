/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading each kind of file, and writing the native one, with each allocation
 * failing in turn, those of the libraries too: NO_MEMORY, and nothing leaks.
 *
 * Each attempt is a process of its own, for Jansson 2.14's sake: when it cannot
 * grow the buffer of its scanner it drops a character, and then may blame the
 * text, take it, or end the process. Of that the library cannot know. Such
 * allocations, and no others, are let pass: a power of two of bytes, asked for
 * within json_loadb(), a few for each text. libzip 1.7 for its part loses a
 * source of up to 160 bytes when opening a member fails.
 */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cellgate/cellgate.h"
#include "runtime/config/settings.h"
#include "tests/unit/heap_watch.h"
#include "tests/unit/scratch_folder.h"

/* From 32 bytes to 64 KiB, for each of three texts. */
#define SCANNER_MOST 36
#define LIBZIP_LOSES 160u

typedef cellgate_status (*action)(const char *path, cellgate_error *error);

static cellgate_status load_model(const char *path, cellgate_error *error)
{
    cellgate_model *model = NULL;
    const cellgate_status status = cellgate_model_load(path, &model, error);

    cellgate_model_destroy(model);
    return status;
}

static cellgate_status load_arrays(const char *path, cellgate_error *error)
{
    cellgate_arrays *arrays = NULL;
    const cellgate_status status = cellgate_arrays_read(path, &arrays, error);

    cellgate_arrays_destroy(arrays);
    return status;
}

static cellgate_status load_config(const char *path, cellgate_error *error)
{
    cg_config *config = NULL;
    const cellgate_status status = cg_config_read(path, &config, error);

    cg_config_destroy(config);
    return status;
}

/* ---- One attempt --------------------------------------------------------- */

typedef struct outcome {
    bool reached;        /* there were so many allocations */
    bool by_the_scanner; /* Jansson's buffer may be what did not grow */
    bool opening;        /* libzip was opening a member */
    bool ended;          /* the action returned */
    cellgate_status status;
    size_t live;
    cellgate_error error;
} outcome;

static outcome *shared; /* with the child */

static bool power_of_two(size_t size)
{
    return size >= 32 && (size & (size - 1)) == 0;
}

/* Called as the allocation fails: a crash may come of it. */
static void note_failure(void)
{
    shared->reached = true;
    shared->by_the_scanner = power_of_two(heap_watch_failed_size()) &&
                             heap_watch_failed_in("json_loadb");
    shared->opening = heap_watch_failed_in("zip_fopen_index_encrypted");
}

static void attempt(action act, const char *path, size_t nth)
{
    shared->error.struct_size = sizeof shared->error;
    heap_watch_tell(note_failure);
    heap_watch_begin(nth);
    shared->status = act(path, &shared->error);
    (void)heap_watch_end();
    shared->live = heap_watch_live();
    shared->ended = true;
}

static void attempt_apart(action act, const char *path, size_t nth)
{
    pid_t child;
    int how;

    memset(shared, 0, sizeof *shared);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* cmocka would go on with the next test in this process. */
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGBUS, SIG_DFL);
        /* A crash that is expected is not worth a report. */
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(2);
        attempt(act, path, nth);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
}

/* Returns how many allocations there are. */
static size_t fail_each(action act, const char *path)
{
    size_t nth, by_the_scanner = 0;

    /* What libraries keep from the first time is no leak. */
    assert_int_equal(act(path, NULL), CELLGATE_OK);
    for (nth = 1; nth < 20000; nth++) {
        attempt_apart(act, path, nth);
        if (!shared->reached)
            break;
        if (shared->by_the_scanner &&
            (!shared->ended || shared->status != CELLGATE_NO_MEMORY ||
             shared->live != 0)) {
            by_the_scanner++;
            continue;
        }
        if (!shared->ended)
            fail_msg("%s: crashes when allocation %zu fails", path, nth);
        if (shared->live > (shared->opening ? LIBZIP_LOSES : 0))
            fail_msg("%s: %zu bytes leak when allocation %zu fails", path,
                     shared->live, nth);
        /* Some things are done without memory that was refused. */
        if (shared->status != CELLGATE_NO_MEMORY &&
            shared->status != CELLGATE_OK)
            fail_msg("%s: status %d when allocation %zu fails: %s", path,
                     (int)shared->status, nth, shared->error.text);
    }
    assert_true(shared->ended);
    assert_int_equal(shared->status, CELLGATE_OK);
    assert_int_equal(shared->live, 0);
    assert_in_range(by_the_scanner, 0, SCANNER_MOST);
    return nth - 1;
}

/* ---- The kinds of files -------------------------------------------------- */

/* Sanitizers have a strdup() of their own, which is not seen: fewer allocations
   there than elsewhere. */

#define FIXTURE(name) CELLGATE_FIXTURES "/" name

static void configuration(void **state)
{
    (void)state;
    assert_in_range(
        fail_each(load_config, CELLGATE_FIXTURES "/../../etc/cellgate.ini"), 4,
        1000);
}

static void npy(void **state)
{
    (void)state;
    assert_in_range(fail_each(load_arrays, FIXTURE("npy/f4.npy")), 4, 50);
    assert_in_range(fail_each(load_arrays, FIXTURE("npy/fortran3.npy")), 5, 50);
}

static void npz(void **state)
{
    (void)state;
    assert_in_range(fail_each(load_arrays, FIXTURE("npy/stored.npz")), 50,
                    1000);
    assert_in_range(fail_each(load_arrays, FIXTURE("npy/deflated.npz")), 50,
                    1000);
}

static void native(void **state)
{
    const char *path = scratch_path("model.safetensors");
    cellgate_model *model = NULL;

    (void)state;
    assert_int_equal(cellgate_model_load(FIXTURE("keras/encoder_decoder.keras"),
                                         &model, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_model_save(model, path, NULL), CELLGATE_OK);
    cellgate_model_destroy(model);
    assert_in_range(fail_each(load_model, path), 100, 5000);
}

static void keras(void **state)
{
    (void)state;
    assert_in_range(fail_each(load_model, FIXTURE("keras/lstm_one_step.keras")),
                    200, 5000);
}

static void hdf5(void **state)
{
    (void)state;
    assert_in_range(
        fail_each(load_model, FIXTURE("keras_old/k2.2.4_stacked.h5")), 100,
        5000);
}

/* ---- Writing ------------------------------------------------------------- */

static cellgate_model *sound;

static cellgate_status save_model(const char *path, cellgate_error *error)
{
    return cellgate_model_save(sound, path, error);
}

static void converting(void **state)
{
    (void)state;
    assert_int_equal(cellgate_model_load(FIXTURE("keras/encoder_decoder.keras"),
                                         &sound, NULL),
                     CELLGATE_OK);
    assert_in_range(fail_each(save_model, scratch_path("out.safetensors")), 50,
                    5000);
    /* No attempt leaves a temporary file behind. */
    assert_in_range(scratch_count(), 1, 2);
    cellgate_model_destroy(sound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configuration), cmocka_unit_test(npy),
        cmocka_unit_test(npz),           cmocka_unit_test(native),
        cmocka_unit_test(keras),         cmocka_unit_test(hdf5),
        cmocka_unit_test(converting),
    };

    /* Else the C library keeps the zone's name anew with every date. */
    if (setenv("TZ", "UTC0", 1) != 0)
        return EXIT_FAILURE;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return EXIT_FAILURE;
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
