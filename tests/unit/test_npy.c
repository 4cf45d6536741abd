/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cellgate/plugin.h"
#include "runtime/formats/npy.h"
#include "runtime/formats/tensor.h"

/* A source in memory that gives at most `portion` bytes a call. */
typedef struct bytes {
    const unsigned char *data;
    size_t size;
    size_t at;
    size_t portion;
    size_t fails_at; /* a read beyond this offset fails; 0: none does */
} bytes;

static cellgate_status read_bytes(void *stream, void *buffer, size_t size,
                                  size_t *count, cellgate_error *error)
{
    bytes *from = stream;
    size_t left = from->size - from->at;

    if (from->fails_at != 0 && from->at + size > from->fails_at)
        return cellgate_fail(error, CELLGATE_IO, "the disk is gone");
    if (size > left)
        size = left;
    if (size > from->portion)
        size = from->portion;
    memcpy(buffer, from->data + from->at, size);
    from->at += size;
    *count = size;
    return CELLGATE_OK;
}

static cellgate_status read_from(bytes *from, uint64_t claimed,
                                 cellgate_tensor *tensor, cellgate_error *error)
{
    cg_npy_source source = { "FILE", claimed, read_bytes, from };
    return cg_npy_read(&source, tensor, error);
}

/*
 * A whole .npy of version `major` with this header and `elements` bytes that
 * count up; the caller frees it.
 */
static unsigned char *make_npy(unsigned char major, const char *header,
                               size_t elements, size_t *size)
{
    size_t prefix = major == 1 ? 10 : 12;
    size_t length = strlen(header);
    unsigned char *data = calloc(1, prefix + length + elements + 1);

    assert_non_null(data);
    memcpy(data, "\x93NUMPY", 6);
    data[6] = major;
    data[8] = (unsigned char)length;
    data[9] = (unsigned char)(length >> 8);
    if (prefix == 12)
        data[10] = (unsigned char)(length >> 16);
    memcpy(data + prefix, header, length);
    for (size_t i = 0; i < elements; i++)
        data[prefix + length + i] = (unsigned char)i;
    *size = prefix + length + elements;
    return data;
}

#define HEADER(descr, order, shape)                                            \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"

