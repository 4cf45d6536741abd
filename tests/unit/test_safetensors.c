/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/formats/safetensors.h"

/* An image of a header, in which ' stands for ", and `data` zero bytes. */
static unsigned char *make(const char *header, size_t data, uint64_t *size)
{
    const uint64_t length = strlen(header);
    unsigned char *image = calloc(1, 8 + length + data);

    assert_non_null(image);
    memcpy(image, &length, 8);
    memcpy(image + 8, header, length);
    for (size_t i = 8; i < 8 + length; i++)
        if (image[i] == '\'')
            image[i] = '"';
    *size = 8 + length + data;
    return image;
}

static void assert_refused(const char *header, size_t data, const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_safetensors out;
    uint64_t size;
    unsigned char *image = make(header, data, &size);

    assert_int_equal(cg_safetensors_read(image, size, &out, &error),
                     CELLGATE_BAD_FILE);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
    free(image);
}

static void tensors_are_found(void **state)
{
    uint64_t size;
    unsigned char *image =
        make("{'__metadata__': {'format': 'pt'}, "
             "'b': {'dtype': 'U8', 'shape': [3], 'data_offsets': [24, 27]}, "
             "'a': {'dtype': 'F32', 'shape': [2, 3], 'data_offsets': [0, 24]}, "
             "'none': {'dtype': 'F64', 'shape': [0, 5], 'data_offsets': "
             "[24, 24]}, "
             "'one': {'dtype': 'BF16', 'shape': [], 'data_offsets': [27, 29]}}"
             "   ",
             29, &size);
    cg_safetensors out;
    const cg_safetensor *a;

    (void)state;
    assert_int_equal(cg_safetensors_read(image, size, &out, NULL), CELLGATE_OK);
    assert_int_equal(out.count, 4);
    a = cg_safetensors_find(&out, "a");
    assert_non_null(a);
    assert_string_equal(a->dtype, "F32");
    assert_int_equal(a->rank, 2);
    assert_int_equal(a->shape[1], 3);
    assert_ptr_equal(a->data, image + size - 29);
    assert_int_equal(cg_safetensors_find(&out, "one")->size, 2);
    assert_null(cg_safetensors_find(&out, "c"));
    assert_string_equal(
        json_string_value(json_object_get(out.metadata, "format")), "pt");
    cg_safetensors_finish(&out);
    free(image);
}

static void no_tensors_at_all(void **state)
{
    uint64_t size;
    unsigned char *image = make("{}", 0, &size);
    cg_safetensors out;

    (void)state;
    assert_int_equal(cg_safetensors_read(image, size, &out, NULL), CELLGATE_OK);
    assert_int_equal(out.count, 0);
    assert_null(cg_safetensors_find(&out, "a"));
    assert_null(out.metadata);
    cg_safetensors_finish(&out);
    free(image);
}

#define A(dtype, shape, begin, end)                                            \
    "'a': {'dtype': '" dtype "', 'shape': " shape ", 'data_offsets': [" begin  \
    ", " end "]}"

static void wrong_headers_are_refused(void **state)
{
    (void)state;
    assert_refused("{" A("F32", "[2]", "0", "8"), 8, "the header:1:");
    assert_refused(
        "{" A("F32", "[2]", "0", "8") ", " A("F32", "[2]", "0", "8") "}", 8,
        "duplicate");
    assert_refused("{" A("F32", "[2]", "0", "12") "}", 12, "do not fit");
    assert_refused("{" A("F32", "[2]", "4", "12") "}", 12, "gap before it");
    assert_refused("{" A("F32", "[2]", "0", "8") "}", 12,
                   "4 bytes at the end belong to no tensor");
    assert_refused("{" A("F32", "[2]", "0", "8") "}", 4, "out of range");
    assert_refused("{" A("F32", "[2]", "8", "0") "}", 8, "out of range");
    assert_refused("{" A("F32", "[2]", "-8", "0") "}", 8, "out of range");
    assert_refused("{" A("F32", "[2]", "0", "8.0") "}", 8, "out of range");
    assert_refused("{" A("Q4", "[2]", "0", "8") "}", 8, "dtype is not known");
    assert_refused("{" A("F32", "[-2]", "0", "8") "}", 8, "not possible");
    assert_refused("{" A("F32", "[2.0]", "0", "8") "}", 8, "not possible");
    assert_refused("{" A("F32", "[4294967296, 4294967296]", "0", "8") "}", 8,
                   "not possible");
    assert_refused("{" A("F32", "[1,1,1,1,1,1,1,1,2]", "0", "8") "}", 8,
                   "at most 8");
    assert_refused("{" A("F32", "2", "0", "8") "}", 8, "at most 8");
    assert_refused("{'a': {'dtype': 'F32', 'shape': [2]}}", 8, "alone");
    assert_refused("{'a': 7}", 8, "dtype is not known");
    assert_refused("{'__metadata__': {'a': 7}}", 0, "'a' is not a string");
    assert_refused("{'__metadata__': 7}", 0, "not an object");
}

static void overlaps_are_refused(void **state)
{
    (void)state;
    assert_refused(
        "{" A("F32", "[2]", "0", "8") ", 'b': {'dtype': 'F32', 'shape': [2], "
                                      "'data_offsets': [4, 12]}}",
        12, "overlaps");
    assert_refused(
        "{" A("F32", "[2]", "0", "8") ", 'b': {'dtype': 'F32', 'shape': [2], "
                                      "'data_offsets': [0, 8]}}",
        8, "overlaps");
}

static void other_files_are_not_its_own(void **state)
{
    static const unsigned char text[] = "something else, not short";
    static const unsigned char large[] = "\377\377\377\377\377\0\0\0{}";
    static const unsigned char cut[] = "\20\0\0\0\0\0\0\0{}";
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_safetensors out;

    (void)state;
    assert_int_equal(cg_safetensors_read(text, sizeof text, &out, NULL),
                     CELLGATE_NOT_FOUND);
    assert_int_equal(cg_safetensors_read(text, 3, &out, NULL),
                     CELLGATE_NOT_FOUND);
    assert_int_equal(cg_safetensors_read(large, sizeof large, &out, NULL),
                     CELLGATE_NOT_FOUND);
    assert_int_equal(cg_safetensors_read(cut, 10, &out, &error),
                     CELLGATE_BAD_FILE);
    assert_non_null(strstr(error.text, "cut short"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found),
        cmocka_unit_test(no_tensors_at_all),
        cmocka_unit_test(wrong_headers_are_refused),
        cmocka_unit_test(overlaps_are_refused),
        cmocka_unit_test(other_files_are_not_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
