/* SPDX-License-Identifier: Apache-2.0 */
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
#include "runtime/formats/convert.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/scratch_folder.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NUMPY_FILES CELLGATE_FIXTURES "/npy/"

/* ---- Files made by NumPy ------------------------------------------------ */

/* What make_npy.py fills arrays with. */
static const float SIGNED[] = { 0, 1, -100, 7, -2, 5 };
static const float UNSIGNED[] = { 0, 1, 100, 7, 2, 5 };
static const float BOOLS[] = { 0, 1, 0, 1, 0, 1 };

typedef struct numpy_array {
    const char *name;
    int32_t dtype;
    int32_t rank;
    int64_t shape[CELLGATE_MAX_RANK];
} numpy_array;

static const numpy_array SINGLE[] = {
    { "f2", CELLGATE_F16, 2, { 2, 3 } },
    { "f2_big", CELLGATE_F16, 2, { 2, 3 } },
    { "f4", CELLGATE_F32, 2, { 2, 3 } },
    { "f4_big", CELLGATE_F32, 2, { 2, 3 } },
    { "f8", CELLGATE_F64, 2, { 2, 3 } },
    { "f8_big", CELLGATE_F64, 2, { 2, 3 } },
    { "i4", CELLGATE_I32, 2, { 2, 3 } },
    { "i4_big", CELLGATE_I32, 2, { 2, 3 } },
    { "i8", CELLGATE_I64, 2, { 2, 3 } },
    { "i8_big", CELLGATE_I64, 2, { 2, 3 } },
    { "i1", CELLGATE_I32, 2, { 2, 3 } },
    { "i2", CELLGATE_I32, 2, { 2, 3 } },
    { "i2_big", CELLGATE_I32, 2, { 2, 3 } },
    { "u2", CELLGATE_I32, 2, { 2, 3 } },
    { "u2_big", CELLGATE_I32, 2, { 2, 3 } },
    { "u4", CELLGATE_I64, 2, { 2, 3 } },
    { "u4_big", CELLGATE_I64, 2, { 2, 3 } },
    { "u8", CELLGATE_I64, 2, { 2, 3 } },
    { "u8_big", CELLGATE_I64, 2, { 2, 3 } },
    { "u1", CELLGATE_U8, 2, { 2, 3 } },
    { "b1", CELLGATE_BOOL, 2, { 2, 3 } },
    { "rank0", CELLGATE_F32, 0, { 0 } },
    { "rank1", CELLGATE_F32, 1, { 5 } },
    { "rank8", CELLGATE_F32, 8, { 1, 2, 1, 3, 2, 1, 2, 1 } },
    { "empty", CELLGATE_F32, 3, { 3, 0, 2 } },
    { "fortran2", CELLGATE_F32, 2, { 4, 3 } },
    { "fortran3", CELLGATE_I32, 3, { 2, 3, 4 } },
    { "fortran8", CELLGATE_F32, 8, { 1, 2, 1, 3, 2, 1, 2, 1 } },
    { "fortran_big", CELLGATE_F64, 2, { 3, 4 } },
    { "fortran_f2", CELLGATE_F16, 2, { 3, 5 } },
    { "fortran_i2", CELLGATE_I32, 2, { 3, 5 } },
    { "fortran_u1", CELLGATE_U8, 2, { 3, 5 } },
    { "version2", CELLGATE_F32, 2, { 2, 3 } },
    { "version3", CELLGATE_F32, 2, { 2, 3 } },
};

static const numpy_array SEVERAL[] = {
    { "in0", CELLGATE_F32, 2, { 2, 3 } },
    { "ids", CELLGATE_I64, 1, { 7 } },
    { "mask/of \xc3\xbc", CELLGATE_BOOL, 2, { 2, 3 } },
    { "turned", CELLGATE_F32, 2, { 4, 3 } },
    { "empty", CELLGATE_F32, 1, { 0 } },
    { "scalar", CELLGATE_F64, 0, { 0 } },
};

