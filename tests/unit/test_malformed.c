/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are cut, damaged or made to do harm: each ends in a status and a
 * text, or loads soundly, and what is allocated for it is bounded by its size.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zip.h>

#include "cellgate/cellgate.h"
#include "runtime/config/settings.h"
#include "tests/unit/damage.h"
#include "tests/unit/heap_watch.h"
#include "tests/unit/keras_file.h"
#include "tests/unit/scratch_folder.h"

/*
 * Bytes on the heap at once, for a file of any content that is not packed: JSON
 * in memory takes up to 50 times its text, libraries have buffers of their own,
 * and a configuration is read into 1 MiB. The mapping of a native file is none
 * of it.
 */
#define HEAP_FACTOR 64
#define HEAP_BASE ((size_t)1100 << 10)
/* What a packed file may unpack to, whatever its size: 64 MiB of weights, once
   as they are and once as floats, and 1 MiB of JSON. */
#define HEAP_UNPACKED ((size_t)192 << 20)

#define DAMAGES 500 /* a file */

#define FIXTURE(name) CELLGATE_FIXTURES "/" name

/* ---- One file ------------------------------------------------------------ */

typedef cellgate_status (*action)(const char *path, cellgate_error *error);

static cellgate_status load_model(const char *path, cellgate_error *error)
{
    cellgate_model *model = NULL;
    const cellgate_status status = cellgate_model_load(path, &model, error);

    if (status == CELLGATE_OK)
        assert_int_equal(strlen(cellgate_model_fingerprint(model)), 32);
    else
        assert_null(model);
    cellgate_model_destroy(model);
    return status;
}

static cellgate_status load_arrays(const char *path, cellgate_error *error)
{
    cellgate_arrays *arrays = NULL;
    const cellgate_status status = cellgate_arrays_read(path, &arrays, error);

    assert_int_equal(status == CELLGATE_OK, arrays != NULL);
    cellgate_arrays_destroy(arrays);
    return status;
}

static cellgate_status load_config(const char *path, cellgate_error *error)
{
    cg_config *config = NULL;
    const cellgate_status status = cg_config_read(path, &config, error);

    assert_int_equal(status == CELLGATE_OK, config != NULL);
    cg_config_destroy(config);
    return status;
}

static bool may_be(cellgate_status status)
{
    return status == CELLGATE_OK || status == CELLGATE_BAD_FILE ||
           status == CELLGATE_UNSUPPORTED || status == CELLGATE_BAD_CONFIG ||
           status == CELLGATE_BAD_SHAPE;
}

/* `what` is for messages. */
static cellgate_status try(action act, const char *what, const char *path,
                           size_t most)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_status status;

    heap_watch_begin(0);
    status = act(path, &error);
    (void)heap_watch_end();
    if (!may_be(status))
        fail_msg("%s: %s: %s", what, cellgate_status_name(status), error.text);
    if (status != CELLGATE_OK && strstr(error.text, path) != error.text)
        fail_msg("%s: the text does not begin with the path: %s", what,
                 error.text);
    if (heap_watch_live() != 0)
        fail_msg("%s: %zu bytes leak", what, heap_watch_live());
    if (heap_watch_peak() > most)
        fail_msg("%s: %zu bytes allocated; at most %zu are expected", what,
                 heap_watch_peak(), most);
    return status;
}

static cellgate_status try_bytes(action act, const char *what,
                                 const unsigned char *bytes, size_t size)
{
    return try(act, what, scratch_write("damaged", bytes, size),
               HEAP_FACTOR * size + HEAP_BASE);
}

/* ---- Cut and damaged ----------------------------------------------------- */

/* Every 64th byte, and every byte of a small file. Returns how many load. */
static size_t cut_everywhere(action act, const unsigned char *bytes,
                             size_t size)
{
    const size_t step = size <= 2048 ? 1 : 64;
    size_t sound = 0;

    for (size_t cut = 0; cut < size; cut += step) {
        char what[64];

        (void)snprintf(what, sizeof what, "cut to %zu bytes", cut);
        sound += try_bytes(act, what, bytes, cut) == CELLGATE_OK;
    }
    return sound;
}

/* Returns how many of DAMAGES are refused. */
static size_t damage_often(action act, const unsigned char *bytes, size_t size,
                           bool reseal)
{
    unsigned char *copy = malloc(size);
    size_t refused = 0;

    assert_non_null(copy);
    for (unsigned number = 0; number < DAMAGES; number++) {
        char what[64];

        memcpy(copy, bytes, size);
        damage_bytes(copy, size, number);
        if (reseal)
            damage_reseal_zip(copy, size);
        (void)snprintf(what, sizeof what, "damage %u", number);
        refused += try_bytes(act, what, copy, size) != CELLGATE_OK;
    }
    free(copy);
    return refused;
}

