/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/npy.h"

#include <inttypes.h>

#include "cellgate/cellgate.h"
#include "cellgate/plugin.h"

/* The dtypes taken, by NumPy's code without the byte order. */
static const struct {
    char code[3];
    int32_t dtype;
    cg_npy_stored stored;
} CODES[] = {
    { "f2", CELLGATE_F16, CG_NPY_AS_IS },
    { "f4", CELLGATE_F32, CG_NPY_AS_IS },
    { "f8", CELLGATE_F64, CG_NPY_AS_IS },
    { "i4", CELLGATE_I32, CG_NPY_AS_IS },
    { "i8", CELLGATE_I64, CG_NPY_AS_IS },
    { "u1", CELLGATE_U8, CG_NPY_AS_IS },
    { "b1", CELLGATE_BOOL, CG_NPY_AS_IS },
    /* Not written, so they come after those that are. */
    { "i1", CELLGATE_I32, CG_NPY_I8 },
    { "i2", CELLGATE_I32, CG_NPY_I16 },
    { "u2", CELLGATE_I32, CG_NPY_U16 },
    { "u4", CELLGATE_I64, CG_NPY_U32 },
    { "u8", CELLGATE_I64, CG_NPY_U64 },
};

#define CODE_COUNT (sizeof CODES / sizeof CODES[0])
#define DTYPES_TAKEN "float16, 32 or 64, int8 to 64, uint8 to 64 or bool"

/* ---- Parsing ----------------------------------------------------------- */

/* A place in the header; *error is filled where parsing stops. */
typedef struct parser {
    const char *at;
    const char *end;
    const char *where;
    cellgate_error *error;
} parser;

static cellgate_status expected(const parser *in, const char *what)
{
    if (in->at >= in->end)
        return cellgate_fail(in->error, CELLGATE_BAD_FILE,
                             "%s: the header ends where %s was expected",
                             in->where, what);
    if (*in->at < ' ' || *in->at > '~')
        return cellgate_fail(in->error, CELLGATE_BAD_FILE,
                             "%s: the header has byte 0x%02x where %s was "
                             "expected",
                             in->where, (unsigned)(unsigned char)*in->at, what);
    return cellgate_fail(in->error, CELLGATE_BAD_FILE,
                         "%s: the header has '%c' where %s was expected",
                         in->where, *in->at, what);
}

static void skip_spaces(parser *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n'))
        in->at++;
}

/* Whether `c` comes next, after spaces; it is taken then. */
static int take(parser *in, char c)
{
    skip_spaces(in);
    if (in->at >= in->end || *in->at != c)
        return 0;
    in->at++;
    return 1;
}

/* Whether `word` comes next, after spaces, as a whole; it is taken then. */
static int take_word(parser *in, const char *word)
{
    size_t length = strlen(word);

    skip_spaces(in);
    if ((size_t)(in->end - in->at) < length ||
        memcmp(in->at, word, length) != 0)
        return 0;
    in->at += length;
    return 1;
}

/* A string in either quotes, without escapes: the names and codes have none. */
static cellgate_status parse_string(parser *in, const char *what,
                                    const char **text, size_t *length)
{
    char quote;

    skip_spaces(in);
    if (in->at >= in->end || (*in->at != '\'' && *in->at != '"'))
        return expected(in, what);
    quote = *in->at++;
    *text = in->at;
    while (in->at < in->end && *in->at != quote) {
        if (*in->at < ' ' || *in->at > '~' || *in->at == '\\')
            return expected(in, "a plain character");
        in->at++;
    }
    *length = (size_t)(in->at - *text);
    if (in->at >= in->end)
        return expected(in, "the end of a string");
    in->at++;
    return CELLGATE_OK;
}

/* "<f4", "|b1": byte order, kind, bytes an element. */
static cellgate_status parse_descr(parser *in, cg_npy_header *header)
{
    const char *text = NULL;
    size_t length = 0;
    cellgate_status status;

    skip_spaces(in);
    if (in->at < in->end && *in->at == '[')
        return cellgate_refuse(in->error, CELLGATE_REASON_DTYPE,
                               "%s: a structured array; save its fields as "
                               "arrays of " DTYPES_TAKEN,
                               in->where);
    status = parse_string(in, "a dtype such as '<f4'", &text, &length);
    if (status != CELLGATE_OK)
        return status;
    for (size_t i = 0; length == 3 && i < CODE_COUNT; i++) {
        size_t item = (size_t)(CODES[i].code[1] - '0');
        int single = item == 1;
        if (memcmp(text + 1, CODES[i].code, 2) != 0)
            continue;
        if (text[0] != '<' && text[0] != '>' && !(text[0] == '|' && single))
            break;
        header->dtype = CODES[i].dtype;
        header->stored = CODES[i].stored;
        header->item = item;
        header->swapped = text[0] == '>' && !single;
        return CELLGATE_OK;
    }
    if (length == 2 && text[1] == 'O')
        return cellgate_refuse(in->error, CELLGATE_REASON_DTYPE,
                               "%s: pickled Python objects are never read; "
                               "convert to " DTYPES_TAKEN " with astype()",
                               in->where);
    return cellgate_refuse(
        in->error, CELLGATE_REASON_DTYPE,
        "%s: dtype '%.*s' is not taken; convert to " DTYPES_TAKEN
        " with astype() and save again",
        in->where, (int)(length < 40 ? length : 40), text);
}

static cellgate_status parse_fortran(parser *in, cg_npy_header *header)
{
    if (take_word(in, "True"))
        header->fortran = 1;
    else if (take_word(in, "False"))
        header->fortran = 0;
    else
        return expected(in, "True or False");
    return CELLGATE_OK;
}

