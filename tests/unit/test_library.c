/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/plugin/library.h"
#include "tests/unit/plugin_folder.h"

static void check_not_opened(const char *path, const char *text)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_plugin_entry_fn entry = NULL;

    assert_int_equal(cg_library_open(path, &entry, &error),
                     CELLGATE_BAD_PLUGIN);
    assert_null(entry);
    if (strstr(error.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, error.text);
}

static void test_files(void **state)
{
    char big[4096] = "text";

    (void)state;
    check_not_opened(plugin_path("nowhere.so"), "No such file");
    check_not_opened(plugin_write("empty.so", "", 0), "cannot be loaded");
    check_not_opened(plugin_write("text.so", big, sizeof big),
                     "invalid ELF header");
    assert_int_equal(mkdir(plugin_path("folder.so"), 0755), 0);
    check_not_opened(plugin_path("folder.so"), "is a folder");
    assert_int_equal(symlink("nowhere.so", plugin_path("link.so")), 0);
    check_not_opened(plugin_path("link.so"), "No such file");
    assert_int_equal(mkfifo(plugin_path("pipe.so"), 0600), 0);
    check_not_opened(plugin_path("pipe.so"), "not a regular file");
    if (geteuid() != 0) {
        const char *path = plugin_add("fake", "locked");
        assert_int_equal(chmod(path, 0), 0);
        check_not_opened(path, "Permission denied");
    }
}

static void test_entries(void **state)
{
    (void)state;
    check_not_opened(plugin_add("no_entry", "no_entry"), "does not export");
    check_not_opened(plugin_add("undefined_symbol", "undefined_symbol"),
                     "undefined symbol: cellgate_test_nowhere");
    check_not_opened(plugin_add("dependent", "dependent"),
                     "needs entry_library.so, which the dynamic linker does "
                     "not find");
}

/* Whether the bad module under this name gives a table. */
static cellgate_status negotiate(const char *name, cg_library *library,
                                 cellgate_error *error)
{
    cellgate_plugin_entry_fn entry = NULL;

    assert_int_equal(cg_library_open(plugin_add("bad", name), &entry, error),
                     CELLGATE_OK);
    return cg_library_negotiate(entry, library, error);
}

static void test_tables(void **state)
{
    static const struct {
        const char *name;
        const char *text;
    } tables[] = {
        { "no_common_version", "talks no version of the plugin ABI" },
        { "version_99", "talks version 99 of the plugin ABI" },
        { "bad_magic", "magic number" },
        { "tiny_table", "too few for the required operations" },
        { "no_run", "lacks the required operation run" },
        { "some_resident", "1 of the four resident_ operations" },
        { "half_host_memory", "host_allocate and host_release" },
        { "no_name", "name is not 1 to 63" },
        { "strange_name", "name is not 1 to 63" },
        { "no_version_text", "lacks a version" },
        { "key_without_default", "key key lacks a default" },
        { "key_of_host", "key enabled has a name that belongs to the host" },
        { "key_of_no_type", "unknown type 77" },
        { "too_many_keys", "cannot be right" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cg_library library;
        assert_int_equal(negotiate(tables[i].name, &library, &error),
                         CELLGATE_BAD_PLUGIN);
        if (strstr(error.text, tables[i].text) == NULL)
            fail_msg("%s: \"%s\"", tables[i].name, error.text);
    }
}

/* An older plugin ends before the optional operations. */
static void test_short_table(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_library library;

    (void)state;
    assert_int_equal(negotiate("short_table", &library, &error), CELLGATE_OK);
    assert_non_null(library.table.run);
    assert_null(library.table.breakdown);
    assert_null(library.table.memory_used);
    assert_int_equal(library.table.key_count, 1);
    cg_library_finish(&library);
}

/* A newer plugin's keys are longer than the host's, and so is its table. */
static const struct longer_key {
    cellgate_key key;
    int64_t newer[3];
} longer_keys[] = {
    { { sizeof longer_keys[0], "one", CELLGATE_KEY_TEXT, "1", NULL, 0, 0, "" },
      { -1, -1, -1 } },
    { { sizeof longer_keys[0], "two", CELLGATE_KEY_TEXT, "2", NULL, 0, 0, "" },
      { -1, -1, -1 } },
};

static struct {
    cellgate_plugin table;
    void (*newer[4])(void);
} longer_table;

static const cellgate_plugin *longer_entry(uint32_t lowest, uint32_t highest)
{
    (void)lowest;
    (void)highest;
    return &longer_table.table;
}

static void test_longer_table(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_library bad, library;

    (void)state;
    assert_int_equal(negotiate("any", &bad, &error), CELLGATE_OK);
    longer_table.table = bad.table;
    longer_table.table.struct_size = sizeof longer_table;
    longer_table.table.keys = &longer_keys[0].key;
    longer_table.table.key_count = 2;
    assert_int_equal(cg_library_negotiate(longer_entry, &library, &error),
                     CELLGATE_OK);
    assert_int_equal(library.table.key_count, 2);
    assert_ptr_equal(library.table.keys, library.keys);
    assert_string_equal(library.keys[1].name, "two");
    assert_int_equal(library.keys[1].struct_size, sizeof(cellgate_key));
    cg_library_finish(&library);
    cg_library_finish(&bad);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, plugin_folder_enter,                 \
                                    plugin_folder_leave)
    const struct CMUnitTest tests[] = {
        TEST(test_files),       TEST(test_entries),      TEST(test_tables),
        TEST(test_short_table), TEST(test_longer_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
