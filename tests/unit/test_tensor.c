/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/formats/tensor.h"

static cellgate_tensor shaped(int32_t dtype, int32_t rank, const int64_t *shape)
{
    cellgate_tensor tensor = { .struct_size = sizeof tensor,
                               .dtype = dtype,
                               .rank = rank };
    if (rank > 0 && rank <= CELLGATE_MAX_RANK)
        memcpy(tensor.shape, shape, (size_t)rank * sizeof *shape);
    return tensor;
}

static void expect_size(int32_t dtype, int32_t rank, const int64_t *shape,
                        size_t elements, size_t bytes)
{
    cellgate_tensor tensor = shaped(dtype, rank, shape);
    size_t got_elements = 77;
    size_t got_bytes = 77;

    assert_true(cg_tensor_size(&tensor, &got_elements, &got_bytes));
    assert_int_equal(got_elements, elements);
    assert_int_equal(got_bytes, bytes);
    assert_true(cg_tensor_size(&tensor, NULL, NULL));
}

static void expect_none(int32_t dtype, int32_t rank, const int64_t *shape)
{
    cellgate_tensor tensor = shaped(dtype, rank, shape);
    size_t elements = 77;
    size_t bytes = 78;

    assert_false(cg_tensor_size(&tensor, &elements, &bytes));
    assert_int_equal(elements, 77);
    assert_int_equal(bytes, 78);
}

static void sizes(void **state)
{
    (void)state;
    expect_size(CELLGATE_F32, 0, NULL, 1, 4);
    expect_size(CELLGATE_F64, 3, (int64_t[]){ 2, 3, 4 }, 24, 192);
    expect_size(CELLGATE_BOOL, 8, (int64_t[]){ 1, 2, 1, 2, 1, 2, 1, 2 }, 16,
                16);
    expect_size(CELLGATE_I32, 2, (int64_t[]){ 0, 5 }, 0, 0);
}

static void sizes_that_are_none(void **state)
{
    (void)state;
    expect_none(CELLGATE_F32, -1, NULL);
    expect_none(CELLGATE_F32, CELLGATE_MAX_RANK + 1, NULL);
    expect_none(CELLGATE_F32, 2, (int64_t[]){ 2, -1 });
    expect_none(CELLGATE_F32, 2, (int64_t[]){ 0, -1 });
    expect_none(99, 1, (int64_t[]){ 2 });
    expect_none(-1, 1, (int64_t[]){ 2 });
}

static void overflow_is_caught(void **state)
{
    int64_t most = PTRDIFF_MAX / 4;

    (void)state;
    expect_size(CELLGATE_F32, 1, &most, (size_t)most, (size_t)most * 4);
    expect_none(CELLGATE_F32, 1, (int64_t[]){ most + 1 });
    expect_none(CELLGATE_U8, 2, (int64_t[]){ INT64_MAX, 2 });
    expect_none(CELLGATE_U8, 2,
                (int64_t[]){ (int64_t)1 << 32, (int64_t)1 << 32 });
    /* The product of the other axes is checked even where it is not used. */
    expect_none(CELLGATE_F32, 3,
                (int64_t[]){ (int64_t)1 << 40, 0, (int64_t)1 << 40 });
}

static void memory_is_aligned(void **state)
{
    static const size_t bytes[] = { 0, 1, 63, 64, 65, 100000 };

    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        void *memory = cg_tensor_allocate(bytes[i]);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % CG_TENSOR_ALIGNMENT, 0);
        memset(memory, 1, bytes[i]);
        free(memory);
    }
    assert_null(cg_tensor_allocate(SIZE_MAX));
    assert_null(cg_tensor_allocate(SIZE_MAX - CG_TENSOR_ALIGNMENT + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(sizes_that_are_none),
        cmocka_unit_test(overflow_is_caught),
        cmocka_unit_test(memory_is_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
