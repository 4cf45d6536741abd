/* SPDX-License-Identifier: Apache-2.0 */
/* Where the chunks of a dataset lie: a B-tree of version 1, or one of the
   indexes for shapes that do not grow. */
#include "config.h"

#include "runtime/formats/h5_file.h"

typedef struct chunk_walk {
    const cg_h5_dataset *dataset;
    cg_h5_visit_chunk visit;
    void *context;
    uint64_t next; /* the lowest number that was not visited */
} chunk_walk;

/* Chunks come in their order, without gaps. */
static cellgate_status visit(cg_h5 *h5, chunk_walk *walk,
                             const cg_h5_chunk *chunk)
{
    if (chunk->number < walk->next)
        return cg_h5_damaged(h5, "a chunk of its data is there twice");
    if (chunk->number > walk->next || chunk->address == CG_H5_NOWHERE)
        return cg_h5_fail(h5, CELLGATE_BAD_FILE,
                          "claims more data than the file holds: chunk %llu is "
                          "missing",
                          (unsigned long long)walk->next);
    walk->next++;
    return walk->visit(h5, walk->context, chunk);
}

/* ---- B-trees of version 1 ------------------------------------------------ */

/* The number in the grid of the chunk that begins at these elements. */
static bool read_number(const cg_h5_dataset *dataset, cg_h5_cursor *key,
                        uint64_t *number)
{
    bool fits = true;

    *number = 0;
    for (int32_t axis = 0; axis < dataset->space.rank; axis++) {
        const uint64_t first = cg_h5_number(key, 8);
        const uint64_t at = first / dataset->chunk[axis];

        fits = fits && first % dataset->chunk[axis] == 0 &&
               at < dataset->grid[axis];
        *number = *number * dataset->grid[axis] + at;
    }
    cg_h5_skip(key, 8); /* the offset in an element: 0 */
    return fits && !key->bad;
}

static cellgate_status read_node(cg_h5 *h5, const chunk_walk *walk,
                                 uint64_t address, uint8_t *level,
                                 cg_h5_cursor *keys, uint16_t *count)
{
    const uint64_t head = 8 + 2u * h5->offset_size;
    const uint64_t entry =
        8 + 8 * ((uint64_t)walk->dataset->space.rank + 1) + h5->offset_size;
    cg_h5_cursor node;
    cellgate_status status =
        cg_h5_span(h5, address, head, "the tree of its chunks", &node);

    if (status != CELLGATE_OK)
        return status;
    if (!cg_h5_signed(&node, "TREE") || cg_h5_u8(&node) != 1)
        return cg_h5_damaged(h5, "the tree of its chunks has no signature");
    *level = cg_h5_u8(&node);
    *count = cg_h5_u16(&node);
    return cg_h5_span(h5, address + head, *count * entry,
                      "the tree of its chunks", keys);
}

static cellgate_status walk_tree(cg_h5 *h5, chunk_walk *walk, uint64_t address,
                                 uint8_t above)
{
    cg_h5_cursor keys;
    uint8_t level = 0;
    uint16_t count = 0;
    cellgate_status status =
        read_node(h5, walk, address, &level, &keys, &count);

    if (status == CELLGATE_OK && level >= above)
        return cg_h5_damaged(h5, "the tree of its chunks has a loop");
    for (uint16_t i = 0; status == CELLGATE_OK && i < count; i++) {
        cg_h5_chunk chunk = { .size = cg_h5_u32(&keys) };
        bool fits;

        chunk.mask = cg_h5_u32(&keys);
        fits = read_number(walk->dataset, &keys, &chunk.number);
        chunk.address = cg_h5_address(&keys);
        if (level > 0)
            status = walk_tree(h5, walk, chunk.address, level);
        else
            status = fits ? visit(h5, walk, &chunk)
                          : cg_h5_damaged(h5, "a chunk is outside of its data");
    }
    return status;
}

/* ---- Fixed arrays -------------------------------------------------------- */

