/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fixtures/keras_broken has what HDF5 files can do beyond this. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/formats/h5.h"
#include "tests/unit/h5_image.h"
#include "tests/unit/keras_file.h"

static const keras_weight weights[] = { { "layers/dense/vars/0", 2, { 3, 2 } },
                                        { "layers/dense/vars/1", 1, { 2 } },
                                        { NULL, 0, { 0 } } };

static unsigned char *image;
static size_t image_size;

static int make_image(void **state)
{
    (void)state;
    image = keras_weights_image(weights, &image_size);
    return 0;
}

static int free_image(void **state)
{
    (void)state;
    free(image);
    return 0;
}

static cg_h5 *open_image(void)
{
    cg_h5 *h5 = NULL;

    assert_int_equal(
        cg_h5_open(image, image_size, "model.weights.h5", &h5, NULL),
        CELLGATE_OK);
    return h5;
}

static void data_is_read(void **state)
{
    cg_h5 *h5 = open_image();
    float data[6] = { 0 };

    (void)state;
    assert_int_equal(cg_h5_check(h5, "layers/dense/vars/0", 2,
                                 (const int64_t[]){ 3, 2 }, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_h5_read(h5, "layers/dense/vars/0", 6, data, NULL),
                     CELLGATE_OK);
    for (int i = 0; i < 6; i++)
        assert_float_equal(data[i], 0.01f * (float)(i + 1), 0);
    cg_h5_close(h5);
}

static void paths_are_found_or_not(void **state)
{
    cg_h5 *h5 = open_image();
    char long_path[2000];

    (void)state;
    assert_true(cg_h5_has(h5, "layers/dense"));
    assert_true(cg_h5_has(h5, "layers/dense/vars/1"));
    assert_false(cg_h5_has(h5, "layers/dense/vars/2"));
    assert_false(cg_h5_has(h5, "layers/dense/vars/1/more"));
    assert_false(cg_h5_has(h5, "../layers"));
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    assert_false(cg_h5_has(h5, long_path));
    cg_h5_close(h5);
}

static void assert_check_fails(const char *path, int32_t rank, int64_t first,
                               int64_t second, const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_h5 *h5 = open_image();

    assert_int_equal(
        cg_h5_check(h5, path, rank, (const int64_t[]){ first, second }, &error),
        CELLGATE_BAD_FILE);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
    cg_h5_close(h5);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    assert_check_fails("layers/dense/vars/0", 2, 2, 3,
                       "is 3 x 2; the layer "
                       "needs 2 x 3");
    assert_check_fails("layers/dense/vars/0", 1, 6, 0, "has 2 axes");
    assert_check_fails("layers/dense/vars/9", 1, 6, 0, "has nothing at");
    assert_check_fails("layers/dense", 1, 6, 0, "is not a dataset");
    assert_check_fails("", 1, 6, 0, "is not a dataset");
}

/* All datasets together cannot hold more than the file. */
static void data_counted_again_and_again(void **state)
{
    cg_h5 *h5 = open_image();
    cellgate_status status = CELLGATE_OK;
    size_t checks = 0;

    (void)state;
    while (status == CELLGATE_OK && checks++ < image_size)
        status = cg_h5_check(h5, "layers/dense/vars/0", 2,
                             (const int64_t[]){ 3, 2 }, NULL);
    assert_int_equal(status, CELLGATE_BAD_FILE);
    assert_int_equal(checks, image_size / 24 + 1);
    cg_h5_close(h5);
}

enum { ROW = 4097 };

/* One dataset "w" of rows of ROW zeros, deflated in a single chunk, which may
   be larger than it is. */
static void assert_deflated(uint64_t rows, uint64_t chunk_rows,
                            cellgate_status status, const char *part)
{
    float *zeros = calloc(chunk_rows, ROW * sizeof *zeros);
    const h5_image_dataset datasets[] = {
        { "w", 2, { rows, ROW }, zeros, chunk_rows }, { .path = NULL }
    };
    const int64_t shape[2] = { (int64_t)rows, ROW };
    cellgate_error error = CELLGATE_ERROR_INIT;
    size_t size;
    unsigned char *made;
    cg_h5 *h5 = NULL;

    assert_non_null(zeros);
    made = h5_image(datasets, &size);
    free(zeros);
    assert_int_equal(cg_h5_open(made, size, "model.weights.h5", &h5, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_h5_check(h5, "w", 2, shape, &error), status);
    cg_h5_close(h5);
    free(made);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
}

/* 64 MiB are the most that may come of any file. */
static void bombs_are_refused(void **state)
{
    (void)state;
    assert_deflated(64, 64, CELLGATE_OK, "");
    assert_deflated(1, 64, CELLGATE_OK, "");
    assert_deflated(4096, 4096, CELLGATE_BAD_FILE, "decompression bomb");
    /* The same chunk, of which the dataset is a corner. */
    assert_deflated(1, 4096, CELLGATE_BAD_FILE, "more data than the file");
}

static void other_bytes_are_refused(void **state)
{
    static const char text[] = "\211HDF\r\n\032\nnot a file of this kind";
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_h5 *h5 = NULL;

    (void)state;
    assert_int_equal(
        cg_h5_open(text, sizeof text, "model.weights.h5", &h5, &error),
        CELLGATE_BAD_FILE);
    assert_non_null(strstr(error.text, "not a valid HDF5 file"));
    assert_int_equal(
        cg_h5_open(image, image_size / 2, "model.weights.h5", &h5, &error),
        CELLGATE_BAD_FILE);
    assert_null(h5);
    cg_h5_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_is_read),
        cmocka_unit_test(paths_are_found_or_not),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(data_counted_again_and_again),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(other_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, make_image, free_image);
}
