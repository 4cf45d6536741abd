/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>
#include <zip.h>

#include "tests/fuzz/target.h"
#include "tests/fuzz/zip_mutator.h"

#define MEMBERS_MOST 16
#define MEMBER_ROOM (1u << 16)

typedef struct member {
    char name[256];
    uint8_t *bytes; /* MEMBER_ROOM of them */
    size_t size;
    bool packed; /* by deflate */
} member;

typedef struct archive {
    member members[MEMBERS_MOST];
    size_t count;
} archive;

static void archive_finish(archive *of)
{
    for (size_t i = 0; i < of->count; i++)
        free(of->members[i].bytes);
    of->count = 0;
}

static bool unpack_member(zip_t *zip, zip_uint64_t number, archive *of)
{
    member *to = &of->members[of->count];
    const char *name = zip_get_name(zip, number, ZIP_FL_ENC_RAW);
    zip_file_t *file = zip_fopen_index(zip, number, 0);
    zip_stat_t about;
    zip_int64_t got = -1;

    to->bytes = malloc(MEMBER_ROOM);
    FUZZ_REQUIRE(to->bytes != NULL);
    of->count++;
    if (file != NULL)
        got = zip_fread(file, to->bytes, MEMBER_ROOM);
    if (file != NULL)
        (void)zip_fclose(file);
    if (got < 0 || name == NULL || strlen(name) >= sizeof to->name ||
        zip_stat_index(zip, number, 0, &about) != 0)
        return false;
    to->size = (size_t)got;
    to->packed = (about.valid & ZIP_STAT_COMP_METHOD) && about.comp_method != 0;
    memcpy(to->name, name, strlen(name) + 1);
    return true;
}

/* False: no archive, or none of this size. */
static bool unpack(const uint8_t *data, size_t size, archive *of)
{
    zip_source_t *source = zip_source_buffer_create(data, size, 0, NULL);
    zip_t *zip = source != NULL ? zip_open_from_source(source, 0, NULL) : NULL;
    zip_int64_t count = zip != NULL ? zip_get_num_entries(zip, 0) : 0;
    bool whole = count > 0 && count < MEMBERS_MOST;

    for (zip_int64_t i = 0; whole && i < count; i++)
        whole = unpack_member(zip, (zip_uint64_t)i, of);
    if (zip != NULL)
        zip_discard(zip);
    else
        zip_source_free(source);
    return whole;
}

/* ---- Packing: written out, since libzip refuses what is not sound -------- */

typedef struct writer {
    uint8_t *data;
    size_t size, room;
    bool full;
} writer;

static void put(writer *to, const void *bytes, size_t size)
{
    if (size > to->room - to->size)
        to->full = true;
    if (to->full)
        return;
    memcpy(to->data + to->size, bytes, size);
    to->size += size;
}

static void put_number(writer *to, uint32_t number, size_t bytes)
{
    put(to, &number, bytes); /* hosts are little-endian */
}

static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* One stored block after the other: deflate without packing. */
static size_t block_size(const member *of)
{
    return of->packed ? of->size + 5 * (of->size / 65535 + 1) : of->size;
}

static void put_content(writer *to, const member *of)
{
    size_t at = 0;

    if (!of->packed) {
        put(to, of->bytes, of->size);
        return;
    }
    do {
        const size_t left = of->size - at;
        const uint32_t piece = left < 65535 ? (uint32_t)left : 65535u;

        put_number(to, piece == left, 1);
        put_number(to, piece, 2);
        put_number(to, ~piece, 2);
        put(to, of->bytes + at, piece);
        at += piece;
    } while (at < of->size);
}

/* What a local header and an entry of the directory share. */
static void put_entry(writer *to, const member *of)
{
    put_number(to, 20, 2);
    put_number(to, 0, 2);
    put_number(to, of->packed ? 8 : 0, 2);
    put_number(to, 0x00210000, 4); /* midnight of 1 January 1980 */
    put_number(to, checksum(of->bytes, of->size), 4);
    put_number(to, (uint32_t)block_size(of), 4);
    put_number(to, (uint32_t)of->size, 4);
    put_number(to, (uint32_t)strlen(of->name), 2);
    put_number(to, 0, 2);
}

/* The new size; 0 if there is no room. */
static size_t pack(const archive *of, uint8_t *data, size_t room)
{
    writer to = { data, 0, room, false };
    uint32_t places[MEMBERS_MOST + 1], directory;

    for (size_t i = 0; i < of->count; i++) {
        places[i] = (uint32_t)to.size;
        put(&to, "PK\3\4", 4);
        put_entry(&to, &of->members[i]);
        put(&to, of->members[i].name, strlen(of->members[i].name));
        put_content(&to, &of->members[i]);
    }
    directory = (uint32_t)to.size;
    for (size_t i = 0; i < of->count; i++) {
        put(&to, "PK\1\2\24\0", 6);
        put_entry(&to, &of->members[i]);
        put_number(&to, 0, 4);
        put_number(&to, 0, 2);
        put_number(&to, 0, 4);
        put_number(&to, places[i], 4);
        put(&to, of->members[i].name, strlen(of->members[i].name));
    }
    places[of->count] = (uint32_t)to.size;
    put(&to, "PK\5\6\0\0\0\0", 8);
    put_number(&to, (uint32_t)of->count, 2);
    put_number(&to, (uint32_t)of->count, 2);
    put_number(&to, places[of->count] - directory, 4);
    put_number(&to, directory, 4);
    put_number(&to, 0, 2);
    return to.full ? 0 : to.size;
}

/* ---- Changing ------------------------------------------------------------ */

static void repeat_member(archive *of, size_t which)
{
    member *copy = &of->members[of->count];

    *copy = of->members[which];
    copy->bytes = malloc(MEMBER_ROOM);
    FUZZ_REQUIRE(copy->bytes != NULL);
    memcpy(copy->bytes, of->members[which].bytes, copy->size);
    of->count++;
}

static void change(archive *of, unsigned seed)
{
    member *one = &of->members[seed / 64 % of->count];
    const size_t length = strlen(one->name);

    if (seed % 64 == 0) {
        repeat_member(of, seed / 64 % of->count);
    } else if (seed % 64 == 1) {
        one->packed = !one->packed;
    } else if (seed % 64 == 2 && length > 0) {
        one->name[seed / 64 % length] ^= (char)(1 << seed / 1024 % 7);
    } else if (seed % 64 == 3) {
        free(one->bytes);
        *one = of->members[--of->count];
    } else {
        one->size = LLVMFuzzerMutate(one->bytes, one->size, MEMBER_ROOM);
    }
}

size_t zip_mutate(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    archive of = { .count = 0 };
    size_t made = 0;

    /* One in eight changes the archive itself. */
    if (seed % 8 != 7 && unpack(data, size, &of)) {
        change(&of, seed / 8);
        made = pack(&of, data, room);
    }
    archive_finish(&of);
    return made != 0 ? made : LLVMFuzzerMutate(data, size, room);
}
