/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/plugin/table.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/plugin_folder.h"

/* What was logged since the test began, a line each. */
static char logged[8192];
static atomic_int logged_lines;
static pthread_mutex_t logged_mutex = PTHREAD_MUTEX_INITIALIZER;

static void listen(void *context, int32_t level, const char *text)
{
    size_t used;

    (void)context;
    (void)level;
    pthread_mutex_lock(&logged_mutex);
    used = strlen(logged);
    (void)snprintf(logged + used, sizeof logged - used, "%s\n", text);
    atomic_fetch_add(&logged_lines, 1);
    pthread_mutex_unlock(&logged_mutex);
}

static int enter(void **state)
{
    logged[0] = '\0';
    atomic_store(&logged_lines, 0);
    return plugin_folder_enter(state);
}

static cg_config *parse(const char *text)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = NULL;

    if (cg_config_parse("test.ini", text, strlen(text), &config, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    return config;
}

static cellgate_status create(const char *text, cg_device_table **table,
                              cellgate_error *error)
{
    const cg_log log = { listen, NULL, CELLGATE_LOG_DEBUG };

    return cg_device_table_create(parse(text), plugin_folder, &log, table,
                                  error);
}

static cg_device_table *make(const char *text)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_device_table *table = NULL;

    if (create(text, &table, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return table;
}

static void check_refused(const char *text, cellgate_status status,
                          const char *begin, const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_device_table *table = NULL;

    assert_int_equal(create(text, &table, &error), status);
    assert_null(table);
    if (strncmp(error.text, begin, strlen(begin)) != 0 ||
        strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
}

/* The entry at `index`: its name, status, hardware, and part of the reason. */
static void check(cg_device_table *table, size_t index, const char *name,
                  cellgate_status status, const char *description,
                  const char *reason)
{
    cg_device *device = cg_device_table_at(table, index);
    cellgate_device_info info = { .struct_size = sizeof info };

    assert_non_null(device);
    cg_device_info_get(device, &info);
    assert_string_equal(info.name, name);
    assert_string_equal(cg_device_name(device), name);
    assert_string_equal(info.description, description);
    if (info.status != (int32_t)status || strstr(info.reason, reason) == NULL ||
        (reason[0] == '\0') != (info.reason[0] == '\0'))
        fail_msg("%s: status %d, \"%s\"", name, (int)info.status, info.reason);
}

static void test_unlisted(void **state)
{
    cellgate_device_info info = { .struct_size = sizeof info };
    cg_device_table *table;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)setenv("CELLGATE_FAKE_DEVICES", "2", 1);
    table = make("");
    assert_int_equal(cg_device_table_count(table), 2);
    check(table, 0, "fake:0", CELLGATE_OK, "Fake 0", "");
    check(table, 1, "fake:1", CELLGATE_OK, "Fake 1", "");
    assert_null(cg_device_table_at(table, 2));
    assert_ptr_equal(cg_device_table_find(table, "fake:1"),
                     cg_device_table_at(table, 1));
    assert_null(cg_device_table_find(table, "fake:2"));
    cg_device_info_get(cg_device_table_at(table, 1), &info);
    assert_string_equal(info.plugin, "fake");
    assert_string_equal(info.vendor, "Nobody");
    assert_string_equal(info.resource, "fake:1");
    assert_string_equal(info.identity, "fake-1-1.0");
    assert_true(info.memory == UINT64_C(1) << 63);
    assert_int_equal(info.queue_depth, 2);
    cg_device_info_get(cg_device_table_at(table, 0), &info);
    assert_int_equal(info.queue_depth, 1); /* 0 means 1 */
    assert_string_equal(
        cg_device_description_get(cg_device_table_at(table, 0))->name,
        "Fake 0");
    cg_device_table_release(table);

    table = make("[cellgate]\nunlisted = no\n");
    assert_int_equal(cg_device_table_count(table), 0);
    cg_device_table_release(table);
    cg_device_table_release(NULL);
}

static void test_sections(void **state)
{
    cg_device_table *table;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)setenv("CELLGATE_FAKE_DEVICES", "5", 1);
    table = make("[device last]\nplugin = fake\nindex = 4\n"
                 "[device off]\nplugin = fake\nindex = 1\nenabled = no\n"
                 "[device by_match]\nplugin = fake\nmatch = fake [23]\n"
                 "index = 1\nscale = 3\n"
                 "[device again]\nplugin = fake\nindex = 4\nenabled = yes\n"
                 "[device by_resource]\nplugin = fake\nmatch = CPU\n"
                 "[device too_far]\nplugin = fake\nindex = 5\n"
                 "[device no_match]\nplugin = fake\nmatch = *nothing*\n"
                 "[device absent]\nplugin = other\nsome_key = 1\n"
                 "[device absent_off]\nplugin = other\nenabled = no\n");
    check(table, 0, "last", CELLGATE_OK, "Fake 4", "");
    check(table, 1, "off", CELLGATE_NO_DEVICE, "Fake 1", "enabled = no");
    check(table, 2, "by_match", CELLGATE_OK, "Fake 3", "");
    check(table, 3, "again", CELLGATE_OK, "Fake 4", "");
    check(table, 4, "by_resource", CELLGATE_OK, "Fake 0", "");
    check(table, 5, "too_far", CELLGATE_NO_DEVICE, "",
          "has 5 devices; index = 5 names none");
    check(table, 6, "no_match", CELLGATE_NO_DEVICE, "", "\"*nothing*\"");
    check(table, 7, "absent", CELLGATE_NOT_FOUND, "",
          "no plugin named other was found");
    check(table, 8, "absent_off", CELLGATE_NO_DEVICE, "", "enabled = no");
    /* Of the five only number 2 has no section. */
    check(table, 9, "fake:2", CELLGATE_OK, "Fake 2", "");
    assert_int_equal(cg_device_table_count(table), 10);
    assert_non_null(strstr(logged, "test.ini:26: the keys of [device absent] "
                                   "cannot be checked"));
    cg_device_table_release(table);
}

static void test_refused(void **state)
{
    (void)state;
    (void)plugin_add("fake", "fake");
    (void)plugin_add("bad", "no_driver");
    check_refused("[device x]\nplugin = fake\nscal = 3\n", CELLGATE_BAD_CONFIG,
                  "test.ini:3: ", "scale");
    check_refused("[device x]\nplugin = fake\nenabled = no\nscale = 0\n",
                  CELLGATE_BAD_CONFIG, "test.ini:4: ", "scale");
    check_refused(
        "[device x]\nplugin = other\nenabled = yes\n", CELLGATE_BAD_PLUGIN,
        "test.ini:1: [device x] says enabled = yes", "no plugin named other");
    check_refused("[device x]\nplugin = bad\nenabled = yes\n",
                  CELLGATE_BAD_PLUGIN, "test.ini:1: [device x]",
                  "no driver: install");
    check_refused("[device x]\nplugin = fake\nindex = 1\nenabled = yes\n",
                  CELLGATE_NO_DEVICE, "test.ini:1: [device x]",
                  "has 1 devices");
}

/* A section's plugin is found broken by its name or by its file's. */
static void test_broken(void **state)
{
    cg_device_table *table;

    (void)state;
    (void)plugin_add("bad", "no_driver");    /* says that it is "bad" */
    (void)plugin_add("bad", "exit_on_load"); /* says nothing */
    table = make("[device a]\nplugin = bad\n[device b]\nplugin = "
                 "exit_on_load\n");
    assert_int_equal(cg_device_table_count(table), 2);
    check(table, 0, "a", CELLGATE_NO_DEVICE, "", "no driver: install");
    check(table, 1, "b", CELLGATE_BAD_PLUGIN, "", "ended the process");
    cg_device_table_release(table);
}

static void test_no_devices(void **state)
{
    cg_device_table *table;

    (void)state;
    (void)plugin_add("bad", "no_devices");
    table = make("[device a]\nplugin = bad\n");
    assert_int_equal(cg_device_table_count(table), 1);
    check(table, 0, "a", CELLGATE_NO_DEVICE, "", "no card in any slot");
    cg_device_table_release(table);
}

static void check_plugin(cg_device_table *table, size_t index, const char *file,
                         cellgate_status status, bool cached,
                         const char *reason)
{
    cellgate_plugin_info info = { .struct_size = sizeof info };

    assert_int_equal(cg_device_table_plugin_get(table, index, &info),
                     CELLGATE_OK);
    assert_string_equal(info.path, plugin_path(file));
    assert_int_equal(info.status, status);
    assert_int_equal(info.cached, cached);
    if (strstr(info.reason, reason) == NULL)
        fail_msg("%s", info.reason);
}

/* Each bad one costs a line, and the good one works. */
static void test_bad_company(void **state)
{
    static const char *const bad[] = { "crash_in_init", "exit0_in_init",
                                       "hang_on_load" };
    cellgate_plugin_info info = { .struct_size = sizeof info };
    cellgate_path_info path = { .struct_size = sizeof path };
    cg_device_table *table;
    size_t i;
    int again;

    (void)state;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        (void)plugin_add("bad", bad[i]);
    (void)plugin_add("fake", "fake");
    assert_int_equal(mkdir(plugin_path("folder.so"), 0755), 0);
    for (again = 0; again < 2; again++) {
        table = make("[cellgate]\nprobe_timeout = 2\n");
        assert_int_equal(cg_device_table_plugin_count(table), 5);
        check_plugin(table, 0, "crash_in_init.so", CELLGATE_BAD_PLUGIN, again,
                     "in init()");
        check_plugin(table, 1, "exit0_in_init.so", CELLGATE_BAD_PLUGIN, again,
                     "exit status 0");
        check_plugin(table, 2, "fake.so", CELLGATE_OK, again, "");
        check_plugin(table, 3, "folder.so", CELLGATE_BAD_PLUGIN, again,
                     "is a folder");
        check_plugin(table, 4, "hang_on_load.so", CELLGATE_TIMEOUT, again,
                     "did not answer within 2 s");
        assert_int_equal(cg_device_table_plugin_get(table, 5, &info),
                         CELLGATE_END);
        assert_int_equal(cg_device_table_count(table), 1);
        check(table, 0, "fake:0", CELLGATE_OK, "Fake 0", "");
        assert_int_equal(cg_device_table_path_count(table), 2);
        assert_int_equal(cg_device_table_path_get(table, 0, &path),
                         CELLGATE_OK);
        assert_string_equal(path.path, plugin_folder);
        assert_string_equal(path.origin, "option");
        assert_null(path.problem);
        assert_int_equal(path.plugin_count, 5);
        assert_int_equal(cg_device_table_path_get(table, 2, &path),
                         CELLGATE_END);
        assert_int_equal(atomic_exchange(&logged_lines, 0), 4);
        cg_device_table_release(table);
    }
}

static void test_duplicates(void **state)
{
    cg_device_table *table;

    (void)state;
    (void)plugin_add("bad", "0_no_driver");
    (void)plugin_add("fake", "1");
    (void)plugin_add("fake", "2");
    table = make("");
    check_plugin(table, 1, "1.so", CELLGATE_OK, false, "");
    check_plugin(table, 2, "2.so", CELLGATE_BAD_PLUGIN, false,
                 "another plugin named fake comes first in the plugin "
                 "folders: ");
    assert_non_null(cg_device_table_find(table, "fake:0"));
    assert_int_equal(cg_device_table_count(table), 2);
    cg_device_table_release(table);
}

static void test_without_cache(void **state)
{
    cg_device_table *table;
    int again;

    (void)state;
    (void)plugin_add("fake", "fake");
    for (again = 0; again < 2; again++) {
        table = make("[cellgate]\nprobe_cache = no\n");
        check_plugin(table, 0, "fake.so", CELLGATE_OK, false, "");
        cg_device_table_release(table);
    }
    assert_int_equal(access(plugin_path("cache"), F_OK), -1);
}

static void test_open(void **state)
{
    const cellgate_plugin *ops = NULL, *same_ops = NULL;
    cellgate_device *handle = NULL, *same = NULL, *other = NULL;
    cg_device_table *table;

    (void)state;
    (void)plugin_add("fake", "fake");
    table = make("[device a]\nplugin = fake\nscale = 3\n"
                 "[device b]\nplugin = fake\n");
    assert_int_equal(
        plugin_open_device(cg_device_table_at(table, 0), &ops, &handle, NULL),
        CELLGATE_OK);
    assert_int_equal(plugin_open_device(cg_device_table_at(table, 0), &same_ops,
                                        &same, NULL),
                     CELLGATE_OK);
    assert_int_equal(plugin_open_device(cg_device_table_at(table, 1), &same_ops,
                                        &other, NULL),
                     CELLGATE_OK);
    assert_ptr_equal(handle, same);
    assert_ptr_equal(ops, same_ops);
    assert_ptr_not_equal(handle, other);
    assert_string_equal(ops->name, "fake");
    assert_null(ops->breakdown);
    assert_int_equal(atomic_load(&logged_lines), 2);
    assert_ptr_equal(cg_device_table_reference(table), table);
    cg_device_table_release(table);
    assert_int_equal(atomic_load(&logged_lines), 2);
    cg_device_table_release(table);
    assert_int_equal(atomic_load(&logged_lines), 4);
    assert_string_equal(logged, "fake: opened\nfake: opened\n"
                                "fake: closed\nfake: closed\n");
}

static cg_device *raced;
static cellgate_device *handles[8];

static void *open_raced(void *context)
{
    const cellgate_plugin *ops = NULL;

    (void)plugin_open_device(raced, &ops, &handles[(uintptr_t)context], NULL);
    return NULL;
}

static void test_open_race(void **state)
{
    cg_device_table *table;
    pthread_t threads[8];
    uintptr_t i;

    (void)state;
    (void)plugin_add("fake", "fake");
    table = make("");
    raced = cg_device_table_at(table, 0);
    for (i = 0; i < 8; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, open_raced, (void *)i), 0);
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_non_null(handles[0]);
    for (i = 1; i < 8; i++)
        assert_ptr_equal(handles[i], handles[0]);
    assert_string_equal(logged, "fake: opened\n");
    cg_device_table_release(table);
}

