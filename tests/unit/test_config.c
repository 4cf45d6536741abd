/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/config/locate.h"
#include "runtime/config/settings.h"
#include "tests/unit/fail_allocation.h"

static const char good[] = "# A fleet.\n"
                           "[cellgate]\n"
                           "log = debug\n"
                           "plugin_path = /opt/a:/opt/b c\n"
                           "probe_timeout = 1500 ms\n"
                           "probe_cache = off\n"
                           "unlisted = no\n"
                           "\n"
                           "[scheduler]\n"
                           "fallback = run\n"
                           "watchdog = 2 min\n"
                           "threads = 6\n"
                           "\n"
                           "[device card.0]\n"
                           "plugin = cuda\n"
                           "enabled = yes\n"
                           "match = *H200 # 1*\n"
                           "index = 1\n"
                           "max_memory = 4G\n"
                           "graphs = yes\n"
                           "[device cpu]\n"
                           "plugin = openmp\n";

static cg_config *parse(const char *text)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = NULL;

    if (cg_config_parse("t.ini", text, strlen(text), &config, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_non_null(config);
    return config;
}

static void refuses(const char *text, const char *expected)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = NULL;

    assert_int_equal(
        cg_config_parse("t.ini", text, strlen(text), &config, &error),
        CELLGATE_BAD_CONFIG);
    assert_null(config);
    assert_string_equal(error.text, expected);
}

static void the_empty_text_gives_the_defaults(void **state)
{
    cg_config *config = NULL;

    (void)state;
    assert_int_equal(cg_config_parse("", NULL, 0, &config, NULL), CELLGATE_OK);
    assert_string_equal(config->path, "");
    assert_int_equal(config->log, CELLGATE_LOG_WARNING);
    assert_null(config->plugin_paths);
    assert_int_equal(config->plugin_path_count, 0);
    assert_true(config->probe_timeout == 10);
    assert_true(config->probe_cache);
    assert_true(config->unlisted);
    assert_int_equal(config->fallback, CG_FALLBACK_LOAD);
    assert_true(config->watchdog == 60);
    assert_int_equal(config->threads, 0);
    assert_null(config->devices);
    assert_int_equal(config->device_count, 0);
    cg_config_destroy(config);
    cg_config_destroy(NULL);
}

static void every_key_is_read(void **state)
{
    cg_config *config = parse(good);
    const cg_device_section *card = &config->devices[0];

    (void)state;
    assert_string_equal(config->path, "t.ini");
    assert_int_equal(config->log, CELLGATE_LOG_DEBUG);
    assert_int_equal(config->plugin_path_count, 2);
    assert_string_equal(config->plugin_paths[0], "/opt/a");
    assert_string_equal(config->plugin_paths[1], "/opt/b c");
    assert_true(config->probe_timeout == 1.5);
    assert_false(config->probe_cache);
    assert_false(config->unlisted);
    assert_int_equal(config->fallback, CG_FALLBACK_RUN);
    assert_true(config->watchdog == 120);
    assert_int_equal(config->threads, 6);
    assert_int_equal(config->device_count, 2);
    assert_string_equal(card->name, "card.0");
    assert_string_equal(card->plugin, "cuda");
    assert_int_equal(card->enabled, CG_ENABLED_YES);
    assert_string_equal(card->match, "*H200 # 1*");
    assert_int_equal(card->index, 1);
    assert_int_equal(card->line, 14);
    assert_int_equal(card->entry_count, 2);
    assert_string_equal(card->entries[0].key, "max_memory");
    assert_string_equal(card->entries[0].value, "4G");
    assert_int_equal(card->entries[0].line, 19);
    assert_string_equal(card->entries[1].key, "graphs");
    cg_config_destroy(config);
}

static void devices_have_defaults(void **state)
{
    cg_config *config = parse(good);
    const cg_device_section *cpu = &config->devices[1];

    (void)state;
    assert_string_equal(cpu->name, "cpu");
    assert_int_equal(cpu->enabled, CG_ENABLED_AUTO);
    assert_null(cpu->match);
    assert_int_equal(cpu->index, 0);
    assert_null(cpu->entries);
    cg_config_destroy(config);
}

static void an_empty_path_list_is_none(void **state)
{
    cg_config *config = parse("[cellgate]\nplugin_path =\n");

    (void)state;
    assert_int_equal(config->plugin_path_count, 0);
    cg_config_destroy(config);
}

