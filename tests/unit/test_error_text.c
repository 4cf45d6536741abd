/* SPDX-License-Identifier: Apache-2.0 */
/* cellgate_fail() and cellgate_refuse(), which plugin.h gives to everyone. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cellgate/plugin.h"

static void the_text_is_one_line(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_int_equal(cellgate_fail(&error, CELLGATE_BAD_FILE,
                                   "layer '%s': %d units",
                                   "a\nb\x1b[31m\tc\x7f\xc3\xa9", 3),
                     CELLGATE_BAD_FILE);
    assert_string_equal(error.text, "layer 'a?b?[31m?c?\xc3\xa9': 3 units");
    assert_int_equal(
        cellgate_refuse(&error, CELLGATE_REASON_SHAPE, "\r\n%s", "x"),
        CELLGATE_UNSUPPORTED);
    assert_string_equal(error.text, "??x");
}

static void a_long_text_ends(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    char name[600];

    (void)state;
    memset(name, '\n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    (void)cellgate_fail(&error, CELLGATE_BAD_FILE, "%s", name);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
    assert_null(strchr(error.text, '\n'));
}

static void nobody_has_to_listen(void **state)
{
    (void)state;
    assert_int_equal(cellgate_fail(NULL, CELLGATE_IO, "x"), CELLGATE_IO);
    assert_int_equal(cellgate_refuse(NULL, CELLGATE_REASON_OTHER, "x"),
                     CELLGATE_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_one_line),
        cmocka_unit_test(a_long_text_ends),
        cmocka_unit_test(nobody_has_to_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