static void test_open_failure(void **state)
{
    const cellgate_plugin *ops = NULL;
    cellgate_device *handle = NULL;
    cg_device_table *table;
    cg_device *device;
    int again;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)setenv("CELLGATE_FAKE_DEVICES", "10", 1);
    table = make("");
    device = cg_device_table_find(table, "fake:9");
    assert_int_equal(cg_device_usable(device, NULL), CELLGATE_OK);
    for (again = 0; again < 2; again++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        assert_int_equal(plugin_open_device(device, &ops, &handle, &error),
                         CELLGATE_DEVICE_FAILED);
        assert_string_equal(error.text,
                            "device fake:9: fake device 9 does not open; it is "
                            "tried again in 30 s");
        assert_null(handle);
    }
    assert_int_equal(cg_device_usable(device, NULL), CELLGATE_DEVICE_FAILED);
    check(table, 9, "fake:9", CELLGATE_DEVICE_FAILED, "Fake 9",
          "does not open");
    cg_device_table_release(table);
}

static void test_open_again_when_busy(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    const cellgate_plugin *ops = NULL;
    cellgate_device *handle = NULL;
    cg_device_table *table;
    cg_device *device;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)setenv("CELLGATE_FAKE_DEVICES", "9", 1);
    table = make("");
    device = cg_device_table_find(table, "fake:8");
    assert_int_equal(plugin_open_device(device, &ops, &handle, &error),
                     CELLGATE_BUSY);
    assert_string_equal(error.text,
                        "device fake:8: fake device 8 is in use at first");
    assert_int_equal(cg_device_usable(device, NULL), CELLGATE_OK);
    assert_int_equal(plugin_open_device(device, &ops, &handle, &error),
                     CELLGATE_OK);
    assert_non_null(handle);
    cg_device_table_release(table);
}

