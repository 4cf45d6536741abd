/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/config/locate.h"
#include "runtime/config/settings.h"
#include "tests/unit/fail_allocation.h"

/*
 * Each test runs in an empty folder of its own. The file under test is compiled
 * once more for it with the system's folder at "system" in there.
 */
static bool privileged;

bool __wrap_cg_privileged(void);
bool __wrap_cg_privileged(void)
{
    return privileged;
}

static char folder[64];
static char home[96], xdg[96];

static int enter_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/cellgate-locate-XXXXXX");
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        return -1;
    (void)snprintf(home, sizeof home, "%s/home", folder);
    (void)snprintf(xdg, sizeof xdg, "%s/xdg", folder);
    privileged = false;
    (void)setenv("HOME", home, 1);
    (void)unsetenv("XDG_CONFIG_HOME");
    (void)unsetenv("CELLGATE_CONFIG");
    return 0;
}

static int leave_folder(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return chdir("/") != 0 || system(command) != 0 ? -1 : 0;
}

static void make_folders(const char *path)
{
    char made[256];

    for (size_t i = 1; path[i] != '\0'; i++)
        if (path[i] == '/') {
            (void)snprintf(made, sizeof made, "%.*s", (int)i, path);
            assert_true(mkdir(made, 0700) == 0 || errno == EEXIST);
        }
}

static void write_file(const char *path, const char *text)
{
    FILE *file;

    make_folders(path);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void finds(const char *given, const char *path, const char *bytes)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config_text text = { NULL, NULL, 0 };

    if (cg_config_locate(given, &text, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_string_equal(text.path, path);
    assert_int_equal(text.size, strlen(bytes));
    if (text.size > 0)
        assert_memory_equal(text.bytes, bytes, text.size);
    cg_config_text_finish(&text);
}

static void fails(const char *given, cellgate_status status,
                  const char *expected)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config_text text = { NULL, NULL, 0 };

    assert_int_equal(cg_config_locate(given, &text, &error), status);
    assert_null(text.path);
    assert_null(text.bytes);
    assert_string_equal(error.text, expected);
}

#define USER_FILE "home/.config/cellgate/cellgate.ini"
#define SYSTEM_FILE "system/cellgate/cellgate.ini"

static void looks_in_order(void **state)
{
    char path[160];

    (void)state;
    finds(NULL, "", ""); /* nothing anywhere */
    write_file(SYSTEM_FILE, "# system\n");
    finds(NULL, SYSTEM_FILE, "# system\n");
    write_file(USER_FILE, "# home\n");
    (void)snprintf(path, sizeof path, "%s/%s", folder, USER_FILE);
    finds(NULL, path, "# home\n");
    write_file("xdg/cellgate/cellgate.ini", "# xdg\n");
    (void)setenv("XDG_CONFIG_HOME", xdg, 1);
    (void)snprintf(path, sizeof path, "%s/cellgate/cellgate.ini", xdg);
    finds(NULL, path, "# xdg\n");
    write_file("named.ini", "# named\n");
    (void)setenv("CELLGATE_CONFIG", "named.ini", 1);
    finds(NULL, "named.ini", "# named\n");
    write_file("given.ini", "# given\n");
    finds("given.ini", "given.ini", "# given\n");
}

static void ignores_what_is_empty_or_relative(void **state)
{
    (void)state;
    write_file("rel/cellgate/cellgate.ini", "# relative\n");
    (void)setenv("XDG_CONFIG_HOME", "rel", 1);
    (void)setenv("CELLGATE_CONFIG", "", 1);
    finds(NULL, "", "");
    (void)setenv("XDG_CONFIG_HOME", "", 1);
    (void)unsetenv("HOME");
    finds(NULL, "", "");
}

static void a_named_file_must_be_there(void **state)
{
    (void)state;
    fails("none.ini", CELLGATE_IO,
          "none.ini: No such file or directory (given by the application)");
    fails("", CELLGATE_IO,
          ": No such file or directory (given by the application)");
    (void)setenv("CELLGATE_CONFIG", "none.ini", 1);
    fails(NULL, CELLGATE_IO,
          "none.ini: No such file or directory (named by $CELLGATE_CONFIG)");
}

/* A user's file that is there and cannot be read does not give way. */
static void unreadable_files_are_errors(void **state)
{
    char expected[300];

    (void)state;
    write_file(SYSTEM_FILE, "# system\n");
    make_folders(USER_FILE);
    assert_int_equal(symlink("cellgate.ini", USER_FILE), 0); /* to itself */
    (void)snprintf(expected, sizeof expected,
                   "%s/" USER_FILE ": Too many levels of symbolic links (the "
                   "user's configuration)",
                   folder);
    fails(NULL, CELLGATE_IO, expected);
    assert_int_equal(unlink(USER_FILE), 0);
    finds(NULL, SYSTEM_FILE, "# system\n");
    assert_int_equal(unlink(SYSTEM_FILE), 0);
    assert_int_equal(mkdir(SYSTEM_FILE, 0700), 0);
    fails(NULL, CELLGATE_IO,
          SYSTEM_FILE ": this is a folder; name the file in it (the system's "
                      "configuration)");
    if (geteuid() != 0) {
        write_file(USER_FILE, "# home\n");
        assert_int_equal(chmod(USER_FILE, 0), 0);
        (void)snprintf(expected, sizeof expected,
                       "%s/" USER_FILE
                       ": Permission denied (the user's configuration)",
                       folder);
        fails(NULL, CELLGATE_IO, expected);
    }
}

static void a_file_in_the_way_of_a_folder_is_absence(void **state)
{
    (void)state;
    write_file("home/.config/cellgate", "");
    finds(NULL, "", "");
}

static void folders_are_refused(void **state)
{
    (void)state;
    fails(".", CELLGATE_IO,
          ".: this is a folder; name the file in it (given by the "
          "application)");
}

/* Where the user's file is a pipe nobody writes to, nothing may hang. */
static void pipes_are_read_only_when_asked_for(void **state)
{
    char path[64], expected[300];
    int ends[2];

    (void)state;
    make_folders(USER_FILE);
    assert_int_equal(mkfifo(USER_FILE, 0600), 0);
    (void)snprintf(expected, sizeof expected,
                   "%s/" USER_FILE
                   ": this is not a regular file (the user's configuration)",
                   folder);
    fails(NULL, CELLGATE_IO, expected);
    fails(USER_FILE, CELLGATE_IO,
          USER_FILE ": nothing was written to this pipe (given by the "
                    "application)");
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "# pipe\n", 7), 7);
    assert_int_equal(close(ends[1]), 0);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    finds(path, path, "# pipe\n");
    assert_int_equal(close(ends[0]), 0);
    finds("/dev/null", "/dev/null", "");
}

