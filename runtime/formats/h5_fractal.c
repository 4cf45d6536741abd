/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fractal heaps. A heap's address space is a table of `width` blocks a row:
 * rows 0 and 1 of the first block's size, each further row of twice the size of
 * the one before. Blocks up to the largest direct one hold objects, larger ones
 * are tables of the same kind.
 */
#include "config.h"

#include "runtime/formats/h5_file.h"

enum { MANAGED = 0, HUGE = 1 };

static bool is_power(uint64_t number, uint8_t *logarithm)
{
    if (number == 0 || (number & (number - 1)) != 0)
        return false;
    *logarithm = (uint8_t)__builtin_ctzll(number);
    return true;
}

/* ---- The header ---------------------------------------------------------- */

static bool read_table(cg_h5_cursor *cursor, cg_h5_fractal *heap)
{
    const uint16_t width = cg_h5_u16(cursor);
    const uint64_t first = cg_h5_length(cursor);
    const uint64_t largest = cg_h5_length(cursor);
    const uint16_t bits = cg_h5_u16(cursor);

    cg_h5_skip(cursor, 2); /* rows that a root starts with */
    heap->root = cg_h5_address(cursor);
    heap->rows = cg_h5_u16(cursor);
    heap->bits = (uint8_t)bits;
    return !cursor->bad && bits >= 1 && bits <= 64 &&
           is_power(width, &heap->width) && is_power(first, &heap->first) &&
           is_power(largest, &heap->largest) && heap->largest >= heap->first &&
           heap->largest <= 32 && heap->rows <= 64;
}

static void size_ids(cg_h5_fractal *heap, uint32_t most)
{
    const uint8_t largest = (uint8_t)((heap->largest + 7) / 8);
    uint8_t bytes = 1;

    for (; most > 0xff; most >>= 8)
        bytes++;
    heap->offset_bytes = (uint8_t)((heap->bits + 7) / 8);
    heap->length_bytes = bytes < largest ? bytes : largest;
}

cellgate_status cg_h5_fractal_open(cg_h5 *h5, uint64_t address,
                                   cg_h5_fractal *heap)
{
    const uint64_t size =
        26 + 3 * (uint64_t)h5->offset_size + 12 * (uint64_t)h5->length_size;
    cg_h5_cursor cursor;
    uint16_t filters;
    uint32_t most;
    cellgate_status status = cg_h5_span(h5, address, size, "a heap", &cursor);

    if (status != CELLGATE_OK)
        return status;
    heap->address = address;
    if (!cg_h5_signed(&cursor, "FRHP") || cg_h5_u8(&cursor) != 0)
        return cg_h5_damaged(h5, "a heap has no signature");
    heap->id_size = cg_h5_u16(&cursor);
    filters = cg_h5_u16(&cursor);
    heap->checked = (cg_h5_u8(&cursor) & 0x02) != 0;
    most = cg_h5_u32(&cursor);
    (void)cg_h5_length(&cursor); /* the next huge object */
    heap->huge = cg_h5_address(&cursor);
    (void)cg_h5_length(&cursor); /* free space, and who manages it */
    (void)cg_h5_address(&cursor);
    cg_h5_skip(&cursor, 8 * (uint64_t)h5->length_size); /* statistics */
    if (filters != 0)
        return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                          "packs the names of its members or attributes");
    if (!read_table(&cursor, heap))
        return cg_h5_damaged(h5, "the header of a heap");
    size_ids(heap, most);
    status = cg_h5_bytes(h5, address, size, "a heap", &cursor);
    return status == CELLGATE_OK ? cg_h5_verify(h5, &cursor, "a heap") : status;
}

/* ---- Blocks -------------------------------------------------------------- */

/* Where the block at work lies. */
typedef struct block_place {
    uint64_t address;
    uint64_t base; /* of its first byte in the heap's address space */
    uint32_t rows; /* of a table */
} block_place;

static uint64_t head_size(const cg_h5 *h5, const cg_h5_fractal *heap)
{
    return 5 + (uint64_t)h5->offset_size + heap->offset_bytes;
}

