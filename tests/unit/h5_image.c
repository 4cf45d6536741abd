/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/h5_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#define MAX_MEMBERS 64
#define NOWHERE UINT64_MAX

/* A file, or a piece of one, as far as it is written. */
typedef struct growing {
    unsigned char *bytes;
    size_t size, room;
} growing;

static void put(growing *out, const void *bytes, size_t size)
{
    if (out->room - out->size < size) {
        out->room = 2 * out->room + size;
        out->bytes = realloc(out->bytes, out->room);
        assert_non_null(out->bytes);
    }
    if (size > 0)
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static void number(growing *out, size_t width, uint64_t value)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < width; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    put(out, bytes, width);
}

static void align(growing *out)
{
    number(out, -out->size & 7, 0);
}

/* ---- Object headers, version 1 ------------------------------------------- */

static void message(growing *header, unsigned type, growing *body)
{
    align(body);
    number(header, 2, type);
    number(header, 2, body->size);
    number(header, 4, 0);
    put(header, body->bytes, body->size);
    free(body->bytes);
}

static uint64_t put_header(growing *file, growing *messages, unsigned count)
{
    const uint64_t address = file->size;

    number(file, 2, 1);
    number(file, 2, count);
    number(file, 4, 1);
    number(file, 8, messages->size); /* 4 bytes, and 4 to align */
    put(file, messages->bytes, messages->size);
    free(messages->bytes);
    return address;
}

/* ---- Datasets ------------------------------------------------------------ */

static growing float32_type(void)
{
    static const unsigned char bytes[] = { 0x11, 0x20, 31,  0,  4, 0,  0,
                                           0,    0,    0,   32, 0, 23, 8,
                                           0,    23,   127, 0,  0, 0 };
    growing type = { 0 };

    put(&type, bytes, sizeof bytes);
    return type;
}

static growing space(const h5_image_dataset *dataset)
{
    growing body = { 0 };

    number(&body, 1, 1);
    number(&body, 7, (uint64_t)dataset->rank);
    for (int axis = 0; axis < dataset->rank; axis++)
        number(&body, 8, dataset->shape[axis]);
    return body;
}

static uint64_t elements(const h5_image_dataset *dataset)
{
    uint64_t count = dataset->chunk_rows;

    for (int axis = 0; axis < dataset->rank; axis++)
        count = axis == 0 && count != 0 ? count
                : axis == 0             ? dataset->shape[axis]
                                        : count * dataset->shape[axis];
    return dataset->rank == 0 ? 1 : count;
}

static growing contiguous(growing *file, const h5_image_dataset *dataset)
{
    const size_t size = (size_t)elements(dataset) * sizeof(float);
    growing body = { 0 };

    number(&body, 1, 3);
    number(&body, 1, 1);
    number(&body, 8, size > 0 ? file->size : NOWHERE);
    number(&body, 8, size);
    put(file, dataset->data, size);
    align(file);
    return body;
}

/* Version 4: a single chunk, filtered. */
static growing deflated(growing *file, const h5_image_dataset *dataset)
{
    const uLong size = (uLong)elements(dataset) * sizeof(float);
    uLongf packed = compressBound(size);
    unsigned char *bytes = malloc(packed);
    growing body = { 0 };

    assert_non_null(bytes);
    assert_int_equal(
        compress2(bytes, &packed, (const Bytef *)dataset->data, size, 9), Z_OK);
    number(&body, 1, 4);
    number(&body, 1, 2);
    number(&body, 1, 2);
    number(&body, 1, (uint64_t)dataset->rank + 1);
    number(&body, 1, 4); /* bytes an extent */
    number(&body, 4, dataset->chunk_rows);
    for (int axis = 1; axis < dataset->rank; axis++)
        number(&body, 4, dataset->shape[axis]);
    number(&body, 4, sizeof(float));
    number(&body, 1, 1);
    number(&body, 8, packed);
    number(&body, 4, 0);
    number(&body, 8, file->size);
    put(file, bytes, packed);
    align(file);
    free(bytes);
    return body;
}

static growing deflate_filter(void)
{
    growing body = { 0 };

    number(&body, 2, 0x0102); /* version 2, one filter */
    number(&body, 2, 1);      /* deflate */
    number(&body, 2, 0);
    number(&body, 2, 1);
    number(&body, 4, 9);
    return body;
}

static uint64_t put_dataset(growing *file, const h5_image_dataset *dataset)
{
    growing messages = { 0 }, body = space(dataset);
    unsigned count = 3;

    message(&messages, 1, &body);
    body = float32_type();
    message(&messages, 3, &body);
    body = dataset->chunk_rows != 0 ? deflated(file, dataset)
                                    : contiguous(file, dataset);
    message(&messages, 8, &body);
    if (dataset->chunk_rows != 0) {
        body = deflate_filter();
        message(&messages, 11, &body);
        count++;
    }
    return put_header(file, &messages, count);
}

/* ---- Groups -------------------------------------------------------------- */

static void put_link(growing *messages, const char *name, size_t length,
                     uint64_t address)
{
    growing body = { 0 };

    number(&body, 2, 1); /* version 1, a name of up to 255 bytes */
    number(&body, 1, length);
    put(&body, name, length);
    number(&body, 8, address);
    message(messages, 6, &body);
}

static growing link_info(void)
{
    growing body = { 0 };

    number(&body, 2, 0);
    number(&body, 8, NOWHERE);
    number(&body, 8, NOWHERE);
    return body;
}

static bool seen(const h5_image_dataset *first, const h5_image_dataset *at,
                 size_t length)
{
    for (; first != at; first++)
        if (strncmp(first->path, at->path, length) == 0 &&
            (first->path[length] == '/' || first->path[length] == '\0'))
            return true;
    return false;
}

/* The group of what begins as all[0] does, `prefix` bytes long. */
static uint64_t put_group(growing *file, const h5_image_dataset *all,
                          const char *start, size_t prefix)
{
    growing messages = { 0 }, info = link_info();
    unsigned count = 1;

    message(&messages, 2, &info);
    for (const h5_image_dataset *at = all; at != NULL && at->path != NULL;
         at++) {
        size_t length, whole;

        if (strncmp(at->path, start, prefix) != 0)
            continue;
        length = strcspn(at->path + prefix, "/");
        whole = prefix + length;
        if (seen(all, at, whole))
            continue;
        put_link(&messages, at->path + prefix, length,
                 at->path[whole] == '\0'
                     ? put_dataset(file, at)
                     : put_group(file, all, at->path, whole + 1));
        assert_in_range(++count, 0, MAX_MEMBERS);
    }
    return put_header(file, &messages, count);
}

unsigned char *h5_image(const h5_image_dataset *datasets, size_t *size)
{
    growing file = { 0 }, head = { 0 };
    uint64_t root;

    number(&file, 8, 0); /* the superblock's place: 96 bytes */
    while (file.size < 96)
        number(&file, 8, 0);
    root = put_group(&file, datasets, "", 0);
    put(&head, "\211HDF\r\n\032\n", 8);
    number(&head, 5, 0);
    number(&head, 1, 8);
    number(&head, 2, 8);
    number(&head, 8, 0x00100004); /* ranks of trees, flags */
    number(&head, 8, 0);
    number(&head, 8, NOWHERE);
    number(&head, 8, file.size);
    number(&head, 8, NOWHERE);
    number(&head, 8, 0);
    number(&head, 8, root);
    assert_true(head.size <= 96);
    memcpy(file.bytes, head.bytes, head.size);
    free(head.bytes);
    *size = file.size;
    return file.bytes;
}
