/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/plugin/search.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/plugin_folder.h"

static bool privileged;

bool __wrap_cg_privileged(void);
bool __wrap_cg_privileged(void)
{
    return privileged;
}

static int enter(void **state)
{
    static const char *const folders[] = { "a", "b", "c" };
    static const char *const files[] = { "a/2.so",   "a/10.so", "a/B.so",
                                         "a/x.so.1", "a/.h.so", "a/libso",
                                         "b/1.so",   "b/.so",   "c/readme" };
    size_t i;

    privileged = false;
    if (plugin_folder_enter(state) != 0)
        return -1;
    for (i = 0; i < 3; i++)
        if (mkdir(plugin_path(folders[i]), 0755) != 0)
            return -1;
    for (i = 0; i < sizeof files / sizeof files[0]; i++)
        (void)plugin_write(files[i], "", 0);
    return 0;
}

static void check_path(const cg_search *search, size_t index, const char *name,
                       const char *origin, const char *problem, uint32_t files)
{
    const cg_search_path *path = &search->paths[index];

    assert_string_equal(path->path, name[0] == '/' ? name : plugin_path(name));
    assert_string_equal(path->origin, origin);
    if (problem == NULL)
        assert_null(path->problem);
    else
        assert_non_null(strstr(path->problem, problem));
    assert_int_equal(path->file_count, files);
}

static void test_order(void **state)
{
    char *configured[] = { (char *)plugin_path("b"), (char *)plugin_path("a") };
    const cg_config config = { .plugin_paths = configured,
                               .plugin_path_count = 2 };
    char option[300];
    cg_search search;

    (void)state;
    (void)snprintf(option, sizeof option, ":%s::%s:", plugin_path("a"),
                   plugin_path("missing"));
    (void)setenv("CELLGATE_PLUGIN_PATH", plugin_path("c"), 1);
    assert_true(cg_search_run(&search, &config, option));
    assert_int_equal(search.path_count, 5);
    check_path(&search, 0, "a", "option", NULL, 3);
    check_path(&search, 1, "missing", "option", "No such file", 0);
    check_path(&search, 2, "b", "configuration", NULL, 1);
    check_path(&search, 3, "a", "configuration", "searched already", 0);
    check_path(&search, 4, "/nowhere/plugins", "built-in", "No such file", 0);
    assert_int_equal(search.file_count, 4);
    assert_string_equal(search.files[0], plugin_path("a/10.so"));
    assert_string_equal(search.files[1], plugin_path("a/2.so"));
    assert_string_equal(search.files[2], plugin_path("a/B.so"));
    assert_string_equal(search.files[3], plugin_path("b/1.so"));
    cg_search_finish(&search);
}

static void test_environment(void **state)
{
    const cg_config config = { .plugin_path_count = 0 };
    cg_search search;

    (void)state;
    (void)setenv("CELLGATE_PLUGIN_PATH", plugin_path("c"), 1);
    assert_true(cg_search_run(&search, &config, NULL));
    assert_int_equal(search.path_count, 2);
    check_path(&search, 0, "c", "environment", NULL, 0);
    cg_search_finish(&search);
    privileged = true;
    assert_true(cg_search_run(&search, &config, plugin_path("a")));
    assert_int_equal(search.path_count, 1);
    assert_int_equal(search.file_count, 0);
    check_path(&search, 0, "/nowhere/plugins", "built-in", "No such file", 0);
    cg_search_finish(&search);
}

static void test_not_a_folder(void **state)
{
    const cg_config config = { .plugin_path_count = 0 };
    cg_search search;

    (void)state;
    assert_true(cg_search_run(&search, &config, plugin_path("a/2.so")));
    check_path(&search, 0, "a/2.so", "option", "Not a directory", 0);
    cg_search_finish(&search);
}

static cellgate_status search_once(void *context)
{
    cg_search search;

    if (!cg_search_run(&search, context, plugin_path("a")))
        return CELLGATE_NO_MEMORY;
    cg_search_finish(&search);
    return CELLGATE_OK;
}

static void test_no_memory(void **state)
{
    char *configured[] = { (char *)plugin_path("b"), (char *)plugin_path("a") };
    cg_config config = { .plugin_paths = configured, .plugin_path_count = 2 };

    (void)state;
    assert_in_range(fail_each_allocation(search_once, &config), 15, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, enter, plugin_folder_leave),
        cmocka_unit_test_setup_teardown(test_environment, enter,
                                        plugin_folder_leave),
        cmocka_unit_test_setup_teardown(test_not_a_folder, enter,
                                        plugin_folder_leave),
        cmocka_unit_test_setup_teardown(test_no_memory, enter,
                                        plugin_folder_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