/* `whole`: no part of it is a file too. */
static void mistreat(action act, const char *path, bool whole, bool reseal)
{
    size_t size, sound;
    unsigned char *bytes = read_whole_file(path, &size);

    /* What libraries keep from the first time is no leak. */
    assert_int_equal(act(path, NULL), CELLGATE_OK);
    assert_int_equal(try_bytes(act, "as it is", bytes, size), CELLGATE_OK);
    sound = cut_everywhere(act, bytes, size);
    if (whole)
        assert_int_equal(sound, 0);
    assert_in_range(damage_often(act, bytes, size, false), 1, DAMAGES);
    if (reseal)
        assert_in_range(damage_often(act, bytes, size, true), 1, DAMAGES);
    free(bytes);
}

static void configurations(void **state)
{
    (void)state;
    mistreat(load_config, CELLGATE_FIXTURES "/../fuzz/corpus/ini/all_keys",
             false, false);
}

static void npy(void **state)
{
    (void)state;
    mistreat(load_arrays, FIXTURE("npy/f4.npy"), true, false);
    mistreat(load_arrays, FIXTURE("npy/fortran_big.npy"), true, false);
    mistreat(load_arrays, FIXTURE("npy/version3.npy"), true, false);
}

static void npz(void **state)
{
    (void)state;
    mistreat(load_arrays, FIXTURE("npy/stored.npz"), true, true);
    mistreat(load_arrays, FIXTURE("npy/deflated.npz"), true, false);
}

static void native(void **state)
{
    const char *path = scratch_path("model.safetensors");
    cellgate_model *model = NULL;

    (void)state;
    assert_int_equal(cellgate_model_load(FIXTURE("keras/encoder_decoder.keras"),
                                         &model, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_model_save(model, path, NULL), CELLGATE_OK);
    cellgate_model_destroy(model);
    mistreat(load_model, path, true, false);
}

static void keras(void **state)
{
    (void)state;
    mistreat(load_model, FIXTURE("keras/lstm_one_step.keras"), true, true);
    mistreat(load_model, FIXTURE("keras/lstm_bfloat16_weights.keras"), true,
             true);
}

/* The datasets of these have no checksum. */
static void hdf5(void **state)
{
    (void)state;
    mistreat(load_model, FIXTURE("keras_old/k1.2.2_stacked.h5"), true, false);
    mistreat(load_model, FIXTURE("keras_old/tf2.15.1_stacked.h5"), true, false);
}

/* ---- Made to do harm ----------------------------------------------------- */

/* A zip with one deflated member of `size` times a byte. */
static const char *write_bomb(const char *name, const char *member,
                              const void *head, size_t head_size, char fill,
                              size_t size)
{
    const char *path = scratch_path(name);
    char *bytes = malloc(size);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    zip_source_t *source;
    zip_int64_t number;

    assert_non_null(bytes);
    assert_non_null(zip);
    memset(bytes, fill, size);
    memcpy(bytes, head, head_size);
    source = zip_source_buffer(zip, bytes, size, 0);
    number = zip_file_add(zip, member, source, 0);
    assert_true(number >= 0);
    source = zip_source_buffer(zip, "{\"keras_version\": \"3.0.0\"}", 26, 0);
    assert_true(zip_file_add(zip, "metadata.json", source, 0) >= 0);
    assert_int_equal(zip_close(zip), 0);
    free(bytes);
    return path;
}

/* Arrays of `size` spaces in one archive; each alone may be in order. */
static const char *write_arrays(const char *name, size_t count, char *array,
                                size_t size)
{
    const char *path = scratch_path(name);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);

    assert_non_null(zip);
    for (size_t i = 0; i < count; i++) {
        const char member[] = { (char)('a' + i), '.', 'n', 'p', 'y', 0 };

        assert_true(zip_file_add(zip, member,
                                 zip_source_buffer(zip, array, size, 0),
                                 0) >= 0);
    }
    assert_int_equal(zip_close(zip), 0);
    return path;
}

static void many_arrays_are_a_bomb_too(void **state)
{
    static const char head[] =
        "\223NUMPY\1\0v\0{'descr': '|u1', "
        "'fortran_order': False, 'shape': (41942912,), }";
    const size_t size = 40 << 20;
    char *array = malloc(size);
    cellgate_arrays *arrays = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_non_null(array);
    memset(array, ' ', size);
    memcpy(array, head, sizeof head - 1);
    assert_int_equal(
        cellgate_arrays_read(write_arrays("one.npz", 1, array, size), &arrays,
                             &error),
        CELLGATE_OK);
    cellgate_arrays_destroy(arrays);
    arrays = NULL;
    assert_int_equal(try(load_arrays, "two arrays of spaces",
                         write_arrays("two.npz", 2, array, size),
                         size + HEAP_BASE),
                     CELLGATE_BAD_FILE);
    assert_int_equal(
        cellgate_arrays_read(scratch_path("two.npz"), &arrays, &error),
        CELLGATE_BAD_FILE);
    assert_non_null(strstr(error.text, "array 'b': unpacks to 41943040 bytes"));
    assert_non_null(strstr(error.text, "numpy.savez()"));
    free(array);
}