/* An array counts its chunks by the shape that the dataset may grow to. */
static bool is_full_size(const cg_h5_dataset *dataset)
{
    for (int32_t axis = 0; axis < dataset->space.rank; axis++)
        if (dataset->space.limits[axis] != dataset->space.extents[axis])
            return false;
    return true;
}

static cellgate_status fail_growing(cg_h5 *h5)
{
    return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                      "may still grow; such data is not read: save it with a "
                      "fixed shape");
}

typedef struct fixed_array {
    uint64_t header;
    uint8_t packed; /* entries have sizes and masks */
    uint8_t entry;  /* bytes */
    uint8_t page_bits;
    uint64_t count, block;
} fixed_array;

static cellgate_status read_array(cg_h5 *h5, const cg_h5_dataset *dataset,
                                  fixed_array *array)
{
    const uint64_t size = 12 + (uint64_t)h5->length_size + h5->offset_size;
    const bool packed = dataset->filter_count > 0;
    const uint8_t least = (uint8_t)(h5->offset_size + (packed ? 5 : 0));
    cg_h5_cursor cursor;
    cellgate_status status = cg_h5_span(h5, dataset->address, size,
                                        "the index of its chunks", &cursor);

    if (status == CELLGATE_OK)
        status = cg_h5_verify(h5, &cursor, "the index of its chunks");
    if (status != CELLGATE_OK)
        return status;
    if (!cg_h5_signed(&cursor, "FAHD") || cg_h5_u8(&cursor) != 0)
        return cg_h5_damaged(h5, "the index of its chunks has no signature");
    array->header = dataset->address;
    array->packed = cg_h5_u8(&cursor);
    array->entry = cg_h5_u8(&cursor);
    array->page_bits = cg_h5_u8(&cursor);
    array->count = cg_h5_length(&cursor);
    array->block = cg_h5_address(&cursor);
    if (array->packed != packed || array->entry < least ||
        array->entry > least + (packed ? 7 : 0) || array->page_bits > 32 ||
        array->count != dataset->chunks)
        return cg_h5_damaged(h5, "the index of its chunks");
    return CELLGATE_OK;
}

static cellgate_status visit_entries(cg_h5 *h5, chunk_walk *walk,
                                     const fixed_array *array,
                                     cg_h5_cursor entries, uint64_t count)
{
    cellgate_status status = CELLGATE_OK;

    for (uint64_t i = 0; status == CELLGATE_OK && i < count; i++) {
        cg_h5_chunk chunk = { .number = walk->next,
                              .size = walk->dataset->chunk_size };

        chunk.address = cg_h5_address(&entries);
        if (array->packed) {
            chunk.size = cg_h5_number(
                &entries, (size_t)(array->entry - h5->offset_size - 4));
            chunk.mask = cg_h5_u32(&entries);
        }
        status = entries.bad ? cg_h5_damaged(h5, "the index of its chunks")
                             : visit(h5, walk, &chunk);
    }
    return status;
}

/* Beyond a page, entries lie in pages of their own, each with its checksum. */
static cellgate_status visit_pages(cg_h5 *h5, chunk_walk *walk,
                                   const fixed_array *array, uint64_t address)
{
    const uint64_t page = (uint64_t)1 << array->page_bits;
    cellgate_status status = CELLGATE_OK;

    for (uint64_t done = 0; status == CELLGATE_OK && done < array->count;) {
        const uint64_t rest = array->count - done;
        const uint64_t count = rest < page ? rest : page;
        const uint64_t size = count * array->entry + 4;
        cg_h5_cursor entries;

        status =
            cg_h5_span(h5, address, size, "the index of its chunks", &entries);
        if (status == CELLGATE_OK)
            status = cg_h5_verify(h5, &entries, "the index of its chunks");
        if (status == CELLGATE_OK)
            status = visit_entries(h5, walk, array, entries, count);
        address += size;
        done += count;
    }
    return status;
}

