/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/session/mask.h"

/* Rows: holes, padded right, full, empty. */
static const uint8_t valid[16] = { 0, 1, 0, 1, 1, 1, 0, 0,
                                   1, 1, 1, 1, 0, 0, 0, 0 };
static const cg_mask four_rows = { valid, 4, 4 };

static void lengths_count_valid_steps(void **state)
{
    const int32_t wanted[4] = { 2, 2, 4, 0 };
    const cg_mask last_three = { valid + 4, 3, 4 };
    int32_t lengths[4];

    (void)state;
    assert_false(cg_mask_lengths(&four_rows, lengths));
    assert_memory_equal(lengths, wanted, sizeof wanted);
    assert_true(cg_mask_lengths(&last_three, lengths));
    assert_memory_equal(lengths, wanted + 1, 3 * sizeof *wanted);
}

static void masks_come_from_lengths(void **state)
{
    const int32_t lengths[3] = { 2, 4, 0 };
    uint8_t made[12];

    (void)state;
    cg_mask_from_lengths(made, lengths, 3, 4);
    assert_memory_equal(made, valid + 4, 12);
}

static void packing_moves_valid_steps_to_the_front(void **state)
{
    const int32_t x[16] = { 1, 2,  3,  4,  5,  6,  7,  8,
                            9, 10, 11, 12, 13, 14, 15, 16 };
    const int32_t wanted[16] = { 2, 4,  0,  0,  5, 6, 0, 0,
                                 9, 10, 11, 12, 0, 0, 0, 0 };
    int32_t packed[16];

    (void)state;
    memset(packed, 0x5a, sizeof packed);
    cg_mask_pack(&four_rows, x, packed, sizeof *x);
    assert_memory_equal(packed, wanted, sizeof wanted);
}

/* Results of packed steps: 20, 40 and so on; 100 is what padding gives. */
static const float results[16] = { 20, 40,  100, 100, 50,  60,  100, 100,
                                   90, 101, 110, 120, 100, 100, 100, 100 };

static void check_unpacked(cg_mask_fill fill, const float *wanted)
{
    float y[16];

    memset(y, 0, sizeof y);
    cg_mask_unpack(&four_rows, results, y, 1, 0, 1, fill);
    assert_memory_equal(y, wanted, sizeof y);
}

static void unpacking_fills_masked_steps(void **state)
{
    const float padding[16] = { 100, 20,  100, 40,  50,  60,  100, 100,
                                90,  101, 110, 120, 100, 100, 100, 100 };
    const float forward[16] = { 100, 20,  20,  40,  50,  60,  60,  60,
                                90,  101, 110, 120, 100, 100, 100, 100 };
    const float backward[16] = { 20, 20,  40,  40,  50,  60,  100, 100,
                                 90, 101, 110, 120, 100, 100, 100, 100 };

    (void)state;
    check_unpacked(CG_FILL_PADDING, padding);
    check_unpacked(CG_FILL_FORWARD, forward);
    check_unpacked(CG_FILL_BACKWARD, backward);
}

static void unpacking_keeps_to_its_features(void **state)
{
    const uint8_t one_row[2] = { 0, 1 };
    const cg_mask mask = { one_row, 1, 2 };
    const float packed[4] = { 1, 2, 3, 4 };
    const float wanted[4] = { -1, 4, -1, 2 };
    float y[4] = { -1, -1, -1, -1 };

    (void)state;
    cg_mask_unpack(&mask, packed, y, 2, 1, 2, CG_FILL_FORWARD);
    assert_memory_equal(y, wanted, sizeof wanted);
}

static void the_last_valid_step_is_repeated(void **state)
{
    const cg_mask last_three = { valid + 4, 3, 4 };
    const int32_t lengths[3] = { 2, 4, 0 };
    const float wanted[24] = { 1, 0, 2, 0, 2, 0, 2, 0, 3, 0, 4, 0,
                               5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    float y[24] = { 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0,
                    5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0 };

    (void)state;
    cg_mask_repeat_last(&last_three, lengths, y, 2, 0, 1);
    assert_memory_equal(y, wanted, sizeof wanted);
}

static void rows_are_zeroed_where_a_step_is_masked(void **state)
{
    const float wanted[8] = { 1, 2, 3, 0, 5, 6, 7, 0 };
    float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

    (void)state;
    cg_mask_zero_rows(&four_rows, 3, y, 2, 1, 2);
    assert_memory_equal(y, wanted, sizeof wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_count_valid_steps),
        cmocka_unit_test(masks_come_from_lengths),
        cmocka_unit_test(packing_moves_valid_steps_to_the_front),
        cmocka_unit_test(unpacking_fills_masked_steps),
        cmocka_unit_test(unpacking_keeps_to_its_features),
        cmocka_unit_test(the_last_valid_step_is_repeated),
        cmocka_unit_test(rows_are_zeroed_where_a_step_is_masked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
