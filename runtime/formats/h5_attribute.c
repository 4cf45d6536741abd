/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes, in an object's header or in a heap beside it. */
#include "config.h"

#include "runtime/formats/h5_file.h"

typedef struct attribute_search {
    const char *name;
    uint32_t hash;
    cg_h5_fractal heap;
    cg_h5_attribute *found;
} attribute_search;

/* Version 1 fills each part up to a multiple of 8 bytes. */
static cg_h5_cursor take_part(cg_h5_cursor *body, size_t size, bool padded)
{
    cg_h5_cursor part = cg_h5_part(body, size);

    if (padded)
        cg_h5_skip(body, -size & 7);
    return part;
}

/* END: its name is the one that is looked for. */
static cellgate_status read_attribute(cg_h5 *h5, cg_h5_cursor body,
                                      attribute_search *search)
{
    const size_t length = strlen(search->name);
    const uint8_t version = cg_h5_u8(&body), flags = cg_h5_u8(&body);
    const size_t name_size = cg_h5_u16(&body);
    const size_t type_size = cg_h5_u16(&body);
    const size_t space_size = cg_h5_u16(&body);
    cg_h5_cursor name;

    if (version == 3)
        cg_h5_skip(&body, 1); /* encoding of the name */
    name = take_part(&body, name_size, version == 1);
    search->found->type = take_part(&body, type_size, version == 1);
    search->found->space = take_part(&body, space_size, version == 1);
    search->found->data = body;
    search->found->shared_type = version != 1 && (flags & 1) != 0;
    search->found->shared_space = version != 1 && (flags & 2) != 0;
    if (body.bad || version < 1 || version > 3)
        return cg_h5_damaged(h5, "an attribute");
    if (name_size != length + 1 || memcmp(name.at, search->name, name_size))
        return CELLGATE_OK;
    return CELLGATE_END;
}

static cellgate_status fail_shared(cg_h5 *h5)
{
    return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                      "shares an attribute with other objects; that is not "
                      "read");
}

static cellgate_status visit_message(cg_h5 *h5, void *context,
                                     const cg_h5_message *message)
{
    if (message->type != CG_H5_ATTRIBUTE)
        return CELLGATE_OK;
    return message->shared ? fail_shared(h5)
                           : read_attribute(h5, message->body, context);
}

/* A record of the index by names: an id of the heap, a message's flags, the
   order of creation, the name's checksum. */
static cellgate_status visit_record(cg_h5 *h5, void *context,
                                    cg_h5_cursor record)
{
    attribute_search *search = context;
    cg_h5_cursor rest = record, object;
    uint8_t flags;
    cellgate_status status;

    cg_h5_skip(&rest, search->heap.id_size);
    flags = cg_h5_u8(&rest);
    cg_h5_skip(&rest, 4);
    if (cg_h5_u32(&rest) != search->hash)
        return rest.bad ? cg_h5_damaged(h5, "the index of its attributes")
                        : CELLGATE_OK;
    if ((flags & 0x02) != 0)
        return fail_shared(h5);
    status = cg_h5_fractal_get(h5, &search->heap, &record, &object);
    return status == CELLGATE_OK ? read_attribute(h5, object, search) : status;
}

static cellgate_status search_heap(cg_h5 *h5, cg_h5_cursor info,
                                   attribute_search *search)
{
    const uint8_t version = cg_h5_u8(&info);
    const uint8_t flags = cg_h5_u8(&info);
    uint64_t heap, names;
    cellgate_status status;

    if ((flags & 0x01) != 0)
        cg_h5_skip(&info, 2); /* orders given out so far */
    heap = cg_h5_address(&info);
    names = cg_h5_address(&info);
    if (info.bad || version != 0)
        return cg_h5_damaged(h5, "what it says of its attributes");
    if (heap == CG_H5_NOWHERE)
        return CELLGATE_OK;
    status = cg_h5_fractal_open(h5, heap, &search->heap);
    return status == CELLGATE_OK
               ? cg_h5_each_record(h5, names, 8, visit_record, search)
               : status;
}

cellgate_status cg_h5_attribute_find(cg_h5 *h5, const cg_h5_object *object,
                                     const char *name,
                                     cg_h5_attribute *attribute)
{
    attribute_search search = { .name = name, .found = attribute };
    cellgate_status status = CELLGATE_OK;

    search.hash = cg_h5_checksum((const uint8_t *)name, strlen(name), SIZE_MAX);
    if (cg_h5_object_has(object, CG_H5_ATTRIBUTE))
        status =
            cg_h5_each_message(h5, object->address, visit_message, &search);
    if (status == CELLGATE_OK && cg_h5_object_has(object, CG_H5_ATTRIBUTE_INFO))
        status = search_heap(h5, object->messages[CG_H5_ATTRIBUTE_INFO].body,
                             &search);
    if (status == CELLGATE_OK)
        return CELLGATE_NOT_FOUND;
    return status == CELLGATE_END ? CELLGATE_OK : status;
}
