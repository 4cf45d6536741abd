/* SPDX-License-Identifier: Apache-2.0 */
/* Filters undone: deflate, shuffle, fletcher32. */
#include "config.h"

#include <stdlib.h>
#include <zlib.h>

#include "runtime/formats/h5_file.h"

cellgate_status cg_h5_scratch_init(cg_h5 *h5, const cg_h5_dataset *dataset,
                                   cg_h5_scratch *scratch)
{
    /* Checksums may lie between other filters. */
    const uint64_t size = dataset->chunk_size + 4u * dataset->filter_count;

    memset(scratch, 0, sizeof *scratch);
    if (dataset->filter_count == 0)
        return CELLGATE_OK;
    if (size > SIZE_MAX / 2)
        return cg_h5_no_memory(h5);
    scratch->size = (size_t)size;
    scratch->from = malloc(scratch->size);
    scratch->to = malloc(scratch->size);
    if (scratch->from == NULL || scratch->to == NULL) {
        cg_h5_scratch_finish(scratch);
        return cg_h5_no_memory(h5);
    }
    return CELLGATE_OK;
}

void cg_h5_scratch_finish(cg_h5_scratch *scratch)
{
    free(scratch->from);
    free(scratch->to);
    memset(scratch, 0, sizeof *scratch);
}

/* ---- Each filter --------------------------------------------------------- */

/* The bytes at work: in the image at first, then in scratch->from. */
typedef struct packed_bytes {
    const uint8_t *bytes;
    size_t size;
} packed_bytes;

/* What was made in scratch->to is what is at work now. */
static void turn(cg_h5_scratch *scratch, packed_bytes *packed, size_t size)
{
    uint8_t *made = scratch->to;

    scratch->to = scratch->from;
    scratch->from = made;
    packed->bytes = made;
    packed->size = size;
}

static cellgate_status inflate_all(cg_h5 *h5, cg_h5_scratch *scratch,
                                   packed_bytes *packed)
{
    uLongf size = (uLongf)scratch->size;
    int result;

    if (size != scratch->size || packed->size > (uLong)-1)
        return cg_h5_no_memory(h5);
    result = uncompress(scratch->to, &size, packed->bytes, (uLong)packed->size);
    if (result == Z_MEM_ERROR)
        return cg_h5_no_memory(h5);
    if (result != Z_OK)
        return cg_h5_damaged(h5, "a chunk does not unpack to its size");
    turn(scratch, packed, (size_t)size);
    return CELLGATE_OK;
}

/* First bytes of all elements, then second ones ...; what is left over at the
   end stays as it is. */
static cellgate_status unshuffle(cg_h5 *h5, cg_h5_scratch *scratch,
                                 size_t element, packed_bytes *packed)
{
    const size_t count = packed->size / element;
    const size_t rest = packed->size % element;

    if (packed->size > scratch->size)
        return cg_h5_damaged(h5, "a chunk does not unpack to its size");
    for (size_t byte = 0; byte < element; byte++)
        for (size_t i = 0; i < count; i++)
            scratch->to[i * element + byte] = packed->bytes[byte * count + i];
    memcpy(scratch->to + count * element, packed->bytes + count * element,
           rest);
    turn(scratch, packed, packed->size);
    return CELLGATE_OK;
}

/* Fletcher's sums of 16-bit words, high byte first, modulo 2^16 - 1. */
static uint32_t fletcher32(const uint8_t *bytes, size_t size)
{
    uint64_t low = 0, high = 0;

    for (size_t i = 0; i < size; i += 2) {
        low += (uint32_t)bytes[i] << 8 | (i + 1 < size ? bytes[i + 1] : 0u);
        high += low;
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    return (uint32_t)(high << 16 | low);
}

/* Both halves stand for 0 in two ways. */
static bool same_sum(uint32_t a, uint32_t b)
{
    return (a & 0xffff) % 0xffff == (b & 0xffff) % 0xffff &&
           (a >> 16) % 0xffff == (b >> 16) % 0xffff;
}

static cellgate_status check_sum(cg_h5 *h5, packed_bytes *packed)
{
    uint32_t stored = 0;

    if (packed->size < 4)
        return cg_h5_damaged(h5, "a chunk is too short");
    packed->size -= 4;
    for (size_t i = 4; i > 0; i--)
        stored = stored << 8 | packed->bytes[packed->size + i - 1];
    if (!same_sum(stored, fletcher32(packed->bytes, packed->size)))
        return cg_h5_damaged(h5, "the checksum of a chunk is wrong");
    return CELLGATE_OK;
}

static cellgate_status undo(cg_h5 *h5, const cg_h5_dataset *dataset,
                            uint8_t filter, cg_h5_scratch *scratch,
                            packed_bytes *packed)
{
    if (filter == CG_H5_DEFLATE)
        return inflate_all(h5, scratch, packed);
    if (filter == CG_H5_SHUFFLE)
        return unshuffle(h5, scratch, dataset->type.size, packed);
    return check_sum(h5, packed);
}

/* ---- A chunk ------------------------------------------------------------- */

/* Whether the chunk sticks out of the data. */
static bool is_edge(const cg_h5_dataset *dataset, uint64_t number)
{
    for (int32_t axis = dataset->space.rank - 1; axis >= 0; axis--) {
        const uint64_t at = number % dataset->grid[axis];

        number /= dataset->grid[axis];
        if (at + 1 == dataset->grid[axis] &&
            dataset->space.extents[axis] % dataset->chunk[axis] != 0)
            return true;
    }
    return false;
}

cellgate_status cg_h5_unpack(cg_h5 *h5, const cg_h5_dataset *dataset,
                             const cg_h5_chunk *chunk, cg_h5_scratch *scratch,
                             const uint8_t **bytes)
{
    const bool plain = dataset->whole_edges && is_edge(dataset, chunk->number);
    packed_bytes packed;
    cg_h5_cursor cursor;
    cellgate_status status =
        cg_h5_bytes(h5, chunk->address, chunk->size, "its data", &cursor);

    if (status != CELLGATE_OK)
        return status;
    packed.bytes = cursor.at;
    packed.size = cursor.left;
    for (uint8_t i = dataset->filter_count; !plain && i > 0; i--)
        if (status == CELLGATE_OK && (chunk->mask >> (i - 1) & 1) == 0)
            status =
                undo(h5, dataset, dataset->filters[i - 1], scratch, &packed);
    if (status == CELLGATE_OK && packed.size != dataset->chunk_size)
        status = cg_h5_damaged(h5, "a chunk does not unpack to its size");
    if (status == CELLGATE_OK)
        *bytes = packed.bytes;
    return status;
}