static void large_files_are_refused(void **state)
{
    (void)state;
    write_file("large.ini", "");
    assert_int_equal(truncate("large.ini", CG_CONFIG_BYTES_MAX + 1), 0);
    fails("large.ini", CELLGATE_BAD_CONFIG,
          "large.ini: the file has more than 1048576 bytes, so it is no "
          "configuration");
}

static void privileged_processes_trust_only_the_system(void **state)
{
    (void)state;
    write_file(USER_FILE, "# home\n");
    write_file("named.ini", "# named\n");
    (void)setenv("CELLGATE_CONFIG", "named.ini", 1);
    privileged = true;
    finds(NULL, "", "");
    write_file(SYSTEM_FILE, "# system\n");
    finds(NULL, SYSTEM_FILE, "# system\n");
    fails("named.ini", CELLGATE_INVALID,
          "named.ini: a setuid or setgid program reads no other "
          "configuration than " SYSTEM_FILE);
}

static void reads_what_it_finds(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = NULL;

    (void)state;
    assert_int_equal(cg_config_read(NULL, &config, NULL), CELLGATE_OK);
    assert_string_equal(config->path, "");
    cg_config_destroy(config);
    write_file("a.ini", "[cellgate]\nlog = info\n");
    assert_int_equal(cg_config_read("a.ini", &config, NULL), CELLGATE_OK);
    assert_string_equal(config->path, "a.ini");
    assert_int_equal(config->log, CELLGATE_LOG_INFO);
    cg_config_destroy(config);
    config = NULL;
    write_file("b.ini", "[cellgate]\nlgo = info\n");
    assert_int_equal(cg_config_read("b.ini", &config, &error),
                     CELLGATE_BAD_CONFIG);
    assert_null(config);
    assert_string_equal(error.text, "b.ini:2: [cellgate] lgo: unknown key; did "
                                    "you mean log?");
    assert_int_equal(cg_config_read("c.ini", &config, &error), CELLGATE_IO);
}

static cellgate_status read_and_destroy(void *context)
{
    cg_config *config = NULL;
    cellgate_status status = cg_config_read(context, &config, NULL);

    if (status == CELLGATE_OK)
        cg_config_destroy(config);
    return status;
}

static void survives_failing_allocations(void **state)
{
    char given[] = "a.ini";

    (void)state;
    assert_true(fail_each_allocation(read_and_destroy, NULL) > 3);
    write_file(given, "[device d]\nplugin = p\n");
    assert_true(fail_each_allocation(read_and_destroy, given) > 5);
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(looks_in_order),
        TEST(ignores_what_is_empty_or_relative),
        TEST(a_named_file_must_be_there),
        TEST(unreadable_files_are_errors),
        TEST(a_file_in_the_way_of_a_folder_is_absence),
        TEST(folders_are_refused),
        TEST(pipes_are_read_only_when_asked_for),
        TEST(large_files_are_refused),
        TEST(privileged_processes_trust_only_the_system),
        TEST(reads_what_it_finds),
        TEST(survives_failing_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
