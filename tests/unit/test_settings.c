/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/config/settings.h"
#include "tests/unit/fail_allocation.h"

#define KEY(name, type, fallback, choices, minimum, maximum)                   \
    {                                                                          \
        sizeof(cellgate_key), name, type, fallback, choices, minimum, maximum, \
            "help"                                                             \
    }

static const cellgate_key keys[] = {
    KEY("threads", CELLGATE_KEY_INTEGER, "0", NULL, 0, 1024),
    KEY("max_memory", CELLGATE_KEY_SIZE, "0", NULL, 0, 0),
    KEY("idle", CELLGATE_KEY_SECONDS, "0.001", NULL, 0, 0),
    KEY("graphs", CELLGATE_KEY_BOOLEAN, "no", NULL, 0, 0),
    KEY("level", CELLGATE_KEY_CHOICE, "auto", "auto|scalar|avx2", 0, 0),
    KEY("options", CELLGATE_KEY_TEXT, "", NULL, 0, 0),
};
#define KEY_COUNT (sizeof keys / sizeof keys[0])

static cg_config *parse(const char *entries)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = NULL;
    char text[512];

    (void)snprintf(text, sizeof text, "[device d]\nplugin = p\n%s", entries);
    if (cg_config_parse("t.ini", text, strlen(text), &config, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    return config;
}

static void refuses(const char *entries, const char *expected)
{
    cg_config *config = parse(entries);
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_settings *settings = NULL;

    assert_int_equal(cg_settings_create(config, config->devices, keys,
                                        KEY_COUNT, &settings, &error),
                     CELLGATE_BAD_CONFIG);
    assert_null(settings);
    assert_string_equal(error.text, expected);
    assert_int_equal(cg_settings_create(config, config->devices, keys,
                                        KEY_COUNT, &settings, NULL),
                     CELLGATE_BAD_CONFIG);
    cg_config_destroy(config);
}

static void values_are_canonical(void **state)
{
    cg_config *config = parse("threads = +08\nmax_memory = 2 k\nidle = 5 ms\n"
                              "graphs = ON\nlevel = avx2\noptions = -D A=1\n");
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_settings *settings = NULL;

    (void)state;
    assert_int_equal(cg_settings_create(config, config->devices, keys,
                                        KEY_COUNT, &settings, &error),
                     CELLGATE_OK);
    cg_config_destroy(config); /* the settings do not need it */
    assert_string_equal(cg_settings_value(settings, "threads"), "8");
    assert_string_equal(cg_settings_value(settings, "max_memory"), "2048");
    assert_string_equal(cg_settings_value(settings, "idle"), "0.005");
    assert_string_equal(cg_settings_value(settings, "graphs"), "yes");
    assert_string_equal(cg_settings_value(settings, "level"), "avx2");
    assert_string_equal(cg_settings_value(settings, "options"), "-D A=1");
    assert_null(cg_settings_value(settings, "plugin"));
    assert_null(cg_settings_value(settings, "colour"));
    cg_settings_destroy(settings);
}

static void check_defaults(const cellgate_settings *settings)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        assert_string_equal(cg_settings_value(settings, keys[i].name),
                            keys[i].default_text);
}

static void defaults_hold_without_entries(void **state)
{
    cg_config *config = parse("");
    cellgate_settings *settings = NULL;

    (void)state;
    assert_int_equal(cg_settings_create(config, config->devices, keys,
                                        KEY_COUNT, &settings, NULL),
                     CELLGATE_OK);
    check_defaults(settings);
    cg_settings_destroy(settings);
    settings = NULL;
    assert_int_equal(
        cg_settings_create(config, NULL, keys, KEY_COUNT, &settings, NULL),
        CELLGATE_OK);
    check_defaults(settings);
    cg_settings_destroy(settings);
    cg_config_destroy(config);
}

static void a_plugin_may_have_no_keys(void **state)
{
    cg_config *config = parse("");
    cellgate_settings *settings = NULL;

    (void)state;
    assert_int_equal(
        cg_settings_create(config, config->devices, NULL, 0, &settings, NULL),
        CELLGATE_OK);
    assert_null(cg_settings_value(settings, "threads"));
    cg_settings_destroy(settings);
    cg_settings_destroy(NULL);
    assert_null(cg_settings_value(NULL, "threads"));
    cg_config_destroy(config);
}