/* The verdict is older than what the plugin says now. */
static void test_fewer_devices(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    const cellgate_plugin *ops = NULL;
    cellgate_device *handle = NULL;
    cg_device_table *table;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)setenv("CELLGATE_FAKE_DEVICES", "2", 1);
    cg_device_table_release(make(""));
    table = make("");
    check_plugin(table, 0, "fake.so", CELLGATE_OK, true, "");
    (void)setenv("CELLGATE_FAKE_DEVICES", "1", 1);
    assert_int_equal(
        plugin_open_device(cg_device_table_at(table, 1), &ops, &handle, &error),
        CELLGATE_NO_DEVICE);
    assert_non_null(strstr(error.text, "has 1 devices now, and had 2"));
    assert_int_equal(
        plugin_open_device(cg_device_table_at(table, 0), &ops, &handle, NULL),
        CELLGATE_OK);
    cg_device_table_release(table);
    (void)setenv("CELLGATE_FAKE_DEVICES", "2", 1);
    table = make(""); /* the wrong verdict is gone */
    check_plugin(table, 0, "fake.so", CELLGATE_OK, false, "");
    cg_device_table_release(table);
}

static void test_quarantine(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    const cellgate_plugin *ops = NULL;
    cellgate_device *handle = NULL;
    cg_device_table *table;
    cg_device *device;

    (void)state;
    (void)plugin_add("fake", "fake");
    table = make("");
    device = cg_device_table_at(table, 0);
    assert_int_equal(plugin_open_device(device, &ops, &handle, NULL),
                     CELLGATE_OK);
    cg_device_quarantine(device, 1, CELLGATE_DEVICE_LOST,
                         "it fell off the bus");
    cg_device_quarantine(device, 1, CELLGATE_TIMEOUT, "too late");
    check(table, 0, "fake:0", CELLGATE_DEVICE_LOST, "Fake 0",
          "it fell off the bus");
    assert_int_equal(cg_device_usable(device, &error), CELLGATE_DEVICE_LOST);
    assert_string_equal(error.text,
                        "device fake:0: it fell off the bus; it is tried "
                        "again in 30 s");
    assert_int_equal(plugin_open_device(device, &ops, &handle, NULL),
                     CELLGATE_DEVICE_LOST);
    cg_device_table_release(table);
}

