/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/config/suggest.h"

/* "" when nothing is near. */
static void check(const char *word, const char *choices, const char *expected)
{
    cg_suggestion suggestion;

    cg_suggestion_init(&suggestion, word);
    cg_suggestion_offer_choices(&suggestion, choices);
    assert_int_equal(suggestion.length, strlen(expected));
    if (*expected != '\0')
        assert_memory_equal(suggestion.best, expected, strlen(expected));
    else
        assert_null(suggestion.best);
}

static void finds_the_near_miss(void **state)
{
    static const char keys[] = "log|plugin_path|probe_timeout|probe_cache";

    (void)state;
    check("plugin_paht", keys, "plugin_path");  /* neighbours swapped */
    check("plugin-path", keys, "plugin_path");  /* a letter changed */
    check("pluginpath", keys, "plugin_path");   /* left out */
    check("proobe_cache", keys, "probe_cache"); /* inserted */
    check("Plugin_Path", keys, "plugin_path");  /* case */
    check("logs", keys, "log");
    check("lgo", keys, "log");
}

static void prefers_the_nearest(void **state)
{
    (void)state;
    check("probe_cach", "probe_match|probe_cache", "probe_cache");
    check("probe_cach", "probe_cache|probe_match", "probe_cache");
    check("aac", "aab|aad", "aab"); /* the first of equals */
}

static void does_not_guess_wildly(void **state)
{
    (void)state;
    check("colour", "log|plugin_path", "");
    check("a", "b|c", "");
    check("", "log", "");
    check("log", "", "");
    check("watch", "watchdog", ""); /* three of eight */
}

static void bears_words_of_any_length(void **state)
{
    char longest[200];

    (void)state;
    memset(longest, 'k', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    check(longest, "log", "");
    check("log", longest, "");
    check(longest + sizeof longest - 1 - 63, longest + sizeof longest - 1 - 62,
          longest + sizeof longest - 1 - 62);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_near_miss),
        cmocka_unit_test(prefers_the_nearest),
        cmocka_unit_test(does_not_guess_wildly),
        cmocka_unit_test(bears_words_of_any_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
