/* SPDX-License-Identifier: Apache-2.0 */
/* array_reader.c and array_writer.c */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cellgate/cellgate.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/scratch_folder.h"

#define NUMPY_FILES CELLGATE_FIXTURES "/npy/"

static cellgate_array_reader *open_reader(const char *path)
{
    cellgate_array_reader *reader = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_array_reader_open(path, &reader, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return reader;
}

static cellgate_tensor shape_of(int32_t dtype, int64_t rows, int64_t columns)
{
    return (cellgate_tensor){ .struct_size = sizeof(cellgate_tensor),
                              .dtype = dtype,
                              .rank = 2,
                              .shape = { rows, columns } };
}

static cellgate_array_writer *open_writer(const char *path,
                                          const cellgate_tensor *whole)
{
    cellgate_array_writer *writer = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_array_writer_open(path, whole, &writer, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return writer;
}

/* ---- Reading ------------------------------------------------------------ */

/* An element as a number, whatever its type; float16 is not asked for. */
static double number_at(const cellgate_tensor *tensor, size_t index)
{
    switch (tensor->dtype) {
    case CELLGATE_F32:
        return (double)((const float *)tensor->data)[index];
    case CELLGATE_F64:
        return ((const double *)tensor->data)[index];
    case CELLGATE_I32:
        return ((const int32_t *)tensor->data)[index];
    case CELLGATE_I64:
        return (double)((const int64_t *)tensor->data)[index];
    default:
        return ((const uint8_t *)tensor->data)[index];
    }
}

/* Row by row, each of NumPy's files of (2, 3) holds its pattern. */
static void rows_of_every_type(void **state)
{
    static const char *const names[] = { "f4", "f8_big", "i4", "i8", "u1",
                                         "i1", "i2_big", "u2", "u4", "u8_big" };
    static const double pattern[2][6] = { { 0, 1, -100, 7, -2, 5 },
                                          { 0, 1, 100, 7, 2, 5 } };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1000];
        cellgate_array_reader *reader;
        cellgate_tensor piece = { .struct_size = sizeof piece };
        cellgate_error error = CELLGATE_ERROR_INIT;

        (void)snprintf(path, sizeof path, NUMPY_FILES "%s.npy", names[i]);
        reader = open_reader(path);
        for (size_t row = 0; row < 2; row++) {
            assert_int_equal(
                cellgate_array_reader_next(reader, 1, &piece, &error),
                CELLGATE_OK);
            assert_int_equal(piece.rank, 2);
            assert_int_equal(piece.shape[0], 1);
            assert_int_equal(piece.shape[1], 3);
            assert_int_equal((uintptr_t)piece.data % 64, 0);
            for (size_t k = 0; k < 3; k++)
                assert_true(number_at(&piece, k) ==
                            pattern[names[i][0] == 'u'][row * 3 + k]);
        }
        assert_int_equal(cellgate_array_reader_next(reader, 1, &piece, &error),
                         CELLGATE_END);
        cellgate_array_reader_close(reader);
    }
}

static void the_last_piece_is_smaller(void **state)
{
    cellgate_array_reader *reader;
    cellgate_tensor whole = shape_of(CELLGATE_I32, 7, 2);
    cellgate_tensor piece = { .struct_size = sizeof piece };
    int32_t numbers[14];
    int64_t rows[] = { 3, 3, 1 };

    (void)state;
    for (int32_t k = 0; k < 14; k++)
        numbers[k] = k;
    whole.data = numbers;
    assert_int_equal(
        cellgate_arrays_write(scratch_path("x.npy"), NULL, &whole, 1, NULL),
        CELLGATE_OK);
    reader = open_reader(scratch_path("x.npy"));
    memset(&whole, 0x5a, sizeof whole);
    whole.struct_size = sizeof whole;
    assert_int_equal(cellgate_array_reader_shape(reader, &whole), CELLGATE_OK);
    assert_int_equal(whole.shape[0], 7);
    assert_int_equal(whole.dtype, CELLGATE_I32);
    assert_null(whole.data);
    for (size_t at = 0; at < 3; at++) {
        assert_int_equal(cellgate_array_reader_next(reader, 3, &piece, NULL),
                         CELLGATE_OK);
        assert_int_equal(piece.shape[0], rows[at]);
        assert_memory_equal(piece.data, numbers + at * 6,
                            (size_t)rows[at] * 2 * sizeof *numbers);
    }
    assert_int_equal(cellgate_array_reader_next(reader, 0, &piece, NULL),
                     CELLGATE_INVALID);
    assert_int_equal(cellgate_array_reader_next(reader, 3, &piece, NULL),
                     CELLGATE_END);
    cellgate_array_reader_close(reader);
}