/* ---- Out of service and back --------------------------------------------- */

static double made_up_time;

static double read_made_up_time(void *context)
{
    (void)context;
    return made_up_time;
}

static const cg_clock made_up_clock = { read_made_up_time, NULL, NULL };

static cellgate_device_info info_of(const cg_device *device)
{
    cellgate_device_info info = { .struct_size = sizeof info };

    cg_device_info_get(device, &info);
    return info;
}

static void count_call(void *context)
{
    ++*(int *)context;
}

/* A table with the fake device open, on a clock of the test's. */
static cg_device *open_on_made_up_time(const char *config)
{
    const cellgate_plugin *ops = NULL;
    cellgate_device *handle = NULL;
    cg_device_table *table;

    (void)plugin_add("fake", "fake");
    table = make(config);
    table->clock = &made_up_clock;
    made_up_time = 1000;
    assert_int_equal(
        plugin_open_device(cg_device_table_at(table, 0), &ops, &handle, NULL),
        CELLGATE_OK);
    return cg_device_table_at(table, 0);
}

static void test_out_and_back(void **state)
{
    cg_device *device = open_on_made_up_time("[scheduler]\nreadmit = 20\n");
    uint64_t changes = cg_device_table_changes(device->table);
    cg_opening *opening = NULL, *again = NULL;
    int calls = 0;

    (void)state;
    cg_device_table_watch(device->table, count_call, &calls);
    assert_true(isinf(cg_device_retry_in(device)));
    cg_device_quarantine(device, 1, CELLGATE_DEVICE_LOST, "gone");
    assert_int_equal(calls, 1);
    made_up_time += 5;
    assert_true(cg_device_retry_in(device) == 15);
    assert_true(info_of(device).out_seconds == 5);
    assert_true(info_of(device).retry_seconds == 15);
    cg_device_stay_out(device, CELLGATE_DEVICE_LOST, "still gone", false);
    assert_string_equal(info_of(device).reason,
                        "it was tried again in vain: still gone");
    assert_true(cg_device_retry_in(device) == 40);
    assert_int_equal(cg_device_reopen(device, &opening, NULL), CELLGATE_OK);
    assert_int_equal(cg_device_usable(device, NULL), CELLGATE_DEVICE_LOST);
    cg_device_readmit(device, opening);
    assert_int_equal(cg_device_usable(device, NULL), CELLGATE_OK);
    assert_int_equal(cg_device_epoch(device), 2);
    assert_int_equal(cg_device_table_changes(device->table), changes + 2);
    assert_int_equal(cg_device_open(device, &again, NULL), CELLGATE_OK);
    assert_ptr_equal(opening, again);
    cg_opening_release(again);
    /* What runs in the first opening still is no news. */
    cg_device_quarantine(device, 1, CELLGATE_DEVICE_LOST, "gone");
    assert_int_equal(cg_device_usable(device, NULL), CELLGATE_OK);
    cg_device_table_watch(device->table, NULL, NULL);
    cg_device_table_release(device->table);
}