/* Reads it, expecting success; the caller frees the tensor's data. */
static cellgate_tensor read_made(unsigned char major, const char *header,
                                 size_t elements, size_t portion)
{
    size_t size = 0;
    unsigned char *data = make_npy(major, header, elements, &size);
    bytes from = { data, size, 0, portion, 0 };
    cellgate_tensor tensor = { 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (read_from(&from, size, &tensor, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(from.at, size);
    assert_int_equal(tensor.struct_size, sizeof tensor);
    assert_int_equal((uintptr_t)tensor.data % CG_TENSOR_ALIGNMENT, 0);
    free(data);
    return tensor;
}

static void each_version(void **state)
{
    (void)state;
    for (unsigned char major = 1; major <= 3; major++) {
        cellgate_tensor tensor =
            read_made(major, HEADER("|u1", "False", "(2, 3)"), 6, 1000);
        assert_int_equal(tensor.dtype, CELLGATE_U8);
        assert_int_equal(tensor.rank, 2);
        assert_memory_equal(tensor.data, "\0\1\2\3\4\5", 6);
        free(tensor.data);
    }
}

static void portions_add_up(void **state)
{
    (void)state;
    for (size_t portion = 1; portion < 8; portion++) {
        cellgate_tensor tensor =
            read_made(1, HEADER("|u1", "False", "(5,)"), 5, portion);
        assert_memory_equal(tensor.data, "\0\1\2\3\4", 5);
        free(tensor.data);
    }
}

static void big_endian_is_swapped(void **state)
{
    cellgate_tensor tensor;

    (void)state;
    tensor = read_made(1, HEADER(">f2", "False", "(2,)"), 4, 1000);
    assert_memory_equal(tensor.data, "\1\0\3\2", 4);
    free(tensor.data);
    tensor = read_made(1, HEADER(">i4", "False", "(2,)"), 8, 1000);
    assert_memory_equal(tensor.data, "\3\2\1\0\7\6\5\4", 8);
    free(tensor.data);
    tensor = read_made(1, HEADER(">f8", "False", "(1,)"), 8, 1000);
    assert_memory_equal(tensor.data, "\7\6\5\4\3\2\1\0", 8);
    free(tensor.data);
}

static void fortran_order_is_turned(void **state)
{
    /* Element (i, j, k) of shape (2, 3, 2) is number i + 2 j + 6 k. */
    static const unsigned char want[] = {
        0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11
    };
    cellgate_tensor tensor =
        read_made(1, HEADER("|u1", "True", "(2, 3, 2)"), 12, 1000);

    (void)state;
    assert_memory_equal(tensor.data, want, sizeof want);
    free(tensor.data);
    tensor = read_made(1, HEADER(">f2", "True", "(2, 2)"), 8, 1000);
    assert_memory_equal(tensor.data, "\1\0\5\4\3\2\7\6", 8);
    free(tensor.data);
}

static void small_arrays(void **state)
{
    static const char *const headers[] = {
        HEADER("<f4", "False", "(0,)"),
        HEADER("<f4", "True", "(3, 0)"),
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        cellgate_tensor tensor = read_made(1, headers[i], 0, 1000);
        assert_non_null(tensor.data);
        free(tensor.data);
    }
    cellgate_tensor scalar = read_made(1, HEADER("|b1", "True", "()"), 1, 1000);
    assert_int_equal(scalar.rank, 0);
    free(scalar.data);
}

/* Expects this refusal, and an untouched tensor. */
static void expect(const unsigned char *data, size_t size, uint64_t claimed,
                   cellgate_status status, const char *part)
{
    /* Exactly as large as it says, so that a sanitizer sees any overrun. */
    unsigned char *copy = malloc(size > 0 ? size : 1);
    bytes from = { copy, size, 0, 1000, 0 };
    cellgate_tensor tensor;
    cellgate_tensor before;
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_non_null(copy);
    memcpy(copy, data, size);
    memset(&tensor, 0x5a, sizeof tensor);
    before = tensor;
    assert_int_equal(read_from(&from, claimed, &tensor, &error), status);
    assert_memory_equal(&tensor, &before, sizeof tensor);
    if (strstr(error.text, "FILE: ") != error.text ||
        strstr(error.text, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", error.text, part);
    free(copy);
}

static void expect_header(const char *header, size_t elements,
                          cellgate_status status, const char *part)
{
    size_t size = 0;
    unsigned char *data = make_npy(1, header, elements, &size);

    expect(data, size, size, status, part);
    free(data);
}

static void size_has_to_match(void **state)
{
    (void)state;
    expect_header(HEADER("<f4", "False", "(2, 3)"), 23, CELLGATE_BAD_FILE,
                  "23 bytes follow the header, where its shape and dtype ask "
                  "for 24");
    expect_header(HEADER("<f4", "False", "(2, 3)"), 25, CELLGATE_BAD_FILE,
                  "25 bytes");
    expect_header(HEADER("<f4", "False", "(0,)"), 1, CELLGATE_BAD_FILE,
                  "1 bytes");
    /* Nothing of that size is ever allocated. */
    expect_header(HEADER("<f8", "False", "(1152921504606846975,)"), 8,
                  CELLGATE_BAD_FILE, "ask for 9223372036854775800");
}

static void shapes_beyond_memory(void **state)
{
    (void)state;
    expect_header(HEADER("<f4", "False", "(4611686018427387904, 4)"), 8,
                  CELLGATE_BAD_FILE, "too large for memory");
    expect_header(HEADER("<f8", "False", "(4294967296, 4294967296)"), 0,
                  CELLGATE_BAD_FILE, "too large for memory");
    expect_header(HEADER("<f4", "False", "(0, 9223372036854775807)"), 0,
                  CELLGATE_BAD_FILE, "too large for memory");
}

static void prefix_is_checked(void **state)
{
    size_t size = 0;
    unsigned char *data = make_npy(1, HEADER("<f4", "False", "(1,)"), 4, &size);

    (void)state;
    data[0] = 'x';
    expect(data, size, size, CELLGATE_BAD_FILE, "magic");
    data[0] = 0x93;
    data[6] = 4;
    expect(data, size, size, CELLGATE_UNSUPPORTED, "version 4.0");
    data[6] = 0;
    expect(data, size, size, CELLGATE_UNSUPPORTED, "version 0.0");
    data[6] = 1;
    data[7] = 1;
    expect(data, size, size, CELLGATE_UNSUPPORTED, "version 1.1");
    data[7] = 0;
    data[9] = 0xff;
    expect(data, size, size, CELLGATE_BAD_FILE, "within the header");
    data[6] = 2;
    data[11] = 0x7f;
    expect(data, size, size, CELLGATE_BAD_FILE, "at most 65535");
    free(data);
}

static void cut_anywhere(void **state)
{
    (void)state;
    for (unsigned char major = 1; major <= 2; major++) {
        size_t size = 0;
        unsigned char *data =
            make_npy(major, HEADER("<f4", "True", "(2, 2)"), 16, &size);
        for (size_t cut = 0; cut < size; cut++) {
            expect(data, cut, cut, CELLGATE_BAD_FILE, "");
            /* The size may be a lie as well: the file was cut since. */
            expect(data, cut, size, CELLGATE_BAD_FILE, "ends within");
        }
        free(data);
    }
}

static void failing_source(void **state)
{
    size_t size = 0;
    unsigned char *data =
        make_npy(1, HEADER("<f4", "False", "(2, 2)"), 16, &size);

    (void)state;
    for (size_t at = 1; at < size; at += 7) {
        bytes from = { data, size, 0, 1000, at };
        cellgate_tensor tensor;
        cellgate_error error = CELLGATE_ERROR_INIT;
        assert_int_equal(read_from(&from, size, &tensor, &error), CELLGATE_IO);
        assert_string_equal(error.text, "the disk is gone");
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_version),
        cmocka_unit_test(portions_add_up),
        cmocka_unit_test(big_endian_is_swapped),
        cmocka_unit_test(fortran_order_is_turned),
        cmocka_unit_test(small_arrays),
        cmocka_unit_test(size_has_to_match),
        cmocka_unit_test(shapes_beyond_memory),
        cmocka_unit_test(prefix_is_checked),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(failing_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
