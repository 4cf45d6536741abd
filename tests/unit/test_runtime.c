/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime as applications see it, and what fork() leaves of it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/runtime.h"
#include "runtime/plugin/thread_budget.h"
#include "tests/unit/plugin_folder.h"

static cellgate_runtime_options options;

static int enter(void **state)
{
    if (plugin_folder_enter(state) != 0)
        return -1;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.plugin_path = plugin_folder;
    options.config_path = plugin_write("cellgate.ini", "", 0);
    return 0;
}

static cellgate_runtime *make(void)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_runtime *runtime = NULL;

    if (cellgate_runtime_create(&options, &runtime, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return runtime;
}

static void test_lists(void **state)
{
    cellgate_path_info path = { .struct_size = sizeof path };
    cellgate_plugin_info plugin = { .struct_size = sizeof plugin };
    cellgate_device_info device = { .struct_size = sizeof device };
    cellgate_runtime *runtime;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)plugin_add("no_entry", "z");
    runtime = make();
    assert_string_equal(cellgate_runtime_config_path(runtime),
                        options.config_path);
    assert_int_equal(cellgate_path_count(runtime), 2);
    assert_int_equal(cellgate_path_get(runtime, 0, &path), CELLGATE_OK);
    assert_string_equal(path.path, plugin_folder);
    assert_int_equal(cellgate_path_get(runtime, 2, &path), CELLGATE_END);
    assert_int_equal(cellgate_path_get(runtime, 0, NULL), CELLGATE_INVALID);
    assert_int_equal(cellgate_plugin_count(runtime), 2);
    assert_int_equal(cellgate_plugin_get(runtime, 1, &plugin), CELLGATE_OK);
    assert_int_equal(plugin.status, CELLGATE_BAD_PLUGIN);
    assert_int_equal(cellgate_plugin_get(runtime, 2, &plugin), CELLGATE_END);
    assert_int_equal(cellgate_plugin_get(runtime, 0, NULL), CELLGATE_INVALID);
    assert_int_equal(cellgate_device_count(runtime), 1);
    assert_int_equal(cellgate_device_get(runtime, 0, &device), CELLGATE_OK);
    assert_string_equal(device.name, "fake:0");
    assert_int_equal(cellgate_device_get(runtime, 1, &device), CELLGATE_END);
    assert_int_equal(cellgate_device_get(runtime, 0, NULL), CELLGATE_INVALID);
    device.struct_size = 0;
    assert_int_equal(cellgate_device_get(runtime, 0, &device),
                     CELLGATE_INVALID);
    cellgate_runtime_destroy(runtime);
    cellgate_runtime_destroy(NULL);
}

/* An older application's shorter struct is not written beyond its end. */
static void test_older_struct(void **state)
{
    cellgate_device_info device;
    cellgate_runtime *runtime;

    (void)state;
    (void)plugin_add("fake", "fake");
    runtime = make();
    memset(&device, 0x55, sizeof device);
    device.struct_size = offsetof(cellgate_device_info, reason);
    assert_int_equal(cellgate_device_get(runtime, 0, &device), CELLGATE_OK);
    assert_string_equal(device.name, "fake:0");
    assert_int_equal(device.status, CELLGATE_OK);
    assert_true(((const unsigned char *)&device.reason)[0] == 0x55);
    assert_true(device.queue_depth == 0x55555555);
    cellgate_runtime_destroy(runtime);
}

static void test_errors(void **state)
{
    struct {
        cellgate_runtime_options known;
        int64_t newer;
    } longer = { .known = options };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_runtime *runtime = NULL;

    (void)state;
    assert_int_equal(cellgate_runtime_create(&options, NULL, &error),
                     CELLGATE_INVALID);
    longer.known.struct_size = sizeof longer;
    assert_int_equal(cellgate_runtime_create(&longer.known, &runtime, &error),
                     CELLGATE_OK);
    cellgate_runtime_destroy(runtime);
    runtime = NULL;
    longer.newer = 1;
    assert_int_equal(cellgate_runtime_create(&longer.known, &runtime, &error),
                     CELLGATE_INVALID);
    options.config_path = plugin_write("wrong.ini", "[cellgat]\n", 10);
    assert_int_equal(cellgate_runtime_create(&options, &runtime, &error),
                     CELLGATE_BAD_CONFIG);
    assert_non_null(strstr(error.text, "wrong.ini:1: "));
    options.config_path = plugin_path("nowhere.ini");
    assert_int_not_equal(cellgate_runtime_create(&options, &runtime, &error),
                         CELLGATE_OK);
    assert_null(runtime);
}

static atomic_int lines;

static void count_line(void *context, int32_t level, const char *text)
{
    assert_ptr_equal(context, &lines);
    assert_int_equal(level, CELLGATE_LOG_WARNING);
    assert_non_null(strstr(text, "[device x]"));
    atomic_fetch_add(&lines, 1);
}

static void test_log(void **state)
{
    static const char text[] = "[device x]\nplugin = absent\nkey = 1\n";

    (void)state;
    options.config_path = plugin_write("log.ini", text, sizeof text - 1);
    options.log = count_line;
    options.log_context = &lines;
    cellgate_runtime_destroy(make());
    assert_int_equal(atomic_load(&lines), 1);
}