static void test_failures_add_up(void **state)
{
    cg_device *device = open_on_made_up_time("[scheduler]\nfailures = 3\n");

    (void)state;
    for (int run = 0; run < 8; run++) {
        cg_device_run_failed(device, 1, CELLGATE_DEVICE_MEMORY, "full");
        cg_device_run_failed(device, 1, CELLGATE_UNSUPPORTED, "no");
    }
    cg_device_run_failed(device, 1, CELLGATE_DEVICE_FAILED, "launch");
    cg_device_run_failed(device, 1, CELLGATE_DEVICE_FAILED, "launch");
    assert_int_equal(cg_device_usable(device, NULL), CELLGATE_OK);
    made_up_time += 61;
    cg_device_run_failed(device, 1, CELLGATE_DEVICE_FAILED, "launch");
    cg_device_run_failed(device, 1, CELLGATE_DEVICE_FAILED, "launch");
    assert_int_equal(cg_device_usable(device, NULL), CELLGATE_OK);
    cg_device_run_failed(device, 1, CELLGATE_DEVICE_FAILED, "the third");
    assert_int_equal(cg_device_usable(device, NULL), CELLGATE_DEVICE_FAILED);
    assert_non_null(strstr(info_of(device).reason, "3 of its runs failed"));
    assert_non_null(strstr(info_of(device).reason, "the third"));
    cg_device_table_release(device->table);
}

