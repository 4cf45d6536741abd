/* SPDX-License-Identifier: Apache-2.0 */
/* Object headers, versions 1 and 2, with their continuation blocks. */
#include "config.h"

#include "runtime/formats/h5_file.h"

/* Blocks of one header that were referred to and not read yet. */
#define MAX_PENDING 64

enum { SHARED = 0x02, UNKNOWN_FAILS = 0x80 };

typedef struct header_walk {
    cg_h5_visit_message visit;
    void *context;
    uint8_t version;
    bool ordered; /* messages carry the order of their creation */
    size_t pending;
    struct {
        uint64_t address, size;
    } blocks[MAX_PENDING];
} header_walk;

static cellgate_status add_block(cg_h5 *h5, header_walk *walk,
                                 cg_h5_cursor body)
{
    const uint64_t address = cg_h5_address(&body);
    const uint64_t size = cg_h5_length(&body);

    if (body.bad || walk->pending == MAX_PENDING)
        return cg_h5_damaged(h5, "a continuation of its header");
    walk->blocks[walk->pending].address = address;
    walk->blocks[walk->pending++].size = size;
    return CELLGATE_OK;
}

static cellgate_status handle(cg_h5 *h5, header_walk *walk, uint16_t type,
                              uint8_t flags, cg_h5_cursor body)
{
    cg_h5_message message = { .shared = (flags & SHARED) != 0, .body = body };

    if (type == CG_H5_CONTINUATION)
        return add_block(h5, walk, body);
    if (type >= CG_H5_MESSAGES) {
        if ((flags & UNKNOWN_FAILS) == 0)
            return CELLGATE_OK;
        return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                          "has a header message of type %d, which must not be "
                          "passed over",
                          type);
    }
    message.type = (uint8_t)type;
    return walk->visit(h5, walk->context, &message);
}

/* In version 2 fewer bytes than a message's head may be left over. */
static cellgate_status read_messages(cg_h5 *h5, header_walk *walk,
                                     cg_h5_cursor block)
{
    const size_t head = walk->version == 1 ? 8 : walk->ordered ? 6 : 4;

    while (block.left >= head) {
        const uint16_t type =
            walk->version == 1 ? cg_h5_u16(&block) : cg_h5_u8(&block);
        const uint16_t size = cg_h5_u16(&block);
        const uint8_t flags = cg_h5_u8(&block);
        cg_h5_cursor body;
        cellgate_status status;

        cg_h5_skip(&block, head - (walk->version == 1 ? 5 : 4));
        body = cg_h5_part(&block, size);
        if (block.bad)
            return cg_h5_damaged(h5, "a message of its header");
        status = handle(h5, walk, type, flags, body);
        if (status != CELLGATE_OK)
            return status;
    }
    return CELLGATE_OK;
}

static cellgate_status read_continuation(cg_h5 *h5, header_walk *walk)
{
    cg_h5_cursor block;
    cellgate_status status;

    walk->pending--;
    status = cg_h5_span(h5, walk->blocks[walk->pending].address,
                        walk->blocks[walk->pending].size,
                        "a continuation of its header", &block);
    if (status == CELLGATE_OK && walk->version == 2) {
        status = cg_h5_verify(h5, &block, "a continuation of its header");
        if (status == CELLGATE_OK && !cg_h5_signed(&block, "OCHK"))
            status = cg_h5_damaged(h5, "a continuation of its header");
    }
    return status == CELLGATE_OK ? read_messages(h5, walk, block) : status;
}

/* 12 bytes, of which the last 4 say how many follow, and 4 to align those. */
static cellgate_status read_version1(cg_h5 *h5, header_walk *walk,
                                     uint64_t address)
{
    cg_h5_cursor block;
    uint32_t size;
    cellgate_status status = cg_h5_span(h5, address, 16, "its header", &block);

    if (status != CELLGATE_OK)
        return status;
    cg_h5_skip(&block, 8);
    size = cg_h5_u32(&block);
    status = cg_h5_span(h5, address + 16, size, "its header", &block);
    return status == CELLGATE_OK ? read_messages(h5, walk, block) : status;
}

