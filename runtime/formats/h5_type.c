/* SPDX-License-Identifier: Apache-2.0 */
/* Datatypes and dataspaces. */
#include "config.h"

#include "runtime/formats/h5_file.h"

enum {
    INTEGER = 0,
    FLOATING = 1,
    TEXT = 3,
    OPAQUE = 5,
    VARIABLE = 9,
    CLASSES = 12
};

static const char *const class_names[CLASSES] = {
    "integers",       "floats",    "times",      "texts",
    "bit fields",     "opaque",    "a compound", "references",
    "an enumeration", "sequences", "arrays",     "complex numbers"
};

/* ---- Floating-point numbers ---------------------------------------------- */

typedef struct float_format {
    cg_h5_class class;
    const char *called;
    uint16_t bits;
    uint8_t exponent_at, exponent_bits, mantissa_bits;
    uint32_t bias;
} float_format;

static const float_format float_formats[] = {
    { CG_H5_F16, "float16", 16, 10, 5, 10, 15 },
    { CG_H5_BF16, "bfloat16", 16, 7, 8, 7, 127 },
    { CG_H5_F32, "float32", 32, 23, 8, 23, 127 },
    { CG_H5_F64, "float64", 64, 52, 11, 52, 1023 },
};

/* Bits of `flags`: byte order at 0 and 6, an implied mantissa bit at 4 and 5,
   the sign's place at 8. */
static cellgate_status read_float(cg_h5 *h5, cg_h5_cursor body, uint32_t flags,
                                  cg_h5_type *type)
{
    const uint16_t offset = cg_h5_u16(&body), bits = cg_h5_u16(&body);
    const uint8_t exponent_at = cg_h5_u8(&body);
    const uint8_t exponent_bits = cg_h5_u8(&body);
    const uint8_t mantissa_at = cg_h5_u8(&body);
    const uint8_t mantissa_bits = cg_h5_u8(&body);
    const uint32_t bias = cg_h5_u32(&body);
    const size_t count = sizeof float_formats / sizeof float_formats[0];

    if (body.bad)
        return cg_h5_damaged(h5, "a datatype is cut short");
    for (size_t i = 0; i < count; i++) {
        const float_format *format = &float_formats[i];

        if (type->size * 8 != format->bits || bits != format->bits ||
            offset != 0 || (flags & 0x40) != 0 || (flags >> 4 & 3) != 2 ||
            (flags >> 8 & 0xff) != format->bits - 1u ||
            exponent_at != format->exponent_at ||
            exponent_bits != format->exponent_bits || mantissa_at != 0 ||
            mantissa_bits != format->mantissa_bits || bias != format->bias)
            continue;
        type->class = format->class;
        type->called = format->called;
    }
    if (type->class == CG_H5_OTHER)
        type->called = "floats of an unusual format";
    return CELLGATE_OK;
}

/* ---- Datatypes ----------------------------------------------------------- */

static void read_fixed_text(uint32_t flags, cg_h5_type *type)
{
    static const char paddings[3] = { 't', '\0', ' ' };

    if ((flags & 0x0f) > 2)
        return;
    type->class = CG_H5_FIXED_TEXT;
    type->padding = paddings[flags & 0x0f];
}

/* Texts and sequences in a global heap: a count, an address, a number. */
static cellgate_status read_variable(cg_h5 *h5, uint32_t flags,
                                     cg_h5_type *type)
{
    if (type->size != 8u + h5->offset_size)
        return cg_h5_damaged(h5, "a datatype has a wrong size");
    if ((flags & 0x0f) == 1) {
        type->class = CG_H5_LONG_TEXT;
        type->called = "texts";
    }
    return CELLGATE_OK;
}

cellgate_status cg_h5_type_read(cg_h5 *h5, cg_h5_cursor body, cg_h5_type *type)
{
    const uint8_t first = cg_h5_u8(&body);
    const uint32_t flags = (uint32_t)cg_h5_number(&body, 3);
    const unsigned class = first & 0x0f, version = first >> 4;

    *type = (cg_h5_type){ .class = CG_H5_OTHER };
    type->size = cg_h5_u32(&body);
    type->big_endian = (flags & 1) != 0;
    if (body.bad || version < 1 || version > 5 || class >= CLASSES)
        return cg_h5_damaged(h5, "a datatype");
    type->called = class_names[class];
    if (class == TEXT)
        read_fixed_text(flags, type);
    else if (class == OPAQUE)
        type->class = CG_H5_OPAQUE;
    /* A text may be of no bytes; other elements have some. */
    if (type->size == 0 && class != TEXT && class != OPAQUE)
        return cg_h5_damaged(h5, "a datatype has no size");
    if (class == FLOATING)
        return read_float(h5, body, flags, type);
    if (class == VARIABLE)
        return read_variable(h5, flags, type);
    return CELLGATE_OK;
}

/* ---- Dataspaces ---------------------------------------------------------- */

static cellgate_status read_extents(cg_h5 *h5, cg_h5_cursor *body, bool limits,
                                    cg_h5_space *space)
{
    const unsigned bits = 8u * h5->length_size;

    for (int32_t axis = 0; axis < space->rank; axis++) {
        space->extents[axis] = space->limits[axis] = cg_h5_length(body);
        if (space->extents[axis] > INT64_MAX ||
            __builtin_mul_overflow(space->elements, space->extents[axis],
                                   &space->elements))
            return cg_h5_fail(h5, CELLGATE_BAD_FILE,
                              "claims more elements than can be counted");
    }
    for (int32_t axis = 0; limits && axis < space->rank; axis++) {
        space->limits[axis] = cg_h5_length(body);
        if (bits < 64 && space->limits[axis] == ((uint64_t)1 << bits) - 1)
            space->limits[axis] = UINT64_MAX;
    }
    return body->bad ? cg_h5_damaged(h5, "its shape is cut short")
                     : CELLGATE_OK;
}

cellgate_status cg_h5_space_read(cg_h5 *h5, cg_h5_cursor body,
                                 cg_h5_space *space)
{
    const uint8_t version = cg_h5_u8(&body), rank = cg_h5_u8(&body);
    const uint8_t flags = cg_h5_u8(&body), kind = cg_h5_u8(&body);

    if (version == 1)
        cg_h5_skip(&body, 4);
    if (body.bad || (version != 1 && version != 2) || rank > CG_H5_MAX_RANK)
        return cg_h5_damaged(h5, "its shape");
    space->rank = rank;
    space->elements = 1;
    if (version == 2 && kind == 2) { /* a null space */
        space->rank = -1;
        space->elements = 0;
        return CELLGATE_OK;
    }
    return read_extents(h5, &body, (flags & 1) != 0, space);
}