/* A device that hangs again and again is left alone. */
static void test_out_for_good(void **state)
{
    cg_device *device = open_on_made_up_time("");
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_opening *opening;

    (void)state;
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        cg_device_quarantine(device, epoch, CELLGATE_TIMEOUT, "it hangs");
        assert_true(isinf(cg_device_retry_in(device)) == (epoch == 3));
        if (epoch == 3)
            break;
        assert_int_equal(cg_device_reopen(device, &opening, NULL), CELLGATE_OK);
        cg_device_readmit(device, opening);
    }
    assert_true(info_of(device).retry_seconds < 0);
    assert_int_equal(cg_device_usable(device, &error), CELLGATE_TIMEOUT);
    assert_non_null(strstr(error.text, "it is not tried again"));
    cg_device_table_release(device->table);
}

static void test_never_tried_again(void **state)
{
    cg_device *device = open_on_made_up_time("[scheduler]\nreadmit = 0\n");

    (void)state;
    cg_device_quarantine(device, 1, CELLGATE_DEVICE_LOST, "gone");
    assert_true(isinf(cg_device_retry_in(device)));
    cg_device_table_release(device->table);
}

static void test_threads(void **state)
{
    cg_device_table *table;
    cg_device *cpu, *again, *card;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)setenv("CELLGATE_FAKE_DEVICES", "2", 1);
    table = make("[scheduler]\nthreads = 3\n"
                 "[device a]\nplugin = fake\n[device b]\nplugin = fake\n"
                 "[device absent]\nplugin = other\n");
    cpu = cg_device_table_at(table, 0);
    again = cg_device_table_at(table, 1);
    card = cg_device_table_find(table, "fake:1");
    assert_int_equal(cg_device_thread_budget(cpu), 3);
    cg_device_threads_acquire(cpu, 2);
    assert_false(cg_device_threads_try(again, 2));
    assert_true(cg_device_threads_try(again, 1));
    assert_true(cg_device_threads_try(card, 3));
    assert_false(cg_device_threads_try(card, 1));
    cg_device_threads_release(cpu, 2);
    cg_device_threads_release(again, 1);
    cg_device_threads_release(card, 3);
    assert_true(cg_device_threads_try(cpu, 100));
    assert_false(cg_device_threads_try(again, 1));
    cg_device_threads_release(cpu, 100);
    /* One that isn't there has no resource to wait for. */
    card = cg_device_table_find(table, "absent");
    cg_device_threads_acquire(card, 1000);
    assert_true(cg_device_threads_try(card, 1000));
    cg_device_threads_release(card, 1000);
    cg_device_table_release(table);

    /* A card is kept busy by its queue, however few the cores are. */
    table = make("[scheduler]\nthreads = 1\n");
    assert_int_equal(
        cg_device_thread_budget(cg_device_table_find(table, "fake:1")), 2);
    assert_int_equal(
        cg_device_thread_budget(cg_device_table_find(table, "fake:0")), 1);
    cg_device_table_release(table);
}

