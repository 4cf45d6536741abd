/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of the old style: a B-tree of version 1 over nodes of symbols, with
   their names in a local heap. */
#include "config.h"

#include "runtime/formats/h5_file.h"

enum { CACHED_SOFT_LINK = 2, SOFT = 1 };

typedef struct symbol_walk {
    cg_h5_visit_link visit;
    void *context;
    cg_h5_cursor names; /* the heap's data */
} symbol_walk;

static cellgate_status read_heap(cg_h5 *h5, uint64_t address,
                                 cg_h5_cursor *names)
{
    const uint64_t size = 8 + 2u * h5->length_size + h5->offset_size;
    cg_h5_cursor cursor;
    uint64_t length, data;
    cellgate_status status =
        cg_h5_span(h5, address, size, "a heap of names", &cursor);

    if (status != CELLGATE_OK)
        return status;
    if (!cg_h5_signed(&cursor, "HEAP") || cg_h5_u8(&cursor) != 0)
        return cg_h5_damaged(h5, "a heap of names has no signature");
    cg_h5_skip(&cursor, 3);
    length = cg_h5_length(&cursor);
    (void)cg_h5_length(&cursor); /* the first free byte */
    data = cg_h5_address(&cursor);
    return cg_h5_bytes(h5, data, length, "a heap of names", names);
}

/* The heap's text at this offset, up to its NUL. */
static cellgate_status read_name(cg_h5 *h5, cg_h5_cursor names, uint64_t offset,
                                 cg_h5_link *link)
{
    const uint8_t *end = NULL;

    cg_h5_skip(&names, offset);
    if (!names.bad && names.left > 0)
        end = memchr(names.at, '\0', names.left);
    if (end == NULL)
        return cg_h5_damaged(h5, "a name lies outside of its heap");
    link->name = (const char *)names.at;
    link->length = (size_t)(end - names.at);
    return cg_h5_walk(h5, link->length);
}

static cellgate_status read_symbol(cg_h5 *h5, const symbol_walk *symbols,
                                   cg_h5_cursor *node)
{
    const uint64_t offset = cg_h5_number(node, h5->offset_size);
    cg_h5_link link = { .address = cg_h5_address(node) };
    const uint32_t cached = cg_h5_u32(node);
    cellgate_status status;

    cg_h5_skip(node, 20); /* reserved, and what is cached */
    if (cached == CACHED_SOFT_LINK)
        link.kind = SOFT;
    status = read_name(h5, symbols->names, offset, &link);
    return status == CELLGATE_OK ? symbols->visit(h5, symbols->context, &link)
                                 : status;
}

static cellgate_status read_leaf(cg_h5 *h5, const symbol_walk *symbols,
                                 uint64_t address)
{
    const uint64_t entry = 2u * h5->offset_size + 24;
    cg_h5_cursor node;
    uint16_t count;
    cellgate_status status =
        cg_h5_span(h5, address, 8, "a node of a group", &node);

    if (status != CELLGATE_OK)
        return status;
    if (!cg_h5_signed(&node, "SNOD") || cg_h5_u8(&node) != 1)
        return cg_h5_damaged(h5, "a node of a group has no signature");
    cg_h5_skip(&node, 1);
    count = cg_h5_u16(&node);
    status =
        cg_h5_span(h5, address + 8, count * entry, "a node of a group", &node);
    for (uint16_t i = 0; status == CELLGATE_OK && i < count; i++)
        status = read_symbol(h5, symbols, &node);
    return status;
}

/* What precedes a node's keys; *level: 0 leads to symbols. */
static cellgate_status read_node(cg_h5 *h5, uint64_t address, uint8_t *level,
                                 cg_h5_cursor *keys, uint16_t *count)
{
    const uint64_t head = 8 + 2u * h5->offset_size;
    const uint64_t entry = h5->length_size + h5->offset_size;
    cg_h5_cursor node;
    cellgate_status status =
        cg_h5_span(h5, address, head, "the tree of a group", &node);

    if (status != CELLGATE_OK)
        return status;
    if (!cg_h5_signed(&node, "TREE") || cg_h5_u8(&node) != 0)
        return cg_h5_damaged(h5, "the tree of a group has no signature");
    *level = cg_h5_u8(&node);
    *count = cg_h5_u16(&node);
    return cg_h5_span(h5, address + head, *count * entry, "the tree of a group",
                      keys);
}

/* `above`: the level of the node that led here. */
static cellgate_status walk(cg_h5 *h5, const symbol_walk *symbols,
                            uint64_t address, uint8_t above)
{
    cg_h5_cursor keys;
    uint8_t level = 0;
    uint16_t count = 0;
    cellgate_status status = read_node(h5, address, &level, &keys, &count);

    if (status == CELLGATE_OK && level >= above)
        return cg_h5_damaged(h5, "the tree of a group has a loop");
    for (uint16_t i = 0; status == CELLGATE_OK && i < count; i++) {
        uint64_t child;

        (void)cg_h5_length(&keys);
        child = cg_h5_address(&keys);
        status = level > 0 ? walk(h5, symbols, child, level)
                           : read_leaf(h5, symbols, child);
    }
    return status;
}

cellgate_status cg_h5_each_symbol(cg_h5 *h5, const cg_h5_message *table,
                                  cg_h5_visit_link visit, void *context)
{
    symbol_walk symbols = { .visit = visit, .context = context };
    cg_h5_cursor body = table->body;
    const uint64_t tree = cg_h5_address(&body);
    const uint64_t heap = cg_h5_address(&body);
    cellgate_status status;

    if (body.bad)
        return cg_h5_damaged(h5, "the symbol table of a group");
    status = read_heap(h5, heap, &symbols.names);
    return status == CELLGATE_OK ? walk(h5, &symbols, tree, CG_H5_MAX_LEVELS)
                                 : status;
}
