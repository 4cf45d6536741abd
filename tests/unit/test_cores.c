/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>

#include <cmocka.h>

#include "runtime/plugin/cores.h"

static void test_quota(void **state)
{
    (void)state;
    assert_int_equal(cg_cores_of_quota("max 100000\n"), 0);
    assert_int_equal(cg_cores_of_quota("100000 100000\n"), 1);
    assert_int_equal(cg_cores_of_quota("150000 100000\n"), 2);
    assert_int_equal(cg_cores_of_quota("400000 100000\n"), 4);
    assert_int_equal(cg_cores_of_quota("1000 100000\n"), 1);
    assert_int_equal(cg_cores_of_quota("0 100000\n"), 0);
    assert_int_equal(cg_cores_of_quota("100000 0\n"), 0);
    assert_int_equal(cg_cores_of_quota("100000\n"), 0);
    assert_int_equal(cg_cores_of_quota(""), 0);
    assert_int_equal(cg_cores_of_quota("18446744073709551615 1\n"), 0);
}

static void test_affinity(void **state)
{
    cpu_set_t all, one;
    int cpu = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_in_range(cg_cores_available(), 1, CPU_COUNT(&all));
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cg_cores_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_affinity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
