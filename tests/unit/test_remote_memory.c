/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's device memory: its allocator and its checker. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tests/plugins/remote/transfer.h"
#include "tests/unit/remote_rig.h"

struct fixture {
    struct rig rig;
    struct remote_memory memory;
    cellgate_error error;
};

#define POOL (16 * REMOTE_GRANULE)

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    rig_host_init(&f->rig, NULL);
    f->error.struct_size = sizeof f->error;
    assert_int_equal(
        remote_memory_init(&f->memory, POOL, &f->rig.host, &f->error),
        CELLGATE_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    remote_memory_finish(&f->memory);
    pthread_mutex_destroy(&f->rig.log_lock);
    free(f);
    return 0;
}

static remote_handle take(struct fixture *f, size_t bytes)
{
    remote_handle handle = 0;

    assert_int_equal(remote_allocate(&f->memory, bytes, &handle, &f->error),
                     CELLGATE_OK);
    assert_true(handle != 0);
    return handle;
}

static void test_use_is_counted_in_granules(void **state)
{
    struct fixture *f = *state;
    remote_handle a = take(f, 1), b = take(f, REMOTE_GRANULE + 1);
    remote_handle empty = take(f, 0);

    assert_int_equal(remote_memory_used(&f->memory), 4 * REMOTE_GRANULE);
    remote_free(&f->memory, &a);
    remote_free(&f->memory, &b);
    remote_free(&f->memory, &empty);
    assert_int_equal(remote_memory_used(&f->memory), 0);
    assert_int_equal(a, 0);
    remote_free(&f->memory, &a); /* 0 is allowed */
    assert_string_equal(f->rig.log, "");
}

static void test_beyond_the_pool_is_device_memory(void **state)
{
    struct fixture *f = *state;
    remote_handle whole = take(f, POOL), none = 0;

    assert_int_equal(remote_allocate(&f->memory, 1, &none, &f->error),
                     CELLGATE_DEVICE_MEMORY);
    assert_int_equal(none, 0);
    remote_free(&f->memory, &whole);
    assert_int_equal(remote_allocate(&f->memory, SIZE_MAX, &none, &f->error),
                     CELLGATE_DEVICE_MEMORY);
    assert_int_equal(remote_allocate(&f->memory, POOL + 1, &none, &f->error),
                     CELLGATE_DEVICE_MEMORY);
    assert_int_equal(remote_memory_used(&f->memory), 0);
}

static void test_gaps_are_used_again(void **state)
{
    struct fixture *f = *state;
    remote_handle blocks[16];
    remote_handle pair, none;
    int at;

    for (at = 0; at < 16; at++)
        blocks[at] = take(f, REMOTE_GRANULE);
    remote_free(&f->memory, &blocks[3]);
    remote_free(&f->memory, &blocks[5]);
    /* Two granules are free, but not side by side. */
    assert_int_equal(
        remote_allocate(&f->memory, 2 * REMOTE_GRANULE, &none, &f->error),
        CELLGATE_DEVICE_MEMORY);
    remote_free(&f->memory, &blocks[4]);
    pair = take(f, 3 * REMOTE_GRANULE);
    assert_int_equal(remote_memory_used(&f->memory), POOL);
    remote_free(&f->memory, &pair);
    for (at = 0; at < 16; at++)
        remote_free(&f->memory, &blocks[at]);
}

static void test_fresh_memory_is_nan(void **state)
{
    struct fixture *f = *state;
    remote_handle handle = take(f, sizeof(float));
    float value = 0;

    assert_int_equal(
        remote_download(&f->memory, handle, &value, sizeof value, &f->error),
        CELLGATE_OK);
    assert_true(isnan(value));
    remote_free(&f->memory, &handle);
}

static void test_use_after_free_fails_the_operation(void **state)
{
    struct fixture *f = *state;
    remote_handle handle = take(f, 8), stale = handle, next;
    float value = 1;

    remote_free(&f->memory, &handle);
    /* The same record and the same bytes, for somebody else. */
    next = take(f, 8);
    assert_int_equal(
        remote_upload(&f->memory, stale, &value, sizeof value, &f->error),
        CELLGATE_DEVICE_FAILED);
    assert_int_equal(f->error.vendor_code, REMOTE_CODE_ADDRESS);
    assert_true(rig_logged(&f->rig, "freed or was never allocated"));
    assert_int_equal(
        remote_upload(&f->memory, next, &value, sizeof value, &f->error),
        CELLGATE_OK);
    remote_free(&f->memory, &next);
}