static void unknown_sections_are_refused(void **state)
{
    (void)state;
    refuses("[celgate]\n",
            "t.ini:1: [celgate]: unknown section; did you mean [cellgate]?");
    refuses("\n[Scheduler]\n", "t.ini:2: [Scheduler]: unknown section; did you "
                               "mean [scheduler]?");
    refuses("[devices gpu]\n", "t.ini:1: [devices gpu]: unknown section; did "
                               "you mean [device gpu]?");
    refuses("[dvice]\n", "t.ini:1: [dvice]: unknown section; did you mean "
                         "[device NAME]?");
    refuses("[plugins]\n", "t.ini:1: [plugins]: unknown section; there are "
                           "[cellgate], [scheduler], [calibration], "
                           "[device NAME] and [pin NAME]");
    refuses("[cellgate x]\n", "t.ini:1: [cellgate x]: unknown section; did "
                              "you mean [cellgate]?");
}

static void repeated_sections_are_refused(void **state)
{
    (void)state;
    refuses("[cellgate]\nlog = info\n[scheduler]\n[cellgate]\n",
            "t.ini:4: [cellgate]: this section is in line 1 already; merge "
            "the two");
    refuses("[device a]\nplugin = x\n\n[device  a]\n",
            "t.ini:4: [device  a]: this section is in line 1 already; give "
            "each device one section");
}

static void pins_are_read(void **state)
{
    cg_config *config = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;
    static const char text[] = "[pin small]\ndevice = cpu\nbatch = 1-8\n"
                               "steps = 16\nmodel = trans*\nvariant = t1\n"
                               "[pin rest]\ndevice = card\nbatch = 64-\n";

    (void)state;
    assert_int_equal(
        cg_config_parse("t.ini", text, sizeof text - 1, &config, &error),
        CELLGATE_OK);
    assert_int_equal(config->pin_count, 2);
    assert_string_equal(config->pins[0].name, "small");
    assert_string_equal(config->pins[0].model, "trans*");
    assert_string_equal(config->pins[0].device, "cpu");
    assert_string_equal(config->pins[0].variant, "t1");
    assert_int_equal(config->pins[0].batch.least, 1);
    assert_int_equal(config->pins[0].batch.most, 8);
    assert_int_equal(config->pins[0].steps.least, 16);
    assert_int_equal(config->pins[0].steps.most, 16);
    assert_null(config->pins[1].model);
    assert_null(config->pins[1].variant);
    assert_int_equal(config->pins[1].batch.least, 64);
    assert_true(config->pins[1].batch.most == INT64_MAX);
    assert_int_equal(config->pins[1].steps.least, 0);
    assert_true(config->pins[1].steps.most == INT64_MAX);
    cg_config_destroy(config);
}

static void bad_pins_are_refused(void **state)
{
    static const char *const ranges[] = {
        "",     "-", "8-1", "-8",          "1-2-3",
        "1 -2", "x", "3x",  "99999999999", "1-99999999999"
    };

    (void)state;
    refuses("[pin]\n", "t.ini:1: [pin]: a pin needs a name: [pin NAME]");
    refuses("[pin a]\nbatch = 1\n",
            "t.ini:1: [pin a] device: missing; write device = NAME, with a "
            "name that \"cellgate devices\" lists");
    refuses("[pin a]\ndevice = x\n[pin a]\n",
            "t.ini:3: [pin a]: this section is in line 1 already; give each "
            "pin a name of its own");
    refuses("[pins a]\n",
            "t.ini:1: [pins a]: unknown section; did you mean [pin a]?");
    for (size_t at = 0; at < sizeof ranges / sizeof ranges[0]; at++) {
        char text[100], wanted[300];

        (void)snprintf(text, sizeof text, "[pin a]\nbatch = %s\n", ranges[at]);
        (void)snprintf(wanted, sizeof wanted,
                       "t.ini:2: [pin a] batch: expected a number, such as 16, "
                       "a range, such as 1-8 or 64-, or any, not \"%s\"",
                       ranges[at]);
        refuses(text, wanted);
    }
}

static void bad_device_names_are_refused(void **state)
{
    static const char characters[] =
        ": a device's name begins with a letter or a digit and has only "
        "letters, digits, . _ and -";
    static const char *const names[] = { "-a", "a/b",      "a b", "_a",
                                         ".",  "\xC3\xA9", "a;b", "a#" };

    (void)state;
    refuses("[device]\n",
            "t.ini:1: [device]: a device needs a name: [device NAME]");
    refuses("[device cuda:0]\n",
            "t.ini:1: [device cuda:0]: a device's name has no colon: "
            "PLUGIN:INDEX names the devices that have no section");
    refuses("[device host]\n",
            "t.ini:1: [device host]: \"host\" names the operations of the "
            "core itself; choose another name");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[64], expected[256];

        (void)snprintf(text, sizeof text, "[device %s]\n", names[i]);
        (void)snprintf(expected, sizeof expected, "t.ini:1: [device %s]%s",
                       names[i], characters);
        refuses(text, expected);
    }
}

