/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of applications that were built before or after this library. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/given.h"

/* The same struct in three versions of a header. */
typedef struct first_version {
    size_t struct_size;
    int32_t must;
    int32_t may;
} first_version;
typedef struct this_version {
    size_t struct_size;
    int32_t must;
    int32_t may;
    double later;
} this_version;
typedef struct next_version {
    size_t struct_size;
    int32_t must;
    int32_t may;
    double later;
    double still_later;
} next_version;

#define FIRST CG_SIZE_THROUGH(this_version, may)

/* An application of the first version goes on working, and what it does not
   know of is zero. */
static void test_older(void **state)
{
    const first_version given = { sizeof given, 3, 4 };
    this_version read = { sizeof read, 9, 9, 9 };

    (void)state;
    assert_true(cg_given_known(&given, FIRST, sizeof read));
    cellgate_struct_copy(&read, &given);
    assert_int_equal(read.must, 3);
    assert_int_equal(read.may, 4);
    assert_true(read.later == 0);
    assert_int_equal(read.struct_size, sizeof read);
}

/* One that is newer is read while it wants nothing that is new. */
static void test_newer(void **state)
{
    next_version given = { sizeof given, 3, 4, 0.5, 0 };

    (void)state;
    assert_true(cg_given_known(&given, FIRST, sizeof(this_version)));
    given.still_later = 1;
    assert_false(cg_given_known(&given, FIRST, sizeof(this_version)));
}

static void test_size_not_set(void **state)
{
    first_version given = { 0, 3, 4 };

    (void)state;
    assert_false(cg_given_known(&given, FIRST, sizeof(this_version)));
    given.struct_size = FIRST - 1;
    assert_false(cg_given_known(&given, FIRST, sizeof(this_version)));
    assert_false(cg_given_known(&given, CG_FIRST_ANY, 0));
}

static void test_fillable(void **state)
{
    first_version place = { sizeof(size_t), 0, 0 };

    (void)state;
    assert_true(cg_given_fillable(&place));
    place.struct_size--;
    assert_false(cg_given_fillable(&place));
    assert_false(cg_given_fillable(NULL));
}

/*
 * The sizes of the first versions are facts: applications were built with them.
 * Counted by hand from the first header, for pointers and size_t of 8 bytes.
 */
static void test_first_versions_stay(void **state)
{
    (void)state;
    if (sizeof(void *) != 8)
        skip();
    assert_int_equal(CG_FIRST_TENSOR, 8 + 2 * 4 + 8 * 8 + 8);
    assert_int_equal(CG_FIRST_INPUT, 8 + 88 + 2 * 8);
    assert_int_equal(CG_FIRST_REQUEST, 6 * 8);
    assert_int_equal(CG_FIRST_QUESTION, 4 * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older),
        cmocka_unit_test(test_newer),
        cmocka_unit_test(test_size_not_set),
        cmocka_unit_test(test_fillable),
        cmocka_unit_test(test_first_versions_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