static cellgate_arrays *read_arrays(const char *path)
{
    cellgate_arrays *arrays = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_arrays_read(path, &arrays, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return arrays;
}

static cellgate_tensor array_at(const cellgate_arrays *arrays, size_t index,
                                const char *want_name)
{
    cellgate_tensor tensor = { .struct_size = sizeof tensor };
    const char *name = NULL;

    assert_int_equal(cellgate_arrays_get(arrays, index, &name, &tensor),
                     CELLGATE_OK);
    assert_string_equal(name, want_name);
    assert_int_equal(tensor.struct_size, sizeof tensor);
    assert_int_equal((uintptr_t)tensor.data % 64, 0);
    assert_non_null(tensor.data);
    return tensor;
}

static void expect_array(const cellgate_tensor *tensor, const numpy_array *want)
{
    const float *pattern = want->dtype == CELLGATE_BOOL ? BOOLS
                           : want->dtype == CELLGATE_U8 || want->name[0] == 'u'
                               ? UNSIGNED
                               : SIGNED;
    float values[64];
    size_t count = 1;

    assert_int_equal(tensor->dtype, want->dtype);
    assert_int_equal(tensor->rank, want->rank);
    for (int32_t axis = 0; axis < want->rank; axis++) {
        assert_int_equal(tensor->shape[axis], want->shape[axis]);
        count *= (size_t)want->shape[axis];
    }
    assert_true(count <= COUNT(values));
    assert_int_equal(cg_narrow_f32(tensor, values, NULL, NULL), CELLGATE_OK);
    for (size_t i = 0; i < count; i++)
        if (values[i] != pattern[i % 6])
            fail_msg("%s: element %zu is %g, not %g", want->name, i,
                     (double)values[i], (double)pattern[i % 6]);
}

static void numpy_single_arrays(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(SINGLE); i++) {
        char path[1000];
        cellgate_arrays *arrays;
        cellgate_tensor tensor;
        (void)snprintf(path, sizeof path, NUMPY_FILES "%s.npy", SINGLE[i].name);
        arrays = read_arrays(path);
        assert_int_equal(cellgate_arrays_count(arrays), 1);
        tensor = array_at(arrays, 0, "");
        expect_array(&tensor, &SINGLE[i]);
        cellgate_arrays_destroy(arrays);
    }
}

static void expect_several(const char *path)
{
    cellgate_arrays *arrays = read_arrays(path);

    assert_int_equal(cellgate_arrays_count(arrays), COUNT(SEVERAL));
    for (size_t i = 0; i < COUNT(SEVERAL); i++) {
        cellgate_tensor tensor = array_at(arrays, i, SEVERAL[i].name);
        expect_array(&tensor, &SEVERAL[i]);
    }
    cellgate_arrays_destroy(arrays);
}

static void numpy_archives(void **state)
{
    cellgate_arrays *arrays;
    cellgate_tensor tensor;

    (void)state;
    expect_several(NUMPY_FILES "stored.npz");
    expect_several(NUMPY_FILES "deflated.npz");
    arrays = read_arrays(NUMPY_FILES "none.npz");
    assert_int_equal(cellgate_arrays_count(arrays), 0);
    cellgate_arrays_destroy(arrays);
    arrays = read_arrays(NUMPY_FILES "zeros.npz");
    tensor = array_at(arrays, 0, "zeros");
    assert_int_equal(tensor.shape[0], 1 << 18);
    assert_true(((const float *)tensor.data)[(1 << 18) - 1] == 0);
    cellgate_arrays_destroy(arrays);
}

static void expect_unreadable(const char *path, cellgate_status status,
                              const char *part)
{
    cellgate_arrays *arrays = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cellgate_arrays_read(path, &arrays, &error), status);
    assert_null(arrays);
    assert_int_equal(error.status, status);
    if (strstr(error.text, path) == NULL || strstr(error.text, part) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", path, error.text, part);
    assert_int_equal(cellgate_arrays_read(path, &arrays, NULL), status);
}

