/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/formats/npy.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Parses a copy of exactly that size, so that a sanitizer sees any overrun. */
static cellgate_status parse(const char *text, cg_npy_header *header,
                             cellgate_error *error)
{
    size_t length = strlen(text);
    char *copy = malloc(length > 0 ? length : 1);
    cellgate_status status;

    assert_non_null(copy);
    memcpy(copy, text, length);
    status = cg_npy_parse_header(copy, length, "FILE", header, error);
    free(copy);
    return status;
}

static cg_npy_header parsed(const char *text)
{
    cg_npy_header header;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (parse(text, &header, &error) != CELLGATE_OK)
        fail_msg("%s: %s", text, error.text);
    return header;
}

static void as_numpy_writes_it(void **state)
{
    cg_npy_header header = parsed("{'descr': '<f4', 'fortran_order': False, "
                                  "'shape': (2, 3), }             \n");

    (void)state;
    assert_int_equal(header.dtype, CELLGATE_F32);
    assert_int_equal(header.rank, 2);
    assert_int_equal(header.shape[0], 2);
    assert_int_equal(header.shape[1], 3);
    assert_int_equal(header.shape[2], 0);
    assert_false(header.swapped);
    assert_false(header.fortran);
}

/* Any order, quotes and spacing of the same dict. */
static void other_spellings(void **state)
{
    static const char *const texts[] = {
        "{\"shape\":(2,3),\"descr\":\">i8\",\"fortran_order\":True}",
        "{ 'fortran_order' : True , 'shape' : ( 2 , 3 , ) , 'descr' : '>i8' }",
        "{'descr': '>i8', 'fortran_order': True, 'shape': (2L, 3L), }\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        cg_npy_header header = parsed(texts[i]);
        assert_int_equal(header.dtype, CELLGATE_I64);
        assert_true(header.swapped);
        assert_true(header.fortran);
        assert_int_equal(header.rank, 2);
        assert_int_equal(header.shape[1], 3);
    }
}

