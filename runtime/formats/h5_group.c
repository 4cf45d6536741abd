/* SPDX-License-Identifier: Apache-2.0 */
/* Links out of groups, and the paths that they make. */
#include "config.h"

#include "runtime/formats/h5_file.h"

enum { HARD = 0, SOFT = 1 };

/* ---- Link messages ------------------------------------------------------- */

static cellgate_status read_link(cg_h5 *h5, cg_h5_cursor body, cg_h5_link *link)
{
    const uint8_t version = cg_h5_u8(&body);
    const uint8_t flags = cg_h5_u8(&body);
    uint64_t length;

    link->kind = (flags & 0x08) != 0 ? cg_h5_u8(&body) : HARD;
    if ((flags & 0x04) != 0)
        cg_h5_skip(&body, 8); /* order of creation */
    if ((flags & 0x10) != 0)
        cg_h5_skip(&body, 1); /* encoding of the name */
    length = cg_h5_number(&body, (size_t)1 << (flags & 3));
    link->name = (const char *)cg_h5_take(&body, length);
    link->length = (size_t)length;
    link->address = CG_H5_NOWHERE;
    if (link->kind == HARD)
        link->address = cg_h5_address(&body);
    if (body.bad || version != 1 || length == 0 ||
        memchr(link->name, '\0', link->length) != NULL)
        return cg_h5_damaged(h5, "a link of a group");
    return CELLGATE_OK;
}

typedef struct link_walk {
    cg_h5_visit_link visit;
    void *context;
    cg_h5_fractal heap;
    bool named; /* only links with a name of this checksum matter */
    uint32_t hash;
} link_walk;

static cellgate_status visit_message(cg_h5 *h5, void *context,
                                     const cg_h5_message *message)
{
    const link_walk *links = context;
    cg_h5_link link;
    cellgate_status status;

    if (message->type != CG_H5_LINK)
        return CELLGATE_OK;
    status = read_link(h5, message->body, &link);
    return status == CELLGATE_OK ? links->visit(h5, links->context, &link)
                                 : status;
}

/* A record of the index by names: the name's checksum, an id of the heap. */
static cellgate_status visit_record(cg_h5 *h5, void *context,
                                    cg_h5_cursor record)
{
    const link_walk *links = context;
    const uint32_t hash = cg_h5_u32(&record);
    cg_h5_cursor object;
    cg_h5_link link;
    cellgate_status status;

    if (links->named && hash != links->hash)
        return CELLGATE_OK;
    status = cg_h5_fractal_get(h5, &links->heap, &record, &object);
    if (status == CELLGATE_OK)
        status = read_link(h5, object, &link);
    return status == CELLGATE_OK ? links->visit(h5, links->context, &link)
                                 : status;
}

/* Links that are too many for the header. */
static cellgate_status each_dense_link(cg_h5 *h5, cg_h5_cursor info,
                                       link_walk *links)
{
    const uint8_t version = cg_h5_u8(&info);
    const uint8_t flags = cg_h5_u8(&info);
    uint64_t heap, names;
    cellgate_status status;

    if ((flags & 0x01) != 0)
        cg_h5_skip(&info, 8); /* orders given out so far */
    heap = cg_h5_address(&info);
    names = cg_h5_address(&info);
    if (info.bad || version != 0)
        return cg_h5_damaged(h5, "the link info of a group");
    if (heap == CG_H5_NOWHERE)
        return CELLGATE_OK;
    status = cg_h5_fractal_open(h5, heap, &links->heap);
    return status == CELLGATE_OK
               ? cg_h5_each_record(h5, names, 5, visit_record, links)
               : status;
}

cellgate_status cg_h5_each_link(cg_h5 *h5, const cg_h5_object *group,
                                const char *name, size_t length,
                                cg_h5_visit_link visit, void *context)
{
    link_walk links = { .visit = visit, .context = context };
    cellgate_status status = CELLGATE_OK;

    if (cg_h5_object_has(group, CG_H5_SYMBOL_TABLE))
        return cg_h5_each_symbol(h5, &group->messages[CG_H5_SYMBOL_TABLE],
                                 visit, context);
    if (name != NULL) {
        links.named = true;
        links.hash = cg_h5_checksum((const uint8_t *)name, length, SIZE_MAX);
    }
    if (cg_h5_object_has(group, CG_H5_LINK))
        status = cg_h5_each_message(h5, group->address, visit_message, &links);
    if (status == CELLGATE_OK && cg_h5_object_has(group, CG_H5_LINK_INFO))
        status =
            each_dense_link(h5, group->messages[CG_H5_LINK_INFO].body, &links);
    return status;
}

/* ---- Paths --------------------------------------------------------------- */

typedef struct link_search {
    const char *name;
    size_t length;
    cg_h5_link link;
} link_search;

static cellgate_status match(cg_h5 *h5, void *context, const cg_h5_link *link)
{
    link_search *search = context;

    (void)h5;
    if (link->length != search->length ||
        memcmp(link->name, search->name, link->length) != 0)
        return CELLGATE_OK;
    search->link = *link;
    return CELLGATE_END;
}

static cellgate_status fail_link(cg_h5 *h5, uint8_t kind)
{
    return cellgate_fail(h5->error, CELLGATE_BAD_FILE,
                         "%s link leads to '%s' in %s; only hard links are "
                         "followed",
                         kind == SOFT ? "a soft" : "an external", h5->path,
                         h5->name);
}

static cellgate_status fail_missing(cg_h5 *h5)
{
    return cellgate_fail(h5->error, CELLGATE_BAD_FILE, "%s has nothing at '%s'",
                         h5->name, h5->path);
}

/* Replaces *object, a group, by its member. */
static cellgate_status step(cg_h5 *h5, cg_h5_object *object, const char *name,
                            size_t length)
{
    link_search search = { .name = name, .length = length };
    cellgate_status status;

    if (!cg_h5_is_group(object))
        return fail_missing(h5);
    status = cg_h5_each_link(h5, object, name, length, match, &search);
    if (status == CELLGATE_OK)
        return fail_missing(h5);
    if (status != CELLGATE_END)
        return status;
    if (search.link.kind != HARD)
        return fail_link(h5, search.link.kind);
    return cg_h5_object_read(h5, search.link.address, object);
}

cellgate_status cg_h5_find(cg_h5 *h5, cg_h5_object *object)
{
    const char *rest = h5->path;
    cellgate_status status = cg_h5_object_read(h5, h5->root, object);

    while (status == CELLGATE_OK) {
        size_t length;

        rest += strspn(rest, "/");
        length = strcspn(rest, "/");
        if (length == 0)
            break;
        status = step(h5, object, rest, length);
        rest += length;
    }
    return status;
}
