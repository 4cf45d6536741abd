/* SPDX-License-Identifier: Apache-2.0 */
/* B-trees of version 2: all records, in no order. */
#include "config.h"

#include "runtime/formats/h5_file.h"

/* A node's signature, version, type and checksum. */
#define NODE_EXTRA 10

typedef struct record_tree {
    cg_h5_visit_record visit;
    void *context;
    uint8_t type;
    uint32_t node_size;
    uint16_t record_size, depth;
    uint64_t root;
    uint16_t root_records;
    /* By level, 0 for leaves: the most records of a node; bytes in which the
       records below such a node are counted. */
    uint64_t most[CG_H5_MAX_LEVELS + 1];
    uint8_t total_bytes[CG_H5_MAX_LEVELS + 1];
} record_tree;

/* Bytes that numbers up to `most` take. */
static uint8_t bytes_for(uint64_t most)
{
    uint8_t bytes = 1;

    for (; most > 0xff; most >>= 8)
        bytes++;
    return bytes;
}

/* How an internal node's pointers at this level are made. */
static uint64_t pointer_size(const cg_h5 *h5, const record_tree *tree,
                             uint16_t level)
{
    return (uint64_t)h5->offset_size + bytes_for(tree->most[0]) +
           (level > 1 ? tree->total_bytes[level - 1] : 0u);
}

/* How many records nodes can have follows from their size. */
static bool size_levels(const cg_h5 *h5, record_tree *tree)
{
    uint64_t total;

    if (tree->node_size <= NODE_EXTRA)
        return false;
    total = (tree->node_size - NODE_EXTRA) / tree->record_size;
    tree->most[0] = total;
    tree->total_bytes[0] = 0;
    for (uint16_t level = 1; level <= tree->depth; level++) {
        const uint64_t pointer = pointer_size(h5, tree, level);
        uint64_t most;

        if (tree->node_size <= NODE_EXTRA + pointer)
            return false;
        most = (tree->node_size - NODE_EXTRA - pointer) /
               (tree->record_size + pointer);
        if (__builtin_mul_overflow(most + 1, total, &total) ||
            __builtin_add_overflow(total, most, &total))
            return false;
        tree->most[level] = most;
        tree->total_bytes[level] = bytes_for(total);
    }
    return tree->most[0] > 0;
}

static cellgate_status read_header(cg_h5 *h5, uint64_t address,
                                   record_tree *tree)
{
    const uint64_t size = 22 + (uint64_t)h5->offset_size + h5->length_size;
    cg_h5_cursor cursor;
    cellgate_status status = cg_h5_span(h5, address, size, "an index", &cursor);

    if (status == CELLGATE_OK)
        status = cg_h5_verify(h5, &cursor, "an index");
    if (status != CELLGATE_OK)
        return status;
    if (!cg_h5_signed(&cursor, "BTHD") || cg_h5_u8(&cursor) != 0 ||
        cg_h5_u8(&cursor) != tree->type)
        return cg_h5_damaged(h5, "an index is of another kind");
    tree->node_size = cg_h5_u32(&cursor);
    tree->record_size = cg_h5_u16(&cursor);
    tree->depth = cg_h5_u16(&cursor);
    cg_h5_skip(&cursor, 2); /* when nodes split and merge */
    tree->root = cg_h5_address(&cursor);
    tree->root_records = cg_h5_u16(&cursor);
    if (cursor.bad || tree->record_size == 0 ||
        tree->depth > CG_H5_MAX_LEVELS || !size_levels(h5, tree))
        return cg_h5_damaged(h5, "the header of an index");
    return CELLGATE_OK;
}

static cellgate_status open_node(cg_h5 *h5, const record_tree *tree,
                                 uint16_t level, uint64_t address,
                                 uint64_t records, cg_h5_cursor *node)
{
    uint64_t size = NODE_EXTRA + records * tree->record_size;
    cellgate_status status;

    if (level > 0)
        size += (records + 1) * pointer_size(h5, tree, level);
    if (records > tree->most[level])
        return cg_h5_damaged(h5, "a node of an index is too full");
    status = cg_h5_span(h5, address, size, "a node of an index", node);
    if (status == CELLGATE_OK)
        status = cg_h5_verify(h5, node, "a node of an index");
    if (status != CELLGATE_OK)
        return status;
    if (!cg_h5_signed(node, level > 0 ? "BTIN" : "BTLF") ||
        cg_h5_u8(node) != 0 || cg_h5_u8(node) != tree->type)
        return cg_h5_damaged(h5, "a node of an index is of another kind");
    return CELLGATE_OK;
}

/* Records first, then pointers to one more child than there are records. */
static cellgate_status walk(cg_h5 *h5, const record_tree *tree, uint16_t level,
                            uint64_t address, uint64_t records)
{
    cg_h5_cursor node;
    cellgate_status status =
        open_node(h5, tree, level, address, records, &node);

    for (uint64_t i = 0; status == CELLGATE_OK && i < records; i++)
        status = tree->visit(h5, tree->context,
                             cg_h5_part(&node, tree->record_size));
    for (uint64_t i = 0; status == CELLGATE_OK && level > 0 && i <= records;
         i++) {
        const uint64_t child = cg_h5_address(&node);
        const uint64_t count = cg_h5_number(&node, bytes_for(tree->most[0]));

        if (level > 1)
            cg_h5_skip(&node, tree->total_bytes[level - 1]);
        status = walk(h5, tree, (uint16_t)(level - 1), child, count);
    }
    return status;
}

cellgate_status cg_h5_each_record(cg_h5 *h5, uint64_t address, uint8_t type,
                                  cg_h5_visit_record visit, void *context)
{
    record_tree tree = { .visit = visit, .context = context, .type = type };
    cellgate_status status = read_header(h5, address, &tree);

    if (status != CELLGATE_OK || tree.root == CG_H5_NOWHERE)
        return status;
    return walk(h5, &tree, tree.depth, tree.root, tree.root_records);
}
