/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cost/caches.h"

static void the_size_is_plausible(void **state)
{
    (void)state;
    assert_in_range(cg_cache_size(), 64 << 10, (uintmax_t)4 << 30);
}

static void every_line_is_written(void **state)
{
    cg_displacer displacer;

    (void)state;
    assert_int_equal(cg_displacer_init(&displacer, NULL), CELLGATE_OK);
    assert_true(displacer.bytes > cg_cache_size() ||
                displacer.bytes == (size_t)256 << 20);
    assert_true(displacer.bytes <= (size_t)256 << 20);
    cg_displace(&displacer);
    cg_displace(&displacer);
    for (size_t at = 0; at < displacer.bytes; at += 64)
        if (displacer.memory[at] != 2)
            fail_msg("line at %zu of %zu was left", at, displacer.bytes);
    cg_displacer_finish(&displacer);
    cg_displacer_finish(&displacer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_size_is_plausible),
        cmocka_unit_test(every_line_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
