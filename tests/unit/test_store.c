/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/config/store.h"
#include "tests/unit/fail_allocation.h"

/* Parses and stores, as a configuration's line would. */
static cellgate_status store(void *owner, const char *name, const char *text,
                             char *problem, size_t problem_size)
{
    const cg_section *section = cg_section_with_key(name);
    const cg_key *key;
    cg_value value;

    assert_non_null(section);
    key = cg_section_key(section, name);
    assert_true(cg_value_parse(&key->key, text, &value, problem, problem_size));
    return cg_store_value(owner, key, &value, problem, problem_size);
}

static void stores(void *owner, const char *name, const char *text)
{
    char problem[300];

    assert_int_equal(store(owner, name, text, problem, sizeof problem),
                     CELLGATE_OK);
}

static void each_kind_lands_in_its_field(void **state)
{
    cg_config config, untouched;
    cg_device_section device = { .index = 7 };

    (void)state;
    memset(&config, 0xA5, sizeof config);
    config.plugin_paths = NULL;
    config.plugin_path_count = 0;
    untouched = config;
    stores(&config, "log", "debug");
    stores(&config, "probe_timeout", "250 ms");
    stores(&config, "probe_cache", "yes");
    stores(&config, "unlisted", "no");
    stores(&config, "threads", "12");
    assert_int_equal(config.log, CELLGATE_LOG_DEBUG);
    assert_true(config.probe_timeout == 0.25);
    assert_true(config.probe_cache);
    assert_false(config.unlisted);
    assert_int_equal(config.threads, 12);
    assert_int_equal(config.fallback, untouched.fallback);
    assert_memory_equal(&config.watchdog, &untouched.watchdog,
                        sizeof config.watchdog);
    stores(&device, "index", "3");
    stores(&device, "enabled", "no");
    assert_int_equal(device.index, 3);
    assert_int_equal(device.enabled, CG_ENABLED_NO);
    assert_null(device.plugin);
}

static void a_text_replaces_the_one_before(void **state)
{
    cg_device_section device = { .plugin = NULL };

    (void)state;
    fail_allocation_begin(0);
    stores(&device, "match", "*a*");
    stores(&device, "match", "*b*");
    assert_string_equal(device.match, "*b*");
    assert_int_equal(fail_allocation_live(), 1);
    stores(&device, "match", "");
    assert_null(device.match);
    assert_false(fail_allocation_end());
    assert_int_equal(fail_allocation_live(), 0);
}

static void paths_replace_those_before(void **state)
{
    cg_config config = { .path = NULL };
    char problem[300];

    (void)state;
    fail_allocation_begin(0);
    stores(&config, "plugin_path", "/a:/b:/c");
    assert_int_equal(config.plugin_path_count, 3);
    assert_string_equal(config.plugin_paths[2], "/c");
    stores(&config, "plugin_path", "/d");
    assert_int_equal(config.plugin_path_count, 1);
    assert_string_equal(config.plugin_paths[0], "/d");
    assert_int_equal(
        store(&config, "plugin_path", "/e:f", problem, sizeof problem),
        CELLGATE_BAD_CONFIG);
    assert_string_equal(config.plugin_paths[0], "/d"); /* as it was */
    stores(&config, "plugin_path", "");
    assert_int_equal(config.plugin_path_count, 0);
    assert_null(config.plugin_paths);
    assert_false(fail_allocation_end());
    assert_int_equal(fail_allocation_live(), 0);
}

static cellgate_status store_and_free(void *context)
{
    cg_config config = { .path = NULL };
    cg_device_section device = { .plugin = NULL };
    char problem[300];
    cellgate_status status =
        store(&config, "plugin_path", "/a:/b", problem, sizeof problem);

    (void)context;
    if (status == CELLGATE_OK)
        status = store(&device, "plugin", "p", problem, sizeof problem);
    cg_paths_free(config.plugin_paths, config.plugin_path_count);
    free(device.plugin);
    return status;
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(store_and_free, NULL), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_lands_in_its_field),
        cmocka_unit_test(a_text_replaces_the_one_before),
        cmocka_unit_test(paths_replace_those_before),
        cmocka_unit_test(survives_failing_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