static void a_device_needs_a_plugin(void **state)
{
    static const char text[] = "t.ini:2: [device a] plugin: missing; write "
                               "plugin = NAME, with a name that \"cellgate "
                               "devices\" lists";

    (void)state;
    refuses("\n[device a]\n", text);
    refuses("\n[device a]\nindex = 1\n[cellgate]\n", text);
    refuses("\n[device a]\nindex = 1\n[device b]\nplugin = x\n", text);
    refuses("[device a]\nplugin =\n",
            "t.ini:2: [device a] plugin: expected the name of a plugin, as "
            "\"cellgate devices\" lists it (folders go into [cellgate] "
            "plugin_path), not \"\"");
    refuses("[device a]\nplugin = Openmp\n",
            "t.ini:2: [device a] plugin: expected the name of a plugin, as "
            "\"cellgate devices\" lists it (folders go into [cellgate] "
            "plugin_path), not \"Openmp\"");
    refuses("[device a]\nplugin = /lib/x.so\n",
            "t.ini:2: [device a] plugin: expected the name of a plugin, as "
            "\"cellgate devices\" lists it (folders go into [cellgate] "
            "plugin_path), not "
            "\"/lib/x.so\"");
}

static void unknown_keys_are_refused(void **state)
{
    (void)state;
    refuses("[cellgate]\nplugin_paths = /a\n",
            "t.ini:2: [cellgate] plugin_paths: unknown key; did you mean "
            "plugin_path?");
    refuses("[cellgate]\nwatchdog = 1\n",
            "t.ini:2: [cellgate] watchdog: this key belongs in [scheduler], "
            "not here");
    refuses("[scheduler]\nmatch = *\n", "t.ini:2: [scheduler] match: this key "
                                        "belongs in [device NAME], not here");
    refuses("[scheduler]\ncolour = red\n",
            "t.ini:2: [scheduler] colour: unknown key; this section takes "
            "fallback, watchdog, readmit, failures, threads, queue, measured, "
            "objective, regime, precision, margin, learn, shadow, split, requests");
}

static void repeated_keys_are_refused(void **state)
{
    (void)state;
    refuses("[cellgate]\nlog = info\n# between\nlog = info\n",
            "t.ini:4: [cellgate] log: this key is in line 2 already");
    refuses("[device a]\nplugin = x\nplugin = y\n",
            "t.ini:3: [device a] plugin: this key is in line 2 already");
    refuses("[device a]\nplugin = x\nheat = 1\nheat = 2\n",
            "t.ini:4: [device a] heat: this key is in line 3 already");
}

static void keys_of_two_sections_are_not_repeated(void **state)
{
    (void)state;
    cg_config_destroy(parse("[device a]\nplugin = x\nheat = 1\n"
                            "[device b]\nplugin = x\nheat = 1\n"));
}

static void bad_values_are_refused(void **state)
{
    (void)state;
    refuses("[cellgate]\nlog = verbose\n",
            "t.ini:2: [cellgate] log: expected error, warning, info or debug, "
            "not \"verbose\"");
    refuses("[cellgate]\nprobe_cache = maybe\n",
            "t.ini:2: [cellgate] probe_cache: expected yes or no, not "
            "\"maybe\"");
    refuses("[cellgate]\nprobe_timeout = 0\n",
            "t.ini:2: [cellgate] probe_timeout: expected a time above 0, not "
            "\"0\"");
    refuses("[scheduler]\nthreads = -1\n",
            "t.ini:2: [scheduler] threads: expected a whole number from 0 to "
            "65536, not \"-1\"");
    refuses("[device a]\nplugin = x\nmatch =\n",
            "t.ini:3: [device a] match: expected a pattern such as *H200*, or "
            "no such line, not \"\"");
    refuses("[device a]\nindex = 1.0\n",
            "t.ini:2: [device a] index: expected a whole number from 0 to "
            "65535, not \"1.0\"");
}