static void refuses(const char *path, cellgate_status status, const char *part)
{
    cellgate_array_reader *reader = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cellgate_array_reader_open(path, &reader, &error), status);
    assert_null(reader);
    if (strstr(error.text, path) == NULL || strstr(error.text, part) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", path, error.text, part);
}

static void what_has_no_pieces(void **state)
{
    size_t size;
    unsigned char *bytes = read_whole_file(NUMPY_FILES "f4.npy", &size);

    (void)state;
    refuses(NUMPY_FILES "stored.npz", CELLGATE_UNSUPPORTED, "numpy.save()");
    refuses(NUMPY_FILES "fortran2.npy", CELLGATE_UNSUPPORTED,
            "ascontiguousarray");
    refuses(NUMPY_FILES "rank0.npy", CELLGATE_UNSUPPORTED, "no rows");
    refuses(NUMPY_FILES "none.npy", CELLGATE_IO, "No such file");
    refuses(NUMPY_FILES "make_npy.py", CELLGATE_BAD_FILE, "magic");
    refuses(CELLGATE_FIXTURES, CELLGATE_IO, "not a regular file");
    refuses(scratch_write("cut.npy", bytes, size - 1), CELLGATE_BAD_FILE,
            "23 bytes follow the header");
    refuses(scratch_write("long.npy", bytes, 20), CELLGATE_BAD_FILE, "ends");
    free(bytes);
}

static void values_and_files_that_change(void **state)
{
    cellgate_array_reader *reader = open_reader(NUMPY_FILES "u8_over.npy");
    cellgate_tensor piece = { .struct_size = sizeof piece };
    cellgate_error error = CELLGATE_ERROR_INIT;
    size_t size;
    unsigned char *bytes = read_whole_file(NUMPY_FILES "f4.npy", &size);
    const char *path = scratch_write("cut.npy", bytes, size);

    (void)state;
    assert_int_equal(cellgate_array_reader_next(reader, 2, &piece, &error),
                     CELLGATE_OK);
    assert_int_equal(cellgate_array_reader_next(reader, 2, &piece, &error),
                     CELLGATE_OUT_OF_RANGE);
    assert_non_null(strstr(error.text, "flat index 2 "));
    cellgate_array_reader_close(reader);
    reader = open_reader(NUMPY_FILES "u8_most.npy");
    assert_int_equal(cellgate_array_reader_next(reader, 9, &piece, &error),
                     CELLGATE_OK);
    assert_int_equal(((const int64_t *)piece.data)[2], INT64_MAX);
    cellgate_array_reader_close(reader);
    /* Cut after it was opened. */
    reader = open_reader(path);
    assert_int_equal(truncate(path, (off_t)size - 4), 0);
    assert_int_equal(cellgate_array_reader_next(reader, 2, &piece, &error),
                     CELLGATE_BAD_FILE);
    assert_non_null(strstr(error.text, "cut while it was read"));
    cellgate_array_reader_close(reader);
    free(bytes);
}

/* ---- Writing ------------------------------------------------------------ */

