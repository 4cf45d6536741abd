/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/config/complaint.h"

static void check(const cg_place *place, const char *expected)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cg_complain(&error, place, "%s %d", "wrong", 7),
                     CELLGATE_BAD_CONFIG);
    assert_int_equal(error.status, CELLGATE_BAD_CONFIG);
    assert_string_equal(error.text, expected);
}

static void names_what_is_known(void **state)
{
    (void)state;
    check(&(cg_place){ "a.ini", 3, "device x", "match" },
          "a.ini:3: [device x] match: wrong 7");
    check(&(cg_place){ "a.ini", 3, "device x", NULL },
          "a.ini:3: [device x]: wrong 7");
    check(&(cg_place){ "a.ini", 3, NULL, "match" }, "a.ini:3: match: wrong 7");
    check(&(cg_place){ "a.ini", 3, NULL, NULL }, "a.ini:3: wrong 7");
    check(&(cg_place){ "a.ini", 0, NULL, NULL }, "a.ini: wrong 7");
}

static void leaves_room_behind_a_long_path(void **state)
{
    char path[4096];
    cg_place place = { path, 12, NULL, NULL };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    memset(path, 'd', sizeof path);
    memcpy(path + sizeof path - sizeof "/the.ini", "/the.ini",
           sizeof "/the.ini");
    assert_int_equal(cg_complain(&error, &place, "wrong"), CELLGATE_BAD_CONFIG);
    assert_memory_equal(error.text, "...ddd", 6);
    assert_non_null(strstr(error.text, "d/the.ini:12: wrong"));
}

static void never_cuts_a_character_of_the_path(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    char path[1024];
    cg_place place = { path, 1, NULL, NULL };

    (void)state;
    for (size_t shift = 0; shift < 2; shift++) {
        size_t at = 0;

        while (at < 500) { /* two bytes each */
            path[at++] = '\xC3';
            path[at++] = '\xA9';
        }
        memset(path + at, 'x', shift);
        path[at + shift] = '\0';
        assert_int_equal(cg_complain(&error, &place, "wrong"),
                         CELLGATE_BAD_CONFIG);
        assert_memory_equal(error.text, "...\xC3\xA9", 5);
    }
}

static void takes_no_error(void **state)
{
    const cg_place place = { "a.ini", 1, NULL, NULL };

    (void)state;
    assert_int_equal(cg_complain(NULL, &place, "wrong"), CELLGATE_BAD_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_is_known),
        cmocka_unit_test(leaves_room_behind_a_long_path),
        cmocka_unit_test(never_cuts_a_character_of_the_path),
        cmocka_unit_test(takes_no_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