static void plugin_folders_are_absolute(void **state)
{
    static const char *const lists[][2] = {
        { "lib", "lib" }, { "/a:b", "b" }, { "/a::/b", "" },
        { "/a:", "" },    { ":/a", "" },   { "~/p", "~/p" }
    };

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char text[64], expected[256];

        (void)snprintf(text, sizeof text, "[cellgate]\nplugin_path = %s\n",
                       lists[i][0]);
        (void)snprintf(expected, sizeof expected,
                       "t.ini:2: [cellgate] plugin_path: expected absolute "
                       "folders separated by colons, not \"%s\"",
                       lists[i][1]);
        refuses(text, expected);
    }
}

static void huge_texts_are_refused(void **state)
{
    char *text = malloc(CG_CONFIG_BYTES_MAX + 1);
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = NULL;

    (void)state;
    assert_non_null(text);
    memset(text, '\n', CG_CONFIG_BYTES_MAX + 1);
    assert_int_equal(
        cg_config_parse("t.ini", text, CG_CONFIG_BYTES_MAX, &config, &error),
        CELLGATE_OK);
    cg_config_destroy(config);
    config = NULL;
    assert_int_equal(cg_config_parse("t.ini", text, CG_CONFIG_BYTES_MAX + 1,
                                     &config, &error),
                     CELLGATE_BAD_CONFIG);
    assert_null(config);
    assert_string_equal(error.text, "t.ini: the file has more than 1048576 "
                                    "bytes, so it is no configuration");
    free(text);
}

/* In memory of exactly that size; an error names the file and fits. */
static void survives(const char *text, size_t size)
{
    char *exact = malloc(size > 0 ? size : 1);
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = NULL;

    assert_non_null(exact);
    memcpy(exact, text, size);
    if (cg_config_parse("t.ini", exact, size, &config, &error) == CELLGATE_OK) {
        cg_config_destroy(config);
    } else {
        assert_null(config);
        assert_memory_equal(error.text, "t.ini:", 6);
        assert_true(strlen(error.text) < sizeof error.text);
        assert_null(strchr(error.text, '\n'));
    }
    free(exact);
}

static void truncated_texts_do_no_harm(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof good; size++)
        survives(good, size);
}

static void changed_bytes_do_no_harm(void **state)
{
    static const char interesting[] = "\0\n\r\t []=;:#\"'\\\x7F\x80\xC3\xFF";
    char text[sizeof good];

    (void)state;
    for (size_t at = 0; at < sizeof good - 1; at++)
        for (size_t i = 0; i < sizeof interesting - 1; i++) {
            memcpy(text, good, sizeof good);
            text[at] = interesting[i];
            survives(text, sizeof good - 1);
        }
}

/* Pseudo-random: Knuth's MMIX generator, always from the same seed. */
static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static void random_damage_does_no_harm(void **state)
{
    uint64_t seed = 20;
    char text[sizeof good];

    (void)state;
    for (int round = 0; round < 3000; round++) {
        size_t size = sizeof good - 1;
        uint32_t flips = 1 + next_random(&seed) % 8;

        memcpy(text, good, sizeof good);
        for (uint32_t i = 0; i < flips; i++)
            text[next_random(&seed) % size] ^=
                (char)(1u << next_random(&seed) % 8);
        survives(text, size - next_random(&seed) % 40);
    }
}

static cellgate_status parse_and_destroy(void *context)
{
    cg_config *config = NULL;
    cellgate_status status =
        cg_config_parse("t.ini", context, strlen(context), &config, NULL);

    if (status == CELLGATE_OK)
        cg_config_destroy(config);
    else
        assert_null(config);
    return status;
}

static void survives_failing_allocations(void **state)
{
    char text[sizeof good];

    (void)state;
    memcpy(text, good, sizeof good);
    assert_true(fail_each_allocation(parse_and_destroy, text) > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_empty_text_gives_the_defaults),
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(devices_have_defaults),
        cmocka_unit_test(an_empty_path_list_is_none),
        cmocka_unit_test(unknown_sections_are_refused),
        cmocka_unit_test(repeated_sections_are_refused),
        cmocka_unit_test(bad_device_names_are_refused),
        cmocka_unit_test(pins_are_read),
        cmocka_unit_test(bad_pins_are_refused),
        cmocka_unit_test(a_device_needs_a_plugin),
        cmocka_unit_test(unknown_keys_are_refused),
        cmocka_unit_test(repeated_keys_are_refused),
        cmocka_unit_test(keys_of_two_sections_are_not_repeated),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(plugin_folders_are_absolute),
        cmocka_unit_test(huge_texts_are_refused),
        cmocka_unit_test(truncated_texts_do_no_harm),
        cmocka_unit_test(changed_bytes_do_no_harm),
        cmocka_unit_test(random_damage_does_no_harm),
        cmocka_unit_test(survives_failing_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