static void bombs(void **state)
{
    static const char array[] =
        "\223NUMPY\1\0v\0{'descr': '|u1', "
        "'fortran_order': False, 'shape': (134217600,), }";

    (void)state;
    /* A thousand to one is what deflate can do. */
    assert_int_equal(try(load_arrays, "an array of spaces",
                         write_bomb("bomb.npz", "x.npy", array,
                                    sizeof array - 1, ' ', 1 << 27),
                         HEAP_BASE),
                     CELLGATE_BAD_FILE);
    assert_int_not_equal(
        try(load_model, "2^26 spaces for a configuration",
            write_bomb("bomb.keras", "config.json", "{", 1, ' ', 1 << 26),
            HEAP_BASE),
        CELLGATE_OK);
    /* As much as is unpacked of anything: 2^20 bytes of what costs most. */
    assert_int_not_equal(
        try(load_model, "2^20 brackets",
            write_bomb("deep.keras", "config.json", "{\"a\":", 5, '[', 1 << 20),
            HEAP_UNPACKED),
        CELLGATE_OK);
}

/* ---- Small files that ask for much --------------------------------------- */

static void refuses(const char *config, const keras_weight *weights,
                    const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    const char *path = keras_file_write("3.15.1", config, weights);

    assert_int_equal(try(load_model, part, path, HEAP_UNPACKED),
                     CELLGATE_BAD_FILE);
    assert_int_equal(cellgate_model_load(path, &model, &error),
                     CELLGATE_BAD_FILE);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s lacks: %s", error.text, part);
}

/* One number of the file, for each of 2^28 features that it only speaks of. */
static void a_number_stretched(void **state)
{
    static const keras_weight none[] = { { NULL, 0, { 0 } } };

    (void)state;
    refuses(SEQUENTIAL(INPUT("x", "[null, 268435456]") ", " LAYER(
                "Normalization", "n",
                ", 'axis': -1, 'mean': [0.5], 'variance': [2.0]")),
            none, "far more than the file has");
}

/* Each group of a convolution becomes nodes of its own. */
static void a_group_a_feature(void **state)
{
    static const keras_weight weights[] = {
        { "layers/conv1d/vars/0", 3, { 1, 1, 60000 } }, { NULL, 0, { 0 } }
    };

    (void)state;
    refuses(SEQUENTIAL(INPUT("x", "[null, 2, 60000]") ", " LAYER(
                "Conv1D", "c",
                ", 'filters': 60000, 'kernel_size': [1], 'groups': 60000, "
                "'use_bias': false, 'strides': [1], 'padding': 'valid'")),
            weights, "more than 65536 operations");
}

/* Sizes that a header claims, and the file has not. */
static void absurd_shapes(void **state)
{
    static const char *const shapes[] = { "(9223372036854775807,)",
                                          "(4611686018427387904, 4)",
                                          "(0, 9223372036854775807)",
                                          "(1, 1, 1, 1, 1, 1, 1, 1, 1)",
                                          "(-1,)",
                                          "(18446744073709551616,)",
                                          "(4294967296, 4294967296)",
                                          "(1000000000,)" };

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char text[256];
        const int length =
            snprintf(text, sizeof text,
                     "\223NUMPY%c%cv%c{'descr': '<f4', 'fortran_order': False, "
                     "'shape': %s, }",
                     1, 0, 0, shapes[i]);

        memset(text + length, ' ', 128 - (size_t)length);
        text[127] = '\n';
        assert_int_not_equal(
            try_bytes(load_arrays, shapes[i], (unsigned char *)text, 132),
            CELLGATE_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations),
        cmocka_unit_test(npy),
        cmocka_unit_test(npz),
        cmocka_unit_test(native),
        cmocka_unit_test(keras),
        cmocka_unit_test(hdf5),
        cmocka_unit_test(bombs),
        cmocka_unit_test(many_arrays_are_a_bomb_too),
        cmocka_unit_test(absurd_shapes),
        cmocka_unit_test(a_number_stretched),
        cmocka_unit_test(a_group_a_feature),
    };

    /* Else the C library keeps the zone's name anew with every date. */
    if (setenv("TZ", "UTC0", 1) != 0)
        return EXIT_FAILURE;
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
