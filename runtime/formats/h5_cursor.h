/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading numbers out of bytes that nobody vouches for. A cursor that is asked
 * for more than it has turns bad, stays so, and gives zeros; who reads looks at
 * `bad` once, before using what was read. Numbers are little-endian, at any
 * alignment, on any host.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_H5_CURSOR_H
#define CELLGATE_RUNTIME_FORMATS_H5_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An address of nothing, however wide the file's addresses are. */
#define CG_H5_NOWHERE UINT64_MAX

typedef struct cg_h5_cursor {
    const uint8_t *at;
    size_t left;
    uint8_t offset_size, length_size; /* bytes of an address, of a length */
    bool bad;
} cg_h5_cursor;

/* The next `size` bytes, or NULL. */
static inline const uint8_t *cg_h5_take(cg_h5_cursor *cursor, uint64_t size)
{
    const uint8_t *bytes = cursor->at;

    if (cursor->bad || size > cursor->left) {
        cursor->bad = true;
        cursor->left = 0;
        return NULL;
    }
    cursor->at += (size_t)size;
    cursor->left -= (size_t)size;
    return bytes;
}

/* A number of up to 8 bytes. */
static inline uint64_t cg_h5_number(cg_h5_cursor *cursor, size_t width)
{
    const uint8_t *bytes = width <= 8 ? cg_h5_take(cursor, width) : NULL;
    uint64_t number = 0;

    if (bytes == NULL) {
        cursor->bad = true;
        return 0;
    }
    for (size_t i = width; i > 0; i--)
        number = number << 8 | bytes[i - 1];
    return number;
}

static inline uint8_t cg_h5_u8(cg_h5_cursor *cursor)
{
    return (uint8_t)cg_h5_number(cursor, 1);
}

static inline uint16_t cg_h5_u16(cg_h5_cursor *cursor)
{
    return (uint16_t)cg_h5_number(cursor, 2);
}

static inline uint32_t cg_h5_u32(cg_h5_cursor *cursor)
{
    return (uint32_t)cg_h5_number(cursor, 4);
}

/* An address; all bits set is CG_H5_NOWHERE at any width. */
static inline uint64_t cg_h5_address(cg_h5_cursor *cursor)
{
    const unsigned bits = 8u * cursor->offset_size;
    const uint64_t address = cg_h5_number(cursor, cursor->offset_size);

    return bits < 64 && address == ((uint64_t)1 << bits) - 1 ? CG_H5_NOWHERE
                                                             : address;
}

static inline uint64_t cg_h5_length(cg_h5_cursor *cursor)
{
    return cg_h5_number(cursor, cursor->length_size);
}

static inline void cg_h5_skip(cg_h5_cursor *cursor, uint64_t size)
{
    (void)cg_h5_take(cursor, size);
}

/* A cursor over the next `size` bytes, which are passed. */
static inline cg_h5_cursor cg_h5_part(cg_h5_cursor *cursor, uint64_t size)
{
    cg_h5_cursor part = *cursor;

    part.at = cg_h5_take(cursor, size);
    part.left = part.at != NULL ? (size_t)size : 0;
    part.bad = part.at == NULL;
    return part;
}

/* Whether the next bytes are this signature, which is passed. */
static inline bool cg_h5_signed(cg_h5_cursor *cursor, const char *signature)
{
    const size_t size = strlen(signature);
    const uint8_t *bytes = cg_h5_take(cursor, size);

    return bytes != NULL && memcmp(bytes, signature, size) == 0;
}

#endif