/* One axis: a decimal number, with the L of Python 2's long integers. */
static cellgate_status parse_axis(parser *in, int64_t *extent)
{
    const char *first;
    int64_t value = 0;

    skip_spaces(in);
    if (in->at < in->end && *in->at == '-')
        return cellgate_fail(in->error, CELLGATE_BAD_FILE,
                             "%s: the shape has a negative axis", in->where);
    first = in->at;
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9') {
        int digit = *in->at - '0';
        if (value > (INT64_MAX - digit) / 10)
            return cellgate_fail(in->error, CELLGATE_BAD_FILE,
                                 "%s: the shape has an axis beyond 64 bits",
                                 in->where);
        value = value * 10 + digit;
        in->at++;
    }
    if (in->at == first || (*first == '0' && in->at - first > 1))
        return expected(in, "an axis of the shape");
    if (in->at < in->end && *in->at == 'L')
        in->at++;
    *extent = value;
    return CELLGATE_OK;
}

static cellgate_status parse_shape(parser *in, cg_npy_header *header)
{
    int comma = 1; /* in front of the next axis; the first one needs none */

    header->rank = 0;
    if (!take(in, '('))
        return expected(in, "a shape such as (3, 4)");
    while (!take(in, ')')) {
        cellgate_status status;
        if (!comma)
            return expected(in, "',' or ')'");
        if (header->rank == CELLGATE_MAX_RANK)
            return cellgate_refuse(in->error, CELLGATE_REASON_SHAPE,
                                   "%s: the array has more than %d axes",
                                   in->where, CELLGATE_MAX_RANK);
        status = parse_axis(in, &header->shape[header->rank]);
        if (status != CELLGATE_OK)
            return status;
        header->rank++;
        comma = take(in, ',');
    }
    /* (3) is a number in parentheses; a tuple of one is (3,). */
    if (header->rank == 1 && !comma) {
        in->at--;
        return expected(in, "',' after the only axis");
    }
    return CELLGATE_OK;
}

/* The three keys; each must come once. */
static const struct {
    const char *name;
    cellgate_status (*parse)(parser *in, cg_npy_header *header);
} KEYS[] = {
    { "descr", parse_descr },
    { "fortran_order", parse_fortran },
    { "shape", parse_shape },
};

#define KEY_COUNT (sizeof KEYS / sizeof KEYS[0])

/* One `key: value`; `seen` has a flag a key. */
static cellgate_status parse_entry(parser *in, int *seen, cg_npy_header *header)
{
    const char *text = NULL;
    size_t length = 0;
    cellgate_status status = parse_string(in, "a key", &text, &length);

    if (status != CELLGATE_OK)
        return status;
    if (!take(in, ':'))
        return expected(in, "':'");
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strlen(KEYS[i].name) != length ||
            memcmp(KEYS[i].name, text, length) != 0)
            continue;
        if (seen[i])
            return cellgate_fail(in->error, CELLGATE_BAD_FILE,
                                 "%s: the header has '%s' twice", in->where,
                                 KEYS[i].name);
        seen[i] = 1;
        return KEYS[i].parse(in, header);
    }
    return cellgate_fail(in->error, CELLGATE_BAD_FILE,
                         "%s: the header has the unknown key '%.*s'", in->where,
                         (int)(length < 40 ? length : 40), text);
}

static cellgate_status parse_dict(parser *in, cg_npy_header *header)
{
    int seen[KEY_COUNT] = { 0 };
    int comma = 1;

    if (!take(in, '{'))
        return expected(in, "'{'");
    while (!take(in, '}')) {
        cellgate_status status;
        if (!comma)
            return expected(in, "',' or '}'");
        status = parse_entry(in, seen, header);
        if (status != CELLGATE_OK)
            return status;
        comma = take(in, ',');
    }
    skip_spaces(in);
    if (in->at < in->end)
        return expected(in, "the end");
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (!seen[i])
            return cellgate_fail(in->error, CELLGATE_BAD_FILE,
                                 "%s: the header lacks '%s'", in->where,
                                 KEYS[i].name);
    return CELLGATE_OK;
}

cellgate_status cg_npy_parse_header(const char *text, size_t length,
                                    const char *where, cg_npy_header *header,
                                    cellgate_error *error)
{
    cg_npy_header parsed = { 0 };
    parser in = { text, text + length, where, error };
    cellgate_status status = parse_dict(&in, &parsed);

    if (status == CELLGATE_OK)
        *header = parsed;
    return status;
}

/* ---- Writing ----------------------------------------------------------- */

size_t cg_npy_format_header(const cellgate_tensor *tensor, char *bytes)
{
    const char *code = NULL;
    size_t room = CG_NPY_WRITTEN_MAX - 10;
    char *text = bytes + 10;
    size_t length, total;

    for (size_t i = 0; i < CODE_COUNT; i++)
        if (CODES[i].dtype == tensor->dtype && CODES[i].stored == CG_NPY_AS_IS)
            code = CODES[i].code;
    if (code == NULL)
        return 0;
    length = (size_t)snprintf(
        text, room, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
        cellgate_dtype_size(tensor->dtype) == 1 ? '|' : '<', code);
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        length += (size_t)snprintf(text + length, room - length,
                                   "%" PRId64 "%s", tensor->shape[axis],
                                   axis + 1 < tensor->rank ? ", " : "");
    length += (size_t)snprintf(text + length, room - length, "%s), }",
                               tensor->rank == 1 ? "," : "");
    total = (10 + length + 1 + 63) / 64 * 64;
    memset(text + length, ' ', total - 10 - length);
    bytes[total - 1] = '\n';
    memcpy(bytes, CG_NPY_MAGIC "\x01\x00", 8);
    bytes[8] = (char)((total - 10) & 0xff);
    bytes[9] = (char)((total - 10) >> 8);
    return total;
}
