/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/plugin/loaded.h"
#include "tests/unit/plugin_folder.h"

/* Counts the lines, and keeps the last. */
typedef struct listener {
    atomic_int count;
    int32_t level;
    char text[200];
} listener;

static void listen(void *context, int32_t level, const char *text)
{
    listener *self = context;

    atomic_fetch_add(&self->count, 1);
    self->level = level;
    (void)snprintf(self->text, sizeof self->text, "%s", text);
}

static cg_loaded_user make_user(listener *to, uint32_t threads)
{
    cg_loaded_user user = { .log = { listen, to, CELLGATE_LOG_DEBUG },
                            .thread_budget = threads };

    return user;
}

static cellgate_device *open_one(const cellgate_plugin *ops,
                                 cellgate_instance *instance)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_device *device = NULL;

    assert_int_equal(ops->device_open(instance, 0, NULL, &device, &error),
                     CELLGATE_OK);
    return device;
}

static void test_shared(void **state)
{
    const char *path = plugin_add("fake", "shared");
    listener first_log = { 0 }, second_log = { 0 };
    cg_loaded_user first = make_user(&first_log, 2);
    cg_loaded_user second = make_user(&second_log, 8);
    const cellgate_plugin *ops = NULL, *same_ops = NULL;
    cellgate_instance *instance = NULL, *same_instance = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_int_equal(cg_loaded_use(path, &first, &ops, &instance, &error),
                     CELLGATE_OK);
    assert_int_equal(cg_loaded_use(path, &first, &ops, &instance, &error),
                     CELLGATE_OK);
    /* By another name it is the same file. */
    assert_int_equal(symlink(path, plugin_path("link.so")), 0);
    assert_int_equal(cg_loaded_use(plugin_path("link.so"), &second, &same_ops,
                                   &same_instance, &error),
                     CELLGATE_OK);
    assert_ptr_equal(ops, same_ops);
    assert_ptr_equal(instance, same_instance);

    ops->device_close(open_one(ops, instance));
    assert_int_equal(first_log.count, 2);
    assert_int_equal(second_log.count, 2);
    assert_string_equal(first_log.text, "fake: closed");
    assert_int_equal(first_log.level, CELLGATE_LOG_DEBUG);
    cg_loaded_leave(&first);
    ops->device_close(open_one(ops, instance));
    assert_int_equal(first_log.count, 2);
    assert_int_equal(second_log.count, 4);
    cg_loaded_leave(&second);
    cg_loaded_leave(&second);
    ops->device_close(open_one(ops, instance));
    assert_int_equal(second_log.count, 4);
}

/* Another copy of the file is another plugin. */
static void test_copies(void **state)
{
    listener log = { 0 };
    cg_loaded_user one = make_user(&log, 1), two = make_user(&log, 1);
    const cellgate_plugin *ops = NULL;
    cellgate_instance *first = NULL, *second = NULL;

    (void)state;
    assert_int_equal(
        cg_loaded_use(plugin_add("fake", "one"), &one, &ops, &first, NULL),
        CELLGATE_OK);
    assert_int_equal(
        cg_loaded_use(plugin_add("fake", "two"), &two, &ops, &second, NULL),
        CELLGATE_OK);
    assert_ptr_not_equal(first, second);
    cg_loaded_leave(&one);
    cg_loaded_leave(&two);
}

static void check_failure(const char *path, cellgate_status status,
                          const char *text)
{
    listener log = { 0 };
    cg_loaded_user user = make_user(&log, 1);
    const cellgate_plugin *ops = NULL;
    cellgate_instance *instance = NULL;
    int i;

    for (i = 0; i < 2; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        assert_int_equal(cg_loaded_use(path, &user, &ops, &instance, &error),
                         status);
        assert_non_null(strstr(error.text, text));
        assert_non_null(strstr(error.text, path));
        assert_null(ops);
    }
    cg_loaded_leave(&user);
}

static void test_failures(void **state)
{
    (void)state;
    check_failure(plugin_path("nowhere.so"), CELLGATE_BAD_PLUGIN,
                  "No such file");
    check_failure(plugin_add("no_entry", "no_entry"), CELLGATE_BAD_PLUGIN,
                  "does not export");
    check_failure(plugin_add("bad", "bad_magic"), CELLGATE_BAD_PLUGIN, "magic");
    check_failure(plugin_add("bad", "no_driver"), CELLGATE_NO_DEVICE,
                  "no driver: install");
}

/* Lines come from several threads at once, so none is kept. */
static void count_lines(void *context, int32_t level, const char *text)
{
    (void)level;
    (void)text;
    atomic_fetch_add((atomic_int *)context, 1);
}

static const char *racing;
static cellgate_instance *instances[8];

static void *use(void *context)
{
    size_t index = (size_t)(uintptr_t)context;
    atomic_int lines = 0;
    cg_loaded_user user = { .log = { count_lines, &lines, CELLGATE_LOG_DEBUG },
                            .thread_budget = 1 };
    const cellgate_plugin *ops = NULL;

    if (cg_loaded_use(racing, &user, &ops, &instances[index], NULL) ==
        CELLGATE_OK)
        ops->device_close(open_one(ops, instances[index]));
    cg_loaded_leave(&user);
    return NULL;
}

/* init() once, whoever comes first. */
static void test_race(void **state)
{
    pthread_t threads[8];
    uintptr_t i;

    (void)state;
    racing = plugin_add("fake", "raced");
    for (i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, (void *)i), 0);
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_non_null(instances[0]);
    for (i = 1; i < 8; i++)
        assert_ptr_equal(instances[i], instances[0]);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, plugin_folder_enter,                 \
                                    plugin_folder_leave)
    const struct CMUnitTest tests[] = {
        TEST(test_shared),
        TEST(test_copies),
        TEST(test_failures),
        TEST(test_race),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