static void numpy_types_that_are_not_taken(void **state)
{
    (void)state;
    expect_unreadable(NUMPY_FILES "u8_over.npy", CELLGATE_OUT_OF_RANGE,
                      "9223372036854775808 at flat index 2 does not fit");
    expect_unreadable(NUMPY_FILES "refused_c8.npy", CELLGATE_UNSUPPORTED,
                      "'<c8'");
    expect_unreadable(NUMPY_FILES "refused_text.npy", CELLGATE_UNSUPPORTED,
                      "'<U3'");
    expect_unreadable(NUMPY_FILES "refused_date.npy", CELLGATE_UNSUPPORTED,
                      "'<M8[D]'");
    expect_unreadable(NUMPY_FILES "refused_object.npy", CELLGATE_UNSUPPORTED,
                      "never read");
    expect_unreadable(NUMPY_FILES "refused_struct.npy", CELLGATE_UNSUPPORTED,
                      "structured");
    expect_unreadable(NUMPY_FILES "rank9.npy", CELLGATE_UNSUPPORTED,
                      "more than 8 axes");
}

/* ---- Files that are no arrays ------------------------------------------- */

static void other_files(void **state)
{
    const char *fifo = scratch_path("fifo");

    (void)state;
    expect_unreadable(scratch_path("missing.npy"), CELLGATE_IO, "No such");
    expect_unreadable(scratch_folder(), CELLGATE_IO,
                      "this is a folder; a .npy or .npz file is expected");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_unreadable(fifo, CELLGATE_IO, "not a regular file");
    assert_int_equal(unlink(fifo), 0);
    expect_unreadable(scratch_write("text.npy", "1 2 3\n", 6),
                      CELLGATE_BAD_FILE, "neither a .npy");
    expect_unreadable(scratch_write("nothing.npz", "", 0), CELLGATE_BAD_FILE,
                      "neither a .npy");
    assert_int_equal(cellgate_arrays_read(NULL, NULL, NULL), CELLGATE_INVALID);
}

static void content_decides_not_the_name(void **state)
{
    size_t size = 0;
    unsigned char *data = read_whole_file(NUMPY_FILES "stored.npz", &size);
    cellgate_arrays *arrays;

    (void)state;
    expect_several(scratch_write("really-a-zip.npy", data, size));
    free(data);
    data = read_whole_file(NUMPY_FILES "f4.npy", &size);
    arrays = read_arrays(scratch_write("really-one-array", data, size));
    assert_int_equal(cellgate_arrays_count(arrays), 1);
    cellgate_arrays_destroy(arrays);
    free(data);
}

static void cut_anywhere(const char *path)
{
    size_t size = 0;
    unsigned char *data = read_whole_file(path, &size);

    for (size_t cut = 0; cut < size; cut++) {
        cellgate_arrays *arrays = NULL;
        const char *copy = scratch_write("cut", data, cut);
        assert_int_equal(cellgate_arrays_read(copy, &arrays, NULL),
                         CELLGATE_BAD_FILE);
        assert_null(arrays);
    }
    free(data);
}

static void cut_files(void **state)
{
    (void)state;
    cut_anywhere(NUMPY_FILES "f4.npy");
    cut_anywhere(NUMPY_FILES "fortran_big.npy");
    cut_anywhere(NUMPY_FILES "version2.npy");
    cut_anywhere(NUMPY_FILES "stored.npz");
    cut_anywhere(NUMPY_FILES "deflated.npz");
}

/* Any byte changed: an error or arrays, and no sanitizer's report. */
static void changed_archive(void **state)
{
    size_t size = 0;
    unsigned char *data = read_whole_file(NUMPY_FILES "deflated.npz", &size);

    (void)state;
    for (size_t at = 0; at < size; at++)
        for (unsigned change = 1; change < 256; change *= 4) {
            cellgate_arrays *arrays = NULL;
            data[at] ^= (unsigned char)change;
            (void)cellgate_arrays_read(scratch_write("changed", data, size),
                                       &arrays, NULL);
            cellgate_arrays_destroy(arrays);
            data[at] ^= (unsigned char)change;
        }
    free(data);
}

