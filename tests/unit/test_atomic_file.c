/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/formats/atomic_file.h"
#include "tests/unit/scratch_folder.h"

static void expect_content(const char *path, const char *want)
{
    size_t size = 0;
    unsigned char *data = read_whole_file(path, &size);

    assert_int_equal(size, strlen(want));
    assert_memory_equal(data, want, size);
    free(data);
}

static mode_t mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static cg_atomic_file *opened(const char *path)
{
    cg_atomic_file *file = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cg_atomic_file_open(path, &file, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return file;
}

static void put(const char *path, const char *text)
{
    cg_atomic_file *file = opened(path);

    assert_true(fputs(text, cg_atomic_file_stream(file)) >= 0);
    assert_int_equal(cg_atomic_file_commit(file, NULL), CELLGATE_OK);
}

static void new_file_appears_at_commit(void **state)
{
    const char *path = scratch_path("new");
    size_t before = scratch_count();
    cg_atomic_file *file = opened(path);

    (void)state;
    (void)fputs("text", cg_atomic_file_stream(file));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(cg_atomic_file_commit(file, NULL), CELLGATE_OK);
    expect_content(path, "text");
    assert_int_equal(scratch_count(), before + 1);
}

static void old_file_stays_until_commit(void **state)
{
    const char *path = scratch_write("old", "before", 6);
    cg_atomic_file *file = opened(path);

    (void)state;
    (void)fputs("after", cg_atomic_file_stream(file));
    (void)fflush(cg_atomic_file_stream(file));
    expect_content(path, "before");
    assert_int_equal(cg_atomic_file_commit(file, NULL), CELLGATE_OK);
    expect_content(path, "after");
}

static void abandoned_leaves_nothing(void **state)
{
    const char *path = scratch_write("kept", "before", 6);
    size_t before = scratch_count();
    cg_atomic_file *file = opened(path);

    (void)state;
    (void)fputs("after", cg_atomic_file_stream(file));
    assert_int_equal(scratch_count(), before + 1);
    cg_atomic_file_abandon(file);
    expect_content(path, "before");
    assert_int_equal(scratch_count(), before);
    cg_atomic_file_abandon(NULL);
}

static void new_file_follows_the_umask(void **state)
{
    mode_t umask_before = umask(027);

    (void)state;
    put(scratch_path("masked"), "x");
    (void)umask(umask_before);
    assert_int_equal(mode_of(scratch_path("masked")), 0640);
}

static void replaced_file_keeps_its_mode(void **state)
{
    const char *path = scratch_write("secret", "x", 1);

    (void)state;
    assert_int_equal(chmod(path, 0600), 0);
    put(path, "y");
    assert_int_equal(mode_of(path), 0600);
    expect_content(path, "y");
}

static void link_stays_a_link(void **state)
{
    const char *target = scratch_write("target", "x", 1);
    const char *path = scratch_path("link");
    struct stat status;

    (void)state;
    assert_int_equal(symlink("target", path), 0);
    put(path, "through");
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    expect_content(target, "through");
}

static void name_without_folder(void **state)
{
    (void)state;
    put("atomic-file-here", "x");
    expect_content("atomic-file-here", "x");
    assert_int_equal(unlink("atomic-file-here"), 0);
}

static void expect_refused(const char *path, const char *text)
{
    cg_atomic_file *file = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cg_atomic_file_open(path, &file, &error), CELLGATE_IO);
    assert_null(file);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, text));
}

static void what_cannot_be_replaced_is_refused(void **state)
{
    struct stat status;

    (void)state;
    expect_refused(scratch_folder(), "not a regular file");
    expect_refused("/dev/null", "not a regular file");
    expect_refused("no-such-folder/file", "No such file");
    expect_refused("", "names no file");
    expect_refused("no-such-folder/", "names no file");
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
}

/* A full disk, played by a limit on the size of files. */
static void failed_write_leaves_the_old_file(void **state)
{
    const char *path = scratch_write("full", "before", 6);
    size_t before = scratch_count();
    cg_atomic_file *file = opened(path);
    cellgate_error error = CELLGATE_ERROR_INIT;
    struct rlimit limit, small;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 1000;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 100000; i++)
        (void)fputc('x', cg_atomic_file_stream(file));
    cellgate_status result = cg_atomic_file_commit(file, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(result, CELLGATE_IO);
    assert_non_null(strstr(error.text, path));
    expect_content(path, "before");
    assert_int_equal(scratch_count(), before);
}

/* Something takes the name in between: the rename fails. */
static void failed_rename_is_reported(void **state)
{
    const char *folder = scratch_path("sub");
    cg_atomic_file *file;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_int_equal(mkdir(folder, 0777), 0);
    file = opened(scratch_path("sub/file"));
    /* A folder in the file's place cannot be replaced by a file. */
    assert_int_equal(mkdir(scratch_path("sub/file"), 0777), 0);
    (void)fputs("x", cg_atomic_file_stream(file));
    assert_int_equal(cg_atomic_file_commit(file, &error), CELLGATE_IO);
    assert_non_null(strstr(error.text, "sub/file"));
    assert_int_equal(rmdir(scratch_path("sub/file")), 0);
    assert_int_equal(rmdir(folder), 0); /* so the temporary file is gone */
}

static void two_writers_do_not_mix(void **state)
{
    const char *path = scratch_path("both");
    cg_atomic_file *first = opened(path);
    cg_atomic_file *second = opened(path);

    (void)state;
    (void)fputs("first", cg_atomic_file_stream(first));
    (void)fputs("second", cg_atomic_file_stream(second));
    assert_int_equal(cg_atomic_file_commit(second, NULL), CELLGATE_OK);
    expect_content(path, "second");
    assert_int_equal(cg_atomic_file_commit(first, NULL), CELLGATE_OK);
    expect_content(path, "first");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_file_appears_at_commit),
        cmocka_unit_test(old_file_stays_until_commit),
        cmocka_unit_test(abandoned_leaves_nothing),
        cmocka_unit_test(new_file_follows_the_umask),
        cmocka_unit_test(replaced_file_keeps_its_mode),
        cmocka_unit_test(link_stays_a_link),
        cmocka_unit_test(name_without_folder),
        cmocka_unit_test(what_cannot_be_replaced_is_refused),
        cmocka_unit_test(failed_write_leaves_the_old_file),
        cmocka_unit_test(failed_rename_is_reported),
        cmocka_unit_test(two_writers_do_not_mix),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