static void each_dtype(void **state)
{
    static const struct {
        const char *descr;
        int32_t dtype;
        int swapped;
    } cases[] = {
        { "<f2", CELLGATE_F16, 0 }, { ">f2", CELLGATE_F16, 1 },
        { "<f4", CELLGATE_F32, 0 }, { ">f4", CELLGATE_F32, 1 },
        { "<f8", CELLGATE_F64, 0 }, { ">f8", CELLGATE_F64, 1 },
        { "<i4", CELLGATE_I32, 0 }, { ">i4", CELLGATE_I32, 1 },
        { "<i8", CELLGATE_I64, 0 }, { ">i8", CELLGATE_I64, 1 },
        { "|u1", CELLGATE_U8, 0 },  { "|b1", CELLGATE_BOOL, 0 },
        { ">u1", CELLGATE_U8, 0 },  { "<b1", CELLGATE_BOOL, 0 },
        { "|i1", CELLGATE_I32, 0 }, { ">i1", CELLGATE_I32, 0 },
        { "<i2", CELLGATE_I32, 0 }, { ">i2", CELLGATE_I32, 1 },
        { "<u2", CELLGATE_I32, 0 }, { ">u4", CELLGATE_I64, 1 },
        { "<u8", CELLGATE_I64, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[100];
        cg_npy_header header;
        (void)snprintf(text, sizeof text,
                       "{'descr': '%s', 'fortran_order': False, 'shape': ()}",
                       cases[i].descr);
        header = parsed(text);
        assert_int_equal(header.dtype, cases[i].dtype);
        assert_int_equal(header.swapped, cases[i].swapped);
        assert_int_equal(header.rank, 0);
    }
}

static void expect(const char *text, cellgate_status status, const char *part)
{
    cg_npy_header header;
    cg_npy_header before;
    cellgate_error error = CELLGATE_ERROR_INIT;

    memset(&header, 0x5a, sizeof header);
    before = header;
    if (parse(text, &header, &error) != status)
        fail_msg("%s: not refused, or as \"%s\"", text, error.text);
    assert_memory_equal(&header, &before, sizeof header);
    if (strstr(error.text, "FILE: ") != error.text ||
        strstr(error.text, part) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", text, error.text, part);
}

#define D "'descr': '<f4'"
#define F "'fortran_order': False"
#define S "'shape': (2, 3)"

static void malformed_dicts(void **state)
{
    (void)state;
    expect("", CELLGATE_BAD_FILE, "the header ends where '{'");
    expect("(" D ")", CELLGATE_BAD_FILE, "'(' where '{'");
    expect("{}", CELLGATE_BAD_FILE, "lacks 'descr'");
    expect("{" D "," S "}", CELLGATE_BAD_FILE, "lacks 'fortran_order'");
    expect("{" D "," F "}", CELLGATE_BAD_FILE, "lacks 'shape'");
    expect("{" F "," S "}", CELLGATE_BAD_FILE, "lacks 'descr'");
    expect("{" D "," F "," S "," D "}", CELLGATE_BAD_FILE, "'descr' twice");
    expect("{" D "," F "," S ", 'more': 1}", CELLGATE_BAD_FILE,
           "unknown key 'more'");
    expect("{" D "," F "," S, CELLGATE_BAD_FILE, "ends");
    expect("{" D " " F "," S "}", CELLGATE_BAD_FILE, "',' or '}'");
    expect("{" D ",," F "," S "}", CELLGATE_BAD_FILE, "a key");
    expect("{," D "," F "," S "}", CELLGATE_BAD_FILE, "a key");
    expect("{" D "," F "," S "} x", CELLGATE_BAD_FILE, "'x' where the end");
    expect("{" D "," F "," S "}\t", CELLGATE_BAD_FILE, "byte 0x09");
    expect("{descr: '<f4'," F "," S "}", CELLGATE_BAD_FILE, "a key");
    expect("{'descr' '<f4'," F "," S "}", CELLGATE_BAD_FILE, "':'");
    expect("{'descr", CELLGATE_BAD_FILE, "the end of a string");
    expect("{'de\\x73cr': '<f4'," F "," S "}", CELLGATE_BAD_FILE,
           "a plain character");
    expect("{'\xc3\xa9': 1," D "," F "," S "}", CELLGATE_BAD_FILE, "byte 0xc3");
    expect("{" D "," S ",'fortran_order': 0}", CELLGATE_BAD_FILE,
           "True or False");
    expect("{" D "," S ",'fortran_order': true}", CELLGATE_BAD_FILE,
           "True or False");
    expect("{" D "," S ",'fortran_order': TrueX}", CELLGATE_BAD_FILE, "','");
    expect("{" F "," S ",'descr': None}", CELLGATE_BAD_FILE, "a dtype");
}

static void malformed_shapes(void **state)
{
    static const struct {
        const char *shape;
        const char *part;
    } cases[] = {
        { "[2, 3]", "a shape such as" },
        { "2", "a shape such as" },
        { "(2)", "',' after the only axis" },
        { "(2 3)", "',' or ')'" },
        { "(2,,3)", "an axis" },
        { "(,)", "an axis" },
        { "(2, -3)", "negative" },
        { "(-1,)", "negative" },
        { "(2.0, 3)", "',' or ')'" },
        { "(0x2,)", "',' or ')'" },
        { "(02,)", "an axis" },
        { "(1_0,)", "',' or ')'" },
        { "(None,)", "an axis" },
        { "(9223372036854775808,)", "beyond 64 bits" },
        { "(99999999999999999999999,)", "beyond 64 bits" },
        { "(2, 3", "',' or ')'" },
        { "(2LL,)", "',' or ')'" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "{" D ", " F ", 'shape': %s}",
                       cases[i].shape);
        if (strcmp(cases[i].shape, "(2, 3") == 0)
            text[strlen(text) - 1] = '\0';
        expect(text, CELLGATE_BAD_FILE,
               strcmp(cases[i].shape, "(2, 3") == 0 ? "ends where"
                                                    : cases[i].part);
    }
}

static void what_is_not_taken(void **state)
{
    static const char *const descrs[] = {
        "'|i2'", "'<i3'", "'<c8'", "'<U3'",  "'|S3'", "'<M8[D]'", "'f4'",
        "'=f4'", "'|f4'", "''",    "'<f16'", "'<V2'", "'<f44'",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(descrs); i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "{'descr': %s, " F ", " S "}",
                       descrs[i]);
        expect(text, CELLGATE_UNSUPPORTED, "astype()");
    }
    expect("{'descr': '|O', " F ", " S "}", CELLGATE_UNSUPPORTED, "never read");
    expect("{'descr': [('a', '<f4')], " F ", " S "}", CELLGATE_UNSUPPORTED,
           "structured");
    expect("{" D ", " F ", 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1)}",
           CELLGATE_UNSUPPORTED, "more than 8 axes");
    (void)parsed("{" D ", " F ", 'shape': (1, 1, 1, 1, 1, 1, 1, 1)}");
}

/* Every beginning of a header is refused, and none is read past its end. */
static void cut_anywhere(void **state)
{
    static const char text[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_npy_header header;

    (void)state;
    for (size_t length = 0; length < sizeof text - 1; length++) {
        char cut[sizeof text];
        memcpy(cut, text, length);
        cut[length] = '\0';
        assert_int_equal(parse(cut, &header, &error), CELLGATE_BAD_FILE);
    }
}

/* Any one byte replaced by any other: an answer, whatever it is. */
static void changed_anywhere(void **state)
{
    static const char text[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    cg_npy_header header;

    (void)state;
    for (size_t at = 0; at < sizeof text - 1; at++)
        for (int byte = 1; byte < 256; byte++) {
            char changed[sizeof text];
            cellgate_status status;
            memcpy(changed, text, sizeof text);
            changed[at] = (char)byte;
            status = parse(changed, &header, NULL);
            assert_true(status == CELLGATE_OK || status == CELLGATE_BAD_FILE ||
                        status == CELLGATE_UNSUPPORTED);
        }
}

static void written_headers_read_back(void **state)
{
    static const int32_t dtypes[] = { CELLGATE_F16, CELLGATE_F32, CELLGATE_F64,
                                      CELLGATE_I32, CELLGATE_I64, CELLGATE_U8,
                                      CELLGATE_BOOL };

    (void)state;
    for (size_t i = 0; i < COUNT(dtypes); i++)
        for (int32_t rank = 0; rank <= CELLGATE_MAX_RANK; rank++) {
            cellgate_tensor tensor = { .struct_size = sizeof tensor,
                                       .dtype = dtypes[i],
                                       .rank = rank };
            char bytes[CG_NPY_WRITTEN_MAX];
            cg_npy_header header;
            size_t size;
            for (int32_t axis = 0; axis < rank; axis++)
                tensor.shape[axis] = INT64_MAX - axis;
            size = cg_npy_format_header(&tensor, bytes);
            assert_true(size > 0 && size <= sizeof bytes && size % 64 == 0);
            assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
            assert_int_equal((unsigned char)bytes[8] | (unsigned char)bytes[9]
                                                           << 8,
                             size - 10);
            assert_int_equal(bytes[size - 1], '\n');
            assert_int_equal(cg_npy_parse_header(bytes + 10, size - 10, "FILE",
                                                 &header, NULL),
                             CELLGATE_OK);
            assert_int_equal(header.dtype, dtypes[i]);
            assert_int_equal(header.rank, rank);
            assert_false(header.swapped || header.fortran);
            assert_memory_equal(header.shape, tensor.shape,
                                sizeof header.shape);
        }
}

static void bfloat16_has_no_header(void **state)
{
    cellgate_tensor tensor = { .struct_size = sizeof tensor,
                               .dtype = CELLGATE_BF16 };
    char bytes[CG_NPY_WRITTEN_MAX];

    (void)state;
    assert_int_equal(cg_npy_format_header(&tensor, bytes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_numpy_writes_it),
        cmocka_unit_test(other_spellings),
        cmocka_unit_test(each_dtype),
        cmocka_unit_test(malformed_dicts),
        cmocka_unit_test(malformed_shapes),
        cmocka_unit_test(what_is_not_taken),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(changed_anywhere),
        cmocka_unit_test(written_headers_read_back),
        cmocka_unit_test(bfloat16_has_no_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
