/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that attributes hold: of one length in the attribute itself, or each of
   its own in a collection of the global heap. */
#include "config.h"

#include "runtime/formats/h5_file.h"

/* The collection that was looked into last, and how far: the texts of an array
   follow one another in it. */
typedef struct text_heap {
    uint64_t address;
    cg_h5_cursor objects, next;
} text_heap;

typedef struct text_reader {
    const char *name;
    const char **items;
    text_heap collection;
} text_reader;

static cellgate_status fail_attribute(cg_h5 *h5, const char *name,
                                      const char *what)
{
    return cg_h5_fail(h5, CELLGATE_BAD_FILE, "is damaged: attribute '%s': %s",
                      name, what);
}

/* ---- The global heap ----------------------------------------------------- */

static cellgate_status open_collection(cg_h5 *h5, const text_reader *texts,
                                       uint64_t address, text_heap *opened)
{
    const uint64_t head = 8 + (uint64_t)h5->length_size;
    cg_h5_cursor cursor;
    uint64_t size;
    cellgate_status status =
        cg_h5_span(h5, address, head, "a heap of texts", &cursor);

    if (status != CELLGATE_OK)
        return status;
    if (!cg_h5_signed(&cursor, "GCOL") || cg_h5_u8(&cursor) != 1)
        return fail_attribute(h5, texts->name, "its heap has no signature");
    cg_h5_skip(&cursor, 3);
    size = cg_h5_length(&cursor);
    if (size < head)
        return fail_attribute(h5, texts->name, "its heap is too small");
    status = cg_h5_bytes(h5, address + head, size - head, "a heap of texts",
                         &opened->objects);
    if (status != CELLGATE_OK)
        return status;
    opened->address = address;
    opened->next = opened->objects;
    return CELLGATE_OK;
}

/* The next object; number 0 is what is free, and the last. False: none. */
static bool next_object(const cg_h5 *h5, cg_h5_cursor *at, uint64_t *number,
                        cg_h5_cursor *object)
{
    uint64_t size;

    if (at->left < 8u + h5->length_size)
        return false;
    *number = cg_h5_u16(at);
    cg_h5_skip(at, 6); /* references, reserved */
    size = cg_h5_length(at);
    if (*number == 0)
        return false;
    *object = cg_h5_part(at, size);
    cg_h5_skip(at, -size & 7);
    if (object->bad)
        return false;
    if (at->bad) /* the last one need not be filled up */
        *at = (cg_h5_cursor){ .at = object->at };
    return true;
}

/* Looks on from where the last object was found, then once from the start. */
static cellgate_status find_object(cg_h5 *h5, text_reader *texts,
                                   uint64_t number, cg_h5_cursor *object)
{
    text_heap *in = &texts->collection;

    for (int turn = 0; turn < 2; turn++) {
        uint64_t found;

        while (next_object(h5, &in->next, &found, object)) {
            cellgate_status status = cg_h5_walk(h5, 16);

            if (status != CELLGATE_OK || found == number)
                return status;
        }
        in->next = in->objects;
    }
    return fail_attribute(h5, texts->name, "a text is missing in its heap");
}

/* ---- Texts --------------------------------------------------------------- */

static cellgate_status keep_text(cg_h5 *h5, const text_reader *texts,
                                 size_t index, const uint8_t *bytes,
                                 size_t length)
{
    cellgate_status status = CELLGATE_OK;
    char *copy;

    if (length > 0 && memchr(bytes, '\0', length) != NULL)
        return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                          "has a text with a NUL inside in its attribute '%s'",
                          texts->name);
    copy = cg_h5_keep(h5, (uint64_t)length + 1, &status);
    if (copy == NULL)
        return status;
    if (length > 0)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    texts->items[index] = copy;
    return CELLGATE_OK;
}

static size_t trim(const uint8_t *bytes, size_t length, uint8_t padding)
{
    while (length > 0 && bytes[length - 1] == padding)
        length--;
    return length;
}

