/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/session/arena.h"

static void two_passes_place_what_one_measured(void **state)
{
    cg_arena arena = { 0 };
    char *a, *b, *c;

    (void)state;
    cg_arena_start(&arena, true);
    assert_null(cg_arena_take(&arena, 3, 4));
    assert_null(cg_arena_take(&arena, 0, 4));
    assert_null(cg_arena_take(&arena, 65, 1));
    assert_int_equal(cg_arena_reserve(&arena, NULL), CELLGATE_OK);
    cg_arena_start(&arena, false);
    a = cg_arena_take(&arena, 3, 4);
    b = cg_arena_take(&arena, 0, 4);
    c = cg_arena_take(&arena, 65, 1);
    assert_non_null(a);
    assert_true(b >= a + 12 && c > b);
    assert_int_equal((uintptr_t)a % CG_ARENA_ALIGNMENT, 0);
    assert_int_equal((uintptr_t)c % CG_ARENA_ALIGNMENT, 0);
    assert_true(arena.used <= arena.capacity);
    assert_true(c + 65 <= arena.base + arena.capacity);
    cg_arena_finish(&arena);
}

static void memory_is_kept_for_smaller_requests(void **state)
{
    cg_arena arena = { 0 };
    char *base;

    (void)state;
    cg_arena_start(&arena, true);
    cg_arena_take(&arena, 1000, 4);
    assert_int_equal(cg_arena_reserve(&arena, NULL), CELLGATE_OK);
    base = arena.base;
    cg_arena_start(&arena, true);
    cg_arena_take(&arena, 10, 4);
    assert_int_equal(cg_arena_reserve(&arena, NULL), CELLGATE_OK);
    assert_ptr_equal(arena.base, base);
    cg_arena_finish(&arena);
}

static void sizes_that_overflow_are_refused(void **state)
{
    cg_arena arena = { 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    cg_arena_start(&arena, true);
    cg_arena_take(&arena, INT64_MAX, 4);
    cg_arena_take(&arena, 1, 4);
    assert_int_equal(cg_arena_reserve(&arena, &error), CELLGATE_NO_MEMORY);
    cg_arena_start(&arena, true);
    cg_arena_take(&arena, -1, 4);
    assert_int_equal(cg_arena_reserve(&arena, &error), CELLGATE_NO_MEMORY);
    cg_arena_start(&arena, true);
    for (int k = 0; k < 5; k++)
        cg_arena_take(&arena, INT64_MAX / 3, 1);
    assert_int_equal(cg_arena_reserve(&arena, &error), CELLGATE_NO_MEMORY);
    cg_arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_passes_place_what_one_measured),
        cmocka_unit_test(memory_is_kept_for_smaller_requests),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