/* With nothing given: the built-in default, and its folder. */
static void test_no_options(void **state)
{
    cellgate_runtime *runtime = NULL;

    (void)state;
    (void)plugin_add("fake", "fake");
    (void)setenv("XDG_CONFIG_HOME", plugin_folder, 1);
    (void)setenv("CELLGATE_PLUGIN_PATH", plugin_folder, 1);
    assert_int_equal(cellgate_runtime_create(NULL, &runtime, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_path_count(runtime), 2);
    assert_int_equal(cellgate_plugin_count(runtime), 1);
    cellgate_runtime_destroy(runtime);
}

static void test_flat(void **state)
{
    cellgate_runtime *other;
    int i;

    (void)state;
    (void)plugin_add("fake", "fake");
    other = make();
    for (i = 0; i < 100; i++) {
        const cellgate_plugin *ops = NULL;
        cellgate_device *handle = NULL;
        cellgate_runtime *runtime = make();
        assert_int_equal(
            plugin_open_device(cg_device_table_at(runtime->table, 0), &ops,
                               &handle, NULL),
            CELLGATE_OK);
        cellgate_runtime_destroy(runtime);
    }
    cellgate_runtime_destroy(other);
}

/* ---- fork() ------------------------------------------------------------ */

/* In the child: 0 when everything that touches a device is refused. */
static int use_in_child(cellgate_runtime *runtime)
{
    const cellgate_plugin *ops = NULL;
    cellgate_device *handle = NULL;
    cellgate_runtime *second = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_device_info info = { .struct_size = sizeof info };
    cg_device *device = cg_device_table_at(runtime->table, 0);

    if (cg_process_check(&error) != CELLGATE_FORKED ||
        strstr(error.text, "fork()") == NULL)
        return 1;
    if (plugin_open_device(device, &ops, &handle, NULL) != CELLGATE_FORKED)
        return 2;
    if (cg_device_usable(device, NULL) != CELLGATE_FORKED)
        return 3;
    if (cellgate_runtime_create(&options, &second, NULL) != CELLGATE_FORKED)
        return 4;
    /* Lists are memory, and stay. */
    if (cellgate_device_get(runtime, 0, &info) != CELLGATE_OK ||
        strcmp(info.name, "fake:0") != 0)
        return 5;
    cg_device_threads_acquire(device, 1);
    if (!cg_device_threads_try(device, 1))
        return 6;
    cg_device_threads_release(device, 1);
    cg_device_quarantine(device, 1, CELLGATE_DEVICE_LOST, "lost");
    cellgate_runtime_destroy(runtime);
    return 0;
}

/* Runs it in a child, which a hang would end by its alarm. */
static void check_child(cellgate_runtime *runtime, int (*body)(void *))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        (void)alarm(20);
        _exit(body(runtime));
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int child_body(void *runtime)
{
    return use_in_child(runtime);
}

static int child_with_grandchild(void *runtime)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        (void)alarm(20);
        _exit(use_in_child(runtime));
    }
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static void test_fork(void **state)
{
    const cellgate_plugin *ops = NULL;
    cellgate_device *handle = NULL;
    cellgate_runtime *runtime;

    (void)state;
    (void)plugin_add("fake", "fake");
    runtime = make();
    assert_int_equal(plugin_open_device(cg_device_table_at(runtime->table, 0),
                                        &ops, &handle, NULL),
                     CELLGATE_OK);
    check_child(runtime, child_body);
    check_child(runtime, child_with_grandchild);
    /* The parent goes on. */
    assert_int_equal(cg_process_check(NULL), CELLGATE_OK);
    assert_int_equal(
        cg_device_usable(cg_device_table_at(runtime->table, 0), NULL),
        CELLGATE_OK);
    cellgate_runtime_destroy(runtime);
}

static atomic_bool stop;

/* Holds and changes every lock that a child could find taken. */
static void *churn(void *context)
{
    cellgate_runtime *runtime = context;
    cg_device *device = cg_device_table_at(runtime->table, 0);

    while (!atomic_load(&stop)) {
        const cellgate_plugin *ops = NULL;
        cellgate_device *handle = NULL;
        (void)plugin_open_device(device, &ops, &handle, NULL);
        cg_device_threads_acquire(device, 1);
        cg_device_threads_release(device, 1);
        cg_thread_budget_put(cg_thread_budget_get("churn"));
    }
    return NULL;
}

static void test_fork_under_load(void **state)
{
    cellgate_runtime *runtime;
    pthread_t threads[3];
    int i;

    (void)state;
    (void)plugin_add("fake", "fake");
    runtime = make();
    atomic_store(&stop, false);
    for (i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, runtime), 0);
    for (i = 0; i < 30; i++)
        check_child(runtime, child_body);
    atomic_store(&stop, true);
    for (i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    cellgate_runtime_destroy(runtime);
}

/* A program that forks first, a daemon, is free to use devices. */
static int child_of_daemon(void *context)
{
    cellgate_runtime *runtime = NULL;
    const cellgate_plugin *ops = NULL;
    cellgate_device *handle = NULL;

    (void)context;
    if (cellgate_runtime_create(&options, &runtime, NULL) != CELLGATE_OK)
        return 1;
    if (plugin_open_device(cg_device_table_at(runtime->table, 0), &ops, &handle,
                           NULL) != CELLGATE_OK)
        return 2;
    cellgate_runtime_destroy(runtime);
    return 0;
}

static void test_daemon(void **state)
{
    (void)state;
    (void)plugin_add("fake", "fake");
    check_child(NULL, child_of_daemon);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, enter, plugin_folder_leave)
    const struct CMUnitTest tests[] = {
        TEST(test_daemon), /* before the first runtime of this process */
        TEST(test_lists),  TEST(test_older_struct),    TEST(test_errors),
        TEST(test_log),    TEST(test_no_options),      TEST(test_flat),
        TEST(test_fork),   TEST(test_fork_under_load),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