static void test_no_helper(void **state)
{
    cg_device_table *table;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)setenv("CELLGATE_PROBE", "/nowhere/probe", 1);
    table = make("");
    check_plugin(table, 0, "fake.so", CELLGATE_INTERNAL, false,
                 "/nowhere/probe cannot be started: No such file");
    assert_int_equal(cg_device_table_count(table), 0);
    cg_device_table_release(table);
    (void)setenv("CELLGATE_PROBE", TEST_PROBE, 1);
    table = make(""); /* it was nobody's verdict */
    assert_int_equal(cg_device_table_count(table), 1);
    cg_device_table_release(table);
}

/* Fails one allocation after the other, with the verdict from the cache. */
static void test_no_memory(void **state)
{
    size_t nth = 1;
    bool failed = true;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)plugin_add("bad", "no_driver");
    while (failed) {
        cg_config *config = parse("[device a]\nplugin = fake\nscale = 2\n"
                                  "[device b]\nplugin = bad\n");
        const cg_log log = { listen, NULL, CELLGATE_LOG_WARNING };
        cg_device_table *table = NULL;
        cellgate_status status;

        fail_allocation_begin(nth++);
        status =
            cg_device_table_create(config, plugin_folder, &log, &table, NULL);
        if (status == CELLGATE_OK)
            cg_device_table_release(table);
        failed = fail_allocation_end();
        assert_int_equal(fail_allocation_live(), 0);
        assert_true(status == CELLGATE_OK || status == CELLGATE_NO_MEMORY);
    }
    assert_in_range(nth, 30, 400);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, enter, plugin_folder_leave)
    const struct CMUnitTest tests[] = {
        TEST(test_unlisted),      TEST(test_sections),
        TEST(test_refused),       TEST(test_broken),
        TEST(test_no_devices),    TEST(test_bad_company),
        TEST(test_duplicates),    TEST(test_without_cache),
        TEST(test_open),          TEST(test_open_race),
        TEST(test_open_failure),  TEST(test_open_again_when_busy),
        TEST(test_fewer_devices), TEST(test_quarantine),
        TEST(test_out_and_back),  TEST(test_failures_add_up),
        TEST(test_out_for_good),  TEST(test_never_tried_again),
        TEST(test_threads),       TEST(test_no_helper),
        TEST(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