/* Whether this block begins as it has to. */
static bool is_block(const cg_h5_fractal *heap, cg_h5_cursor block,
                     const char *signature, uint64_t base)
{
    return cg_h5_signed(&block, signature) && cg_h5_u8(&block) == 0 &&
           cg_h5_address(&block) == heap->address &&
           cg_h5_number(&block, heap->offset_bytes) == base && !block.bad;
}

/* Compares the checksum at `at` with that of the first `size` bytes, in which
   it counts as 0, unless that was done; then nothing is counted. */
static cellgate_status verify_once(cg_h5 *h5, uint64_t address,
                                   cg_h5_cursor block, uint64_t at, size_t size)
{
    uint64_t *known = &h5->verified[(address ^ address >> 9) % CG_H5_VERIFIED];
    cg_h5_cursor sum = block;
    cellgate_status status;

    if (*known == address)
        return CELLGATE_OK;
    status = cg_h5_walk(h5, size);
    if (status != CELLGATE_OK)
        return status;
    cg_h5_skip(&sum, at);
    if (!cg_h5_sum_fits(cg_h5_u32(&sum), block.at, size, (size_t)at) || sum.bad)
        return cg_h5_damaged(h5, "the checksum of a heap's block is wrong");
    *known = address;
    return CELLGATE_OK;
}

/* The logarithm of the size of a row's blocks, and where the row begins. */
static uint32_t row_block(const cg_h5_fractal *heap, uint32_t row)
{
    return heap->first + (row > 1 ? row - 1 : 0);
}

static uint64_t row_start(const cg_h5_fractal *heap, uint32_t row)
{
    return row > 0 ? (uint64_t)1 << (heap->width + heap->first + row - 1) : 0;
}

/* The row in which this offset into a table lies. */
static uint32_t find_row(const cg_h5_fractal *heap, uint64_t offset)
{
    const uint64_t rest = offset >> (heap->width + heap->first);

    return rest == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(rest);
}

/* The cursor at the table's entries. */
static cellgate_status open_table(cg_h5 *h5, const cg_h5_fractal *heap,
                                  const block_place *place, cg_h5_cursor *table)
{
    const uint64_t head = head_size(h5, heap);
    const uint64_t entries = (uint64_t)place->rows << heap->width;
    cellgate_status status =
        cg_h5_bytes(h5, place->address, head + entries * h5->offset_size + 4,
                    "a heap's block", table);

    if (status == CELLGATE_OK && !is_block(heap, *table, "FHIB", place->base))
        status = cg_h5_damaged(h5, "a heap's block is of another kind");
    if (status == CELLGATE_OK)
        status = verify_once(h5, place->address, *table, table->left - 4,
                             table->left - 4);
    if (status == CELLGATE_OK)
        cg_h5_skip(table, head);
    return status;
}

/*
 * Goes from a table to the block in it that holds `offset`. *size becomes the
 * logarithm of that block's size. Each table has fewer rows than the one above.
 */
static cellgate_status descend(cg_h5 *h5, const cg_h5_fractal *heap,
                               uint64_t offset, block_place *place,
                               uint32_t *size)
{
    const uint32_t row = find_row(heap, offset - place->base);
    cg_h5_cursor table;
    uint64_t column;
    cellgate_status status;

    if (row >= place->rows || row + (uint32_t)heap->width + heap->first > 63)
        return cg_h5_damaged(h5, "an id is outside of its heap");
    status = open_table(h5, heap, place, &table);
    if (status != CELLGATE_OK)
        return status;
    *size = row_block(heap, row);
    column = (offset - place->base - row_start(heap, row)) >> *size;
    cg_h5_skip(&table,
               (((uint64_t)row << heap->width) + column) * h5->offset_size);
    place->address = cg_h5_address(&table);
    place->base += row_start(heap, row) + (column << *size);
    if (*size > heap->largest)
        place->rows = *size >= (uint32_t)heap->width + heap->first
                          ? *size - heap->width - heap->first + 1
                          : 0;
    return CELLGATE_OK;
}