static void mistakes_are_explained(void **state)
{
    (void)state;
    refuses("thread = 1\n",
            "t.ini:3: [device d] thread: unknown key; did you mean threads?");
    refuses("\nenable = no\n",
            "t.ini:4: [device d] enable: unknown key; did you mean enabled?");
    refuses("watchdog = 1\n", "t.ini:3: [device d] watchdog: this key belongs "
                              "in [scheduler], not here");
    refuses("colour = red\n",
            "t.ini:3: [device d] colour: unknown key; a device of plugin p "
            "takes plugin, enabled, match, index, exclude, threads, "
            "max_memory, idle, graphs, level, options");
    refuses("threads = 4\nlevel = avx3\n",
            "t.ini:4: [device d] level: expected auto, scalar or avx2, not "
            "\"avx3\" (did you mean avx2?)");
    refuses("threads = 2000\n",
            "t.ini:3: [device d] threads: expected a whole number from 0 to "
            "1024, not \"2000\"");
}

/* A plugin newer than the core: its rows are longer. */
static void longer_rows_are_stepped_over(void **state)
{
    static const struct {
        cellgate_key key;
        const char *unit;
    } longer[] = {
        { { sizeof longer[0], "a", CELLGATE_KEY_INTEGER, "1", NULL, 0, 0, "" },
          "x" },
        { { sizeof longer[0], "b", CELLGATE_KEY_INTEGER, "2", NULL, 0, 0, "" },
          "y" },
    };
    cg_config *config = parse("b = 3\n");
    cellgate_settings *settings = NULL;

    (void)state;
    assert_int_equal(cg_settings_create(config, config->devices, &longer[0].key,
                                        2, &settings, NULL),
                     CELLGATE_OK);
    assert_string_equal(cg_settings_value(settings, "a"), "1");
    assert_string_equal(cg_settings_value(settings, "b"), "3");
    cg_settings_destroy(settings);
    cg_config_destroy(config);
}

static void bad_table(const cellgate_key *table, const char *expected)
{
    cg_config *config = parse("");
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_settings *settings = NULL;

    assert_int_equal(cg_settings_create(config, config->devices, table, 1,
                                        &settings, &error),
                     CELLGATE_BAD_PLUGIN);
    assert_null(settings);
    assert_string_equal(error.text, expected);
    cg_config_destroy(config);
}

static void a_wrong_table_is_the_plugins_mistake(void **state)
{
    cellgate_key key = KEY("a", CELLGATE_KEY_INTEGER, "x", NULL, 0, 0);

    (void)state;
    bad_table(&key, "plugin p: the default of its key a is wrong: expected a "
                    "whole number, not \"x\"");
    key.default_text = NULL;
    bad_table(&key, "plugin p: row 0 of its table of keys has no name or no "
                    "default");
    key.default_text = "1";
    key.name = NULL;
    bad_table(&key, "plugin p: row 0 of its table of keys has no name or no "
                    "default");
    key.name = "a";
    key.type = 42;
    bad_table(&key, "plugin p: the default of its key a is wrong: expected a "
                    "value of a type that this version of Cellgate does not "
                    "know, not \"1\"");
    key.struct_size = 8;
    bad_table(&key, "plugin p: the rows of its table of keys are 8 bytes, at "
                    "least 64 are needed");
}

static cellgate_status create_and_destroy(void *context)
{
    const cg_config *config = context;
    cellgate_settings *settings = NULL;
    cellgate_status status = cg_settings_create(config, config->devices, keys,
                                                KEY_COUNT, &settings, NULL);

    if (status == CELLGATE_OK)
        cg_settings_destroy(settings);
    else
        assert_null(settings);
    return status;
}

static void survives_failing_allocations(void **state)
{
    cg_config *config = parse("threads = 4\nlevel = avx2\n");

    (void)state;
    assert_int_equal(fail_each_allocation(create_and_destroy, config),
                     1 + 2 * KEY_COUNT);
    cg_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_canonical),
        cmocka_unit_test(defaults_hold_without_entries),
        cmocka_unit_test(a_plugin_may_have_no_keys),
        cmocka_unit_test(mistakes_are_explained),
        cmocka_unit_test(longer_rows_are_stepped_over),
        cmocka_unit_test(a_wrong_table_is_the_plugins_mistake),
        cmocka_unit_test(survives_failing_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
