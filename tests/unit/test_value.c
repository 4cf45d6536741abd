/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/config/value.h"

static cellgate_key key_of(int32_t type)
{
    cellgate_key key = {
        .struct_size = sizeof key, .name = "k", .type = type, .default_text = ""
    };

    return key;
}

static void accepts(const cellgate_key *key, const char *text,
                    const char *canonical)
{
    cg_value value;
    char problem[300] = "";

    if (!cg_value_parse(key, text, &value, problem, sizeof problem))
        fail_msg("\"%s\" is refused: %s", text, problem);
    assert_string_equal(value.text, canonical);
}

static void refuses(const cellgate_key *key, const char *text,
                    const char *expected)
{
    cg_value value;
    char problem[300] = "";

    if (cg_value_parse(key, text, &value, problem, sizeof problem))
        fail_msg("\"%s\" is taken as %s", text, value.text);
    assert_string_equal(problem, expected);
}

static void refuses_all(const cellgate_key *key, const char *const *texts)
{
    for (; *texts != NULL; texts++) {
        cg_value value;
        char problem[300] = "";

        if (cg_value_parse(key, *texts, &value, problem, sizeof problem))
            fail_msg("\"%s\" is taken as %s", *texts, value.text);
        assert_memory_equal(problem, "expected ", 9);
    }
}

static void booleans(void **state)
{
    static const char *const yes[] = {
        "yes", "true", "on", "1", "Yes", "TRUE"
    };
    static const char *const no[] = { "no", "FALSE", "off", "0", "No", "OFF" };
    static const char *const wrong[] = { "",   "2",   "y",  "yess",
                                         "ye", "onn", "00", NULL };
    cellgate_key key = key_of(CELLGATE_KEY_BOOLEAN);
    cg_value value;
    char problem[300];

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        accepts(&key, yes[i], "yes");
        accepts(&key, no[i], "no");
    }
    assert_true(cg_value_parse(&key, "on", &value, problem, sizeof problem));
    assert_int_equal(value.integer, 1);
    refuses_all(&key, wrong);
    refuses(&key, "ture",
            "expected yes or no, not \"ture\" (did you mean true?)");
}

static void integers(void **state)
{
    static const char *const wrong[] = { "",
                                         "-",
                                         "+",
                                         "1.5",
                                         "1e3",
                                         "0x1",
                                         "1 000",
                                         "ten",
                                         "--1",
                                         "1k",
                                         "9223372036854775808",
                                         NULL };
    cellgate_key key = key_of(CELLGATE_KEY_INTEGER);
    cg_value value;
    char problem[300];

    (void)state;
    accepts(&key, "0", "0");
    accepts(&key, "+7", "7");
    accepts(&key, "-12", "-12");
    accepts(&key, "-0", "0");
    accepts(&key, "007", "7");
    accepts(&key, "9223372036854775807", "9223372036854775807");
    assert_true(cg_value_parse(&key, "-12", &value, problem, sizeof problem));
    assert_int_equal(value.integer, -12);
    refuses_all(&key, wrong);
    refuses(&key, "four", "expected a whole number, not \"four\"");
}

static void integers_between_bounds(void **state)
{
    cellgate_key key = key_of(CELLGATE_KEY_INTEGER);

    (void)state;
    key.minimum = -2;
    key.maximum = 64;
    accepts(&key, "-2", "-2");
    accepts(&key, "64", "64");
    refuses(&key, "-3", "expected a whole number from -2 to 64, not \"-3\"");
    refuses(&key, "65", "expected a whole number from -2 to 64, not \"65\"");
    key.minimum = 1;
    key.maximum = 1;
    refuses(&key, "0", "expected a whole number from 1 to 1, not \"0\"");
}

static void sizes(void **state)
{
    static const char *const wrong[] = {
        "",         "-1", "1.5G",  "K",         "1KB",
        "1KiB",     "1P", "1 G G", "1\xC3\xA9", "9223372036854775807K",
        "8388608T", NULL
    };
    cellgate_key key = key_of(CELLGATE_KEY_SIZE);

    (void)state;
    accepts(&key, "0", "0");
    accepts(&key, "4096", "4096");
    accepts(&key, "1K", "1024");
    accepts(&key, "64 M", "67108864");
    accepts(&key, "2g", "2147483648");
    accepts(&key, "8388607T", "9223370937343148032");
    refuses_all(&key, wrong);
    refuses(&key, "10KB",
            "expected a size in bytes, such as 4096 or 64M (K, M, G, T: "
            "powers of 1024), not \"10KB\"");
    key.minimum = 1024;
    key.maximum = 4096;
    accepts(&key, "4K", "4096");
    refuses(&key, "5K",
            "expected a size from 1024 to 4096 in bytes, such as 4096 or 64M "
            "(K, M, G, T: powers of 1024), not \"5K\"");
}

static double seconds_of(const char *text)
{
    cellgate_key key = key_of(CELLGATE_KEY_SECONDS);
    cg_value value;
    char problem[300];

    assert_true(cg_value_parse(&key, text, &value, problem, sizeof problem));
    return value.seconds;
}

