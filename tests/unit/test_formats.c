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
#include "tests/unit/scratch_folder.h"

static void assert_refused(const char *path, cellgate_status status,
                           const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;

    assert_int_equal(cellgate_model_load(path, &model, &error), status);
    assert_null(model);
    assert_int_equal(error.status, status);
    if (strstr(error.text, part) == NULL ||
        strncmp(error.text, path, strlen(path)) != 0)
        fail_msg("%s", error.text);
    assert_int_equal(cellgate_model_load(path, &model, NULL), status);
}

#define assert_bytes_refused(name, bytes, status, part)                        \
    assert_refused(scratch_write(name, bytes, sizeof(bytes) - 1), status, part)

static void strangers_are_told_the_way_out(void **state)
{
    (void)state;
    assert_bytes_refused("a.h5", "\211HDF\r\n\032\n and more",
                         CELLGATE_BAD_FILE, "not a valid HDF5 file");
    assert_bytes_refused("a.pkl", "\200\004\225 and more", CELLGATE_UNSUPPORTED,
                         "a Python pickle: reading one can run any code");
    assert_bytes_refused("a.tflite", "\034\0\0\0TFL3 and more",
                         CELLGATE_UNSUPPORTED, "TensorFlow Lite");
    assert_bytes_refused("a.npy", "\223NUMPY\1\0 and more",
                         CELLGATE_UNSUPPORTED, "is it meant as an --input?");
    assert_bytes_refused("a.onnx", "\010\011\022\007pytorch",
                         CELLGATE_UNSUPPORTED, "an ONNX file");
    assert_bytes_refused("b.onnx", "\010\011\102\002\020\022 and more",
                         CELLGATE_UNSUPPORTED, "an ONNX file");
    assert_bytes_refused("a.txt", "some text of no use", CELLGATE_BAD_FILE,
                         "neither a Keras file (.keras, .h5, or the "
                         ".json of an architecture) nor a native");
    assert_bytes_refused("a.bin", "\010", CELLGATE_BAD_FILE, "neither");
    assert_bytes_refused("a.empty", "", CELLGATE_BAD_FILE, "the file is empty");
}

static void things_that_are_no_files(void **state)
{
    const char *folder = scratch_path("saved_model");
    char inside[1024];
    FILE *file;

    (void)state;
    assert_refused(scratch_path("not there"), CELLGATE_IO,
                   "cannot be opened: No such file");
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_refused(folder, CELLGATE_BAD_FILE, "a folder, and a model is one file");
    snprintf(inside, sizeof inside, "%s/saved_model.pb", folder);
    file = fopen(inside, "w");
    assert_non_null(file);
    fclose(file);
    assert_refused(folder, CELLGATE_UNSUPPORTED, "TensorFlow SavedModel");
    unlink(inside);
    rmdir(folder);
    assert_int_equal(mkfifo(scratch_path("fifo"), 0666), 0);
    assert_refused(scratch_path("fifo"), CELLGATE_BAD_FILE,
                   "not a regular file");
    unlink(scratch_path("fifo"));
}

static void a_zip_of_something_else(void **state)
{
    /* An empty archive with one member, stored, of no bytes. */
#define ZIP_OF(name)                                                           \
    "PK\3\4\24\0\0\0\0\0\0\0\41\0\0\0\0\0\0\0\0\0\0\0\0\0\10\0\0\0" name       \
    "PK\1\2\24\0\24\0\0\0\0\0\0\0\41\0\0\0\0\0\0\0\0\0\0\0\0\0\10\0\0\0\0\0"   \
    "\0\0\0\0\0\0\0\0\0\0\0\0" name                                            \
    "PK\5\6\0\0\0\0\1\0\1\0\66\0\0\0\46\0\0\0\0\0"
    (void)state;
    assert_bytes_refused("a.pt", ZIP_OF("data.pkl"), CELLGATE_UNSUPPORTED,
                         "this is a PyTorch file");
    assert_bytes_refused("a.npz", ZIP_OF("arr_.npy"), CELLGATE_UNSUPPORTED,
                         "this is a .npz file of arrays");
    assert_bytes_refused("a.zip", ZIP_OF("text.txt"), CELLGATE_BAD_FILE,
                         "it has no config.json");
    assert_bytes_refused("b.zip", "PK\3\4 and nothing of use",
                         CELLGATE_BAD_FILE, "the zip is damaged");
}

static void long_paths_leave_room_for_the_reason(void **state)
{
    char path[3000];
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;

    (void)state;
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(cellgate_model_load(path, &model, &error), CELLGATE_IO);
    assert_non_null(strstr(error.text, ": cannot be opened: "));
}

static void missing_arguments(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;

    (void)state;
    assert_int_equal(cellgate_model_load(NULL, &model, &error),
                     CELLGATE_INVALID);
    assert_int_equal(cellgate_model_load("a", NULL, NULL), CELLGATE_INVALID);
    assert_int_equal(cellgate_model_save(NULL, "a", &error), CELLGATE_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_are_told_the_way_out),
        cmocka_unit_test(things_that_are_no_files),
        cmocka_unit_test(a_zip_of_something_else),
        cmocka_unit_test(long_paths_leave_room_for_the_reason),
        cmocka_unit_test(missing_arguments),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