static cellgate_status walk_array(cg_h5 *h5, chunk_walk *walk)
{
    fixed_array array = { 0 };
    const uint64_t head = 6 + (uint64_t)h5->offset_size;
    uint64_t size = head + 4, page, bits = 0;
    cg_h5_cursor block;
    cellgate_status status = read_array(h5, walk->dataset, &array);

    if (status != CELLGATE_OK)
        return status;
    if (array.count > h5->size) /* of entries that take some bytes each */
        return cg_h5_damaged(h5, "the index of its chunks");
    page = (uint64_t)1 << array.page_bits;
    if (array.count > page) /* a bit says whether a page was written */
        bits = ((array.count + page - 1) / page + 7) / 8;
    size += array.count > page ? bits : array.count * array.entry;
    status =
        cg_h5_span(h5, array.block, size, "the index of its chunks", &block);
    if (status == CELLGATE_OK)
        status = cg_h5_verify(h5, &block, "the index of its chunks");
    if (status != CELLGATE_OK)
        return status;
    if (!cg_h5_signed(&block, "FADB") || cg_h5_u8(&block) != 0 ||
        cg_h5_u8(&block) != array.packed ||
        cg_h5_address(&block) != array.header)
        return cg_h5_damaged(h5, "the index of its chunks");
    return bits > 0 ? visit_pages(h5, walk, &array, array.block + size)
                    : visit_entries(h5, walk, &array, block, array.count);
}

/* ---- The others ---------------------------------------------------------- */

static cellgate_status visit_single(cg_h5 *h5, chunk_walk *walk)
{
    const cg_h5_chunk chunk = { .address = walk->dataset->address,
                                .size = walk->dataset->single_size,
                                .mask = walk->dataset->single_mask };

    return visit(h5, walk, &chunk);
}

/* Chunks that were all made at once, one behind the other. */
static cellgate_status visit_implicit(cg_h5 *h5, chunk_walk *walk)
{
    const cg_h5_dataset *dataset = walk->dataset;
    cg_h5_cursor all;
    uint64_t size;
    cellgate_status status;

    if (dataset->filter_count > 0 ||
        __builtin_mul_overflow(dataset->chunks, dataset->chunk_size, &size))
        return cg_h5_damaged(h5, "the index of its chunks");
    status = cg_h5_bytes(h5, dataset->address, size, "its data", &all);
    for (uint64_t i = 0; status == CELLGATE_OK && i < dataset->chunks; i++) {
        const cg_h5_chunk chunk = { .number = i,
                                    .address = dataset->address +
                                               i * dataset->chunk_size,
                                    .size = dataset->chunk_size };

        status = visit(h5, walk, &chunk);
    }
    return status;
}

static cellgate_status walk_index(cg_h5 *h5, chunk_walk *walk)
{
    const cg_h5_dataset *dataset = walk->dataset;

    if (dataset->index == CG_H5_INDEX_BTREE1)
        return walk_tree(h5, walk, dataset->address, CG_H5_MAX_LEVELS);
    if (dataset->index == CG_H5_INDEX_SINGLE)
        return visit_single(h5, walk);
    if (!is_full_size(dataset))
        return fail_growing(h5);
    return dataset->index == CG_H5_INDEX_FIXED ? walk_array(h5, walk)
                                               : visit_implicit(h5, walk);
}

cellgate_status cg_h5_each_chunk(cg_h5 *h5, const cg_h5_dataset *dataset,
                                 cg_h5_visit_chunk visitor, void *context)
{
    chunk_walk walk = { .dataset = dataset,
                        .visit = visitor,
                        .context = context };
    cellgate_status status = CELLGATE_OK;

    if (dataset->chunks == 0)
        return CELLGATE_OK;
    if (dataset->address != CG_H5_NOWHERE)
        status = walk_index(h5, &walk);
    if (status == CELLGATE_OK && walk.next != dataset->chunks)
        status = cg_h5_fail(h5, CELLGATE_BAD_FILE,
                            "claims more data than the file holds: chunk %llu "
                            "is missing",
                            (unsigned long long)walk.next);
    return status;
}
