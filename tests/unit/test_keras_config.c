/* SPDX-License-Identifier: Apache-2.0 */
/* The zip of a .keras file, and what is in it beside the layers. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/model/model.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/keras_file.h"
#include "tests/unit/scratch_folder.h"

static const keras_weight weights[] = { LSTM_WEIGHTS("layers/lstm/cell", 3, 2),
                                        DENSE_WEIGHTS("layers/dense", 2, 1),
                                        { NULL, 0, { 0 } } };

static const char config[] = SEQUENTIAL(INPUT("x", "[null, 6, 3]") ", " LAYER(
    "LSTM", "l",
    ", 'units': 2") ", " LAYER("Dense", "d",
                               ", 'units': 1, 'activation': 'softmax'"));

/* Loads it, whatever comes of that; a model that loads is sound. */
static cellgate_status try(const void *bytes, size_t size, char *text)
{
    const char *path = scratch_write("damaged.keras", bytes, size);
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    const cellgate_status status = cellgate_model_load(path, &model, &error);

    if (status == CELLGATE_OK)
        assert_int_equal(strlen(cellgate_model_fingerprint(model)), 32);
    else
        assert_null(model);
    cellgate_model_destroy(model);
    if (text != NULL)
        strcpy(text, error.text);
    return status;
}

static void it_is_keras_of_a_version(void **state)
{
    cellgate_model *model;

    (void)state;
    assert_int_equal(keras_file_load(config, weights, &model, NULL),
                     CELLGATE_OK);
    assert_string_equal(cellgate_model_format(model), "keras");
    assert_string_equal(cellgate_model_format_version(model), "3.15.1");
    cellgate_model_destroy(model);
}

static void other_versions_are_refused(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;

    (void)state;
    assert_int_equal(
        cellgate_model_load(keras_file_write("4.0.0", config, weights), &model,
                            &error),
        CELLGATE_UNSUPPORTED);
    assert_non_null(strstr(error.text, "of Keras 4.0.0"));
    assert_non_null(strstr(error.text, "model.keras: "));
}

static void the_json_has_to_be_sound(void **state)
{
    (void)state;
    assert_keras_refuses("{'class_name': ", weights, CELLGATE_BAD_FILE,
                         "config.json:1:");
    assert_keras_refuses("[]", weights, CELLGATE_BAD_FILE,
                         "config.json is not a JSON object");
    assert_keras_refuses("{'class_name': 'a', 'class_name': 'b'}", weights,
                         CELLGATE_BAD_FILE, "duplicate");
    assert_keras_refuses("", weights, CELLGATE_BAD_FILE, "config.json:1:0");
}

/* Of any size it would take many times as much memory. */
static void the_json_has_a_limit(void **state)
{
    enum { SIZE = (1 << 24) + 1 };
    char *wide = malloc(SIZE + 1);

    (void)state;
    assert_non_null(wide);
    memset(wide, ' ', SIZE);
    wide[SIZE] = '\0';
    memcpy(wide, config, strlen(config));
    assert_keras_refuses(wide, weights, CELLGATE_BAD_FILE,
                         "config.json has 16777217 bytes; at most 16777216");
    wide[SIZE - 1] = '\0';
    memcpy(wide + SIZE - 3, "!", 1);
    assert_keras_refuses(wide, weights, CELLGATE_BAD_FILE, "config.json:1:");
    free(wide);
}

static void a_file_cut_anywhere(void **state)
{
    size_t size;
    unsigned char *bytes =
        read_whole_file(keras_file_write("3.0.0", config, weights), &size);

    (void)state;
    for (size_t cut = 0; cut < size; cut += 64)
        assert_int_not_equal(try(bytes, cut, NULL), CELLGATE_OK);
    assert_int_not_equal(try(bytes, size - 1, NULL), CELLGATE_OK);
    assert_int_equal(try(bytes, size, NULL), CELLGATE_OK);
    free(bytes);
}

/* Every bit of the zip's own structures, and some of the contents. */
static void a_file_with_a_bit_turned(void **state)
{
    size_t size, refused = 0, tried = 0;
    unsigned char *bytes =
        read_whole_file(keras_file_write("3.0.0", config, weights), &size);

    (void)state;
    for (size_t at = 0; at<size; at += at + 300> size || at < 60 ? 1 : 97) {
        const unsigned char old = bytes[at];

        bytes[at] ^= (unsigned char)(1u << (at % 8));
        refused += try(bytes, size, NULL) != CELLGATE_OK;
        tried++;
        bytes[at] = old;
    }
    /* Dates and attributes of members may change, data may not. */
    assert_in_range(refused, tried / 2, tried);
    free(bytes);
}

static void members_twice(void **state)
{
    size_t size;
    char text[512];
    unsigned char *bytes =
        read_whole_file(keras_file_write("3.0.0", config, weights), &size);
    size_t renamed = 0;

    /* Both in the member's header and in the directory. */
    (void)state;
    for (size_t i = 0; i + 13 < size; i++)
        if (memcmp(bytes + i, "metadata.json", 13) == 0) {
            memcpy(bytes + i, "config.json\0\0", 13);
            renamed++;
            /* The name is 11 long now; the rest goes to the extra field. */
            if (bytes[i - 30] == 'P' && bytes[i - 27] == 4) {
                bytes[i - 4] = 11;
                bytes[i - 2] = (unsigned char)(bytes[i - 2] + 2);
            } else {
                bytes[i - 18] = 11;
                bytes[i - 16] = (unsigned char)(bytes[i - 16] + 2);
            }
        }
    assert_int_equal(renamed, 2);
    assert_int_equal(try(bytes, size, text), CELLGATE_BAD_FILE);
    /* libzip itself may be the one to refuse it. */
    assert_true(strstr(text, "two members 'config.json'") != NULL ||
                strstr(text, "the zip is damaged") != NULL);
    free(bytes);
}

/* ---- Without memory ------------------------------------------------------ */

/* Of the libraries' own allocations none fails here: Jansson 2.14 crashes in
   json_loadb() when some of them do. */

static const char *attempt_path;

static cellgate_status load_attempt(void *context)
{
    cellgate_model *model = NULL;
    const cellgate_status status =
        cellgate_model_load(attempt_path, &model, NULL);

    (void)context;
    cellgate_model_destroy(model);
    return status;
}

static void each_allocation_fails_once(void **state)
{
    (void)state;
    attempt_path = keras_file_write("3.0.0", config, weights);
    assert_in_range(fail_each_allocation(load_attempt, NULL), 20, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_keras_of_a_version),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(the_json_has_to_be_sound),
        cmocka_unit_test(the_json_has_a_limit),
        cmocka_unit_test(a_file_cut_anywhere),
        cmocka_unit_test(a_file_with_a_bit_turned),
        cmocka_unit_test(members_twice),
        cmocka_unit_test(each_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
