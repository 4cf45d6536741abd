/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/config/exclude.h"

static char *variants[] = { (char *)"whole", (char *)"step-f16", (char *)"t*" };
#define COUNT (sizeof variants / sizeof variants[0])

static cg_config *parse(const char *exclude, cellgate_error *error)
{
    cg_config *config = NULL;
    char text[512];

    (void)snprintf(text, sizeof text,
                   "[device d]\nplugin = p\n\nexclude = %s\n", exclude);
    (void)cg_config_parse("t.ini", text, strlen(text), &config, error);
    return config;
}

static void check_fits(const char *patterns, const char *variant, bool fits)
{
    if (cg_exclude_fits(patterns, variant) != fits)
        fail_msg("\"%s\" and %s", patterns ? patterns : "", variant);
}

static void patterns_fit(void **state)
{
    (void)state;
    check_fits(NULL, "step", false);
    check_fits("", "step", false);
    check_fits("step", "step", true);
    check_fits("step", "step-f16", false);
    check_fits("step*", "step-f16", true);
    check_fits("whole  ste?\t*-bf16", "step", true);
    check_fits("whole  step\t*-bf16", "block-bf16", true);
    check_fits("whole  step\t*-bf16", "block", false);
    check_fits("[st]*", "t4", true);
}

static void check(const char *exclude, const char *expected)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = parse(exclude, &error);
    cellgate_status status;

    if (config == NULL)
        fail_msg("%s", error.text);
    status = cg_exclude_check(config, config->devices, variants, COUNT, &error);
    assert_int_equal(status, expected ? CELLGATE_BAD_CONFIG : CELLGATE_OK);
    if (expected)
        assert_string_equal(error.text, expected);
    assert_int_equal(cg_exclude_check(config, config->devices, NULL, 0, &error),
                     CELLGATE_OK);
    cg_config_destroy(config);
}

static void names_are_checked(void **state)
{
    (void)state;
    check("whole", NULL);
    check("*-f16 t8", NULL);
    check("t*", NULL);
    check("whole step-f61", "t.ini:4: [device d] exclude: plugin p has no "
                            "variant step-f61 (did you mean step-f16?); it has "
                            "whole, step-f16, t*");
    check("cuda*",
          "t.ini:4: [device d] exclude: plugin p has no variant cuda*; "
          "it has whole, step-f16, t*");
}

/* One name that a plugin lists, against patterns. */
static void check_open(const char *name, const char *exclude, bool known)
{
    char *names[] = { (char *)(uintptr_t)name };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = parse(exclude, &error);
    cellgate_status status;

    if (config == NULL)
        fail_msg("%s", error.text);
    status = cg_exclude_check(config, config->devices, names, 1, &error);
    if (status != (known ? CELLGATE_OK : CELLGATE_BAD_CONFIG))
        fail_msg("\"%s\" and %s: status %d", exclude, name, (int)status);
    cg_config_destroy(config);
}

/* openmp and opencl list names so: known is each pattern that fits some name
   which begins like that, the example in etc/cellgate.ini first of all. */
static void open_names_meet_patterns(void **state)
{
    static const char *const threads[] = {
        "t1 *-f16", "t*",    "*",  "?",        "t",    "t?-int8",
        "[st]8",    "[!s]*", "?t", "t*4*-f16", "\\t8", "**8",
    };
    static const char *const no_threads[] = { "s*", "x?",    "[!t]*",
                                              "s?", "[s-]1", "-f16" };
    static const char *const fused[] = { "fused", "fused4-f16",  "*4",  "f?s*",
                                         "fuse?", "fused-t[12]", "fu*e" };
    static const char *const not_fused[] = { "fuse", "fus?",   "f?ed*", "u*",
                                             "?",    "[f]use", "[!f]*d" };

    (void)state;
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        check_open("t*", threads[i], true);
    for (size_t i = 0; i < sizeof no_threads / sizeof no_threads[0]; i++)
        check_open("t*", no_threads[i], false);
    for (size_t i = 0; i < sizeof fused / sizeof fused[0]; i++)
        check_open("fused*", fused[i], true);
    for (size_t i = 0; i < sizeof not_fused / sizeof not_fused[0]; i++)
        check_open("fused*", not_fused[i], false);
    check_open("*", "t1 *-f16", true);
}

static void an_empty_one_is_refused(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_null(parse("", &error));
    assert_string_equal(error.text,
                        "t.ini:4: [device d] exclude: expected names of "
                        "variants with blanks between them, or no such line, "
                        "not \"\"");
}

/* A section without it, and no section at all. */
static void without_it_nothing_is_excluded(void **state)
{
    static const char text[] = "[device d]\nplugin = p\n";
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_settings *settings = NULL;
    cg_config *config = NULL;

    (void)state;
    assert_int_equal(
        cg_config_parse("t.ini", text, strlen(text), &config, &error),
        CELLGATE_OK);
    assert_int_equal(
        cg_exclude_check(config, config->devices, variants, COUNT, &error),
        CELLGATE_OK);
    assert_int_equal(
        cg_settings_create(config, config->devices, NULL, 0, &settings, &error),
        CELLGATE_OK);
    assert_false(cg_settings_excludes(settings, "whole"));
    assert_false(cg_settings_excludes(NULL, "whole"));
    cg_settings_destroy(settings);
    cg_config_destroy(config);
}

static void settings_know_it(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = parse("whole t*", &error);
    cellgate_settings *settings = NULL;
    char *text;

    (void)state;
    assert_int_equal(
        cg_settings_create(config, config->devices, NULL, 0, &settings, &error),
        CELLGATE_OK);
    cg_config_destroy(config);
    assert_true(cg_settings_excludes(settings, "t1"));
    assert_false(cg_settings_excludes(settings, "step-f16"));
    text = cg_settings_text(settings); /* costs hold whatever is excluded */
    assert_string_equal(text, "");
    free(text);
    cg_settings_destroy(settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_fit),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(open_names_meet_patterns),
        cmocka_unit_test(an_empty_one_is_refused),
        cmocka_unit_test(without_it_nothing_is_excluded),
        cmocka_unit_test(settings_know_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