/* What precedes the messages; *size: of the first block, all of it. */
static cellgate_status read_prefix(cg_h5 *h5, header_walk *walk,
                                   cg_h5_cursor cursor, uint64_t *prefix,
                                   uint64_t *size)
{
    const size_t all = cursor.left;
    uint8_t flags;

    cg_h5_skip(&cursor, 5); /* the signature, the version */
    flags = cg_h5_u8(&cursor);
    walk->ordered = (flags & 0x04) != 0;
    if ((flags & 0x20) != 0)
        cg_h5_skip(&cursor, 16); /* times */
    if ((flags & 0x10) != 0)
        cg_h5_skip(&cursor, 4); /* when attributes move to a heap */
    *size = cg_h5_number(&cursor, (size_t)1 << (flags & 3));
    if (cursor.bad)
        return cg_h5_damaged(h5, "its header is cut short");
    *prefix = all - cursor.left;
    if (*size > h5->size)
        return cg_h5_damaged(h5, "its header lies outside of the file");
    *size += *prefix + 4;
    return CELLGATE_OK;
}

static cellgate_status read_version2(cg_h5 *h5, header_walk *walk,
                                     uint64_t address)
{
    const uint64_t most = h5->size - address; /* `address` is in the file */
    cg_h5_cursor block;
    uint64_t prefix = 0, size = 0;
    cellgate_status status =
        cg_h5_span(h5, address, most < 34 ? most : 34, "its header", &block);

    if (status == CELLGATE_OK)
        status = read_prefix(h5, walk, block, &prefix, &size);
    if (status == CELLGATE_OK)
        status = cg_h5_span(h5, address, size, "its header", &block);
    if (status == CELLGATE_OK)
        status = cg_h5_verify(h5, &block, "its header");
    if (status != CELLGATE_OK)
        return status;
    cg_h5_skip(&block, prefix);
    return read_messages(h5, walk, block);
}

cellgate_status cg_h5_each_message(cg_h5 *h5, uint64_t address,
                                   cg_h5_visit_message visit, void *context)
{
    header_walk walk = { .visit = visit, .context = context };
    cg_h5_cursor start;
    cellgate_status status = cg_h5_span(h5, address, 5, "its header", &start);

    if (status != CELLGATE_OK)
        return status;
    if (start.at[0] == 1) {
        walk.version = 1;
        status = read_version1(h5, &walk, address);
    } else if (cg_h5_signed(&start, "OHDR") && cg_h5_u8(&start) == 2) {
        walk.version = 2;
        status = read_version2(h5, &walk, address);
    } else {
        return cg_h5_damaged(h5, "its header is none of version 1 or 2");
    }
    while (status == CELLGATE_OK && walk.pending > 0)
        status = read_continuation(h5, &walk);
    return status;
}

/* ---- All messages at once ------------------------------------------------ */

static bool may_repeat(unsigned type)
{
    return type == CG_H5_LINK || type == CG_H5_ATTRIBUTE;
}

static bool is_looked_at(unsigned type)
{
    return type == CG_H5_DATASPACE || type == CG_H5_LINK_INFO ||
           type == CG_H5_DATATYPE || type == CG_H5_EXTERNAL ||
           type == CG_H5_LAYOUT || type == CG_H5_FILTERS ||
           type == CG_H5_SYMBOL_TABLE || type == CG_H5_ATTRIBUTE_INFO;
}

static cellgate_status keep_message(cg_h5 *h5, void *context,
                                    const cg_h5_message *message)
{
    cg_h5_object *object = context;
    const unsigned type = message->type;

    if (!is_looked_at(type) && !may_repeat(type))
        return CELLGATE_OK;
    if (!may_repeat(type) && cg_h5_object_has(object, type))
        return cg_h5_damaged(h5, "its header says a thing twice");
    object->found |= (uint32_t)1 << type;
    object->messages[type] = *message;
    return CELLGATE_OK;
}

cellgate_status cg_h5_object_read(cg_h5 *h5, uint64_t address,
                                  cg_h5_object *object)
{
    object->address = address;
    object->found = 0;
    return cg_h5_each_message(h5, address, keep_message, object);
}

bool cg_h5_object_has(const cg_h5_object *object, unsigned type)
{
    return (object->found >> type & 1) != 0;
}

bool cg_h5_is_group(const cg_h5_object *object)
{
    return cg_h5_object_has(object, CG_H5_SYMBOL_TABLE) ||
           cg_h5_object_has(object, CG_H5_LINK_INFO) ||
           cg_h5_object_has(object, CG_H5_LINK);
}

bool cg_h5_is_dataset(const cg_h5_object *object)
{
    return cg_h5_object_has(object, CG_H5_LAYOUT);
}