static cellgate_status read_fixed(cg_h5 *h5, const text_reader *texts,
                                  size_t index, const cg_h5_type *type,
                                  cg_h5_cursor *data)
{
    const uint8_t *bytes = cg_h5_take(data, type->size);
    size_t length = type->size;
    const uint8_t *end;

    if (bytes == NULL)
        return fail_attribute(h5, texts->name, "it is cut short");
    if (type->padding == 't' && length > 0) {
        end = memchr(bytes, '\0', length);
        length = end != NULL ? (size_t)(end - bytes) : length;
    } else {
        length = trim(bytes, length, (uint8_t)type->padding);
    }
    return keep_text(h5, texts, index, bytes, length);
}

static cellgate_status read_long(cg_h5 *h5, text_reader *texts, size_t index,
                                 cg_h5_cursor *data)
{
    const uint32_t length = cg_h5_u32(data);
    const uint64_t address = cg_h5_address(data);
    const uint32_t number = cg_h5_u32(data);
    cg_h5_cursor object = { 0 };
    const uint8_t *bytes;
    cellgate_status status = CELLGATE_OK;

    if (data->bad)
        return fail_attribute(h5, texts->name, "it is cut short");
    if (length == 0)
        return keep_text(h5, texts, index, NULL, 0);
    if (address != texts->collection.address)
        status = open_collection(h5, texts, address, &texts->collection);
    if (status == CELLGATE_OK)
        status = find_object(h5, texts, number, &object);
    if (status != CELLGATE_OK)
        return status;
    bytes = cg_h5_take(&object, length);
    if (bytes == NULL)
        return fail_attribute(h5, texts->name, "a text is cut short");
    return keep_text(h5, texts, index, bytes, trim(bytes, length, '\0'));
}

static cellgate_status read_all(cg_h5 *h5, text_reader *texts,
                                const cg_h5_type *type, cg_h5_cursor data,
                                size_t count)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < count; i++)
        status = type->class == CG_H5_LONG_TEXT
                     ? read_long(h5, texts, i, &data)
                     : read_fixed(h5, texts, i, type, &data);
    return status;
}

/* An array of none has whatever type: NumPy's of no elements is float64. */
static cellgate_status check_type(cg_h5 *h5, const char *name,
                                  const cg_h5_type *type)
{
    if (type->class == CG_H5_FIXED_TEXT || type->class == CG_H5_LONG_TEXT ||
        type->class == CG_H5_OPAQUE)
        return CELLGATE_OK;
    return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                      "has an attribute '%s' of %s where texts are expected",
                      name, type->called);
}

cellgate_status cg_h5_texts_read(cg_h5 *h5, const char *name,
                                 const cg_h5_attribute *attribute,
                                 cg_h5_strings *strings)
{
    text_reader texts = { .name = name, .collection.address = CG_H5_NOWHERE };
    cg_h5_type type = { .class = CG_H5_OTHER };
    cg_h5_space space;
    cellgate_status status;

    if (attribute->shared_type || attribute->shared_space)
        return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                          "has an attribute '%s' of a committed datatype, "
                          "which is not read",
                          name);
    status = cg_h5_space_read(h5, attribute->space, &space);
    if (status == CELLGATE_OK && space.elements > 0)
        status = cg_h5_type_read(h5, attribute->type, &type);
    if (status == CELLGATE_OK && space.elements > 0)
        status = check_type(h5, name, &type);
    if (status != CELLGATE_OK)
        return status;
    if (space.elements > 0 &&
        (type.size == 0 ? space.elements > 1
                        : space.elements > attribute->data.left / type.size))
        return fail_attribute(h5, name, "it claims more than it holds");
    texts.items = cg_h5_keep(h5, space.elements * sizeof *texts.items, &status);
    if (texts.items == NULL)
        return status;
    status =
        read_all(h5, &texts, &type, attribute->data, (size_t)space.elements);
    if (status != CELLGATE_OK)
        return status;
    strings->items = texts.items;
    strings->count = (size_t)space.elements;
    return CELLGATE_OK;
}