/* The direct block that holds `offset`. */
static cellgate_status find_block(cg_h5 *h5, const cg_h5_fractal *heap,
                                  uint64_t offset, uint64_t *base,
                                  cg_h5_cursor *block)
{
    block_place place = { .address = heap->root, .rows = heap->rows };
    uint32_t size = heap->first;
    cellgate_status status = CELLGATE_OK;

    if (heap->rows > 0)
        do
            status = descend(h5, heap, offset, &place, &size);
        while (status == CELLGATE_OK && size > heap->largest);
    if (status == CELLGATE_OK)
        status = cg_h5_bytes(h5, place.address, (uint64_t)1 << size,
                             "a heap's block", block);
    if (status != CELLGATE_OK)
        return status;
    *base = place.base;
    if (!is_block(heap, *block, "FHDB", place.base))
        return cg_h5_damaged(h5, "a heap's block is of another kind");
    return heap->checked ? verify_once(h5, place.address, *block,
                                       head_size(h5, heap), block->left)
                         : CELLGATE_OK;
}

/* ---- Objects ------------------------------------------------------------- */

static cellgate_status get_managed(cg_h5 *h5, const cg_h5_fractal *heap,
                                   cg_h5_cursor id, cg_h5_cursor *object)
{
    const uint64_t offset = cg_h5_number(&id, heap->offset_bytes);
    const uint64_t length = cg_h5_number(&id, heap->length_bytes);
    uint64_t base;
    cg_h5_cursor block;
    cellgate_status status;

    if (id.bad)
        return cg_h5_damaged(h5, "an id of a heap is too short");
    status = find_block(h5, heap, offset, &base, &block);
    if (status != CELLGATE_OK)
        return status;
    cg_h5_skip(&block, offset - base);
    *object = cg_h5_part(&block, length);
    return object->bad ? cg_h5_damaged(h5, "an id is outside of its heap")
                       : cg_h5_walk(h5, length);
}

typedef struct huge_object {
    uint64_t id, address, length;
} huge_object;

/* A record of the index of huge objects: address, length, number. */
static cellgate_status match_huge(cg_h5 *h5, void *context, cg_h5_cursor record)
{
    huge_object *huge = context;

    (void)h5;
    huge->address = cg_h5_address(&record);
    huge->length = cg_h5_length(&record);
    return cg_h5_length(&record) == huge->id && !record.bad ? CELLGATE_END
                                                            : CELLGATE_OK;
}

/* Either the id holds address and length, or the number of a record. */
static cellgate_status get_huge(cg_h5 *h5, const cg_h5_fractal *heap,
                                cg_h5_cursor id, cg_h5_cursor *object)
{
    huge_object huge = { 0 };
    cellgate_status status;

    if (id.left >= (size_t)h5->offset_size + h5->length_size) {
        huge.address = cg_h5_address(&id);
        huge.length = cg_h5_length(&id);
    } else {
        huge.id = cg_h5_number(
            &id, id.left < h5->length_size ? id.left : h5->length_size);
        status = cg_h5_each_record(h5, heap->huge, 1, match_huge, &huge);
        if (status == CELLGATE_OK)
            return cg_h5_damaged(h5, "a large object is missing in its heap");
        if (status != CELLGATE_END)
            return status;
    }
    return cg_h5_span(h5, huge.address, huge.length, "a large object", object);
}

cellgate_status cg_h5_fractal_get(cg_h5 *h5, const cg_h5_fractal *heap,
                                  cg_h5_cursor *id, cg_h5_cursor *object)
{
    cg_h5_cursor rest = cg_h5_part(id, heap->id_size);
    const uint8_t flags = cg_h5_u8(&rest);

    if (rest.bad || flags >> 6 != 0)
        return cg_h5_damaged(h5, "an id of a heap");
    if ((flags >> 4 & 3) == MANAGED)
        return get_managed(h5, heap, rest, object);
    if ((flags >> 4 & 3) == HUGE)
        return get_huge(h5, heap, rest, object);
    return cg_h5_damaged(h5, "an id of a heap"); /* no object is so small */
}
