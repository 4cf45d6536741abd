/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/plugin/services.h"
#include "tests/unit/fail_allocation.h"

static void test_allocate(void **state)
{
    size_t alignment;

    (void)state;
    for (alignment = 1; alignment <= 1 << 16; alignment *= 2) {
        void *memory = cg_service_allocate(NULL, alignment, 100);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % alignment, 0);
        memset(memory, 1, 100);
        cg_service_release(NULL, memory);
        memory = cg_service_allocate(NULL, alignment, 0);
        assert_non_null(memory);
        cg_service_release(NULL, memory);
    }
    cg_service_release(NULL, NULL);
    assert_null(cg_service_allocate(NULL, 0, 100));
    assert_null(cg_service_allocate(NULL, 48, 100));
    fail_allocation_begin(1);
    assert_null(cg_service_allocate(NULL, 64, 100));
    assert_true(fail_allocation_end());
}

static void test_clock(void **state)
{
    uint64_t before = cg_service_clock(NULL);
    uint64_t after = cg_service_clock(NULL);

    (void)state;
    assert_true(before > 0 && after >= before);
    assert_true(after - before < UINT64_C(60000000000));
}

static void test_default(void **state)
{
    const cellgate_key keys[] = {
        { .name = "one", .default_text = "1" },
        { .name = "two", .default_text = "2" },
    };

    (void)state;
    assert_string_equal(cg_service_default(keys, 2, "two"), "2");
    assert_null(cg_service_default(keys, 2, "three"));
    assert_null(cg_service_default(NULL, 0, "one"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocate),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_default),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