/* ---- The set ------------------------------------------------------------ */

static void entries(void **state)
{
    cellgate_arrays *arrays = read_arrays(NUMPY_FILES "stored.npz");
    cellgate_tensor tensor = { .struct_size = sizeof tensor };
    const char *name = NULL;
    /* An application built with a newer, larger struct. */
    struct {
        cellgate_tensor tensor;
        char newer[16];
    } larger = { { .struct_size = sizeof larger }, "xxxxxxxxxxxxxxx" };

    (void)state;
    assert_int_equal(cellgate_arrays_get(arrays, 6, &name, &tensor),
                     CELLGATE_END);
    assert_null(name);
    assert_null(tensor.data);
    assert_int_equal(cellgate_arrays_get(arrays, 1, &name, NULL), CELLGATE_OK);
    assert_string_equal(name, "ids");
    assert_int_equal(cellgate_arrays_get(arrays, 1, NULL, &tensor),
                     CELLGATE_OK);
    assert_int_equal(tensor.dtype, CELLGATE_I64);
    assert_int_equal(cellgate_arrays_get(arrays, 1, NULL, &larger.tensor),
                     CELLGATE_OK);
    assert_ptr_equal(larger.tensor.data, tensor.data);
    assert_int_equal(larger.newer[0], 0);
    tensor.struct_size = 0;
    assert_int_equal(cellgate_arrays_get(arrays, 1, NULL, &tensor),
                     CELLGATE_INVALID);
    cellgate_arrays_destroy(arrays);
    cellgate_arrays_destroy(NULL);
}

/* ---- Writing ----------------------------------------------------------- */

/* Writes what was read, reads it again, and compares all of it. */
static void expect_round_trip(const char *path, const char *copy)
{
    cellgate_arrays *arrays = read_arrays(path);
    cellgate_arrays *again;
    size_t count = cellgate_arrays_count(arrays);
    const char *names[8];
    cellgate_tensor tensors[8];
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_true(count <= COUNT(tensors));
    for (size_t i = 0; i < count; i++) {
        tensors[i].struct_size = sizeof tensors[i];
        assert_int_equal(cellgate_arrays_get(arrays, i, &names[i], &tensors[i]),
                         CELLGATE_OK);
    }
    if (cellgate_arrays_write(copy, names, tensors, count, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    again = read_arrays(copy);
    assert_int_equal(cellgate_arrays_count(again), count);
    for (size_t i = 0; i < count; i++) {
        cellgate_tensor got = array_at(again, i, names[i]);
        size_t bytes = cellgate_dtype_size(got.dtype);
        assert_int_equal(got.dtype, tensors[i].dtype);
        assert_int_equal(got.rank, tensors[i].rank);
        assert_memory_equal(got.shape, tensors[i].shape, sizeof got.shape);
        for (int32_t axis = 0; axis < got.rank; axis++)
            bytes *= (size_t)got.shape[axis];
        assert_memory_equal(got.data, tensors[i].data, bytes);
    }
    cellgate_arrays_destroy(again);
    cellgate_arrays_destroy(arrays);
}

static void round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(SINGLE); i++) {
        char path[1000];
        (void)snprintf(path, sizeof path, NUMPY_FILES "%s.npy", SINGLE[i].name);
        expect_round_trip(path, scratch_path("round.npy"));
    }
    expect_round_trip(NUMPY_FILES "deflated.npz", scratch_path("round.npz"));
}

/* A row-major array is written as NumPy itself writes it, byte for byte. */
static void same_bytes_as_numpy(void **state)
{
    static const char *const names[] = { "f2",    "f4",    "f8",   "i4",
                                         "i8",    "u1",    "b1",   "rank0",
                                         "rank1", "rank8", "empty" };

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[1000];
        size_t size = 0, want_size = 0;
        unsigned char *got, *want;
        (void)snprintf(path, sizeof path, NUMPY_FILES "%s.npy", names[i]);
        expect_round_trip(path, scratch_path("same.npy"));
        got = read_whole_file(scratch_path("same.npy"), &size);
        want = read_whole_file(path, &want_size);
        assert_int_equal(size, want_size);
        assert_memory_equal(got, want, size);
        free(got);
        free(want);
    }
}