static void seconds(void **state)
{
    static const char *const wrong[] = { "",
                                         "-1",
                                         "s",
                                         ".5",
                                         "5.",
                                         "1.2.3",
                                         "1e3",
                                         "inf",
                                         "nan",
                                         "5 m",
                                         "5 sec",
                                         "1,5",
                                         "1 day",
                                         "5 S",
                                         "1h 5",
                                         "0x1",
                                         "1000000001",
                                         "277778 h",
                                         "1.0000000000000001",
                                         "0.0000000000000001",
                                         "1234567890123456",
                                         NULL };
    cellgate_key key = key_of(CELLGATE_KEY_SECONDS);

    (void)state;
    accepts(&key, "0", "0");
    accepts(&key, "5", "5");
    accepts(&key, "5s", "5");
    accepts(&key, "1.50 s", "1.5");
    accepts(&key, "250 ms", "0.25");
    accepts(&key, "5us", "0.000005");
    accepts(&key, "1 ns", "0.000000001");
    accepts(&key, "0.5 ns", "0.0000000005");
    accepts(&key, "2 min", "120");
    accepts(&key, "1.5\th", "5400");
    accepts(&key, "00010", "10");
    accepts(&key, "0.00", "0");
    accepts(&key, "1000000000", "1000000000");
    accepts(&key, "0.123456789012345", "0.123456789012345");
    refuses_all(&key, wrong);
    refuses(&key, "5 sec",
            "expected a time such as 5, 1.5 s or 250 ms (ns, us, ms, s, min, "
            "h; at most 1000000000 s), not \"5 sec\"");
}

/* The number is the double nearest to what is written. */
static void seconds_are_exact(void **state)
{
    static const char *const texts[] = { "0.1",
                                         "0.3",
                                         "1.1",
                                         "2.675",
                                         "123456.789",
                                         "0.000001",
                                         "999999999.999999" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_true(seconds_of(texts[i]) == strtod(texts[i], NULL));
    assert_true(seconds_of("250 ms") == 0.25);
    assert_true(seconds_of("0.1 ms") == 0.0001);
    assert_true(seconds_of("3 ns") == 3e-9);
    assert_true(seconds_of("90 min") == 5400);
}

static void choices(void **state)
{
    cellgate_key key = key_of(CELLGATE_KEY_CHOICE);
    cg_value value;
    char problem[300];

    (void)state;
    key.choices = "never|load|run";
    accepts(&key, "run", "run");
    assert_true(cg_value_parse(&key, "load", &value, problem, sizeof problem));
    assert_int_equal(value.integer, 1);
    refuses(&key, "laod",
            "expected never, load or run, not \"laod\" (did you mean load?)");
    refuses(&key, "Run",
            "expected never, load or run, not \"Run\" (did you mean run?)");
    refuses(&key, "", "expected never, load or run, not \"\"");
    refuses(&key, "ru",
            "expected never, load or run, not \"ru\" (did you "
            "mean run?)");
    refuses(&key, "never|load",
            "expected never, load or run, not "
            "\"never|load\"");
    key.choices = "on";
    refuses(&key, "zzz", "expected on, not \"zzz\"");
    key.choices = NULL;
    refuses(&key, "zzz", "expected , not \"zzz\"");
}

static void text(void **state)
{
    cellgate_key key = key_of(CELLGATE_KEY_TEXT);

    (void)state;
    accepts(&key, "", "");
    accepts(&key, "-D X=1 # y", "-D X=1 # y");
}

static void explains_comments(void **state)
{
    cellgate_key key = key_of(CELLGATE_KEY_INTEGER);

    (void)state;
    refuses(&key, "4 # cores",
            "expected a whole number, not \"4 # cores\" (a "
            "comment goes on a line of its own)");
}

static void refuses_types_of_the_future(void **state)
{
    cellgate_key key = key_of(99);

    (void)state;
    refuses(&key, "x",
            "expected a value of a type that this version of "
            "Cellgate does not know, not \"x\"");
}

static void problems_fit_any_buffer(void **state)
{
    cellgate_key key = key_of(CELLGATE_KEY_CHOICE);
    char choices_text[600];
    char problem[24];
    cg_value value;

    (void)state;
    memset(choices_text, 'c', sizeof choices_text - 1);
    choices_text[sizeof choices_text - 1] = '\0';
    for (size_t i = 7; i < sizeof choices_text - 1; i += 8)
        choices_text[i] = '|';
    key.choices = choices_text;
    assert_false(cg_value_parse(&key, "x", &value, problem, sizeof problem));
    assert_int_equal(strlen(problem), sizeof problem - 1);
}

/* A locale whose decimal sign is a comma, if the machine has one. */
static void ignores_the_locale(void **state)
{
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8",
                                         "fr_FR.UTF-8", "tr_TR.UTF-8" };
    cellgate_key key = key_of(CELLGATE_KEY_SECONDS);
    const char *set = NULL;

    (void)state;
    for (size_t i = 0; i < 4 && set == NULL; i++)
        set = setlocale(LC_ALL, names[i]);
    if (set == NULL)
        skip();
    accepts(&key, "1500.25", "1500.25");
    assert_true(seconds_of("0.5") == 0.5);
    (void)setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(booleans),
        cmocka_unit_test(integers),
        cmocka_unit_test(integers_between_bounds),
        cmocka_unit_test(sizes),
        cmocka_unit_test(seconds),
        cmocka_unit_test(seconds_are_exact),
        cmocka_unit_test(choices),
        cmocka_unit_test(text),
        cmocka_unit_test(explains_comments),
        cmocka_unit_test(refuses_types_of_the_future),
        cmocka_unit_test(problems_fit_any_buffer),
        cmocka_unit_test(ignores_the_locale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
