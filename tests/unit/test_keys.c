/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/config/keys.h"

#define BYTES_MAX (1 << 20)

/* A file of the source tree, NUL-terminated; the caller frees it. */
static char *read_source(const char *name)
{
    const char *folder = getenv("srcdir");
    char *text = calloc(1, BYTES_MAX);
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : ".",
                   name);
    file = fopen(path, "r");
    if (file == NULL)
        fail_msg("%s cannot be read", path);
    assert_non_null(text);
    assert_true(fread(text, 1, BYTES_MAX - 1, file) > 0);
    (void)fclose(file);
    return text;
}

typedef void (*key_visit)(const cg_section *section, const cg_key *key,
                          const char *text);

static void for_each_key(key_visit visit, const char *text)
{
    for (size_t s = 0; s < cg_section_count; s++)
        for (size_t k = 0; k < cg_sections[s].key_count; k++)
            visit(&cg_sections[s], &cg_sections[s].keys[k], text);
}

static void check_row(const cg_section *section, const cg_key *key,
                      const char *text)
{
    cg_value value;
    char problem[300];

    (void)text;
    assert_int_equal(key->key.struct_size, sizeof key->key);
    assert_true(strlen(key->key.help) > 0);
    if (!cg_value_parse(&key->key, key->key.default_text, &value, problem,
                        sizeof problem))
        fail_msg("default of %s: %s", key->key.name, problem);
    assert_string_equal(value.text, key->key.default_text); /* canonical */
    assert_ptr_equal(cg_section_key(section, key->key.name), key);
    assert_ptr_equal(cg_section_with_key(key->key.name), section);
}

static void the_table_is_consistent(void **state)
{
    (void)state;
    for_each_key(check_row, NULL);
    assert_null(cg_section_key(cg_section_device(), "log"));
    assert_null(cg_section_with_key("colour"));
    assert_string_equal(cg_section_device()->name, "device");
}

/* "key = default" on a line of its own, or "#key =" where there is none. */
static void check_example(const cg_section *section, const cg_key *key,
                          const char *text)
{
    char line[256];

    if (key->key.default_text[0] == '\0') {
        char other[256];

        (void)snprintf(line, sizeof line, "\n#%s = ", key->key.name);
        (void)snprintf(other, sizeof other, "\n%s = ", key->key.name);
        if (strstr(text, line) == NULL && strstr(text, other) == NULL)
            fail_msg("etc/cellgate.ini does not show %s", key->key.name);
        return;
    }
    (void)snprintf(line, sizeof line, "\n%s%s = %s\n",
                   section->fills == CG_FILLS_PIN ? "#" : "", key->key.name,
                   key->key.default_text);
    if (strstr(text, line) == NULL)
        fail_msg("etc/cellgate.ini has no line \"%s = %s\"", key->key.name,
                 key->key.default_text);
}

static void the_example_shows_every_key(void **state)
{
    char *text = read_source("etc/cellgate.ini");

    (void)state;
    for_each_key(check_example, text);
    free(text);
}

/* A row of a table, "| `key` | type | `default` |", with the same choices. */
static void check_reference(const cg_section *section, const cg_key *key,
                            const char *text)
{
    char row[128], fallback[128];
    const char *choices = key->key.choices;
    const char *found, *end;

    (void)section;
    (void)snprintf(row, sizeof row, "\n| `%s` |", key->key.name);
    found = strstr(text, row);
    if (found == NULL)
        fail_msg("doc/configuration.md has no row for %s", key->key.name);
    end = strchr(found + 1, '\n');
    assert_non_null(end);
    (void)snprintf(fallback, sizeof fallback, "| `%s` |",
                   key->key.default_text);
    if (key->key.default_text[0] != '\0' &&
        (strstr(found, fallback) == NULL || strstr(found, fallback) > end))
        fail_msg("doc/configuration.md: default of %s is %s", key->key.name,
                 key->key.default_text);
    while (choices != NULL && *choices != '\0') {
        size_t length = strcspn(choices, "|");
        char choice[64];

        (void)snprintf(choice, sizeof choice, "`%.*s`", (int)length, choices);
        if (strstr(found, choice) == NULL || strstr(found, choice) > end)
            fail_msg("doc/configuration.md: %s may be %s", key->key.name,
                     choice);
        choices += length + (choices[length] == '|');
    }
}

static void the_reference_describes_every_key(void **state)
{
    char *text = read_source("doc/configuration.md");
    char heading[64];

    (void)state;
    for (size_t s = 0; s < cg_section_count; s++) {
        (void)snprintf(heading, sizeof heading, "\n## [%s]\n",
                       cg_sections[s].shown);
        if (strstr(text, heading) == NULL)
            fail_msg("doc/configuration.md has no part \"[%s]\"",
                     cg_sections[s].shown);
    }
    for_each_key(check_reference, text);
    free(text);
}

/* An example that is copied as it is changes nothing. */
static void the_example_parses_to_the_defaults(void **state)
{
    char *text = read_source("etc/cellgate.ini");
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *example = NULL, *built_in = NULL;

    (void)state;
    if (cg_config_parse("etc/cellgate.ini", text, strlen(text), &example,
                        &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(cg_config_parse("", "", 0, &built_in, NULL), CELLGATE_OK);
    assert_int_equal(example->log, built_in->log);
    assert_int_equal(example->plugin_path_count, 0);
    assert_true(example->probe_timeout == built_in->probe_timeout);
    assert_int_equal(example->probe_cache, built_in->probe_cache);
    assert_int_equal(example->unlisted, built_in->unlisted);
    assert_int_equal(example->fallback, built_in->fallback);
    assert_true(example->watchdog == built_in->watchdog);
    assert_int_equal(example->threads, built_in->threads);
    for (size_t i = 0; i < example->device_count; i++)
        assert_int_equal(example->devices[i].enabled, CG_ENABLED_AUTO);
    cg_config_destroy(example);
    cg_config_destroy(built_in);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_consistent),
        cmocka_unit_test(the_example_shows_every_key),
        cmocka_unit_test(the_reference_describes_every_key),
        cmocka_unit_test(the_example_parses_to_the_defaults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