static void pieces_make_the_same_file(void **state)
{
    cellgate_tensor whole = shape_of(CELLGATE_F32, 5, 3);
    cellgate_array_writer *writer;
    float numbers[15];
    size_t size, again_size;
    unsigned char *bytes, *again;
    size_t before;

    (void)state;
    for (size_t k = 0; k < 15; k++)
        numbers[k] = 0.5f * (float)k;
    whole.data = numbers;
    assert_int_equal(
        cellgate_arrays_write(scratch_path("whole.npy"), NULL, &whole, 1, NULL),
        CELLGATE_OK);
    before = scratch_count();
    writer = open_writer(scratch_path("pieces.npy"), &whole);
    assert_int_equal(access(scratch_path("pieces.npy"), F_OK), -1);
    assert_int_equal(cellgate_array_writer_append(writer, numbers, 2, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_array_writer_append(writer, numbers, 4, NULL),
                     CELLGATE_INVALID);
    assert_int_equal(cellgate_array_writer_append(writer, numbers + 6, 3, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_array_writer_commit(writer, NULL), CELLGATE_OK);
    assert_int_equal(scratch_count(), before + 1);
    bytes = read_whole_file(scratch_path("whole.npy"), &size);
    again = read_whole_file(scratch_path("pieces.npy"), &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    free(bytes);
    free(again);
}

static void nothing_is_left_of_what_is_not_whole(void **state)
{
    const cellgate_tensor whole = shape_of(CELLGATE_F32, 5, 1);
    const float numbers[5] = { 1, 2, 3, 4, 5 };
    const char *path = scratch_write("kept.npy", "old", 3);
    const size_t before = scratch_count();
    cellgate_array_writer *writer = open_writer(path, &whole);
    cellgate_error error = CELLGATE_ERROR_INIT;
    unsigned char *bytes;
    size_t size;

    (void)state;
    assert_int_equal(cellgate_array_writer_append(writer, numbers, 4, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_array_writer_commit(writer, &error),
                     CELLGATE_INVALID);
    assert_non_null(strstr(error.text, "4 of 5 rows"));
    writer = open_writer(path, &whole);
    assert_int_equal(cellgate_array_writer_append(writer, numbers, 5, NULL),
                     CELLGATE_OK);
    cellgate_array_writer_abandon(writer);
    cellgate_array_writer_abandon(NULL);
    assert_int_equal(scratch_count(), before);
    bytes = read_whole_file(path, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(bytes, "old", 3);
    free(bytes);
}

static void what_cannot_be_written(void **state)
{
    cellgate_tensor whole = shape_of(CELLGATE_F32, 5, 1);
    cellgate_array_writer *writer = NULL;

    (void)state;
    assert_int_equal(cellgate_array_writer_open(scratch_path("x.npz"), &whole,
                                                &writer, NULL),
                     CELLGATE_INVALID);
    assert_int_equal(cellgate_array_writer_open(scratch_path("no/x.npy"),
                                                &whole, &writer, NULL),
                     CELLGATE_IO);
    whole.dtype = CELLGATE_BF16;
    assert_int_equal(cellgate_array_writer_open(scratch_path("x.npy"), &whole,
                                                &writer, NULL),
                     CELLGATE_UNSUPPORTED);
    whole = shape_of(CELLGATE_F32, INT64_MAX, 5);
    assert_int_equal(cellgate_array_writer_open(scratch_path("x.npy"), &whole,
                                                &writer, NULL),
                     CELLGATE_INVALID);
    whole = shape_of(CELLGATE_F32, 1, 1);
    whole.rank = 0;
    assert_int_equal(cellgate_array_writer_open(scratch_path("x.npy"), &whole,
                                                &writer, NULL),
                     CELLGATE_INVALID);
    assert_null(writer);
}

static void a_whole_file(void **state)
{
    const char *path = scratch_path("report.json");
    unsigned char *bytes;
    size_t size;

    (void)state;
    assert_int_equal(cellgate_file_write(path, "{}\n", 3, NULL), CELLGATE_OK);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(cellgate_file_write(path, "[1]\n", 4, NULL), CELLGATE_OK);
    bytes = read_whole_file(path, &size);
    assert_int_equal(size, 4);
    assert_memory_equal(bytes, "[1]\n", 4);
    free(bytes);
    assert_int_equal(cellgate_file_write(scratch_path("no/x"), "", 0, NULL),
                     CELLGATE_IO);
    assert_int_equal(cellgate_file_write(NULL, "", 0, NULL), CELLGATE_INVALID);
}

/* ---- Memory ------------------------------------------------------------- */

static cellgate_status read_and_write(void *context)
{
    cellgate_array_reader *reader = NULL;
    cellgate_array_writer *writer = NULL;
    cellgate_tensor whole = { .struct_size = sizeof whole };
    cellgate_tensor piece = { .struct_size = sizeof piece };
    cellgate_status status =
        cellgate_array_reader_open(NUMPY_FILES "i2.npy", &reader, NULL);

    (void)context;
    if (status == CELLGATE_OK)
        status = cellgate_array_reader_shape(reader, &whole);
    if (status == CELLGATE_OK)
        status = cellgate_array_writer_open(scratch_path("copy.npy"), &whole,
                                            &writer, NULL);
    for (int row = 0; status == CELLGATE_OK && row < 2; row++) {
        status = cellgate_array_reader_next(reader, 1, &piece, NULL);
        if (status == CELLGATE_OK)
            status = cellgate_array_writer_append(writer, piece.data, 1, NULL);
    }
    if (status == CELLGATE_OK)
        status = cellgate_array_writer_commit(writer, NULL);
    else
        cellgate_array_writer_abandon(writer);
    cellgate_array_reader_close(reader);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    assert_in_range(fail_each_allocation(read_and_write, NULL), 8, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_every_type),
        cmocka_unit_test(the_last_piece_is_smaller),
        cmocka_unit_test(what_has_no_pieces),
        cmocka_unit_test(values_and_files_that_change),
        cmocka_unit_test(pieces_make_the_same_file),
        cmocka_unit_test(nothing_is_left_of_what_is_not_whole),
        cmocka_unit_test(what_cannot_be_written),
        cmocka_unit_test(a_whole_file),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
