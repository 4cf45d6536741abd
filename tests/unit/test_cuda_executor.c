/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor of CUDA kernels: what it must not let pass, and what it must.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cuda/executor.h"
#include "tests/cuda/faulty.h"

#define MOST 512

static int32_t out[MOST];
static uint32_t sync_number;

static int launch(enum faulty what, unsigned blocks, unsigned warps,
                  int cooperative)
{
    const struct faulty_parameters parameters = { what, out, &sync_number };

    sync_number = 0;
    memset(out, 0, sizeof out);
    return faulty_launch(&parameters, blocks, warps, cooperative);
}

static void each_order(void (*check)(void))
{
    for (unsigned order = 0; order < 6; order++) {
        executor_set_order(order);
        check();
    }
    executor_set_order(0);
}

static void check_threads(void)
{
    assert_int_equal(launch(FAULTY_NOTHING, 3, 2, 0), EXECUTOR_OK);
    for (int i = 0; i < 3 * 64; i++)
        assert_int_equal(out[i], (i + 1) % 64);
}

static void check_grid(void)
{
    assert_int_equal(launch(FAULTY_GRID, 4, 1, 1), EXECUTOR_OK);
    for (int i = 0; i < 4 * 32; i++)
        assert_int_equal(out[i], (i / 32 + 1) % 4);
}

static void test_right(void **state)
{
    (void)state;
    each_order(check_threads);
    each_order(check_grid);
}

static void test_poison(void **state)
{
    float value;

    (void)state;
    assert_int_equal(launch(FAULTY_POISON, 1, 1, 0), EXECUTOR_OK);
    memcpy(&value, out, sizeof value);
    assert_true(isnan(value));
}

static void assert_fault(enum faulty what, unsigned blocks, int cooperative,
                         const char *text)
{
    for (unsigned order = 0; order < 4; order++) {
        executor_set_order(order);
        assert_int_equal(launch(what, blocks, 2, cooperative), EXECUTOR_FAULT);
        if (!strstr(executor_why(), text))
            fail_msg("\"%s\" says nothing of \"%s\"", executor_why(), text);
    }
    executor_set_order(0);
    /* The next launch is as good as ever. */
    assert_int_equal(launch(FAULTY_NOTHING, 1, 1, 0), EXECUTOR_OK);
    assert_int_equal(out[0], 1);
}

static void test_faults(void **state)
{
    (void)state;
    assert_fault(FAULTY_MISSED, 1, 0, "deadlock");
    assert_fault(FAULTY_OTHER_PLACE, 1, 0, "is at the barrier of");
    assert_fault(FAULTY_ENDED, 2, 0, "end");
    assert_fault(FAULTY_LANES, 1, 0, "deadlock");
    assert_fault(FAULTY_OUTSIDE_MASK, 1, 0, "not in the mask");
    assert_fault(FAULTY_WAIT, 1, 0, "deadlock");
    /* Blocks that wait for each other without being a cooperative grid. */
    assert_fault(FAULTY_GRID, 2, 0, "deadlock");
}

static void test_refusals(void **state)
{
    static executor_launch bad;

    (void)state;
    assert_int_equal(executor_run(&bad), EXECUTOR_INVALID_CONFIGURATION);
    executor_set_limit(3);
    assert_int_equal(launch(FAULTY_GRID, 4, 1, 1), EXECUTOR_TOO_LARGE);
    assert_int_equal(launch(FAULTY_GRID, 3, 1, 1), EXECUTOR_OK);
    executor_set_limit(0);
    bad.grid = bad.block = (executor_index){ 1, 1, 1 };
    assert_int_equal(executor_run(&bad), EXECUTOR_INVALID_CONFIGURATION);
    bad.block.x = 2048;
    assert_int_equal(executor_run(&bad), EXECUTOR_INVALID_CONFIGURATION);
    bad.block.x = 32;
    bad.shared = 300000;
    assert_int_equal(executor_run(&bad), EXECUTOR_INVALID_VALUE);
    bad.shared = 0;
    bad.grid = (executor_index){ 1, 65535, 65535 };
    assert_int_equal(executor_check(&bad), EXECUTOR_OK);
    bad.grid.y = 65536;
    assert_int_equal(executor_check(&bad), EXECUTOR_INVALID_CONFIGURATION);
    bad.grid = (executor_index){ 1, 1, 65536 };
    assert_int_equal(executor_check(&bad), EXECUTOR_INVALID_CONFIGURATION);
    bad.grid = (executor_index){ 2147483648u, 1, 1 };
    assert_int_equal(executor_check(&bad), EXECUTOR_INVALID_CONFIGURATION);
    bad.grid.x = 2147483647u;
    assert_int_equal(executor_check(&bad), EXECUTOR_OK);
}

static int device_number;

static int current_device(void)
{
    return device_number;
}

static void some_kernel(void)
{
}

/* More than 48 KiB of shared memory is asked for, a kernel and a device. */
static void test_shared(void **state)
{
    static executor_launch large = { .kernel = some_kernel,
                                     .grid = { 1, 1, 1 },
                                     .block = { 32, 1, 1 },
                                     .shared = 49152 };

    (void)state;
    executor_set_device(current_device);
    assert_int_equal(executor_check(&large), EXECUTOR_OK);
    large.shared++;
    assert_int_equal(executor_check(&large), EXECUTOR_INVALID_VALUE);
    assert_int_equal(executor_allow_shared(some_kernel, 300000),
                     EXECUTOR_INVALID_VALUE);
    assert_int_equal(executor_allow_shared(some_kernel, 60000), EXECUTOR_OK);
    assert_int_equal(executor_check(&large), EXECUTOR_OK);
    large.shared = 60001;
    assert_int_equal(executor_check(&large), EXECUTOR_INVALID_VALUE);
    large.shared = 60000;
    device_number = 1;
    assert_int_equal(executor_check(&large), EXECUTOR_INVALID_VALUE);
    device_number = 0;
    executor_set_device(NULL);
}

static void *hooked_stream;

static int hook(void *stream, const executor_launch *given)
{
    hooked_stream = stream;
    return given->grid.x == 2 ? 42 : executor_run(given);
}

static void test_hook(void **state)
{
    (void)state;
    hooked_stream = &out;
    executor_set_hook(hook);
    assert_int_equal(launch(FAULTY_NOTHING, 2, 1, 0), 42);
    assert_null(hooked_stream);
    assert_int_equal(out[0], 0);
    assert_int_equal(launch(FAULTY_NOTHING, 1, 1, 0), EXECUTOR_OK);
    assert_int_equal(out[0], 1);
    executor_set_hook(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),  cmocka_unit_test(test_poison),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_hook),   cmocka_unit_test(test_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