static void same_arrays_same_archive(void **state)
{
    size_t size = 0, again_size = 0;
    unsigned char *data, *again;

    (void)state;
    expect_round_trip(NUMPY_FILES "stored.npz", scratch_path("one.npz"));
    expect_round_trip(NUMPY_FILES "stored.npz", scratch_path("two.npz"));
    data = read_whole_file(scratch_path("one.npz"), &size);
    again = read_whole_file(scratch_path("two.npz"), &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(data, again, size);
    free(data);
    free(again);
}

static float VALUES[6] = { 1, 2, 3, 4, 5, 6 };

static cellgate_tensor sound_tensor(void)
{
    cellgate_tensor tensor = { .struct_size = sizeof tensor,
                               .dtype = CELLGATE_F32,
                               .rank = 2,
                               .shape = { 2, 3 },
                               .data = VALUES };
    return tensor;
}

static void expect_unwritable(const char *name, const char *const *names,
                              const cellgate_tensor *tensors, size_t count,
                              cellgate_status status, const char *part)
{
    const char *path = scratch_path(name);
    size_t before = scratch_count();
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cellgate_arrays_write(path, names, tensors, count, &error),
                     status);
    if (strstr(error.text, path) == NULL || strstr(error.text, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", error.text, part);
    assert_int_equal(scratch_count(), before);
}

static void tensors_are_checked(void **state)
{
    cellgate_tensor tensor = sound_tensor();

    (void)state;
    tensor.struct_size = 0;
    expect_unwritable("t.npy", NULL, &tensor, 1, CELLGATE_INVALID,
                      "struct_size");
    tensor = sound_tensor();
    tensor.rank = 9;
    expect_unwritable("t.npy", NULL, &tensor, 1, CELLGATE_INVALID, "rank 9");
    tensor.rank = -1;
    expect_unwritable("t.npy", NULL, &tensor, 1, CELLGATE_INVALID, "rank -1");
    tensor = sound_tensor();
    tensor.dtype = 55;
    expect_unwritable("t.npy", NULL, &tensor, 1, CELLGATE_INVALID, "dtype 55");
    tensor = sound_tensor();
    tensor.shape[1] = -3;
    expect_unwritable("t.npy", NULL, &tensor, 1, CELLGATE_INVALID, "shape");
    tensor.shape[1] = INT64_MAX;
    expect_unwritable("t.npy", NULL, &tensor, 1, CELLGATE_INVALID, "shape");
    tensor = sound_tensor();
    tensor.data = NULL;
    expect_unwritable("t.npy", NULL, &tensor, 1, CELLGATE_INVALID, "no data");
    tensor = sound_tensor();
    tensor.dtype = CELLGATE_BF16;
    expect_unwritable("t.npy", NULL, &tensor, 1, CELLGATE_UNSUPPORTED,
                      "bfloat16");
}

static void names_and_counts_are_checked(void **state)
{
    cellgate_tensor tensors[] = { sound_tensor(), sound_tensor() };
    const char *names[] = { "a", "a" };

    (void)state;
    expect_unwritable("t.txt", names, tensors, 1, CELLGATE_INVALID,
                      ".npy or .npz");
    expect_unwritable("t.npy", names, tensors, 2, CELLGATE_INVALID,
                      "one array, not 2");
    expect_unwritable("t.npy", names, tensors, 0, CELLGATE_INVALID, "not 0");
    expect_unwritable("t.npz", names, tensors, 0, CELLGATE_INVALID, "not 0");
    expect_unwritable("t.npz", NULL, tensors, 1, CELLGATE_INVALID, "no names");
    expect_unwritable("t.npz", names, NULL, 1, CELLGATE_INVALID, "no arrays");
    expect_unwritable("t.npz", names, tensors, 2, CELLGATE_INVALID,
                      "two arrays are named 'a'");
    names[1] = "";
    expect_unwritable("t.npz", names, tensors, 2, CELLGATE_INVALID,
                      "array 1 needs a name");
    names[1] = NULL;
    expect_unwritable("t.npz", names, tensors, 2, CELLGATE_INVALID,
                      "array 1 needs a name");
    names[1] = "a\nb";
    expect_unwritable("t.npz", names, tensors, 2, CELLGATE_INVALID,
                      "array 1 needs a name");
    assert_int_equal(cellgate_arrays_write(NULL, names, tensors, 1, NULL),
                     CELLGATE_INVALID);
}

static void file_is_untouched_after_an_error(void **state)
{
    cellgate_tensor tensors[] = { sound_tensor(), sound_tensor() };
    const char *names[] = { "a", "a" };
    size_t size = 0;
    unsigned char *data;

    (void)state;
    (void)scratch_write("t.npz", "before", 6);
    expect_unwritable("t.npz", names, tensors, 2, CELLGATE_INVALID, "'a'");
    data = read_whole_file(scratch_path("t.npz"), &size);
    assert_int_equal(size, 6);
    assert_memory_equal(data, "before", 6);
    free(data);
}

static void unwritable_folder(void **state)
{
    cellgate_tensor tensor = sound_tensor();
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_int_equal(
        cellgate_arrays_write("no-such-folder/t.npy", NULL, &tensor, 1, &error),
        CELLGATE_IO);
    assert_non_null(strstr(error.text, "no-such-folder/t.npy"));
}

/* ---- Out of memory ------------------------------------------------------ */

static cellgate_status read_attempt(void *context)
{
    cellgate_arrays *arrays = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_status status = cellgate_arrays_read(context, &arrays, &error);

    assert_true((status == CELLGATE_OK) == (arrays != NULL));
    cellgate_arrays_destroy(arrays);
    return status;
}

static void memory_runs_out_in_reading(void **state)
{
    (void)state;
    /* The set, its list, a name, the header, the elements. */
    assert_true(
        fail_each_allocation(read_attempt, (void *)NUMPY_FILES "f4.npy") >= 5);
    assert_true(fail_each_allocation(read_attempt,
                                     (void *)NUMPY_FILES "fortran2.npy") >= 6);
    assert_true(fail_each_allocation(read_attempt, (void *)NUMPY_FILES
                                     "deflated.npz") >= 4 * COUNT(SEVERAL));
}

static cellgate_status write_attempt(void *context)
{
    cellgate_tensor tensors[] = { sound_tensor(), sound_tensor() };
    const char *names[] = { "a", "b" };
    const char *path = context;
    size_t before = scratch_count();
    cellgate_status status = cellgate_arrays_write(
        path, names, tensors, strstr(path, ".npz") != NULL ? 2 : 1, NULL);

    assert_int_equal(scratch_count(), before); /* no temporary file is left */
    return status;
}

static void memory_runs_out_in_writing(void **state)
{
    const char *one = scratch_write("memory.npy", "x", 1);
    const char *several = scratch_write("memory.npz", "x", 1);

    (void)state;
    assert_true(fail_each_allocation(write_attempt, (void *)one) >= 4);
    assert_true(fail_each_allocation(write_attempt, (void *)several) >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numpy_single_arrays),
        cmocka_unit_test(numpy_archives),
        cmocka_unit_test(numpy_types_that_are_not_taken),
        cmocka_unit_test(other_files),
        cmocka_unit_test(content_decides_not_the_name),
        cmocka_unit_test(cut_files),
        cmocka_unit_test(changed_archive),
        cmocka_unit_test(entries),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(same_bytes_as_numpy),
        cmocka_unit_test(same_arrays_same_archive),
        cmocka_unit_test(tensors_are_checked),
        cmocka_unit_test(names_and_counts_are_checked),
        cmocka_unit_test(file_is_untouched_after_an_error),
        cmocka_unit_test(unwritable_folder),
        cmocka_unit_test(memory_runs_out_in_reading),
        cmocka_unit_test(memory_runs_out_in_writing),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
