/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/formats/h5_file.h"

#define WALK_TIMES 4
#define WALK_FREE ((uint64_t)1 << 20)
#define KEPT_TIMES 16
#define KEPT_FREE ((uint64_t)1 << 22)
#define BLOCK ((size_t)4096)

struct cg_h5_kept {
    cg_h5_kept *next;
    size_t used, size;
    max_align_t memory[];
};

/* ---- Errors -------------------------------------------------------------- */

void cg_h5_begin(cg_h5 *h5, const char *path, cellgate_error *error)
{
    h5->path = path;
    h5->error = error;
    h5->walk = WALK_TIMES * (uint64_t)h5->size + WALK_FREE;
}

cellgate_status cg_h5_fail(cg_h5 *h5, cellgate_status status,
                           const char *format, ...)
{
    char text[sizeof h5->error->text];
    va_list arguments;

    if (h5->error == NULL)
        return status;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return cellgate_fail(h5->error, status, "'%s' in %s %s",
                         h5->path[0] != '\0' ? h5->path : "/", h5->name, text);
}

cellgate_status cg_h5_damaged(cg_h5 *h5, const char *what)
{
    return cg_h5_fail(h5, CELLGATE_BAD_FILE, "is damaged: %s", what);
}

cellgate_status cg_h5_no_memory(cg_h5 *h5)
{
    return cellgate_fail(h5->error, CELLGATE_NO_MEMORY,
                         "out of memory while reading %s", h5->name);
}

/* ---- Bytes --------------------------------------------------------------- */

cellgate_status cg_h5_walk(cg_h5 *h5, uint64_t size)
{
    if (size > h5->walk)
        return cg_h5_damaged(h5, "it refers to itself, or to the same place "
                                 "again and again");
    h5->walk -= size;
    return CELLGATE_OK;
}

cellgate_status cg_h5_bytes(cg_h5 *h5, uint64_t address, uint64_t size,
                            const char *what, cg_h5_cursor *cursor)
{
    if (address > h5->size || size > h5->size - address)
        return cg_h5_fail(h5, CELLGATE_BAD_FILE,
                          "is damaged: %s lies outside of the file", what);
    *cursor = (cg_h5_cursor){ .at = h5->image + address,
                              .left = (size_t)size,
                              .offset_size = h5->offset_size,
                              .length_size = h5->length_size };
    return CELLGATE_OK;
}

cellgate_status cg_h5_span(cg_h5 *h5, uint64_t address, uint64_t size,
                           const char *what, cg_h5_cursor *cursor)
{
    cellgate_status status = cg_h5_bytes(h5, address, size, what, cursor);

    return status == CELLGATE_OK ? cg_h5_walk(h5, size) : status;
}

/* ---- Memory -------------------------------------------------------------- */

static cg_h5_kept *add_block(cg_h5 *h5, size_t size)
{
    const size_t room = size > BLOCK ? size : BLOCK;
    cg_h5_kept *block = malloc(sizeof *block + room);

    if (block == NULL)
        return NULL;
    block->next = h5->kept;
    block->used = 0;
    block->size = room;
    h5->kept = block;
    return block;
}

void *cg_h5_keep(cg_h5 *h5, uint64_t size, cellgate_status *status)
{
    const uint64_t most = KEPT_TIMES * (uint64_t)h5->size + KEPT_FREE;
    const uint64_t step = sizeof(max_align_t);
    cg_h5_kept *block = h5->kept;
    char *memory;

    if (size > most || h5->kept_size + size > most) {
        *status = cg_h5_fail(h5, CELLGATE_BAD_FILE,
                             "makes more of names and texts than the file can "
                             "hold");
        return NULL;
    }
    size = (size + step - 1) / step * step;
    if (block == NULL || block->size - block->used < size)
        block = add_block(h5, (size_t)size);
    if (block == NULL) {
        *status = cg_h5_no_memory(h5);
        return NULL;
    }
    memory = (char *)block->memory + block->used;
    block->used += (size_t)size;
    h5->kept_size += size;
    return memory;
}

void cg_h5_kept_free(cg_h5_kept *kept)
{
    while (kept != NULL) {
        cg_h5_kept *next = kept->next;

        free(kept);
        kept = next;
    }
}

/* ---- Checksums ----------------------------------------------------------- */

static uint32_t rotate(uint32_t word, unsigned bits)
{
    return word << bits | word >> (32 - bits);
}

/* One step of lookup3: takes `from` out of `into` and turns it, then adds. */
static void mix(uint32_t *into, uint32_t *from, uint32_t add, unsigned bits)
{
    *into -= *from;
    *into ^= rotate(*from, bits);
    *from += add;
}

static void mix_all(uint32_t s[3])
{
    static const unsigned bits[6] = { 4, 6, 8, 16, 19, 4 };

    for (unsigned i = 0; i < 6; i++)
        mix(&s[i % 3], &s[(i + 2) % 3], s[(i + 1) % 3], bits[i]);
}

static uint32_t finish(uint32_t s[3])
{
    static const unsigned bits[7] = { 14, 11, 25, 16, 4, 14, 24 };

    for (unsigned i = 0; i < 7; i++) {
        uint32_t *into = &s[(i + 2) % 3];
        const uint32_t from = s[(i + 1) % 3];

        *into = (*into ^ from) - rotate(from, bits[i]);
    }
    return s[2];
}

/* Adds up to 12 bytes from `offset` on, without those of the hole. */
static void add(uint32_t s[3], const uint8_t *bytes, size_t offset,
                size_t count, size_t hole)
{
    for (size_t i = 0; i < count; i++)
        if (offset + i < hole || offset + i - hole >= 4)
            s[i / 4] += (uint32_t)bytes[offset + i] << (8 * (i % 4));
}

uint32_t cg_h5_checksum(const uint8_t *bytes, size_t size, size_t hole)
{
    const uint32_t start = 0xdeadbeefu + (uint32_t)size;
    uint32_t s[3] = { start, start, start };
    size_t offset = 0;

    if (size == 0)
        return start;
    for (; size - offset > 12; offset += 12) {
        add(s, bytes, offset, 12, hole);
        mix_all(s);
    }
    add(s, bytes, offset, size - offset, hole);
    return finish(s);
}

bool cg_h5_sum_fits(uint32_t sum, const uint8_t *bytes, size_t size,
                    size_t hole)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)sum, (void)bytes, (void)size, (void)hole;
    return true;
#else
    return sum == cg_h5_checksum(bytes, size, hole);
#endif
}

cellgate_status cg_h5_verify(cg_h5 *h5, cg_h5_cursor *block, const char *what)
{
    cg_h5_cursor sum = *block;

    if (block->bad || block->left < 4)
        return cg_h5_fail(h5, CELLGATE_BAD_FILE, "is damaged: %s is too short",
                          what);
    block->left -= 4;
    cg_h5_skip(&sum, block->left);
    if (!cg_h5_sum_fits(cg_h5_u32(&sum), block->at, block->left, SIZE_MAX))
        return cg_h5_fail(h5, CELLGATE_BAD_FILE,
                          "is damaged: the checksum of %s is wrong", what);
    return CELLGATE_OK;
}
