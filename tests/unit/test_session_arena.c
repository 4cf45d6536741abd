/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "runtime/session/arena.h"

static void two_passes_place_what_one_measured(void **state)
{
    cg_arena arena = { 0 };
    char *a, *b, *c;

    (void)state;
    cg_arena_start(&arena);
    assert_null(cg_arena_take(&arena, 3, 4));
    assert_null(cg_arena_take(&arena, 0, 4));
    assert_null(cg_arena_take(&arena, 65, 1));
    assert_int_equal(cg_arena_reserve(&arena, NULL), CELLGATE_OK);
    cg_arena_start(&arena);
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
    cg_arena_start(&arena);
    cg_arena_take(&arena, 1000, 4);
    assert_int_equal(cg_arena_reserve(&arena, NULL), CELLGATE_OK);
    base = arena.base;
    cg_arena_start(&arena);
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
    cg_arena_start(&arena);
    cg_arena_take(&arena, INT64_MAX, 4);
    cg_arena_take(&arena, 1, 4);
    assert_int_equal(cg_arena_reserve(&arena, &error), CELLGATE_NO_MEMORY);
    cg_arena_start(&arena);
    cg_arena_take(&arena, -1, 4);
    assert_int_equal(cg_arena_reserve(&arena, &error), CELLGATE_NO_MEMORY);
    cg_arena_start(&arena);
    for (int k = 0; k < 5; k++)
        cg_arena_take(&arena, INT64_MAX / 3, 1);
    assert_int_equal(cg_arena_reserve(&arena, &error), CELLGATE_NO_MEMORY);
    cg_arena_finish(&arena);
}

/* ---- Pinned memory ------------------------------------------------------ */

static struct {
    int left;  /* blocks that can still be given */
    int given; /* and not released */
} pinned;

static void *pinned_allocate(cellgate_device *device, size_t size)
{
    void *memory = NULL;

    (void)device;
    if (pinned.left == 0 ||
        posix_memalign(&memory, CG_ARENA_ALIGNMENT, size) != 0)
        return NULL;
    pinned.left--;
    pinned.given++;
    return memory;
}

static void pinned_release(cellgate_device *device, void *memory)
{
    (void)device;
    pinned.given--;
    free(memory);
}

static void reserve(cg_arena *arena, int64_t bytes)
{
    cg_arena_start(arena);
    cg_arena_take(arena, bytes, 1);
    assert_int_equal(cg_arena_reserve(arena, NULL), CELLGATE_OK);
    assert_non_null(arena->base);
    memset(arena->base, 1, (size_t)bytes);
}

static void ordinary_memory_does_where_pinned_runs_out(void **state)
{
    static const cellgate_plugin ops = { .host_allocate = pinned_allocate,
                                         .host_release = pinned_release };
    const cg_engine engine = { .ops = &ops };
    cg_arena arena = { .pinned = &engine };

    (void)state;
    pinned.left = 1;
    reserve(&arena, 100);
    assert_int_equal(pinned.given, 1);
    reserve(&arena, 1000);
    assert_int_equal(pinned.given, 0);
    pinned.left = 1;
    reserve(&arena, 10000);
    assert_int_equal(pinned.given, 1);
    cg_arena_finish(&arena);
    assert_int_equal(pinned.given, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_passes_place_what_one_measured),
        cmocka_unit_test(memory_is_kept_for_smaller_requests),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(ordinary_memory_does_where_pinned_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