static void test_a_made_up_handle_fails(void **state)
{
    struct fixture *f = *state;
    struct remote_view view;

    assert_int_equal(
        remote_map(&f->memory, UINT64_C(0x7F0000001234), &view, &f->error),
        CELLGATE_DEVICE_FAILED);
    assert_int_equal(remote_map(&f->memory, 0, &view, &f->error),
                     CELLGATE_DEVICE_FAILED);
}

static void test_out_of_bounds_fails_the_operation(void **state)
{
    struct fixture *f = *state;
    remote_handle handle = take(f, 8);
    char bytes[9] = { 0 };

    assert_int_equal(
        remote_download(&f->memory, handle, bytes, sizeof bytes, &f->error),
        CELLGATE_DEVICE_FAILED);
    assert_true(rig_logged(&f->rig, "a copy reached outside"));
    assert_int_equal(remote_download(&f->memory, handle, bytes, 8, &f->error),
                     CELLGATE_OK);
    remote_free(&f->memory, &handle);
}

static void test_views_know_their_end(void **state)
{
    struct fixture *f = *state;
    remote_handle handle = take(f, 8);
    struct remote_view view;

    assert_int_equal(remote_map(&f->memory, handle, &view, &f->error),
                     CELLGATE_OK);
    assert_non_null(remote_at(&view, 0, 8));
    assert_non_null(remote_at(&view, 8, 0));
    assert_null(remote_at(&view, 1, 8));
    assert_null(remote_at(&view, 9, 0));
    assert_null(remote_at(&view, 4, SIZE_MAX));
    remote_unmap(&f->memory, &view);
    remote_free(&f->memory, &handle);
}

static void test_a_mapped_block_is_freed_when_unmapped(void **state)
{
    struct fixture *f = *state;
    remote_handle handle = take(f, 8);
    struct remote_view view;

    assert_int_equal(remote_map(&f->memory, handle, &view, &f->error),
                     CELLGATE_OK);
    remote_free(&f->memory, &handle);
    assert_true(rig_logged(&f->rig, "freed while the device uses it"));
    assert_int_equal(remote_memory_used(&f->memory), REMOTE_GRANULE);
    remote_unmap(&f->memory, &view);
    assert_int_equal(remote_memory_used(&f->memory), 0);
}

static void test_a_double_free_is_logged(void **state)
{
    struct fixture *f = *state;
    remote_handle handle = take(f, 8), copy = handle;

    remote_free(&f->memory, &handle);
    remote_free(&f->memory, &copy);
    assert_true(rig_logged(&f->rig, "freed twice"));
}

static void test_all_are_mapped_or_none(void **state)
{
    struct fixture *f = *state;
    remote_handle handles[3] = { take(f, 8), 0, take(f, 8) };
    struct remote_view views[3];

    remote_free(&f->memory, &handles[2]);
    handles[2] = 12345;
    assert_int_equal(remote_map_all(&f->memory, handles, 3, views, &f->error),
                     CELLGATE_DEVICE_FAILED);
    /* Not mapped any more, so that it goes at once. */
    remote_free(&f->memory, &handles[0]);
    assert_int_equal(remote_memory_used(&f->memory), 0);
}

static void test_a_leak_is_logged(void **state)
{
    struct fixture *f = *state;
    struct remote_memory other;
    remote_handle handle;

    assert_int_equal(remote_memory_init(&other, POOL, &f->rig.host, &f->error),
                     CELLGATE_OK);
    assert_int_equal(remote_allocate(&other, 300, &handle, &f->error),
                     CELLGATE_OK);
    remote_memory_finish(&other);
    assert_true(rig_logged(&f->rig, "512 bytes of device memory were never"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_use_is_counted_in_granules, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_beyond_the_pool_is_device_memory,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_gaps_are_used_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_fresh_memory_is_nan, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_use_after_free_fails_the_operation,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_made_up_handle_fails, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_out_of_bounds_fails_the_operation,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_views_know_their_end, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_a_mapped_block_is_freed_when_unmapped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_double_free_is_logged, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_all_are_mapped_or_none, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_leak_is_logged, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
